//! The keeper: one thread a process that beats for all kept leases, whatever the process is doing (rules 16 to 20).
//!
//! It is started with the first kept lease and gone with the last, has a connection and a runtime of its own, and never calls
//! the host. The callers' thread owns the registry; the keeper's thread never locks it, so a caller may wait for that thread
//! while it holds the registry. What both share is a lease's `Cell` and the inbox here, and a forked child touches neither.

use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::Notify;

use super::beats::{Limit, Next, Plan, time_for};
use super::clock::{self, SECOND};
use super::fork;
use super::keep_options::KeepOptions;
use super::lease::{Cell, Lease, Standing, error};
use super::sessions::{self, GOODBYE, Key, new_runtime};
use super::signals::{spawn_masked, start_masked};
use crate::store::beat::{Beat, End, beat};
use crate::store::error::{Error, Result};
use crate::store::options::{Options, Timeouts};
use crate::store::session::Session;
use crate::store::settings::ConnectionSettings;

/// How long the end of the thread is waited for. It needs that long only where the machine is overloaded: no reply of the server
/// is waited for.
const FAREWELL: Duration = Duration::from_millis(200);
/// How long a thread that was joined may stay visible to the system.
const VANISHING: Duration = Duration::from_millis(5);
/// The longest sleep. Timers do not count suspend, the deadlines do: after it the thread looks at the clock again.
const LONGEST_SLEEP: u64 = SECOND;

/// The kept leases of one process, and its thread.
struct Registry {
    pid: u32,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    /// Until the holder drops them.
    leases: Vec<Arc<Cell>>,
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
    leases: Vec<Kept>,
    /// The thread has taken its last look.
    closed: bool,
    /// How many leases were ever put in.
    count: u64,
}

/// A lease with what its beats need.
struct Kept {
    cell: Arc<Cell>,
    plan: Plan,
    keep: KeepOptions,
    connection: Arc<ConnectionSettings>,
    options: Options,
}

/// As in [`super::sessions`]: never freed, replaced after a fork, and no lock of the parent's is ever touched by a child.
static CURRENT: AtomicPtr<Registry> = AtomicPtr::new(std::ptr::null_mut());

fn registry() -> &'static Registry {
    let pid = std::process::id();
    loop {
        let current = CURRENT.load(Ordering::Acquire);
        // SAFETY: the pointer is null or came from Box::into_raw below and is never freed.
        if let Some(registry) = unsafe { current.as_ref() }
            && registry.pid == pid
        {
            return registry;
        }
        let fresh = Box::into_raw(Box::new(Registry { pid, inner: Mutex::default() }));
        if CURRENT.compare_exchange(current, fresh, Ordering::AcqRel, Ordering::Acquire).is_err() {
            // SAFETY: another thread was faster, `fresh` was published nowhere.
            drop(unsafe { Box::from_raw(fresh) });
        }
    }
}

fn existing() -> Option<&'static Registry> {
    // SAFETY: as in registry().
    unsafe { CURRENT.load(Ordering::Acquire).as_ref() }.filter(|registry| registry.pid == std::process::id())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing that can panic leaves these values half written.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Renews a lease on the calling session, and keeps it from then on. `on_loss` is called once when it is lost or cancelled, on
/// any thread: it may store to atomics and nothing else.
///
/// # Errors
///
/// A lost lease or a cancelled run when the owner does not hold it; a connection or query error.
pub fn keep(key: &Key, options: &Options, uid: u64, owner: &str, keep: KeepOptions, on_loss: Option<fn()>) -> Result<Lease> {
    let generation = fork::watch()?;
    let mut sent = 0;
    let first = sessions::call(key, async |session: &mut Session| {
        let sending = || {
            sent = clock::now();
            true
        };
        beat(session, options, uid, owner, keep.lease_seconds, End::Exact, sending).await
    })?;
    if let Beat::NotOwner(state) = first {
        return Err(error(Standing::of(state), uid, owner, None));
    }
    let cell = Arc::new(Cell::new(uid, owner, generation, sent, keep.lease(), clock::now(), on_loss));
    let lease = Lease::new(Arc::clone(&cell));
    let plan = Plan::new(&keep, sent);
    let kept = Kept { cell: Arc::clone(&cell), plan, keep, connection: Arc::clone(&key.connection), options: options.clone() };

    let mut inner = lock(&registry().inner);
    inner.leases.push(cell);
    if let Err(error) = inner.hand_over(kept) {
        // The lease's own end needs the registry.
        drop(inner);
        return Err(error);
    }
    Ok(lease)
}

