//! The words that are stored in the run table: statuses, termination reasons and effects.

/// The status of a run. The last three are terminal and never leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// Waits for a worker.
    Queued,
    /// Executed by the holder of the lease.
    Running,
    /// Suspended until a person approves.
    WaitingForApproval,
    /// Suspended until a person answers.
    WaitingForInput,
    /// Ended well.
    Completed,
    /// Ended by a failure or dead-lettered.
    Failed,
    /// Ended by a person.
    Cancelled,
}

impl Status {
    /// All statuses, in the order in which a run may pass them.
    pub const ALL: [Self; 7] = [
        Self::Queued,
        Self::Running,
        Self::WaitingForApproval,
        Self::WaitingForInput,
        Self::Completed,
        Self::Failed,
        Self::Cancelled,
    ];

    /// The word in the column `status`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::WaitingForApproval => "waiting_for_approval",
            Self::WaitingForInput => "waiting_for_input",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// Returns whether a run of this status has ended.
    #[must_use]
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }

    /// The status of a stored word; `None` for one that this release does not know.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == word)
    }
}

/// Why a run was dead-lettered: the word in the column `termination_reason`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The retry budget is spent.
    RetriesExhausted,
    /// Another attempt is forbidden (by the write fence or the failure) or impossible (no stored
    /// request).
    NotRetryable,
}

impl Reason {
    /// The word in the column `termination_reason`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::RetriesExhausted => "retries_exhausted",
            Self::NotRetryable => "not_retryable",
        }
    }
}

/// Returns whether this stored effect forbids another attempt. Only the exact bytes of
/// `non_idempotent_write` do: every other value, known or not, allows it.
#[must_use]
pub fn effect_forbids_retry(pending_effect: &[u8]) -> bool {
    pending_effect == b"non_idempotent_write"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_exact_bytes_forbid_a_retry() {
        assert!(effect_forbids_retry(b"non_idempotent_write"));
        for allowed in [
            "",
            "read_only",
            "idempotent_write",
            "NON_IDEMPOTENT_WRITE",
            "non_idempotent_write ",
            " non_idempotent_write",
            "non_idempotent_writ\u{e9}",
            "non_idempotent_write\0",
            "something_newer",
        ] {
            assert!(!effect_forbids_retry(allowed.as_bytes()), "{allowed:?}");
        }
    }

    #[test]
    fn every_status_is_read_back() {
        for status in Status::ALL {
            assert_eq!(Status::parse(status.as_str()), Some(status));
        }
        let terminal: Vec<_> = Status::ALL.into_iter().filter(|s| s.is_terminal()).collect();
        assert_eq!(terminal, [Status::Completed, Status::Failed, Status::Cancelled]);
        assert_eq!(Status::parse("Queued"), None);
    }
}
