//! Servers that are short of something, or that want TLS: real ones, with the options that make them so.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nrllm_runtime::config::connection::{ConnectionSettings, Defaults};
use nrllm_runtime::config::options::Options;
use nrllm_runtime::config::value::{Input, Key};
use nrllm_runtime::domain::failure::FailureClass;
use nrllm_runtime::error::Kind;
use nrllm_runtime::ops::recover_failure::Recovery;

use crate::subject::{LEASE, NOW, Subject, error_of, request};
use crate::support::PATIENCE;
use crate::support::client::{Client, refused_with};
use crate::support::database::{Database, Run, Shape, assert_row};
use crate::support::server::{Endpoint, Server};

const OWNER: &str = "worker:web-01:4711:c0ffee";

/// Asks again and again until it is so; what is waited for is the server's, not a time.
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let since = Instant::now();
    while !is_so() {
        assert!(since.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Everything that a worker and a reaper do, once.
fn all_operations(database: &mut Database, subject: &mut Subject) {
    let queued = database.insert_all(&vec![Run::queued(); 3]);
    let stale = database.insert_all(&[
        Run::running("dead", 5),
        Run::running("dead", 6).requeued(3),
        Run::running("dead", 7).without_request(),
    ]);
    for uid in &queued {
        assert!(subject.claim(*uid, OWNER, LEASE).unwrap());
        assert!(subject.renew(*uid, OWNER, LEASE + 1).unwrap());
        assert!(subject.fence(*uid, OWNER, "read_only", LEASE).unwrap());
        assert_eq!(subject.lease_state(*uid, OWNER).unwrap(), "held");
    }
    assert!(subject.requeue(queued[0], OWNER).unwrap());
    assert!(matches!(
        subject.recover(queued[1], OWNER, FailureClass::RateLimit, "E").unwrap(),
        Recovery::Requeued { .. }
    ));
    assert!(matches!(
        subject.recover(queued[2], OWNER, FailureClass::Auth, "E").unwrap(),
        Recovery::DeadLettered { .. }
    ));
    let report = subject.reap_all(50);
    assert_eq!((report.requeued.len(), report.dead_lettered.len()), (1, 2));
    assert!(
        !subject.requeue_stale(stale[0], NOW).unwrap()
            && !subject.dead_letter_stale(stale[0], NOW, "x").unwrap()
    );
    let uuid = database.get(queued[0], "uuid");
    assert!(subject.cancel(&uuid).unwrap());
    assert!(!subject.fail_undispatched(queued[0], 1, "E").unwrap());
}

#[test]
fn p20_a_process_gets_along_with_twenty_prepared_statements() {
    let server = Server::start(&["--max-prepared-stmt-count=20"]);
    let mut database = Database::on(&server, &Shape::default());
    let mut first = Subject::on(&database);
    all_operations(&mut database, &mut first);
    drop(first);
    until("the first one is gone", || server.connections().len() == 1);
    // What is left are those of the test's own connection.
    let own = server.prepared_statements();
    let mut subject = Subject::on(&database);
    for _ in 0..3 {
        all_operations(&mut database, &mut subject);
        let held = server.prepared_statements() - own;
        assert!((1..=8).contains(&held), "eight are kept at most: {held}");
    }
}

#[test]
fn p21_no_prepared_statement_left_is_told_and_leaves_nothing_by_halves() {
    let server = Server::start(&["--max-prepared-stmt-count=20"]);
    let mut database = Database::on(&server, &Shape::default());
    let held = database.insert(&Run::running(OWNER, LEASE));
    let stale = database.insert(&Run::running("dead", 5));
    let mut subject = Subject::on(&database);
    let mut others = database.connect();
    let mut taken = 0;
    // As a client that leaks: it prepares until the server has no more.
    while others.try_run(&format!("PREPARE leaked_{taken} FROM 'SELECT {taken}'")).is_ok() {
        taken += 1;
    }
    assert!(taken <= 20, "the server has its limit");
    let before = [database.row(held), database.row(stale)];
    let error = error_of(Kind::Query, subject.requeue(held, OWNER));
    assert_eq!(error.code, 1461);
    assert!(error.message.contains("max_prepared_stmt_count"), "{error}");
    assert_eq!(error_of(Kind::Query, subject.reap(&request(5))).code, 1461);
    assert_row(&database.row(held), &before[0], "nothing was written");
    assert_row(&database.row(stale), &before[1], "nothing was written");
    others.close();
    until("the leak has ended", || server.prepared_statements() < 20);
    assert!(subject.requeue(held, OWNER).unwrap());
    assert_eq!(subject.reap_all(5).requeued.len(), 1);
}

#[test]
fn p21_a_server_without_a_free_connection_is_told_and_used_again_when_there_is_one() {
    let server = Server::start(&["--max-connections=10"]);
    let mut database = Database::on(&server, &Shape::default());
    let uid = database.insert(&Run::running(OWNER, LEASE));
    let mut subject = Subject::on(&database);
    let before = database.row(uid);
    let mut others = Vec::new();
    let refusal = loop {
        match Client::try_connect(server.endpoint(), None) {
            Ok(client) => others.push(client),
            Err(error) => break error,
        }
    };
    assert!(refused_with(&refusal, 1040), "{refusal}");
    let error = error_of(Kind::Connection, subject.renew(uid, OWNER, LEASE + 1));
    assert_eq!(error.code, 1040);
    assert_row(&database.row(uid), &before, "nothing was written");
    // A connection that is gone for the client stays in the server's count for a moment.
    others.clear();
    until("there is room again", || subject.renew(uid, OWNER, LEASE + 1).is_ok());
    assert_eq!(database.get(uid, "lease_expires"), (LEASE + 1).to_string());
}

/// Files of a small certificate authority of the test's own.
struct Certificates {
    folder: PathBuf,
}

impl Certificates {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("nrllm-tls-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir(&folder).unwrap();
        let made = Self { folder };
        for authority in ["ca", "other"] {
            made.openssl(&format!(
                "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 -subj /CN={authority} -keyout {authority}.key -out {authority}.pem"
            ));
        }
        made
    }

    /// A certificate of the authority `ca` for a server of this name (`IP:127.0.0.1`, `DNS:db.example`).
    fn issue(&self, file: &str, name: &str) {
        self.openssl(&format!(
            "req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=server -addext subjectAltName={name} -keyout {file}.key -out {file}.csr"
        ));
        self.openssl(&format!(
            "x509 -req -in {file}.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 30 -copy_extensions copyall -out {file}.pem"
        ));
    }

    fn openssl(&self, arguments: &str) {
        let output = Command::new("openssl")
            .args(arguments.split(' '))
            .current_dir(&self.folder)
            .stdin(Stdio::null())
            .output();
        let output = output.expect("openssl is needed for the tests of TLS");
        assert!(
            output.status.success(),
            "openssl {arguments}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }

    fn path(&self, file: &str) -> String {
        self.folder.join(file).display().to_string()
    }

    /// A server that takes TLS only, but for its unix socket.
    fn server(&self, certificate: &str) -> Server {
        Server::start(&[
            &format!("--ssl-ca={}", self.path("ca.pem")),
            &format!("--ssl-cert={}", self.path(&format!("{certificate}.pem"))),
            &format!("--ssl-key={}", self.path(&format!("{certificate}.key"))),
            "--require-secure-transport=ON",
        ])
    }
}

impl Drop for Certificates {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(Path::new(&self.folder));
    }
}

const MYSQLI_CLIENT_SSL: i64 = 2048;
const MYSQLI_CLIENT_SSL_DONT_VERIFY_SERVER_CERT: i64 = 64;

/// mysqli's settings with this CA (none: empty) and these flags.
fn over_tls(endpoint: &Endpoint, database: &Database, ca: &str, flags: i64) -> Subject {
    let text = |value: &str| Input::Bytes(value.as_bytes().to_vec());
    let key = |key: &str| Key::Str(key.as_bytes().to_vec());
    let input = Input::Map(vec![
        (key("driver"), text("mysqli")),
        (key("host"), text(&endpoint.host)),
        (key("port"), Input::Int(i64::from(endpoint.port))),
        (key("user"), text(&endpoint.user)),
        (key("password"), text(&endpoint.password)),
        (key("dbname"), text(database.name())),
        (key("ssl_ca"), text(ca)),
        (key("driverOptions"), Input::Map(vec![(key("flags"), Input::Int(flags))])),
    ]);
    Subject::of(
        ConnectionSettings::parse(&input, &Defaults::default()).unwrap(),
        Options::default(),
    )
}

#[test]
fn p22_tls_with_a_private_authority_and_with_a_wrong_one() {
    let certificates = Certificates::new("authority");
    certificates.issue("server", "IP:127.0.0.1");
    let server = certificates.server("server");
    let mut database = Database::on(&server, &Shape::default());
    let uid = database.insert(&Run::running(OWNER, LEASE));
    let endpoint = server.endpoint();

    let mut right = over_tls(endpoint, &database, &certificates.path("ca.pem"), MYSQLI_CLIENT_SSL);
    assert!(right.renew(uid, OWNER, LEASE + 1).unwrap());
    all_operations(&mut database, &mut right);

    let before = database.row(uid);
    for (why, ca) in [
        ("another authority", certificates.path("other.pem")),
        ("the system's authorities", String::new()),
    ] {
        let error = error_of(
            Kind::Connection,
            over_tls(endpoint, &database, &ca, MYSQLI_CLIENT_SSL).renew(uid, OWNER, LEASE + 2),
        );
        assert!(error.message.to_lowercase().contains("certificate"), "{why}: {error}");
        assert!(!error.message.contains(&endpoint.password), "{why}: {error}");
    }
    let plain = error_of(Kind::Connection, Subject::on(&database).renew(uid, OWNER, LEASE + 2));
    assert!(!plain.message.contains(&endpoint.password), "{plain}");
    assert_row(&database.row(uid), &before, "nothing reached the server");

    // Whoever says so gets encryption without knowing with whom.
    let flags = MYSQLI_CLIENT_SSL | MYSQLI_CLIENT_SSL_DONT_VERIFY_SERVER_CERT;
    assert!(over_tls(endpoint, &database, "", flags).renew(uid, OWNER, LEASE + 3).unwrap());
}

#[test]
fn p22_tls_for_another_name_is_refused() {
    let certificates = Certificates::new("name");
    certificates.issue("server", "DNS:db.example");
    let server = certificates.server("server");
    let mut database = Database::on(&server, &Shape::default());
    let uid = database.insert(&Run::running(OWNER, LEASE));
    let mut subject =
        over_tls(server.endpoint(), &database, &certificates.path("ca.pem"), MYSQLI_CLIENT_SSL);
    let error = error_of(Kind::Connection, subject.renew(uid, OWNER, LEASE + 1));
    assert!(error.message.to_lowercase().contains("certificate"), "{error}");
    assert_eq!(database.get(uid, "lease_expires"), LEASE.to_string());
}
