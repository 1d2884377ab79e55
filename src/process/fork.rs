//! Has this process been forked since? The answer costs one load, where asking for the process id costs a system call.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use crate::store::error::{Error, Result};

/// Counts the forks between the process that first kept a lease and this one. Only the handler writes it, in a child that has
/// one thread.
static GENERATION: AtomicU32 = AtomicU32::new(0);
/// Handlers are inherited: a child must not register a second one.
static REGISTERED: AtomicBool = AtomicBool::new(false);

extern "C" fn in_the_child() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
}

/// Counts forks from now on, and returns the count so far.
pub(super) fn watch() -> Result<u32> {
    if !REGISTERED.swap(true, Ordering::AcqRel) {
        // SAFETY: the handler touches one atomic, and stays mapped as long as the process (the library is linked with nodelete).
        let code = unsafe { libc::pthread_atfork(None, None, Some(in_the_child)) };
        if code != 0 {
            REGISTERED.store(false, Ordering::Release);
            return Err(Error::connection(format!(
                "cannot watch for forks, without which no lease can be kept: {}",
                std::io::Error::from_raw_os_error(code)
            )));
        }
    }
    Ok(generation())
}

/// The count; equal to that of a value's making in the same process alone.
pub(super) fn generation() -> u32 {
    GENERATION.load(Ordering::Relaxed)
}
