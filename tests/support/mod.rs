//! Shared by the tests on a real server: a private server, one database per test, the harness that
//! calls the operations, a plain client that acts as another worker, and a proxy that breaks the
//! connection at a chosen statement.

// A support module is written once for all topics; not every test binary uses all of it.
#![allow(dead_code, unreachable_pub, missing_docs)]

pub mod client;
pub mod database;
pub mod harness;
pub mod legacy_php_worker;
pub mod operation;
pub mod proxy;
pub mod server;
pub mod wake_up;

use std::time::Duration;

/// The longest that anything in a test may take. It is a bound that ends a hung test with a
/// message; nothing waits for it to pass.
pub const PATIENCE: Duration = Duration::from_secs(60);
