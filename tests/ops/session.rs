//! A session and its connection: server settings, time limits, closed connections, refused
//! statements (rules 20, 21 and 22).

use std::time::{Duration, Instant};

use nrllm_runtime::config::options::Options;
use nrllm_runtime::error::Kind;

use crate::support::PATIENCE;
use crate::support::client::{Client, refused_with};
use crate::support::database::{Database, Run, Shape, assert_row};
use crate::support::harness::{Harness, LEASE, OWNER, error_of, request};
use crate::support::operation::{OTHER, all_operations, held, operations, stale, target, timed};
use crate::support::proxy::{Fault, Proxy, Welcome, When};
use crate::support::server::{Endpoint, Server, wants_mysql};

#[test]
fn p21_silent_server_costs_time_limit_and_connection() {
    let mut database = Database::new();
    let proxy = Proxy::start(database.endpoint());
    let mut harness = Harness::limits(proxy.endpoint(), database.name(), 1_500, 1_000);
    let uid = database.insert(&held());
    let answer = |harness: &mut Harness| harness.renew_lease(uid, OWNER, LEASE);

    proxy.welcome(Welcome::Silence, 1);
    let (error, took) = timed(|| error_of(Kind::Connection, answer(&mut harness)));
    assert!(error.message.contains("connectTimeoutMs"), "{error}");
    assert!((1_500..10_000).contains(&took), "{took} ms");

    assert!(answer(&mut harness).unwrap());
    let rule = proxy.rule(When::statement("UPDATE "), Fault::Silence);
    let (error, took) = timed(|| error_of(Kind::Connection, answer(&mut harness)));
    assert!(error.message.contains("queryTimeoutMs"), "{error}");
    assert!((1_000..10_000).contains(&took), "{took} ms");
    assert_eq!(rule.hits(), 1, "not asked a second time: the time is up");
    assert!(answer(&mut harness).unwrap());
    assert_eq!(proxy.connections(), 3);
}

#[test]
fn p21_slow_network_is_not_an_error() {
    let mut database = Database::new();
    let proxy = Proxy::start(database.endpoint());
    let mut harness = Harness::limits(proxy.endpoint(), database.name(), 10_000, 10_000);
    let delay = std::time::Duration::from_millis(20);
    proxy.rule(When::any_command().times(10), Fault::DelayRequest(delay));
    proxy.rule(When::any_command().always(), Fault::DelayReply(delay));
    for operation in operations() {
        let (uid, uuid) = target(&mut database, &operation);
        let done = (operation.call)(&mut harness, uid, &uuid)
            .unwrap_or_else(|error| panic!("{}: {error:?}", operation.name));
        assert_eq!(done, (operation.effect)(&mut database, uid), "{}", operation.name);
    }
    assert_eq!(proxy.connections(), 1);
}

#[test]
fn p21_late_reply_never_answers_the_next_call() {
    let mut database = Database::new();
    let proxy = Proxy::start(database.endpoint());
    let mut harness = Harness::limits(proxy.endpoint(), database.name(), 3_000, 1_000);
    let held = database.insert(&held());
    let taken = database.insert(&Run::running(OTHER, LEASE));
    assert!(harness.renew_lease(held, OWNER, LEASE).unwrap());
    let rule = proxy.rule(When::statement("UPDATE "), Fault::HoldReply);
    error_of(Kind::Connection, harness.renew_lease(held, OWNER, LEASE));
    // The reply "one row matched" is on its way now.
    rule.release();
    assert!(!harness.renew_lease(taken, OWNER, LEASE).unwrap());
    assert_eq!(harness.lease_state(taken, OWNER).unwrap(), "taken");
}

