//! Identities of this process: the same for a segment as long as the process lives, another after a fork (rule 5).

use super::fork::PerProcess;
use crate::domain::owner;
use crate::domain::validate::ArgumentError;

/// The process id, and the nonce that makes it unique.
static UNIQUE: PerProcess<(u32, String)> = PerProcess::new();

/// The identity of this process for a segment: `<segment>:<host>:<pid>:<nonce>`, at most 64 bytes.
///
/// # Errors
///
/// A wrong segment.
pub fn of_this_process(segment: &str) -> Result<String, ArgumentError> {
    let (pid, nonce) = UNIQUE.get_or_make(|process| {
        // The kernel's randomness and not a generator of ours: a generator's state would be shared by forked processes.
        let random = getrandom::u64().map_err(|error| {
            ArgumentError::new("segment", format!("no randomness for an identity: {error}"))
        })?;
        Ok((process.pid(), format!("{random:016x}")))
    })?;
    owner::identity(segment, &hostname(), *pid, nonce)
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
