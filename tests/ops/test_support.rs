//! The support code of the tests: a fault in the proxy or the private server would make the other
//! tests meaningless.

use std::thread;

use mysql_async::Error;

use crate::support::client::{Client, refused_with};
use crate::support::database::{Database, RUNS, Run, Shape, assert_row, changed};
use crate::support::proxy::{Fault, FoundRows, Info, Kind, Outcome, Proxy, Welcome, When};
use crate::support::server::{self, Server};

/// A renewal as PHP writes it; `tstamp` is what makes it change something or not.
fn renew(client: &mut Client, uid: i64, tstamp: i64) -> Result<u64, Error> {
    let sql = format!(
        "UPDATE {RUNS} SET lease_expires = ?, tstamp = ? WHERE uid = ? AND status = 'running' AND claimed_by = ?"
    );
    client.try_exec(&sql, (5_000, tstamp, uid, "worker:a")).map(|done| done.affected)
}

fn through(proxy: &Proxy, database: &Database) -> Client {
    Client::connect_tcp(proxy.endpoint(), Some(database.name())).unwrap()
}

#[test]
fn a_database_has_the_shape_that_was_asked_for() {
    let shape = Shape::default()
        .collation("latin1_swedish_ci")
        .queued_at()
        .lease_key()
        .without("pending_effect");
    let mut database = Database::with(&shape);
    let uid = database.insert(&Run::running("worker:a", 5_000));
    let row = database.row(uid);
    assert!(row.contains_key("queued_at") && !row.contains_key("pending_effect"), "{row:?}");
    assert_eq!(row["claimed_by"].as_deref(), Some(&b"worker:a"[..]));
    let table = database.client().rows(&format!("SHOW CREATE TABLE {RUNS}"));
    let table = String::from_utf8_lossy(table[0][1].as_deref().unwrap()).into_owned();
    assert!(
        table.contains("`nrllm_runtime_lease` (`status`,`lease_expires`)")
            && table.contains("latin1"),
        "{table}"
    );
    for collation in ["utf8mb4_general_ci", "utf8mb4_bin", "utf8mb3_general_ci"] {
        Database::with(&Shape::default().collation(collation));
    }
}

#[test]
fn a_database_is_gone_with_its_test() {
    let database = Database::new();
    let name = database.name().to_owned();
    let mut client = database.connect();
    drop(database);
    assert_eq!(
        client.number(&format!(
            "SELECT COUNT(*) FROM information_schema.schemata WHERE schema_name = '{name}'"
        )),
        0
    );
}

#[test]
fn a_row_is_compared_column_by_column() {
    let mut database = Database::new();
    let uid = database.insert(&Run::running("worker:a", 5_000));
    let before = database.row(uid);
    renew(database.client(), uid, 1_234).unwrap();
    let after = database.row(uid);
    assert_row(&after, &changed(&before, &[("tstamp", "1234")]), "a renewal");
    let differs = std::panic::catch_unwind(|| assert_row(&after, &before, "a renewal"));
    let message = *differs.unwrap_err().downcast::<String>().unwrap();
    assert!(
        message.contains("tstamp is \"1234\", expected \"1000\"") && !message.contains("uuid"),
        "{message}"
    );
}

#[test]
fn a_private_server_has_its_own_options_and_ends() {
    let mut server = Server::start(&["--autocommit=0", "--max-prepared-stmt-count=3"]);
    let mut client = server.client();
    assert_eq!(client.number("SELECT @@global.autocommit"), 0);
    assert_eq!(client.number("SELECT @@global.max_prepared_stmt_count"), 3);
    assert_eq!(server.row_lock_waits(), 0);
    server.log_statements();
    client.run("SELECT 'seen'");
    assert!(server.logged_statements(client.id()).contains(&"SELECT 'seen'".to_owned()));
    assert_eq!(server.prepared_statements(), 0);
    client.exec("SELECT ?", (1,));
    assert_eq!(server.prepared_statements(), 1);
    server.kill();
    assert!(client.try_run("SELECT 1").is_err());
    assert!(Client::try_connect(server.endpoint(), None).is_err());
}

