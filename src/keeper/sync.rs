//! The synchronisation primitives of the keeper: those of `std`, and in the check of the memory
//! orderings (`cargo test --features loom --lib`) those of loom, on which one ordering can be
//! weakened.

#[cfg(not(all(test, feature = "loom")))]
pub(super) use std::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering,
};
#[cfg(not(all(test, feature = "loom")))]
pub(super) use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
#[cfg(not(all(test, feature = "loom")))]
pub(super) use std::thread::yield_now;

#[cfg(all(test, feature = "loom"))]
pub(super) use self::checked::*;

// Each type has every operation, also where it is not called.
#[allow(dead_code, unreachable_pub)]
#[cfg(all(test, feature = "loom"))]
mod checked {
    use std::collections::BTreeSet;
    use std::panic::Location;
    use std::sync::{LockResult, Mutex as Plain};
    use std::time::Duration;

    pub(in crate::keeper) use loom::sync::{Mutex, MutexGuard};
    pub(in crate::keeper) use loom::thread::yield_now;
    pub(in crate::keeper) use std::sync::PoisonError;
    pub(in crate::keeper) use std::sync::atomic::Ordering;

    /// The places of the source whose ordering is stronger than relaxed, as `file:line:column`.
    pub(in crate::keeper) static STRONG: Plain<BTreeSet<String>> = Plain::new(BTreeSet::new());

    loom::lazy_static! {
        /// Every operation writes it, and so depends on every other one: loom's search skips orders
        /// of operations that it considers independent, also where a thread has read a variable
        /// before it writes it. Relaxed, it orders nothing.
        static ref TURN: loom::sync::atomic::AtomicBool = loom::sync::atomic::AtomicBool::new(false);
    }

    /// The ordering that an operation at `place` has: relaxed where the environment names the
    /// place.
    fn ordering(place: &Location<'_>, ordering: Ordering) -> Ordering {
        TURN.swap(true, Ordering::Relaxed);
        if ordering == Ordering::Relaxed {
            return ordering;
        }
        let place = format!("{}:{}:{}", place.file(), place.line(), place.column());
        let weakened = std::env::var("NRLLM_WEAKENED").is_ok_and(|weakened| weakened == place);
        STRONG.lock().unwrap_or_else(PoisonError::into_inner).insert(place);
        if weakened { Ordering::Relaxed } else { ordering }
    }

    macro_rules! atomic {
        ($name:ident$(<$parameter:ident>)?, $value:ty) => {
            #[derive(Debug, Default)]
            pub struct $name$(<$parameter>)?(loom::sync::atomic::$name$(<$parameter>)?);

            impl$(<$parameter>)? $name$(<$parameter>)? {
                pub fn new(value: $value) -> Self {
                    Self(loom::sync::atomic::$name::new(value))
                }

                #[track_caller]
                pub fn load(&self, order: Ordering) -> $value {
                    self.0.load(ordering(Location::caller(), order))
                }

                #[track_caller]
                pub fn store(&self, value: $value, order: Ordering) {
                    // A swap whose value is dropped. loom leaves it open whether a store comes
                    // before or after a read-modify-write that ran before it, and would report
                    // executions that no machine has.
                    self.0.swap(value, ordering(Location::caller(), order));
                }

                #[track_caller]
                pub fn swap(&self, value: $value, order: Ordering) -> $value {
                    self.0.swap(value, ordering(Location::caller(), order))
                }

                #[track_caller]
                pub fn compare_exchange(
                    &self,
                    current: $value,
                    new: $value,
                    success: Ordering,
                    failure: Ordering,
                ) -> Result<$value, $value> {
                    let success = ordering(Location::caller(), success);
                    let failure = if success == Ordering::Relaxed { success } else { failure };
                    // A comparison that fails is a load, and may return an older value; loom's
                    // returns the newest.
                    let seen = self.0.load(failure);
                    if seen != current {
                        return Err(seen);
                    }
                    self.0.compare_exchange(current, new, success, failure)
                }

                #[track_caller]
                pub fn compare_exchange_weak(
                    &self,
                    current: $value,
                    new: $value,
                    success: Ordering,
                    failure: Ordering,
                ) -> Result<$value, $value> {
                    self.compare_exchange(current, new, success, failure)
                }
            }
        };
    }
    atomic!(AtomicBool, bool);
    atomic!(AtomicU8, u8);
    atomic!(AtomicU32, u32);
    atomic!(AtomicU64, u64);
    atomic!(AtomicPtr<T>, *mut T);

    atomic!(AtomicUsize, usize);

    impl AtomicBool {
        /// A read that is not atomic, in place of a free(): loom reports a store at the same time.
        pub fn touch(&self) {
            // SAFETY: loom's own value, which lives in its execution; a race is a report, not
            // undefined.
            unsafe { self.0.unsync_load() };
        }
    }

    impl AtomicUsize {
        #[track_caller]
        pub fn fetch_add(&self, value: usize, order: Ordering) -> usize {
            self.0.fetch_add(value, ordering(Location::caller(), order))
        }

        #[track_caller]
        pub fn fetch_sub(&self, value: usize, order: Ordering) -> usize {
            self.0.fetch_sub(value, ordering(Location::caller(), order))
        }
    }

    impl AtomicU64 {
        #[track_caller]
        pub fn fetch_add(&self, value: u64, order: Ordering) -> u64 {
            self.0.fetch_add(value, ordering(Location::caller(), order))
        }

        #[track_caller]
        pub fn fetch_max(&self, value: u64, order: Ordering) -> u64 {
            self.0.fetch_max(value, ordering(Location::caller(), order))
        }
    }

    /// Without time limits: the checker has no clock.
    #[derive(Debug)]
    pub(in crate::keeper) struct Condvar(loom::sync::Condvar);

    impl Condvar {
        pub fn new() -> Self {
            Self(loom::sync::Condvar::new())
        }

        pub fn notify_all(&self) {
            self.0.notify_all();
        }

        pub fn wait_timeout_while<'a, T>(
            &self,
            mut guard: MutexGuard<'a, T>,
            _limit: Duration,
            mut condition: impl FnMut(&mut T) -> bool,
        ) -> LockResult<MutexGuard<'a, T>> {
            while condition(&mut guard) {
                guard = self.0.wait(guard)?;
            }
            Ok(guard)
        }
    }
}
