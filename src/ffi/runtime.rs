//! The operations on the run table, over a handle that holds the settings.

use std::ffi::c_char;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;

use super::error::{ErrorOut, NrllmError, NrllmStatus, answer, report};
use super::failure::ErrorFacts;
use super::handle::Table;
use super::input;
use super::memory::{Out, bytes, json, number, optional, text};
use crate::config::connection::{ConnectionSettings, Defaults};
use crate::config::options::Options;
use crate::config::requests::{ReapRequest, SweepRequest, WakeUp};
use crate::config::value::Input;
use crate::db::Session;
use crate::domain::failure::error_class;
use crate::domain::holder::Holder;
use crate::domain::validate::{self, ArgumentError};
use crate::error::Result;
use crate::ops::reap;
use crate::ops::sql::Context;
use crate::ops::{
    cancel_run, claim_queued, dead_letter_stale, due_runs, fail_undispatched, hand_back,
    lease_state, mark_pending_effect, recover_failure, renew_lease, requeue, requeue_stale, status,
    stranded_runs,
};
use crate::process::sessions::{self, Key, SessionUser};
use crate::views::{QueuedView, RecoveryView, ReportView, StatusView};

/// A set of settings. Handles of equal settings share one connection per process, which the first
/// call that needs it opens. Any thread may use a handle, several at once (their calls wait for
/// each other), and so may a forked child, which opens a separate connection.
pub struct NrllmRuntime {
    _opaque: [u8; 0],
}

/// The object of a handle.
pub(super) struct Runtime {
    pub(super) key: SessionUser,
    pub(super) options: Options,
}

pub(super) static RUNTIMES: Table<Runtime> = Table::new("a handle of nrllm_runtime_new()");

impl Runtime {
    /// Runs one operation on this process's session.
    fn call<T>(
        &self,
        operation: impl AsyncFnOnce(&mut Session, Context<'_>) -> Result<T>,
    ) -> Result<T> {
        let context = Context::now(&self.options);
        sessions::call(&self.key, async |session: &mut Session| operation(session, context).await)
    }
}

/// The runtime of a handle.
pub(super) fn runtime(handle: *const NrllmRuntime) -> Result<Arc<Runtime>, ArgumentError> {
    RUNTIMES.get("runtime", handle)
}

/// Returns the wake-up of a requeue, if there is one.
fn wake_up(json: Option<&[u8]>) -> Result<Option<WakeUp>> {
    match json {
        Some(json) => match input::read("wakeUp", json)? {
            Input::Null => Ok(None),
            Input::Map(entries) => WakeUp::parse(&entries).map(Some),
            other => Err(ArgumentError::new(
                "wakeUp",
                format!("must be a JSON object, {} given", other.type_name()),
            )
            .into()),
        },
        None => Ok(None),
    }
}

/// Checks the settings and makes a handle. Nothing is sent: the first call that needs the
/// connection opens it.
///
/// `connection`: a JSON object with the keys of TYPO3's connection array (`driver`, `host`, `port`,
/// `unix_socket`, `user`, `password`, `dbname`, `url`, `ssl_ca`, `driverOptions`, …), or a JSON
/// string with a URL (`"mysql://user:password@host:port/dbname?socket=/path"`). `options`: NULL or
/// a JSON object with `table`, `clock` ("caller" or "database"), `connectTimeoutMs` (3000),
/// `queryTimeoutMs` (5000), `maxRequeues` (3), `backoffBaseMs` (30000), `backoffCapMs` (600000),
/// `jitter` (0.0 to 1.0). Objects with one key express what JSON cannot: `{"$hex": "c3bc"}` for a
/// string of any bytes, `{"$entries": [[key, value], …]}` for an object with any keys.
/// `default_socket`: NULL, or the path of the socket that `localhost` means. `runtime` receives the
/// handle, freed with `nrllm_runtime_free()`. Any thread may call it.
///
/// # Safety
///
/// Each text is NULL or points to as many bytes as its length says; `runtime` and `error` are NULL
/// or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrllm_runtime_new(
    connection: *const c_char,
    connection_length: usize,
    options: *const c_char,
    options_length: usize,
    default_socket: *const c_char,
    default_socket_length: usize,
    runtime: *mut *mut NrllmRuntime,
    error: *mut *mut NrllmError,
) -> NrllmStatus {
    // SAFETY: the caller lends `connection_length` bytes at `connection`, by the contract in the
    // header.
    let connection = unsafe { bytes("connection", connection, connection_length) };
    // SAFETY: the caller lends `options_length` bytes at `options`, by the contract in the header.
    let options = unsafe { optional("options", options, options_length) };
    // SAFETY: the caller lends `default_socket_length` bytes at `default_socket`, by the contract
    // in the header.
    let default_socket =
        unsafe { optional("defaultSocket", default_socket, default_socket_length) };
    // SAFETY: `runtime` and `error` are NULL or writable, by the contract in the header.
    let (runtime, error) =
        unsafe { (Out::new("runtime", runtime, std::ptr::null_mut()), ErrorOut::new(error)) };
    answer(error, runtime, || {
        let socket = default_socket?.filter(|path| !path.is_empty());
        let defaults = Defaults {
            socket: socket.map(|path| PathBuf::from(std::ffi::OsStr::from_bytes(path))),
        };
        let settings =
            ConnectionSettings::parse(&input::read("connection", connection?)?, &defaults)?;
        let options = match options? {
            Some(json) => Options::parse(&input::entries("options", json)?)?,
            None => Options::default(),
        };
        let key =
            SessionUser::new(Key { connection: Arc::new(settings), timeouts: options.timeouts });
        Ok(RUNTIMES.insert(Runtime { key, options }))
    })
}

