//! One heartbeat: its connection, its time limit, when it is given up, and its outcome.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use super::schedule::{LEAST_TIME, Next, least_time, time_for};
use super::status::EndReason;
use super::thread::{HeartbeatThread, LONGEST_SLEEP, ManagedLease};
use crate::config::connection::ConnectionSettings;
use crate::config::options::Timeouts;
use crate::domain::holder::Holder;
use crate::error::Result;
use crate::ops::heartbeat::{End, HeartbeatResult, send_heartbeat};
use crate::process::clock;
use crate::process::sessions::{DrivenSession, Panicked};

/// How long a heartbeat waits for a call that is using the session, before it opens a connection of
/// its own. A call takes milliseconds, unless a lock or the server makes it wait.
const SESSION_WAIT: Duration = Duration::from_millis(20);

/// The outcome of a heartbeat.
enum Outcome {
    /// The lease was renewed by the heartbeat that was sent at this moment.
    Renewed(u64),
    /// The row shows why the owner does not hold the run.
    Refused(EndReason),
    /// Nothing is known about the ownership.
    Failed(String),
    /// Nothing was sent, or the result is of no use: the lease has ended, or the thread is to end.
    Abandoned,
}

/// Sessions that the thread opened itself, while calls were using those of the leases. One per
/// connection; each is closed as soon as a heartbeat has the lease's session again.
#[derive(Default)]
pub(super) struct OwnSessions(Vec<(Arc<ConnectionSettings>, DrivenSession)>);

impl OwnSessions {
    fn get(
        &mut self,
        connection: &Arc<ConnectionSettings>,
        timeouts: Timeouts,
    ) -> Result<&mut DrivenSession> {
        let position = match self.0.iter().position(|(known, _)| known == connection) {
            Some(position) => position,
            None => {
                let session = DrivenSession::new(connection, timeouts)?;
                self.0.push((Arc::clone(connection), session));
                self.0.len() - 1
            }
        };
        self.0
            .get_mut(position)
            .map(|(_, session)| session)
            .ok_or_else(|| crate::error::Error::connection("the connection was closed"))
    }

    fn close(&mut self, connection: &Arc<ConnectionSettings>) {
        self.0.retain_mut(|(known, session)| {
            let closes = known == connection;
            if closes {
                session.close();
            }
            !closes
        });
    }

    /// Closes all of them, in bounded time.
    pub(super) fn close_all(mut self) {
        for (_, session) in &mut self.0 {
            session.close();
        }
    }
}

/// Sends the heartbeat of `leases[index]` and applies its outcome. `random` spreads retries.
pub(super) fn send(
    thread: &HeartbeatThread,
    leases: &mut [ManagedLease],
    index: usize,
    own: &mut OwnSessions,
    random: u64,
) {
    let Some(lease) = leases.get(index) else {
        return;
    };
    let session = Arc::clone(&lease.session);
    let outcome = match session.acquire(SESSION_WAIT.min(lease.limit() / 4)) {
        Some(mut in_use) => {
            own.close(&lease.key.connection);
            in_use.driven().map(|driven| send_on(driven, thread, leases, index))
        }
        None => own
            .get(&lease.key.connection, lease.key.timeouts)
            .map(|driven| send_on(driven, thread, leases, index)),
    };
    let now = clock::now();
    let Some(lease) = leases.get_mut(index) else {
        return;
    };
    match outcome.unwrap_or_else(|error| Outcome::Failed(error.message)) {
        Outcome::Renewed(sent) => {
            lease.shared.renewed(now, sent, lease.keep.lease());
            lease.schedule.succeeded(sent);
        }
        Outcome::Refused(reason) => lease.shared.refused(reason),
        Outcome::Failed(message) => {
            lease.shared.failed(now, message);
            lease.schedule.failed(now, random);
        }
        Outcome::Abandoned => {}
    }
}

