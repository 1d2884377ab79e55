//! Identities: the same for a segment as long as the process lives, another after a fork, and
//! another on each thread (rule 5).
//!
//! In a thread-safe PHP each thread is a worker. If two threads shared an identity, a run that one
//! of them has lost and the other has claimed would pass the guards of both.

use super::fork::PerProcess;
use super::thread::ThreadNumber;
use crate::domain::owner;
use crate::domain::validate::ArgumentError;

/// The process id, and the random number that makes the identity unique.
static UNIQUE: PerProcess<(u32, u64)> = PerProcess::new();

/// Returns the identity of the calling thread of this process for a segment:
/// `<segment>:<host>:<pid>:<nonce>`, at most 64 bytes.
///
/// # Errors
///
/// A wrong segment.
pub fn of_this_thread(segment: &str) -> Result<String, ArgumentError> {
    let (pid, random) = UNIQUE.get_or_make(|process| {
        // The random number comes from the kernel: forked processes would share the state of a
        // generator.
        let random = getrandom::u64().map_err(|error| {
            ArgumentError::new("segment", format!("no randomness for an identity: {error}"))
        })?;
        Ok((process.pid(), random))
    })?;
    let nonce = random.wrapping_add(ThreadNumber::this().get());
    owner::identity(segment, &hostname(), *pid, &format!("{nonce:016x}"))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p05_each_thread_has_an_identity_and_keeps_it() {
        let this = of_this_thread("worker").unwrap();
        assert_eq!(this, of_this_thread("worker").unwrap());
        let other = std::thread::spawn(|| of_this_thread("worker").unwrap()).join().unwrap();
        assert_ne!(this, other);
    }
}
