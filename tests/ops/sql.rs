//! The finished SQL of every operation, as it goes over the wire: one snapshot per operation in
//! `tests/sql/`.
//!
//! Every scenario runs against a real server through the recording proxy, for both clocks and for
//! every kind of server. The proxy replaces the server's answer about its variables, so that the
//! session takes it for another kind. Cases with equal statements are listed together.
//!
//! To accept a change, run `INSTA_UPDATE=always cargo test --no-default-features --test ops sql::`
//! and read the diff.

use std::path::Path;

use mysql_async::Params;
use nrllm_runtime::config::options::{Clock, Options, TableName};
use nrllm_runtime::config::requests::{ReapRequest, SweepRequest, WakeUp};
use nrllm_runtime::domain::failure::{Classification, Failure, FailureClass};
use nrllm_runtime::domain::holder::Holder;
use nrllm_runtime::ops::heartbeat::{End, send_heartbeat};
use nrllm_runtime::ops::{due_runs, recover_failure, status, stranded_runs};

use crate::support::database::{Database, MESSAGES, RUNS, Run, Shape};
use crate::support::harness::{Harness, LEASE, NOW, OWNER, request};
use crate::support::proxy::{Fault, Info, Proxy, When};

const HOLDER: Holder<'_> = Holder { run_uid: 1, owner: OWNER };
const UUID: &str = "0e12362e-cbf0-4052-a2e9-f3c849a50bc4";

/// The kinds of servers: name and variables.
pub const SERVERS: [(&str, &[(&str, &str)]); 6] = [
    (
        "MariaDB 10.11",
        &[
            ("version", "10.11.6-MariaDB"),
            ("tx_isolation", "x"),
            ("log_bin", "OFF"),
            ("binlog_format", "MIXED"),
        ],
    ),
    (
        "MariaDB 10.5",
        &[
            ("version", "10.5.23-MariaDB"),
            ("tx_isolation", "x"),
            ("log_bin", "OFF"),
            ("binlog_format", "MIXED"),
        ],
    ),
    (
        "MariaDB 10.2",
        &[
            ("version", "10.2.44-MariaDB"),
            ("tx_isolation", "x"),
            ("log_bin", "OFF"),
            ("binlog_format", "MIXED"),
        ],
    ),
    (
        "Galera",
        &[
            ("version", "10.11.6-MariaDB"),
            ("tx_isolation", "x"),
            ("log_bin", "OFF"),
            ("binlog_format", "ROW"),
            ("wsrep_on", "ON"),
        ],
    ),
    (
        "MySQL 8.0",
        &[
            ("version", "8.0.36"),
            ("transaction_isolation", "x"),
            ("log_bin", "OFF"),
            ("binlog_format", "ROW"),
        ],
    ),
    (
        "MySQL 5.7",
        &[
            ("version", "5.7.44"),
            ("tx_isolation", "x"),
            ("log_bin", "OFF"),
            ("binlog_format", "ROW"),
        ],
    ),
];

/// What happens to an exchange of the operation.
enum Event {
    Nothing,
    /// The server executes this statement, and the connection ends before its reply.
    ReplyLost(&'static str),
    /// The connection ends before the server gets this statement.
    RequestLost(&'static str),
    /// OK packets arrive without their info text, so the number of matched rows is not known.
    NoInfo,
    /// Another transaction holds the lock of this run.
    Locked(i64),
}

struct Scenario<'a> {
    title: &'static str,
    queued_at: bool,
    jitter: f64,
    runs: Vec<Run>,
    event: Event,
    call: &'a dyn Fn(&mut Harness),
}

fn scenario<'a>(
    title: &'static str,
    runs: Vec<Run>,
    call: &'a dyn Fn(&mut Harness),
) -> Scenario<'a> {
    Scenario { title, queued_at: false, jitter: 0.0, runs, event: Event::Nothing, call }
}

