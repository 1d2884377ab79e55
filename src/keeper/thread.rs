//! The keeper: one thread a process that beats for all kept leases, whatever the process is doing (rules 16 to 20).
//!
//! It is started with the first kept lease and gone with the last, has a connection and a runtime of its own, and never calls
//! the host. The callers' thread owns the registry; the keeper's thread never locks it, so a caller may wait for that thread
//! while it holds the registry. What both share is a lease's `SharedLease` and the inbox here, and a forked child touches neither.

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::Notify;

use super::interrupt_signal::InterruptSignal;
use super::lease::{Lease, LeaseStatus, SharedLease, error};
use super::options::KeepOptions;
use super::schedule::{LEAST_TIME, Limit, Next, Schedule, least_time, time_for};
use crate::config::connection::ConnectionSettings;
use crate::config::options::{Options, Timeouts};
use crate::db::Session;
use crate::domain::holder::Holder;
use crate::error::{Error, Kind, Result};
use crate::ops::heartbeat::{Beat, End, beat};
use crate::process::clock::{self, SECOND};
use crate::process::fork::{self, PerProcess};
use crate::process::sessions::{self, GOODBYE, Key, new_runtime};
use crate::process::signals::spawn_masked;

/// How long the end of the thread is waited for. It needs that long only where the machine is overloaded: no reply of the server
/// is waited for.
const FAREWELL: Duration = Duration::from_millis(200);
/// How long a thread that was joined may stay visible to the system.
const VANISHING: Duration = Duration::from_millis(5);
/// The longest sleep. Timers do not count suspend, the deadlines do: after it the thread looks at the clock again.
const LONGEST_SLEEP: u64 = SECOND;

/// The kept leases of one process, and its thread.
#[derive(Default)]
struct Registry {
    /// Until the holder drops them.
    leases: Vec<Arc<SharedLease>>,
    thread: Option<Thread>,
}

struct Thread {
    shared: Arc<Shared>,
    handle: JoinHandle<()>,
}

/// What the callers and the thread share beside the leases.
#[derive(Default)]
struct Shared {
    inbox: Mutex<Inbox>,
    bell: Notify,
    stop: AtomicBool,
    /// The system's id of the thread, 0 before it runs.
    tid: AtomicI32,
    finished: Mutex<bool>,
    has_finished: Condvar,
}

#[derive(Default)]
struct Inbox {
    leases: Vec<ManagedLease>,
    /// The thread has taken its last look.
    closed: bool,
    /// How many leases were ever put in.
    count: u64,
}

/// A lease with what its beats need.
struct ManagedLease {
    cell: Arc<SharedLease>,
    plan: Schedule,
    keep: KeepOptions,
    connection: Arc<ConnectionSettings>,
    options: Options,
}

static CURRENT: PerProcess<Mutex<Registry>> = PerProcess::new();

fn registry() -> MutexGuard<'static, Registry> {
    let Ok(registry) = CURRENT.get_or_make(|_| Ok::<_, Infallible>(Mutex::default()));
    lock(registry)
}

fn existing() -> Option<MutexGuard<'static, Registry>> {
    CURRENT.get().map(lock)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing that can panic leaves these values half written.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Renews a lease on the calling thread's session, and keeps it from then on for the request of the
/// calling thread. `on_loss` is raised once when the lease is lost or cancelled, on any thread.
///
/// # Errors
///
/// A lost lease or a cancelled run when the owner does not hold it; a connection or query error.
pub fn keep(
    key: &Key,
    options: &Options,
    uid: u64,
    owner: &str,
    keep: KeepOptions,
    on_loss: Option<Arc<InterruptSignal>>,
) -> Result<Lease> {
    let generation = fork::watch()?;
    let mut sent = 0;
    let first = sessions::call(key, async |session: &mut Session| {
        let sending = || {
            sent = clock::now();
            true
        };
        let holder = Holder { run_uid: uid, owner };
        beat(session, options, holder, keep.lease_seconds, End::Exact, sending).await
    })?;
    if let Beat::NotOwner(state) = first {
        return Err(error(LeaseStatus::of(state), uid, owner, None));
    }
    let cell = Arc::new(SharedLease::new(
        uid,
        owner,
        generation,
        sent,
        keep.lease(),
        clock::now(),
        on_loss,
    ));
    let lease = Lease::new(Arc::clone(&cell));
    let plan = Schedule::new(&keep, sent);
    let kept = ManagedLease {
        cell: Arc::clone(&cell),
        plan,
        keep,
        connection: Arc::clone(&key.connection),
        options: options.clone(),
    };

    let mut registry = registry();
    registry.leases.push(cell);
    if let Err(error) = registry.hand_over(kept) {
        // The lease's own end needs the registry.
        drop(registry);
        return Err(error);
    }
    Ok(lease)
}