/// Frees a handle. NULL and a handle that was freed before are ignored. Freeing the last of the
/// handles that share a connection closes the connection. Any thread may call it.
#[unsafe(no_mangle)]
pub extern "C" fn nrllm_runtime_free(runtime: *mut NrllmRuntime) {
    report(ErrorOut::NONE, || {
        drop(RUNTIMES.remove(runtime));
        Ok(())
    });
}

/// Closes the connection that handles of these settings share, without waiting for the server. The
/// next call opens a new one.
///
/// # Safety
///
/// `error` is NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrllm_runtime_close(
    runtime: *const NrllmRuntime,
    error: *mut *mut NrllmError,
) -> NrllmStatus {
    // SAFETY: `error` is NULL or writable, by the contract in the header.
    let error = unsafe { ErrorOut::new(error) };
    report(error, || {
        sessions::close(&self::runtime(runtime)?.key);
        Ok(())
    })
}

/// Claims a queued run: it becomes running, owned by `claimed_by` until `lease_expires`.
///
/// `run_uid`: at least 1. `claimed_by`: the new owner, 1 to 64 characters of UTF-8, unique to this
/// process (`nrllm_identity()`). `lease_expires`: unix seconds, 1 to 4 294 967 295. `claimed`
/// receives false if another worker holds the run, it is not queued, or there is no such run.
///
/// # Safety
///
/// Each text is NULL or points to as many bytes as its length says; `claimed` and `error` are NULL
/// or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrllm_claim_queued(
    runtime: *const NrllmRuntime,
    run_uid: i64,
    claimed_by: *const c_char,
    claimed_by_length: usize,
    lease_expires: i64,
    claimed: *mut bool,
    error: *mut *mut NrllmError,
) -> NrllmStatus {
    // SAFETY: the caller lends `claimed_by_length` bytes at `claimed_by`, by the contract in the
    // header.
    let claimed_by = unsafe { bytes("claimedBy", claimed_by, claimed_by_length) };
    // SAFETY: `claimed` and `error` are NULL or writable, by the contract in the header.
    let (claimed, error) = unsafe { (Out::new("claimed", claimed, false), ErrorOut::new(error)) };
    answer(error, claimed, || {
        let runtime = self::runtime(runtime)?;
        let holder = Holder::parse(run_uid, claimed_by?)?;
        let lease = validate::lease_expires(lease_expires)?;
        runtime.call(async |session, context| {
            claim_queued::claim_queued(session, context, holder, lease).await
        })
    })
}