impl Scenario<'_> {
    fn queued_at(mut self) -> Self {
        self.queued_at = true;
        self
    }

    fn jitter(mut self, jitter: f64) -> Self {
        self.jitter = jitter;
        self
    }

    fn event(mut self, event: Event) -> Self {
        self.event = event;
        self
    }

    /// The statements of every case, those of equal ones together.
    fn record(&self) -> String {
        let shape = if self.queued_at { Shape::default().queued_at() } else { Shape::default() };
        let mut database = Database::with(&shape);
        let mut groups: Vec<(Vec<(Clock, &str)>, String)> = Vec::new();
        for clock in [Clock::Caller, Clock::Database] {
            for (server, variables) in SERVERS {
                let statements = self.statements(&mut database, clock, variables);
                match groups.iter_mut().find(|(_, known)| *known == statements) {
                    Some((cases, _)) => cases.push((clock, server)),
                    None => groups.push((vec![(clock, server)], statements)),
                }
            }
        }
        let groups: Vec<String> =
            groups.iter().map(|(cases, sql)| format!("{}{sql}", title(cases))).collect();
        format!("=== {}\n\n{}", self.title, groups.join("\n"))
    }

    fn statements(
        &self,
        database: &mut Database,
        clock: Clock,
        variables: &[(&str, &str)],
    ) -> String {
        for table in [RUNS, MESSAGES] {
            database.client().run(&format!("DELETE FROM {table}"));
        }
        for (uid, run) in (1..).zip(&self.runs) {
            database.insert(&run.clone().set("uid", uid));
        }
        let proxy = pretending(database, variables);
        let mut options = Options { clock, ..Options::default() };
        options.backoff.jitter = self.jitter;
        let mut harness = Harness::at(proxy.endpoint(), database.name(), options);
        // Connects and reads the table's columns; no operation's own statement.
        harness.lease_state(1_000, OWNER).unwrap();
        proxy.clear_log();
        let mut other = database.connect();
        match self.event {
            Event::Nothing => {}
            Event::ReplyLost(statement) => {
                drop(proxy.rule(When::statement(statement), Fault::CutAfter))
            }
            Event::RequestLost(statement) => {
                drop(proxy.rule(When::statement(statement), Fault::CutBefore))
            }
            Event::NoInfo => proxy.info(Info::Drop),
            Event::Locked(uid) => {
                other.run("START TRANSACTION");
                other.exec(
                    &format!("UPDATE {RUNS} SET pid = pid + 1 WHERE uid = ?"),
                    Params::Positional(vec![uid.into()]),
                );
            }
        }
        (self.call)(&mut harness);
        let statements: Vec<String> =
            proxy.statements().into_iter().filter(|sql| !is_setting_up(sql)).collect();
        statements.iter().map(|sql| format!("{}\n", in_lines(&without_times(sql)))).collect()
    }
}

/// The clocks and servers of a group of cases, as SQL comments.
fn title(cases: &[(Clock, &str)]) -> String {
    let mut title = String::new();
    for clock in [Clock::Caller, Clock::Database] {
        let servers: Vec<&str> =
            cases.iter().filter(|(of, _)| *of == clock).map(|(_, server)| *server).collect();
        if !servers.is_empty() {
            let servers = if servers.len() == SERVERS.len() {
                "every server".to_owned()
            } else {
                servers.join(", ")
            };
            title += &format!("-- clock {}: {servers}\n", clock.as_str());
        }
    }
    title
}

/// A proxy whose server seems to have these variables. It understands what only the pretended one
/// does.
pub fn pretending(database: &Database, variables: &[(&str, &str)]) -> Proxy {
    let proxy = Proxy::start(database.endpoint());
    let rows: Vec<String> = variables
        .iter()
        .map(|(name, value)| format!("SELECT '{name}' AS n, '{value}' AS v"))
        .collect();
    let when = |sql: &'static str| When::statement(sql).always();
    let settings = "SET NAMES utf8mb4, autocommit = 1, time_zone = '+00:00', lock_wait_timeout = 1";
    let variables = rows.join(" UNION ALL ");
    proxy.rule(when("SHOW VARIABLES"), Fault::Instead(format!("{settings}; {variables}")));
    proxy.rule(when("wsrep_sync_wait"), Fault::Instead("DO 0".to_owned()));
    proxy
}

/// True for what a session sends to set itself up, which `session.snap` shows.
fn is_setting_up(sql: &str) -> bool {
    sql.starts_with("SET NAMES") || sql.contains("information_schema.COLUMNS")
}

/// The statement with a line per clause. Nothing but blanks changes.
fn in_lines(sql: &str) -> String {
    let mut text = sql.replace("; ", ";\n");
    for clause in ["SET", "FROM", "STRAIGHT_JOIN", "WHERE", "GROUP BY", "ORDER BY", "FOR UPDATE"] {
        text = text.replace(&format!(" {clause} "), &format!("\n    {clause} "));
        text = text
            .strip_suffix(&format!(" {clause}"))
            .map_or(text.clone(), |rest| format!("{rest}\n    {clause}"));
    }
    text + ";"
}

