//! One connection with the server: opening it, its own settings, time limits, replies, and what is known of the server and its tables.

mod deadline;
pub mod dns;
pub(crate) mod query_cache;
pub(crate) mod row;
pub mod schema;
pub mod server;
pub mod session;
mod socket_wait;
mod statement_cache;