#[test]
fn a_server_that_cannot_start_shows_its_log() {
    let failed = thread::spawn(|| drop(Server::start(&["--no-such-option=1"]))).join().unwrap_err();
    let message = failed.downcast::<String>().unwrap();
    assert!(message.contains("no-such-option"), "{message}");
}

#[test]
fn the_proxy_counts_and_logs_what_goes_through() {
    let mut database = Database::new();
    let uid = database.insert(&Run::running("worker:a", 5_000));
    let proxy = Proxy::start(database.endpoint());
    let mut client = through(&proxy, &database);
    proxy.clear_log();
    let before = proxy.count();
    renew(&mut client, uid, 2_000).unwrap();
    renew(&mut client, uid, 2_000).unwrap();
    assert_eq!(client.number("SELECT 1 UNION ALL SELECT 2 LIMIT 1"), 1);
    assert!(client.try_run("SELEC 1").is_err());
    assert_eq!(
        client.rows("SELECT 1; SELECT 2").len(),
        1,
        "of two result sets the client gives the first"
    );
    let count = proxy.count().since(before);
    assert_eq!((count.prepares, count.statements, count.round_trips, count.commands), (1, 5, 6, 6));
    assert_eq!(proxy.count_of(0).commands, proxy.count().commands);
    let log = proxy.log();
    assert_eq!(log[0].command.kind, Kind::Prepare);
    assert!(
        log[1].command.kind == Kind::Execute && log[1].command.sql.starts_with("UPDATE"),
        "{log:?}"
    );
    let Outcome::Ok { affected: 1, info } = &log[1].outcome else { panic!("{log:?}") };
    assert!(info.starts_with("Rows matched: 1  Changed: 1"), "{info}");
    assert_eq!(log[3].outcome, Outcome::Rows(1));
    assert_eq!(log[4].outcome, Outcome::Refused(1064));
    assert_eq!(log[5].outcome, Outcome::Rows(1));
    client.close();
    proxy.wait_for_open(0);
    assert_eq!((proxy.connections(), proxy.open_connections()), (1, 0));
    assert_eq!(proxy.log().last().unwrap().command.kind, Kind::Quit);
}

#[test]
fn a_cut_before_leaves_the_row_and_a_cut_after_does_not() {
    let mut database = Database::new();
    let uid = database.insert(&Run::running("worker:a", 5_000));
    let proxy = Proxy::start(database.endpoint());

    let rule = proxy.rule(When::statement("update"), Fault::CutBefore);
    assert!(renew(&mut through(&proxy, &database), uid, 2_000).is_err());
    assert_eq!((rule.hits(), database.get(uid, "tstamp").as_str()), (1, "1000"));

    for (tstamp, fault) in
        [(3_000, Fault::CutAfter), (4_000, Fault::CutWithin(0)), (5_000, Fault::CutWithin(6))]
    {
        let rule = proxy.rule(When::statement("update"), fault);
        assert!(renew(&mut through(&proxy, &database), uid, tstamp).is_err());
        assert_eq!((rule.hits(), database.get(uid, "tstamp")), (1, tstamp.to_string()));
    }

    // Spent rules do nothing.
    renew(&mut through(&proxy, &database), uid, 6_000).unwrap();
    assert_eq!(database.get(uid, "tstamp"), "6000");
}

#[test]
fn a_rule_is_for_the_nth_statement_and_so_many_times() {
    let database = Database::new();
    let proxy = Proxy::start(database.endpoint());
    let mut client = through(&proxy, &database);
    let rule = proxy.rule(When::any_statement().nth(3).times(2), Fault::Refuse(1205));
    let codes: Vec<bool> = (0..6)
        .map(|_| client.try_run("DO 1").is_err_and(|error| refused_with(&error, 1205)))
        .collect();
    assert_eq!(codes, [false, false, true, true, false, false]);
    assert_eq!(rule.hits(), 2);
    let prepare = proxy.rule(When::prepare("select ?"), Fault::Refuse(1461));
    assert!(client.try_exec("SELECT ?", (1,)).is_err_and(|error| refused_with(&error, 1461)));
    assert_eq!(prepare.hits(), 1);
    client.exec("SELECT ?", (1,));
}

