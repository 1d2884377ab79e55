//! What keeps a chunk of a reap or of a sweep from being handled (rules 8, 9 and 30): a locked
//! table, a statement that runs into its time limit, a transaction that is too large for a cluster.

use nrllm_runtime::error::{Kind, Result, code};
use nrllm_runtime::ops::reap::Report;

use super::sql::{SERVERS, pretending};
use crate::support::database::{Database, RUNS, Run, Shape};
use crate::support::harness::{Harness, error_of, reasons, request, uids};
use crate::support::proxy::{Fault, Outcome, Proxy, When};
use crate::support::server::{Server, wants_mysql};
use crate::support::wake_up::sweep;

const RUNS_IN_ALL: usize = 40;

fn stale() -> Vec<Run> {
    vec![Run::running("dead", 5); RUNS_IN_ALL]
}

/// The uids that a locking read of a chunk lists.
fn listed(sql: &str) -> Option<Vec<i64>> {
    if !sql.contains("FOR UPDATE SKIP LOCKED") {
        return None;
    }
    let list = sql.split("uid IN (").nth(1)?.split(')').next()?;
    Some(list.split(',').map(|uid| uid.parse().unwrap()).collect())
}

fn refusals(proxy: &Proxy, number: u16) -> usize {
    let log = proxy.log();
    log.iter().filter(|exchange| exchange.outcome == Outcome::Refused(number)).count()
}

#[test]
fn p30_locked_table_ends_the_call_after_few_waits() {
    let read_lock = format!("LOCK TABLES {RUNS} READ");
    let write_lock = format!("LOCK TABLES {RUNS} WRITE");
    // MySQL's servers would refuse what a session pretends to know of them.
    let kinds = if wants_mysql() { &SERVERS[4..5] } else { &SERVERS[..3] };
    // A global lock stops every write to the server: it is a server of this test alone.
    let server = Server::start(&[]);
    for (kind, variables) in kinds {
        for lock in ["FLUSH TABLES WITH READ LOCK", &read_lock, &write_lock] {
            let mut database = Database::on(&server, &Shape::default());
            let runs = database.insert_all(&stale());
            let queued = database.insert_all(&vec![Run::queued(); RUNS_IN_ALL]);
            let proxy = pretending(&database, variables);
            let mut harness = Harness::through(&proxy, &database);
            harness.lease_state(runs[0], "dead").unwrap();
            let mut other = database.connect();
            other.run(lock);
            let why = format!("{lock}, {kind}");
            let table = format!("timed out waiting for the table `{RUNS}`");
            let reaped = harness.reap(&request(100)).map(|_| ());
            let swept = sweep(&mut harness, 60, 100, None).map(|_| ());
            for outcome in [reaped, swept] {
                let error = error_of(Kind::Connection, outcome);
                assert!(error.code == code::LOCK_WAIT_TIMEOUT, "{why}: {error:?}");
                assert!(error.message.starts_with(&table), "{why}: {error}");
            }
            // One wait, and one for the table alone, in each call.
            assert!(refusals(&proxy, code::LOCK_WAIT_TIMEOUT) <= 4, "{why}: {:#?}", proxy.log());
            other.run("UNLOCK TABLES");
            assert_eq!(harness.reap_all(100).requeued.len(), runs.len(), "{why}");
            assert_eq!(sweep(&mut harness, 60, 100, None).unwrap().len(), queued.len(), "{why}");
        }
    }
}

#[test]
fn p30_row_lock_is_not_taken_for_a_locked_table() {
    for (kind, variables) in &SERVERS[..3] {
        let mut database = Database::new();
        let runs = database.insert_all(&vec![Run::running("dead", 5); 4]);
        let proxy = pretending(&database, variables);
        let mut harness = Harness::through(&proxy, &database);
        let mut other = database.connect();
        other.run("START TRANSACTION");
        other.run(&format!("UPDATE {RUNS} SET pid = 1 WHERE uid = {}", runs[1]));
        let report = harness.reap_all(10);
        assert_eq!(uids(&report.requeued), [runs[0], runs[2], runs[3]], "{kind}");
        assert_eq!(
            (uids(&report.skipped), reasons(&report.skipped)),
            (vec![runs[1]], vec!["contended"]),
            "{kind}"
        );
    }
}

