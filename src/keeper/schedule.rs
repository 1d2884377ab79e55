//! When the next heartbeat of a lease is due: pure, in nanoseconds of the lease's clock.

use super::options::KeepOptions;
use crate::process::clock::MILLISECOND;

/// The first wait after a heartbeat that failed.
const BACKOFF: u64 = 50 * MILLISECOND;
/// The least time that a heartbeat gets, however urgent the other leases are: this, and an eighth
/// of its own limit.
pub(super) const LEAST_TIME: u64 = 100 * MILLISECOND;

/// A limit that pauses the renewal (rule 18).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Limit {
    /// Stalled: no step for so long. A step resumes the renewal.
    Stalled,
    /// Kept for so long altogether. Nothing resumes the renewal.
    Total,
}

/// What is to be done now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// Send a heartbeat.
    Heartbeat,
    /// Nothing before this moment.
    Wait(u64),
    /// Send no heartbeat: a limit is reached.
    Pause(Limit),
}

/// The schedule of one lease.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Schedule {
    every: u64,
    max_silent: u64,
    /// When the total limit is reached.
    ends: u64,
    /// A moment on the grid of this lease's heartbeats.
    anchor: u64,
    due: u64,
    failures: u32,
}

impl Schedule {
    /// The schedule of a lease that was first renewed at `kept`.
    pub(super) fn new(options: &KeepOptions, kept: u64) -> Self {
        let every = options.every.max(1);
        Self {
            every,
            max_silent: options.max_silent,
            ends: kept.saturating_add(options.max_total),
            anchor: kept,
            due: kept.saturating_add(every),
            failures: 0,
        }
    }

    /// Makes it the schedule of the thread's lease number `number`, from 0.
    ///
    /// Leases that are kept at once are renewed apart: each has a grid of its own, shifted by the
    /// golden section, which spreads any number of leases evenly over the interval. The first one
    /// is renewed exactly one interval after it was kept.
    pub(super) fn numbered(mut self, number: u64) -> Self {
        const GOLDEN: u64 = 618_033_989;
        const WHOLE: u64 = 1_000_000_000;
        let kept = self.anchor;
        let part = number.wrapping_mul(GOLDEN) % WHOLE;
        self.anchor = kept.saturating_add(
            u64::try_from(u128::from(self.every) * u128::from(part) / u128::from(WHOLE))
                .unwrap_or(0),
        );
        self.due = self.slot_after(kept);
        self
    }

    /// The last slot of the grid that is not later than one interval after `sent`.
    fn slot_after(&self, sent: u64) -> u64 {
        let latest = sent.saturating_add(self.every);
        // The anchor is less than an interval after the first renewal, so no later than `latest`.
        latest - latest.saturating_sub(self.anchor) % self.every
    }

    /// What is to be done at `now`, the last step having been at `last_step`.
    pub(super) fn next(&self, now: u64, last_step: u64) -> Next {
        let silent_at = last_step.saturating_add(self.max_silent);
        if now >= self.ends {
            Next::Pause(Limit::Total)
        } else if now >= silent_at {
            Next::Pause(Limit::Stalled)
        } else if now >= self.due {
            Next::Heartbeat
        } else {
            Next::Wait(self.due.min(silent_at).min(self.ends))
        }
    }

    /// When the next heartbeat is due.
    pub(super) const fn due(&self) -> u64 {
        self.due
    }

    /// A heartbeat that was sent at `sent` succeeded.
    pub(super) fn succeeded(&mut self, sent: u64) {
        self.failures = 0;
        self.due = self.slot_after(sent);
    }

    /// A heartbeat failed: it is repeated soon, then after ever longer waits up to the interval.
    /// Each wait is shortened by up to a half, so that processes that lost the same server do not
    /// return at one moment.
    pub(super) fn failed(&mut self, now: u64, random: u64) {
        let wait =
            BACKOFF.checked_shl(self.failures.min(32)).unwrap_or(u64::MAX).min(self.every).max(2);
        self.failures = self.failures.saturating_add(1);
        self.due = now.saturating_add(wait - random % (wait / 2));
    }
}

/// How long a heartbeat may take, `limit` being its own limit: less where another lease has to be
/// renewed before that, so that one locked row costs no other lease its time. `others` are the
/// moments at which their heartbeats must begin.
///
/// The limit is halved instead of set exactly: each change of the limit is a statement to the
/// server.
pub(super) fn time_for(limit: u64, now: u64, others: impl Iterator<Item = u64>) -> u64 {
    let free = others.map(|start_by| start_by.saturating_sub(now)).min().unwrap_or(u64::MAX);
    let mut time = limit;
    while time > free && time / 2 >= LEAST_TIME.max(limit / 8) {
        time /= 2;
    }
    time
}

