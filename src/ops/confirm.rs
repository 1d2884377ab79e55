//! The write whose reply may be lost (rule 14): attempt, read back under the lock, retry, or report
//! that the outcome is unknown.
//!
//! A write that is not idempotent must not be repeated blindly. A requeue that is repeated after a
//! lost reply matches nothing, and no worker would be notified of it. Therefore the row is read
//! back by a locking read on a new connection:
//!
//! ```text
//!            attempt ──────────────── reply ────────────────► answer
//!               │  ▲
//!   reply lost  │  └── not written, and attempts are left ──┐
//!               ▼                                           │
//!           read back ── effect stands ───────────────────► answer, confirmed
//!               │
//!               └── not readable ─────────────────────────► error: the outcome is unknown
//! ```
//!
//! The locking read waits for the lost transaction if the server still executes it, so what it
//! shows is final.

use super::sql::{self, Context, REQUEUE_COLUMNS, Sql, bind, held_by, sql, update};
use crate::db::row::{count, flag};
use crate::db::{ATTEMPTS, Reply, Session, idempotent, pause};
use crate::domain::holder::Holder;
use crate::error::{Error, Fate, Kind, Result, code};

/// A write that is not idempotent, in one attempt or several.
pub(super) trait Write {
    /// What the operation returns.
    type Answer;

    /// Whether the attempt locks rows with a clause that the server may not support.
    const SKIPS_LOCKED: bool = false;

    /// Attempts the write, from its first statement to its commit. Sets `sent` from when on an
    /// error leaves open whether the write took effect.
    async fn attempt(&mut self, session: &mut Session, sent: &mut bool) -> Result<Self::Answer>;

    /// Reads back, by a locking read, whether the write of the last attempt took effect. `None`: it
    /// did not, and may be attempted again.
    async fn read_back(&mut self, session: &mut Session) -> Result<Option<Self::Answer>>;
}

/// Why a write failed.
pub(super) struct Failed {
    /// The error.
    pub(super) error: Error,
    /// The outcome is unknown: the row could not be read back either.
    pub(super) unknown: bool,
}

impl From<Failed> for Error {
    fn from(failed: Failed) -> Self {
        failed.error
    }
}

/// Writes, and resolves a lost reply. The answer of a write that was read back is marked as
/// confirmed by [`Write::read_back`].
pub(super) async fn write<W: Write>(
    session: &mut Session,
    budget: &mut RetryBudget,
    write: &mut W,
) -> Result<W::Answer, Failed> {
    let mut attempts = 1;
    loop {
        let mut sent = false;
        let error = match write.attempt(session, &mut sent).await {
            Ok(answer) => return Ok(answer),
            Err(error) => error,
        };
        session.rollback().await;
        // A transient error means that the server has rolled back, also in reply to a commit.
        if sent && !error.is_transient() && !error.refuses_writes() {
            match write.read_back(session).await {
                Ok(Some(answer)) => return Ok(answer),
                Ok(None) if budget.allows_after_commit(&error) => {}
                Ok(None) => return Err(Failed { error, unknown: false }),
                Err(second) => {
                    session.rollback().await;
                    return Err(Failed { error: unknown(&error, &second), unknown: true });
                }
            }
        } else if W::SKIPS_LOCKED && error.code == code::PARSE && session.degrade_locking() {
            // The server, or a proxy, does not support this way to skip locked rows.
        } else if !budget.allows_before_commit(&error, &mut attempts).await {
            return Err(Failed { error, unknown: false });
        }
    }
}

/// How many attempts a call may spend on lost connections and on transient errors.
pub(super) struct RetryBudget {
    reconnects: u32,
    /// Attempts of one write that meets transient errors.
    attempts: u32,
}

impl RetryBudget {
    /// For one statement: the session itself repeats it after a deadlock.
    const fn of_a_statement() -> Self {
        Self { reconnects: 1, attempts: 1 }
    }

    /// For one transaction.
    pub(super) const fn of_a_transaction() -> Self {
        Self { reconnects: 1, attempts: ATTEMPTS }
    }

