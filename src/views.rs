//! Answers with more than one value: their keys, order and values, once for every binding. The FFI
//! bridge writes them as JSON, the extension as PHP arrays.

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use crate::config::options::Options;
use crate::domain::failure::Failure;
use crate::ops::due_runs::DueRun;
use crate::ops::reap::{Entry, Report};
use crate::ops::recover_failure::Recovery;
use crate::ops::status::StatusReport;
use crate::ops::stranded_runs::Stranded;
use crate::process::sessions::Key;

/// PHP's int is the widest number that all callers have.
fn int(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// A failure.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FailureView<'a> {
    failure_class: &'static str,
    retryable: bool,
    trips_circuit: bool,
    error_class: &'a str,
    http_status: Option<u16>,
    retry_after_seconds: Option<i64>,
}

impl<'a> FailureView<'a> {
    pub(crate) fn new(failure: &'a Failure) -> Self {
        let class = failure.classification.class;
        Self {
            failure_class: class.as_str(),
            retryable: class.is_retryable(),
            trips_circuit: class.trips_circuit(),
            error_class: &failure.error_class,
            http_status: failure.classification.http_status,
            retry_after_seconds: failure.classification.retry_after_seconds.map(int),
        }
    }
}

/// What became of a failed run.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RecoveryView<'a> {
    outcome: &'static str,
    reason: Option<&'static str>,
    failure: FailureView<'a>,
    requeue_count: Option<u32>,
    delay_ms: Option<i64>,
    woken_up: bool,
    confirmed: bool,
}

impl<'a> RecoveryView<'a> {
    pub(crate) fn new(recovery: &Recovery, failure: &'a Failure) -> Self {
        let failure = FailureView::new(failure);
        match recovery {
            Recovery::Requeued { requeue_count, delay_ms, woken_up, confirmed } => Self {
                outcome: "requeued",
                reason: None,
                failure,
                requeue_count: Some(*requeue_count),
                delay_ms: Some(int(*delay_ms)),
                woken_up: *woken_up,
                confirmed: *confirmed,
            },
            Recovery::DeadLettered { reason, requeue_count, confirmed } => Self {
                outcome: "dead_lettered",
                reason: Some(reason.as_str()),
                failure,
                requeue_count: Some(*requeue_count),
                delay_ms: None,
                woken_up: false,
                confirmed: *confirmed,
            },
            Recovery::LeaseLost => Self {
                outcome: "lease_lost",
                reason: None,
                failure,
                requeue_count: None,
                delay_ms: None,
                woken_up: false,
                confirmed: false,
            },
        }
    }
}

/// A run in the report of a reap.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct EntryView<'a> {
    uid: i64,
    uuid: &'a str,
    claimed_by: &'a str,
    lease_expires: i64,
    requeue_count: u32,
    reason: Option<&'static str>,
    woken_up: bool,
    confirmed: bool,
}

impl<'a> EntryView<'a> {
    fn new(entry: &'a Entry) -> Self {
        Self {
            uid: int(entry.uid),
            uuid: &entry.uuid,
            claimed_by: &entry.claimed_by,
            lease_expires: entry.lease_expires,
            requeue_count: entry.requeue_count,
            reason: entry.reason,
            woken_up: entry.woken_up,
            confirmed: entry.confirmed,
        }
    }
}

/// The runs that a report lists.
pub(crate) struct Entries<'a>(pub(crate) &'a [Entry]);

impl Serialize for Entries<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(EntryView::new))
    }
}

/// The report of a reap.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ReportView<'a> {
    requeued: Entries<'a>,
    dead_lettered: Entries<'a>,
    skipped: Entries<'a>,
    dry_run: bool,
    has_more: bool,
}

impl<'a> ReportView<'a> {
    pub(crate) fn new(report: &'a Report) -> Self {
        Self {
            requeued: Entries(&report.requeued),
            dead_lettered: Entries(&report.dead_lettered),
            skipped: Entries(&report.skipped),
            dry_run: report.dry_run,
            has_more: report.has_more,
        }
    }
}

