//! Every operation on one run, for the fault tests.

use nrllm_runtime::config::requests::ReapRequest;
use nrllm_runtime::domain::failure::FailureClass;
use nrllm_runtime::error::Result;
use nrllm_runtime::ops::reap::Report;
use nrllm_runtime::ops::recover_failure::Recovery;

use crate::support::database::{Database, Run};
use crate::support::harness::{Harness, LEASE, NOW, OWNER, request};
use crate::support::proxy::When;

/// The decision about a run: requeued, out of retries, or not retryable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    Requeue,
    Exhausted,
    Final,
}

use Expected::{Exhausted, Final, Requeue};

/// The payloads of the decision tables, in the order of their rows.
pub const PAYLOADS: [Option<&str>; 3] = [Some("nrv1:request"), Some(""), None];
/// The requeue counts of the decision tables, in the order of their columns, each with the one
/// after it and the delay before the next attempt.
pub const COUNTS: [(u32, &str, u64); 4] =
    [(0, "1", 30_000), (2, "3", 120_000), (3, "4", 240_000), (u32::MAX, "-", 0)];
/// Nothing forbids another attempt: by payload, then by requeue count.
pub const ALLOWED: [[Expected; 4]; 3] = [
    [Requeue, Requeue, Exhausted, Exhausted],
    [Final, Final, Final, Final],
    [Final, Final, Final, Final],
];
/// Another attempt is forbidden.
pub const FORBIDDEN: [[Expected; 4]; 3] =
    [[Final, Final, Final, Final], [Final, Final, Final, Final], [Final, Final, Final, Final]];

pub const OTHER: &str = "worker:other:1:beef";

/// One operation on one run, for the fault tests.
pub struct Operation {
    pub name: &'static str,
    pub run: fn() -> Run,
    /// Calls the operation. Returns whether it reports that it was done.
    pub call: fn(&mut Harness, i64, &str) -> Result<bool>,
    /// Returns whether the row shows the effect.
    pub effect: fn(&mut Database, i64) -> bool,
}

impl Operation {
    /// The command that makes its effect permanent: the commit of a transaction, else the write.
    pub fn write(&self) -> When {
        let start = if self.name.starts_with("reap")
            || self.name.starts_with("recover")
            || self.name == "handBack"
        {
            "COMMIT"
        } else {
            "UPDATE "
        };
        When::command(move |command| command.is_statement() && command.sql.starts_with(start))
    }

    /// Returns whether it is repeated when its reply is lost, instead of being read back.
    pub fn may_be_repeated(&self) -> bool {
        matches!(self.name, "renewLease" | "markPendingEffect")
    }
}

pub fn stale() -> Run {
    Run::running(OTHER, NOW - 10)
}

pub fn held() -> Run {
    Run::running(OWNER, NOW + 10)
}

/// Returns whether every skipped run was contended: the reaper's own transaction may still hold it,
/// on a connection whose end the server has not noticed yet.
pub fn passed_over(report: &Report) -> bool {
    report.skipped.iter().all(|entry| entry.reason == Some("contended"))
}

pub fn operations() -> Vec<Operation> {
    vec![
        Operation {
            name: "claimQueued",
            run: Run::queued,
            call: |harness, uid, _| harness.claim_queued(uid, OWNER, LEASE),
            effect: |database, uid| {
                database.get(uid, "status") == "running" && database.get(uid, "claimed_by") == OWNER
            },
        },
        Operation {
            name: "renewLease",
            run: held,
            call: |harness, uid, _| harness.renew_lease(uid, OWNER, LEASE),
            effect: |database, uid| database.get(uid, "lease_expires") == LEASE.to_string(),
        },
        Operation {
            name: "markPendingEffect",
            run: held,
            call: |harness, uid, _| {
                harness.mark_pending_effect(uid, OWNER, "non_idempotent_write", LEASE)
            },
            effect: |database, uid| database.get(uid, "pending_effect") == "non_idempotent_write",
        },
        Operation {
            name: "requeue",
            run: held,
            call: |harness, uid, _| harness.requeue(uid, OWNER),
            effect: |database, uid| {
                database.get(uid, "status") == "queued" && database.get(uid, "requeue_count") == "1"
            },
        },
        Operation {
            name: "handBack",
            run: held,
            call: |harness, uid, _| harness.hand_back(uid, OWNER, None),
            effect: |database, uid| {
                database.get(uid, "status") == "queued" && database.get(uid, "requeue_count") == "0"
            },
        },
        Operation {
            name: "requeueStale",
            run: stale,
            call: |harness, uid, _| harness.requeue_stale(uid, NOW),
            effect: |database, uid| {
                database.get(uid, "status") == "queued" && database.get(uid, "requeue_count") == "1"
            },
        },
        Operation {
            name: "deadLetterStale",
            run: stale,
            call: |harness, uid, _| harness.dead_letter_stale(uid, NOW, "retries_exhausted"),
            effect: |database, uid| database.get(uid, "termination_reason") == "retries_exhausted",
        },
        Operation {
            name: "recoverFailure, requeue",
            run: held,
            call: |harness, uid, _| {
                let recovery = harness.recover_failure(uid, OWNER, FailureClass::RateLimit, "E")?;
                assert!(!matches!(recovery, Recovery::DeadLettered { .. }), "{recovery:?}");
                Ok(matches!(recovery, Recovery::Requeued { requeue_count: 1, .. }))
            },
            effect: |database, uid| {
                database.get(uid, "status") == "queued" && database.get(uid, "requeue_count") == "1"
            },
        },
        Operation {
            name: "recoverFailure, dead-letter",
            run: held,
            call: |harness, uid, _| {
                let recovery = harness.recover_failure(uid, OWNER, FailureClass::Auth, "E")?;
                assert!(!matches!(recovery, Recovery::Requeued { .. }), "{recovery:?}");
                Ok(matches!(recovery, Recovery::DeadLettered { .. }))
            },
            effect: |database, uid| database.get(uid, "termination_reason") == "not_retryable",
        },
        Operation {
            name: "reap, requeue",
            run: stale,
            call: |harness, uid, _| {
                let report =
                    harness.reap(&ReapRequest { only: Some(vec![uid as u64]), ..request(5) })?;
                assert!(report.dead_lettered.is_empty() && passed_over(&report), "{report:?}");
                Ok(report.requeued.len() == 1 && report.requeued[0].requeue_count == 1)
            },
            effect: |database, uid| {
                database.get(uid, "status") == "queued" && database.get(uid, "requeue_count") == "1"
            },
        },
        Operation {
            name: "reap, dead-letter",
            run: || stale().requeued(3),
            call: |harness, uid, _| {
                let report =
                    harness.reap(&ReapRequest { only: Some(vec![uid as u64]), ..request(5) })?;
                assert!(report.requeued.is_empty() && passed_over(&report), "{report:?}");
                Ok(report.dead_lettered.len() == 1)
            },
            effect: |database, uid| database.get(uid, "termination_reason") == "retries_exhausted",
        },
        Operation {
            name: "failUndispatched",
            run: Run::queued,
            call: |harness, uid, _| harness.fail_undispatched(uid, 0, "E"),
            effect: |database, uid| database.get(uid, "termination_reason") == "provider_failed",
        },
        Operation {
            name: "cancelRun",
            run: held,
            call: |harness, _, uuid| harness.cancel_run(uuid),
            effect: |database, uid| database.get(uid, "status") == "cancelled",
        },
        Operation {
            name: "leaseState",
            run: held,
            call: |harness, uid, _| {
                assert_eq!(harness.lease_state(uid, OWNER)?, "held");
                Ok(false)
            },
            effect: |_, _| false,
        },
    ]
}