/// Sends a heartbeat on one session. Meanwhile all leases are watched, those in the inbox too. The
/// heartbeat is given up, and its connection with it, when its result is of no use any more or
/// another lease must be renewed at once.
fn send_on(
    driven: &mut DrivenSession,
    thread: &HeartbeatThread,
    leases: &[ManagedLease],
    index: usize,
) -> Outcome {
    let Some(lease) = leases.get(index) else {
        return Outcome::Abandoned;
    };
    let now = clock::now();
    let others = || {
        leases
            .iter()
            .enumerate()
            .filter(|(other, _)| *other != index)
            .filter_map(|(_, other)| other.start_by(now))
    };
    let limit = |limit: Duration| Duration::from_nanos(time_for(nanoseconds(limit), now, others()));
    let timeouts = Timeouts { connect: limit(lease.connect_limit()), query: limit(lease.limit()) };
    // The least time that the heartbeat gets, however urgent another lease is, and a margin for the
    // server, which times out before that.
    let connecting =
        if driven.session.is_open() { 0 } else { least_time(nanoseconds(lease.connect_limit())) };
    let spared_until = now
        .saturating_add(least_time(nanoseconds(lease.limit())))
        .saturating_add(connecting)
        .saturating_add(LEAST_TIME);

    driven.session.watch(true);
    let mut sent = 0;
    let sending = || {
        sent = clock::now();
        lease.shared.heartbeat_starts(sent)
    };
    let endpoint = &lease.key.connection.endpoint;
    let ran = driven.run(async |session| {
        let work = async {
            session.retime(timeouts).await?;
            let holder = Holder { run_uid: lease.shared.uid, owner: &lease.shared.owner };
            let seconds = lease.keep.lease_seconds;
            send_heartbeat(session, &lease.options, holder, seconds, End::NeverEarlier, sending)
                .await
        };
        unless(until_given_up(thread, leases, index, spared_until), work).await
    });
    lease.shared.heartbeat_ends();
    match ran {
        Ok(Ok(Ok(HeartbeatResult::Renewed))) => Outcome::Renewed(sent),
        Ok(Ok(Ok(HeartbeatResult::NotOwner(state)))) => match EndReason::of(state) {
            Some(reason) => Outcome::Refused(reason),
            None => {
                Outcome::Failed(format!("run {} changed its owner meanwhile", lease.shared.uid))
            }
        },
        Ok(Ok(Ok(HeartbeatResult::Withheld))) => Outcome::Abandoned,
        Ok(Ok(Err(error))) => Outcome::Failed(error.message),
        Err(Panicked) => Outcome::Failed(format!(
            "the reply of {endpoint} could not be read; the connection was closed"
        )),
        // Its reply would be read as that of the next statement.
        Ok(Err(GivenUp::NoLeaseLeft)) => {
            driven.session.discard();
            Outcome::Abandoned
        }
        Ok(Err(GivenUp::AnotherIsUrgent)) => {
            driven.session.discard();
            Outcome::Failed(format!(
                "no reply from {endpoint} before another lease had to be renewed; the connection was closed"
            ))
        }
    }
}

impl ManagedLease {
    /// The time limit of a heartbeat: the smaller of that of a statement and the interval.
    fn limit(&self) -> Duration {
        self.options.timeouts.query.min(Duration::from_nanos(self.keep.every))
    }

    /// The time limit of connecting for a heartbeat.
    fn connect_limit(&self) -> Duration {
        self.options.timeouts.connect.min(Duration::from_nanos(self.keep.every))
    }