#[test]
fn p21_closed_idle_connection_is_reopened() {
    let mut database = Database::new();
    for operation in operations() {
        let proxy = Proxy::start(database.endpoint());
        let mut harness = Harness::through(&proxy, &database);
        let opened = database.insert(&Run::queued());
        assert_eq!(harness.lease_state(opened, OWNER).unwrap(), "requeued");
        proxy.cut_all();
        let (uid, uuid) = target(&mut database, &operation);
        let done = (operation.call)(&mut harness, uid, &uuid)
            .unwrap_or_else(|error| panic!("{}: {error}", operation.name));
        assert_eq!(done, operation.name != "leaseState", "{}", operation.name);
        assert_eq!(done, (operation.effect)(&mut database, uid), "{}", operation.name);
        assert_eq!(proxy.connections(), 2, "{}", operation.name);
    }
}

#[test]
fn p21_reconnect_applies_the_session_settings() {
    let server = Server::start(&["--autocommit=0", "--sql-mode="]);
    let mut database = Database::on(&server, &Shape::default());
    let uid = database.insert(&held());
    let mut harness = Harness::on(&database);
    let own = database.client().id();
    for round in 0..3 {
        assert!(harness.renew_lease(uid, OWNER, LEASE + round).unwrap());
        assert_eq!(database.get(uid, "lease_expires"), (LEASE + round).to_string(), "committed");
        // The site's administrator ends the connection between two calls.
        let mut others = server.connections();
        others.retain(|other| other.id != own && other.database == database.name());
        assert_eq!(others.len(), 1, "{others:?}");
        database.client().run(&format!("KILL {}", others[0].id));
    }
    assert!(harness.renew_lease(uid, OWNER, LEASE).unwrap());
    assert_eq!(harness.session.generation(), 4, "one connection after the other");
}

/// Settings of the harness's own session, as the server has them.
fn session_variables(harness: &mut Harness) -> Vec<String> {
    let isolation = if wants_mysql() { "transaction_isolation" } else { "tx_isolation" };
    let limit = if wants_mysql() { "max_execution_time / 1000" } else { "max_statement_time" };
    let sql = format!(
        "SELECT CONCAT_WS('|', @@session.autocommit + 0, @@session.{isolation}, @@session.sql_mode, @@session.innodb_lock_wait_timeout, \
         @@session.{limit}, @@session.character_set_client)"
    );
    let mut rows = harness
        .run(async |session, _| session.query(&sql, mysql_async::Params::Empty).await)
        .unwrap();
    let row: String = rows.remove(0).take(0).unwrap();
    row.split('|').map(str::to_owned).collect()
}

#[test]
fn p21_session_settings_override_server_defaults() {
    let hostile: &[&str] = &[
        "--autocommit=0",
        "--sql-mode=ANSI_QUOTES",
        "--transaction-isolation=SERIALIZABLE",
        "--innodb-lock-wait-timeout=3000",
        "--character-set-server=latin1",
    ];
    for (options, isolation) in [
        (hostile.to_vec(), "READ-COMMITTED"),
        (
            [hostile, &["--log-bin=binlog", "--server-id=1", "--binlog-format=STATEMENT"]].concat(),
            "REPEATABLE-READ",
        ),
    ] {
        let server = Server::start(&options);
        let database = Database::on(&server, &Shape::default());
        for query_ms in [400, 3_500, 30_000] {
            let mut harness =
                Harness::limits(database.endpoint(), database.name(), 10_000, query_ms);
            for connection in 0..2 {
                let variables = session_variables(&mut harness);
                assert_eq!(variables[0], "1", "autocommit of connection {connection}");
                assert_eq!(variables[1], isolation, "isolation of connection {connection}");
                assert_eq!(variables[2], "STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION");
                let (lock_wait, statement): (f64, f64) =
                    (variables[3].parse().unwrap(), variables[4].parse().unwrap());
                let client = query_ms as f64 / 1_000.0;
                assert!(
                    lock_wait <= client.max(1.0),
                    "a row lock is waited for {lock_wait} s, the client waits {client} s"
                );
                assert!(
                    statement > 0.0 && statement < client,
                    "a statement has {statement} s, the client waits {client} s"
                );
                assert_eq!(variables[5], "utf8mb4");
                harness.session.discard();
            }
        }
    }
}

