//! What the tests on a real server share: a private server, a database a test, a plain client for acting as another worker, and a
//! proxy that breaks the connection at a chosen statement.

// A support module is written once for all topics; not every test binary uses all of it.
#![allow(dead_code, unreachable_pub, missing_docs)]

pub mod client;
pub mod database;
pub mod peer;
pub mod proxy;
pub mod server;

use std::time::Duration;

/// The longest that anything in a test may take. It is a bound that ends a hung test with a message; nothing waits for it to pass.
pub const PATIENCE: Duration = Duration::from_secs(60);
