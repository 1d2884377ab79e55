//! The operations as the tests call them: blocking, on a session of the harness, at a time that the
//! test sets.

use std::sync::Arc;
use std::time::Duration;

use nrllm_runtime::config::connection::{ConnectionSettings, Defaults};
use nrllm_runtime::config::options::Options;
use nrllm_runtime::config::requests::{ReapRequest, WakeUp};
use nrllm_runtime::config::value::{Input, Key};
use nrllm_runtime::db::Session;
use nrllm_runtime::domain::failure::{Classification, Failure, FailureClass};
use nrllm_runtime::domain::holder::Holder;
use nrllm_runtime::domain::validate;
use nrllm_runtime::error::{Error, Kind, Result};
use nrllm_runtime::ops::reap::{self, Entry, Report};
use nrllm_runtime::ops::recover_failure::{self, Recovery};
use nrllm_runtime::ops::sql::Context;
use nrllm_runtime::ops::{
    cancel_run, claim_queued, dead_letter_stale, fail_undispatched, hand_back, lease_state,
    mark_pending_effect, renew_lease, requeue, requeue_stale,
};
use tokio::runtime::{Builder, Runtime};

use crate::support::database::Database;
use crate::support::proxy::Proxy;
use crate::support::server::Endpoint;

/// The caller's clock in the tests.
pub const NOW: i64 = 1_700_000_000;
/// A lease that has not expired at [`NOW`].
pub const LEASE: i64 = NOW + 900;

/// The owner of the runs in most tests.
pub const OWNER: &str = "worker:web-01:4711:c0ffee";

pub struct Harness {
    runtime: Runtime,
    pub session: Session,
    pub options: Options,
    /// The caller's time.
    pub time: i64,
}

/// The array of TYPO3's connection settings.
pub fn settings(endpoint: &Endpoint, database: &str) -> ConnectionSettings {
    let entry = |key: &str, value: Input| (Key::Str(key.as_bytes().to_vec()), value);
    let text = |value: &str| Input::Bytes(value.as_bytes().to_vec());
    let input = Input::Map(vec![
        entry("driver", text("mysqli")),
        entry("host", text(&endpoint.host)),
        entry("port", Input::Int(i64::from(endpoint.port))),
        entry("user", text(&endpoint.user)),
        entry("password", text(&endpoint.password)),
        entry("dbname", text(database)),
    ]);
    ConnectionSettings::parse(&input, &Defaults::default())
        .expect("the settings of the test server")
}

impl Harness {
    /// Directly to the server, over TCP.
    pub fn on(database: &Database) -> Self {
        Self::with(database, Options::default())
    }

    pub fn with(database: &Database, options: Options) -> Self {
        Self::at(database.endpoint(), database.name(), options)
    }

    pub fn through(proxy: &Proxy, database: &Database) -> Self {
        Self::at(proxy.endpoint(), database.name(), Options::default())
    }

    pub fn at(endpoint: &Endpoint, database: &str, options: Options) -> Self {
        Self::of(settings(endpoint, database), options)
    }

    pub fn of(settings: ConnectionSettings, options: Options) -> Self {
        let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
        let session = Session::new(Arc::new(settings), options.timeouts);
        Self { runtime, session, options, time: NOW }
    }

    /// With other time limits, in milliseconds.
    pub fn limits(endpoint: &Endpoint, database: &str, connect_ms: u64, query_ms: u64) -> Self {
        let mut options = Options::default();
        options.timeouts.connect = Duration::from_millis(connect_ms);
        options.timeouts.query = Duration::from_millis(query_ms);
        Self::at(endpoint, database, options)
    }

