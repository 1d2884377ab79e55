//! A database server of the tests' own.
//!
//! [`shared`] is one server for the whole test binary: the one that the environment names
//! (`NRLLM_TEST_SOCKET`, `NRLLM_TEST_HOST`, `NRLLM_TEST_PORT`, `NRLLM_TEST_USER`,
//! `NRLLM_TEST_PASSWORD`), else a private one. A test that needs other server options, or counts
//! something that is counted for the whole server, starts its own with [`Server::start`].
//!
//! A private server keeps its data in a temporary folder, listens on a unix socket and on a free
//! loopback port, and is killed by its process id: when its `Server` is dropped, when the test
//! process exits, and by the kernel when that process is killed.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, Once, OnceLock};
use std::thread;

use super::PATIENCE;
use super::client::Client;

/// The address of a server, and the account.
#[derive(Clone)]
pub struct Endpoint {
    /// A numeric address, so that no test depends on name resolution.
    pub host: String,
    pub port: u16,
    pub socket: Option<PathBuf>,
    pub user: String,
    pub password: String,
}

/// A running server; a private one ends when this is dropped.
pub struct Server {
    endpoint: Endpoint,
    version: String,
    process: Option<Process>,
}

/// A connection as the server lists it.
#[derive(Debug, Clone)]
pub struct Connection {
    pub id: u64,
    pub database: String,
    /// `Sleep` while it waits for a statement.
    pub command: String,
    /// The statement that it executes, if any.
    pub statement: String,
}

struct Process {
    pid: libc::pid_t,
    folder: PathBuf,
    log: Arc<Mutex<String>>,
}

/// The account that private servers get, over TCP and over the socket.
const USER: &str = "nrllm";
const PASSWORD: &str = "correct horse:b@ttery/staple";

/// The servers to end when the process exits without dropping them (the shared one lives in a
/// static).
static RUNNING: Mutex<Vec<(libc::pid_t, PathBuf)>> = Mutex::new(Vec::new());

/// The server that the tests of this binary share.
pub fn shared() -> &'static Server {
    static SHARED: OnceLock<Server> = OnceLock::new();
    SHARED.get_or_init(|| match from_environment() {
        Some(endpoint) => Server::adopt(endpoint),
        None => Server::start(&[]),
    })
}

/// True when the tests are to run on MySQL (`NRLLM_TEST_SERVER=mysql`), else on MariaDB.
pub fn wants_mysql() -> bool {
    match std::env::var("NRLLM_TEST_SERVER").as_deref() {
        Err(_) | Ok("" | "mariadb") => false,
        Ok("mysql") => true,
        Ok(other) => panic!("NRLLM_TEST_SERVER is mysql or mariadb, not {other:?}"),
    }
}

fn from_environment() -> Option<Endpoint> {
    let get = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let socket = get("NRLLM_TEST_SOCKET");
    let (host, port) = (get("NRLLM_TEST_HOST"), get("NRLLM_TEST_PORT"));
    if socket.is_none() && host.is_none() && port.is_none() {
        return None;
    }
    let port = port.expect("NRLLM_TEST_PORT is needed beside NRLLM_TEST_SOCKET or NRLLM_TEST_HOST: the proxy speaks TCP");
    Some(Endpoint {
        host: host.unwrap_or_else(|| "127.0.0.1".to_owned()),
        port: port.parse().expect("NRLLM_TEST_PORT is a port number"),
        socket: socket.map(PathBuf::from),
        user: get("NRLLM_TEST_USER").unwrap_or_else(|| "root".to_owned()),
        password: get("NRLLM_TEST_PASSWORD").unwrap_or_default(),
    })
}

impl Server {
    /// Starts a private server with these options added to the usual ones, and returns once it
    /// answers.
    pub fn start(options: &[&str]) -> Self {
        // The port was free when it was chosen and may be taken by the time the server binds it;
        // then another one is tried.
        for _ in 0..5 {
            match start_once(options) {
                Ok((process, endpoint)) => {
                    let version = version_of(&endpoint);
                    return Self { endpoint, version, process: Some(process) };
                }
                Err(log)
                    if log.contains("Bind on TCP/IP port")
                        || log.contains("Address already in use") => {}
                Err(log) => panic!("the test server did not start:\n{log}"),
            }
        }
        panic!("no free port for the test server");
    }

