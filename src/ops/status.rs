//! Status: the state of the run table for operators, by plain reads.

use super::sql::{
    Context, HAS_REQUEST, Sql, due, last_touched, number, queued_since, sql, unix_time_ms,
};
use crate::config::options::TableName;
use crate::db::has_lease_key;
use crate::db::row::{optional_signed, signed, text, unsigned};
use crate::db::schema::TableSchema;
use crate::db::server::ServerCapabilities;
use crate::db::{Session, idempotent};
use crate::domain::status::Status;
use crate::error::Result;

/// For how many seconds after it was due a queued run is without a worker before it counts as
/// stranded.
pub const STRANDED_AFTER_SECONDS: i64 = 300;

/// The report.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StatusReport {
    /// Runs by status; every known status is there.
    pub counts: Vec<(String, u64)>,
    /// Failed runs by termination reason.
    pub dead_letters: Vec<(String, u64)>,
    /// Running runs whose lease has expired.
    pub expired_leases: u64,
    /// Running runs without a lease.
    pub unleased_running: u64,
    /// The smallest end of a lease among the running runs.
    pub oldest_lease: Option<i64>,
    /// How long the oldest queued run has been waiting, in seconds.
    pub oldest_queued_seconds: Option<i64>,
    /// Queued runs that no worker has claimed within [`STRANDED_AFTER_SECONDS`] after they were
    /// due.
    pub stranded: u64,
    /// How far the database's clock is ahead of this machine's, in milliseconds.
    pub clock_skew_ms: i64,
    /// Whether a key begins with (status, `lease_expires`).
    pub lease_key: bool,
    /// The server's version.
    pub server: String,
    /// The isolation level of the session.
    pub isolation: String,
    /// What heartbeats cost the binary log.
    pub binlog: BinlogReport,
}

/// What heartbeats cost the binary log, or the nodes of a cluster among each other (rule 33).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BinlogReport {
    /// The server's `binlog_format`; none where it keeps no binary log and is no node of a cluster.
    pub format: Option<String>,
    /// The session's `binlog_row_image`, where rows are logged.
    pub row_image: Option<String>,
    /// Estimated bytes of the log per heartbeat, from the format, the row image, and the average
    /// payload of the running runs.
    pub bytes_per_heartbeat: u64,
    /// What to change where heartbeats log whole rows.
    pub remedy: Option<String>,
}

impl BinlogReport {
    /// Bytes that a heartbeat logs beside payloads, measured on MariaDB 10.11 and MySQL 9.7
    /// (docs/scaling.md).
    const STATEMENT: u64 = 500;
    const MINIMAL: u64 = 550;
    const NOBLOB: u64 = 900;
    const FULL: u64 = 900;
    /// From here on a remedy is worth stating.
    const MUCH: u64 = 1_024;

    /// Estimates for a session in the isolation level `isolation`, and runs with `payload` bytes on
    /// average.
    fn estimate(
        format: &str,
        row_image: &str,
        isolation: &str,
        mariadb: bool,
        payload: u64,
    ) -> Self {
        let logs_rows = match format {
            "ROW" => true,
            // READ COMMITTED makes the server log rows.
            "MIXED" => isolation == "READ-COMMITTED",
            _ => false,
        };
        let format = Some(format.to_owned());
        if !logs_rows {
            return Self { format, bytes_per_heartbeat: Self::STATEMENT, ..Self::default() };
        }
        let bytes_per_heartbeat = match row_image {
            "MINIMAL" => Self::MINIMAL,
            "NOBLOB" => Self::NOBLOB,
            // The row as it was and as it is.
            _ => payload.saturating_mul(2).saturating_add(Self::FULL),
        };
        let privilege = if mariadb { "BINLOG ADMIN" } else { "SESSION_VARIABLES_ADMIN" };
        let is_full = !matches!(row_image, "MINIMAL" | "NOBLOB");
        let remedy = (is_full && bytes_per_heartbeat > Self::MUCH).then(|| {
            format!(
                "grant the account {privilege}, or set binlog_row_image=MINIMAL on the server: a heartbeat \
                 then logs about {} bytes",
                Self::MINIMAL
            )
        });
        Self { format, row_image: Some(row_image.to_owned()), bytes_per_heartbeat, remedy }
    }
}