/// A queued run.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct QueuedView<'a> {
    uid: i64,
    uuid: &'a str,
    requeue_count: u32,
    queued_seconds: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    woken_up: Option<bool>,
}

impl<'a> QueuedView<'a> {
    pub(crate) fn due(run: &'a DueRun) -> Self {
        let DueRun { uid, uuid, requeue_count, queued_seconds } = run;
        Self {
            uid: int(*uid),
            uuid,
            requeue_count: *requeue_count,
            queued_seconds: *queued_seconds,
            woken_up: None,
        }
    }

    pub(crate) fn stranded(run: &'a Stranded) -> Self {
        let Stranded { uid, uuid, requeue_count, queued_seconds, woken_up } = run;
        Self {
            uid: int(*uid),
            uuid,
            requeue_count: *requeue_count,
            queued_seconds: *queued_seconds,
            woken_up: Some(*woken_up),
        }
    }
}

/// Names with their number, in order.
struct Counts<'a>(&'a [(String, u64)]);

impl Serialize for Counts<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, count) in self.0 {
            map.serialize_entry(name, &int(*count))?;
        }
        map.end()
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SettingsView<'a> {
    endpoint: String,
    user: &'a str,
    dbname: &'a str,
    tls: bool,
    table: String,
    clock: &'static str,
    connect_timeout_ms: i64,
    query_timeout_ms: i64,
    max_requeues: u32,
    backoff_base_ms: i64,
    backoff_cap_ms: i64,
    jitter: f64,
}

impl<'a> SettingsView<'a> {
    fn new(key: &'a Key, options: &Options) -> Self {
        let milliseconds =
            |duration: std::time::Duration| i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
        Self {
            endpoint: key.connection.endpoint.to_string(),
            user: &key.connection.user,
            dbname: &key.connection.dbname,
            tls: key.connection.tls.is_some(),
            table: options.table.quoted().replace('`', ""),
            clock: options.clock.as_str(),
            connect_timeout_ms: milliseconds(options.timeouts.connect),
            query_timeout_ms: milliseconds(options.timeouts.query),
            max_requeues: options.max_requeues,
            backoff_base_ms: int(options.backoff.base_ms),
            backoff_cap_ms: int(options.backoff.cap_ms),
            jitter: options.backoff.jitter,
        }
    }
}

/// The answer of `status()`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StatusView<'a> {
    counts: Counts<'a>,
    dead_letters: Counts<'a>,
    expired_leases: i64,
    unleased_running: i64,
    oldest_lease: Option<i64>,
    oldest_queued_seconds: Option<i64>,
    stranded: i64,
    clock_skew_ms: i64,
    lease_key: bool,
    server: &'a str,
    isolation: &'a str,
    binlog: BinlogView<'a>,
    settings: SettingsView<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct BinlogView<'a> {
    format: Option<&'a str>,
    row_image: Option<&'a str>,
    bytes_per_heartbeat: i64,
    remedy: Option<&'a str>,
}

impl<'a> StatusView<'a> {
    pub(crate) fn new(report: &'a StatusReport, key: &'a Key, options: &Options) -> Self {
        Self {
            counts: Counts(&report.counts),
            dead_letters: Counts(&report.dead_letters),
            expired_leases: int(report.expired_leases),
            unleased_running: int(report.unleased_running),
            oldest_lease: report.oldest_lease,
            oldest_queued_seconds: report.oldest_queued_seconds,
            stranded: int(report.stranded),
            clock_skew_ms: report.clock_skew_ms,
            lease_key: report.lease_key,
            server: &report.server,
            isolation: &report.isolation,
            binlog: BinlogView {
                format: report.binlog.format.as_deref(),
                row_image: report.binlog.row_image.as_deref(),
                bytes_per_heartbeat: int(report.binlog.bytes_per_heartbeat),
                remedy: report.binlog.remedy.as_deref(),
            },
            settings: SettingsView::new(key, options),
        }
    }
}
