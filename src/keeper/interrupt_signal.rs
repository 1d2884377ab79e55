//! How a loss reaches the code that is running: noticed on any thread, thrown on the one that runs the host's code, at a safe point of its own.
//!
//! The host has a flag that asks for a call at the next safe point. It is shared with everybody who interrupts the host, so it is set here and
//! never cleared, and a raised flag is no proof that it was raised here: that is what `pending` is for. What is to be told is known by the leases
//! alone, so a late raise finds nothing in the next request.

use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

/// The way from the threads that notice a loss to the host's thread. Neither locks nor allocates.
#[derive(Debug, Default)]
pub struct InterruptSignal {
    /// The host's flag while a request keeps leases that interrupt, else null.
    flag: AtomicPtr<AtomicBool>,
    /// There may be a loss to tell.
    pending: AtomicBool,
}

impl InterruptSignal {
    /// Reaches no request yet.
    #[must_use]
    pub const fn new() -> Self {
        Self { flag: AtomicPtr::new(std::ptr::null_mut()), pending: AtomicBool::new(false) }
    }

    /// On the host's thread: from now on [`InterruptSignal::raise`] reaches this request.
    pub fn arm(&self, flag: &'static AtomicBool) {
        self.flag.store(std::ptr::from_ref(flag).cast_mut(), Ordering::Release);
    }

    /// The request ends, before its leases do: no raise reaches the next one.
    pub fn request_ended(&self) {
        self.flag.store(std::ptr::null_mut(), Ordering::Release);
        self.pending.store(false, Ordering::Release);
    }

    /// Asks the host for a call. On any thread: two stores and nothing else.
    pub fn raise(&self) {
        // In this order: at the host's call there has to be something pending.
        self.post();
        if let Some(flag) = self.target() {
            flag.store(true, Ordering::SeqCst);
        }
    }

    pub(super) fn post(&self) {
        self.pending.store(true, Ordering::Release);
    }

    pub(super) fn target(&self) -> Option<&'static AtomicBool> {
        // SAFETY: null, or made from the reference that arm() was given.
        unsafe { self.flag.load(Ordering::Acquire).as_ref() }
    }

    /// May there be a loss to tell?
    pub fn is_pending(&self) -> bool {
        self.pending.load(Ordering::Acquire)
    }

    /// At the host's call, on its thread: may there be a loss to tell? Whoever is told so asks the leases after it: a loss that comes meanwhile
    /// raises again.
    pub fn take(&self) -> bool {
        // One step: a raise is either seen here, with the loss behind it, or stays pending.
        self.pending.swap(false, Ordering::AcqRel)
    }
}