/// Reads the report. Leases and waits are evaluated at `now`; `since` bounds the counts by creation
/// time.
///
/// # Errors
///
/// A connection or query error.
pub async fn status(
    session: &mut Session,
    context: Context<'_>,
    now: Option<i64>,
    since: Option<i64>,
) -> Result<StatusReport> {
    idempotent(session, async |session| read(session, context, now, since).await).await
}

async fn read(
    session: &mut Session,
    context: Context<'_>,
    now: Option<i64>,
    since: Option<i64>,
) -> Result<StatusReport> {
    let schema = session.current_table(context.table()).await?;
    schema.require(&[
        "uid",
        "status",
        "termination_reason",
        "claimed_by",
        "lease_expires",
        "queued_request",
        "tstamp",
        "crdate",
    ])?;
    let mut report = StatusReport::default();
    let created = since.map(|since| sql!("crdate >= {}", context.literal(since)));
    count_runs(session, context, created, &mut report).await?;
    let now = context.literal(now.unwrap_or(context.time));
    read_leases(session, context, &now, &mut report).await?;
    read_waits(session, context, &schema, &now, &mut report).await?;
    report.clock_skew_ms = clock_skew_ms(session).await?;
    report.lease_key = has_lease_key(session, context.table()).await?;
    let server = session.server().await?;
    report.binlog = binlog(session, context.table(), &server).await?;
    report.isolation = server.isolation;
    report.server = server.version;
    Ok(report)
}

/// Counts the runs that were created in time: by status, and the failed ones by reason.
async fn count_runs(
    session: &mut Session,
    context: Context<'_>,
    created: Option<Sql>,
    report: &mut StatusReport,
) -> Result<()> {
    let all = match &created {
        Some(created) => sql!(" WHERE {}", created),
        None => Sql::from(""),
    };
    let by_status = sql!("SELECT status, COUNT(*) FROM {}{} GROUP BY status", context.table(), all);
    let counted = groups(session, &by_status).await?;
    for status in Status::ALL {
        let count =
            counted.iter().find(|(name, _)| name == status.as_str()).map_or(0, |(_, count)| *count);
        report.counts.push((status.as_str().to_owned(), count));
    }
    report.counts.extend(counted.into_iter().filter(|(name, _)| Status::parse(name).is_none()));

    let failed = match created {
        Some(created) => sql!("{} AND status = 'failed'", created),
        None => Sql::from("status = 'failed'"),
    };
    let by_reason = sql!(
        "SELECT termination_reason, COUNT(*) FROM {} WHERE {} AND termination_reason <> '' \
         GROUP BY termination_reason ORDER BY termination_reason",
        context.table(),
        failed
    );
    report.dead_letters = groups(session, &by_reason).await?;
    Ok(())
}

/// Reads the leases of running runs.
async fn read_leases(
    session: &mut Session,
    context: Context<'_>,
    now: &Sql,
    report: &mut StatusReport,
) -> Result<()> {
    let leases = sql!(
        "SELECT COALESCE(SUM(lease_expires > 0 AND lease_expires < {}), 0), \
         COALESCE(SUM(lease_expires = 0), 0), \
         MIN(NULLIF(lease_expires, 0)) FROM {} WHERE status = 'running'",
        now,
        context.table()
    );
    if let Some(mut row) = leases.query(session).await?.into_iter().next() {
        report.expired_leases = unsigned(&mut row, 0)?;
        report.unleased_running = unsigned(&mut row, 1)?;
        report.oldest_lease = optional_signed(&mut row, 2)?;
    }
    Ok(())
}

/// Reads how long queued runs have been waiting.
async fn read_waits(
    session: &mut Session,
    context: Context<'_>,
    schema: &TableSchema,
    now: &Sql,
    report: &mut StatusReport,
) -> Result<()> {
    let touched = last_touched(schema);
    let due = if schema.has("requeue_count") { due(&context, touched) } else { Sql::from(touched) };
    let waits = sql!(
        "SELECT MAX(CAST({} AS SIGNED) - CAST({} AS SIGNED)), \
         COALESCE(SUM({} AND {} + {} < {}), 0) FROM {} WHERE status = 'queued'",
        now,
        queued_since(schema),
        HAS_REQUEST,
        due,
        number(STRANDED_AFTER_SECONDS),
        now,
        context.table()
    );
    if let Some(mut row) = waits.query(session).await?.into_iter().next() {
        report.oldest_queued_seconds = optional_signed(&mut row, 0)?.map(|seconds| seconds.max(0));
        report.stranded = unsigned(&mut row, 1)?;
    }
    Ok(())
}