/// Extends the lease of a running run. A renewal that leaves the row unchanged still succeeds.
///
/// `claimed_by`: the owner, 1 to 64 characters of UTF-8, compared byte by byte. `lease_expires`:
/// unix seconds, 1 to 4 294 967 295. `renewed` receives false when the lease is lost. After an
/// error the ownership is unknown.
///
/// # Safety
///
/// Each text is NULL or points to as many bytes as its length says; `renewed` and `error` are NULL
/// or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrllm_renew_lease(
    runtime: *const NrllmRuntime,
    run_uid: i64,
    claimed_by: *const c_char,
    claimed_by_length: usize,
    lease_expires: i64,
    renewed: *mut bool,
    error: *mut *mut NrllmError,
) -> NrllmStatus {
    // SAFETY: the caller lends `claimed_by_length` bytes at `claimed_by`, by the contract in the
    // header.
    let claimed_by = unsafe { bytes("claimedBy", claimed_by, claimed_by_length) };
    // SAFETY: `renewed` and `error` are NULL or writable, by the contract in the header.
    let (renewed, error) = unsafe { (Out::new("renewed", renewed, false), ErrorOut::new(error)) };
    answer(error, renewed, || {
        let runtime = self::runtime(runtime)?;
        let holder = Holder::parse(run_uid, claimed_by?)?;
        let lease = validate::lease_expires(lease_expires)?;
        runtime.call(async |session, context| {
            renew_lease::renew_lease(session, context, holder, lease).await
        })
    })
}

/// Writes the write fence, the effect of the tool that is about to be executed (empty after it),
/// and extends the lease.
///
/// `claimed_by`: the owner, 1 to 64 characters of UTF-8, compared byte by byte. `effect`: `""`,
/// `"read_only"`, `"idempotent_write"`, `"non_idempotent_write"` or another of at most 32
/// characters. `lease_expires`: unix seconds. `marked` receives false when the lease is lost: the
/// tool must not be executed.
///
/// # Safety
///
/// Each text is NULL or points to as many bytes as its length says; `marked` and `error` are NULL
/// or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrllm_mark_pending_effect(
    runtime: *const NrllmRuntime,
    run_uid: i64,
    claimed_by: *const c_char,
    claimed_by_length: usize,
    effect: *const c_char,
    effect_length: usize,
    lease_expires: i64,
    marked: *mut bool,
    error: *mut *mut NrllmError,
) -> NrllmStatus {
    // SAFETY: the caller lends `claimed_by_length` bytes at `claimed_by`, by the contract in the
    // header.
    let claimed_by = unsafe { bytes("claimedBy", claimed_by, claimed_by_length) };
    // SAFETY: the caller lends `effect_length` bytes at `effect`, by the contract in the header.
    let effect = unsafe { bytes("effect", effect, effect_length) };
    // SAFETY: `marked` and `error` are NULL or writable, by the contract in the header.
    let (marked, error) = unsafe { (Out::new("marked", marked, false), ErrorOut::new(error)) };
    answer(error, marked, || {
        let runtime = self::runtime(runtime)?;
        let holder = Holder::parse(run_uid, claimed_by?)?;
        let effect = validate::effect(effect?)?;
        let lease = validate::lease_expires(lease_expires)?;
        runtime.call(async |session, context| {
            mark_pending_effect::mark_pending_effect(session, context, holder, effect, lease).await
        })
    })
}

