//! Arbitrary input: no bytes make the parsers panic, and the arithmetic agrees with plain
//! arithmetic of any size.

use std::path::PathBuf;

use nrllm_runtime::config::connection::{ConnectionSettings, Defaults};
use nrllm_runtime::config::options::{Options, TableName};
use nrllm_runtime::config::requests::WakeUp;
use nrllm_runtime::config::value::{Input, Key};
use nrllm_runtime::db::server::ServerCapabilities;
use nrllm_runtime::domain::backoff::{Backoff, backoff_ms};
use nrllm_runtime::domain::failure::error_class;
use nrllm_runtime::domain::owner::identity;
use nrllm_runtime::domain::validate;
use nrllm_runtime::error::Kind;
use proptest::collection::vec;
use proptest::prelude::*;

fn config() -> ProptestConfig {
    // Without a file of past failures: each becomes a test of its own.
    ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() }
}

const CONNECTION_KEYS: [&str; 14] = [
    "driver",
    "host",
    "port",
    "unix_socket",
    "user",
    "password",
    "dbname",
    "charset",
    "url",
    "driverOptions",
    "ssl_ca",
    "ssl_key",
    "ssl_cert",
    "persistent",
];
const OPTION_KEYS: [&str; 13] = [
    "table",
    "clock",
    "connectTimeoutMs",
    "queryTimeoutMs",
    "maxRequeues",
    "backoffBaseMs",
    "backoffCapMs",
    "jitter",
    "queue",
    "body",
    "headers",
    "placeholder",
    "flags",
];

fn text() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        vec(any::<u8>(), 0..40),
        "\\PC{0,40}".prop_map(String::into_bytes),
        Just(b"mysqli".to_vec()),
        Just(b"pdo_mysql".to_vec()),
        Just(b"127.0.0.1".to_vec()),
        Just(b"localhost".to_vec()),
        Just(b"3306".to_vec()),
        Just(b"database".to_vec()),
    ]
}

fn leaf() -> impl Strategy<Value = Input> {
    prop_oneof![
        Just(Input::Null),
        any::<bool>().prop_map(Input::Bool),
        any::<i64>().prop_map(Input::Int),
        (0_i64..70_000).prop_map(Input::Int),
        any::<f64>().prop_map(Input::Float),
        text().prop_map(Input::Bytes),
        Just(Input::Other("stdClass")),
    ]
}

fn key() -> impl Strategy<Value = Key> {
    prop_oneof![
        4 => proptest::sample::select(&CONNECTION_KEYS[..]).prop_map(|key| Key::Str(key.as_bytes().to_vec())),
        4 => proptest::sample::select(&OPTION_KEYS[..]).prop_map(|key| Key::Str(key.as_bytes().to_vec())),
        1 => any::<i64>().prop_map(Key::Int),
        1 => (1_000_i64..1_020).prop_map(Key::Int),
        1 => vec(any::<u8>(), 0..12).prop_map(Key::Str),
    ]
}

fn entries() -> impl Strategy<Value = Vec<(Key, Input)>> {
    let value =
        leaf().prop_recursive(2, 12, 4, |inner| vec((key(), inner), 0..4).prop_map(Input::Map));
    vec((key(), value), 0..8)
}

fn url() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        vec(any::<u8>(), 0..80),
        "(mysql|mysqli|pdo-mysql|pgsql)://\\PC{0,60}".prop_map(String::into_bytes),
        "mysql://[a-z%0-9:@/?#&=\\[\\]]{0,60}".prop_map(String::into_bytes),
    ]
}

