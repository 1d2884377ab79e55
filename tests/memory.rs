//! Memory of the process while it reaps: a test binary of its own, since it looks at the whole
//! process.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    unreachable_pub
)]

mod support;

use std::fs;
use std::sync::Arc;

use nrllm_runtime::config::connection::{ConnectionSettings, Defaults};
use nrllm_runtime::config::options::Options;
use nrllm_runtime::config::requests::ReapRequest;
use nrllm_runtime::config::value::{Input, Key};
use nrllm_runtime::db::Session;
use nrllm_runtime::ops::reap::reap;
use nrllm_runtime::ops::sql::Context;
use support::database::{Database, Run};
use tokio::runtime::Builder;

const NOW: i64 = 1_700_000_000;

/// A line of `/proc/self/status`, in KiB.
fn memory(name: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(name)).unwrap();
    line.split_ascii_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn p11_five_thousand_stale_runs_cost_no_memory() {
    let mut database = Database::new();
    database.insert_all(&vec![Run::running("worker:dead", NOW - 10); 5_000]);
    // 320 MiB of payload, made by the server.
    database.client().run(
        "UPDATE tx_nrllm_agentrun SET queued_request = CONCAT('nrv1:', uid, REPEAT('x', 65536))",
    );

    let endpoint = database.endpoint().clone();
    let text = |key: &str, value: &str| {
        (Key::Str(key.as_bytes().to_vec()), Input::Bytes(value.as_bytes().to_vec()))
    };
    let port = endpoint.port.to_string();
    let settings = [
        text("driver", "mysqli"),
        text("host", &endpoint.host),
        text("port", &port),
        text("user", &endpoint.user),
        text("password", &endpoint.password),
        text("dbname", database.name()),
    ];
    let settings =
        ConnectionSettings::parse(&Input::Map(settings.to_vec()), &Defaults::default()).unwrap();
    let options = Options::default();
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let mut session = Session::new(Arc::new(settings), options.timeouts);
    let mut reap_some = |limit: u64| {
        let request = ReapRequest { limit, ..ReapRequest::default() };
        let report = runtime
            .block_on(reap(&mut session, Context { options: &options, time: NOW }, &request))
            .unwrap();
        report.requeued.len()
    };
    // The connection and its buffers are there before anything is measured.
    assert_eq!(reap_some(100), 100);

    fs::write("/proc/self/clear_refs", "5").expect("the peak is reset");
    let before = memory("VmRSS");
    assert_eq!(reap_some(5_000), 4_900);
    let peak = memory("VmHWM");
    let grown = peak.saturating_sub(before);
    assert!(grown < 16 * 1024, "the peak is {grown} KiB above the {before} KiB before");

    let intact = "SELECT COUNT(*) FROM tx_nrllm_agentrun WHERE status = 'queued' AND queued_request = CONCAT('nrv1:', uid, REPEAT('x', 65536))";
    assert_eq!(database.client().number(intact), 5_000, "every payload survived");
}