    fn adopt(endpoint: Endpoint) -> Self {
        let version = version_of(&endpoint);
        Self { endpoint, version, process: None }
    }

    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// A new connection without a default database.
    pub fn client(&self) -> Client {
        Client::connect(&self.endpoint, None)
    }

    /// The result of `SELECT VERSION()`.
    pub fn version(&self) -> &str {
        &self.version
    }

    pub fn is_mariadb(&self) -> bool {
        self.version.contains("MariaDB")
    }

    /// The error log of a private server so far.
    pub fn log(&self) -> String {
        self.process.as_ref().map(|process| process.log.lock().unwrap().clone()).unwrap_or_default()
    }

    /// Kills the process: connections end at once, and no server listens on the port afterwards.
    pub fn kill(&mut self) {
        drop(self.process.take().expect("only a private server can be killed"));
    }

    /// A counter of `SHOW GLOBAL STATUS`. It counts for the whole server: for private ones only.
    pub fn global_status(&self, name: &str) -> u64 {
        let mut client = self.client();
        let rows = client.rows(&format!("SHOW GLOBAL STATUS LIKE '{name}'"));
        assert_eq!(rows.len(), 1, "the server knows the status variable {name}");
        String::from_utf8(rows[0][1].clone().unwrap()).unwrap().parse().unwrap()
    }

    /// How often a statement had to wait for a row lock, since the server started.
    pub fn row_lock_waits(&self) -> u64 {
        self.global_status("Innodb_row_lock_waits")
    }

    /// How many prepared statements the server holds, over all connections.
    pub fn prepared_statements(&self) -> u64 {
        self.global_status("Prepared_stmt_count")
    }

    /// The connections of the server, without the one of this query and without the server's own
    /// (MySQL's event scheduler).
    pub fn connections(&self) -> Vec<Connection> {
        let mut client = self.client();
        let own = client.id();
        let rows = client.rows("SHOW FULL PROCESSLIST");
        // With the protocol's quit: otherwise the server would count it as an aborted client.
        client.close();
        let text = |field: &Option<Vec<u8>>| {
            String::from_utf8_lossy(field.as_deref().unwrap_or_default()).into_owned()
        };
        let all = rows.into_iter().map(|row| Connection {
            id: text(&row[0]).parse().unwrap(),
            database: text(&row[3]),
            command: text(&row[4]),
            statement: text(&row[7]),
        });
        all.filter(|connection| connection.id != own && connection.command != "Daemon").collect()
    }

    /// Writes every statement of every connection to `mysql.general_log` from now on.
    pub fn log_statements(&self) {
        let mut client = self.client();
        client.run("SET GLOBAL log_output = 'TABLE'");
        client.run("SET GLOBAL general_log = ON");
    }

    /// The statements that a connection has executed, oldest first, as the server logged them (see
    /// [`Server::log_statements`]).
    pub fn logged_statements(&self, connection_id: u64) -> Vec<String> {
        let sql = format!(
            "SELECT argument FROM mysql.general_log WHERE thread_id = {connection_id} AND command_type IN ('Query', 'Execute') \
             ORDER BY event_time"
        );
        let rows = self.client().rows(&sql);
        rows.into_iter()
            .map(|row| String::from_utf8_lossy(row[0].as_deref().unwrap()).into_owned())
            .collect()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        RUNNING.lock().unwrap().retain(|(pid, _)| *pid != self.pid);
        end(self.pid, &self.folder);
    }
}

fn version_of(endpoint: &Endpoint) -> String {
    Client::connect(endpoint, None).text("SELECT VERSION()")
}

