//! Table schemas: columns that are added or dropped, other table names, other databases.

use nrllm_runtime::config::options::{Options, TableName};
use nrllm_runtime::domain::holder::Holder;
use nrllm_runtime::error::Kind;
use nrllm_runtime::ops::heartbeat::{self, End, HeartbeatResult};

use crate::support::database::{Database, Run, Shape, assert_row};
use crate::support::harness::{Harness, LEASE, NOW, OWNER, error_of, request};
use crate::support::proxy::{Fault, Proxy, When};
use crate::support::server::Server;

fn named(table: &str) -> Options {
    Options { table: TableName::parse("table", table).unwrap(), ..Options::default() }
}

#[test]
fn added_column_is_seen_by_the_next_connection() {
    let mut database = Database::with(&Shape::default().without("pending_effect"));
    let uid = database.insert(&Run::running(OWNER, LEASE));
    let mut harness = Harness::on(&database);
    let error =
        error_of(Kind::Configuration, harness.mark_pending_effect(uid, OWNER, "read_only", LEASE));
    assert!(error.message.contains("pending_effect"), "{error}");
    assert!(harness.renew_lease(uid, OWNER, LEASE).unwrap(), "what does not need it works");
    database.client().run(
        "ALTER TABLE tx_nrllm_agentrun ADD pending_effect varchar(32) NOT NULL DEFAULT '', ADD queued_at int unsigned NOT NULL DEFAULT 0",
    );
    harness.session.discard();
    assert!(harness.mark_pending_effect(uid, OWNER, "read_only", LEASE).unwrap());
    assert!(harness.requeue(uid, OWNER).unwrap());
    assert_eq!(
        (database.get(uid, "pending_effect"), database.get(uid, "queued_at")),
        (String::new(), NOW.to_string())
    );
}

#[test]
fn dropped_column_is_named_and_looked_up_again() {
    let mut database = Database::with(&Shape::default().queued_at());
    let uids = database.insert_all(&vec![Run::running(OWNER, LEASE); 3]);
    let mut harness = Harness::on(&database);
    assert!(harness.requeue(uids[0], OWNER).unwrap());
    database.client().run("ALTER TABLE tx_nrllm_agentrun DROP queued_at");
    assert!(harness.requeue(uids[1], OWNER).unwrap());
    database.client().run("ALTER TABLE tx_nrllm_agentrun DROP pending_effect");
    for _ in 0..2 {
        let error =
            error_of(Kind::Configuration, harness.mark_pending_effect(uids[2], OWNER, "x", LEASE));
        assert!(error.message.contains("pending_effect"), "{error}");
    }
    assert!(harness.renew_lease(uids[2], OWNER, LEASE).unwrap());
}

#[test]
fn reap_after_a_dropped_column_leaves_no_half_write() {
    let mut database = Database::new();
    let stale = database.insert_all(&[Run::running(OWNER, 5), Run::running(OWNER, 6).requeued(3)]);
    let mut harness = Harness::on(&database);
    assert_eq!(harness.lease_state(stale[0], OWNER).unwrap(), "held");
    database.client().run("ALTER TABLE tx_nrllm_agentrun DROP error_class");
    let before = [database.row(stale[0]), database.row(stale[1])];
    let error = error_of(Kind::Configuration, harness.reap(&request(5)));
    assert!(error.message.contains("error_class"), "{error}");
    for (uid, before) in stale.iter().zip(&before) {
        assert_row(&database.row(*uid), before, "the chunk is one transaction");
    }
}

#[test]
fn hot_operations_ask_for_the_schema_once_or_never() {
    let mut database = Database::new();
    let uid = database.insert(&Run::running(OWNER, LEASE));
    let proxy = Proxy::start(database.endpoint());
    let asked = proxy.rule(When::statement("information_schema.COLUMNS").always(), Fault::Watch);
    let mut harness = Harness::through(&proxy, &database);
    for _ in 0..5 {
        assert!(
            harness.renew_lease(uid, OWNER, LEASE).unwrap()
                && harness.mark_pending_effect(uid, OWNER, "", LEASE).unwrap()
        );
    }
    assert_eq!(asked.hits(), 0);
    // Beyond ASCII, the character set of the column decides.
    for _ in 0..5 {
        assert!(!harness.renew_lease(uid, "w\u{f6}rker", LEASE).unwrap());
    }
    assert_eq!(asked.hits(), 1);
}