    pub fn run<T>(
        &mut self,
        work: impl AsyncFnOnce(&mut Session, Context<'_>) -> Result<T>,
    ) -> Result<T> {
        let context = Context { options: &self.options, time: self.time };
        let session = &mut self.session;
        self.runtime.block_on(work(session, context))
    }

    pub fn claim_queued(&mut self, uid: i64, owner: &str, lease: i64) -> Result<bool> {
        let holder = Holder { run_uid: validate::run_uid(uid)?, owner };
        self.run(async |session, context| {
            claim_queued::claim_queued(session, context, holder, lease).await
        })
    }

    pub fn renew_lease(&mut self, uid: i64, owner: &str, lease: i64) -> Result<bool> {
        let holder = Holder { run_uid: validate::run_uid(uid)?, owner };
        self.run(async |session, context| {
            renew_lease::renew_lease(session, context, holder, lease).await
        })
    }

    pub fn mark_pending_effect(
        &mut self,
        uid: i64,
        owner: &str,
        effect: &str,
        lease: i64,
    ) -> Result<bool> {
        let holder = Holder { run_uid: validate::run_uid(uid)?, owner };
        self.run(async |session, context| {
            mark_pending_effect::mark_pending_effect(session, context, holder, effect, lease).await
        })
    }

    pub fn requeue(&mut self, uid: i64, owner: &str) -> Result<bool> {
        let holder = Holder { run_uid: validate::run_uid(uid)?, owner };
        self.run(async |session, context| requeue::requeue(session, context, holder).await)
    }

    pub fn hand_back(&mut self, uid: i64, owner: &str, wake_up: Option<&WakeUp>) -> Result<bool> {
        let holder = Holder { run_uid: validate::run_uid(uid)?, owner };
        self.run(async |session, context| {
            hand_back::hand_back(session, context, holder, wake_up).await
        })
    }

    pub fn requeue_stale(&mut self, uid: i64, now: i64) -> Result<bool> {
        let uid = validate::run_uid(uid)?;
        self.run(async |session, context| {
            requeue_stale::requeue_stale(session, context, uid, now).await
        })
    }

    pub fn dead_letter_stale(&mut self, uid: i64, now: i64, reason: &str) -> Result<bool> {
        let uid = validate::run_uid(uid)?;
        self.run(async |session, context| {
            dead_letter_stale::dead_letter_stale(session, context, uid, now, reason).await
        })
    }

    pub fn lease_state(&mut self, uid: i64, owner: &str) -> Result<&'static str> {
        let holder = Holder { run_uid: validate::run_uid(uid)?, owner };
        self.run(async |session, context| {
            Ok(lease_state::lease_state(session, context, holder).await?.as_str())
        })
    }

    pub fn reap(&mut self, request: &ReapRequest) -> Result<Report> {
        self.run(async |session, context| reap::reap(session, context, request).await)
    }

    /// Reaps at most so many runs at [`NOW`].
    pub fn reap_all(&mut self, limit: u64) -> Report {
        self.reap(&request(limit)).expect("a reap")
    }

    pub fn recover_failure(
        &mut self,
        uid: i64,
        owner: &str,
        class: FailureClass,
        error_class: &str,
    ) -> Result<Recovery> {
        let holder = Holder { run_uid: validate::run_uid(uid)?, owner };
        let failure = Failure {
            classification: Classification::of(class),
            error_class: error_class.to_owned(),
        };
        self.run(async |session, context| {
            recover_failure::recover_failure(session, context, holder, &failure, None).await
        })
    }

    pub fn cancel_run(&mut self, uuid: &str) -> Result<bool> {
        self.run(async |session, context| cancel_run::cancel_run(session, context, uuid).await)
    }

    pub fn fail_undispatched(
        &mut self,
        uid: i64,
        requeue_count: i64,
        error_class: &str,
    ) -> Result<bool> {
        let (uid, count) = (validate::run_uid(uid)?, validate::requeue_count(requeue_count)?);
        self.run(async |session, context| {
            fail_undispatched::fail_undispatched(session, context, uid, count, error_class).await
        })
    }
}

/// The request of most tests: `limit` runs at [`NOW`].
pub fn request(limit: u64) -> ReapRequest {
    ReapRequest { limit, ..ReapRequest::default() }
}

/// The uids of a list of a report, in its order.
pub fn uids(entries: &[Entry]) -> Vec<i64> {
    entries.iter().map(|entry| i64::try_from(entry.uid).unwrap()).collect()
}

/// The reasons of a list of a report, in its order.
pub fn reasons(entries: &[Entry]) -> Vec<&'static str> {
    entries.iter().map(|entry| entry.reason.unwrap_or("none")).collect()
}

/// Asserts an error of this kind, and returns it.
#[track_caller]
pub fn error_of<T: std::fmt::Debug>(kind: Kind, outcome: Result<T>) -> Error {
    let error = outcome.expect_err("an error");
    assert_eq!(error.kind, kind, "{error:?}");
    error
}
