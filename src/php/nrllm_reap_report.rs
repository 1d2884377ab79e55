//! `NrLlmReapReport`: the report of a reap.

use ext_php_rs::flags::ClassFlags;
use ext_php_rs::prelude::*;
use ext_php_rs::zend::ce;

use super::convert::int;
use super::nrllm_failure::json_serializable;
use super::objects::Compare;
use super::serialize::{self, Array};
use crate::ops::reap::Report;
use crate::views::{Entries, ReportView};

/// The report of a reap, with every run.
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

#[php_impl]
impl NrLlmReapReport {
    /// Returns the runs that are back on the queue.
    fn requeued(&self) -> PhpResult<Array> {
        serialize::array(&Entries(&self.report.requeued))
    }

    /// Returns the runs that ended, with the termination reason.
    fn dead_lettered(&self) -> PhpResult<Array> {
        serialize::array(&Entries(&self.report.dead_lettered))
    }

    /// Returns the runs that were skipped, with the reason.
    fn skipped(&self) -> PhpResult<Array> {
        serialize::array(&Entries(&self.report.skipped))
    }

    /// Returns whether this was a dry run.
    fn is_dry_run(&self) -> bool {
        self.report.dry_run
    }

    /// Returns whether stale candidates were left that this call did not examine.
    fn has_more(&self) -> bool {
        self.report.has_more
    }

    /// Returns the number of runs in the report.
    fn count(&self) -> i64 {
        let named = self.report.requeued.len()
            + self.report.dead_lettered.len()
            + self.report.skipped.len();
        int(named as u64)
    }

    /// Returns all values, for `json_encode()`.
    fn json_serialize(&self) -> PhpResult<Array> {
        serialize::array(&ReportView::new(&self.report))
    }

    /// Not cloneable: the engine refuses to call it.
    #[php(vis = "private", name = "__clone")]
    fn __clone(&self) {}
}
