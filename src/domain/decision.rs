//! What becomes of a run that cannot go on: requeue or dead-letter.

use super::status::{Reason, effect_forbids_retry};

/// The facts of a decision, read under the row's lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Facts<'a> {
    /// The stored effect of the tool that was executing.
    pub pending_effect: &'a [u8],
    /// Whether a request is stored that a worker could run.
    pub has_request: bool,
    /// How often the run was requeued so far.
    pub requeue_count: u32,
}

/// What becomes of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Back on the queue.
    Requeue,
    /// Ended, with this reason.
    DeadLetter(Reason),
}

/// The reaper's decision on a stale run, in this order: the write fence, the stored request, the
/// retry budget.
#[must_use]
pub fn stale(facts: Facts<'_>, max_requeues: u32) -> Decision {
    if effect_forbids_retry(facts.pending_effect) || !facts.has_request {
        Decision::DeadLetter(Reason::NotRetryable)
    } else if facts.requeue_count >= max_requeues || facts.requeue_count == u32::MAX {
        Decision::DeadLetter(Reason::RetriesExhausted)
    } else {
        Decision::Requeue
    }
}

/// The decision after a failure: the reaper's, but a failure that is not retryable dead-letters.
#[must_use]
pub fn after_failure(retryable: bool, facts: Facts<'_>, max_requeues: u32) -> Decision {
    if retryable { stale(facts, max_requeues) } else { Decision::DeadLetter(Reason::NotRetryable) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Decision::{DeadLetter, Requeue};
    use Reason::{NotRetryable, RetriesExhausted};

    #[test]
    fn write_fence_before_request_before_budget() {
        let table: &[(&[u8], bool, u32, Decision)] = &[
            (b"", true, 0, Requeue),
            (b"read_only", true, 2, Requeue),
            (b"idempotent_write", true, 2, Requeue),
            (b"", true, 3, DeadLetter(RetriesExhausted)),
            (b"", true, u32::MAX, DeadLetter(RetriesExhausted)),
            (b"", false, 0, DeadLetter(NotRetryable)),
            (b"", false, 3, DeadLetter(NotRetryable)),
            (b"non_idempotent_write", true, 0, DeadLetter(NotRetryable)),
            (b"non_idempotent_write", true, 3, DeadLetter(NotRetryable)),
            (b"non_idempotent_write", false, 3, DeadLetter(NotRetryable)),
            (b"NON_IDEMPOTENT_WRITE", true, 0, Requeue),
            (b"non_idempotent_write ", true, 3, DeadLetter(RetriesExhausted)),
        ];
        for &(pending_effect, has_request, requeue_count, expected) in table {
            let facts = Facts { pending_effect, has_request, requeue_count };
            assert_eq!(stale(facts, 3), expected, "{facts:?}");
            assert_eq!(after_failure(true, facts, 3), expected, "{facts:?}");
            assert_eq!(after_failure(false, facts, 3), DeadLetter(NotRetryable), "{facts:?}");
        }
    }

    #[test]
    fn the_counter_never_overflows_whatever_the_budget() {
        let facts = Facts { pending_effect: b"", has_request: true, requeue_count: u32::MAX };
        assert_eq!(stale(facts, u32::MAX), DeadLetter(RetriesExhausted));
    }
}