#[test]
fn an_invented_deadlock_rolls_back_as_a_real_one_does() {
    let mut database = Database::new();
    let uid = database.insert(&Run::running("worker:a", 5_000));
    let proxy = Proxy::start(database.endpoint());
    let mut client = through(&proxy, &database);
    client.run("START TRANSACTION");
    renew(&mut client, uid, 2_000).unwrap();
    proxy.rule(When::statement("update"), Fault::Refuse(1213));
    assert!(renew(&mut client, uid, 3_000).is_err_and(|error| refused_with(&error, 1213)));
    client.run("COMMIT");
    assert_eq!(database.get(uid, "tstamp"), "1000");
}

#[test]
fn an_error_after_the_fact_leaves_the_fact() {
    let mut database = Database::new();
    let uid = database.insert(&Run::running("worker:a", 5_000));
    let proxy = Proxy::start(database.endpoint());
    let mut client = through(&proxy, &database);
    proxy.rule(When::statement("update"), Fault::RefuseAfter(1047));
    assert!(renew(&mut client, uid, 2_000).is_err_and(|error| refused_with(&error, 1047)));
    assert_eq!(database.get(uid, "tstamp"), "2000");
}

#[test]
fn what_is_held_waits_until_it_is_released() {
    let mut database = Database::new();
    let uid = database.insert(&Run::running("worker:a", 5_000));
    let proxy = Proxy::start(database.endpoint());
    for (fault, tstamp, meanwhile) in
        [(Fault::HoldRequest, 2_000, "1000"), (Fault::HoldReply, 3_000, "3000")]
    {
        let rule = proxy.rule(When::statement("update"), fault);
        let mut client = through(&proxy, &database);
        let worker = thread::spawn(move || renew(&mut client, uid, tstamp).unwrap());
        rule.wait();
        assert_eq!(database.get(uid, "tstamp"), meanwhile);
        assert!(!worker.is_finished());
        rule.release();
        assert_eq!(worker.join().unwrap(), 1);
        assert_eq!(database.get(uid, "tstamp"), tstamp.to_string());
    }
}

#[test]
fn a_proxy_ends_with_what_it_holds() {
    let database = Database::new();
    let proxy = Proxy::start(database.endpoint());
    let rule = proxy.rule(When::any_statement(), Fault::HoldReply);
    let silent = proxy.rule(When::any_statement().nth(1), Fault::Silence);
    let workers: Vec<_> = (0..2)
        .map(|_| {
            let mut client = through(&proxy, &database);
            thread::spawn(move || client.try_run("DO 1").is_err())
        })
        .collect();
    rule.wait();
    silent.wait();
    drop(proxy);
    for worker in workers {
        assert!(worker.join().unwrap());
    }
}

#[test]
fn garbage_arrives_in_place_of_the_reply() {
    let mut database = Database::new();
    let uid = database.insert(&Run::running("worker:a", 5_000));
    let proxy = Proxy::start(database.endpoint());
    for fault in [Fault::Garbage(vec![0xAB; 40]), Fault::Payload(vec![0x05])] {
        let mut client = through(&proxy, &database);
        let rule = proxy.rule(When::statement("update"), fault);
        let worker = thread::spawn(move || renew(&mut client, uid, 2_000).is_err());
        rule.wait();
        // A client may wait for more of a packet that never comes.
        proxy.cut_all();
        assert!(worker.join().unwrap());
        assert_eq!(database.get(uid, "tstamp"), "2000");
    }
}

