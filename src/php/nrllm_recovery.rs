//! `NrLlmRecovery`: the outcome for a failed run.

use ext_php_rs::flags::ClassFlags;
use ext_php_rs::prelude::*;

use super::convert::int;
use super::nrllm_failure::{NrLlmFailure, json_serializable};
use super::objects::Compare;
use super::serialize::{self, Array};
use crate::domain::failure::Failure;
use crate::ops::recover_failure::Recovery;
use crate::views::RecoveryView;

/// The outcome for a failed run.
#[php_class]
#[derive(PartialEq)]
#[php(flags = ClassFlags::Final.union(ClassFlags::NoDynamicProperties))]
#[php(implements(ce = json_serializable, stub = "\\JsonSerializable"))]
pub(super) struct NrLlmRecovery {
    recovery: Recovery,
    failure: Failure,
}

impl Compare for NrLlmRecovery {
    fn is_equal(&self, other: &Self) -> bool {
        self == other
    }
}

impl NrLlmRecovery {
    pub(super) const fn new(recovery: Recovery, failure: Failure) -> Self {
        Self { recovery, failure }
    }
}

#[php_impl]
impl NrLlmRecovery {
    /// The run is back on the queue.
    const REQUEUED: &'static str = "requeued";
    /// The run ended.
    const DEAD_LETTERED: &'static str = "dead_lettered";
    /// The caller does not hold the run; nothing was written.
    const LEASE_LOST: &'static str = "lease_lost";

    /// Returns the outcome: one of the constants.
    fn outcome(&self) -> &'static str {
        match self.recovery {
            Recovery::Requeued { .. } => Self::REQUEUED,
            Recovery::DeadLettered { .. } => Self::DEAD_LETTERED,
            Recovery::LeaseLost => Self::LEASE_LOST,
        }
    }

    /// Returns why the run ended; null when it did not.
    fn reason(&self) -> Option<&'static str> {
        match &self.recovery {
            Recovery::DeadLettered { reason, .. } => Some(reason.as_str()),
            _ => None,
        }
    }

    /// Returns the failure.
    fn failure(&self) -> NrLlmFailure {
        NrLlmFailure::new(self.failure.clone())
    }

    /// Returns the counter that the row has now; null when the lease is lost.
    fn requeue_count(&self) -> Option<i64> {
        match &self.recovery {
            Recovery::Requeued { requeue_count, .. }
            | Recovery::DeadLettered { requeue_count, .. } => Some(i64::from(*requeue_count)),
            Recovery::LeaseLost => None,
        }
    }

    /// Returns the delay before the next attempt, in milliseconds; null when there is none.
    fn delay_ms(&self) -> Option<i64> {
        match &self.recovery {
            Recovery::Requeued { delay_ms, .. } => Some(int(*delay_ms)),
            _ => None,
        }
    }

    /// Returns whether the wake-up was written in the same transaction.
    fn woken_up(&self) -> bool {
        matches!(self.recovery, Recovery::Requeued { woken_up: true, .. })
    }

    /// Returns whether the reply was lost and the outcome verified by reading back.
    fn is_confirmed(&self) -> bool {
        matches!(
            self.recovery,
            Recovery::Requeued { confirmed: true, .. }
                | Recovery::DeadLettered { confirmed: true, .. }
        )
    }

    /// Returns all values, for `json_encode()`.
    fn json_serialize(&self) -> PhpResult<Array> {
        serialize::array(&RecoveryView::new(&self.recovery, &self.failure))
    }

    /// Not cloneable: the engine refuses to call it.
    #[php(vis = "private", name = "__clone")]
    fn __clone(&self) {}
}