/// The statement with the times of the database's clock, which differ from run to run, replaced.
fn without_times(sql: &str) -> String {
    let mut text = String::new();
    let mut digits = String::new();
    for c in sql.chars().chain(['\n']) {
        if c.is_ascii_digit() {
            digits.push(c);
            continue;
        }
        let is_time = digits
            .parse()
            .is_ok_and(|number: u64| (1_750_000_000..4_000_000_000).contains(&number));
        text.push_str(if is_time { "<time>" } else { &digits });
        digits.clear();
        text.push(c);
    }
    text.trim_end().to_owned()
}

fn check(operation: &str, scenarios: &[Scenario<'_>]) {
    let text: Vec<String> = scenarios.iter().map(Scenario::record).collect();
    check_text(operation, &text.join("\n"));
}

fn check_text(name: &str, text: &str) {
    let mut settings = insta::Settings::new();
    settings.set_snapshot_path("../sql");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, text));
}

fn held() -> Run {
    Run::running(OWNER, LEASE)
}

fn stale() -> Run {
    Run::running("dead", 5)
}

fn wake_up() -> WakeUp {
    let placeholder = "00000000-0000-4000-8000-000000000000";
    WakeUp {
        table: TableName::parse("table", MESSAGES).unwrap(),
        queue: "default".to_owned(),
        body: format!("body of {placeholder}"),
        headers: "[]".to_owned(),
        placeholder: placeholder.to_owned(),
    }
}

/// The scenarios of an operation that is one write with the given text.
fn of_one_write<'a>(
    runs: &[Run],
    write: &'static str,
    call: &'a dyn Fn(&mut Harness),
) -> Vec<Scenario<'a>> {
    vec![
        scenario("plain", runs.to_vec(), call),
        scenario("the guard does not match", vec![Run::in_status("completed")], call),
        scenario("with queued_at", runs.to_vec(), call).queued_at(),
        scenario("the reply has no text", runs.to_vec(), call).event(Event::NoInfo),
        scenario("the reply is lost", runs.to_vec(), call).event(Event::ReplyLost(write)),
        scenario("the request is lost", runs.to_vec(), call).event(Event::RequestLost(write)),
    ]
}

/// Runs an operation and lets its answer go: only its statements count here.
fn ignore<T>(answer: T) {
    drop(answer);
}

#[test]
fn the_session() {
    let database = Database::new();
    let mut groups: Vec<String> = Vec::new();
    for (server, variables) in SERVERS {
        let proxy = pretending(&database, variables);
        let mut harness = Harness::at(proxy.endpoint(), database.name(), Options::default());
        harness.lease_state(1, OWNER).unwrap();
        let statements = proxy.statements().into_iter().filter(|sql| is_setting_up(sql));
        groups.push(format!(
            "-- {server}\n{}\n",
            statements.map(|sql| in_lines(&sql)).collect::<Vec<_>>().join("\n")
        ));
    }
    check_text("session", &groups.join("\n"));
}

#[test]
fn claim_queued() {
    let call = |harness: &mut Harness| ignore(harness.claim_queued(1, OWNER, LEASE).unwrap());
    check("claim_queued", &of_one_write(&[Run::queued()], "UPDATE `", &call));
}

#[test]
fn renew_lease() {
    let call = |harness: &mut Harness| ignore(harness.renew_lease(1, OWNER, LEASE).unwrap());
    check("renew_lease", &of_one_write(&[held()], "UPDATE `", &call));
}

#[test]
fn mark_pending_effect() {
    let call = |harness: &mut Harness| {
        ignore(harness.mark_pending_effect(1, OWNER, "read_only", LEASE).unwrap())
    };
    check("mark_pending_effect", &of_one_write(&[held()], "UPDATE `", &call));
}

#[test]
fn requeue() {
    let call = |harness: &mut Harness| ignore(harness.requeue(1, OWNER).unwrap());
    check("requeue", &of_one_write(&[held()], "UPDATE `", &call));
}