#[test]
fn p21_wait_timeout_between_calls_is_not_an_error() {
    let server = Server::start(&["--wait-timeout=1", "--interactive-timeout=1"]);
    let mut database = Database::on(&server, &Shape::default());
    database.client().run("SET SESSION wait_timeout = 600");
    let uid = database.insert(&Run::queued());
    let mut harness = Harness::on(&database);
    assert_eq!(harness.lease_state(uid, OWNER).unwrap(), "requeued");
    let own = database.client().id();
    // The server says when it has closed the idle connection.
    let gone = std::time::Instant::now();
    while server
        .connections()
        .iter()
        .any(|connection| connection.database == database.name() && connection.id != own)
    {
        assert!(gone.elapsed() < crate::support::PATIENCE);
    }
    assert!(harness.claim_queued(uid, OWNER, LEASE).unwrap());
    assert_eq!(database.get(uid, "claimed_by"), OWNER);
}

#[test]
fn p21_non_primary_server_costs_the_connection() {
    let mut database = Database::new();
    for code in [1290, 1836, 1792, 1047] {
        let proxy = Proxy::start(database.endpoint());
        let mut harness = Harness::through(&proxy, &database);
        let uid = database.insert(&held());
        assert!(harness.renew_lease(uid, OWNER, LEASE).unwrap());
        proxy.rule(When::statement("UPDATE "), Fault::Refuse(code));
        let error = error_of(Kind::Connection, harness.renew_lease(uid, OWNER, LEASE));
        assert_eq!(error.code, code);
        assert!(
            harness.renew_lease(uid, OWNER, LEASE).unwrap(),
            "{code}: the next connection may reach the primary"
        );
        assert_eq!(proxy.connections(), 2, "{code}");
    }
}

#[test]
fn p21_read_only_server_is_a_connection_error() {
    let server = Server::start(&[]);
    let mut database = Database::on(&server, &Shape::default());
    let uid = database.insert(&held());
    // Accounts with many privileges may write all the same.
    let mut admin = server.client();
    admin.run(&format!(
        "CREATE USER 'site'@'127.0.0.1' IDENTIFIED BY 'site-Passw0rd'; GRANT SELECT, INSERT, UPDATE, DELETE ON {}.* TO 'site'@'127.0.0.1'",
        database.name()
    ));
    let endpoint = Endpoint {
        user: "site".to_owned(),
        password: "site-Passw0rd".to_owned(),
        ..server.endpoint().clone()
    };
    let mut harness = Harness::at(&endpoint, database.name(), Options::default());
    assert!(harness.renew_lease(uid, OWNER, LEASE).unwrap());
    admin.run("SET GLOBAL read_only = ON");
    assert_eq!(error_of(Kind::Connection, harness.renew_lease(uid, OWNER, LEASE)).code, 1290);
    assert_eq!(harness.lease_state(uid, OWNER).unwrap(), "held", "reading goes on");
    admin.run("SET GLOBAL read_only = OFF");
    assert!(harness.renew_lease(uid, OWNER, LEASE).unwrap());
}

#[test]
fn p21_refused_statement_keeps_the_connection() {
    let mut database = Database::new();
    let proxy = Proxy::start(database.endpoint());
    let mut harness = Harness::through(&proxy, &database);
    let uid = database.insert(&held());
    for (code, kind) in [
        (1064, Kind::Query),
        (1461, Kind::Query),
        (1142, Kind::Query),
        (1317, Kind::Connection),
        (1146, Kind::Configuration),
        (1054, Kind::Configuration),
    ] {
        assert!(harness.renew_lease(uid, OWNER, LEASE).unwrap());
        proxy
            .rule(When::command(|command| command.sql.starts_with("UPDATE ")), Fault::Refuse(code));
        assert_eq!(error_of(kind, harness.renew_lease(uid, OWNER, LEASE)).code, code);
    }
    assert!(harness.renew_lease(uid, OWNER, LEASE).unwrap());
    assert_eq!(proxy.connections(), 1);
}

