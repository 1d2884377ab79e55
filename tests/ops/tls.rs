//! TLS with private authorities (rule 22).

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nrllm_runtime::config::connection::{ConnectionSettings, Defaults};
use nrllm_runtime::config::options::Options;
use nrllm_runtime::config::value::{Input, Key};
use nrllm_runtime::error::Kind;

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
fn over_tls(endpoint: &Endpoint, database: &Database, ca: &str, flags: i64) -> Harness {
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
    Harness::of(
        ConnectionSettings::parse(&input, &Defaults::default()).unwrap(),
        Options::default(),
    )
}

#[test]
fn p22_tls_with_right_and_wrong_private_authority() {
    let certificates = Certificates::new("authority");
    certificates.issue("server", "IP:127.0.0.1");
    let server = certificates.server("server");
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
    let flags = MYSQLI_CLIENT_SSL | MYSQLI_CLIENT_SSL_DONT_VERIFY_SERVER_CERT;
    assert!(over_tls(endpoint, &database, "", flags).renew_lease(uid, OWNER, LEASE + 3).unwrap());
}

#[test]
fn p22_tls_certificate_for_another_name_is_refused() {
    let certificates = Certificates::new("name");
    certificates.issue("server", "DNS:db.example");
    let server = certificates.server("server");
    let mut database = Database::on(&server, &Shape::default());
    let uid = database.insert(&Run::running(OWNER, LEASE));
    let mut harness =
        over_tls(server.endpoint(), &database, &certificates.path("ca.pem"), MYSQLI_CLIENT_SSL);
    let error = error_of(Kind::Connection, harness.renew_lease(uid, OWNER, LEASE + 1));
    assert!(error.message.to_lowercase().contains("certificate"), "{error}");
    assert_eq!(database.get(uid, "lease_expires"), LEASE.to_string());
}

/// Certificates that PHP's drivers take: each is refused with what to change, and never taken
/// unverified.
#[test]
fn p22_refused_certificates_name_cause_and_remedy() {
    let certificates = Certificates::new("refused");
    let sign = |file: &str, more: &str| {
        certificates.openssl(&format!(
            "req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=127.0.0.1 -keyout {file}.key -out {file}.csr"
        ));
        certificates.openssl(&format!(
            "x509 -req -in {file}.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 30 -out {file}.pem{more}"
        ));
    };
    sign("v1", "");
    std::fs::write(certificates.path("cn.ext"), "basicConstraints=CA:FALSE\n").unwrap();
    sign("cn", " -extfile cn.ext");
    for (file, constraint) in [("pinned", "CA:TRUE"), ("leaf", "CA:FALSE")] {
        certificates.openssl(&format!(
            "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 -subj /CN=127.0.0.1 -addext subjectAltName=IP:127.0.0.1 \
             -addext basicConstraints=critical,{constraint} -keyout {file}.key -out {file}.pem"
        ));
    }
    for (file, ca, unverified, remedy) in [
        ("v1", "ca.pem", false, "version 3"),
        ("cn", "ca.pem", true, "subjectAltName"),
        ("pinned", "pinned.pem", true, "CA:FALSE"),
    ] {
        let server = certificates.server(file);
        let mut database = Database::on(&server, &Shape::default());
        let uid = database.insert(&Run::running(OWNER, LEASE));
        let ca = certificates.path(ca);
        let mut verified = over_tls(server.endpoint(), &database, &ca, MYSQLI_CLIENT_SSL);
        let error = error_of(Kind::Connection, verified.renew_lease(uid, OWNER, LEASE + 1));
        assert!(error.message.contains(remedy), "{file}: {error}");
        let flags = MYSQLI_CLIENT_SSL | MYSQLI_CLIENT_SSL_DONT_VERIFY_SERVER_CERT;
        let answer =
            over_tls(server.endpoint(), &database, &ca, flags).renew_lease(uid, OWNER, LEASE + 2);
        match answer {
            Ok(renewed) => assert!(renewed && unverified, "{file}"),
            Err(error) => assert!(!unverified && error.message.contains(remedy), "{file}: {error}"),
        }
    }
    // As the remedy says: a self-signed certificate of no authority, pinned.
    let server = certificates.server("leaf");
    let mut database = Database::on(&server, &Shape::default());
    let uid = database.insert(&Run::running(OWNER, LEASE));
    let pinned = certificates.path("leaf.pem");
    assert!(
        over_tls(server.endpoint(), &database, &pinned, MYSQLI_CLIENT_SSL)
            .renew_lease(uid, OWNER, LEASE + 1)
            .unwrap()
    );
}
