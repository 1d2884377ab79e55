//! When a queued run is due: its last time on the queue plus the backoff of its requeues, computed by the server as Rust does.

use super::context::Context;

/// The unix time, in seconds with a fraction, from which a queued run may be executed, as SQL over its row: `since` plus the
/// backoff of `requeue_count - 1` with jitter. A run that was never requeued is due at once.
pub(super) fn due_sql(context: &Context<'_>, since: &str) -> String {
    let backoff = context.options.backoff;
    // Beyond 2^40 any base of a millisecond or more is over every cap.
    let plain = format!("LEAST({cap}, {base} * POW(2, LEAST(requeue_count - 1, 40)))", cap = backoff.cap_ms, base = backoff.base_ms);
    let delay = if backoff.jitter == 0.0 {
        plain
    } else {
        // The same expression as in Backoff::delay_ms().
        format!("FLOOR({plain} * (1 + {:?} * (CRC32(CONCAT(uuid, ':', requeue_count)) / 4294967296e0)))", backoff.jitter)
    };
    format!("({since} + IF(requeue_count = 0, 0, {delay} / 1000))")
}
