//! The operations on the run table, over a handle that holds the settings.

use std::ffi::c_char;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;

use super::error::{NrllmError, NrllmStatus, guard};
use super::failure::told;
use super::handle::Table;
use super::input;
use super::memory::{Out, bytes, number, optional};
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

/// A set of settings. Handles of equal settings share one connection per process, opened by the first call that needs it. A handle
/// may be used by any thread, by several at once (their calls wait for each other), and after a fork by the child, which opens a
/// connection of its own.
pub struct NrllmRuntime {
    _opaque: [u8; 0],
}

/// What a handle names.
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

/// The wake-up of a requeue, where there is one.
///
/// # Safety
///
/// As for [`optional`].
unsafe fn wake_up(json: *const c_char, length: usize) -> Result<Option<WakeUp>> {
    // SAFETY: by this function's contract.
    match unsafe { optional("wakeUp", json, length) }? {
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

/// Takes the settings and checks them. Nothing is sent: the connection is opened by the first call that needs it.
///
/// `connection`: a JSON object with the keys of TYPO3's connection array (`driver`, `host`, `port`, `unix_socket`, `user`, `password`,
/// `dbname`, `url`, `ssl_ca`, `driverOptions`, …), or a JSON string with a URL (`"mysql://user:password@host:port/dbname?socket=/path"`).
/// `options`: NULL or a JSON object with `table`, `clock` ("caller" or "database"), `connectTimeoutMs` (3000), `queryTimeoutMs`
/// (5000), `maxRequeues` (3), `backoffBaseMs` (30000), `backoffCapMs` (600000), `jitter` (0.0 to 1.0). What JSON cannot say is said by
/// objects with one key: `{"$hex": "c3bc"}` for a string of any bytes, `{"$entries": [[key, value], …]}` for an object with any keys.
/// `default_socket`: NULL, or the path of the socket that `localhost` means. `runtime` receives the handle, freed with
/// `nrllm_runtime_free()`. Any thread may call it.
///
/// # Safety
///
/// The texts point to that many bytes; `runtime` and `error` are places that may be written; each may be NULL.
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
    // SAFETY: by this function's contract.
    unsafe {
        guard(error, || {
            let answer = Out::new("runtime", runtime, std::ptr::null_mut())?;
            let socket = optional("defaultSocket", default_socket, default_socket_length)?
                .filter(|path| !path.is_empty());
            let defaults = Defaults {
                socket: socket.map(|path| PathBuf::from(std::ffi::OsStr::from_bytes(path))),
            };
            let settings = ConnectionSettings::parse(
                &input::read("connection", bytes("connection", connection, connection_length)?)?,
                &defaults,
            )?;
            let options = match optional("options", options, options_length)? {
                Some(json) => Options::parse(&input::entries("options", json)?)?,
                None => Options::default(),
            };
            let key = SessionUser::new(Key {
                connection: Arc::new(settings),
                timeouts: options.timeouts,
            });
            answer.set(RUNTIMES.insert(Runtime { key, options }));
            Ok(())
        })
    }
}

/// Frees a handle. NULL, and a handle that was freed already, are ignored. The connection, which other handles may share, is closed with
/// the last of them. Any thread may call it.
#[unsafe(no_mangle)]
pub extern "C" fn nrllm_runtime_free(runtime: *mut NrllmRuntime) {
    // SAFETY: NULL takes no error.
    unsafe {
        guard(std::ptr::null_mut(), || {
            drop(RUNTIMES.remove(runtime));
            Ok(())
        });
    }
}

/// Closes the connection that handles of these settings share, without waiting for the server. The next call opens a new one.
///
/// # Safety
///
/// `error` is a place that may be written, or NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrllm_runtime_close(
    runtime: *const NrllmRuntime,
    error: *mut *mut NrllmError,
) -> NrllmStatus {
    // SAFETY: by this function's contract.
    unsafe {
        guard(error, || {
            sessions::close(&self::runtime(runtime)?.key);
            Ok(())
        })
    }
}

