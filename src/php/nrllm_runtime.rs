//! `NrLlmRuntime`: the operations on the run table.

// Parameters are part of PHP's interface (named arguments), so they are spelled as PHP spells them.
#![allow(non_snake_case)]

use std::sync::Arc;

use ext_php_rs::flags::ClassFlags;
use ext_php_rs::prelude::*;
use ext_php_rs::types::Zval;
use ext_php_rs::zend::ExecutorGlobals;

use super::convert::{self, Array, Text, ThrowableArg, int};
use super::interrupt;
use super::nrllm_failure::NrLlmFailure;
use super::nrllm_lease::NrLlmLease;
use super::nrllm_reap_report::NrLlmReapReport;
use super::nrllm_recovery::NrLlmRecovery;
use super::objects::Compare;
use super::{serialize, throwable};
use crate::config::connection::ConnectionSettings;
use crate::config::options::Options;
use crate::config::requests::{ReapRequest, SweepRequest};
use crate::db::Session;
use crate::domain::holder::Holder;
use crate::domain::{LEASE_SECONDS, MAX_REQUEUES, backoff, validate};
use crate::error::Result;
use crate::keeper::{self, KeepOptions};
use crate::ops::reap;
use crate::ops::sql::Context;
use crate::ops::{
    cancel_run, claim_queued, dead_letter_stale, due_runs, fail_undispatched, hand_back,
    lease_state, mark_pending_effect, recover_failure, renew_lease, requeue, requeue_stale, status,
    stranded_runs,
};
use crate::process::owner_name;
use crate::process::sessions::{self, Key, SessionUser};
use crate::views::{QueuedView, StatusView};

/// The lease, retry and reaping protocol of `nr_llm`'s agent runs.
#[php_class]
#[php(flags = ClassFlags::Final.union(ClassFlags::NoDynamicProperties))]
pub(super) struct NrLlmRuntime {
    key: SessionUser,
    options: Options,
}

impl Compare for NrLlmRuntime {
    fn is_equal(&self, _: &Self) -> bool {
        false
    }
}

impl NrLlmRuntime {
    /// Runs one operation on this process's session.
    fn call<T>(
        &self,
        operation: impl AsyncFnOnce(&mut Session, Context<'_>) -> Result<T>,
    ) -> PhpResult<T> {
        let context = Context::now(&self.options);
        Ok(sessions::call(&self.key, async |session: &mut Session| {
            operation(session, context).await
        })?)
    }
}

#[php_impl]
impl NrLlmRuntime {
    /// The version of the extension.
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    /// Default length of a lease, in seconds.
    const LEASE_SECONDS: i64 = LEASE_SECONDS;
    /// The retry budget of a run.
    const MAX_REQUEUES: i64 = MAX_REQUEUES as i64;
    /// The first backoff, in milliseconds.
    const REQUEUE_BACKOFF_MS: i64 = backoff::REQUEUE_BACKOFF_MS as i64;
    /// The longest backoff, in milliseconds.
    const REQUEUE_BACKOFF_CAP_MS: i64 = backoff::REQUEUE_BACKOFF_CAP_MS as i64;

    /// Takes the settings; connects when a call first needs the database.
    #[php(defaults(options = Array::EMPTY))]
    fn __construct(connection: &Zval, options: Array) -> PhpResult<Self> {
        let settings =
            ConnectionSettings::parse(&convert::connection(connection)?, &convert::defaults())?;
        let options = Options::parse(&options.entries())?;
        let key =
            SessionUser::new(Key { connection: Arc::new(settings), timeouts: options.timeouts });
        Ok(Self { key, options })
    }

    /// Claims a queued run. False: another worker owns it, or it is not queued.
    fn claim_queued(&self, runUid: i64, claimedBy: Text, leaseExpires: i64) -> PhpResult<bool> {
        let holder = Holder::parse(runUid, claimedBy.0)?;
        let lease = validate::lease_expires(leaseExpires)?;
        self.call(async |session, context| {
            claim_queued::claim_queued(session, context, holder, lease).await
        })
    }

    /// Renews a lease. False: it is lost.
    fn renew_lease(&self, runUid: i64, claimedBy: Text, leaseExpires: i64) -> PhpResult<bool> {
        let holder = Holder::parse(runUid, claimedBy.0)?;
        let lease = validate::lease_expires(leaseExpires)?;
        self.call(async |session, context| {
            renew_lease::renew_lease(session, context, holder, lease).await
        })
    }

