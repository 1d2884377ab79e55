//! The clock of leases. It is monotonic and continues while the machine is suspended (rule 17).

/// Nanoseconds in a millisecond.
pub(crate) const MILLISECOND: u64 = 1_000_000;
/// Nanoseconds in a second.
pub(crate) const SECOND: u64 = 1_000_000_000;

// On macOS this clock counts sleep; CLOCK_UPTIME_RAW does not.
#[cfg(target_os = "macos")]
const COUNTS_SUSPEND: libc::clockid_t = libc::CLOCK_MONOTONIC;
#[cfg(not(target_os = "macos"))]
const COUNTS_SUSPEND: libc::clockid_t = libc::CLOCK_BOOTTIME;

/// Returns the nanoseconds since a moment before the process started. No system call on Linux.
///
/// Calls the C library, whose function tests replace to simulate suspend and wrong clocks.
pub(crate) fn now() -> u64 {
    #[cfg(test)]
    if let Some(fixed) = FIXED.get() {
        return fixed;
    }
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is writable. The call cannot fail: the clock exists since Linux 2.6.39.
    unsafe {
        libc::clock_gettime(COUNTS_SUSPEND, &raw mut time);
    }
    // Neither is negative on a monotonic clock.
    time.tv_sec.unsigned_abs().saturating_mul(SECOND).saturating_add(time.tv_nsec.unsigned_abs())
}

#[cfg(test)]
thread_local! {
    /// The time of a test that sets its own, for the test's thread only.
    pub(crate) static FIXED: std::cell::Cell<Option<u64>> = const { std::cell::Cell::new(None) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_never_goes_back() {
        let mut before = now();
        assert!(before > 0);
        for _ in 0..10_000 {
            let after = now();
            assert!(after >= before);
            before = after;
        }
    }
}
