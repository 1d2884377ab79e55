//! The columns of a table, as plain data: releases of nr_llm and sites differ in columns and
//! character sets.

use std::borrow::Cow;

use mysql_async::Row;

use super::row::{optional_text, text};
use crate::config::options::TableName;
use crate::domain::validate::ArgumentError;
use crate::error::{Error, Result};

/// The properties of a column that the product uses.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Column {
    name: String,
    /// `None` for columns that hold no text.
    charset: Option<Charset>,
}

/// The character sets whose repertoire is known here; the name of any other never enters SQL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Charset {
    /// utf8mb4, utf16, utf32, gb18030: every character.
    Unicode,
    /// utf8mb3, ucs2: the first 65 536.
    BasicPlane,
    Latin1,
    Ascii,
    Binary,
    Other,
}

impl Charset {
    fn parse(name: &str) -> Self {
        match name.to_ascii_lowercase().as_str() {
            "utf8mb4" | "utf16" | "utf16le" | "utf32" | "gb18030" => Self::Unicode,
            "utf8mb3" | "utf8" | "ucs2" => Self::BasicPlane,
            "latin1" => Self::Latin1,
            "ascii" => Self::Ascii,
            "binary" => Self::Binary,
            _ => Self::Other,
        }
    }

    /// Returns whether a column of this character set can hold the character. For other sets only
    /// ASCII is sure to fit.
    fn holds(self, c: char) -> bool {
        match self {
            Self::Unicode | Self::Binary => true,
            Self::BasicPlane => (c as u32) <= 0xFFFF,
            // The servers' latin1 is cp1252 with the five unassigned bytes kept as control
            // characters.
            Self::Latin1 => c.is_ascii() || cp1252(c),
            Self::Ascii | Self::Other => c.is_ascii(),
        }
    }
}

/// Returns whether the character is in cp1252's upper half.
fn cp1252(c: char) -> bool {
    matches!(c as u32, 0xA0..=0xFF | 0x81 | 0x8D | 0x8F | 0x90 | 0x9D)
        || "\u{20AC}\u{201A}\u{192}\u{201E}\u{2026}\u{2020}\u{2021}\u{2C6}\u{2030}\u{160}\u{2039}\u{152}\u{17D}\u{2018}\u{2019}\u{201C}\u{201D}\u{2022}\u{2013}\u{2014}\u{2DC}\u{2122}\u{161}\u{203A}\u{153}\u{17E}\u{178}"
            .contains(c)
}

/// The columns of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableSchema {
    table: String,
    columns: Vec<Column>,
}

impl TableSchema {
    /// Returns the schema of a table from the rows of the catalogue, the name and character set of
    /// each column.
    pub(super) fn from_rows(table: &TableName, rows: Vec<Row>) -> Result<Self> {
        let columns = rows.into_iter().map(column).collect::<Result<_>>()?;
        Ok(Self { table: table.quoted().to_owned(), columns })
    }

    /// Returns whether the table has a column of this name.
    #[must_use]
    pub fn has(&self, column: &str) -> bool {
        self.find(column).is_some()
    }

