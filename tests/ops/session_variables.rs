//! Server defaults that would bend a statement (rules 28 and 33).

use std::collections::BTreeSet;

use mysql_async::Params;
use nrllm_runtime::config::options::Options;

use crate::support::client::Client;
use crate::support::database::{Database, Run, Shape};
use crate::support::harness::{Harness, LEASE, OWNER};
use crate::support::operation::{operations, target};
use crate::support::proxy::{Fault, Proxy, When};
use crate::support::server::{Endpoint, Server, wants_mysql};

/// An account as sites have it: the server's `init_connect` runs for it.
fn site_account(server: &Server, database: &Database) -> Endpoint {
    server.client().run(&format!(
        "CREATE USER 'site'@'127.0.0.1' IDENTIFIED BY 'site-Passw0rd'; \
         GRANT SELECT, INSERT, UPDATE, DELETE ON {}.* TO 'site'@'127.0.0.1'",
        database.name()
    ));
    Endpoint {
        user: "site".to_owned(),
        password: "site-Passw0rd".to_owned(),
        ..server.endpoint().clone()
    }
}

const HOSTILE: &[&str] = &[
    "completion_type = 'CHAIN'",
    "completion_type = 'RELEASE'",
    "sql_select_limit = 3",
    "sql_select_limit = 0",
    "max_join_size = 2",
    "sql_big_selects = 0",
    "sql_safe_updates = 1",
    "div_precision_increment = 0",
    "group_concat_max_len = 4",
    "session_track_system_variables = '*'",
    "session_track_state_change = 1",
    "init_connect = 'BEGIN'",
    "init_connect = 'SET autocommit = 0'",
];

#[test]
fn p28_server_defaults_do_not_bend_operations() {
    let server = Server::start(&[]);
    let mut database = Database::on(&server, &Shape::default());
    let endpoint = site_account(&server, &database);
    let mut admin = server.client();
    let read_only = if wants_mysql() { "transaction_read_only = 1" } else { "tx_read_only = 1" };
    let mut hostile = HOSTILE.to_vec();
    hostile.push(read_only);
    if !wants_mysql() {
        hostile.push("in_predicate_conversion_threshold = 2");
        hostile.push("innodb_snapshot_isolation = 1");
    }
    for setting in hostile {
        let name = setting.split(' ').next().unwrap();
        admin.run(&format!("SET GLOBAL {setting}"));
        for operation in operations() {
            let mut harness = Harness::at(&endpoint, database.name(), Options::default());
            let (uid, uuid) = target(&mut database, &operation);
            let done = (operation.call)(&mut harness, uid, &uuid)
                .unwrap_or_else(|error| panic!("{setting}, {}: {error:?}", operation.name));
            // Whatever was not committed is gone with the connection.
            harness.session.discard();
            let effect = (operation.effect)(&mut database, uid);
            assert_eq!(done, effect, "{setting}, {}", operation.name);
        }
        let all: Vec<Run> = (0..20).map(|_| Run::running("gone", 5)).collect();
        let all = database.insert_all(&all);
        let mut harness = Harness::at(&endpoint, database.name(), Options::default());
        let report = harness.reap_all(50);
        assert_eq!((report.requeued.len(), report.skipped.len()), (20, 0), "{setting}");
        harness.session.discard();
        let queued = all.iter().filter(|uid| database.get(**uid, "status") == "queued").count();
        assert_eq!(queued, 20, "{setting}");
        harness
            .run(async |session, context| {
                nrllm_runtime::ops::status::status(session, context, None, None).await
            })
            .unwrap_or_else(|error| panic!("{setting}: {error:?}"));
        admin.run(&format!("SET GLOBAL {name} = {}", default_of(name)));
        admin.run(&format!("DELETE FROM {}.tx_nrllm_agentrun", database.name()));
    }
}

fn default_of(name: &str) -> &'static str {
    if name == "init_connect" { "''" } else { "DEFAULT" }
}

#[test]
fn p28_mariadb_with_another_version_string_works() {
    if wants_mysql() {
        return;
    }
    let server = Server::start(&["--version=8.4.3"]);
    let mut database = Database::on(&server, &Shape::default());
    let mut harness = Harness::on(&database);
    let stale = database.insert(&Run::running("gone", 5));
    let queued = database.insert(&Run::queued());
    assert!(harness.claim_queued(queued, OWNER, LEASE).unwrap());
    assert_eq!(harness.reap_all(5).requeued.len(), 1);
    assert_eq!(database.get(stale, "status"), "queued");
}

#[test]
fn p28_every_session_variable_is_classified() {
    let page = std::fs::read_to_string(
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/session-variables.md"),
    )
    .unwrap();
    let known: BTreeSet<&str> = page.split('`').skip(1).step_by(2).collect();
    let database = Database::new();
    let unknown: Vec<String> = session_variables(&mut database.connect())
        .into_iter()
        .filter(|name| !known.contains(name.as_str()))
        .collect();
    assert!(unknown.is_empty(), "docs/session-variables.md lacks {unknown:?}");
}

