//! How long a requeued run waits before its next attempt.

/// The first wait, in milliseconds.
pub const REQUEUE_BACKOFF_MS: u64 = 30_000;
/// The longest wait before jitter, in milliseconds.
pub const REQUEUE_BACKOFF_CAP_MS: u64 = 600_000;

/// `min(base * 2^requeues, cap)`, exact for every number of requeues: the wait in milliseconds
/// before attempt `requeues + 1` of a run that was requeued `requeues` times before.
#[must_use]
pub fn backoff_ms(requeues: u32, base_ms: u64, cap_ms: u64) -> u64 {
    if base_ms == 0 {
        return 0;
    }
    if requeues > base_ms.leading_zeros() {
        return cap_ms;
    }
    (base_ms << requeues).min(cap_ms)
}

/// The longest waiting time of a failure that is honoured, in seconds (rule 36).
pub const MAX_RETRY_AFTER_SECONDS: u64 = 3_600;

/// How a run's wait is computed: base, cap and jitter, as the options of the runtime give them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Backoff {
    /// The first wait, in milliseconds.
    pub base_ms: u64,
    /// The longest wait before jitter, in milliseconds.
    pub cap_ms: u64,
    /// How much of the wait is added at most, 0.0 to 1.0.
    pub jitter: f64,
}

impl Default for Backoff {
    fn default() -> Self {
        Self { base_ms: REQUEUE_BACKOFF_MS, cap_ms: REQUEUE_BACKOFF_CAP_MS, jitter: 0.0 }
    }
}

impl Backoff {
    /// The wait in milliseconds of a run whose row shows `requeue_count` after its requeue (so the
    /// backoff is that of `requeue_count - 1`): `backoff * (1 + jitter * u)`, rounded down, with `u
    /// = CRC32("uuid:requeue_count") / 2^32`.
    ///
    /// The jitter is a function of the row, so that SQL computes the same wait and nothing has to
    /// be stored.
    #[must_use]
    #[allow(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "waits are far below 2^53 and never negative"
    )]
    pub fn delay_ms(&self, uuid: &[u8], requeue_count: u32) -> u64 {
        let backoff = backoff_ms(requeue_count.saturating_sub(1), self.base_ms, self.cap_ms);
        if self.jitter == 0.0 {
            return backoff;
        }
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(uuid);
        hasher.update(format!(":{requeue_count}").as_bytes());
        let u = f64::from(hasher.finalize()) / 4_294_967_296.0;
        (backoff as f64 * (1.0 + self.jitter * u)).floor() as u64
    }
}

/// The wait in milliseconds after a failure that requests a waiting time: the larger of that, at
/// most an hour, and the backoff, which has its own cap.
#[must_use]
pub fn delay_after_failure_ms(backoff_ms: u64, retry_after_seconds: Option<u64>) -> u64 {
    let retry_after = retry_after_seconds.unwrap_or(0).min(MAX_RETRY_AFTER_SECONDS);
    backoff_ms.max(retry_after * 1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_up_to_the_cap_and_stays_there_for_any_count() {
        let expected = [30_000, 60_000, 120_000, 240_000, 480_000, 600_000, 600_000];
        for (requeues, expected) in (0..).zip(expected) {
            assert_eq!(backoff_ms(requeues, 30_000, 600_000), expected);
        }
        for requeues in [31, 32, 48, 49, 50, 63, 64, 65, 2_000, u32::MAX] {
            assert_eq!(backoff_ms(requeues, 30_000, 600_000), 600_000, "{requeues}");
        }
        assert_eq!(backoff_ms(5, 0, 600_000), 0);
        assert_eq!(backoff_ms(0, u64::MAX, 7), 7);
        assert_eq!(backoff_ms(64, 1, u64::MAX), u64::MAX);
        assert_eq!(backoff_ms(63, 1, u64::MAX), 1 << 63);
    }

    #[test]
    fn jitter_only_adds_and_at_most_its_share() {
        let backoff = Backoff { jitter: 0.2, ..Backoff::default() };
        for count in 1..50 {
            let plain = backoff_ms(count - 1, 30_000, 600_000);
            let delay = backoff.delay_ms(b"0e12362e-cbf0-4052-a2e9-f3c849a50bc4", count);
            assert!(delay >= plain && delay <= plain + plain / 5, "{count}: {delay}");
        }
    }

    #[test]
    fn a_failure_waits_as_long_as_it_requests() {
        let table = [
            (30_000, None, 30_000),
            (30_000, Some(0), 30_000),
            (30_000, Some(29), 30_000),
            (30_000, Some(31), 31_000),
            (600_000, Some(90), 600_000),
            (30_000, Some(3_600), 3_600_000),
            (30_000, Some(3_601), 3_600_000),
            (30_000, Some(u64::MAX), 3_600_000),
            (7_200_000, Some(u64::MAX), 7_200_000),
        ];
        for (backoff, retry_after, expected) in table {
            assert_eq!(delay_after_failure_ms(backoff, retry_after), expected, "{retry_after:?}");
        }
    }

    #[test]
    fn jitter_is_computed_from_the_crc_of_uuid_and_count() {
        let table = [
            ("0e12362e-cbf0-4052-a2e9-f3c849a50bc4", 1, 0.2, 33_943),
            ("0e12362e-cbf0-4052-a2e9-f3c849a50bc4", 2, 0.2, 62_310),
            ("0e12362e-cbf0-4052-a2e9-f3c849a50bc4", 7, 1.0, 752_641),
            ("ffffffff-ffff-4fff-bfff-ffffffffffff", 1, 0.5, 33_770),
        ];
        for (uuid, count, jitter, expected) in table {
            let backoff = Backoff { jitter, ..Backoff::default() };
            assert_eq!(backoff.delay_ms(uuid.as_bytes(), count), expected, "{uuid}:{count}");
        }
    }

    #[test]
    fn without_jitter_the_uuid_does_not_matter() {
        let backoff = Backoff::default();
        assert_eq!(backoff.delay_ms(b"a", 1), 30_000);
        assert_eq!(backoff.delay_ms(b"b", 0), 30_000);
    }
}
