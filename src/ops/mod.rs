//! The guarded SQL: one file per operation, named like the method, over one session with the
//! server.
//!
//! Every operation is a function of a [`crate::db::Session`] and a [`sql::Context`]. Its arguments
//! are checked before any SQL. Its guard stands in the one statement that writes, or, where a
//! transaction decides (recover, hand back, reap, sweep), in the locking read before it, and as far
//! as it can again in the write. The result comes from the number of matched rows.
//!
//! No operation imports another one. What several of them need is in four places:
//!
//! - [`sql`]: every predicate and assignment, once, and the clock. The finished statements are in
//!   `tests/sql/`.
//! - `confirm`: the write whose reply may be lost (rule 14).
//! - `chunked`: chunks, halving and the bounds of a call, for the reap and the sweep.
//! - `outbox`: the wake-up in the run's own transaction (rule 13).
//!
//! [`heartbeat`] is the renewal of a kept lease; its method is `keepLease()`.

pub mod cancel_run;
mod chunked;
pub mod claim_queued;
mod confirm;
pub mod dead_letter_stale;
pub mod due_runs;
pub mod fail_undispatched;
pub mod hand_back;
pub mod heartbeat;
pub mod lease_state;
pub mod mark_pending_effect;
mod outbox;
pub mod reap;
pub mod recover_failure;
pub mod renew_lease;
pub mod requeue;
pub mod requeue_stale;
pub mod sql;
pub mod status;
pub mod stranded_runs;
