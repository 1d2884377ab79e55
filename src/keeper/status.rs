//! The status of a kept lease, and why it ended.

use crate::domain::lease_state::LeaseState;
use crate::error::{Error, Kind};

/// The status of a kept lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum LeaseStatus {
    /// The last heartbeat succeeded, and the deadline has not passed.
    Held,
    /// The last heartbeat failed, and the deadline has not passed.
    Unknown,
    /// The lease is not renewed any more. Final.
    Ended(EndReason),
}

/// Why a kept lease ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum EndReason {
    /// The deadline passed before a heartbeat succeeded.
    Expired,
    /// Another owner, or none, holds the run.
    Taken,
    /// The run is back on the queue.
    Requeued,
    /// The run was deleted.
    Gone,
    /// The run has a status that this release does not know.
    UnknownStatus,
    /// The run was cancelled.
    Cancelled,
    /// The run was completed by its owner.
    Completed,
    /// The run failed.
    Failed,
    /// The run waits for a person.
    Waiting,
    /// Released by its holder, or with the request.
    Released,
    /// The process that reads is a fork of the one that keeps the lease.
    Inherited,
}

impl LeaseStatus {
    const ALL: [Self; 13] = [
        Self::Held,
        Self::Unknown,
        Self::Ended(EndReason::Expired),
        Self::Ended(EndReason::Taken),
        Self::Ended(EndReason::Requeued),
        Self::Ended(EndReason::Gone),
        Self::Ended(EndReason::UnknownStatus),
        Self::Ended(EndReason::Cancelled),
        Self::Ended(EndReason::Completed),
        Self::Ended(EndReason::Failed),
        Self::Ended(EndReason::Waiting),
        Self::Ended(EndReason::Released),
        Self::Ended(EndReason::Inherited),
    ];

    /// The status as a byte.
    pub(super) const fn code(self) -> u8 {
        match self {
            Self::Held => 0,
            Self::Unknown => 1,
            Self::Ended(reason) => 2 + reason as u8,
        }
    }

    /// The status of a byte that [`LeaseStatus::code`] returned.
    pub(super) fn from_code(code: u8) -> Self {
        Self::ALL.get(usize::from(code)).copied().unwrap_or(Self::Ended(EndReason::UnknownStatus))
    }

    /// Returns whether the lease has ended.
    pub(super) const fn is_final(self) -> bool {
        matches!(self, Self::Ended(_))
    }

    /// The interface's word.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Held => "held",
            Self::Unknown => "unknown",
            Self::Ended(reason) => reason.as_str(),
        }
    }
}

impl EndReason {
    /// The reason why a heartbeat was refused; none where the row says that the owner holds the
    /// run.
    pub(super) const fn of(state: LeaseState) -> Option<Self> {
        match state {
            LeaseState::Held => None,
            LeaseState::Taken => Some(Self::Taken),
            LeaseState::Requeued => Some(Self::Requeued),
            LeaseState::Gone => Some(Self::Gone),
            LeaseState::Other => Some(Self::UnknownStatus),
            LeaseState::Cancelled => Some(Self::Cancelled),
            LeaseState::Completed => Some(Self::Completed),
            LeaseState::Failed => Some(Self::Failed),
            LeaseState::Waiting => Some(Self::Waiting),
        }
    }

    /// Returns whether the holder has to be interrupted: for a loss and a cancellation, which it
    /// does not cause itself.
    pub(super) const fn is_loss(self) -> bool {
        matches!(
            self,
            Self::Expired
                | Self::Taken
                | Self::Requeued
                | Self::Gone
                | Self::UnknownStatus
                | Self::Cancelled
        )
    }

    const fn as_str(self) -> &'static str {
        match self {
            Self::Expired | Self::Taken | Self::Requeued | Self::Gone | Self::UnknownStatus => {
                "lost"
            }
            Self::Cancelled => "cancelled",
            Self::Completed | Self::Failed | Self::Waiting | Self::Released | Self::Inherited => {
                "stopped"
            }
        }
    }

    /// The reason as a clause.
    pub(super) const fn clause(self) -> &'static str {
        match self {
            Self::Expired => "its deadline passed before a heartbeat succeeded",
            Self::Taken => "another owner, or none, has the run",
            Self::Requeued => "the run is back on the queue",
            Self::Gone => "there is no such run any more",
            Self::UnknownStatus => {
                "the run is not running, and its status is unknown to this release"
            }
            Self::Cancelled => "the run was cancelled",
            Self::Completed => "the run is completed",
            Self::Failed => "the run has failed",
            Self::Waiting => "the run waits for a person",
            Self::Released => "it was released",
            Self::Inherited => "it belongs to the process that this one was forked from",
        }
    }

    /// The kind of [`EndReason::error`].
    pub(super) const fn kind(self) -> Kind {
        match self {
            Self::Cancelled => Kind::RunCancelled,
            _ => Kind::LeaseLost,
        }
    }

    /// The error of a lease that ended for this reason; `detail` is what is known beside it.
    pub(super) fn error(self, uid: u64, owner: &str, detail: Option<&str>) -> Error {
        let detail = detail.map(|detail| format!(" ({detail})")).unwrap_or_default();
        let owner = owner.escape_debug();
        let clause = self.clause();
        if self == Self::Cancelled {
            return Error::new(
                self.kind(),
                format!("run {uid} was cancelled; '{owner}' does not hold it any more"),
            );
        }
        let ended = if self.is_loss() { "is lost" } else { "is not kept any more" };
        Error::new(
            self.kind(),
            format!("the lease of '{owner}' on run {uid} {ended}: {clause}{detail}"),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_is_the_status_it_was_made_from() {
        for (code, status) in LeaseStatus::ALL.into_iter().enumerate() {
            assert_eq!(usize::from(status.code()), code);
            assert_eq!(LeaseStatus::from_code(status.code()), status);
        }
    }

    #[test]
    fn every_end_has_one_word_and_one_error() {
        let table = [
            (EndReason::Expired, "lost", true, "its deadline passed"),
            (EndReason::Taken, "lost", true, "another owner"),
            (EndReason::Requeued, "lost", true, "back on the queue"),
            (EndReason::Gone, "lost", true, "no such run"),
            (EndReason::UnknownStatus, "lost", true, "unknown to this release"),
            (EndReason::Cancelled, "cancelled", true, "was cancelled"),
            (EndReason::Completed, "stopped", false, "completed"),
            (EndReason::Failed, "stopped", false, "failed"),
            (EndReason::Waiting, "stopped", false, "waits for a person"),
            (EndReason::Released, "stopped", false, "released"),
            (EndReason::Inherited, "stopped", false, "forked"),
        ];
        for (reason, word, is_loss, part) in table {
            assert_eq!((LeaseStatus::Ended(reason).as_str(), reason.is_loss()), (word, is_loss));
            let error = reason.error(7, "worker:a", Some("no network"));
            assert!(error.message.contains(part) && error.message.contains("run 7"), "{error}");
            let kind = if word == "cancelled" { Kind::RunCancelled } else { Kind::LeaseLost };
            assert_eq!(error.kind, kind, "{reason:?}");
        }
    }
}
