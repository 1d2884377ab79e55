//! Wake-up templates and messages.

use nrllm_runtime::config::options::TableName;
use nrllm_runtime::config::requests::{ReapRequest, SweepRequest, WakeUp};
use nrllm_runtime::domain::failure::{Classification, Failure, FailureClass};
use nrllm_runtime::domain::holder::Holder;
use nrllm_runtime::domain::validate;
use nrllm_runtime::error::Result;
use nrllm_runtime::ops::recover_failure::{self, Recovery};
use nrllm_runtime::ops::stranded_runs::{self, Stranded};

use crate::support::database::{Database, MESSAGES};
use crate::support::harness::{Harness, OWNER, request};
use crate::support::proxy::When;

pub fn swept_uids(swept: &[Stranded]) -> Vec<i64> {
    swept.iter().map(|run| i64::try_from(run.uid).unwrap()).collect()
}

/// A uuid of version 4 from a counter (SplitMix64): the same in every run of the test, and spread
/// as random ones are.
pub fn uuid(number: u64) -> String {
    let mix = |seed: u64| {
        let mut z = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    };
    let (high, low) = (mix(2 * number + 1), mix(2 * number + 2));
    format!(
        "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
        high >> 32,
        (high >> 16) & 0xFFFF,
        high & 0xFFF,
        0x8000 | ((low >> 48) & 0x3FFF),
        low & 0xFFFF_FFFF_FFFF
    )
}

pub const PLACEHOLDER: &str = "00000000-0000-4000-8000-000000000000";

/// A message like the transport's serializer's, with characters that are easily damaged:
/// backslashes, quotes, NUL as `\0`, more than ASCII.
pub const BODY: &str = "O:36:\\\"Symfony\\\\Component\\\\Messenger\\\\Envelope\\\":2:{s:44:\\\"\\0Symfony\\\\Component\\\\Messenger\\\\Envelope\\0stamps\\\";a:0:{}\
    s:7:\\\"runUuid\\\";s:36:\\\"00000000-0000-4000-8000-000000000000\\\";s:9:\\\"gr\u{fc}\u{df}e\u{1f600}\\\";s:9:\\\"%?:'--\\'#`\\\";}}";

pub const HEADERS: &str =
    "{\"type\":\"A\\\\B\",\"X-Run\":\"00000000-0000-4000-8000-000000000000\"}";

pub fn table(name: &str) -> TableName {
    TableName::parse("table", name).unwrap()
}

pub fn template() -> WakeUp {
    WakeUp {
        table: table(MESSAGES),
        queue: "default".to_owned(),
        body: BODY.to_owned(),
        headers: HEADERS.to_owned(),
        placeholder: PLACEHOLDER.to_owned(),
    }
}

pub fn reap_with_wake_up(limit: u64) -> ReapRequest {
    ReapRequest { wake_up: Some(template()), ..request(limit) }
}

pub fn recover_with_wake_up(
    harness: &mut Harness,
    uid: i64,
    wake_up: Option<&WakeUp>,
) -> Result<Recovery> {
    let holder = Holder { run_uid: validate::run_uid(uid)?, owner: OWNER };
    let failure = Failure {
        classification: Classification::of(FailureClass::Connection),
        error_class: "E".to_owned(),
    };
    harness.run(async |session, context| {
        recover_failure::recover_failure(session, context, holder, &failure, wake_up).await
    })
}

pub fn sweep(
    harness: &mut Harness,
    older_than_seconds: i64,
    limit: u64,
    wake_up: Option<WakeUp>,
) -> Result<Vec<Stranded>> {
    let request = SweepRequest { older_than_seconds, limit, now: None, wake_up };
    harness.run(async |session, context| {
        stranded_runs::stranded_runs(session, context, &request).await
    })
}

/// A message as the test reads it: its run, and when it was made and becomes available, in unix
/// seconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    pub uuid: String,
    pub created: i64,
    pub available: i64,
}

/// The messages, oldest first; everything about them that does not differ from run to run is
/// compared here.
pub fn messages(database: &mut Database) -> Vec<Message> {
    let epoch = "TIMESTAMP'1970-01-01 00:00:00'";
    let sql = format!(
        "SELECT m.*, TIMESTAMPDIFF(SECOND, {epoch}, created_at) AS created, TIMESTAMPDIFF(SECOND, {epoch}, available_at) AS available \
         FROM {MESSAGES} AS m ORDER BY id"
    );
    let rows = database.client().maps(&sql);
    rows.into_iter()
        .map(|row| {
            let text = |column: &str| String::from_utf8(row[column].clone().unwrap()).unwrap();
            let body = text("body");
            let start = BODY.find(PLACEHOLDER).unwrap();
            let uuid = body[start..start + 36].to_owned();
            assert_eq!(
                body,
                BODY.replace(PLACEHOLDER, &uuid),
                "nothing but the placeholder was replaced"
            );
            assert_eq!(text("headers"), HEADERS.replace(PLACEHOLDER, &uuid));
            assert_eq!((text("queue_name").as_str(), &row["delivered_at"]), ("default", &None));
            Message {
                uuid,
                created: text("created").parse().unwrap(),
                available: text("available").parse().unwrap(),
            }
        })
        .collect()
}

/// Not every statement with the word: the session is READ COMMITTED.
pub fn commit() -> When {
    When::command(|command| command.sql == "COMMIT")
}