fn hides(shown: &impl std::fmt::Debug, secret: &str) -> bool {
    !format!("{shown:?}").contains(secret)
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn connection_settings_never_panic_and_never_show_the_password(mut list in entries(), secret in "[A-Z]{12}") {
        list.push((Key::Str(b"password".to_vec()), Input::Bytes(secret.clone().into_bytes())));
        let defaults = Defaults { socket: Some(PathBuf::from("/run/none.sock")) };
        match ConnectionSettings::parse(&Input::Map(list), &defaults) {
            Ok(settings) => prop_assert!(hides(&settings, &secret) && hides(&settings.endpoint, &secret)),
            Err(error) => {
                prop_assert_eq!(error.kind, Kind::Configuration);
                prop_assert!(!error.message.is_empty() && hides(&error, &secret));
            }
        }
    }

    #[test]
    fn urls_never_panic_and_never_show_the_password(url in url(), secret in "[A-Z]{12}") {
        let defaults = Defaults::default();
        let _ = ConnectionSettings::parse(&Input::Bytes(url.clone()), &defaults);
        let with_secret = [b"mysql://user:", secret.as_bytes(), b"@", url.as_slice()].concat();
        match ConnectionSettings::parse(&Input::Bytes(with_secret), &defaults) {
            Ok(settings) => prop_assert!(hides(&settings, &secret)),
            Err(error) => prop_assert!(hides(&error, &secret), "{error:?}"),
        }
    }

    #[test]
    fn any_password_can_be_written_in_a_url(password in "\\PC{1,30}", user in "\\PC{1,20}") {
        let encode = |text: &str| text.bytes().map(|byte| format!("%{byte:02X}")).collect::<String>();
        let url = format!("mysql://{}:{}@db.example:3307/site", encode(&user), encode(&password));
        let settings = ConnectionSettings::parse(&Input::Bytes(url.into_bytes()), &Defaults::default()).unwrap();
        let array = Input::Map(
            [("driver", "mysqli"), ("host", "db.example"), ("port", "3307"), ("user", user.as_str()), ("password", password.as_str()), ("dbname", "site")]
                .map(|(key, value)| (Key::Str(key.as_bytes().to_vec()), Input::Bytes(value.as_bytes().to_vec())))
                .to_vec(),
        );
        prop_assert!(settings == ConnectionSettings::parse(&array, &Defaults::default()).unwrap());
    }

    #[test]
    fn options_and_wake_ups_never_panic(list in entries()) {
        if let Err(error) = Options::parse(&list) {
            prop_assert_eq!(error.kind, Kind::Configuration);
        }
        if let Err(error) = WakeUp::parse(&list) {
            prop_assert_eq!(error.kind, Kind::Configuration);
        }
    }

    #[test]
    fn a_table_name_stays_within_its_quotes(name in "\\PC{0,70}") {
        if let Ok(table) = TableName::parse("table", &name) {
            let inner = table.quoted().replace("`.`", "");
            prop_assert!(inner.starts_with('`') && inner.ends_with('`') && inner.matches('`').count() == 2, "{}", table.quoted());
        }
    }

    #[test]
    fn arguments_of_any_bytes_are_an_answer(bytes in vec(any::<u8>(), 0..100), number in any::<i64>()) {
        for owner in [validate::claimed_by(&bytes), validate::uuid(&bytes), validate::effect(&bytes), validate::termination_reason(&bytes)] {
            match owner {
                Ok(text) => prop_assert!(text.as_bytes() == bytes.as_slice() && text.chars().count() <= 64),
                Err(error) => prop_assert!(error.to_string().starts_with('$')),
            }
        }
        prop_assert_eq!(validate::lease_expires(number).is_ok(), (1..=4_294_967_295).contains(&number));
        prop_assert_eq!(validate::now(number).is_ok(), (0..=4_294_967_295).contains(&number));
        prop_assert_eq!(validate::run_uid(number).is_ok(), number >= 1);
    }

    #[test]
    fn backoff_is_exact(requeues in prop_oneof![0_u32..130, any::<u32>()], base in prop_oneof![0_u64..100_000, any::<u64>()], cap in any::<u64>()) {
        // Doubled step by step in numbers that are large enough, and stopped when it is beyond any
        // cap.
        let mut exact = u128::from(base);
        for _ in 0..requeues {
            if exact == 0 || exact > u128::from(u64::MAX) {
                break;
            }
            exact *= 2;
        }
        prop_assert_eq!(u128::from(backoff_ms(requeues, base, cap)), exact.min(u128::from(cap)));
    }

    #[test]
    fn jitter_only_ever_adds_its_share(requeues in any::<u32>(), uuid in vec(any::<u8>(), 0..40), jitter in 0.0_f64..=1.0) {
        let plain = Backoff::default().delay_ms(&uuid, requeues);
        let jittered = Backoff { jitter, ..Backoff::default() }.delay_ms(&uuid, requeues);
        prop_assert!(jittered >= plain && jittered as f64 <= plain as f64 * (1.0 + jitter), "{plain} {jittered}");
    }

    #[test]
    fn identities_fit_and_end_in_their_nonce(segment in "[!-~]{1,24}", host in "\\PC{0,300}", pid in any::<u32>(), nonce in "[0-9a-f]{16}") {
        let made = identity(&segment, &host, pid, &nonce).unwrap();
        let tail = format!(":{pid}:{nonce}");
        prop_assert!(made.len() <= 64 && made.is_ascii() && made.ends_with(&tail) && made.starts_with(&segment), "{made}");
        prop_assert!(validate::claimed_by(made.as_bytes()).is_ok());
    }

    #[test]
    fn an_error_class_always_fits(name in vec(any::<u8>(), 0..600)) {
        let stored = error_class(&name);
        prop_assert!(stored.chars().count() <= 255 && !stored.contains('\0'));
    }

    #[test]
    fn a_server_may_report_any_variables(list in vec(("\\PC{0,20}", "\\PC{0,40}"), 0..6), version in "\\PC{0,30}", query in 0_u64..10_000_000) {
        let mut list = list;
        list.push(("version".to_owned(), version));
        let server = ServerCapabilities::from_variables(&list);
        let limits = server.limits(std::time::Duration::from_millis(query));
        prop_assert!(limits.statement < limits.client && limits.lock_wait_s >= 1);
    }
}
