//! The guarded SQL: one file per operation, named like the method, over one session with the
//! server.
//!
//! Every operation is a function of a [`crate::db::Session`] and a [`sql::Context`]. Its arguments
//! are checked before any SQL. Its guard stands in the one statement that writes, or, where a
//! transaction decides (recover, reap, stranded), in the locking read before it, and as far as it
//! can again in the write. The result comes from the number of matched rows.

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