impl Registry {
    /// Gives a lease to the thread, and starts one if there is none.
    fn hand_over(&mut self, kept: ManagedLease) -> Result<()> {
        let kept = match &self.thread {
            Some(thread) => match thread.shared.put(kept) {
                Some(kept) => kept,
                None => return Ok(()),
            },
            None => kept,
        };
        // The one that there was, if any, has taken its last look.
        self.end_thread();
        let runtime = new_runtime()?;
        let shared = Arc::new(Shared::default());
        shared.put(kept);
        let handle = spawn_masked("nrllm-keeper", {
            let shared = Arc::clone(&shared);
            move || {
                let finish = Finish(shared);
                finish.0.tid.store(thread_id(), Ordering::Release);
                // A panic is a bug of ours: the leases run out, and every read says so.
                let _ = catch_unwind(AssertUnwindSafe(|| runtime.block_on(run(&finish.0))));
                let _ = catch_unwind(AssertUnwindSafe(move || drop(runtime)));
            }
        })
        .map_err(|error| {
            Error::resource(format!("cannot start the keeper's thread: {error}; check the limits of processes and memory"))
        })?;
        self.thread = Some(Thread { shared, handle });
        Ok(())
    }

    /// Ends the thread, in bounded time: one that does not end by then goes on alone, touches no lease any more, and ends itself.
    fn end_thread(&mut self) {
        let Some(thread) = self.thread.take() else {
            return;
        };
        thread.shared.stop.store(true, Ordering::Release);
        thread.shared.bell.notify_one();
        let finished = lock(&thread.shared.finished);
        let (finished, _) = thread
            .shared
            .has_finished
            .wait_timeout_while(finished, FAREWELL, |finished| !*finished)
            .unwrap_or_else(PoisonError::into_inner);
        if *finished {
            drop(finished);
            let tid = thread.shared.tid.load(Ordering::Acquire);
            let _ = thread.handle.join();
            wait_until_gone(tid);
        }
    }

    /// No lease left: no thread left. Else the thread is told that one has ended.
    fn settle(&mut self) {
        let now = clock::now();
        if self.leases.iter().all(|cell| cell.is_final(now)) {
            self.end_thread();
        } else {
            self.ring();
        }
    }

    fn ring(&self) {
        if let Some(thread) = &self.thread {
            thread.shared.bell.notify_one();
        }
    }
}

impl Shared {
    /// Puts a lease into the inbox, with a plan that knows its number; gives it back when the thread takes no more.
    fn put(&self, mut kept: ManagedLease) -> Option<ManagedLease> {
        let mut inbox = lock(&self.inbox);
        if inbox.closed {
            return Some(kept);
        }
        kept.plan = kept.plan.numbered(inbox.count);
        inbox.count += 1;
        inbox.leases.push(kept);
        drop(inbox);
        self.bell.notify_one();
        None
    }
}

/// Tells that the thread has come to its end, however that was.
struct Finish(Arc<Shared>);

impl Drop for Finish {
    fn drop(&mut self) {
        lock(&self.0.inbox).closed = true;
        *lock(&self.0.finished) = true;
        self.0.has_finished.notify_all();
    }
}

/// A lease was released.
pub(super) fn ended() {
    if let Some(mut registry) = existing() {
        registry.settle();
    }
}

