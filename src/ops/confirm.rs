//! One guarded write that must not be repeated blindly: what to do when its reply is lost (rule 14).

use mysql_async::Params;

use crate::db::Session;
use crate::db::row::flag;
use crate::error::{Error, Kind, Result};

/// What became of a guarded write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The guard matched and the row was written.
    Done,
    /// The reply was lost; the row, read back under its lock, shows the effect.
    Confirmed,
    /// The guard did not match.
    NotMatched,
}

impl Outcome {
    pub(crate) fn is_done(self) -> bool {
        self != Self::NotMatched
    }
}

/// A statement with its parameters.
#[derive(Debug, Clone)]
pub(crate) struct Statement {
    pub(crate) sql: String,
    pub(crate) params: Params,
}

/// Writes once. Where the reply carries no text or is lost, `read_back` decides: a locking read of two expressions, whether the
/// row shows the effect and whether the guard would still match. In the latter case the write is tried once more.
pub(crate) async fn write(
    session: &mut Session,
    write: &Statement,
    read_back: &Statement,
) -> Result<Outcome> {
    match session.execute(&write.sql, write.params.clone()).await {
        Ok(reply) => match reply.matched {
            Some(0) => Ok(Outcome::NotMatched),
            Some(_) => Ok(Outcome::Done),
            None => match look(session, read_back).await? {
                Look::Effect => Ok(Outcome::Done),
                Look::GuardMatches | Look::Neither => Ok(Outcome::NotMatched),
            },
        },
        Err(error) if error.outcome_unknown() => match look(session, read_back).await {
            Ok(Look::Effect) => Ok(Outcome::Confirmed),
            Ok(Look::Neither) => Ok(Outcome::NotMatched),
            // The lost write did not happen, and would not match any more after this one.
            Ok(Look::GuardMatches) => again(session, write, read_back).await,
            Err(second) => Err(unknown(&error, &second)),
        },
        Err(error) => Err(error),
    }
}

async fn again(session: &mut Session, write: &Statement, read_back: &Statement) -> Result<Outcome> {
    let reply = session.execute(&write.sql, write.params.clone()).await?;
    match reply.matched {
        Some(count) if count > 0 => Ok(Outcome::Done),
        // The row moved between the look and the write: by the lost write after all, or by somebody else.
        _ => Ok(match look(session, read_back).await? {
            Look::Effect => Outcome::Confirmed,
            Look::GuardMatches | Look::Neither => Outcome::NotMatched,
        }),
    }
}

/// What a row shows when it is read back.
enum Look {
    Effect,
    GuardMatches,
    Neither,
}

async fn look(session: &mut Session, read_back: &Statement) -> Result<Look> {
    session.await_the_cluster().await?;
    let rows = session.query(&read_back.sql, read_back.params.clone()).await?;
    let Some(mut row) = rows.into_iter().next() else {
        return Ok(Look::Neither);
    };
    Ok(if flag(&mut row, 0)? {
        Look::Effect
    } else if flag(&mut row, 1)? {
        Look::GuardMatches
    } else {
        Look::Neither
    })
}

/// The error of a write whose outcome could not be read back either.
pub(crate) fn unknown(first: &Error, second: &Error) -> Error {
    Error {
        kind: Kind::Connection,
        message: format!(
            "{}; whether the write took effect is unknown, since it could not be read back ({}). The row tells: see NrLlmRuntime::leaseState()",
            first.message, second.message
        ),
        ..first.clone()
    }
}
