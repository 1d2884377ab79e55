//! The session's own settings, as SQL.

use super::server::{Limits, ServerCapabilities};

/// The session's own settings, in one statement: those of the site (`initCommands`, the server's defaults) do not reach it.
pub(super) fn session_settings(server: &ServerCapabilities, limits: Limits) -> String {
    format!(
        "SET NAMES utf8mb4, autocommit = 1, sql_mode = 'STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION', time_zone = '+00:00', {} = '{}', {}",
        server.isolation_variable,
        server.isolation(),
        limit_settings(server, limits),
    )
}

/// The server's own time limits, as assignments.
pub(super) fn limit_settings(server: &ServerCapabilities, limits: Limits) -> String {
    let statement_limit = if server.mariadb {
        let ms = limits.statement.as_millis();
        format!("max_statement_time = {}.{:03}", ms / 1_000, ms % 1_000)
    } else {
        // Bounds SELECT only: there is nothing for the other statements but the limits of their locks.
        format!("max_execution_time = {}", limits.statement.as_millis())
    };
    format!(
        "innodb_lock_wait_timeout = {lock}, lock_wait_timeout = {lock}, {statement_limit}",
        lock = limits.lock_wait_s
    )
}