    /// For a call that writes in many transactions, which share the reconnects.
    pub(super) const fn of_many_transactions() -> Self {
        Self { reconnects: 3, attempts: ATTEMPTS }
    }

    /// Returns whether a write that did not take effect although its commit was sent may be
    /// attempted again.
    fn allows_after_commit(&mut self, error: &Error) -> bool {
        error.outcome_unknown() && self.reconnect()
    }

    /// Returns whether a write that failed before its commit may be attempted again. Waits first
    /// where the reason passes.
    async fn allows_before_commit(&mut self, error: &Error, attempts: &mut u32) -> bool {
        if error.fate == Fate::Lost && self.reconnect() {
            return true;
        }
        // A lock wait has taken its time.
        if error.is_transient() && !error.waited() && *attempts < self.attempts {
            pause(*attempts).await;
            *attempts += 1;
            return true;
        }
        false
    }

    const fn reconnect(&mut self) -> bool {
        let left = self.reconnects > 0;
        self.reconnects = self.reconnects.saturating_sub(1);
        left
    }
}

/// The outcome of a guarded write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The guard matched and the row was written.
    Done,
    /// The reply was lost; the row, read back under its lock, shows the effect.
    Confirmed,
    /// The guard did not match.
    NotMatched,
}

impl Outcome {
    pub(super) fn is_done(self) -> bool {
        self != Self::NotMatched
    }
}

/// One statement that writes under its own guard.
pub(super) struct GuardedWrite {
    /// The statement.
    pub(super) write: Sql,
    /// A locking read of two expressions: whether the row shows the effect, and whether the guard
    /// would still match.
    pub(super) read_back: Sql,
    /// The first attempt was lost: an effect that is found from then on may be its own.
    lost: bool,
}

impl GuardedWrite {
    pub(super) const fn new(write: Sql, read_back: Sql) -> Self {
        Self { write, read_back, lost: false }
    }

    /// Writes. Where the reply has no text or is lost, the row is read back.
    ///
    /// # Errors
    ///
    /// A connection or query error, after which the row is as it was, or which says that the
    /// outcome is unknown.
    pub(super) async fn execute(mut self, session: &mut Session) -> Result<Outcome> {
        Ok(write(session, &mut RetryBudget::of_a_statement(), &mut self).await?)
    }

    async fn row(&self, session: &mut Session) -> Result<Row> {
        session.await_the_cluster().await?;
        let rows = self.read_back.query(session).await?;
        let Some(mut row) = rows.into_iter().next() else {
            return Ok(Row::Neither);
        };
        Ok(if flag(&mut row, 0)? {
            Row::ShowsEffect
        } else if flag(&mut row, 1)? {
            Row::MatchesGuard
        } else {
            Row::Neither
        })
    }
}

/// A row that was read back under its lock.
enum Row {
    ShowsEffect,
    MatchesGuard,
    Neither,
}

impl Write for GuardedWrite {
    type Answer = Outcome;

    async fn attempt(&mut self, session: &mut Session, sent: &mut bool) -> Result<Outcome> {
        let reply = match self.write.execute(session).await {
            Ok(reply) => reply,
            Err(error) => {
                *sent = error.outcome_unknown();
                return Err(error);
            }
        };
        match reply.matched {
            Some(matched) if matched > 0 => Ok(Outcome::Done),
            // The guard matched when the row was read back: it has changed since, by the lost write
            // or by another one.
            Some(_) if self.lost => match self.row(session).await? {
                Row::ShowsEffect => Ok(Outcome::Confirmed),
                Row::MatchesGuard | Row::Neither => Ok(Outcome::NotMatched),
            },
            Some(_) => Ok(Outcome::NotMatched),
            None => match self.row(session).await? {
                Row::ShowsEffect if self.lost => Ok(Outcome::Confirmed),
                Row::ShowsEffect => Ok(Outcome::Done),
                Row::MatchesGuard | Row::Neither => Ok(Outcome::NotMatched),
            },
        }
    }