/// The holder of a released lease dropped it.
pub(super) fn forget(cell: &Arc<SharedLease>) {
    if let Some(mut registry) = existing() {
        registry.leases.retain(|known| !Arc::ptr_eq(known, cell));
        registry.settle();
    }
}

/// A lease that rests made a step.
pub(super) fn wake() {
    if let Some(registry) = existing() {
        registry.ring();
    }
}

/// Releases every lease that the calling thread keeps, in bounded time and without waiting for the
/// server: at the end of a request. The leases of other threads go on; the heartbeat thread ends when
/// none is left. In a forked child that keeps none, nothing happens.
pub fn end_thread() {
    end(SharedLease::is_of_this_thread);
}

/// Releases every lease of this process, whichever thread keeps it, and ends the heartbeat thread: at
/// the end of the process. In a forked child that keeps none, nothing happens.
pub fn end_all() {
    end(|_| true);
}

fn end(ends: impl Fn(&SharedLease) -> bool) {
    if let Some(mut registry) = existing() {
        registry.leases.retain(|cell| {
            let ends = ends(cell);
            if ends {
                cell.disarm_and_release();
            }
            !ends
        });
        registry.settle();
    }
}

/// Returns a loss of the calling thread's leases that is to be thrown, after its `on_loss` was raised.
/// Each is returned once, and none after its lease was released.
pub fn take_loss() -> Option<Error> {
    take_loss_if(|_| true)
}

/// As [`take_loss`], for a loss of a kind that `may` be thrown now. The others stay due.
pub fn take_loss_if(may: impl Fn(Kind) -> bool) -> Option<Error> {
    let registry = existing()?;
    let now = clock::now();
    let mut own = registry
        .leases
        .iter()
        .filter(|cell| cell.is_of_this_thread() && cell.due_loss(now).is_some_and(&may));
    own.find_map(|cell| cell.take_loss(now))
}

/// The thread's work: beat the lease whose beat is due, wait for the next one, until there is no lease.
async fn run(shared: &Shared) {
    let mut kept: Vec<ManagedLease> = Vec::new();
    let mut links: Vec<Session> = Vec::new();
    let mut random = getrandom::u64().unwrap_or(1) | 1;
    while collect(shared, &mut kept, &mut links).await {
        match next(&mut kept, clock::now()) {
            Do::Beat(index) => {
                random = xorshift(random);
                beat_one(shared, &mut kept, index, &mut links, random).await;
            }
            Do::WaitUntil(time) => sleep_until(shared, time).await,
        }
    }
    for mut link in links {
        link.close(GOODBYE).await;
    }
}

/// Takes in new leases and lets go of those that ended, with the connections that no other lease needs. False: no lease is left.
async fn collect(shared: &Shared, kept: &mut Vec<ManagedLease>, links: &mut Vec<Session>) -> bool {
    let now = clock::now();
    let before = kept.len();
    kept.retain(|kept| !kept.cell.is_final(now));
    let fewer = kept.len() < before;
    {
        let mut inbox = lock(&shared.inbox);
        kept.append(&mut inbox.leases);
        if kept.is_empty() || shared.stop.load(Ordering::Acquire) {
            inbox.closed = true;
            return false;
        }
    }
    if fewer {
        let (needed, idle) = std::mem::take(links)
            .into_iter()
            .partition(|link| kept.iter().any(|kept| *kept.connection == *link.settings()));
        *links = needed;
        for mut link in idle as Vec<Session> {
            link.close(GOODBYE).await;
        }
    }
    true
}

/// What the thread does next.
enum Do {
    Beat(usize),
    WaitUntil(u64),
}

/// Of the leases whose beat is due, the one that has waited longest; else the moment at which something has to be done.
fn next(kept: &mut [ManagedLease], now: u64) -> Do {
    let mut longest: Option<(u64, usize)> = None;
    let mut wake = now.saturating_add(LONGEST_SLEEP);
    for (index, kept) in kept.iter().enumerate() {
        wake = wake.min(kept.cell.deadline());
        match kept.next(now) {
            Next::Beat if longest.is_none_or(|(due, _)| kept.plan.due() < due) => {
                longest = Some((kept.plan.due(), index))
            }
            Next::Beat | Next::Rest(_) => {}
            Next::Wait(time) => wake = wake.min(time),
        }
    }
    longest.map_or(Do::WaitUntil(wake), |(_, index)| Do::Beat(index))
}