#[test]
fn table_may_have_another_name_and_schema() {
    let mut database = Database::new();
    let uid = database.insert(&Run::running(OWNER, LEASE));
    database.client().run("CREATE TABLE `Runs$2` LIKE tx_nrllm_agentrun");
    database.client().run("INSERT INTO `Runs$2` SELECT * FROM tx_nrllm_agentrun");
    let mut renamed = Harness::with(&database, named("Runs$2"));
    assert!(renamed.renew_lease(uid, OWNER, LEASE + 7).unwrap());
    assert_eq!(
        database.get(uid, "lease_expires"),
        LEASE.to_string(),
        "the other table is untouched"
    );
    assert_eq!(database.client().number("SELECT lease_expires FROM `Runs$2`"), LEASE + 7);

    let elsewhere = format!("{}.tx_nrllm_agentrun", database.name());
    for database_name in ["", "information_schema"] {
        let mut harness = Harness::at(database.endpoint(), database_name, named(&elsewhere));
        assert!(harness.renew_lease(uid, OWNER, LEASE + 9).unwrap(), "{database_name:?}");
    }
    assert_eq!(database.get(uid, "lease_expires"), (LEASE + 9).to_string());
}

#[test]
fn missing_table_is_named() {
    let database = Database::new();
    for (database_name, table) in
        [(database.name(), "no_such_table"), (database.name(), "no_such_schema.runs"), ("", "runs")]
    {
        let error = error_of(
            Kind::Configuration,
            Harness::at(database.endpoint(), database_name, named(table))
                .renew_lease(1, OWNER, LEASE),
        );
        assert!(!error.message.is_empty(), "{error}");
        if database_name == database.name() {
            assert!(error.message.contains("no_such_"), "{error}");
        }
    }
}

#[test]
fn no_table_name_escapes_its_quotes() {
    for name in [
        "",
        "a`b",
        "a b",
        "a.b.c",
        "a;b",
        "a'b",
        "a\\b",
        "a-b",
        "a\0",
        "\u{e4}",
        ".",
        "a.",
        ".a",
        &"x".repeat(65),
    ] {
        assert_eq!(
            TableName::parse("table", name).unwrap_err().kind,
            Kind::Configuration,
            "{name:?}"
        );
    }
}

#[test]
fn p30_added_column_is_written_by_the_next_call() {
    let mut database = Database::new();
    let mut harness = Harness::on(&database);
    let status = |harness: &mut Harness| {
        harness.run(async |session, context| {
            nrllm_runtime::ops::status::status(session, context, None, None).await
        })
    };
    status(&mut harness).unwrap();
    database
        .client()
        .run("ALTER TABLE tx_nrllm_agentrun ADD queued_at int unsigned NOT NULL DEFAULT 7");
    let held = database.insert(&Run::running(OWNER, LEASE));
    assert!(harness.requeue(held, OWNER).unwrap());
    assert_eq!(database.get(held, "queued_at"), NOW.to_string());
    let stale = database.insert(&Run::running("gone", 5));
    assert_eq!(harness.reap_all(5).requeued.len(), 1);
    assert_eq!(database.get(stale, "queued_at"), NOW.to_string());
    // And away again: the first call works.
    database.client().run("ALTER TABLE tx_nrllm_agentrun DROP queued_at");
    let held = database.insert(&Run::running(OWNER, LEASE));
    assert!(harness.requeue(held, OWNER).unwrap());
    database.insert(&Run::running("gone", 5));
    assert_eq!(harness.reap_all(5).requeued.len(), 1);
    status(&mut harness).unwrap();
}