/// Takes a queued run: it becomes running, owned by `claimed_by` until `lease_expires`.
///
/// `run_uid`: at least 1. `claimed_by`: who takes it, 1 to 64 characters of UTF-8, unique to this process (`nrllm_identity()`).
/// `lease_expires`: unix seconds, 1 to 4 294 967 295. `claimed` receives false when somebody else has it, it is not queued, or it
/// does not exist.
///
/// # Safety
///
/// The texts point to that many bytes; `claimed` and `error` are places that may be written; each may be NULL.
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
    // SAFETY: by this function's contract.
    unsafe {
        guard(error, || {
            let answer = Out::new("claimed", claimed, false)?;
            let runtime = self::runtime(runtime)?;
            let holder =
                Holder::parse(run_uid, bytes("claimedBy", claimed_by, claimed_by_length)?)?;
            let lease = validate::lease_expires(lease_expires)?;
            answer.set(runtime.call(async |session, context| {
                claim_queued::claim_queued(session, context, holder, lease).await
            })?);
            Ok(())
        })
    }
}

/// Extends the lease of a running run. A renewal that changes nothing is still a renewal.
///
/// `claimed_by`: the owner, 1 to 64 characters of UTF-8, compared byte by byte. `lease_expires`: unix seconds, 1 to
/// 4 294 967 295. `renewed` receives false when the lease is lost. An error says nothing about the ownership.
///
/// # Safety
///
/// The texts point to that many bytes; `renewed` and `error` are places that may be written; each may be NULL.
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
    // SAFETY: by this function's contract.
    unsafe {
        guard(error, || {
            let answer = Out::new("renewed", renewed, false)?;
            let runtime = self::runtime(runtime)?;
            let holder =
                Holder::parse(run_uid, bytes("claimedBy", claimed_by, claimed_by_length)?)?;
            let lease = validate::lease_expires(lease_expires)?;
            answer.set(runtime.call(async |session, context| {
                renew_lease::renew_lease(session, context, holder, lease).await
            })?);
            Ok(())
        })
    }
}

/// Writes the fence, the effect of the tool that is about to be executed (empty when it is done), and extends the lease.
///
/// `claimed_by`: the owner, 1 to 64 characters of UTF-8, compared byte by byte. `effect`: `""`, `"read_only"`,
/// `"idempotent_write"`, `"non_idempotent_write"` or another of at most 32 characters. `lease_expires`: unix seconds. `marked` receives
/// false when the lease is lost: the tool must not be executed.
///
/// # Safety
///
/// The texts point to that many bytes; `marked` and `error` are places that may be written; each may be NULL.
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
    // SAFETY: by this function's contract.
    unsafe {
        guard(error, || {
            let answer = Out::new("marked", marked, false)?;
            let runtime = self::runtime(runtime)?;
            let holder =
                Holder::parse(run_uid, bytes("claimedBy", claimed_by, claimed_by_length)?)?;
            let effect = validate::effect(bytes("effect", effect, effect_length)?)?;
            let lease = validate::lease_expires(lease_expires)?;
            answer.set(runtime.call(async |session, context| {
                mark_pending_effect::mark_pending_effect(session, context, holder, effect, lease)
                    .await
            })?);
            Ok(())
        })
    }
}

/// Puts the caller's own run back on the queue. Neither the budget nor the fence is asked: the caller has decided.
///
/// `claimed_by`: the owner, 1 to 64 characters of UTF-8, compared byte by byte. `requeued` receives false when the lease
/// is lost.
///
/// # Safety
///
/// The texts point to that many bytes; `requeued` and `error` are places that may be written; each may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrllm_requeue(
    runtime: *const NrllmRuntime,
    run_uid: i64,
    claimed_by: *const c_char,
    claimed_by_length: usize,
    requeued: *mut bool,
    error: *mut *mut NrllmError,
) -> NrllmStatus {
    // SAFETY: by this function's contract.
    unsafe {
        guard(error, || {
            let answer = Out::new("requeued", requeued, false)?;
            let runtime = self::runtime(runtime)?;
            let holder =
                Holder::parse(run_uid, bytes("claimedBy", claimed_by, claimed_by_length)?)?;
            answer.set(
                runtime.call(async |session, context| {
                    requeue::requeue(session, context, holder).await
                })?,
            );
            Ok(())
        })
    }
}