impl ManagedLease {
    /// What is to be done for this lease. A limit is told to its holder.
    fn next(&self, now: u64) -> Next {
        loop {
            let last_step = self.cell.last_step();
            match self.plan.next(now, last_step) {
                Next::Rest(limit) if !self.cell.rest(last_step, || self.why_it_rests(limit)) => {}
                next => return next,
            }
        }
    }

    fn why_it_rests(&self, limit: Limit) -> String {
        match limit {
            Limit::Silent => format!(
                "no step() for {} s (maxSilentSeconds): the beats have ended and the lease runs out; a step() before that makes them go on",
                self.keep.max_silent / SECOND
            ),
            Limit::Total => {
                format!(
                    "kept for {} s (maxSeconds): the beats have ended for good and the lease runs out",
                    self.keep.max_total / SECOND
                )
            }
        }
    }

    /// The time limit of a beat: the smaller of that of a statement and the interval.
    fn limit(&self) -> u64 {
        nanoseconds(self.options.timeouts.query).min(self.keep.every)
    }

    /// The time limit of connecting for a beat.
    fn connect_limit(&self) -> u64 {
        nanoseconds(self.options.timeouts.connect).min(self.keep.every)
    }

    /// When a beat has to begin so that it can take its time before the deadline; not before it is due, and never for a lease that
    /// is not beaten any more.
    fn start_by(&self, now: u64) -> Option<u64> {
        if self.cell.is_final(now) || matches!(self.next(now), Next::Rest(_)) {
            return None;
        }
        Some(self.cell.deadline().saturating_sub(self.limit()).max(self.plan.due()))
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Sends one beat and judges its outcome. Meanwhile all leases are watched, those in the inbox too; when there is none left that it
/// could be of use to, or one that came or woke up has to be beaten, it is given up, and its connection with it.
async fn beat_one(
    shared: &Shared,
    kept: &mut [ManagedLease],
    index: usize,
    links: &mut Vec<Session>,
    random: u64,
) {
    let now = clock::now();
    let others = || {
        kept.iter()
            .enumerate()
            .filter(|(other, _)| *other != index)
            .filter_map(|(_, other)| other.start_by(now))
    };
    let Some(this) = kept.get(index) else {
        return;
    };
    let limit = |limit: u64| Duration::from_nanos(time_for(limit, now, others()));
    let timeouts = Timeouts { connect: limit(this.connect_limit()), query: limit(this.limit()) };
    let position =
        links.iter().position(|link| link.settings() == &*this.connection).unwrap_or_else(|| {
            links.push(
                Session::new(Arc::clone(&this.connection), timeouts)
                    .with_resolver(sessions::resolver()),
            );
            links.len() - 1
        });
    let Some(link) = links.get_mut(position) else {
        return;
    };

    // However urgent another lease: what the beat is left anyway, and a moment for the server, which gives up before.
    let connecting = if link.is_open() { 0 } else { least_time(this.connect_limit()) };
    let spared_until = now
        .saturating_add(least_time(this.limit()))
        .saturating_add(connecting)
        .saturating_add(LEAST_TIME);

    let mut sent = 0;
    let outcome = {
        let sending = || {
            sent = clock::now();
            this.cell.set_out(sent)
        };
        let work = async {
            link.retime(timeouts).await?;
            beat(
                link,
                &this.options,
                Holder { run_uid: this.cell.uid, owner: &this.cell.owner },
                this.keep.lease_seconds,
                End::NeverEarlier,
                sending,
            )
            .await
        };
        unless(until_given_up(shared, kept, index, spared_until), caught(work)).await
    };
    this.cell.land();
    let now = clock::now();
    let Some(this) = kept.get_mut(index) else {
        return;
    };
    match outcome {
        Ok(Ok(Ok(Beat::Renewed))) => {
            this.cell.renewed(now, sent, this.keep.lease());
            this.plan.succeeded(sent);
        }
        Ok(Ok(Ok(Beat::NotOwner(state)))) => this.cell.refused(state),
        Ok(Ok(Ok(Beat::Withheld))) => {}
        Ok(Ok(Err(error))) => {
            this.cell.failed(now, error.message);
            this.plan.failed(now, random);
        }
        Ok(Err(Panicked)) => {
            link.discard();
            this.cell.failed(
                now,
                format!(
                    "the reply of {} could not be read; the connection was thrown away",
                    this.connection.endpoint
                ),
            );
            this.plan.failed(now, random);
        }
        // Its reply would be taken for the next one's.
        Err(GivenUp::ForNobody) => link.discard(),
        Err(GivenUp::ForAnother) => {
            link.discard();
            let endpoint = &this.connection.endpoint;
            this.cell
                .failed(now, format!("no reply from {endpoint} before another lease had to be beaten; the connection was thrown away"));
            this.plan.failed(now, random);
        }
    }
}

/// Why a beat on its way is given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum GivenUp {
    /// The thread is to stop, or no lease is left.
    ForNobody,
    /// Another lease has to be beaten now, which could not be known when this beat began.
    ForAnother,
}

/// The work panicked.
struct Panicked;

/// Runs a future; a panic in it (a driver that trips over a reply it cannot read) is an answer.
async fn caught<T>(work: impl Future<Output = T>) -> Result<T, Panicked> {
    let mut work = pin!(work);
    poll_fn(|context| match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context))) {
        Ok(poll) => poll.map(Ok),
        Err(_) => Poll::Ready(Err(Panicked)),
    })
    .await
}