#[test]
fn p30_column_that_returns_is_seen_by_the_next_call() {
    let mut database = Database::new();
    // Beyond ASCII: such a session asks what the columns can hold.
    for owner in [OWNER, "w\u{f6}rker"] {
        let mut harness = Harness::on(&database);
        let held = database.insert(&Run::running(owner, LEASE));
        let options = Options::default();
        let heartbeat = |harness: &mut Harness| {
            let holder = Holder { run_uid: held as u64, owner };
            harness.run(async |session, _| {
                heartbeat::send_heartbeat(session, &options, holder, 900, End::NeverEarlier, || {
                    true
                })
                .await
            })
        };
        for round in 0..2 {
            assert_eq!(
                heartbeat(&mut harness).unwrap(),
                HeartbeatResult::Renewed,
                "{owner}, round {round}"
            );
            assert!(harness.mark_pending_effect(held, owner, "read_only", LEASE).unwrap());
            database.client().run("ALTER TABLE tx_nrllm_agentrun RENAME COLUMN claimed_by TO away");
            let error = heartbeat(&mut harness).unwrap_err();
            assert!(
                error.kind == Kind::Configuration && error.message.contains("claimed_by"),
                "{error}"
            );
            error_of(Kind::Configuration, harness.renew_lease(held, owner, LEASE));
            database.client().run("ALTER TABLE tx_nrllm_agentrun RENAME COLUMN away TO claimed_by");
            assert!(harness.renew_lease(held, owner, LEASE).unwrap());
            database.client().run("ALTER TABLE tx_nrllm_agentrun DROP pending_effect");
            let error =
                error_of(Kind::Configuration, harness.mark_pending_effect(held, owner, "x", LEASE));
            assert!(error.message.contains("lacks the column pending_effect"), "{error}");
            error_of(Kind::Configuration, harness.reap(&request(5)));
            database.client().run(
                "ALTER TABLE tx_nrllm_agentrun ADD pending_effect varchar(32) NOT NULL DEFAULT ''",
            );
            assert!(harness.mark_pending_effect(held, owner, "x", LEASE).unwrap());
            harness.reap(&request(5)).unwrap();
        }
    }
}

#[test]
fn p30_unchanged_columns_are_read_from_the_catalogue_once() {
    let mut database = Database::new();
    let proxy = Proxy::start(database.endpoint());
    let mut harness = Harness::through(&proxy, &database);
    let catalogue = |proxy: &Proxy| {
        let statements = proxy.statements();
        statements.iter().filter(|sql| sql.contains("information_schema.COLUMNS")).count()
    };
    for round in 0..3 {
        let uid = database.insert(&Run::running(OWNER, LEASE));
        assert!(harness.requeue(uid, OWNER).unwrap());
        assert_eq!(catalogue(&proxy), 1, "round {round}");
    }
    database.client().run("ALTER TABLE tx_nrllm_agentrun ADD later int NOT NULL DEFAULT 0");
    let uid = database.insert(&Run::running(OWNER, LEASE));
    assert!(harness.requeue(uid, OWNER).unwrap());
    assert_eq!(catalogue(&proxy), 2);
}

#[test]
fn first_renewal_of_a_process_takes_three_round_trips() {
    let mut database = Database::new();
    assert_eq!(round_trips_of_first_renewal(&mut database), 3);
}

#[test]
fn p33_first_renewal_with_a_row_image_takes_four_round_trips() {
    let server = Server::start(&["--log-bin=binlog", "--server-id=1", "--binlog-format=ROW"]);
    let mut database = Database::on(&server, &Shape::default());
    assert_eq!(round_trips_of_first_renewal(&mut database), 4);
}

/// Counts the round trips after the handshake. A second renewal takes one.
fn round_trips_of_first_renewal(database: &mut Database) -> usize {
    let held = database.insert(&Run::running(OWNER, LEASE));
    let proxy = Proxy::start(database.endpoint());
    let mut harness = Harness::through(&proxy, database);
    assert!(harness.renew_lease(held, OWNER, LEASE + 1).unwrap());
    let first = proxy.count().round_trips;
    assert!(harness.renew_lease(held, OWNER, LEASE + 2).unwrap());
    assert_eq!(proxy.count().round_trips - first, 1, "{:?}", proxy.log());
    first
}