#[expect(clippy::zombie_processes, reason = "the process is waited for by its id, in `end`")]
fn start_once(options: &[&str]) -> Result<(Process, Endpoint), String> {
    let mysql = wants_mysql();
    // Before the folder is created, since this may panic.
    let template = template(mysql);
    let folder = new_folder();
    let data = folder.join("data");
    let copied = Command::new("cp").arg("-a").arg(template).arg(&data).status().expect("cp runs");
    assert!(copied.success(), "the data folder is copied");
    // MySQL's identity of a server: a replica refuses a primary that has the same.
    let _ = fs::remove_file(data.join("auto.cnf"));

    // The account exists before the server reports that it is ready.
    let init = folder.join("init.sql");
    let mut statements = String::new();
    for host in ["localhost", "127.0.0.1"] {
        statements += &format!("CREATE USER '{USER}'@'{host}' IDENTIFIED BY '{PASSWORD}';\n");
        statements +=
            &format!("GRANT ALL PRIVILEGES ON *.* TO '{USER}'@'{host}' WITH GRANT OPTION;\n");
    }
    fs::write(&init, statements).expect("the init file is written");

    let socket = folder.join("s");
    let port = TcpListener::bind("127.0.0.1:0")
        .and_then(|listener| listener.local_addr())
        .expect("a free loopback port")
        .port();
    let mut command = Command::new(program(mysql));
    command
        .arg("--no-defaults")
        .arg(format!("--datadir={}", data.display()))
        .arg(format!("--tmpdir={}", folder.display()))
        .arg(format!("--socket={}", socket.display()))
        .arg(format!("--pid-file={}", folder.join("pid").display()))
        .arg(format!("--init-file={}", init.display()))
        .arg(format!("--port={port}"))
        .args([
            "--bind-address=127.0.0.1",
            "--skip-name-resolve",
            "--skip-log-bin",
            "--performance-schema=OFF",
        ])
        // The data need not survive a crash: no waiting for the disk.
        .args([
            "--innodb-flush-log-at-trx-commit=0",
            "--innodb-doublewrite=OFF",
            "--innodb-buffer-pool-size=128M",
        ])
        .args(["--max-connections=300", "--max-allowed-packet=64M"]);
    if mysql {
        command.arg("--mysqlx=OFF");
    }
    if running_as_root() {
        command.arg("--user=root");
    }
    command.args(options).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    // SAFETY: prctl is async-signal-safe, and the closure touches nothing else of the parent
    // between fork and exec.
    unsafe {
        command.pre_exec(|| match libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        });
    }

    let mut child = spawn_for_life(command);
    let pid = libc::pid_t::try_from(child.id()).expect("a process id");
    end_at_exit(pid, &folder);
    let stderr = child.stderr.take().expect("the error log is piped");
    let log = Arc::new(Mutex::new(String::new()));
    let process = Process { pid, folder, log: Arc::clone(&log) };

    // The server reports when it is ready. The log is read until its end, so that the server
    // never blocks on a full pipe.
    let (ready, wait) = channel();
    thread::spawn(move || {
        for line in BufReader::new(stderr).split(b'\n') {
            let Ok(line) = line else { break };
            let line = String::from_utf8_lossy(&line).into_owned();
            let is_ready = line.contains("ready for connections");
            {
                let mut log = log.lock().unwrap();
                log.push_str(&line);
                log.push('\n');
            }
            if is_ready {
                let _ = ready.send(());
            }
        }
    });
    // The channel closes without a message when the server ends before it is ready.
    match wait.recv_timeout(PATIENCE) {
        Ok(()) => {
            let endpoint = Endpoint {
                host: "127.0.0.1".to_owned(),
                port,
                socket: Some(socket),
                user: USER.to_owned(),
                password: PASSWORD.to_owned(),
            };
            Ok((process, endpoint))
        }
        Err(_) => {
            let log = process.log.lock().unwrap().clone();
            Err(log)
        }
    }
}

/// An initialised, empty data folder that every server of this process starts from a copy of.
fn template(mysql: bool) -> &'static Path {
    static TEMPLATE: OnceLock<PathBuf> = OnceLock::new();
    TEMPLATE.get_or_init(|| {
        let folder = new_folder();
        end_at_exit(0, &folder);
        let data = folder.join("data");
        let mut command = if mysql {
            let mut command = Command::new(program(true));
            command
                .args(["--no-defaults", "--initialize-insecure"])
                .arg(format!("--datadir={}", data.display()));
            command
        } else {
            let mut command = Command::new(find("mariadb-install-db"));
            command
                .args([
                    "--no-defaults",
                    "--auth-root-authentication-method=normal",
                    "--skip-test-db",
                ])
                .arg(format!("--datadir={}", data.display()));
            command
        };
        if running_as_root() {
            command.arg("--user=root");
        }
        // Two servers that are set up at the same time must not share the folder for temporary
        // tables.
        let output = command
            .env("TMPDIR", &folder)
            .stdin(Stdio::null())
            .output()
            .expect("the data folder is initialised");
        let text = [output.stdout, output.stderr].concat();
        assert!(
            output.status.success(),
            "the data folder is initialised: {}",
            String::from_utf8_lossy(&text)
        );
        data
    })
}

