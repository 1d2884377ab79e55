//! The session's own settings, as SQL (rules 21, 28 and 33). `docs/session-variables.md` lists
//! which variables are pinned, and why the others are not.
//!
//! All assignments are sent in one statement, before the first query: a server's default may change
//! the result of queries too. Comments that only one kind of server executes hold the variables
//! that the other kind does not have, so that the server itself decides, whatever version it
//! reports.

use super::server::Limits;

/// The settings that do not depend on the time limits. `DEFAULT` would mean the server's default,
/// and not the documented one.
const PINNED: &str = "SET NAMES utf8mb4, autocommit = 1, completion_type = 0, \
    sql_mode = 'STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION', time_zone = '+00:00', \
    sql_select_limit = 18446744073709551615, sql_big_selects = 1, sql_auto_is_null = 0, \
    div_precision_increment = 4, group_concat_max_len = 1024";

/// The isolation level: REPEATABLE READ where the server may log statements, since READ COMMITTED
/// is refused where the binary log holds statements alone, and makes the server log whole rows
/// where it holds both (rule 33).
const ISOLATION: &str =
    "IF(@@log_bin AND @@binlog_format <> 'ROW', 'REPEATABLE-READ', 'READ-COMMITTED')";

/// Where rows are logged, the smallest image of them. Only some accounts may set it.
pub(super) const ROW_IMAGE: &str = "SET SESSION binlog_row_image = 'MINIMAL'";

/// Returns the session's own settings as one statement. Settings of the site (`initCommands`, the
/// server's defaults) have no effect on the session.
pub(super) fn session_settings(limits: Limits) -> String {
    format!(
        "{PINNED}, {} \
         /*M! , tx_isolation = {ISOLATION}, tx_read_only = 0 */ /*M!100303 , in_predicate_conversion_threshold = 0 */ \
         /*!50720 , transaction_isolation = {ISOLATION}, transaction_read_only = 0 */ /*!80013 , use_secondary_engine = OFF */",
        limit_settings(limits),
    )
}

/// Returns the server's own time limits, as assignments. MySQL bounds SELECT only: for its other
/// statements there are the limits of their locks.
pub(super) fn limit_settings(limits: Limits) -> String {
    let ms = limits.statement.as_millis();
    format!(
        "innodb_lock_wait_timeout = {lock}, lock_wait_timeout = {lock} \
         /*M!100101 , max_statement_time = {}.{:03} */ /*!50720 , max_execution_time = {ms} */",
        ms / 1_000,
        ms % 1_000,
        lock = limits.lock_wait_s
    )
}
