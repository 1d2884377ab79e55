//! The threads of this crate never run the host's signal handlers: all signals but those of faults
//! are blocked in them from their start.

use std::io;

/// Starts a thread with all signals but those of faults blocked: the mask is set around the spawn,
/// so the thread starts with it, and no handler of PHP or of user code ever runs there.
///
/// # Errors
///
/// As [`std::thread::Builder::spawn`].
pub fn spawn_masked<T: Send + 'static>(
    name: &str,
    body: impl FnOnce() -> T + Send + 'static,
) -> io::Result<std::thread::JoinHandle<T>> {
    let _mask = Masked::block()?;
    std::thread::Builder::new().name(name.to_owned()).spawn(body)
}

/// Starts a thread of a resolver by [`spawn_masked`].
pub(crate) fn start_masked(body: Box<dyn FnOnce() + Send>) -> io::Result<()> {
    spawn_masked("nrllm-resolver", body).map(drop)
}

/// Restores the mask of the calling thread when dropped.
struct Masked {
    before: libc::sigset_t,
}

impl Masked {
    fn block() -> io::Result<Self> {
        // SAFETY: both sets are plain data, filled by the calls before they are read.
        unsafe {
            let mut all: libc::sigset_t = std::mem::zeroed();
            let mut before: libc::sigset_t = std::mem::zeroed();
            libc::sigfillset(&raw mut all);
            for fault in [
                libc::SIGSEGV,
                libc::SIGBUS,
                libc::SIGFPE,
                libc::SIGILL,
                libc::SIGABRT,
                libc::SIGTRAP,
                libc::SIGSYS,
            ] {
                libc::sigdelset(&raw mut all, fault);
            }
            match libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before) {
                0 => Ok(Self { before }),
                code => Err(io::Error::from_raw_os_error(code)),
            }
        }
    }
}

impl Drop for Masked {
    fn drop(&mut self) {
        // SAFETY: `before` was filled by block() on this thread.
        unsafe {
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.before, std::ptr::null_mut());
        }
    }
}