    /// Returns whether these are the names of the table's columns, in any order: the catalogue of
    /// `MySQL` has its own.
    pub(super) fn has_exactly<'c>(
        &self,
        mut names: impl ExactSizeIterator<Item = Cow<'c, str>>,
    ) -> bool {
        names.len() == self.columns.len() && names.all(|name| self.has(&name))
    }

    fn find(&self, column: &str) -> Option<&Column> {
        self.columns.iter().find(|known| known.name.eq_ignore_ascii_case(column))
    }

    /// Returns those of these columns that are missing.
    #[must_use]
    pub fn missing<'c>(&self, columns: &[&'c str]) -> Vec<&'c str> {
        columns.iter().copied().filter(|column| !self.has(column)).collect()
    }

    /// Checks that the table has all these columns.
    ///
    /// # Errors
    ///
    /// A configuration error that names the missing ones.
    pub fn require(&self, columns: &[&str]) -> Result<()> {
        let missing = self.missing(columns);
        if missing.is_empty() {
            return Ok(());
        }
        Err(Error::configuration(format!(
            "table {} lacks the column{} {}; update nr_llm and its database schema",
            self.table,
            if missing.len() == 1 { "" } else { "s" },
            missing.join(", ")
        )))
    }

    /// Checks that the column can hold the value as it is.
    ///
    /// # Errors
    ///
    /// An argument error that names the argument.
    pub fn check_storable(&self, column: &str, argument: &'static str, value: &str) -> Result<()> {
        if value.is_ascii() {
            return Ok(());
        }
        let Some(charset) = self.find(column).and_then(|column| column.charset) else {
            return Ok(());
        };
        match value.chars().find(|&c| !charset.holds(c)) {
            None => Ok(()),
            Some(c) => Err(ArgumentError::new(argument, if charset == Charset::Other {
                format!(
                    "holds the character {c:?}, and column {column} has a character set of which only ASCII is sure to fit; use ASCII, or convert \
                     the column to utf8mb4"
                )
            } else {
                format!("holds the character {c:?}, which the character set of column {column} cannot hold")
            })
            .into()),
        }
    }

    /// Returns the value with every character that the column cannot hold replaced by `?`.
    #[must_use]
    pub fn storable(&self, column: &str, value: &str) -> String {
        match self.find(column).and_then(|column| column.charset) {
            Some(charset) => {
                value.chars().map(|c| if charset.holds(c) { c } else { '?' }).collect()
            }
            None => value.to_owned(),
        }
    }
}

fn column(mut row: Row) -> Result<Column> {
    Ok(Column {
        name: text(&mut row, 0)?,
        charset: optional_text(&mut row, 1)?.map(|name| Charset::parse(&name)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(charset: Charset) -> TableSchema {
        TableSchema {
            table: "`t`".into(),
            columns: vec![Column { name: "claimed_by".into(), charset: Some(charset) }],
        }
    }

    #[test]
    fn what_a_column_can_hold() {
        let euro = "w\u{20ac}b";
        let smile = "w\u{1f600}";
        let greek = "\u{3c9}";
        for (charset, value, fits) in [
            (Charset::Unicode, smile, true),
            (Charset::BasicPlane, smile, false),
            (Charset::BasicPlane, euro, true),
            (Charset::Latin1, euro, true),
            (Charset::Latin1, greek, false),
            (Charset::Ascii, "\u{e9}", false),
            (Charset::Other, "\u{e9}", false),
            (Charset::Other, "worker:1", true),
        ] {
            let table = table(charset);
            assert_eq!(
                table.check_storable("claimed_by", "claimedBy", value).is_ok(),
                fits,
                "{charset:?} {value}"
            );
            assert_eq!(table.storable("claimed_by", value) == value, fits);
        }
        assert_eq!(table(Charset::Latin1).storable("claimed_by", "a\u{3c9}b"), "a?b");
    }

    #[test]
    fn character_sets_of_the_servers_are_known_by_name() {
        for (name, charset) in [
            ("utf8mb4", Charset::Unicode),
            ("utf16", Charset::Unicode),
            ("utf32", Charset::Unicode),
            ("ucs2", Charset::BasicPlane),
            ("utf8mb3", Charset::BasicPlane),
            ("latin2", Charset::Other),
        ] {
            assert_eq!(Charset::parse(name), charset, "{name}");
        }
        let refused = table(Charset::Other).check_storable("claimed_by", "claimedBy", "\u{fc}");
        assert!(refused.unwrap_err().message.contains("only ASCII is sure to fit"));
    }

    #[test]
    fn missing_columns_are_named() {
        let message = table(Charset::Unicode)
            .require(&["claimed_by", "requeue_count", "pending_effect"])
            .unwrap_err()
            .message;
        assert!(message.contains("columns requeue_count, pending_effect"), "{message}");
    }
}