/// Those that write.
pub fn writing_operations() -> impl Iterator<Item = Operation> {
    operations().into_iter().filter(|operation| operation.name != "leaseState")
}

/// Checks that the session returns right results for other runs after a fault.
pub fn check_next_calls(harness: &mut Harness, database: &mut Database, why: &str) {
    let held = database.insert(&Run::running(OWNER, LEASE));
    let taken = database.insert(&Run::running(OTHER, LEASE));
    let queued = database.insert(&Run::queued());
    assert_eq!(harness.lease_state(taken, OWNER).unwrap(), "taken", "{why}");
    assert_eq!(harness.lease_state(held, OWNER).unwrap(), "held", "{why}");
    assert!(!harness.renew_lease(taken, OWNER, LEASE).unwrap(), "{why}");
    assert!(harness.renew_lease(held, OWNER, LEASE).unwrap(), "{why}");
    assert!(harness.claim_queued(queued, OWNER, LEASE).unwrap(), "{why}");
    assert!(!harness.claim_queued(queued, OTHER, LEASE).unwrap(), "{why}");
    assert_eq!(database.get(queued, "claimed_by"), OWNER, "{why}");
}

pub fn target(database: &mut Database, operation: &Operation) -> (i64, String) {
    let uid = database.insert(&(operation.run)());
    (uid, database.get(uid, "uuid"))
}

pub fn timed<T>(work: impl FnOnce() -> T) -> (T, u128) {
    let start = std::time::Instant::now();
    let value = work();
    (value, start.elapsed().as_millis())
}

/// Every operation of a worker and of a reaper, once.
pub fn all_operations(database: &mut Database, harness: &mut Harness) {
    let queued = database.insert_all(&vec![Run::queued(); 3]);
    let stale = database.insert_all(&[
        Run::running("dead", 5),
        Run::running("dead", 6).requeued(3),
        Run::running("dead", 7).without_request(),
    ]);
    for uid in &queued {
        assert!(harness.claim_queued(*uid, OWNER, LEASE).unwrap());
        assert!(harness.renew_lease(*uid, OWNER, LEASE + 1).unwrap());
        assert!(harness.mark_pending_effect(*uid, OWNER, "read_only", LEASE).unwrap());
        assert_eq!(harness.lease_state(*uid, OWNER).unwrap(), "held");
    }
    assert!(harness.requeue(queued[0], OWNER).unwrap());
    assert!(matches!(
        harness.recover_failure(queued[1], OWNER, FailureClass::RateLimit, "E").unwrap(),
        Recovery::Requeued { .. }
    ));
    assert!(matches!(
        harness.recover_failure(queued[2], OWNER, FailureClass::Auth, "E").unwrap(),
        Recovery::DeadLettered { .. }
    ));
    let report = harness.reap_all(50);
    assert_eq!((report.requeued.len(), report.dead_lettered.len()), (1, 2));
    assert!(
        !harness.requeue_stale(stale[0], NOW).unwrap()
            && !harness.dead_letter_stale(stale[0], NOW, "x").unwrap()
    );
    let uuid = database.get(queued[0], "uuid");
    assert!(harness.cancel_run(&uuid).unwrap());
    assert!(!harness.fail_undispatched(queued[0], 1, "E").unwrap());
}