impl Inner {
    /// Gives a lease to the thread, and starts one if there is none.
    fn hand_over(&mut self, kept: Kept) -> Result<()> {
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
            Error::connection(format!("cannot start the keeper's thread: {error}; check the limits of processes and memory"))
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
    fn put(&self, mut kept: Kept) -> Option<Kept> {
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
    if let Some(registry) = existing() {
        lock(&registry.inner).settle();
    }
}

/// The holder of a released lease dropped it.
pub(super) fn forget(cell: &Arc<Cell>) {
    if let Some(registry) = existing() {
        let mut inner = lock(&registry.inner);
        inner.leases.retain(|known| !Arc::ptr_eq(known, cell));
        inner.settle();
    }
}

/// A lease that rests made a step.
pub(super) fn wake() {
    if let Some(registry) = existing() {
        lock(&registry.inner).ring();
    }
}

/// Releases every lease of this process and ends the thread, in bounded time and without waiting for the server: at the end of a
/// request. In a forked child that keeps none, nothing happens.
pub fn end_all() {
    if let Some(registry) = existing() {
        let mut inner = lock(&registry.inner);
        for cell in std::mem::take(&mut inner.leases) {
            cell.disarm_and_release();
        }
        inner.end_thread();
    }
}

/// A loss that is to be thrown, after `on_loss` was called for it. Each is answered once, and none after its lease was released.
pub fn take_loss() -> Option<Error> {
    let inner = lock(&existing()?.inner);
    let now = clock::now();
    inner.leases.iter().find_map(|cell| cell.take_loss(now))
}

/// The thread's work: beat the lease whose beat is due, wait for the next one, until there is no lease.
async fn run(shared: &Shared) {
    let mut kept: Vec<Kept> = Vec::new();
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
async fn collect(shared: &Shared, kept: &mut Vec<Kept>, links: &mut Vec<Session>) -> bool {
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
        let (needed, idle) =
            std::mem::take(links).into_iter().partition(|link| kept.iter().any(|kept| *kept.connection == *link.settings()));
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
fn next(kept: &mut [Kept], now: u64) -> Do {
    let mut longest: Option<(u64, usize)> = None;
    let mut wake = now.saturating_add(LONGEST_SLEEP);
    for (index, kept) in kept.iter().enumerate() {
        wake = wake.min(kept.cell.deadline());
        match kept.next(now) {
            Next::Beat if longest.is_none_or(|(due, _)| kept.plan.due() < due) => longest = Some((kept.plan.due(), index)),
            Next::Beat | Next::Rest(_) => {}
            Next::Wait(time) => wake = wake.min(time),
        }
    }
    longest.map_or(Do::WaitUntil(wake), |(_, index)| Do::Beat(index))
}

impl Kept {
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
                format!("kept for {} s (maxSeconds): the beats have ended for good and the lease runs out", self.keep.max_total / SECOND)
            }
        }
    }

    /// The time limit of a beat: the smaller of that of a statement and the interval.
    fn limit(&self) -> u64 {
        nanoseconds(self.options.timeouts.query).min(self.keep.every)
    }

    /// When a beat has to begin so that it can take its time before the deadline; not before it is due, and never for a lease that
    /// is not beaten any more.
    fn start_by(&self, now: u64) -> Option<u64> {
        if self.cell.is_final(now) || matches!(self.plan.next(now, self.cell.last_step()), Next::Rest(_)) {
            return None;
        }
        Some(self.cell.deadline().saturating_sub(self.limit()).max(self.plan.due()))
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Sends one beat and judges its outcome. Meanwhile the deadlines of all leases are watched; when there is no lease any more
/// that it could be of use to, it is given up, and its connection with it.
async fn beat_one(shared: &Shared, kept: &mut [Kept], index: usize, links: &mut Vec<Session>, random: u64) {
    let now = clock::now();
    let others = || kept.iter().enumerate().filter(|(other, _)| *other != index).filter_map(|(_, other)| other.start_by(now));
    let Some(this) = kept.get(index) else {
        return;
    };
    let limit = |limit: u64| Duration::from_nanos(time_for(limit, now, others()));
    let timeouts = Timeouts { connect: limit(nanoseconds(this.options.timeouts.connect).min(this.keep.every)), query: limit(this.limit()) };
    let position = links.iter().position(|link| link.settings() == &*this.connection).unwrap_or_else(|| {
        links.push(Session::new(Arc::clone(&this.connection), timeouts).with_thread_start(start_masked));
        links.len() - 1
    });
    let Some(link) = links.get_mut(position) else {
        return;
    };

    let mut sent = 0;
    let outcome = {
        let sending = || {
            sent = clock::now();
            this.cell.set_out(sent)
        };
        let work = async {
            link.retime(timeouts).await?;
            beat(link, &this.options, this.cell.uid, &this.cell.owner, this.keep.lease_seconds, End::NeverEarlier, sending).await
        };
        unless(until_nobody_cares(shared, kept), caught(work)).await
    };
    this.cell.land();
    let now = clock::now();
    let Some(this) = kept.get_mut(index) else {
        return;
    };
    match outcome {
        Some(Ok(Ok(Beat::Renewed))) => {
            this.cell.renewed(now, sent, this.keep.lease());
            this.plan.succeeded(sent);
        }
        Some(Ok(Ok(Beat::NotOwner(state)))) => this.cell.refused(state),
        Some(Ok(Ok(Beat::Withheld))) => {}
        Some(Ok(Err(error))) => {
            this.cell.failed(now, error.message);
            this.plan.failed(now, random);
        }
        Some(Err(Panicked)) => {
            link.discard();
            this.cell.failed(now, format!("the reply of {} could not be read; the connection was thrown away", this.connection.endpoint));
            this.plan.failed(now, random);
        }
        // Its reply would be taken for the next one's.
        None => link.discard(),
    }
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

/// The outcome of the work, or nothing when the other future comes to its end before.
async fn unless<T>(end: impl Future<Output = ()>, work: impl Future<Output = T>) -> Option<T> {
    let (mut end, mut work) = (pin!(end), pin!(work));
    poll_fn(|context| match work.as_mut().poll(context) {
        Poll::Ready(outcome) => Poll::Ready(Some(outcome)),
        Poll::Pending => end.as_mut().poll(context).map(|()| None),
    })
    .await
}

/// Watches the deadlines, so that a loss is told at its moment; ends when the thread is to stop or no lease is left.
async fn until_nobody_cares(shared: &Shared, kept: &[Kept]) {
    loop {
        let now = clock::now();
        let wake = kept.iter().filter(|kept| !kept.cell.is_final(now)).map(|kept| kept.cell.deadline()).min();
        let Some(wake) = wake.filter(|_| !shared.stop.load(Ordering::Acquire)) else {
            return;
        };
        sleep_until(shared, wake.min(now.saturating_add(LONGEST_SLEEP))).await;
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
    // SAFETY: signal 0 is sent to nobody: the call only asks whether the thread is there.
    while start.elapsed() < VANISHING && unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), tid, 0) } == 0 {
        std::thread::yield_now();
    }
}

#[cfg(not(target_os = "linux"))]
fn wait_until_gone(_tid: i32) {
    let _ = VANISHING;
}