#[test]
fn p21_unreachable_server_error_names_the_address() {
    let mut database = Database::new();
    let uid = database.insert(&held());
    let proxy = Proxy::start(database.endpoint());
    proxy.welcome(Welcome::Refuse(1040), 1);
    let error = error_of(
        Kind::Connection,
        Harness::through(&proxy, &database).renew_lease(uid, OWNER, LEASE),
    );
    assert_eq!(error.code, 1040);
    for welcome in [
        Welcome::Cut,
        Welcome::CutAtLogin,
        Welcome::Garbage(b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec()),
    ] {
        proxy.welcome(welcome.clone(), 1);
        let mut harness = Harness::limits(proxy.endpoint(), database.name(), 1_500, 1_500);
        error_of(Kind::Connection, harness.renew_lease(uid, OWNER, LEASE));
        assert!(harness.renew_lease(uid, OWNER, LEASE).unwrap(), "after {welcome:?}");
    }
    let nowhere = proxy.endpoint().clone();
    drop(proxy);
    let error = error_of(
        Kind::Connection,
        Harness::at(&nowhere, database.name(), Options::default()).renew_lease(uid, OWNER, LEASE),
    );
    assert!(error.message.contains(&nowhere.port.to_string()), "{error}");
    for (user, database_name) in
        [("no_such_user", database.name()), (nowhere.user.as_str(), "no_such_database")]
    {
        let endpoint = Endpoint {
            user: user.to_owned(),
            password: "hidden-Passw0rd".to_owned(),
            ..database.endpoint().clone()
        };
        let error = Harness::at(&endpoint, database_name, Options::default())
            .renew_lease(uid, OWNER, LEASE)
            .unwrap_err();
        assert!(!format!("{error:?} {error}").contains("hidden-Passw0rd"), "{error}");
    }
}

#[test]
fn p20_one_connection_with_few_statements_for_3000_calls() {
    let server = Server::start(&[]);
    let mut database = Database::on(&server, &Shape::default());
    let proxy = Proxy::start(database.endpoint());
    let mut harness = Harness::through(&proxy, &database);
    let uids = database.insert_all(
        &(0..30).map(|number| Run::running(&format!("worker:{number}"), LEASE)).collect::<Vec<_>>(),
    );
    for tick in 0..3_000_usize {
        let number = tick % uids.len();
        assert!(
            harness
                .renew_lease(uids[number], &format!("worker:{number}"), LEASE + tick as i64)
                .unwrap()
        );
        if tick % 30 == 0 {
            // Reports of all sizes: no statement's text may depend on them and stay prepared.
            let runs = vec![stale(); 1 + tick / 30];
            database.insert_all(&runs);
            assert_eq!(harness.reap_all(1_000).requeued.len(), runs.len());
        }
    }
    assert_eq!((proxy.connections(), proxy.open_connections()), (1, 1));
    assert_eq!(harness.session.generation(), 1);
    let count = proxy.count();
    let held = count.prepares - count.closed_statements;
    assert!(held <= 8, "{held} prepared statements");
    // Those of the proxy's connection, and one of the test's own.
    assert!(server.prepared_statements() <= held as u64 + 4, "{}", server.prepared_statements());
}

#[test]
fn p20_operations_work_with_twelve_prepared_statements() {
    let server = Server::start(&["--max-prepared-stmt-count=12"]);
    let mut database = Database::on(&server, &Shape::default());
    let mut harness = Harness::on(&database);
    for operation in operations() {
        let (uid, uuid) = target(&mut database, &operation);
        (operation.call)(&mut harness, uid, &uuid)
            .unwrap_or_else(|error| panic!("{}: {error:?}", operation.name));
    }
}