/// The outcome of the work, or that of the other future when it comes to its end before.
async fn unless<E, T>(end: impl Future<Output = E>, work: impl Future<Output = T>) -> Result<T, E> {
    let (mut end, mut work) = (pin!(end), pin!(work));
    poll_fn(|context| match work.as_mut().poll(context) {
        Poll::Ready(outcome) => Poll::Ready(Ok(outcome)),
        Poll::Pending => end.as_mut().poll(context).map(Err),
    })
    .await
}

/// Watches the leases while the beat of `kept[index]` is on its way, so that a loss is told at its moment; ends when the beat is to be
/// given up.
async fn until_given_up(
    shared: &Shared,
    kept: &[ManagedLease],
    index: usize,
    spared_until: u64,
) -> GivenUp {
    loop {
        let now = clock::now();
        let meanwhile = if shared.stop.load(Ordering::Acquire) {
            Err(GivenUp::ForNobody)
        } else {
            meanwhile(kept.iter().chain(&lock(&shared.inbox).leases), index, spared_until, now)
        };
        match meanwhile {
            Ok(time) => sleep_until(shared, time).await,
            Err(why) => return why,
        }
    }
}

/// Until when the beat of lease number `index` is let go on, which is not given up for another before `spared_until`.
fn meanwhile<'a>(
    leases: impl Iterator<Item = &'a ManagedLease>,
    index: usize,
    spared_until: u64,
    now: u64,
) -> Result<u64, GivenUp> {
    let mut deadline = None;
    let mut turn = u64::MAX;
    for (number, lease) in leases.enumerate().filter(|(_, lease)| !lease.cell.is_final(now)) {
        deadline = deadline.into_iter().chain([lease.cell.deadline()]).min();
        if number != index
            && let Some(start_by) = lease.start_by(now)
        {
            turn = turn.min(start_by.max(spared_until));
        }
    }
    match deadline {
        None => Err(GivenUp::ForNobody),
        Some(_) if turn <= now => Err(GivenUp::ForAnother),
        Some(deadline) => Ok(deadline.min(turn).min(now.saturating_add(LONGEST_SLEEP))),
    }
}

/// Sleeps until a moment on the lease's clock, or until somebody rings.
async fn sleep_until(shared: &Shared, time: u64) {
    let wait = Duration::from_nanos(time.saturating_sub(clock::now()));
    let _ = tokio::time::timeout(wait, shared.bell.notified()).await;
}

/// Random enough to spread retries.
const fn xorshift(mut state: u64) -> u64 {
    state ^= state << 13;
    state ^= state >> 7;
    state ^ (state << 17)
}

