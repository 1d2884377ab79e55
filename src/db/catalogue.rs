//! Queries of the server's catalogue for the columns and keys of a table.

use std::sync::Arc;

use mysql_async::{Column, Params};

use super::execute::params;
use super::retry::idempotent;
use super::row::bytes;
use super::schema::TableSchema;
use super::session::Session;
use crate::config::options::TableName;
use crate::error::{Error, Result, code};

impl Session {
    /// Returns the columns of a table. Queries the server once per connection, and again after the
    /// errors 1054 and 1146.
    ///
    /// # Errors
    ///
    /// A connection error, or a configuration error when the table does not exist.
    pub async fn table(&mut self, table: &TableName) -> Result<Arc<TableSchema>> {
        if let Some(schema) = self.known_table(table) {
            return Ok(schema);
        }
        let schema = Arc::new(Box::pin(self.read_table(table)).await?);
        self.remember_table(table, &schema);
        Ok(schema)
    }

    /// Returns the columns that a table has now. For operations that write or read columns which
    /// not every release has: a migration may add or drop one while the process lives (rule 30).
    /// Costs a round trip.
    ///
    /// What is cached is compared with the columns of an empty result, which takes the server a
    /// quarter of the time of its catalogue.
    ///
    /// # Errors
    ///
    /// As [`Session::table`].
    pub(crate) async fn current_table(&mut self, table: &TableName) -> Result<Arc<TableSchema>> {
        idempotent(self, async |session| {
            if let Some(schema) = session.known_table(table) {
                if session.is_current(table, &schema).await? {
                    return Ok(schema);
                }
                session.forget_table(table);
            }
            session.table(table).await
        })
        .await
    }

    /// As [`Session::current_table`], for an operation that stores these texts: the columns'
    /// character sets are read again, unless all texts are ASCII, which fits into every column.
    ///
    /// # Errors
    ///
    /// As [`Session::table`].
    pub(crate) async fn current_table_storing(
        &mut self,
        table: &TableName,
        texts: &[&str],
    ) -> Result<Arc<TableSchema>> {
        if !texts.iter().all(|text| text.is_ascii()) {
            self.forget_table(table);
        }
        self.current_table(table).await
    }

    /// Returns whether the table still has the columns of this schema. False also where the account
    /// may not read all of them, or where one of them is invisible.
    async fn is_current(&mut self, table: &TableName, schema: &TableSchema) -> Result<bool> {
        let look = format!("SELECT * FROM {} LIMIT 0", table.quoted());
        match self.columns(&look).await {
            Ok(columns) => Ok(schema.has_exactly(columns.iter().map(Column::name_str))),
            Err(Error {
                code: code::TABLEACCESS_DENIED | code::COLUMNACCESS_DENIED | code::NO_SUCH_TABLE,
                ..
            }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Checks that a column can hold a value as it is. ASCII fits into every column, so that the
    /// server is queried for other values only. Before a value is refused, the character set is
    /// read again (rule 30).
    ///
    /// # Errors
    ///
    /// An argument error that names the argument; the errors of [`Session::table`].
    pub(crate) async fn check_storable(
        &mut self,
        table: &TableName,
        column: &str,
        argument: &'static str,
        value: &str,
    ) -> Result<()> {
        if value.is_ascii() {
            return Ok(());
        }
        if self.table(table).await?.check_storable(column, argument, value).is_err() {
            self.forget_table(table);
        }
        self.table(table).await?.check_storable(column, argument, value)
    }

    /// Returns a value with every character that the column cannot hold now replaced by `?`.
    ///
    /// # Errors
    ///
    /// The errors of [`Session::table`].
    pub(crate) async fn storable(
        &mut self,
        table: &TableName,
        column: &str,
        value: &str,
    ) -> Result<String> {
        if value.is_ascii() {
            return Ok(value.to_owned());
        }
        self.forget_table(table);
        Ok(self.table(table).await?.storable(column, value))
    }

    /// Returns the error of a statement that met an unknown column (1054) as a schema error that
    /// names all columns that the operation needs and the table lacks. Any other error, and one of
    /// a column that exists again, is returned unchanged.
    pub(crate) async fn explain(
        &mut self,
        table: &TableName,
        columns: &[&str],
        error: Error,
    ) -> Error {
        if error.code != code::BAD_FIELD {
            return error;
        }
        match Box::pin(self.current_table(table)).await {
            Ok(schema) => schema.require(columns).err().unwrap_or(error),
            Err(_) => error,
        }
    }

    async fn read_table(&mut self, table: &TableName) -> Result<TableSchema> {
        let sql = "SELECT COLUMN_NAME, CHARACTER_SET_NAME FROM information_schema.COLUMNS \
                   WHERE TABLE_SCHEMA = COALESCE(?, DATABASE()) AND TABLE_NAME = ?";
        let rows = self.query(sql, params![table.schema(), table.name()]).await?;
        if rows.is_empty() {
            return Err(self.why_unreadable(table).await);
        }
        TableSchema::from_rows(table, rows)
    }

    /// Returns the server's own error where the catalogue shows no columns: it distinguishes a
    /// missing table from a hidden one.
    async fn why_unreadable(&mut self, table: &TableName) -> Error {
        let sql = format!("SELECT 1 FROM {} LIMIT 0", table.quoted());
        match self.query(&sql, Params::Empty).await {
            Err(error) => error,
            Ok(_) => Error::configuration(format!(
                "the columns of {} cannot be read from information_schema",
                table.quoted()
            )),
        }
    }
}

/// Returns whether the table has an index that begins with (status, `lease_expires`). For the
/// status report.
pub(crate) async fn has_lease_key(session: &mut Session, table: &TableName) -> Result<bool> {
    let sql = "SELECT INDEX_NAME, GROUP_CONCAT(COLUMN_NAME ORDER BY SEQ_IN_INDEX SEPARATOR ',') FROM information_schema.STATISTICS \
               WHERE TABLE_SCHEMA = COALESCE(?, DATABASE()) AND TABLE_NAME = ? GROUP BY INDEX_NAME";
    let rows = session.query(sql, params![table.schema(), table.name()]).await?;
    for mut row in rows {
        let columns = bytes(&mut row, 1)?.to_ascii_lowercase();
        if columns == b"status,lease_expires" || columns.starts_with(b"status,lease_expires,") {
            return Ok(true);
        }
    }
    Ok(false)
}