    /// Marks the effect of the tool that runs next, and renews the lease. False: it is lost.
    fn mark_pending_effect(
        &self,
        runUid: i64,
        claimedBy: Text,
        effect: Text,
        leaseExpires: i64,
    ) -> PhpResult<bool> {
        let holder = Holder::parse(runUid, claimedBy.0)?;
        let effect = validate::effect(effect.0)?;
        let lease = validate::lease_expires(leaseExpires)?;
        self.call(async |session, context| {
            mark_pending_effect::mark_pending_effect(session, context, holder, effect, lease).await
        })
    }

    /// Puts a run that the caller holds back on the queue.
    fn requeue(&self, runUid: i64, claimedBy: Text) -> PhpResult<bool> {
        let holder = Holder::parse(runUid, claimedBy.0)?;
        self.call(async |session, context| requeue::requeue(session, context, holder).await)
    }

    /// Puts a stale run back on the queue.
    fn requeue_stale(&self, runUid: i64, now: i64) -> PhpResult<bool> {
        let uid = validate::run_uid(runUid)?;
        let now = validate::now(now)?;
        self.call(async |session, context| {
            requeue_stale::requeue_stale(session, context, uid, now).await
        })
    }

    /// Dead-letters a stale run.
    fn dead_letter_stale(&self, runUid: i64, now: i64, terminationReason: Text) -> PhpResult<bool> {
        let uid = validate::run_uid(runUid)?;
        let now = validate::now(now)?;
        let reason = validate::termination_reason(terminationReason.0)?;
        self.call(async |session, context| {
            dead_letter_stale::dead_letter_stale(session, context, uid, now, reason).await
        })
    }

    /// Returns the state of a lease in its row.
    fn lease_state(&self, runUid: i64, claimedBy: Text) -> PhpResult<&'static str> {
        let holder = Holder::parse(runUid, claimedBy.0)?;
        self.call(async |session, context| {
            lease_state::lease_state(session, context, holder).await.map(|state| state.as_str())
        })
    }

    /// Renews a lease, and keeps it renewed by the heartbeat thread until the result is released or
    /// destroyed.
    #[php(defaults(leaseSeconds = LEASE_SECONDS, options = Array::EMPTY))]
    fn keep_lease(
        &self,
        runUid: i64,
        claimedBy: Text,
        leaseSeconds: i64,
        options: Array,
    ) -> PhpResult<NrLlmLease> {
        let holder = Holder::parse(runUid, claimedBy.0)?;
        let keep = KeepOptions::parse(leaseSeconds, &options.entries())?;
        let on_loss = keep.interrupt_on_loss.then(interrupt::arm);
        Ok(NrLlmLease::new(keeper::keep(
            &self.key,
            &self.options,
            holder.run_uid,
            holder.owner,
            keep,
            on_loss,
        )?))
    }

    /// Classifies a throwable.
    fn classify_failure(error: ThrowableArg) -> NrLlmFailure {
        NrLlmFailure::new(throwable::failure(&error))
    }

    /// Requeues a failed run that the caller holds, or dead-letters it.
    fn recover_failure(
        &self,
        runUid: i64,
        claimedBy: Text,
        error: ThrowableArg,
        wakeUp: Option<Array>,
    ) -> PhpResult<NrLlmRecovery> {
        let holder = Holder::parse(runUid, claimedBy.0)?;
        let wake_up = wakeUp.map(|template| convert::wake_up(&template.entries())).transpose()?;
        // User code may run here (getAttemptErrors()), before the session is taken.
        let failure = throwable::failure(&error);
        if ExecutorGlobals::has_exception() {
            // It called exit(): PHP ends the script, no decision is made, and this answer is
            // discarded.
            return Ok(NrLlmRecovery::new(recover_failure::Recovery::LeaseLost, failure));
        }
        let recovery = self.call(async |session, context| {
            recover_failure::recover_failure(session, context, holder, &failure, wake_up.as_ref())
                .await
        })?;
        Ok(NrLlmRecovery::new(recovery, failure))
    }

