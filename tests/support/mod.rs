//! Shared by the tests on a real server: a private server, one database per test, the harness that
//! calls the operations, a plain client that acts as another worker, and a proxy that breaks the
//! connection at a chosen statement.

// The support modules are shared; not every test binary uses all of them.
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

/// The time limit of every wait in a test. It ends a hung test with a message; no test waits for it
/// to pass.
pub const PATIENCE: Duration = Duration::from_secs(60);