#[test]
fn hand_back() {
    let call = |wake_up: Option<WakeUp>| {
        move |harness: &mut Harness| ignore(harness.hand_back(1, OWNER, wake_up.as_ref()).unwrap())
    };
    let (plain, with_wake_up) = (call(None), call(Some(wake_up())));
    check(
        "hand_back",
        &[
            scenario("plain", vec![held()], &plain),
            scenario("with queued_at and a wake-up", vec![held().requeued(1)], &with_wake_up)
                .queued_at(),
            scenario("commit lost", vec![held()], &plain).event(Event::ReplyLost("COMMIT")),
            scenario("commit never sent", vec![held()], &plain).event(Event::RequestLost("COMMIT")),
            scenario("the guard does not match", vec![Run::queued()], &plain),
        ],
    );
}

#[test]
fn requeue_stale() {
    let call = |harness: &mut Harness| ignore(harness.requeue_stale(1, NOW).unwrap());
    check("requeue_stale", &of_one_write(&[stale()], "UPDATE `", &call));
}

#[test]
fn dead_letter_stale() {
    let call =
        |harness: &mut Harness| ignore(harness.dead_letter_stale(1, NOW, "not_retryable").unwrap());
    check("dead_letter_stale", &of_one_write(&[stale()], "UPDATE `", &call));
}

#[test]
fn cancel_run() {
    let call = |harness: &mut Harness| ignore(harness.cancel_run(UUID).unwrap());
    check("cancel_run", &of_one_write(&[held().uuid(UUID)], "UPDATE `", &call));
}

#[test]
fn fail_undispatched() {
    let call = |harness: &mut Harness| {
        ignore(harness.fail_undispatched(1, 1, "RuntimeException").unwrap())
    };
    check("fail_undispatched", &of_one_write(&[Run::queued().requeued(1)], "UPDATE `", &call));
}

#[test]
fn lease_state() {
    let call = |harness: &mut Harness| ignore(harness.lease_state(1, OWNER).unwrap());
    check("lease_state", &[scenario("plain", vec![held()], &call)]);
}

#[test]
fn keep_lease() {
    let call = |end: End| {
        move |harness: &mut Harness| {
            let options = harness.options.clone();
            ignore(
                harness
                    .run(async |session, _| {
                        send_heartbeat(session, &options, HOLDER, 900, end, || true).await
                    })
                    .unwrap(),
            );
        }
    };
    let (exact, later) = (call(End::Exact), call(End::NeverEarlier));
    check(
        "keep_lease",
        &[
            scenario("the first renewal", vec![held()], &exact),
            scenario("a heartbeat", vec![held()], &later),
            scenario("a heartbeat of a lost lease", vec![Run::queued()], &later),
            scenario("a heartbeat whose reply has no text", vec![held()], &later)
                .event(Event::NoInfo),
            scenario("a heartbeat whose reply is lost", vec![held()], &later)
                .event(Event::ReplyLost("UPDATE `")),
        ],
    );
}

#[test]
fn recover_failure() {
    let call = |class: FailureClass, wake_up: Option<WakeUp>| {
        move |harness: &mut Harness| {
            let classification = Classification::of(class);
            let failure = Failure { classification, error_class: "RuntimeException".to_owned() };
            let wake_up = wake_up.as_ref();
            ignore(
                harness
                    .run(async |session, context| {
                        recover_failure::recover_failure(
                            session, context, HOLDER, &failure, wake_up,
                        )
                        .await
                    })
                    .unwrap(),
            );
        }
    };
    let requeue = call(FailureClass::RateLimit, None);
    let with_wake_up = call(FailureClass::RateLimit, Some(wake_up()));
    let dead_letter = call(FailureClass::Auth, None);
    check(
        "recover_failure",
        &[
            scenario("requeue", vec![held()], &requeue),
            scenario("requeue with queued_at", vec![held()], &requeue).queued_at(),
            scenario("requeue with wake-up", vec![held()], &with_wake_up),
            scenario("requeue with wake-up, commit lost", vec![held()], &with_wake_up)
                .event(Event::ReplyLost("COMMIT")),
            scenario("requeue, commit never sent", vec![held()], &requeue)
                .event(Event::RequestLost("COMMIT")),
            scenario("requeue, write lost", vec![held()], &requeue)
                .event(Event::ReplyLost("UPDATE `")),
            scenario("dead-letter", vec![held()], &dead_letter),
            scenario("dead-letter, commit lost", vec![held()], &dead_letter)
                .event(Event::ReplyLost("COMMIT")),
            scenario("lease lost", vec![Run::queued()], &requeue),
        ],
    );
}

