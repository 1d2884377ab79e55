//! Reads the columns of a result row of either protocol.

use mysql_async::{FromValueError, Row, from_value_opt, prelude::FromValue};

use crate::error::{Error, Result};

fn take<T: FromValue>(row: &mut Row, index: usize) -> Result<T> {
    let value = row
        .take::<mysql_async::Value, _>(index)
        .ok_or_else(|| Error::connection(format!("the server's reply lacks column {index}")))?;
    from_value_opt(value).map_err(|FromValueError(_)| {
        Error::connection(format!("the server's reply has an unexpected type in column {index}"))
    })
}

/// Reads an unsigned integer.
pub(crate) fn unsigned(row: &mut Row, index: usize) -> Result<u64> {
    take(row, index)
}

/// Reads a signed integer.
pub(crate) fn signed(row: &mut Row, index: usize) -> Result<i64> {
    take(row, index)
}

/// Reads a signed integer or NULL.
pub(crate) fn optional_signed(row: &mut Row, index: usize) -> Result<Option<i64>> {
    take(row, index)
}

/// Reads a count of an unsigned 32-bit column.
pub(crate) fn count(row: &mut Row, index: usize) -> Result<u32> {
    take(row, index)
}

/// Reads a boolean expression; NULL is false.
pub(crate) fn flag(row: &mut Row, index: usize) -> Result<bool> {
    Ok(take::<Option<i64>>(row, index)?.is_some_and(|value| value != 0))
}

/// Reads bytes; NULL is empty.
pub(crate) fn bytes(row: &mut Row, index: usize) -> Result<Vec<u8>> {
    Ok(take::<Option<Vec<u8>>>(row, index)?.unwrap_or_default())
}

/// Reads text or NULL; bytes that are not UTF-8 are replaced.
pub(crate) fn optional_text(row: &mut Row, index: usize) -> Result<Option<String>> {
    Ok(take::<Option<Vec<u8>>>(row, index)?.map(lossy))
}

/// Converts bytes, and copies them only where they are not UTF-8.
fn lossy(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// Reads text; NULL is empty.
pub(crate) fn text(row: &mut Row, index: usize) -> Result<String> {
    Ok(optional_text(row, index)?.unwrap_or_default())
}