/// Puts the caller's own run back on the queue. Neither the retry budget nor the write fence is
/// checked: the caller has decided.
///
/// `claimed_by`: the owner, 1 to 64 characters of UTF-8, compared byte by byte. `requeued` receives
/// false when the lease is lost.
///
/// # Safety
///
/// Each text is NULL or points to as many bytes as its length says; `requeued` and `error` are NULL
/// or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrllm_requeue(
    runtime: *const NrllmRuntime,
    run_uid: i64,
    claimed_by: *const c_char,
    claimed_by_length: usize,
    requeued: *mut bool,
    error: *mut *mut NrllmError,
) -> NrllmStatus {
    // SAFETY: the caller lends `claimed_by_length` bytes at `claimed_by`, by the contract in the
    // header.
    let claimed_by = unsafe { bytes("claimedBy", claimed_by, claimed_by_length) };
    // SAFETY: `requeued` and `error` are NULL or writable, by the contract in the header.
    let (requeued, error) =
        unsafe { (Out::new("requeued", requeued, false), ErrorOut::new(error)) };
    answer(error, requeued, || {
        let runtime = self::runtime(runtime)?;
        let holder = Holder::parse(run_uid, claimed_by?)?;
        runtime.call(async |session, context| requeue::requeue(session, context, holder).await)
    })
}

/// Puts a stale run back on the queue. Neither the retry budget nor the write fence is checked: the
/// caller has decided.
///
/// `now`: the time at which the lease must have expired, unix seconds, 0 to 4 294 967 295.
/// `requeued` receives false if the run is not stale.
///
/// # Safety
///
/// `requeued` and `error` are NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrllm_requeue_stale(
    runtime: *const NrllmRuntime,
    run_uid: i64,
    now: i64,
    requeued: *mut bool,
    error: *mut *mut NrllmError,
) -> NrllmStatus {
    // SAFETY: `requeued` and `error` are NULL or writable, by the contract in the header.
    let (requeued, error) =
        unsafe { (Out::new("requeued", requeued, false), ErrorOut::new(error)) };
    answer(error, requeued, || {
        let runtime = self::runtime(runtime)?;
        let uid = validate::run_uid(run_uid)?;
        let now = validate::now(now)?;
        runtime.call(async |session, context| {
            requeue_stale::requeue_stale(session, context, uid, now).await
        })
    })
}

/// Ends a stale run as failed; payloads and lease are cleared.
///
/// `now`: the time at which the lease must have expired, unix seconds, 0 to 4 294 967 295.
/// `termination_reason`: 1 to 32 characters of UTF-8. `dead_lettered` receives false if the run is
/// not stale.
///
/// # Safety
///
/// Each text is NULL or points to as many bytes as its length says; `dead_lettered` and `error` are
/// NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrllm_dead_letter_stale(
    runtime: *const NrllmRuntime,
    run_uid: i64,
    now: i64,
    termination_reason: *const c_char,
    termination_reason_length: usize,
    dead_lettered: *mut bool,
    error: *mut *mut NrllmError,
) -> NrllmStatus {
    // SAFETY: the caller lends `termination_reason_length` bytes at `termination_reason`, by the
    // contract in the header.
    let termination_reason =
        unsafe { bytes("terminationReason", termination_reason, termination_reason_length) };
    // SAFETY: `dead_lettered` and `error` are NULL or writable, by the contract in the header.
    let (dead_lettered, error) =
        unsafe { (Out::new("dead_lettered", dead_lettered, false), ErrorOut::new(error)) };
    answer(error, dead_lettered, || {
        let runtime = self::runtime(runtime)?;
        let uid = validate::run_uid(run_uid)?;
        let now = validate::now(now)?;
        let reason = validate::termination_reason(termination_reason?)?;
        runtime.call(async |session, context| {
            dead_letter_stale::dead_letter_stale(session, context, uid, now, reason).await
        })
    })
}