/// The least that [`time_for`] leaves of a limit, however urgent the others are.
pub(super) fn least_time(limit: u64) -> u64 {
    time_for(limit, 0, std::iter::once(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::clock::SECOND;

    fn options() -> KeepOptions {
        KeepOptions {
            lease_seconds: 3,
            every: SECOND,
            max_silent: 10 * SECOND,
            max_total: 60 * SECOND,
            interrupt_on_loss: false,
        }
    }

    #[test]
    fn one_lease_is_renewed_at_every_interval() {
        let kept = 1_234_567_890;
        let mut schedule = Schedule::new(&options(), kept).numbered(0);
        for number in 1..=5 {
            let due = kept + number * SECOND;
            assert_eq!(schedule.next(due - 1, kept), Next::Wait(due));
            assert_eq!(schedule.next(due, kept), Next::Heartbeat);
            // Sent a little late: the next one is not.
            schedule.succeeded(due + 3 * MILLISECOND);
        }
    }

    #[test]
    fn many_leases_are_spread_over_the_interval_and_stay_so() {
        let kept = 5 * SECOND;
        let mut schedules: Vec<Schedule> =
            (0..20).map(|number| Schedule::new(&options(), kept).numbered(number)).collect();
        for round in 0..3 {
            let mut slots = [0; 10];
            for schedule in &schedules {
                assert!(schedule.due() > kept && schedule.due() <= kept + (round + 1) * SECOND);
                slots[usize::try_from(schedule.due() % SECOND / (SECOND / 10)).unwrap()] += 1;
            }
            assert!(slots.iter().all(|&count| (1..=3).contains(&count)), "{slots:?}");
            // All at once, as after an outage.
            schedules
                .iter_mut()
                .for_each(|schedule| schedule.succeeded(kept + (round + 1) * SECOND));
        }
    }

    #[test]
    fn never_more_than_an_interval_between_heartbeats() {
        for number in 0..50 {
            let mut schedule = Schedule::new(&options(), 777).numbered(number);
            let mut sent = 777;
            for late in [0, 1, 300 * MILLISECOND, 999 * MILLISECOND, 5 * SECOND, 0] {
                assert!(
                    schedule.due() > sent && schedule.due() <= sent + SECOND,
                    "{schedule:?} {sent}"
                );
                sent = schedule.due() + late;
                schedule.succeeded(sent);
            }
        }
    }

    #[test]
    fn a_limit_pauses_the_renewal_at_its_moment() {
        let schedule = Schedule::new(&options(), 0);
        let silent = 10 * SECOND;
        assert_eq!(schedule.next(silent - 1, 0), Next::Heartbeat);
        assert_eq!(schedule.next(silent, 0), Next::Pause(Limit::Stalled));
        assert_eq!(schedule.next(silent, 1), Next::Heartbeat, "a step resumes the renewal");
        assert_eq!(
            schedule.next(60 * SECOND, 60 * SECOND),
            Next::Pause(Limit::Total),
            "but not past the total limit"
        );
        let slow = KeepOptions { every: 20 * SECOND, ..options() };
        let schedule = Schedule::new(&slow, 0);
        assert_eq!(
            schedule.next(0, 0),
            Next::Wait(silent),
            "the limit is noticed when it is reached"
        );
        assert_eq!(schedule.next(0, 55 * SECOND), Next::Wait(20 * SECOND));
    }

    #[test]
    fn failures_are_retried_at_once_and_then_more_seldom() {
        for random in [0, 1, u64::MAX, 0x5555_5555_5555_5555] {
            let mut schedule = Schedule::new(&options(), 0);
            let mut longest = 50;
            for _ in 0..100 {
                schedule.failed(7 * SECOND, random);
                let wait = schedule.due() - 7 * SECOND;
                assert!(
                    wait <= longest * MILLISECOND && wait > longest * MILLISECOND / 2 - 1,
                    "{wait} of {longest}"
                );
                longest = (longest * 2).min(1_000);
            }
            schedule.succeeded(7 * SECOND);
            schedule.failed(9 * SECOND, random);
            assert!(schedule.due() <= 9 * SECOND + 50 * MILLISECOND);
        }
    }

    #[test]
    fn a_heartbeat_takes_no_time_that_another_lease_needs() {
        let limit = 800 * MILLISECOND;
        let time = |others: &[u64]| time_for(limit, SECOND, others.iter().copied());
        assert_eq!(time(&[]), limit, "alone");
        assert_eq!(time(&[2 * SECOND, 9 * SECOND]), limit, "enough time");
        assert_eq!(time(&[2 * SECOND, SECOND + 500 * MILLISECOND]), 400 * MILLISECOND);
        assert_eq!(time(&[SECOND]), 100 * MILLISECOND, "never less than a tenth of a second");
        assert_eq!(time(&[0]), 100 * MILLISECOND);
        assert_eq!(
            time_for(8 * SECOND, SECOND, [0].into_iter()),
            SECOND,
            "nor than an eighth of its limit"
        );
        assert_eq!(
            time_for(20 * MILLISECOND, SECOND, [0].into_iter()),
            20 * MILLISECOND,
            "unless its own limit is"
        );
    }
}