    /// Puts the holder's run back on the queue without spending its retry budget. False: the lease
    /// is lost, or another attempt is forbidden or impossible.
    fn hand_back(&self, runUid: i64, claimedBy: Text, wakeUp: Option<Array>) -> PhpResult<bool> {
        let holder = Holder::parse(runUid, claimedBy.0)?;
        let wake_up = wakeUp.map(|template| convert::wake_up(&template.entries())).transpose()?;
        self.call(async |session, context| {
            hand_back::hand_back(session, context, holder, wake_up.as_ref()).await
        })
    }

    /// Requeues or dead-letters stale runs.
    #[php(defaults(limit = 50, options = Array::EMPTY))]
    fn reap(&self, limit: i64, now: Option<i64>, options: Array) -> PhpResult<NrLlmReapReport> {
        let request = ReapRequest::parse(limit, now, &options.entries())?;
        let report =
            self.call(async |session, context| reap::reap(session, context, &request).await)?;
        Ok(NrLlmReapReport::new(report))
    }

    /// Dead-letters a requeued run whose wake-up could not be sent.
    fn fail_undispatched(
        &self,
        runUid: i64,
        requeueCount: i64,
        error: ThrowableArg,
    ) -> PhpResult<bool> {
        let uid = validate::run_uid(runUid)?;
        let count = validate::requeue_count(requeueCount)?;
        let error_class = throwable::error_class(&error);
        self.call(async |session, context| {
            fail_undispatched::fail_undispatched(session, context, uid, count, &error_class).await
        })
    }

    /// Marks and returns stranded runs.
    #[php(defaults(limit = 50))]
    fn stranded_runs(
        &self,
        olderThanSeconds: i64,
        limit: i64,
        now: Option<i64>,
        wakeUp: Option<Array>,
    ) -> PhpResult<serialize::Array> {
        let wake_up = wakeUp.map(|template| convert::wake_up(&template.entries())).transpose()?;
        let request = SweepRequest::parse(olderThanSeconds, limit, now, wake_up)?;
        let runs = self.call(async |session, context| {
            stranded_runs::stranded_runs(session, context, &request).await
        })?;
        let runs: Vec<_> = runs.iter().map(QueuedView::stranded).collect();
        serialize::array(&runs)
    }

    /// Returns the queued runs whose backoff has elapsed.
    #[php(defaults(limit = 10))]
    fn due_runs(&self, limit: i64, now: Option<i64>) -> PhpResult<serialize::Array> {
        let limit = validate::limit(limit)?;
        let now = now.map(validate::now).transpose()?;
        let runs = self.call(async |session, context| {
            due_runs::due_runs(session, context, limit, now).await
        })?;
        let runs: Vec<_> = runs.iter().map(QueuedView::due).collect();
        serialize::array(&runs)
    }

    /// Cancels a run that has not ended.
    fn cancel_run(&self, uuid: Text) -> PhpResult<bool> {
        let uuid = validate::uuid(uuid.0)?;
        self.call(async |session, context| cancel_run::cancel_run(session, context, uuid).await)
    }

    /// Reports the state of the run table for monitoring.
    fn status(&self, now: Option<i64>, since: Option<i64>) -> PhpResult<serialize::Array> {
        let now = now.map(validate::now).transpose()?;
        let since = since.map(validate::since).transpose()?;
        let report =
            self.call(async |session, context| status::status(session, context, now, since).await)?;
        serialize::array(&StatusView::new(&report, &self.key, &self.options))
    }

    /// Returns the identity of this process for a segment.
    fn identity(segment: Text) -> PhpResult<String> {
        let segment = std::str::from_utf8(segment.0)
            .map_err(|_| validate::ArgumentError::new("segment", "must be printable ASCII"))?;
        Ok(owner_name::of_this_thread(segment)?)
    }

    /// Returns the backoff of a run that was requeued so often before, in milliseconds, without
    /// jitter.
    fn backoff_ms(requeueCount: i64) -> PhpResult<i64> {
        // Any count has a backoff, also one that no row can hold.
        let count = validate::requeue_count(requeueCount.min(i64::from(u32::MAX)))?;
        Ok(int(backoff::backoff_ms(
            count,
            backoff::REQUEUE_BACKOFF_MS,
            backoff::REQUEUE_BACKOFF_CAP_MS,
        )))
    }

    /// Closes the connection; the next call opens a new one.
    fn close(&self) {
        sessions::close(&self.key);
    }

    /// Not cloneable: the engine refuses to call it.
    #[php(vis = "private", name = "__clone")]
    fn __clone(&self) {}
}