/// Returns the state of a lease in its row: "held" (also after it expired, as long as no other
/// worker has claimed the run), "taken", "requeued", "waiting", "cancelled", "completed", "failed",
/// "gone" or "other". It does not wait for a row lock.
///
/// `claimed_by`: the owner, 1 to 64 characters of UTF-8, compared byte by byte. `state` receives
/// the text, freed with `nrllm_string_free()`.
///
/// # Safety
///
/// Each text is NULL or points to as many bytes as its length says; `state` and `error` are NULL or
/// writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrllm_lease_state(
    runtime: *const NrllmRuntime,
    run_uid: i64,
    claimed_by: *const c_char,
    claimed_by_length: usize,
    state: *mut *mut c_char,
    error: *mut *mut NrllmError,
) -> NrllmStatus {
    // SAFETY: the caller lends `claimed_by_length` bytes at `claimed_by`, by the contract in the
    // header.
    let claimed_by = unsafe { bytes("claimedBy", claimed_by, claimed_by_length) };
    // SAFETY: `state` and `error` are NULL or writable, by the contract in the header.
    let (state, error) = unsafe { (Out::text("state", state), ErrorOut::new(error)) };
    answer(error, state, || {
        let runtime = self::runtime(runtime)?;
        let holder = Holder::parse(run_uid, claimed_by?)?;
        let state = runtime.call(async |session, context| {
            lease_state::lease_state(session, context, holder).await
        })?;
        Ok(text(state.as_str()))
    })
}

/// Requeues the caller's run with backoff after a failure if another attempt may help and is
/// allowed, otherwise dead-letters it, in one guarded transaction.
///
/// `claimed_by`: the owner, 1 to 64 characters of UTF-8, compared byte by byte. `failure_type`,
/// `code`, `retry_after_seconds`, `error_class`: as for `nrllm_classify_failure()`. `wake_up`:
/// NULL, or a JSON object with `table`, `queue`, `body`, `headers` and `placeholder`, the message
/// that is written with the requeue. `recovery` receives `{"outcome", "reason", "failure",
/// "requeueCount", "delayMs", "wokenUp", "confirmed"}` as JSON, freed with `nrllm_string_free()`.
///
/// # Safety
///
/// `code` and `retry_after_seconds` are NULL or readable, each text is NULL or points to as many
/// bytes as its length says; `recovery` and `error` are NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrllm_recover_failure(
    runtime: *const NrllmRuntime,
    run_uid: i64,
    claimed_by: *const c_char,
    claimed_by_length: usize,
    failure_type: i32,
    code: *const i64,
    retry_after_seconds: *const i64,
    error_class: *const c_char,
    error_class_length: usize,
    wake_up: *const c_char,
    wake_up_length: usize,
    recovery: *mut *mut c_char,
    error: *mut *mut NrllmError,
) -> NrllmStatus {
    // SAFETY: the caller lends `claimed_by_length` bytes at `claimed_by`, by the contract in the
    // header.
    let claimed_by = unsafe { bytes("claimedBy", claimed_by, claimed_by_length) };
    // SAFETY: both numbers are NULL or readable, and `error_class_length` bytes lie at
    // `error_class`, by the contract in the header.
    let facts = unsafe {
        ErrorFacts::read(failure_type, code, retry_after_seconds, error_class, error_class_length)
    };
    // SAFETY: the caller lends `wake_up_length` bytes at `wake_up`, by the contract in the header.
    let wake_up = unsafe { optional("wakeUp", wake_up, wake_up_length) };
    // SAFETY: `recovery` and `error` are NULL or writable, by the contract in the header.
    let (recovery, error) = unsafe { (Out::text("recovery", recovery), ErrorOut::new(error)) };
    answer(error, recovery, || {
        let runtime = self::runtime(runtime)?;
        let holder = Holder::parse(run_uid, claimed_by?)?;
        let wake_up = self::wake_up(wake_up?)?;
        let failure = facts.classify()?;
        let operation = async |session: &mut Session, context: Context<'_>| {
            recover_failure::recover_failure(session, context, holder, &failure, wake_up.as_ref())
                .await
        };
        let recovery = runtime.call(operation)?;
        json(&RecoveryView::new(&recovery, &failure))
    })
}