#[test]
fn reap() {
    let call =
        |request: ReapRequest| move |harness: &mut Harness| ignore(harness.reap(&request).unwrap());
    let runs = vec![
        stale(),
        stale().without_request(),
        stale().requeued(3),
        stale().write_fence("non_idempotent_write"),
        stale(),
    ];
    let all = call(request(50));
    let with_wake_up = call(ReapRequest { wake_up: Some(wake_up()), ..request(50) });
    let dry = call(ReapRequest { dry_run: true, ..request(50) });
    let some = call(ReapRequest { only: Some(vec![1, 2, 5]), except: vec![5], ..request(50) });
    let one = call(request(1));
    check(
        "reap",
        &[
            scenario("all", runs.clone(), &all),
            scenario("all with queued_at and wake-ups", runs.clone(), &with_wake_up).queued_at(),
            scenario("one of several", runs.clone(), &one),
            scenario("dry run", runs.clone(), &dry),
            scenario("only and except", runs.clone(), &some),
            scenario("retries exhausted alone", vec![stale().requeued(3)], &all),
            scenario("one run locked", vec![stale(), stale()], &all).event(Event::Locked(1)),
            scenario("commit lost, with wake-ups", runs.clone(), &with_wake_up)
                .event(Event::ReplyLost("COMMIT")),
            scenario("commit never sent", runs.clone(), &all).event(Event::RequestLost("COMMIT")),
            scenario("write lost", runs, &all).event(Event::ReplyLost("UPDATE `")),
            scenario("nothing stale", vec![held()], &all),
        ],
    );
}

#[test]
fn stranded_runs() {
    let call = |wake_up: Option<WakeUp>| {
        move |harness: &mut Harness| {
            let request = SweepRequest {
                older_than_seconds: 60,
                limit: 50,
                now: None,
                wake_up: wake_up.clone(),
            };
            ignore(
                harness
                    .run(async |session, context| {
                        stranded_runs::stranded_runs(session, context, &request).await
                    })
                    .unwrap(),
            );
        }
    };
    let (plain, with_wake_up) = (call(None), call(Some(wake_up())));
    let runs = vec![Run::queued(), Run::queued().requeued(2)];
    check(
        "stranded_runs",
        &[
            scenario("plain", runs.clone(), &plain),
            scenario("with queued_at, jitter and wake-ups", runs.clone(), &with_wake_up)
                .queued_at()
                .jitter(0.25),
            scenario("one run locked", runs.clone(), &plain).event(Event::Locked(1)),
            scenario("commit lost, with wake-ups", runs.clone(), &with_wake_up)
                .event(Event::ReplyLost("COMMIT")),
            scenario("commit never sent", runs, &plain).event(Event::RequestLost("COMMIT")),
        ],
    );
}

#[test]
fn due_runs() {
    let call = |harness: &mut Harness| {
        ignore(
            harness
                .run(async |session, context| due_runs::due_runs(session, context, 10, None).await)
                .unwrap(),
        )
    };
    let runs = vec![Run::queued(), Run::queued().requeued(2)];
    check(
        "due_runs",
        &[
            scenario("plain", runs.clone(), &call),
            scenario("with queued_at", runs.clone(), &call).queued_at(),
            scenario("with jitter", runs, &call).jitter(0.25),
        ],
    );
}

#[test]
fn status_report() {
    let call = |since: Option<i64>| {
        move |harness: &mut Harness| {
            ignore(
                harness
                    .run(async |session, context| {
                        status::status(session, context, None, since).await
                    })
                    .unwrap(),
            );
        }
    };
    let (all, some) = (call(None), call(Some(NOW - 3_600)));
    let runs = vec![Run::queued(), held(), stale()];
    check(
        "status",
        &[
            scenario("plain", runs.clone(), &all),
            scenario("since, with queued_at and jitter", runs, &some).queued_at().jitter(0.25),
        ],
    );
}

#[test]
fn every_snapshot_belongs_to_a_test() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sql");
    let source = include_str!("sql.rs");
    for file in std::fs::read_dir(folder).unwrap() {
        let name = file.unwrap().file_name().into_string().unwrap();
        let operation = name
            .strip_suffix(".snap")
            .unwrap_or_else(|| panic!("tests/sql holds accepted snapshots only, not {name}"));
        assert!(source.contains(&format!("\"{operation}\"")), "no test makes {name}");
    }
}