/// The variables that a session may have of its own.
fn session_variables(client: &mut Client) -> Vec<String> {
    if !wants_mysql() {
        let sql = "SELECT LOWER(VARIABLE_NAME) AS n FROM information_schema.SYSTEM_VARIABLES \
                   WHERE VARIABLE_SCOPE IN ('SESSION', 'SESSION ONLY')";
        return client.rows(sql).into_iter().map(|row| text(row[0].as_deref())).collect();
    }
    let all = client.rows("SELECT VARIABLE_NAME FROM performance_schema.session_variables");
    all.into_iter()
        .map(|row| text(row[0].as_deref()))
        // Server-wide ones are refused.
        .filter(|name| client.try_rows(&format!("SET SESSION {name} = @@SESSION.{name}")).is_ok())
        .collect()
}

fn text(bytes: Option<&[u8]>) -> String {
    String::from_utf8_lossy(bytes.unwrap_or_default()).into_owned()
}

#[test]
fn p33_isolation_and_row_image_follow_what_is_logged() {
    let (isolation, rows) =
        if wants_mysql() { ("transaction_isolation", "FULL") } else { ("tx_isolation", "FULL") };
    for (format, level) in
        [("STATEMENT", "REPEATABLE-READ"), ("MIXED", "REPEATABLE-READ"), ("ROW", "READ-COMMITTED")]
    {
        let option = format!("--binlog-format={format}");
        let server = Server::start(&["--log-bin=binlog", "--server-id=1", &option]);
        let mut database = Database::on(&server, &Shape::default());
        let uid = database.insert(&Run::running(OWNER, LEASE));
        let site = site_account(&server, &database);
        for (endpoint, image) in
            [(server.endpoint(), if format == "ROW" { "MINIMAL" } else { rows }), (&site, rows)]
        {
            let proxy = Proxy::start(endpoint);
            let mut harness = Harness::at(proxy.endpoint(), database.name(), Options::default());
            assert!(harness.renew_lease(uid, OWNER, LEASE + 1).unwrap(), "{format}");
            let statements = proxy.statements();
            assert_eq!(
                statements
                    .iter()
                    .filter(|sql| sql.starts_with("SET SESSION binlog_row_image"))
                    .count(),
                usize::from(image == "MINIMAL"),
                "{format}: {statements:?}"
            );
            let sql =
                format!("SELECT CONCAT_WS(' ', @@SESSION.{isolation}, @@SESSION.binlog_row_image)");
            let mut found =
                harness.run(async |session, _| session.query(&sql, Params::Empty).await).unwrap();
            let found: String = found.remove(0).take(0).unwrap();
            assert_eq!(found, format!("{level} {image}"), "{format}");
        }
    }
}

#[test]
fn p33_live_workers_wait_for_nothing_beside_a_reap() {
    for format in ["MIXED", "ROW"] {
        let option = format!("--binlog-format={format}");
        let server = Server::start(&["--log-bin=binlog", "--server-id=1", &option]);
        for shape in [Shape::default(), Shape::default().lease_key()] {
            let mut database = Database::on(&server, &shape);
            let runs = |count: usize, run: &dyn Fn() -> Run| -> Vec<Run> {
                (0..count).map(|_| run()).collect()
            };
            let mut uids = Vec::new();
            // Stale runs between live ones and queued ones.
            for _ in 0..60 {
                uids.extend(database.insert_all(&runs(2, &|| Run::running(OWNER, LEASE))));
                uids.extend(database.insert_all(&runs(1, &Run::queued)));
                database.insert_all(&runs(3, &|| Run::running("gone", 5)));
            }
            let proxy = Proxy::start(server.endpoint());
            // The word alone: READ-COMMITTED is among the session's settings.
            let commit = When::command(|command| command.sql == "COMMIT");
            let open = proxy.rule(commit, Fault::HoldRequest);
            let mut harness = Harness::limits(proxy.endpoint(), database.name(), 60_000, 60_000);
            let before = server.row_lock_waits();
            std::thread::scope(|scope| {
                let reaping = scope.spawn(|| harness.reap_all(500));
                open.wait();
                let mut worker = database.connect();
                worker.run("SET innodb_lock_wait_timeout = 1");
                let table = "tx_nrllm_agentrun";
                for uid in &uids {
                    worker.run(&format!(
                        "UPDATE {table} SET lease_expires = lease_expires + 1, tstamp = tstamp + 1 \
                         WHERE uid = {uid} AND status = 'running' AND claimed_by = '{OWNER}'"
                    ));
                    worker.run(&format!(
                        "UPDATE {table} SET status = 'running', claimed_by = 'php', lease_expires = {LEASE} \
                         WHERE uid = {uid} AND status = 'queued'"
                    ));
                    worker.run(&format!(
                        "UPDATE {table} SET status = 'completed', claimed_by = '', lease_expires = 0 WHERE uid = {uid}"
                    ));
                    worker.run(&format!(
                        "INSERT INTO {table} (uuid, status, crdate) VALUES (UUID(), 'queued', {uid})"
                    ));
                }
                open.release();
                assert_eq!(reaping.join().unwrap().requeued.len(), 180, "{format}");
            });
            assert_eq!(server.row_lock_waits(), before, "{format}");
        }
    }
}
