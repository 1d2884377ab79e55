//! A connection that is given up is closed before the call returns (rule 29).

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use mysql_async::Params;
use nrllm_runtime::config::options::Options;
use nrllm_runtime::domain::failure::FailureClass;
use nrllm_runtime::error::Kind;

use crate::support::PATIENCE;
use crate::support::database::{Database, Run, Shape};
use crate::support::harness::{Harness, LEASE, OWNER, error_of};
use crate::support::proxy::{Fault, Proxy, When};
use crate::support::server::{Endpoint, Server};

/// A proxy that stalls the reply to a request after its first bytes. It closes the server's side
/// when the client's has ended.
pub(super) struct Stalling {
    pub(super) endpoint: Endpoint,
    frozen: Arc<AtomicBool>,
}

impl Stalling {
    pub(super) fn start(server: &Endpoint, marker: &'static str, passed: usize) -> Self {
        let frozen = Arc::new(AtomicBool::new(false));
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let endpoint = Endpoint { host: "127.0.0.1".into(), port, ..server.clone() };
        let server = (server.host.clone(), server.port);
        thread::spawn({
            let frozen = Arc::clone(&frozen);
            move || {
                for client in listener.incoming() {
                    let client = client.unwrap();
                    let upstream = TcpStream::connect(&server).unwrap();
                    relay(client, upstream, marker, passed, Arc::clone(&frozen));
                }
            }
        });
        Self { endpoint, frozen }
    }

    /// Lets all replies stall from now on, also those whose requests cannot be read here.
    pub(super) fn freeze(&self) {
        self.frozen.store(true, Ordering::SeqCst);
    }
}

fn relay(
    client: TcpStream,
    upstream: TcpStream,
    marker: &'static str,
    passed: usize,
    frozen: Arc<AtomicBool>,
) {
    let stalled = Arc::new(AtomicBool::new(false));
    let left = Arc::new(Mutex::new(passed));
    let (mut from, mut to) = (client.try_clone().unwrap(), upstream.try_clone().unwrap());
    thread::spawn({
        let stalled = Arc::clone(&stalled);
        move || {
            let mut bytes = [0; 4_096];
            while let Ok(size @ 1..) = from.read(&mut bytes) {
                if String::from_utf8_lossy(&bytes[..size]).contains(marker) {
                    stalled.store(true, Ordering::SeqCst);
                }
                if to.write_all(&bytes[..size]).is_err() {
                    break;
                }
            }
            let _ = to.shutdown(Shutdown::Both);
        }
    });
    let (mut from, mut to) = (upstream, client);
    thread::spawn(move || {
        let mut bytes = [0; 4_096];
        while let Ok(size @ 1..) = from.read(&mut bytes) {
            if frozen.load(Ordering::SeqCst) {
                continue;
            }
            let mut left = left.lock().unwrap();
            let size = if stalled.load(Ordering::SeqCst) { size.min(*left) } else { size };
            if stalled.load(Ordering::SeqCst) {
                *left -= size;
            }
            if to.write_all(&bytes[..size]).is_err() {
                break;
            }
        }
    });
}