    async fn read_back(&mut self, session: &mut Session) -> Result<Option<Outcome>> {
        self.lost = true;
        Ok(match self.row(session).await? {
            Row::ShowsEffect => Some(Outcome::Confirmed),
            Row::Neither => Some(Outcome::NotMatched),
            Row::MatchesGuard => None,
        })
    }
}

/// Requeues a run under a guard, and confirms a lost reply by the counter: it shows one requeue
/// more. Returns false where the guard does not match, or the counter has its largest value.
///
/// # Errors
///
/// A connection or query error, after which the row is as it was, or which says that the outcome is
/// unknown.
pub(super) async fn requeue(
    session: &mut Session,
    context: Context<'_>,
    run_uid: u64,
    guard: &Sql,
) -> Result<bool> {
    let schema = session.current_table(context.table()).await?;
    schema.require(REQUEUE_COLUMNS)?;
    // Under the row's lock, so that a read/write splitter cannot answer it from a replica.
    let read = sql!(
        "SELECT requeue_count FROM {} WHERE uid = {} AND {} FOR UPDATE",
        context.table(),
        bind(run_uid),
        guard
    );
    let rows = idempotent(session, async |session| read.query(session).await).await?;
    let Some(mut row) = rows.into_iter().next() else {
        return Ok(false);
    };
    let before = count(&mut row, 0)?;
    let Some(after) = before.checked_add(1) else {
        return Ok(false);
    };
    let condition =
        sql!("uid = {} AND {} AND requeue_count = {}", bind(run_uid), guard, bind(before));
    let write = update(context, sql::requeue(&schema, context.bound_now()), condition);
    let read_back = sql!(
        "SELECT requeue_count = {}, {} AND requeue_count = {} FROM {} WHERE uid = {} FOR UPDATE",
        bind(after),
        guard,
        bind(before),
        context.table(),
        bind(run_uid)
    );
    Ok(GuardedWrite::new(write, read_back).execute(session).await?.is_done())
}

/// Returns whether the holder holds the run, by the reply to an idempotent write that has this as
/// its guard. Where the reply has no text, a locking read decides (rules 1 and 2).
pub(super) async fn is_held(
    session: &mut Session,
    context: Context<'_>,
    holder: Holder<'_>,
    reply: Reply,
) -> Result<bool> {
    if let Some(matched) = reply.matched {
        return Ok(matched > 0);
    }
    let read = sql!(
        "SELECT {} FROM {} WHERE uid = {} FOR UPDATE",
        held_by(holder.owner),
        context.table(),
        bind(holder.run_uid)
    );
    match read.query(session).await?.into_iter().next() {
        Some(mut row) => flag(&mut row, 0),
        None => Ok(false),
    }
}

/// Checks the reply to a write of a row that this transaction has locked and read: no matched row
/// contradicts that read.
///
/// # Errors
///
/// A connection error; the transaction is to be rolled back.
pub(super) fn matched(reply: Reply) -> Result<()> {
    match reply.matched {
        Some(0) => Err(Error::connection(
            "the server's reply contradicts the row that it had locked; nothing was written. Check \
             the proxy in between",
        )),
        _ => Ok(()),
    }
}

/// Checks the reply to a write of `rows` rows that this transaction has locked and read. Another
/// number of matched rows contradicts that read (the database's clock was set back); the chunk is
/// attempted again.
///
/// # Errors
///
/// A transient error; the transaction is to be rolled back.
pub(super) fn all_matched(reply: Reply, rows: usize) -> Result<()> {
    match reply.matched {
        Some(matched) if matched != rows as u64 => Err(Error::overtaken(format!(
            "{rows} runs were locked, but {matched} matched the write; the chunk was rolled back"
        ))),
        _ => Ok(()),
    }
}

/// The error of a write whose outcome could not be read back either.
fn unknown(first: &Error, second: &Error) -> Error {
    Error {
        kind: Kind::Connection,
        message: format!(
            "{}; whether the write took effect is unknown, since it could not be read back ({}). \
             Read the row with NrLlmRuntime::leaseState()",
            first.message, second.message
        ),
        ..first.clone()
    }
}
