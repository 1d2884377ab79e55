//! Identities of this process: the same for a segment as long as the process lives, another after a fork (rule 5).

use std::sync::atomic::{AtomicPtr, Ordering};

use super::fork::Process;
use crate::run::argument::ArgumentError;
use crate::run::identity;

/// What makes this process unique, tagged with it.
struct Nonce {
    process: Process,
    text: String,
}

/// The nonce of the process that last asked; replaced after a fork, never freed.
static CURRENT: AtomicPtr<Nonce> = AtomicPtr::new(std::ptr::null_mut());

fn nonce() -> Result<&'static Nonce, ArgumentError> {
    let process = Process::this();
    loop {
        let current = CURRENT.load(Ordering::Acquire);
        // SAFETY: the pointer is null or came from Box::into_raw below and is never freed once published.
        if let Some(nonce) = unsafe { current.as_ref() }
            && nonce.process == process
        {
            return Ok(nonce);
        }
        // The kernel's randomness and not a generator of ours: a generator's state would be shared by forked processes.
        let random = getrandom::u64().map_err(|error| ArgumentError::new("segment", format!("no randomness for an identity: {error}")))?;
        let fresh = Box::into_raw(Box::new(Nonce { process, text: format!("{random:016x}") }));
        if CURRENT.compare_exchange(current, fresh, Ordering::AcqRel, Ordering::Acquire).is_err() {
            // SAFETY: another thread was faster, `fresh` was published nowhere.
            drop(unsafe { Box::from_raw(fresh) });
        }
    }
}

/// The identity of this process for a segment: `<segment>:<host>:<pid>:<nonce>`, at most 64 bytes.
///
/// # Errors
///
/// A wrong segment.
pub fn of_this_process(segment: &str) -> Result<String, ArgumentError> {
    let nonce = nonce()?;
    identity::identity(segment, &hostname(), nonce.process.pid(), &nonce.text)
}

fn hostname() -> String {
    let mut buffer = [0_u8; 256];
    // SAFETY: the buffer is writable for its whole length; the last byte stays NUL.
    let code = unsafe { libc::gethostname(buffer.as_mut_ptr().cast(), buffer.len() - 1) };
    let name = buffer.split(|&byte| byte == 0).next().unwrap_or_default();
    if code != 0 || name.is_empty() {
        return "localhost".to_owned();
    }
    String::from_utf8_lossy(name).into_owned()
}