/// Returns how far the database's clock is ahead of this machine's, read halfway through the round
/// trip.
async fn clock_skew_ms(session: &mut Session) -> Result<i64> {
    let database_time = Sql::from("SELECT CAST(UNIX_TIMESTAMP(NOW(3)) * 1000 AS SIGNED)");
    let before = unix_time_ms();
    match database_time.query(session).await?.into_iter().next() {
        Some(mut row) => {
            let after = unix_time_ms();
            Ok(signed(&mut row, 0)? - (before + (after - before) / 2))
        }
        None => Ok(0),
    }
}

/// Maximum number of running runs whose payload is measured: reading a length reads the payload.
const SAMPLE: u64 = 50;

async fn binlog(
    session: &mut Session,
    table: &TableName,
    server: &ServerCapabilities,
) -> Result<BinlogReport> {
    let variables = Sql::from(
        "SELECT CAST(@@log_bin AS SIGNED), CONVERT(@@binlog_format USING utf8mb4), \
         CONVERT(@@binlog_row_image USING utf8mb4)",
    );
    let Some(mut row) = variables.query(session).await?.into_iter().next() else {
        return Ok(BinlogReport::default());
    };
    if signed(&mut row, 0)? == 0 && !server.cluster {
        return Ok(BinlogReport::default());
    }
    let (format, image) = (text(&mut row, 1)?, text(&mut row, 2)?);
    // The nodes of a cluster always send each other rows.
    let format = if server.cluster { "ROW" } else { format.as_str() };
    let payload = sql!(
        "SELECT CAST(COALESCE(AVG(payload), 0) AS UNSIGNED) FROM (SELECT \
         OCTET_LENGTH(queued_request) AS payload FROM {} WHERE status = 'running' LIMIT {}) AS sample",
        table,
        number(SAMPLE)
    );
    let payload = match payload.query(session).await?.into_iter().next() {
        Some(mut row) => unsigned(&mut row, 0)?,
        None => 0,
    };
    Ok(BinlogReport::estimate(format, &image, &server.isolation, server.mariadb, payload))
}

/// Reads pairs of a name and a count.
async fn groups(session: &mut Session, counts: &Sql) -> Result<Vec<(String, u64)>> {
    let rows = counts.query(session).await?;
    rows.into_iter().map(|mut row| Ok((text(&mut row, 0)?, unsigned(&mut row, 1)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_heartbeat_is_estimated_from_what_the_server_logs() {
        const PAYLOAD: u64 = 20_485;
        // Format, row image, isolation level; bytes per heartbeat, and whether there is a remedy.
        // What was measured: 485, 530, 870 and 41 836 bytes.
        let table = [
            ("STATEMENT", "FULL", "REPEATABLE-READ", 500, false),
            ("MIXED", "FULL", "REPEATABLE-READ", 500, false),
            ("MIXED", "FULL", "READ-COMMITTED", 41_870, true),
            ("ROW", "FULL", "READ-COMMITTED", 41_870, true),
            ("ROW", "NOBLOB", "READ-COMMITTED", 900, false),
            ("ROW", "MINIMAL", "READ-COMMITTED", 550, false),
        ];
        for (format, image, isolation, bytes, has_remedy) in table {
            for (mariadb, privilege) in [(true, "BINLOG ADMIN"), (false, "SESSION_VARIABLES_ADMIN")]
            {
                let report = BinlogReport::estimate(format, image, isolation, mariadb, PAYLOAD);
                assert_eq!(report.bytes_per_heartbeat, bytes, "{format} {image} {isolation}");
                assert_eq!(report.remedy.is_some(), has_remedy, "{format} {image} {isolation}");
                assert!(report.remedy.is_none_or(|remedy| remedy.contains(privilege)));
            }
        }
        let small = BinlogReport::estimate("ROW", "FULL", "READ-COMMITTED", true, 50);
        assert_eq!((small.bytes_per_heartbeat, small.remedy), (1_000, None));
    }
}