/// Puts a stale run back on the queue. Neither the budget nor the fence is asked: the caller has decided.
///
/// `now`: the time by which the lease has run out, unix seconds, 0 to 4 294 967 295. `requeued` receives false when the run is not
/// stale (any more).
///
/// # Safety
///
/// `requeued` and `error` are places that may be written; each may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrllm_requeue_stale(
    runtime: *const NrllmRuntime,
    run_uid: i64,
    now: i64,
    requeued: *mut bool,
    error: *mut *mut NrllmError,
) -> NrllmStatus {
    // SAFETY: by this function's contract.
    unsafe {
        guard(error, || {
            let answer = Out::new("requeued", requeued, false)?;
            let runtime = self::runtime(runtime)?;
            let uid = validate::run_uid(run_uid)?;
            let now = validate::now(now)?;
            answer.set(runtime.call(async |session, context| {
                requeue_stale::requeue_stale(session, context, uid, now).await
            })?);
            Ok(())
        })
    }
}

/// Ends a stale run as failed; payloads and lease are cleared.
///
/// `now`: the time by which the lease has run out, unix seconds, 0 to 4 294 967 295. `termination_reason`: 1 to 32 characters of UTF-8.
/// `dead_lettered` receives false when the run is not stale (any more).
///
/// # Safety
///
/// The texts point to that many bytes; `dead_lettered` and `error` are places that may be written; each may be NULL.
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
    // SAFETY: by this function's contract.
    unsafe {
        guard(error, || {
            let answer = Out::new("dead_lettered", dead_lettered, false)?;
            let runtime = self::runtime(runtime)?;
            let uid = validate::run_uid(run_uid)?;
            let now = validate::now(now)?;
            let reason = validate::termination_reason(bytes(
                "terminationReason",
                termination_reason,
                termination_reason_length,
            )?)?;
            answer.set(runtime.call(async |session, context| {
                dead_letter_stale::dead_letter_stale(session, context, uid, now, reason).await
            })?);
            Ok(())
        })
    }
}

/// What the row says about a lease: "held" (also when it expired and nobody took the run), "taken", "requeued", "waiting", "cancelled",
/// "completed", "failed", "gone" or "other". It does not wait for a row lock.
///
/// `claimed_by`: the owner, 1 to 64 characters of UTF-8, compared byte by byte. `state` receives the text, freed with
/// `nrllm_string_free()`.
///
/// # Safety
///
/// The texts point to that many bytes; `state` and `error` are places that may be written; each may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrllm_lease_state(
    runtime: *const NrllmRuntime,
    run_uid: i64,
    claimed_by: *const c_char,
    claimed_by_length: usize,
    state: *mut *mut c_char,
    error: *mut *mut NrllmError,
) -> NrllmStatus {
    // SAFETY: by this function's contract.
    unsafe {
        guard(error, || {
            let answer = Out::text("state", state)?;
            let runtime = self::runtime(runtime)?;
            let holder =
                Holder::parse(run_uid, bytes("claimedBy", claimed_by, claimed_by_length)?)?;
            let state = runtime.call(async |session, context| {
                lease_state::lease_state(session, context, holder).await
            })?;
            answer.set_text(state.as_str());
            Ok(())
        })
    }
}

/// Settles the caller's run after a failure, in one guarded transaction: requeued with backoff where another attempt may help and is
/// allowed, else dead-lettered.
///
/// `claimed_by`: the owner, 1 to 64 characters of UTF-8, compared byte by byte. `failure_type`, `code`,
/// `retry_after_seconds`, `error_class`: as for `nrllm_classify_failure()`. `wake_up`: NULL, or a JSON object with `table`, `queue`, `body`, `headers` and `placeholder`, the message that
/// is written with the requeue. `recovery` receives `{"outcome", "reason", "failure", "requeueCount", "delayMs", "wokenUp", "confirmed"}` as
/// JSON, freed with `nrllm_string_free()`.
///
/// # Safety
///
/// `code` and `retry_after_seconds` are NULL or may be read, the texts point to that many bytes; `recovery` and `error` are places that may be written; each may
/// be NULL.
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
    // SAFETY: by this function's contract.
    unsafe {
        guard(error, || {
            let answer = Out::text("recovery", recovery)?;
            let runtime = self::runtime(runtime)?;
            let holder =
                Holder::parse(run_uid, bytes("claimedBy", claimed_by, claimed_by_length)?)?;
            let wake_up = self::wake_up(wake_up, wake_up_length)?;
            let failure =
                told(failure_type, code, retry_after_seconds, error_class, error_class_length)?;
            let operation = async |session: &mut Session, context: Context<'_>| {
                recover_failure::recover_failure(
                    session,
                    context,
                    holder,
                    &failure,
                    wake_up.as_ref(),
                )
                .await
            };
            let recovery = runtime.call(operation)?;
            answer.set_json(&RecoveryView::new(&recovery, &failure))?;
            Ok(())
        })
    }
}

