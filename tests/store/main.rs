//! The store on a real server: one module a topic, one server for all of them.

// A test says what went wrong by panicking, and shares its helpers freely.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    unreachable_pub
)]

#[path = "../support/mod.rs"]
mod support;

mod any_bytes;
mod beats;
mod clock;
mod load;
mod odd_servers;
mod ownership;
mod process_wide;
mod reaping;
mod recovery;
mod replies;
mod reports;
mod shapes;
mod sql;
mod subject;
mod support_checks;
mod waiting;
mod wakeup;
