//! TLS with private authorities (rule 22).

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use mysql_async::Params;
use nrllm_runtime::config::connection::{ConnectionSettings, Defaults};
use nrllm_runtime::config::options::Options;
use nrllm_runtime::config::value::{Input, Key};
use nrllm_runtime::error::Kind;

use super::discarded_connection::{Stalling, assert_unlocked, locking_read, until_closed};
use crate::support::PATIENCE;
use crate::support::database::{Database, Run, Shape, assert_row};
use crate::support::harness::{Harness, LEASE, OWNER, error_of};
use crate::support::operation::all_operations;
use crate::support::server::{Endpoint, Server};

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

    /// A certificate of the authority `ca` for a server of this name (`IP:127.0.0.1`,
    /// `DNS:db.example`).
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
    fn server(&self, certificate: &str, version: &str) -> Server {
        Server::start(&[
            &format!("--tls-version={version}"),
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
fn over_tls(endpoint: &Endpoint, database: &Database, ca: &str, flags: i64) -> Harness {
    Harness::of(tls_settings(endpoint, database, ca, flags), Options::default())
}

/// Without verification, with these time limits in milliseconds.
fn unverified(endpoint: &Endpoint, database: &Database, connect_ms: u64, query_ms: u64) -> Harness {
    let mut options = Options::default();
    options.timeouts.connect = Duration::from_millis(connect_ms);
    options.timeouts.query = Duration::from_millis(query_ms);
    Harness::of(tls_settings(endpoint, database, "", UNVERIFIED), options)
}

fn tls_settings(
    endpoint: &Endpoint,
    database: &Database,
    ca: &str,
    flags: i64,
) -> ConnectionSettings {
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
    ConnectionSettings::parse(&input, &Defaults::default()).unwrap()
}

#[test]
fn p22_tls_with_right_and_wrong_private_authority() {
    let certificates = Certificates::new("authority");
    certificates.issue("server", "IP:127.0.0.1");
    let server = certificates.server("server", "TLSv1.2,TLSv1.3");
    let mut database = Database::on(&server, &Shape::default());
    let uid = database.insert(&Run::running(OWNER, LEASE));
    let endpoint = server.endpoint();

    let mut right = over_tls(endpoint, &database, &certificates.path("ca.pem"), MYSQLI_CLIENT_SSL);
    assert!(right.renew_lease(uid, OWNER, LEASE + 1).unwrap());
    all_operations(&mut database, &mut right);

    let before = database.row(uid);
    for (why, ca) in [
        ("another authority", certificates.path("other.pem")),
        ("the system's authorities", String::new()),
    ] {
        let error = error_of(
            Kind::Connection,
            over_tls(endpoint, &database, &ca, MYSQLI_CLIENT_SSL).renew_lease(
                uid,
                OWNER,
                LEASE + 2,
            ),
        );
        assert!(error.message.to_lowercase().contains("certificate"), "{why}: {error}");
        assert!(!error.message.contains(&endpoint.password), "{why}: {error}");
    }
    let plain =
        error_of(Kind::Connection, Harness::on(&database).renew_lease(uid, OWNER, LEASE + 2));
    assert!(!plain.message.contains(&endpoint.password), "{plain}");
    assert_row(&database.row(uid), &before, "nothing reached the server");

    // Without verification the connection is encrypted, and the server is not authenticated.
    assert!(
        over_tls(endpoint, &database, "", UNVERIFIED).renew_lease(uid, OWNER, LEASE + 3).unwrap()
    );
}

#[test]
fn p22_tls_certificate_for_another_name_is_refused() {
    let certificates = Certificates::new("name");
    certificates.issue("server", "DNS:db.example");
    let server = certificates.server("server", "TLSv1.2,TLSv1.3");
    let mut database = Database::on(&server, &Shape::default());
    let uid = database.insert(&Run::running(OWNER, LEASE));
    let mut harness =
        over_tls(server.endpoint(), &database, &certificates.path("ca.pem"), MYSQLI_CLIENT_SSL);
    let error = error_of(Kind::Connection, harness.renew_lease(uid, OWNER, LEASE + 1));
    assert!(error.message.to_lowercase().contains("certificate"), "{error}");
    assert_eq!(database.get(uid, "lease_expires"), LEASE.to_string());
}

const UNVERIFIED: i64 = MYSQLI_CLIENT_SSL | MYSQLI_CLIENT_SSL_DONT_VERIFY_SERVER_CERT;

/// What is made of an `openssl req` for 127.0.0.1.
impl Certificates {
    /// A certificate of the authority `ca` with these extensions; of version 1 without any.
    fn sign(&self, file: &str, key: &str, extensions: &[&str]) {
        self.openssl(&format!(
            "req -newkey {key} -nodes -subj /CN=127.0.0.1 -keyout {file}.key -out {file}.csr"
        ));
        if extensions.is_empty() && Self::writes_version_3() {
            // Without a configuration that names extensions.
            std::fs::write(self.path("v1.cnf"), "[req]\ndistinguished_name=dn\n[dn]\n").unwrap();
            self.openssl(&format!(
                "req -x509v1 -config v1.cnf -in {file}.csr -CA ca.pem -CAkey ca.key -days 30 -out {file}.pem"
            ));
            return;
        }
        let mut sign = format!(
            "x509 -req -in {file}.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 30 -out {file}.pem"
        );
        if !extensions.is_empty() {
            std::fs::write(self.path(&format!("{file}.ext")), extensions.join("\n")).unwrap();
            sign.push_str(&format!(" -extfile {file}.ext"));
        }
        self.openssl(&sign);
    }

    /// Returns whether OpenSSL (from 3.3 on) issues certificates of version 3 unless version 1 is
    /// asked for.
    fn writes_version_3() -> bool {
        let help = Command::new("openssl").args(["req", "-help"]).output().unwrap();
        [help.stdout, help.stderr].concat().windows(7).any(|word| word == b"-x509v1")
    }

    /// A certificate that is its own authority, with these extensions.
    fn self_signed(&self, file: &str, extensions: &[&str]) {
        let extensions: String = extensions.iter().map(|text| format!(" -addext {text}")).collect();
        self.openssl(&format!(
            "req -x509 -newkey {EC} -nodes -days 30 -subj /CN=127.0.0.1{extensions} -keyout {file}.key -out {file}.pem"
        ));
    }

    /// A certificate that is its own authority and expired in 2020.
    fn expired(&self, file: &str) {
        let settings = "[ca]\ndefault_ca=x\n[x]\ndatabase=index\nnew_certs_dir=.\ndefault_md=sha256\npolicy=p\nrand_serial=yes\n\
                        [p]\ncommonName=supplied\n[e]\nbasicConstraints=critical,CA:TRUE\nsubjectAltName=IP:127.0.0.1\n";
        std::fs::write(self.path("ca.cnf"), settings).unwrap();
        std::fs::write(self.path("index"), "").unwrap();
        self.openssl(&format!(
            "req -newkey {EC} -nodes -subj /CN=127.0.0.1 -keyout {file}.key -out {file}.csr"
        ));
        self.openssl(&format!(
            "ca -batch -notext -config ca.cnf -selfsign -keyfile {file}.key -in {file}.csr -extensions e -startdate 20200101000000Z \
             -enddate 20200201000000Z -out {file}.pem"
        ));
    }
}

const EC: &str = "ec -pkeyopt ec_paramgen_curve:P-256";

/// Certificates that the driver's own TLS refuses, or that PHP's drivers accept: each is accepted
/// only where the settings allow it, and refused with what to change.
#[test]
fn p22_certificates_are_accepted_or_refused_with_a_remedy() {
    let certificates = Certificates::new("unusual");
    let address = "subjectAltName=IP:127.0.0.1";
    certificates.sign("v1", EC, &[]);
    certificates.sign("v1-rsa", "rsa:2048", &[]);
    certificates.sign("cn", EC, &["basicConstraints=CA:FALSE"]);
    certificates.self_signed("pinned", &["basicConstraints=critical,CA:TRUE", address]);
    certificates.self_signed("other-name", &["subjectAltName=DNS:db.example"]);
    certificates.self_signed("leaf", &["basicConstraints=critical,CA:FALSE", address]);
    certificates.expired("expired");
    for (file, tls, cases) in [
        ("v1", "TLSv1.3", &[("ca", Err("cannot be verified")), ("", Ok(()))][..]),
        ("v1-rsa", "TLSv1.2", &[("v1-rsa", Err("cannot be verified")), ("", Ok(()))]),
        ("cn", "TLSv1.3", &[("ca", Err("subjectAltName")), ("", Ok(()))]),
        // The file with the certificate itself; one with another certificate.
        ("pinned", "TLSv1.3", &[("pinned", Ok(())), ("leaf", Err("CA:FALSE")), ("", Ok(()))]),
        ("pinned", "TLSv1.2", &[("pinned", Ok(())), ("", Ok(()))]),
        ("other-name", "TLSv1.3", &[("other-name", Err("subjectAltName")), ("", Ok(()))]),
        ("leaf", "TLSv1.3", &[("leaf", Ok(()))]),
        ("expired", "TLSv1.3", &[("expired", Err("renew")), ("", Ok(()))]),
    ] {
        let server = certificates.server(file, tls);
        let mut database = Database::on(&server, &Shape::default());
        let uid = database.insert(&Run::running(OWNER, LEASE));
        for (number, (ca, expected)) in cases.iter().enumerate() {
            let lease = LEASE + 1 + i64::try_from(number).unwrap();
            let (path, flags) = match *ca {
                "" => (String::new(), UNVERIFIED),
                ca => (certificates.path(&format!("{ca}.pem")), MYSQLI_CLIENT_SSL),
            };
            let mut harness = over_tls(server.endpoint(), &database, &path, flags);
            let answer = harness.renew_lease(uid, OWNER, lease);
            match (answer, expected) {
                (Ok(true), Ok(())) => {}
                (Err(error), Err(remedy)) if error.message.contains(remedy) => {
                    assert_eq!(error.kind, Kind::Connection, "{error}");
                }
                (answer, _) => panic!("{file} over {tls} with ca {ca:?}: {answer:?}"),
            }
        }
    }
}

/// Through the relay, which replaces the driver's TLS: everything as without it.
#[test]
fn p29_connection_through_the_relay_works_and_closes() {
    let certificates = Certificates::new("relay");
    certificates.sign("v1", EC, &[]);
    let server = certificates.server("v1", "TLSv1.3");
    let mut database = Database::on(&server, &Shape::default());
    let uid = database.insert(&Run::running(OWNER, LEASE));
    let mut harness = over_tls(server.endpoint(), &database, "", UNVERIFIED);
    all_operations(&mut database, &mut harness);

    // Larger than all buffers on the way, in both directions.
    let long = "x".repeat(3_000_000);
    let length = harness.run(async |session, _| {
        let sql = format!("SELECT REPEAT('{long}', 2), CONNECTION_ID()");
        let rows = session.query(&sql, Params::Empty).await?;
        Ok(rows[0].get::<String, _>(0).map(|text| text.len()))
    });
    assert_eq!(length.unwrap(), Some(6_000_000));

    // A connection that the server ended is replaced once.
    for connection in server.connections() {
        if connection.database == database.name() && connection.id != database.client().id() {
            database.client().run(&format!("KILL {}", connection.id));
        }
    }
    assert!(harness.renew_lease(uid, OWNER, LEASE + 5).unwrap());
    let wrong = Endpoint { password: "wrong".into(), ..server.endpoint().clone() };
    let error = error_of(
        Kind::Connection,
        over_tls(&wrong, &database, "", UNVERIFIED).renew_lease(uid, OWNER, LEASE + 6),
    );
    assert_eq!(error.code, 1045, "{error}");
    let aborted = |database: &mut Database| {
        database.client().rows("SHOW GLOBAL STATUS LIKE 'Aborted_clients'")
    };
    // The one client asks: every other would count as aborted itself.
    let until_connections = |database: &mut Database, left: usize| {
        let start = Instant::now();
        while database.client().rows("SHOW PROCESSLIST").len() > left {
            assert!(start.elapsed() < PATIENCE, "more than {left} connections");
            thread::sleep(Duration::from_millis(5));
        }
    };
    until_connections(&mut database, 2);
    let before = aborted(&mut database);
    harness
        .run(async |session, _| {
            session.close(PATIENCE).await;
            Ok(())
        })
        .unwrap();
    until_connections(&mut database, 1);
    assert_eq!(aborted(&mut database), before, "the protocol's quit was sent");
}

#[test]
fn p29_stalled_relay_leaves_no_row_lock_or_connection() {
    let certificates = Certificates::new("stalled");
    certificates.sign("v1", EC, &[]);
    let server = certificates.server("v1", "TLSv1.3");
    let mut database = Database::on(&server, &Shape::default());
    let uid = database.insert(&Run::running(OWNER, LEASE));
    // A reply stalls, in a transaction, with and without a forked child that holds copies.
    for forks in [false, true] {
        let stalling = Stalling::start(server.endpoint(), "", usize::MAX);
        let mut harness = unverified(&stalling.endpoint, &database, 5_000, 700);
        assert!(locking_read(&mut harness, uid).unwrap());
        // SAFETY: the child calls nothing but pause(2), until it is killed.
        let child = if forks { unsafe { libc::fork() } } else { -1 };
        if child == 0 {
            loop {
                // SAFETY: as above.
                unsafe { libc::pause() };
            }
        }
        stalling.freeze();
        let error = error_of(Kind::Connection, locking_read(&mut harness, uid));
        assert!(error.message.contains("queryTimeoutMs"), "{error}");
        until_closed(&server, &mut database, "a stalled reply");
        assert_unlocked(&mut database, uid);
        if forks {
            // SAFETY: the child of this test.
            unsafe {
                libc::kill(child, libc::SIGKILL);
                libc::waitpid(child, std::ptr::null_mut(), 0);
            }
        }
    }
    // Connecting stalls: before the greeting, in the handshake, and later.
    for passed in [0, 50, 150, 600, 1_200, 1_800] {
        let stalling = Stalling::start(server.endpoint(), "", passed);
        let mut harness = unverified(&stalling.endpoint, &database, 300, 700);
        for _ in 0..3 {
            let error = error_of(Kind::Connection, harness.renew_lease(uid, OWNER, LEASE));
            assert!(error.message.contains("connectTimeoutMs"), "{passed}: {error}");
        }
        until_closed(&server, &mut database, "a stalled connect");
    }
}
