//! Reads from a reply the number of matched rows, and whether the reply belongs to the statement
//! that was sent.

use mysql_async::{Conn, DriverError};

/// The reply to a statement that writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reply {
    /// The number of matched rows, where the reply's text contains it. Never the affected-rows
    /// count, which servers and proxies count in two ways.
    pub matched: Option<u64>,
    /// The first id that an insert was given by the server; 0 where there is none.
    pub insert_id: u64,
}

impl Reply {
    /// Reads the reply that the connection received last.
    pub(super) fn of(conn: &Conn) -> Self {
        Self {
            matched: text(conn).and_then(first_integer),
            insert_id: conn.last_insert_id().unwrap_or(0),
        }
    }
}

/// Identifies the OK packet that the driver holds, to distinguish the reply to a statement from the
/// reply to an earlier one.
///
/// The driver ignores an OK packet that it cannot parse and keeps the one before, and it counts no
/// packets. The address of the packet's text identifies it: the driver allocates the text of a new
/// packet before it frees the old one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct HeldReply(usize);

impl HeldReply {
    /// Identifies the packet that the driver holds now.
    pub(super) fn of(conn: &Conn) -> Self {
        Self(text(conn).map_or(0, |text| text.as_ptr().addr()))
    }

    /// Returns whether the driver still holds this packet: it has parsed no reply since.
    pub(super) fn is_still_held(self, conn: &Conn) -> bool {
        text(conn).is_some() && Self::of(conn) == self
    }
}

/// Returns the error for a reply that does not belong to the statement that was sent. The driver
/// does not report it.
pub(super) fn unreadable() -> mysql_async::Error {
    mysql_async::Error::Driver(DriverError::UnexpectedPacket { payload: Vec::new() })
}

/// Returns the text of the last OK packet that the driver has parsed, if it has one.
fn text(conn: &Conn) -> Option<&[u8]> {
    conn.last_ok_packet().and_then(|ok| ok.info_ref()).filter(|text| !text.is_empty())
}

/// Returns the first integer of the reply's text, which is the number of matched rows. The words
/// around it are localised.
fn first_integer(info: &[u8]) -> Option<u64> {
    let start = info.iter().position(u8::is_ascii_digit)?;
    let digits = info.get(start..)?;
    let end = digits.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(digits.len());
    digits.get(..end)?.iter().try_fold(0_u64, |number, digit| {
        number.checked_mul(10)?.checked_add(u64::from(digit - b'0'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matched_rows_are_the_first_integer_in_any_language() {
        assert_eq!(first_integer(b"Rows matched: 1  Changed: 0  Warnings: 0"), Some(1));
        assert_eq!(
            first_integer(
                "Datens\u{e4}tze gefunden: 12  ge\u{e4}ndert: 3  Warnungen: 0".as_bytes()
            ),
            Some(12)
        );
        assert_eq!(first_integer(b""), None);
        assert_eq!(first_integer(b"no digits"), None);
        assert_eq!(first_integer(b"99999999999999999999999"), None);
    }
}