/// Gives the caller's own run back to the queue without spending its budget, for a worker that must stop. The run is due at once.
///
/// `claimed_by`: the owner, 1 to 64 characters of UTF-8, compared byte by byte. `wake_up`: NULL, or a JSON object as for
/// `nrllm_recover_failure()`, the message that is written in the same transaction and available at once. `handed_back` receives false
/// when the lease is lost, the write fence forbids another attempt, or no request is stored; nothing was written then.
///
/// # Safety
///
/// The texts point to that many bytes; `handed_back` and `error` are places that may be written; each may be NULL.
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
    // SAFETY: by this function's contract.
    unsafe {
        guard(error, || {
            let answer = Out::new("handed_back", handed_back, false)?;
            let runtime = self::runtime(runtime)?;
            let holder =
                Holder::parse(run_uid, bytes("claimedBy", claimed_by, claimed_by_length)?)?;
            let wake_up = self::wake_up(wake_up, wake_up_length)?;
            answer.set(runtime.call(async |session, context| {
                hand_back::hand_back(session, context, holder, wake_up.as_ref()).await
            })?);
            Ok(())
        })
    }
}

/// Settles stale runs, oldest lease first: requeued or, where fence, request or budget forbid it, dead-lettered. Never waits for, and
/// never blocks, a live worker; several may run at once and share the work.
///
/// `limit`: how many runs are handled at most, at least 1. `now`: NULL for the time of the call, or unix seconds, 0 to 4 294 967 295.
/// `options`: NULL, or a JSON object with `dryRun` (false), `only` (list of uids), `except` (list of uids), `wakeUp` (as for
/// `nrllm_recover_failure()`). `report` receives `{"requeued", "deadLettered", "skipped", "dryRun", "hasMore"}` as JSON, freed with
/// `nrllm_string_free()`.
///
/// # Safety
///
/// `now` is NULL or may be read, the texts point to that many bytes; `report` and `error` are places that may be written; each may be
/// NULL.
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
    // SAFETY: by this function's contract.
    unsafe {
        guard(error, || {
            let answer = Out::text("report", report)?;
            let runtime = self::runtime(runtime)?;
            let entries = match optional("options", options, options_length)? {
                Some(json) => input::entries("options", json)?,
                None => Vec::new(),
            };
            let request = ReapRequest::parse(limit, number(now), &entries)?;
            let report = runtime
                .call(async |session, context| reap::reap(session, context, &request).await)?;
            answer.set_json(&ReportView::new(&report))?;
            Ok(())
        })
    }
}

/// Settles a run whose wake-up could not be sent: failed, while it is still queued by this very requeue.
///
/// `requeue_count`: the counter that the requeue left, 0 for a first dispatch. `error_class`: the name of the error's class, any bytes.
/// `failed` receives false when the run is left alone: a worker has it.
///
/// # Safety
///
/// The texts point to that many bytes; `failed` and `error` are places that may be written; each may be NULL.
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
    // SAFETY: by this function's contract.
    unsafe {
        guard(error, || {
            let answer = Out::new("failed", failed, false)?;
            let runtime = self::runtime(runtime)?;
            let uid = validate::run_uid(run_uid)?;
            let count = validate::requeue_count(requeue_count)?;
            let class = self::error_class(bytes("errorClass", error_class, error_class_length)?);
            answer.set(runtime.call(async |session, context| {
                fail_undispatched::fail_undispatched(session, context, uid, count, &class).await
            })?);
            Ok(())
        })
    }
}