#[test]
fn p22_special_characters_in_credentials() {
    let server = Server::start(&[]);
    let mut database = Database::on(&server, &Shape::default());
    let uid = database.insert(&held());
    let password = "p@ss:w/o#rd?%41&+ \u{fc}'\"\\`";
    let mut admin = server.client();
    admin.run(&format!(
        "CREATE USER 'o''brien \u{e4}'@'127.0.0.1' IDENTIFIED BY '{}'",
        password.replace('\\', "\\\\").replace('\'', "''")
    ));
    admin.run(&format!(
        "GRANT SELECT, UPDATE ON {}.* TO 'o''brien \u{e4}'@'127.0.0.1'",
        database.name()
    ));
    let endpoint = Endpoint {
        user: "o'brien \u{e4}".to_owned(),
        password: password.to_owned(),
        ..server.endpoint().clone()
    };
    let settings = crate::support::harness::settings(&endpoint, database.name());
    assert!(!format!("{settings:?}").contains("p@ss"), "{settings:?}");
    let mut harness = Harness::of(settings, Options::default());
    assert!(harness.renew_lease(uid, OWNER, LEASE).unwrap());
    admin.run("SET GLOBAL read_only = ON");
    let error = harness.renew_lease(uid, OWNER, LEASE).unwrap_err();
    assert!(!format!("{error:?} {error}").contains("p@ss"), "{error:?}");
}

/// Asks again and again until it is so; what is waited for is the server's, not a time.
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let since = Instant::now();
    while !is_so() {
        assert!(since.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn p20_a_process_works_with_twenty_prepared_statements() {
    let server = Server::start(&["--max-prepared-stmt-count=20"]);
    let mut database = Database::on(&server, &Shape::default());
    let mut first = Harness::on(&database);
    all_operations(&mut database, &mut first);
    drop(first);
    until("the first one is gone", || server.connections().len() == 1);
    // What is left are those of the test's own connection.
    let own = server.prepared_statements();
    let mut harness = Harness::on(&database);
    for _ in 0..3 {
        all_operations(&mut database, &mut harness);
        let held = server.prepared_statements() - own;
        assert!((1..=8).contains(&held), "eight are kept at most: {held}");
    }
}

#[test]
fn p21_exhausted_prepared_statements_leave_no_half_write() {
    let server = Server::start(&["--max-prepared-stmt-count=20"]);
    let mut database = Database::on(&server, &Shape::default());
    let held = database.insert(&Run::running(OWNER, LEASE));
    let stale = database.insert(&Run::running("dead", 5));
    let mut harness = Harness::on(&database);
    let mut others = database.connect();
    let mut taken = 0;
    // As a client that leaks: it prepares until the server has no more.
    while others.try_run(&format!("PREPARE leaked_{taken} FROM 'SELECT {taken}'")).is_ok() {
        taken += 1;
    }
    assert!(taken <= 20, "the server has its limit");
    let before = [database.row(held), database.row(stale)];
    let error = error_of(Kind::Query, harness.requeue(held, OWNER));
    assert_eq!(error.code, 1461);
    assert!(error.message.contains("max_prepared_stmt_count"), "{error}");
    assert_eq!(error_of(Kind::Query, harness.reap(&request(5))).code, 1461);
    assert_row(&database.row(held), &before[0], "nothing was written");
    assert_row(&database.row(stale), &before[1], "nothing was written");
    others.close();
    until("the leak has ended", || server.prepared_statements() < 20);
    assert!(harness.requeue(held, OWNER).unwrap());
    assert_eq!(harness.reap_all(5).requeued.len(), 1);
}

#[test]
fn p21_too_many_connections_is_reported_and_recovers() {
    let server = Server::start(&["--max-connections=10"]);
    let mut database = Database::on(&server, &Shape::default());
    let uid = database.insert(&Run::running(OWNER, LEASE));
    let mut harness = Harness::on(&database);
    let before = database.row(uid);
    let mut others = Vec::new();
    let refusal = loop {
        match Client::try_connect(server.endpoint(), None) {
            Ok(client) => others.push(client),
            Err(error) => break error,
        }
    };
    assert!(refused_with(&refusal, 1040), "{refusal}");
    let error = error_of(Kind::Connection, harness.renew_lease(uid, OWNER, LEASE + 1));
    assert_eq!(error.code, 1040);
    assert_row(&database.row(uid), &before, "nothing was written");
    // A connection that is gone for the client stays in the server's count for a moment.
    others.clear();
    until("there is room again", || harness.renew_lease(uid, OWNER, LEASE + 1).is_ok());
    assert_eq!(database.get(uid, "lease_expires"), (LEASE + 1).to_string());
}