/// Requeues the caller's own run without spending its retry budget, for a worker that must stop.
/// The run is due at once.
///
/// `claimed_by`: the owner, 1 to 64 characters of UTF-8, compared byte by byte. `wake_up`: NULL, or
/// a JSON object as for `nrllm_recover_failure()`, the message that is written in the same
/// transaction and available at once. `handed_back` receives false when the lease is lost, the
/// write fence forbids another attempt, or no request is stored; then nothing was written.
///
/// # Safety
///
/// Each text is NULL or points to as many bytes as its length says; `handed_back` and `error` are
/// NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrllm_hand_back(
    runtime: *const NrllmRuntime,
    run_uid: i64,
    claimed_by: *const c_char,
    claimed_by_length: usize,
    wake_up: *const c_char,
    wake_up_length: usize,
    handed_back: *mut bool,
    error: *mut *mut NrllmError,
) -> NrllmStatus {
    // SAFETY: the caller lends `claimed_by_length` bytes at `claimed_by`, by the contract in the
    // header.
    let claimed_by = unsafe { bytes("claimedBy", claimed_by, claimed_by_length) };
    // SAFETY: the caller lends `wake_up_length` bytes at `wake_up`, by the contract in the header.
    let wake_up = unsafe { optional("wakeUp", wake_up, wake_up_length) };
    // SAFETY: `handed_back` and `error` are NULL or writable, by the contract in the header.
    let (handed_back, error) =
        unsafe { (Out::new("handed_back", handed_back, false), ErrorOut::new(error)) };
    answer(error, handed_back, || {
        let runtime = self::runtime(runtime)?;
        let holder = Holder::parse(run_uid, claimed_by?)?;
        let wake_up = self::wake_up(wake_up?)?;
        runtime.call(async |session, context| {
            hand_back::hand_back(session, context, holder, wake_up.as_ref()).await
        })
    })
}

/// Reaps stale runs, oldest lease first: requeues them or, if write fence, request or retry budget
/// forbid it, dead-letters them. Never waits for a live worker and never blocks one; several
/// reapers may run at once and share the work.
///
/// `limit`: maximum number of runs handled, at least 1. `now`: NULL for the time of the call, or
/// unix seconds, 0 to 4 294 967 295. `options`: NULL, or a JSON object with `dryRun` (false),
/// `only` (list of uids), `except` (list of uids), `wakeUp` (as for `nrllm_recover_failure()`).
/// `report` receives `{"requeued", "deadLettered", "skipped", "dryRun", "hasMore"}` as JSON, freed
/// with `nrllm_string_free()`.
///
/// # Safety
///
/// `now` is NULL or readable, each text is NULL or points to as many bytes as its length says;
/// `report` and `error` are NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrllm_reap(
    runtime: *const NrllmRuntime,
    limit: i64,
    now: *const i64,
    options: *const c_char,
    options_length: usize,
    report: *mut *mut c_char,
    error: *mut *mut NrllmError,
) -> NrllmStatus {
    // SAFETY: `now` is NULL or readable, by the contract in the header.
    let now = unsafe { number(now) };
    // SAFETY: the caller lends `options_length` bytes at `options`, by the contract in the header.
    let options = unsafe { optional("options", options, options_length) };
    // SAFETY: `report` and `error` are NULL or writable, by the contract in the header.
    let (report, error) = unsafe { (Out::text("report", report), ErrorOut::new(error)) };
    answer(error, report, || {
        let runtime = self::runtime(runtime)?;
        let entries = match options? {
            Some(json) => input::entries("options", json)?,
            None => Vec::new(),
        };
        let request = ReapRequest::parse(limit, now, &entries)?;
        let report =
            runtime.call(async |session, context| reap::reap(session, context, &request).await)?;
        json(&ReportView::new(&report))
    })
}