/// Claims the waking of queued runs with a stored request that nothing woke: those that were due `older_than_seconds` before `now`, oldest
/// first. They are marked, so that two sweeps share them and another one within that time finds none.
///
/// `older_than_seconds`: 0 to 4 294 967 295. `limit`: at least 1. `now`: NULL for the time of the call, or unix seconds. `wake_up`: NULL, or
/// a JSON object as for `nrllm_recover_failure()`, the message that is written with the mark. `runs` receives a list of `{"uid", "uuid",
/// "requeueCount", "queuedSeconds", "wokenUp"}` as JSON, freed with `nrllm_string_free()`; the caller wakes those that are not woken up.
///
/// # Safety
///
/// `now` is NULL or may be read, `wake_up` points to that many bytes; `runs` and `error` are places that may be written; each may be NULL.
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
    // SAFETY: by this function's contract.
    unsafe {
        guard(error, || {
            let answer = Out::text("runs", runs)?;
            let runtime = self::runtime(runtime)?;
            let wake_up = self::wake_up(wake_up, wake_up_length)?;
            let request = SweepRequest::parse(older_than_seconds, limit, number(now), wake_up)?;
            let runs = runtime.call(async |session, context| {
                stranded_runs::stranded_runs(session, context, &request).await
            })?;
            answer.set_json(&runs.iter().map(QueuedView::stranded).collect::<Vec<_>>())
        })
    }
}

/// Queued runs with a stored request whose backoff is over, oldest first: for a worker without a message bus. Nothing is taken and nothing
/// locked; the claim decides.
///
/// `limit`: at least 1. `now`: NULL for the time of the call, or unix seconds. `runs` receives a list of `{"uid", "uuid", "requeueCount",
/// "queuedSeconds"}` as JSON, freed with `nrllm_string_free()`.
///
/// # Safety
///
/// `now` is NULL or may be read; `runs` and `error` are places that may be written; each may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrllm_due_runs(
    runtime: *const NrllmRuntime,
    limit: i64,
    now: *const i64,
    runs: *mut *mut c_char,
    error: *mut *mut NrllmError,
) -> NrllmStatus {
    // SAFETY: by this function's contract.
    unsafe {
        guard(error, || {
            let answer = Out::text("runs", runs)?;
            let runtime = self::runtime(runtime)?;
            let limit = validate::limit(limit)?;
            let now = number(now).map(validate::now).transpose()?;
            let runs = runtime.call(async |session, context| {
                due_runs::due_runs(session, context, limit, now).await
            })?;
            answer.set_json(&runs.iter().map(QueuedView::due).collect::<Vec<_>>())
        })
    }
}

/// Cancels a run that has not ended; totals are kept, payloads and lease cleared.
///
/// `uuid`: 1 to 36 characters of UTF-8. `cancelled` receives false when there is no such run or it has ended.
///
/// # Safety
///
/// The texts point to that many bytes; `cancelled` and `error` are places that may be written; each may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrllm_cancel_run(
    runtime: *const NrllmRuntime,
    uuid: *const c_char,
    uuid_length: usize,
    cancelled: *mut bool,
    error: *mut *mut NrllmError,
) -> NrllmStatus {
    // SAFETY: by this function's contract.
    unsafe {
        guard(error, || {
            let answer = Out::new("cancelled", cancelled, false)?;
            let runtime = self::runtime(runtime)?;
            let uuid = validate::uuid(bytes("uuid", uuid, uuid_length)?)?;
            answer.set(runtime.call(async |session, context| {
                cancel_run::cancel_run(session, context, uuid).await
            })?);
            Ok(())
        })
    }
}

/// What an operator wants to know about the run table, as JSON: `{"counts", "deadLetters", "expiredLeases", "unleasedRunning",
/// "oldestLease", "oldestQueuedSeconds", "stranded", "clockSkewMs", "leaseKey", "server", "isolation", "binlog", "settings"}`.
///
/// `now`: NULL for the time of the call, or the unix seconds that judge leases and waits. `since`: NULL, or the unix seconds from which
/// on runs are counted. `status` receives the text, freed with `nrllm_string_free()`.
///
/// # Safety
///
/// `now` and `since` are NULL or may be read; `status` and `error` are places that may be written; each may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrllm_status(
    runtime: *const NrllmRuntime,
    now: *const i64,
    since: *const i64,
    status: *mut *mut c_char,
    error: *mut *mut NrllmError,
) -> NrllmStatus {
    // SAFETY: by this function's contract.
    unsafe {
        guard(error, || {
            let answer = Out::text("status", status)?;
            let runtime = self::runtime(runtime)?;
            let now = number(now).map(validate::now).transpose()?;
            let since = number(since).map(validate::since).transpose()?;
            let report = runtime.call(async |session, context| {
                self::status::status(session, context, now, since).await
            })?;
            answer.set_json(&StatusView::new(&report, &runtime.key, &runtime.options))?;
            Ok(())
        })
    }
}