    /// When a heartbeat has to begin so that it can take its time before the deadline; not before
    /// it is due, and never for a lease that is not renewed any more.
    fn start_by(&self, now: u64) -> Option<u64> {
        if self.shared.is_final(now) || matches!(self.next(now), Next::Pause(_)) {
            return None;
        }
        let latest = self.shared.deadline().saturating_sub(nanoseconds(self.limit()));
        Some(latest.max(self.schedule.due()))
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Why a heartbeat in flight is given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum GivenUp {
    /// The thread is to end, or no lease is left.
    NoLeaseLeft,
    /// Another lease must be renewed now, which could not be known when this heartbeat began.
    AnotherIsUrgent,
}

/// Returns the outcome of the work, or that of `end` where it ends first.
async fn unless<E, T>(end: impl Future<Output = E>, work: impl Future<Output = T>) -> Result<T, E> {
    let (mut end, mut work) = (pin!(end), pin!(work));
    poll_fn(|context| match work.as_mut().poll(context) {
        Poll::Ready(outcome) => Poll::Ready(Ok(outcome)),
        Poll::Pending => end.as_mut().poll(context).map(Err),
    })
    .await
}

/// Watches the leases while the heartbeat of `leases[index]` is in flight, so that a loss is
/// noticed at its moment; ends when the heartbeat has to be given up.
async fn until_given_up(
    thread: &HeartbeatThread,
    leases: &[ManagedLease],
    index: usize,
    spared_until: u64,
) -> GivenUp {
    loop {
        let now = clock::now();
        let meanwhile = if thread.control.is_stopped() {
            Err(GivenUp::NoLeaseLeft)
        } else {
            thread.look_at_new(|new| meanwhile(leases.iter().chain(new), index, spared_until, now))
        };
        match meanwhile {
            Ok(time) => thread.sleep_until(time).await,
            Err(why) => return why,
        }
    }
}

/// The moment until which the heartbeat of lease number `index` goes on; it is not given up for
/// another lease before `spared_until`.
fn meanwhile<'a>(
    leases: impl Iterator<Item = &'a ManagedLease>,
    index: usize,
    spared_until: u64,
    now: u64,
) -> Result<u64, GivenUp> {
    let mut deadline = None;
    let mut turn = u64::MAX;
    for (number, lease) in leases.enumerate().filter(|(_, lease)| !lease.shared.is_final(now)) {
        deadline = deadline.into_iter().chain([lease.shared.deadline()]).min();
        if number != index
            && let Some(start_by) = lease.start_by(now)
        {
            turn = turn.min(start_by.max(spared_until));
        }
    }
    match deadline {
        None => Err(GivenUp::NoLeaseLeft),
        Some(_) if turn <= now => Err(GivenUp::AnotherIsUrgent),
        Some(deadline) => Ok(deadline.min(turn).min(now.saturating_add(LONGEST_SLEEP))),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::options::KeepOptions;
    use super::super::schedule::Schedule;
    use super::super::shared::{LeaseAtomics, SharedLease};
    use super::*;
    use crate::config::connection::Defaults;
    use crate::config::options::Options;
    use crate::config::value::{Input, Key as Name};
    use crate::process::clock::{MILLISECOND, SECOND};
    use crate::process::sessions::{self, Key};

    /// A lease that was kept at `kept`, with a heartbeat every third of it.
    pub(in super::super) fn lease(kept: u64, lease_seconds: i64) -> ManagedLease {
        let keep = KeepOptions::parse(lease_seconds, &[]).unwrap();
        let driver = (Name::Str(b"driver".to_vec()), Input::Bytes(b"mysqli".to_vec()));
        let settings =
            ConnectionSettings::parse(&Input::Map(vec![driver]), &Defaults::default()).unwrap();
        let key = Key { connection: Arc::new(settings), timeouts: Timeouts::default() };
        let state = LeaseAtomics::new(kept, keep.lease(), kept, false);
        ManagedLease {
            shared: Arc::new(SharedLease::new(7, "worker:a", state, None, Arc::default())),
            schedule: Schedule::new(&keep, kept),
            keep,
            session: sessions::shared(&key),
            key,
            options: Options::default(),
        }
    }

    #[test]
    fn a_heartbeat_in_flight_is_given_up_for_an_urgent_lease() {
        let kept = 5 * SECOND;
        // Due after a second; to begin after two, since the deadline is after three and a heartbeat
        // may take one.
        let leases = [lease(kept, 900), lease(kept, 3)];
        let at = |ms: u64, spared_ms: u64| {
            meanwhile(leases.iter(), 0, kept + spared_ms * MILLISECOND, kept + ms * MILLISECOND)
        };
        assert_eq!(at(1_500, 0), Ok(kept + 2 * SECOND));
        assert_eq!(at(1_999, 0), Ok(kept + 2 * SECOND));
        assert_eq!(at(2_000, 0), Err(GivenUp::AnotherIsUrgent));
        assert_eq!(at(2_000, 2_400), Ok(kept + 2_400 * MILLISECOND), "its least time");
        assert_eq!(at(2_400, 2_400), Err(GivenUp::AnotherIsUrgent));
        assert_eq!(at(3_000, 0), Ok(kept + 4 * SECOND), "not for one that is lost");
        let own = meanwhile(leases.iter(), 1, 0, kept + 2_000 * MILLISECOND);
        assert_eq!(own, Ok(kept + 3 * SECOND), "not for its own; the deadline is noticed");
    }

    #[test]
    fn a_heartbeat_in_flight_is_given_up_when_no_lease_is_left() {
        let leases = [lease(0, 3), lease(0, 900)];
        leases.iter().for_each(|lease| lease.shared.disarm_and_release());
        assert_eq!(meanwhile(leases.iter(), 0, 0, SECOND), Err(GivenUp::NoLeaseLeft));
        let other = lease(0, 900);
        assert_eq!(meanwhile(leases.iter().chain([&other]), 0, 0, SECOND), Ok(2 * SECOND));
    }

    #[test]
    fn leases_are_watched_in_short_intervals() {
        let now = 5 * SECOND;
        let leases = [lease(now, 3_000), lease(now, 900)];
        let time = meanwhile(leases.iter(), 0, now, now).unwrap();
        assert!(time > now && time <= now + SECOND, "{time}");
    }
}