/// Ends a run as failed whose wake-up could not be sent, as long as it is still queued by this
/// requeue.
///
/// `requeue_count`: the counter that the requeue left, 0 for a first dispatch. `error_class`: the
/// name of the error's class, any bytes. `failed` receives false if the run is no longer queued by
/// this requeue, for example because a worker has claimed it; the run then stays unchanged.
///
/// # Safety
///
/// Each text is NULL or points to as many bytes as its length says; `failed` and `error` are NULL
/// or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrllm_fail_undispatched(
    runtime: *const NrllmRuntime,
    run_uid: i64,
    requeue_count: i64,
    error_class: *const c_char,
    error_class_length: usize,
    failed: *mut bool,
    error: *mut *mut NrllmError,
) -> NrllmStatus {
    // SAFETY: the caller lends `error_class_length` bytes at `error_class`, by the contract in the
    // header.
    let error_class = unsafe { bytes("errorClass", error_class, error_class_length) };
    // SAFETY: `failed` and `error` are NULL or writable, by the contract in the header.
    let (failed, error) = unsafe { (Out::new("failed", failed, false), ErrorOut::new(error)) };
    answer(error, failed, || {
        let runtime = self::runtime(runtime)?;
        let uid = validate::run_uid(run_uid)?;
        let count = validate::requeue_count(requeue_count)?;
        let class = self::error_class(error_class?);
        runtime.call(async |session, context| {
            fail_undispatched::fail_undispatched(session, context, uid, count, &class).await
        })
    })
}

/// Claims stranded runs, oldest first: queued runs with a stored request that were due
/// `older_than_seconds` before `now` and have no wake-up left. The claim marks them: concurrent
/// sweeps share them, and a further sweep within that time finds none.
///
/// `older_than_seconds`: 0 to 4 294 967 295. `limit`: at least 1. `now`: NULL for the time of the
/// call, or unix seconds. `wake_up`: NULL, or a JSON object as for `nrllm_recover_failure()`, the
/// message that is written with the mark. `runs` receives a list of `{"uid", "uuid",
/// "requeueCount", "queuedSeconds", "wokenUp"}` as JSON, freed with `nrllm_string_free()`; the
/// caller must notify a worker of each run with `wokenUp` false.
///
/// # Safety
///
/// `now` is NULL or readable, `wake_up` is NULL or points to `wake_up_length` bytes; `runs` and
/// `error` are NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrllm_stranded_runs(
    runtime: *const NrllmRuntime,
    older_than_seconds: i64,
    limit: i64,
    now: *const i64,
    wake_up: *const c_char,
    wake_up_length: usize,
    runs: *mut *mut c_char,
    error: *mut *mut NrllmError,
) -> NrllmStatus {
    // SAFETY: `now` is NULL or readable, by the contract in the header.
    let now = unsafe { number(now) };
    // SAFETY: the caller lends `wake_up_length` bytes at `wake_up`, by the contract in the header.
    let wake_up = unsafe { optional("wakeUp", wake_up, wake_up_length) };
    // SAFETY: `runs` and `error` are NULL or writable, by the contract in the header.
    let (runs, error) = unsafe { (Out::text("runs", runs), ErrorOut::new(error)) };
    answer(error, runs, || {
        let runtime = self::runtime(runtime)?;
        let wake_up = self::wake_up(wake_up?)?;
        let request = SweepRequest::parse(older_than_seconds, limit, now, wake_up)?;
        let runs = runtime.call(async |session, context| {
            stranded_runs::stranded_runs(session, context, &request).await
        })?;
        json(&runs.iter().map(QueuedView::stranded).collect::<Vec<_>>())
    })
}