#[test]
fn p30_statement_over_its_time_limit_makes_chunks_smaller() {
    for number in [code::STATEMENT_TIMEOUT, code::QUERY_TIMEOUT] {
        let mut database = Database::new();
        let runs = database.insert_all(&stale());
        let proxy = Proxy::start(database.endpoint());
        let mut harness = Harness::through(&proxy, &database);
        let slow = |sql: &str| listed(sql).is_some_and(|uids| uids.len() > 3);
        let rule = proxy.rule(
            When::command(move |command| command.is_statement() && slow(&command.sql)).always(),
            Fault::Refuse(number),
        );
        let report = harness.reap_all(100);
        assert_eq!((uids(&report.requeued), report.has_more), (runs, false), "{number}");
        // 40, 20, 10, 5: what a chunk has found out, the next ones need not find out again.
        assert_eq!(rule.hits(), 4, "{number}");
        assert_eq!(proxy.connections(), 1, "{number}: the connection stays");
    }
}

#[test]
fn p30_run_over_the_time_limit_stops_no_other() {
    let mut database = Database::new();
    let runs = database.insert_all(&stale());
    let slow = runs[17];
    let proxy = Proxy::start(database.endpoint());
    let mut harness = Harness::through(&proxy, &database);
    proxy.rule(
        When::command(move |command| {
            command.is_statement() && listed(&command.sql).is_some_and(|uids| uids.contains(&slow))
        })
        .always(),
        Fault::Refuse(code::STATEMENT_TIMEOUT),
    );
    let report = harness.reap_all(100);
    assert_eq!(report.requeued.len(), runs.len() - 1);
    assert_eq!((uids(&report.skipped), reasons(&report.skipped)), (vec![slow], vec!["timed_out"]));
    proxy.heal();
    assert_eq!(uids(&harness.reap_all(100).requeued), [slow], "no lock is left behind");
}

#[test]
fn p30_sweep_over_the_time_limit_makes_chunks_smaller() {
    let mut database = Database::new();
    let runs = database.insert_all(&vec![Run::queued(); RUNS_IN_ALL]);
    let proxy = Proxy::start(database.endpoint());
    let mut harness = Harness::through(&proxy, &database);
    let slow = |sql: &str| listed(sql).is_some_and(|uids| uids.len() > 3);
    proxy.rule(
        When::command(move |command| command.is_statement() && slow(&command.sql)).always(),
        Fault::Refuse(code::STATEMENT_TIMEOUT),
    );
    assert_eq!(sweep(&mut harness, 60, 100, None).unwrap().len(), runs.len());
}

/// The server's answer to a write or commit of more than `most` rows in Galera's words.
fn too_large(proxy: &Proxy, number: u16, text: &str, at: &'static str, most: usize) {
    let mut payload = vec![0xFF];
    payload.extend_from_slice(&number.to_le_bytes());
    payload.extend_from_slice(b"#HY000");
    payload.extend_from_slice(text.as_bytes());
    let mut rows = 0;
    let fails = move |sql: &str| {
        if let Some(uids) = listed(sql) {
            rows = uids.len();
        }
        rows > most && sql.starts_with(at)
    };
    let fails = std::sync::Mutex::new(fails);
    let when = When::command(move |command| {
        command.is_statement() && (fails.lock().unwrap())(&command.sql)
    });
    proxy.rule(when.always(), Fault::Payload(payload));
}

fn reaped_on_galera(number: u16, text: &str, at: &'static str, most: usize) -> Result<Report> {
    let mut database = Database::new();
    database.insert_all(&stale());
    let proxy = Proxy::start(database.endpoint());
    too_large(&proxy, number, text, at, most);
    Harness::through(&proxy, &database).reap(&request(100))
}

#[test]
fn p30_transaction_too_large_for_galera_makes_chunks_smaller() {
    // As MariaDB 10.11 with Galera 4 words them.
    for (number, text) in [
        (code::ERROR_DURING_COMMIT, "wsrep_max_ws_rows exceeded"),
        (code::UNKNOWN, "Maximum writeset size exceeded"),
    ] {
        let report = reaped_on_galera(number, text, "UPDATE", 8).unwrap();
        assert_eq!((report.requeued.len(), report.has_more), (RUNS_IN_ALL, false), "{text}");
        let report = reaped_on_galera(number, text, "UPDATE", 0).unwrap();
        assert_eq!(reasons(&report.skipped), vec!["too_large"; RUNS_IN_ALL], "{text}");
    }
    let other = reaped_on_galera(code::ERROR_DURING_COMMIT, "Got error 5", "UPDATE", 8);
    assert_eq!(error_of(Kind::Query, other).code, code::ERROR_DURING_COMMIT);
}
