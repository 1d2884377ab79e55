//! The entries of our classes, set when the module starts: one that is started again gets new ones.
//! Code that needs a class reads its entry here, so that no class depends on another.

use std::sync::atomic::{AtomicPtr, Ordering};

use ext_php_rs::zend::ClassEntry;

/// The entry of one class.
pub(super) struct Entry(AtomicPtr<ClassEntry>);

impl Entry {
    const fn new() -> Self {
        Self(AtomicPtr::new(std::ptr::null_mut()))
    }

    /// Sets the entry, at module start.
    pub(super) fn set(&self, entry: *mut ClassEntry) {
        self.0.store(entry, Ordering::Release);
    }

    /// The entry; `None` before module start.
    pub(super) fn get(&self) -> Option<&'static ClassEntry> {
        // SAFETY: null before module start, else an entry that the engine keeps until the module
        // ends. All threads share the entries of native classes.
        unsafe { self.0.load(Ordering::Acquire).as_ref() }
    }
}

pub(super) static RUNTIME: Entry = Entry::new();
pub(super) static EXCEPTION: Entry = Entry::new();
pub(super) static CONFIGURATION: Entry = Entry::new();
pub(super) static CONNECTION: Entry = Entry::new();
pub(super) static QUERY: Entry = Entry::new();
pub(super) static LEASE_LOST: Entry = Entry::new();
pub(super) static RUN_CANCELLED: Entry = Entry::new();
