//! `NrLlmReapReport`: what a reaper did.

use ext_php_rs::boxed::ZBox;
use ext_php_rs::flags::ClassFlags;
use ext_php_rs::prelude::*;
use ext_php_rs::types::ZendHashTable;
use ext_php_rs::zend::ce;

use super::convert::{Builder, int};
use super::failure::json_serializable;
use super::objects::Compare;
use crate::ops::reap::{Entry, Report};

/// What a reaper did, run by run.
#[php_class]
#[derive(PartialEq)]
#[php(flags = ClassFlags::Final.union(ClassFlags::NoDynamicProperties))]
#[php(implements(ce = ce::countable, stub = "\\Countable"))]
#[php(implements(ce = json_serializable, stub = "\\JsonSerializable"))]
pub(super) struct NrLlmReapReport {
    report: Report,
}

impl Compare for NrLlmReapReport {
    fn is_equal(&self, other: &Self) -> bool {
        self == other
    }
}

impl NrLlmReapReport {
    pub(super) const fn new(report: Report) -> Self {
        Self { report }
    }
}

fn list(entries: &[Entry]) -> PhpResult<ZBox<ZendHashTable>> {
    let mut list = Builder::with_capacity(entries.len());
    for entry in entries {
        let row = Builder::with_capacity(8)
            .set("uid", int(entry.uid))?
            .set("uuid", entry.uuid.as_str())?
            .set("claimedBy", entry.claimed_by.as_str())?
            .set("leaseExpires", entry.lease_expires)?
            .set("requeueCount", i64::from(entry.requeue_count))?
            .set("reason", entry.reason)?
            .set("wokenUp", entry.woken_up)?
            .set("confirmed", entry.confirmed)?;
        list.push(row.finish())?;
    }
    Ok(list.finish())
}

#[php_impl]
impl NrLlmReapReport {
    /// The runs that are back on the queue.
    fn requeued(&self) -> PhpResult<ZBox<ZendHashTable>> {
        list(&self.report.requeued)
    }

    /// The runs that ended, with the termination reason.
    fn dead_lettered(&self) -> PhpResult<ZBox<ZendHashTable>> {
        list(&self.report.dead_lettered)
    }

    /// The runs that were passed over, and why: renewed, contended or excepted.
    fn skipped(&self) -> PhpResult<ZBox<ZendHashTable>> {
        list(&self.report.skipped)
    }

    /// Was nothing done, only told?
    fn is_dry_run(&self) -> bool {
        self.report.dry_run
    }

    /// Were stale candidates left that this call did not look at?
    fn has_more(&self) -> bool {
        self.report.has_more
    }

    /// How many runs the report names.
    fn count(&self) -> i64 {
        let named = self.report.requeued.len()
            + self.report.dead_lettered.len()
            + self.report.skipped.len();
        int(named as u64)
    }

    /// All of it, for `json_encode()`.
    fn json_serialize(&self) -> PhpResult<ZBox<ZendHashTable>> {
        Ok(Builder::with_capacity(5)
            .set("requeued", self.requeued()?)?
            .set("deadLettered", self.dead_lettered()?)?
            .set("skipped", self.skipped()?)?
            .set("dryRun", self.report.dry_run)?
            .set("hasMore", self.report.has_more)?
            .finish())
    }

    /// Not cloneable: the engine refuses to call it.
    #[php(vis = "private", name = "__clone")]
    fn __clone(&self) {}
}
