//! Identities of lease holders: `<segment>:<host>:<pid>:<nonce>`.

use super::validate::ArgumentError;

/// The longest identity, in bytes: what the column `claimed_by` holds.
pub const MAX_BYTES: usize = 64;
/// The longest segment, in bytes.
pub const MAX_SEGMENT_BYTES: usize = 24;

/// Builds an identity. The host is shortened where the whole would be too long, never the tail, and
/// bytes of it that could not be stored everywhere are replaced: two processes must not share an
/// identity because a hostname is long.
///
/// # Errors
///
/// A segment that is empty, longer than 24 bytes, or holds anything but printable ASCII.
pub fn identity(segment: &str, host: &str, pid: u32, nonce: &str) -> Result<String, ArgumentError> {
    if segment.is_empty() || segment.len() > MAX_SEGMENT_BYTES {
        return Err(ArgumentError::new(
            "segment",
            format!("must be 1 to {MAX_SEGMENT_BYTES} bytes long, {} given", segment.len()),
        ));
    }
    if !segment.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(ArgumentError::new(
            "segment",
            "must be printable ASCII without blanks, like \"worker\"",
        ));
    }
    let tail = format!(":{pid}:{nonce}");
    let host_bytes = MAX_BYTES.saturating_sub(segment.len() + 1 + tail.len());
    let host: String = host
        .bytes()
        .take(host_bytes)
        .map(|byte| {
            if byte.is_ascii_alphanumeric() || b"-._".contains(&byte) {
                char::from(byte)
            } else {
                '_'
            }
        })
        .collect();
    Ok(format!("{segment}:{host}{tail}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_is_shortened_and_never_the_tail() {
        let short = identity("worker", "web-01", 4711, "0123456789abcdef").unwrap();
        assert_eq!(short, "worker:web-01:4711:0123456789abcdef");
        let long =
            identity(&"s".repeat(24), &"h".repeat(200), u32::MAX, "0123456789abcdef").unwrap();
        assert_eq!(long.len(), 64);
        assert!(long.ends_with(":4294967295:0123456789abcdef"), "{long}");
    }

    #[test]
    fn a_host_of_any_bytes_stays_storable() {
        let odd = identity("worker", "w\u{e9}b 01\0", 1, "ff").unwrap();
        assert_eq!(odd, "worker:w__b_01_:1:ff");
    }

    #[test]
    fn segments_are_checked() {
        for bad in ["", &"x".repeat(25), "a b", "\u{e9}", "a\0"] {
            assert_eq!(identity(bad, "h", 1, "n").unwrap_err().argument, "segment", "{bad:?}");
        }
    }
}