/// Waits until the server has no connection to this database but the test's own.
#[track_caller]
pub(super) fn until_closed(server: &Server, database: &mut Database, why: &str) {
    let own = database.client().id();
    let start = Instant::now();
    loop {
        let left: Vec<_> = server
            .connections()
            .into_iter()
            .filter(|connection| connection.database == database.name() && connection.id != own)
            .collect();
        if left.is_empty() {
            return;
        }
        assert!(start.elapsed() < PATIENCE, "{why}: {left:?}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Fails where a transaction holds the lock of the run.
#[track_caller]
pub(super) fn assert_unlocked(database: &mut Database, uid: i64) {
    let sql = format!("SELECT uid FROM tx_nrllm_agentrun WHERE uid = {uid} FOR UPDATE NOWAIT");
    database.client().run(&sql);
}

pub(super) fn locking_read(harness: &mut Harness, uid: i64) -> nrllm_runtime::error::Result<bool> {
    harness.run(async |session, context| {
        session.execute("START TRANSACTION", Params::Empty).await?;
        let sql = format!(
            "SELECT uid, uuid, status FROM {} WHERE uid = {uid} FOR UPDATE",
            context.options.table.quoted()
        );
        Ok(!session.query(&sql, Params::Empty).await?.is_empty())
    })
}

#[test]
fn p29_stalled_reply_leaves_no_row_lock_or_connection() {
    let server = Server::start(&[]);
    let mut database = Database::on(&server, &Shape::default());
    let uid = database.insert(&Run::running(OWNER, LEASE));
    for passed in [0, 40] {
        let stalling = Stalling::start(server.endpoint(), "FOR UPDATE", passed);
        let mut harness = Harness::limits(&stalling.endpoint, database.name(), 5_000, 700);
        let error = error_of(Kind::Connection, locking_read(&mut harness, uid));
        assert!(error.message.contains("queryTimeoutMs"), "{error}");
        // The session exists and sends nothing more.
        until_closed(&server, &mut database, "a stalled reply");
        assert_unlocked(&mut database, uid);
    }
}

#[test]
fn p29_read_only_within_a_transaction_leaves_no_row_lock() {
    let server = Server::start(&[]);
    let mut database = Database::on(&server, &Shape::default());
    for number in [1290, 1836, 1792, 1047] {
        let uid = database.insert(&Run::running(OWNER, LEASE));
        let proxy = Proxy::start(server.endpoint());
        // After the locking read of the same transaction.
        proxy.rule(When::statement("UPDATE "), Fault::Refuse(number));
        let mut harness = Harness::at(proxy.endpoint(), database.name(), Options::default());
        let answer = harness.recover_failure(uid, OWNER, FailureClass::Connection, "Error");
        let error = error_of(Kind::Connection, answer);
        assert_eq!(error.code, number);
        until_closed(&server, &mut database, "read-only in a transaction");
        assert_unlocked(&mut database, uid);
    }
}

#[test]
fn p29_failed_connects_leave_no_connection() {
    let server = Server::start(&[]);
    let mut database = Database::on(&server, &Shape::default());
    let uid = database.insert(&Run::running(OWNER, LEASE));
    for (marker, passed) in [("SHOW VARIABLES", 100), ("SHOW VARIABLES", 0)] {
        let stalling = Stalling::start(server.endpoint(), marker, passed);
        let mut harness = Harness::limits(&stalling.endpoint, database.name(), 300, 5_000);
        for _ in 0..5 {
            let error = error_of(Kind::Connection, harness.renew_lease(uid, OWNER, LEASE));
            assert!(error.message.contains("connectTimeoutMs"), "{error}");
        }
        until_closed(&server, &mut database, marker);
    }
    let wrong = Endpoint { password: "wrong".into(), ..server.endpoint().clone() };
    let mut harness = Harness::limits(&wrong, database.name(), 5_000, 5_000);
    for _ in 0..5 {
        error_of(Kind::Connection, harness.renew_lease(uid, OWNER, LEASE));
    }
    until_closed(&server, &mut database, "a wrong password");
}

#[test]
fn p29_discard_reaches_the_copies_of_a_forked_child() {
    let server = Server::start(&[]);
    let mut database = Database::on(&server, &Shape::default());
    let uid = database.insert(&Run::running(OWNER, LEASE));
    let mut harness = Harness::on(&database);
    assert!(locking_read(&mut harness, uid).unwrap());
    // SAFETY: the child calls nothing but pause(2), until it is killed.
    let child = unsafe { libc::fork() };
    if child == 0 {
        loop {
            // SAFETY: as above.
            unsafe { libc::pause() };
        }
    }
    harness
        .run(async |session, _| {
            session.discard();
            Ok(())
        })
        .unwrap();
    until_closed(&server, &mut database, "a child holds copies");
    // SAFETY: the child of this test.
    unsafe {
        libc::kill(child, libc::SIGKILL);
        libc::waitpid(child, std::ptr::null_mut(), 0);
    }
}
