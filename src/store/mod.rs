//! The guarded SQL: a file an operation, each stating its guard, over one session with the server.
//!
//! Every operation is a function of a [`session::Session`] and a [`context::Context`]. Its arguments are checked before any
//! SQL. Its guard stands in the one statement that writes, or, where a transaction decides (recover, reap, stranded), in the
//! locking read before it, and as far as it can again in the write. What it answers comes from the number of matched rows.

mod alarm;
pub mod beat;
pub mod cancel;
mod chunks;
pub mod claim;
pub mod context;
pub mod dead_letter;
mod direct;
pub mod due;
pub mod error;
pub mod fence;
mod guarded;
pub mod input;
pub mod lease_state;
pub mod options;
pub mod outbox;
mod plan;
pub mod reap;
mod reap_request;
pub mod recover;
pub mod renew;
pub mod requeue;
pub mod resolve;
mod row;
pub mod server;
pub mod session;
pub mod settings;
mod statements;
pub mod status;
pub mod stranded;
pub mod table;
pub mod undispatched;
