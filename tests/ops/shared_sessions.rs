//! One session per process for all objects with equal settings (rule 20).

use std::sync::Arc;

use nrllm_runtime::config::options::{Options, Timeouts};
use nrllm_runtime::domain::holder::Holder;
use nrllm_runtime::error::{Kind, Result};
use nrllm_runtime::ops::renew_lease::renew_lease;
use nrllm_runtime::ops::sql::Context;
use nrllm_runtime::process::sessions::{self, Key, SessionUser};

use crate::support::database::{Database, Run};
use crate::support::harness::{LEASE, NOW, OWNER, error_of, settings};
use crate::support::proxy::Proxy;

fn key(proxy: &Proxy, database: &Database) -> Key {
    Key {
        connection: Arc::new(settings(proxy.endpoint(), database.name())),
        timeouts: Timeouts::default(),
    }
}

/// A run that is held, and a proxy before its database.
fn held_run() -> (i64, Database, Proxy, Key) {
    let mut database = Database::new();
    let uid = database.insert(&Run::running(OWNER, LEASE));
    let proxy = Proxy::start(database.endpoint());
    let key = key(&proxy, &database);
    (uid, database, proxy, key)
}

fn renew(key: &Key, uid: i64) -> Result<bool> {
    let options = Options::default();
    let context = Context { options: &options, time: NOW };
    let holder = Holder { run_uid: uid as u64, owner: OWNER };
    sessions::call(key, async |session| renew_lease(session, context, holder, LEASE).await)
}

#[test]
fn p20_objects_with_equal_settings_share_a_connection() {
    let mut database = Database::new();
    let uid = database.insert(&Run::running(OWNER, LEASE));
    let proxy = Proxy::start(database.endpoint());
    for _ in 0..20 {
        assert!(renew(&key(&proxy, &database), uid).unwrap());
    }
    assert_eq!(proxy.connections(), 1);
    let other = Key {
        timeouts: Timeouts { query: std::time::Duration::from_secs(9), ..Timeouts::default() },
        ..key(&proxy, &database)
    };
    assert!(renew(&other, uid).unwrap());
    assert_eq!(proxy.connections(), 2, "other time limits, another session");
    sessions::close(&key(&proxy, &database));
    sessions::close(&key(&proxy, &database));
    proxy.wait_for_open(1);
    sessions::close(&other);
    proxy.wait_for_open(0);
    assert!(renew(&key(&proxy, &database), uid).unwrap(), "the next call opens anew");
    assert_eq!(proxy.connections(), 3);
    sessions::close(&key(&proxy, &database));
}

#[test]
fn p20_no_connection_before_the_first_call() {
    let database = Database::new();
    let proxy = Proxy::start(database.endpoint());
    let key = key(&proxy, &database);
    sessions::close(&key);
    assert_eq!(proxy.connections(), 0);
}

#[test]
fn panic_in_an_operation_costs_the_connection() {
    let (uid, _database, proxy, key) = held_run();
    assert!(renew(&key, uid).unwrap());
    error_of(
        Kind::Connection,
        sessions::call(&key, async |_| -> Result<bool> { panic!("a panic of the driver") }),
    );
    assert!(renew(&key, uid).unwrap(), "the next call works");
    assert_eq!(proxy.connections(), 2);
    sessions::close(&key);
}

#[test]
fn each_thread_has_a_connection_and_leaves_none_behind() {
    let (uid, _database, proxy, key) = held_run();
    assert!(renew(&key, uid).unwrap());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..25).for_each(|_| assert!(renew(&key, uid).unwrap())));
        }
    });
    proxy.wait_for_open(1);
    assert!(renew(&key, uid).unwrap());
    assert_eq!(
        proxy.connections(),
        5,
        "one per thread; the others' end closed none of this thread"
    );
    sessions::close(&key);
}

#[test]
fn a_request_that_ends_closes_the_connections_of_its_thread() {
    let (uid, _database, proxy, key) = held_run();
    assert!(renew(&key, uid).unwrap());
    std::thread::scope(|scope| {
        scope
            .spawn(|| {
                assert!(renew(&key, uid).unwrap());
                sessions::close_thread();
                proxy.wait_for_open(1);
                assert!(renew(&key, uid).unwrap(), "the next request opens anew");
            })
            .join()
            .unwrap();
    });
    proxy.wait_for_open(1);
    assert!(renew(&key, uid).unwrap());
    assert_eq!(proxy.connections(), 3);
    sessions::close_thread();
    proxy.wait_for_open(0);
}

#[test]
fn p34_connection_ends_with_the_last_object_of_its_settings() {
    let mut database = Database::new();
    let uid = database.insert(&Run::running(OWNER, LEASE));
    let proxy = Proxy::start(database.endpoint());
    for round in 1..=3 {
        let object = || SessionUser::new(key(&proxy, &database));
        let [first, second, unused] = [object(), object(), object()];
        assert!(renew(&first, uid).unwrap() && renew(&second, uid).unwrap());
        drop(first);
        assert!(renew(&second, uid).unwrap());
        drop(unused);
        assert!(renew(&second, uid).unwrap());
        assert_eq!((proxy.connections(), proxy.open_connections()), (round, 1));
        drop(second);
        proxy.wait_for_open(0);
    }
}
