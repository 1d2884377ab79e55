//! Detects forks. Frequent checks compare the count of forks alone, which is one load. Checks of
//! inherited state compare the process id as well, which is a system call.

use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};

use crate::db::socket::close_inherited;
use crate::error::{Error, Result};

/// Counts the forks between the first process that called `watch()` and this one. Only the handler
/// writes it, in a child that has one thread.
static GENERATION: AtomicU32 = AtomicU32::new(0);
/// Handlers are inherited: a child must not register a second one.
static REGISTERED: AtomicBool = AtomicBool::new(false);

extern "C" fn in_the_child() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
    close_inherited();
}

/// Starts counting forks, and returns the count so far.
pub(crate) fn watch() -> Result<u32> {
    if !REGISTERED.load(Ordering::Relaxed) && !REGISTERED.swap(true, Ordering::AcqRel) {
        // SAFETY: the handler touches atomics, closes descriptors, and stays mapped as long as the
        // process: on Linux the library is linked with nodelete (build.rs); elsewhere this is not
        // ensured.
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

/// Returns the count. It equals the count at a value's creation only in the process that created
/// the value.
pub(crate) fn generation() -> u32 {
    GENERATION.load(Ordering::Relaxed)
}

/// A process, as the owner of the values that it created.
///
/// An id alone does not identify a process: a child has its parent's id where it is the first of a
/// new pid namespace and the parent is that of another, or where the parent was forked again after
/// the first holder of the id had ended. The count alone does not either: a child that was made by
/// a bare system call has run no handler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Process {
    pid: u32,
    generation: u32,
}

impl Process {
    /// Returns the calling process. Forks are counted from the first call on; where the system
    /// refuses the registration, the id alone identifies the process.
    pub(crate) fn this() -> Self {
        let generation = watch().unwrap_or_else(|_| generation());
        Self { pid: std::process::id(), generation }
    }

    /// Returns its id.
    pub(crate) const fn pid(self) -> u32 {
        self.pid
    }

    /// Returns the process as a number, which is never 0.
    #[cfg(any(test, feature = "ffi"))]
    pub(crate) fn number(self) -> u64 {
        u64::from(self.pid) << 32 | u64::from(self.generation)
    }
}

/// A value that each process creates for itself. After a fork the child replaces the pointer by its
/// own value, and leaves the parent's value unchanged. So a value is never freed, and a child never
/// touches a lock in its parent's value, which could have been held at the moment of the fork.
pub(crate) struct PerProcess<T: 'static>(AtomicPtr<(Process, T)>);

impl<T: Send + Sync> PerProcess<T> {
    pub(crate) const fn new() -> Self {
        Self(AtomicPtr::new(null_mut()))
    }

    /// Returns the value of the calling process, and creates it if there is none.
    pub(crate) fn get_or_make<E>(
        &self,
        make: impl Fn(Process) -> Result<T, E>,
    ) -> Result<&'static T, E> {
        let this = Process::this();
        loop {
            let current = self.0.load(Ordering::Acquire);
            if let Some((_, value)) =
                Self::published(current).filter(|(process, _)| *process == this)
            {
                return Ok(value);
            }
            let fresh = Box::into_raw(Box::new((this, make(this)?)));
            if self.0.compare_exchange(current, fresh, Ordering::AcqRel, Ordering::Acquire).is_err()
            {
                // SAFETY: another thread was faster, `fresh` was published nowhere.
                drop(unsafe { Box::from_raw(fresh) });
            }
        }
    }

    /// Returns the value of the calling process, if it has one.
    pub(crate) fn get(&self) -> Option<&'static T> {
        let (process, value) = Self::published(self.0.load(Ordering::Acquire))?;
        (*process == Process::this()).then_some(value)
    }

    fn published(pointer: *mut (Process, T)) -> Option<&'static (Process, T)> {
        // SAFETY: null, or from Box::into_raw in get_or_make(), and never freed once it was
        // published.
        unsafe { pointer.as_ref() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_its_id_and_the_forks_that_led_to_it() {
        let this = Process::this();
        assert_eq!(this, Process::this());
        let child = Process { generation: this.generation.wrapping_add(1), ..this };
        let bare = Process { pid: this.pid + 1, ..this };
        assert!(
            child != this
                && bare != this
                && child.number() != this.number()
                && bare.number() != this.number()
        );
        assert_ne!(this.number(), 0);
    }

    #[test]
    fn what_a_process_has_made_is_its_own_and_made_once() {
        static OWN: PerProcess<u32> = PerProcess::new();
        let make = |number| {
            OWN.get_or_make(|process| if process.pid() == 0 { Err(()) } else { Ok(number) })
        };
        assert_eq!(OWN.get(), None);
        assert_eq!(OWN.get_or_make(|_| Err("no")), Err("no"));
        assert_eq!((OWN.get(), make(7), make(8), OWN.get()), (None, Ok(&7), Ok(&7), Some(&7)));
        // The state that a child inherits.
        let parent =
            Process { generation: Process::this().generation.wrapping_sub(1), ..Process::this() };
        OWN.0.store(Box::into_raw(Box::new((parent, 9))), Ordering::Release);
        assert_eq!((OWN.get(), make(10), OWN.get()), (None, Ok(&10), Some(&10)));
    }
}
