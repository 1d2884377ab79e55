//! Threads as owners: a thread-safe PHP runs several requests in one process, each on its own
//! thread.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The number of a thread, unique within the process and never given to a second thread.
///
/// A number does not name the process: the thread that forked has the same number in the child.
/// State that must differ between the two is in a [`super::fork::PerProcess`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ThreadNumber(u64);

impl ThreadNumber {
    /// Returns the thread as a number.
    pub(crate) const fn get(self) -> u64 {
        self.0
    }

    /// Returns the calling thread.
    pub(crate) fn this() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        thread_local! {
            // Without a destructor, so that it can be read while the thread ends.
            static THIS: Cell<u64> = const { Cell::new(0) };
        }
        THIS.with(|this| {
            if this.get() == 0 {
                this.set(NEXT.fetch_add(1, Ordering::Relaxed));
            }
            Self(this.get())
        })
    }
}

/// Returns the system's id of the calling thread; 0 where it is not known.
pub(crate) fn system_id() -> i32 {
    #[cfg(target_os = "linux")]
    return rustix::thread::gettid().as_raw_nonzero().get();
    #[cfg(not(target_os = "linux"))]
    0
}

/// Waits in bounded time until the system no longer lists a thread of this process that has
/// finished. Joining a thread returns a moment earlier.
pub(crate) fn wait_until_gone(system_id: i32) {
    /// How long a thread that has finished may stay visible to the system.
    const VANISHING: Duration = Duration::from_millis(5);
    if !cfg!(target_os = "linux") {
        return;
    }
    let Some(id) = rustix::process::Pid::from_raw(system_id) else {
        return;
    };
    let start = Instant::now();
    // A thread id names a thread to this call, as a process id names a process. No signal is sent.
    while start.elapsed() < VANISHING && rustix::process::test_kill_process(id).is_ok() {
        std::thread::yield_now();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_has_one_number_and_shares_it_with_no_other() {
        let this = ThreadNumber::this();
        assert_eq!(this, ThreadNumber::this());
        let others: Vec<_> = (0..3)
            .map(|_| std::thread::spawn(ThreadNumber::this))
            .map(|thread| thread.join().unwrap())
            .collect();
        for (index, number) in others.iter().enumerate() {
            assert!(*number != this && !others[..index].contains(number));
        }
    }
}