/// Returns queued runs with a stored request whose backoff has passed, oldest first, for a worker
/// without a message bus. It neither claims nor locks a run; the claim decides.
///
/// `limit`: at least 1. `now`: NULL for the time of the call, or unix seconds. `runs` receives a
/// list of `{"uid", "uuid", "requeueCount", "queuedSeconds"}` as JSON, freed with
/// `nrllm_string_free()`.
///
/// # Safety
///
/// `now` is NULL or readable; `runs` and `error` are NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrllm_due_runs(
    runtime: *const NrllmRuntime,
    limit: i64,
    now: *const i64,
    runs: *mut *mut c_char,
    error: *mut *mut NrllmError,
) -> NrllmStatus {
    // SAFETY: `now` is NULL or readable, by the contract in the header.
    let now = unsafe { number(now) };
    // SAFETY: `runs` and `error` are NULL or writable, by the contract in the header.
    let (runs, error) = unsafe { (Out::text("runs", runs), ErrorOut::new(error)) };
    answer(error, runs, || {
        let runtime = self::runtime(runtime)?;
        let limit = validate::limit(limit)?;
        let now = now.map(validate::now).transpose()?;
        let runs = runtime.call(async |session, context| {
            due_runs::due_runs(session, context, limit, now).await
        })?;
        json(&runs.iter().map(QueuedView::due).collect::<Vec<_>>())
    })
}

/// Cancels a run that has not ended; totals are kept, payloads and lease cleared.
///
/// `uuid`: 1 to 36 characters of UTF-8. `cancelled` receives false if there is no such run or it
/// has ended.
///
/// # Safety
///
/// Each text is NULL or points to as many bytes as its length says; `cancelled` and `error` are
/// NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrllm_cancel_run(
    runtime: *const NrllmRuntime,
    uuid: *const c_char,
    uuid_length: usize,
    cancelled: *mut bool,
    error: *mut *mut NrllmError,
) -> NrllmStatus {
    // SAFETY: the caller lends `uuid_length` bytes at `uuid`, by the contract in the header.
    let uuid = unsafe { bytes("uuid", uuid, uuid_length) };
    // SAFETY: `cancelled` and `error` are NULL or writable, by the contract in the header.
    let (cancelled, error) =
        unsafe { (Out::new("cancelled", cancelled, false), ErrorOut::new(error)) };
    answer(error, cancelled, || {
        let runtime = self::runtime(runtime)?;
        let uuid = validate::uuid(uuid?)?;
        runtime.call(async |session, context| cancel_run::cancel_run(session, context, uuid).await)
    })
}

/// Returns the status of the run table for an operator, as JSON: `{"counts", "deadLetters",
/// "expiredLeases", "unleasedRunning", "oldestLease", "oldestQueuedSeconds", "stranded",
/// "clockSkewMs", "leaseKey", "server", "isolation", "binlog", "settings"}`.
///
/// `now`: NULL for the time of the call, or the unix seconds at which leases and waits are
/// evaluated. `since`: NULL, or the unix seconds from which runs are counted. `status` receives the
/// text, freed with `nrllm_string_free()`.
///
/// # Safety
///
/// `now` and `since` are NULL or readable; `status` and `error` are NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrllm_status(
    runtime: *const NrllmRuntime,
    now: *const i64,
    since: *const i64,
    status: *mut *mut c_char,
    error: *mut *mut NrllmError,
) -> NrllmStatus {
    // SAFETY: `now` is NULL or readable, by the contract in the header.
    let now = unsafe { number(now) };
    // SAFETY: `since` is NULL or readable, by the contract in the header.
    let since = unsafe { number(since) };
    // SAFETY: `status` and `error` are NULL or writable, by the contract in the header.
    let (status, error) = unsafe { (Out::text("status", status), ErrorOut::new(error)) };
    answer(error, status, || {
        let runtime = self::runtime(runtime)?;
        let now = now.map(validate::now).transpose()?;
        let since = since.map(validate::since).transpose()?;
        let report = runtime.call(async |session, context| {
            self::status::status(session, context, now, since).await
        })?;
        json(&StatusView::new(&report, &runtime.key, &runtime.options))
    })
}
