//! A renewal on a real server, which the environment names, as `bin/bench criterion` sets it.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "benches are programs of their own"
)]

use std::sync::Arc;

use criterion::{Criterion, criterion_group, criterion_main};
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, OptsBuilder};
use nrllm_runtime::config::connection::{ConnectionSettings, Defaults};
use nrllm_runtime::config::options::Options;
use nrllm_runtime::config::value::{Input, Key};
use nrllm_runtime::db::Session;
use nrllm_runtime::domain::holder::Holder;
use nrllm_runtime::ops::mark_pending_effect::mark_pending_effect;
use nrllm_runtime::ops::renew_lease::renew_lease;
use nrllm_runtime::ops::sql::Context;
use tokio::runtime::{Builder, Runtime};

const OWNER: &str = "bench:host-name-of-a-worker:4711:0123456789abcdef";
const HOLDER: Holder<'_> = Holder { run_uid: 1, owner: OWNER };
const LEASE: i64 = 1_900_000_000;

fn environment(name: &str) -> String {
    std::env::var(format!("NRLLM_TEST_{name}")).unwrap_or_else(|_| panic_without(name))
}

fn panic_without(name: &str) -> ! {
    eprintln!(
        "NRLLM_TEST_{name} is not set: run this by bin/bench criterion, which starts a private server"
    );
    std::process::exit(2)
}

/// A database of this bench with one run that the owner holds. Dropping the value drops the
/// database.
async fn prepare(socket: &str, user: &str, password: &str, database: &str) -> Conn {
    let options = OptsBuilder::default()
        .socket(Some(socket))
        .user(Some(user))
        .pass(Some(password))
        .prefer_socket(false);
    let mut conn = Conn::new(options).await.expect("the private server answers");
    conn.query_drop(format!("CREATE DATABASE `{database}` CHARACTER SET utf8mb4")).await.unwrap();
    conn.query_drop(format!("USE `{database}`")).await.unwrap();
    for statement in include_str!("../examples/schema.sql")
        .split(";\n")
        .filter(|text| text.contains("CREATE TABLE"))
    {
        conn.query_drop(statement).await.unwrap();
    }
    let run = "INSERT INTO tx_nrllm_agentrun (uid, uuid, status, claimed_by, lease_expires) VALUES (1, UUID(), 'running', ?, ?)";
    conn.exec_drop(run, (OWNER, LEASE)).await.unwrap();
    conn
}

fn renewal(criterion: &mut Criterion) {
    let (socket, user, password) =
        (environment("SOCKET"), environment("USER"), environment("PASSWORD"));
    let database = format!("bench_criterion_{}", std::process::id());
    let runtime: Runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let mut conn = runtime.block_on(prepare(&socket, &user, &password, &database));

    let text = |key: &str, value: &str| {
        (Key::Str(key.as_bytes().to_vec()), Input::Bytes(value.as_bytes().to_vec()))
    };
    let settings = [
        text("driver", "mysqli"),
        text("host", "localhost"),
        text("unix_socket", &socket),
        text("user", &user),
        text("password", &password),
        text("dbname", &database),
    ];
    let settings = Arc::new(
        ConnectionSettings::parse(&Input::Map(settings.to_vec()), &Defaults::default()).unwrap(),
    );
    let options = Options::default();
    let mut session = Session::new(settings, options.timeouts);

    let mut group = criterion.benchmark_group("one run");
    let mut lease = LEASE;
    group.bench_function("renew", |bencher| {
        bencher.iter(|| {
            lease += 1;
            assert!(
                runtime
                    .block_on(renew_lease(&mut session, Context::now(&options), HOLDER, lease))
                    .unwrap()
            );
        });
    });
    group.bench_function("renew, unchanged", |bencher| {
        bencher.iter(|| {
            assert!(
                runtime
                    .block_on(renew_lease(&mut session, Context::now(&options), HOLDER, LEASE))
                    .unwrap()
            )
        });
    });
    group.bench_function("renew, lost", |bencher| {
        bencher.iter(|| {
            assert!(
                !runtime
                    .block_on(renew_lease(
                        &mut session,
                        Context::now(&options),
                        Holder { owner: "worker:other", ..HOLDER },
                        LEASE
                    ))
                    .unwrap()
            )
        });
    });
    let mut marked = false;
    group.bench_function("mark", |bencher| {
        bencher.iter(|| {
            marked = !marked;
            let effect = if marked { "idempotent_write" } else { "" };
            assert!(
                runtime
                    .block_on(mark_pending_effect(
                        &mut session,
                        Context::now(&options),
                        HOLDER,
                        effect,
                        LEASE
                    ))
                    .unwrap()
            );
        });
    });
    group.finish();
    runtime.block_on(async {
        session.close(std::time::Duration::from_secs(1)).await;
        conn.query_drop(format!("DROP DATABASE `{database}`")).await.unwrap();
    });
}

criterion_group!(benches, renewal);
criterion_main!(benches);