#[cfg(target_os = "linux")]
fn thread_id() -> i32 {
    // SAFETY: no arguments, cannot fail.
    unsafe { libc::gettid() }
}

#[cfg(not(target_os = "linux"))]
fn thread_id() -> i32 {
    0
}

/// Waits until the system does not know the thread any more: joining returns a moment before that.
#[cfg(target_os = "linux")]
fn wait_until_gone(tid: i32) {
    let start = std::time::Instant::now();
    let exists = || {
        // SAFETY: signal 0 delivers no signal: the call only reports whether the thread exists.
        (unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), tid, 0) }) == 0
    };
    while start.elapsed() < VANISHING && exists() {
        std::thread::yield_now();
    }
}

#[cfg(not(target_os = "linux"))]
fn wait_until_gone(_tid: i32) {
    let _ = VANISHING;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::connection::Defaults;
    use crate::config::value::{Input, Key as Name};
    use crate::process::clock::MILLISECOND;

    /// A lease that was kept at `kept`, with a beat every third of it.
    fn lease(kept: u64, lease_seconds: i64) -> ManagedLease {
        let keep = KeepOptions::parse(lease_seconds, &[]).unwrap();
        let driver = (Name::Str(b"driver".to_vec()), Input::Bytes(b"mysqli".to_vec()));
        ManagedLease {
            cell: Arc::new(SharedLease::new(
                7,
                "worker:a",
                fork::generation(),
                kept,
                keep.lease(),
                kept,
                None,
            )),
            plan: Schedule::new(&keep, kept),
            keep,
            connection: Arc::new(
                ConnectionSettings::parse(&Input::Map(vec![driver]), &Defaults::default()).unwrap(),
            ),
            options: Options::default(),
        }
    }

    #[test]
    fn it_never_sleeps_for_long() {
        // Timers stand still while the machine is suspended: what is far off by its timer may be near.
        let now = 5 * SECOND;
        let mut leases = [lease(now, 3_000), lease(now, 900)];
        assert!(
            matches!(next(&mut leases, now), Do::WaitUntil(time) if time > now && time <= now + SECOND)
        );
        let time = meanwhile(leases.iter(), 0, now, now).unwrap();
        assert!(time > now && time <= now + SECOND, "{time}");
    }

    #[test]
    fn heartbeat_in_flight_yields_to_a_lease_that_is_due() {
        let kept = 5 * SECOND;
        // Due after a second; to be begun after two, since the deadline is after three and a beat may take one.
        let leases = [lease(kept, 900), lease(kept, 3)];
        let at = |ms: u64, spared_ms: u64| {
            meanwhile(leases.iter(), 0, kept + spared_ms * MILLISECOND, kept + ms * MILLISECOND)
        };
        assert_eq!(at(1_500, 0), Ok(kept + 2 * SECOND));
        assert_eq!(at(1_999, 0), Ok(kept + 2 * SECOND));
        assert_eq!(at(2_000, 0), Err(GivenUp::ForAnother));
        assert_eq!(at(2_000, 2_400), Ok(kept + 2_400 * MILLISECOND), "what it is left anyway");
        assert_eq!(at(2_400, 2_400), Err(GivenUp::ForAnother));
        assert_eq!(at(3_000, 0), Ok(kept + 4 * SECOND), "not for one that is lost");
        let own = meanwhile(leases.iter(), 1, 0, kept + 2_000 * MILLISECOND);
        assert_eq!(own, Ok(kept + 3 * SECOND), "not for its own; the deadline is noticed");
    }

    #[test]
    fn a_beat_on_its_way_is_given_up_when_nobody_is_left() {
        let leases = [lease(0, 3), lease(0, 900)];
        leases.iter().for_each(|lease| lease.cell.disarm_and_release());
        assert_eq!(meanwhile(leases.iter(), 0, 0, SECOND), Err(GivenUp::ForNobody));
        let other = lease(0, 900);
        assert_eq!(meanwhile(leases.iter().chain([&other]), 0, 0, SECOND), Ok(2 * SECOND));
    }
}
