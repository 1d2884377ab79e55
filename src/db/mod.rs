//! One connection with the server: opening it, its own settings, time limits, replies, and the
//! cached capabilities of the server and schemas of its tables.
//!
//! [`session`] holds the connection and what is cached for it; `connect` opens it; `execute` sends
//! every statement; `transaction`, `retry` and `catalogue` build on that.

mod catalogue;
mod connect;
mod connection;
mod deadline;
pub mod dns;
mod execute;
pub(crate) mod query_cache;
mod reply;
mod retry;
pub(crate) mod row;
pub mod schema;
pub mod server;
pub mod session;
mod settings;
pub(crate) mod socket;
mod socket_wait;
mod statement_cache;
mod time_limits;
mod tls;
mod tls_relay;
mod transaction;

pub(crate) use catalogue::has_lease_key;
pub(crate) use execute::params;
pub use reply::Reply;
pub(crate) use retry::{ATTEMPTS, idempotent, pause};
pub use session::Session;
