//! A piece of SQL together with the values of its placeholders.

use std::borrow::Cow;
use std::fmt::Write;

use mysql_async::{Params, Row, Value};

use crate::config::options::TableName;
use crate::db::{Reply, Session};
use crate::error::Result;

/// A piece of SQL with the values of its placeholders, in their order.
///
/// The text is made of string literals, checked table names and numbers. Everything else is a bound
/// value, so no text from outside reaches the parser of the server (rule 22). [`sql!`] puts pieces
/// together: a placeholder and its value cannot come apart.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::ops) struct Sql {
    text: Cow<'static, str>,
    values: Vec<Value>,
}

impl Sql {
    /// Returns the template with each `{}` replaced by the part at its place.
    pub(in crate::ops) fn fill(template: &'static str, parts: &[Self]) -> Self {
        let size = parts.iter().fold(template.len(), |sum, part| sum + part.text.len());
        let mut text = String::with_capacity(size);
        let mut values = Vec::with_capacity(parts.iter().map(|part| part.values.len()).sum());
        for (index, piece) in template.split("{}").enumerate() {
            if let Some(part) = index.checked_sub(1).and_then(|index| parts.get(index)) {
                text.push_str(&part.text);
                values.extend_from_slice(&part.values);
            }
            text.push_str(piece);
        }
        Self { text: Cow::Owned(text), values }
    }

    /// Returns a literal text whose placeholders have these values.
    pub(in crate::ops) fn with(
        text: &'static str,
        values: impl IntoIterator<Item = Value>,
    ) -> Self {
        Self { text: Cow::Borrowed(text), values: values.into_iter().collect() }
    }

    /// Returns pieces one after the other with a separator between them.
    pub(in crate::ops) fn join(parts: impl IntoIterator<Item = Self>, separator: &str) -> Self {
        let (mut text, mut values) = (String::new(), Vec::new());
        for part in parts {
            if !text.is_empty() {
                text.push_str(separator);
            }
            text.push_str(&part.text);
            values.extend(part.values);
        }
        Self { text: Cow::Owned(text), values }
    }

    /// The text, with a `?` for each bound value.
    pub(in crate::ops) fn text(&self) -> &str {
        &self.text
    }

    /// The bound values. A statement without any goes over the text protocol.
    fn params(&self) -> Params {
        if self.values.is_empty() { Params::Empty } else { Params::Positional(self.values.clone()) }
    }

    /// Executes a statement that returns no rows.
    pub(in crate::ops) async fn execute(&self, session: &mut Session) -> Result<Reply> {
        session.execute(&self.text, self.params()).await
    }

    /// Executes a statement and collects its rows.
    pub(in crate::ops) async fn query(&self, session: &mut Session) -> Result<Vec<Row>> {
        session.query(&self.text, self.params()).await
    }

    /// Executes a statement and collects its rows, each converted as it arrives.
    pub(in crate::ops) async fn query_as<T>(
        &self,
        session: &mut Session,
        convert: impl Fn(Row) -> Result<T>,
    ) -> Result<Vec<T>> {
        session.query_as(&self.text, self.params(), convert).await
    }
}

/// Returns a placeholder with its value.
pub(in crate::ops) fn bind(value: impl Into<Value>) -> Sql {
    Sql::with("?", [value.into()])
}

/// Returns a number as text.
pub(in crate::ops) fn number(value: impl Number) -> Sql {
    Sql { text: Cow::Owned(value.to_sql()), values: Vec::new() }
}

/// Returns numbers as text with commas between them.
pub(in crate::ops) fn numbers(values: impl IntoIterator<Item = u64>) -> Sql {
    let mut text = String::new();
    for value in values {
        if !text.is_empty() {
            text.push(',');
        }
        // Writing to a string does not fail.
        let _ = write!(text, "{value}");
    }
    Sql { text: Cow::Owned(text), values: Vec::new() }
}

/// Numbers, the only values that are written into a text.
pub(in crate::ops) trait Number {
    fn to_sql(self) -> String;
}

macro_rules! integers {
    ($($type:ty),*) => {
        $(impl Number for $type {
            fn to_sql(self) -> String {
                self.to_string()
            }
        })*
    };
}
integers!(i64, u64, usize);

impl Number for f64 {
    fn to_sql(self) -> String {
        // With a point, so that the server takes it for a number with a fraction.
        format!("{self:?}")
    }
}

impl From<&'static str> for Sql {
    fn from(text: &'static str) -> Self {
        Self { text: Cow::Borrowed(text), values: Vec::new() }
    }
}

impl From<&Self> for Sql {
    fn from(sql: &Self) -> Self {
        sql.clone()
    }
}

impl From<&TableName> for Sql {
    fn from(table: &TableName) -> Self {
        Self { text: Cow::Owned(table.quoted().to_owned()), values: Vec::new() }
    }
}

/// Counts the places of a template.
pub(in crate::ops) const fn places(template: &str) -> usize {
    let mut rest = template.as_bytes();
    let mut count = 0;
    while let [first, tail @ ..] = rest {
        if let (b'{', [b'}', ..]) = (*first, tail) {
            count += 1;
        }
        rest = tail;
    }
    count
}

/// Puts pieces of SQL into a template, one for each `{}`. A wrong number of pieces does not
/// compile.
macro_rules! sql {
    ($template:literal $(, $part:expr)* $(,)?) => {{
        const _: () = assert!(
            $crate::ops::sql::places($template) == <[&str]>::len(&[$(stringify!($part)),*]),
            "a template has one part for each place"
        );
        $crate::ops::sql::Sql::fill($template, &[$($crate::ops::sql::Sql::from($part)),*])
    }};
}
pub(in crate::ops) use sql;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_and_values_stay_together() {
        let condition = sql!("uid = {} AND lease_expires < {}", bind(7_u64), number(5_u64));
        let filled = sql!("SET a = {} WHERE {} OR {}", bind("x"), &condition, &condition);
        assert_eq!(
            filled.text(),
            "SET a = ? WHERE uid = ? AND lease_expires < 5 OR uid = ? AND lease_expires < 5"
        );
        assert_eq!(filled.values, [Value::from("x"), Value::from(7_u64), Value::from(7_u64)]);
        let list = Sql::join([bind(1_u64), number(2_u64), bind(3_u64)], ",");
        assert_eq!((list.text(), list.values.len()), ("?,2,?", 2));
    }

    #[test]
    fn statements_without_values_use_the_text_protocol() {
        assert_eq!(sql!("SELECT {}", number(0.5_f64)).params(), Params::Empty);
        assert_eq!(sql!("SELECT {}", number(1.0_f64)).text(), "SELECT 1.0");
    }
}
