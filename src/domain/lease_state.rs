//! What a run's row says about the lease of an owner.

use super::status::Status;

/// What a run's row says about the lease of an owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaseState {
    /// Running under this owner. The lease may have expired, as long as no other worker took the
    /// run.
    Held,
    /// Running under another owner, or under none.
    Taken,
    /// Back on the queue.
    Requeued,
    /// Suspended until a person approves or answers.
    Waiting,
    /// Cancelled.
    Cancelled,
    /// Completed.
    Completed,
    /// Failed.
    Failed,
    /// No such run exists.
    Gone,
    /// The run has a status that this release does not know.
    Other,
}

impl LeaseState {
    /// Derives the state from a stored status (`None`: unknown to this release) and from whether
    /// the owner is the one asked for.
    #[must_use]
    pub const fn of(status: Option<Status>, owned: bool) -> Self {
        match status {
            Some(Status::Running) if owned => Self::Held,
            Some(Status::Running) => Self::Taken,
            Some(Status::Queued) => Self::Requeued,
            Some(Status::WaitingForApproval | Status::WaitingForInput) => Self::Waiting,
            Some(Status::Cancelled) => Self::Cancelled,
            Some(Status::Completed) => Self::Completed,
            Some(Status::Failed) => Self::Failed,
            None => Self::Other,
        }
    }

    /// Returns the word of the interface.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Held => "held",
            Self::Taken => "taken",
            Self::Requeued => "requeued",
            Self::Waiting => "waiting",
            Self::Cancelled => "cancelled",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Gone => "gone",
            Self::Other => "other",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_has_a_state() {
        let table = [
            ("running", true, "held"),
            ("running", false, "taken"),
            ("queued", true, "requeued"),
            ("queued", false, "requeued"),
            ("waiting_for_approval", true, "waiting"),
            ("waiting_for_input", false, "waiting"),
            ("cancelled", false, "cancelled"),
            ("completed", true, "completed"),
            ("failed", false, "failed"),
            ("paused", true, "other"),
        ];
        for (status, owned, state) in table {
            assert_eq!(LeaseState::of(Status::parse(status), owned).as_str(), state, "{status}");
        }
    }
}