fn program(mysql: bool) -> PathBuf {
    find(if mysql { "mysqld" } else { "mariadbd" })
}

/// The server's programs are often not in the search path of a user.
fn find(program: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let fixed = ["/usr/sbin", "/usr/libexec", "/usr/local/bin", "/usr/local/sbin", "/usr/bin"]
        .map(PathBuf::from);
    std::env::split_paths(&path)
        .chain(fixed)
        .map(|folder| folder.join(program))
        .find(|file| file.is_file())
        .unwrap_or_else(|| panic!("{program} is needed for the tests on a real server"))
}

fn running_as_root() -> bool {
    // SAFETY: geteuid has no preconditions and cannot fail.
    unsafe { libc::geteuid() == 0 }
}

fn new_folder() -> PathBuf {
    let pattern = std::env::temp_dir().join("nrllm-test-XXXXXX");
    let mut bytes = std::os::unix::ffi::OsStringExt::into_vec(pattern.into_os_string());
    bytes.push(0);
    // SAFETY: `bytes` is a NUL-terminated, writable template that lives over the call.
    let made = unsafe { libc::mkdtemp(bytes.as_mut_ptr().cast()) };
    assert!(!made.is_null(), "a temporary folder: {}", std::io::Error::last_os_error());
    bytes.pop();
    PathBuf::from(<std::ffi::OsString as std::os::unix::ffi::OsStringExt>::from_vec(bytes))
}

/// Starts a process from a thread that never ends. `PR_SET_PDEATHSIG` fires when the *thread* that
/// started the child ends, and a test runs in a thread of its own.
fn spawn_for_life(command: Command) -> std::process::Child {
    type Job = (Command, Sender<std::io::Result<std::process::Child>>);
    static STARTER: OnceLock<Mutex<Sender<Job>>> = OnceLock::new();
    let starter = STARTER.get_or_init(|| {
        let (sender, jobs) = channel::<Job>();
        thread::spawn(move || {
            for (mut command, answer) in jobs {
                let _ = answer.send(command.spawn());
            }
        });
        Mutex::new(sender)
    });
    let (answer, child) = channel();
    starter
        .lock()
        .unwrap()
        .send((command, answer))
        .expect("the starter thread lives as long as the process");
    child.recv().expect("the starter thread answers").expect("the server program starts")
}

/// Has the process killed (unless it is 0) and the folder removed when this process exits. Rust
/// drops no statics.
fn end_at_exit(pid: libc::pid_t, folder: &Path) {
    static REGISTER: Once = Once::new();
    extern "C" fn end_all() {
        // Not `lock`: a thread that is being torn down may hold it for ever.
        if let Ok(mut running) = RUNNING.try_lock() {
            for (pid, folder) in running.drain(..) {
                end(pid, &folder);
            }
        }
    }
    REGISTER.call_once(|| {
        // SAFETY: `end_all` is a plain function that does not unwind (it neither locks nor
        // indexes).
        let registered = unsafe { libc::atexit(end_all) };
        assert_eq!(registered, 0, "the exit handler is registered");
    });
    RUNNING.lock().unwrap().push((pid, folder.to_owned()));
}

fn end(pid: libc::pid_t, folder: &Path) {
    if pid > 0 {
        // SAFETY: the process is our child and was not waited for yet, so the id cannot belong to
        // another process.
        unsafe {
            libc::kill(pid, libc::SIGKILL);
            libc::waitpid(pid, std::ptr::null_mut(), 0);
        }
    }
    let _ = fs::remove_dir_all(folder);
}