#[test]
fn a_connection_can_be_refused_in_every_way() {
    let database = Database::new();
    let proxy = Proxy::start(database.endpoint());
    let connect = || Client::connect_tcp(proxy.endpoint(), Some(database.name())).map(drop);
    for welcome in [Welcome::Cut, Welcome::CutAtLogin] {
        proxy.welcome(welcome, 2);
        assert!(connect().is_err() && connect().is_err());
    }
    proxy.welcome(Welcome::Refuse(1040), 1);
    assert!(refused_with(&connect().unwrap_err(), 1040));
    proxy.welcome(Welcome::Garbage(b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec()), 1);
    proxy.welcome(Welcome::Silence, 1);
    for made in [6, 7] {
        let endpoint = proxy.endpoint().clone();
        let worker = thread::spawn(move || Client::connect_tcp(&endpoint, None).is_err());
        proxy.wait_for_connections(made);
        proxy.cut_all();
        assert!(worker.join().unwrap());
    }
    connect().unwrap();
}

#[test]
fn a_server_can_be_made_to_look_like_another() {
    let database = Database::new();
    let proxy = Proxy::start(database.endpoint());
    let mut client = through(&proxy, &database);
    proxy.rule(
        When::command(|command| command.sql == "SELECT VERSION()").times(1),
        Fault::Instead("SELECT '10.5.29-MariaDB'".to_owned()),
    );
    assert_eq!(client.text("SELECT VERSION()"), "10.5.29-MariaDB");
    assert_eq!(client.text("SELECT VERSION()"), server::shared().version());
}

#[test]
fn the_found_rows_flag_is_the_proxys_to_set() {
    let mut database = Database::new();
    let uid = database.insert(&Run::running("worker:a", 5_000));
    renew(database.client(), uid, 2_000).unwrap();
    let proxy = Proxy::start(database.endpoint());
    for (mode, plain, asked) in [
        (FoundRows::AsAsked, 0, 1),
        (FoundRows::On, 1, 1),
        (FoundRows::Off, 0, 0),
        (FoundRows::Flipped, 1, 0),
    ] {
        proxy.found_rows(mode);
        assert_eq!(renew(&mut through(&proxy, &database), uid, 2_000).unwrap(), plain, "{mode:?}");
        let mut client =
            Client::connect_tcp_found_rows(proxy.endpoint(), Some(database.name())).unwrap();
        assert_eq!(renew(&mut client, uid, 2_000).unwrap(), asked, "{mode:?}");
    }
}

#[test]
fn the_info_text_is_the_proxys_to_change() {
    let mut database = Database::new();
    let uid = database.insert(&Run::running("worker:a", 5_000));
    let proxy = Proxy::start(database.endpoint());
    let mut client = through(&proxy, &database);
    let sql = format!("UPDATE {RUNS} SET tstamp = 1000 WHERE uid = {uid}");
    for (info, expected) in [
        (Info::Keep, "Rows matched: 1  Changed: 0  Warnings: 0"),
        (Info::Drop, ""),
        (Info::Translate, "xxxx xxxxxxx: 1  xxxxxxx: 0  xxxxxxxx: 0"),
        (Info::Replace("更新 1 行".to_owned()), "更新 1 行"),
    ] {
        proxy.info(info);
        assert_eq!(client.run(&sql).info, expected);
        assert_eq!(client.exec(&sql, ()).info, expected);
        assert_eq!(client.number("SELECT 5"), 5);
    }
}

#[test]
fn large_rows_and_cached_definitions_pass() {
    let database = Database::new();
    let proxy = Proxy::start(database.endpoint());
    let mut client = through(&proxy, &database);
    // More than one packet of 16 MiB, in both directions.
    let big = "x".repeat(17 << 20);
    assert_eq!(client.number(&format!("SELECT LENGTH('{big}')")), 17 << 20);
    assert_eq!(client.text("SELECT REPEAT('y', 17 << 20)").len(), 17 << 20);
    // The second execution comes without the column definitions, where the server can do that.
    for number in [1, 2, 3] {
        client.exec("SELECT ?, 'two' FROM (SELECT 1 UNION ALL SELECT 2) AS t", (number,));
    }
    assert_eq!(proxy.log().last().unwrap().outcome, Outcome::Rows(2));
}

#[test]
fn the_shared_server_is_the_one_asked_for() {
    assert_eq!(server::shared().is_mariadb(), !server::wants_mysql());
    assert!(server::shared().version().starts_with(|first: char| first.is_ascii_digit()));
}
