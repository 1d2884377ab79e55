//! Interrupts running code after a loss: the loss is noticed on any thread, and thrown on the
//! thread that runs the host's code, at a safe point of that code.
//!
//! The host has a flag per thread that requests a call at the next safe point. Signals, time limits
//! and profilers share it, so it is set here and never cleared, and a raised flag is no proof that
//! it was raised here: `pending` is. The leases alone know which losses are due, so a late raise
//! finds nothing in the next request.

use std::ptr::{NonNull, null_mut};

use super::sync::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering, yield_now};
use crate::process::fork;

/// Signals losses from the threads that notice them to one thread of the host. It takes no lock and
/// allocates nothing.
///
/// One value per host thread. Its leases share it (`keep()` takes it), and it may outlive the
/// thread.
#[derive(Debug, Default)]
pub struct InterruptSignal {
    /// The host's flag while a request keeps leases that interrupt, otherwise null.
    flag: AtomicPtr<AtomicBool>,
    /// Number of threads that may be storing to the flag.
    raising: AtomicUsize,
    /// Whether a loss may be due.
    pending: AtomicBool,
    /// The fork count of the process that armed it.
    generation: AtomicU32,
}

impl InterruptSignal {
    /// Returns a signal that reaches no request yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// On the host's thread: from now on [`InterruptSignal::raise`] reaches this request.
    ///
    /// # Safety
    ///
    /// `flag` stays valid until [`InterruptSignal::request_ended`] has returned, or for ever; every
    /// access to it is atomic.
    pub unsafe fn arm(&self, flag: NonNull<AtomicBool>) {
        let generation = fork::generation();
        if self.generation.swap(generation, Ordering::AcqRel) != generation {
            // A thread of the parent process may have been raising at the moment of the fork.
            self.raising.store(0, Ordering::Release);
        }
        self.flag.store(flag.as_ptr(), Ordering::Release);
    }

    /// On the host's thread: the request ends, before its leases do. No raise reaches the next
    /// request, and none touches the flag once this has returned.
    pub fn request_ended(&self) {
        self.flag.swap(null_mut(), Ordering::AcqRel);
        // Reading and writing in one step orders this before or after each raise: a raise that
        // comes later finds no flag, one that came earlier is waited for. It is one store long. In
        // a forked child no thread of the parent exists that could be waited for.
        while self.generation.load(Ordering::Acquire) == fork::generation()
            && self.raising.fetch_add(0, Ordering::AcqRel) != 0
        {
            yield_now();
        }
        self.pending.store(false, Ordering::Release);
    }

    /// Requests a call from the host. On any thread.
    pub fn raise(&self) {
        // In this order: at the host's call something has to be pending.
        self.post();
        self.ask();
    }

    /// Requests a call from the host for what is pending. On any thread.
    pub fn ask(&self) {
        self.raising.fetch_add(1, Ordering::AcqRel);
        if let Some(flag) = self.target() {
            // SAFETY: arm()'s caller keeps the flag valid until request_ended() has returned, which
            // waits for `raising` to become 0.
            unsafe { flag.as_ref() }.store(true, Ordering::SeqCst);
        }
        self.raising.fetch_sub(1, Ordering::AcqRel);
    }

    /// Marks that a loss may be due, without a call from the host.
    pub fn post(&self) {
        self.pending.store(true, Ordering::Release);
    }

    pub(super) fn target(&self) -> Option<NonNull<AtomicBool>> {
        NonNull::new(self.flag.load(Ordering::Acquire))
    }

    /// Returns whether a loss may be due.
    pub fn is_pending(&self) -> bool {
        self.pending.load(Ordering::Acquire)
    }

    /// At the host's call, on its thread: returns whether a loss may be due, once per raise. The
    /// caller asks the leases afterwards, so that a loss that comes meanwhile raises again.
    pub fn take(&self) -> bool {
        // One step: a raise is either seen here, with the loss behind it, or stays pending.
        self.pending.swap(false, Ordering::AcqRel)
    }
}

#[cfg(test)]
#[cfg(not(feature = "loom"))]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn no_raise_touches_the_flag_of_a_request_that_has_ended() {
        let signal = Arc::new(InterruptSignal::new());
        let stop = Arc::new(AtomicBool::new(false));
        let raiser = std::thread::spawn({
            let (signal, stop) = (Arc::clone(&signal), Arc::clone(&stop));
            move || {
                while !stop.load(Ordering::Relaxed) {
                    signal.raise();
                }
            }
        });
        for _ in 0..2_000 {
            let mut flag = Box::new(AtomicBool::new(false));
            // SAFETY: the flag is freed after request_ended() has returned.
            unsafe { signal.arm(NonNull::from(&mut *flag)) };
            signal.request_ended();
            let before = *flag.get_mut();
            std::hint::black_box(&mut flag);
            assert_eq!(*flag.get_mut(), before);
        }
        stop.store(true, Ordering::Relaxed);
        raiser.join().unwrap();
        signal.request_ended();
        assert!(!signal.is_pending() && signal.target().is_none());
    }

    #[test]
    fn a_child_does_not_wait_for_a_thread_of_its_parent() {
        let signal = InterruptSignal::new();
        let flag = AtomicBool::new(false);
        // SAFETY: the flag outlives the signal's use.
        unsafe { signal.arm(NonNull::from(&flag)) };
        // As a child finds it: the parent was raising at the moment of the fork.
        signal.raising.store(1, Ordering::Relaxed);
        signal.generation.store(fork::generation().wrapping_sub(1), Ordering::Relaxed);
        signal.request_ended();
        // SAFETY: as above.
        unsafe { signal.arm(NonNull::from(&flag)) };
        signal.raise();
        signal.request_ended();
        assert!(flag.load(Ordering::Relaxed));
    }
}
