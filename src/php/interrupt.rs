//! Interrupting PHP when a lease is lost: the keeper raises the engine's own flag, and the handler
//! here throws at the next safe point of the code that runs.
//!
//! What is set, in which order, and what a late raise finds in the next request, is
//! [`InterruptSignal`]'s; the flag is shared with signals, time limits and profilers.

use std::cell::{Cell, RefCell};
use std::panic::catch_unwind;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use ext_php_rs::exception::throw_with_code;
use ext_php_rs::ffi::{zend_execute_data, zend_interrupt_function};

use super::frames::Point;
use super::{entries, exceptions, frames, globals};
use crate::error::Kind;
use crate::keeper::{self, InterruptSignal};
use crate::process::signals::spawn_masked;

/// The engine's handler.
type Handler = unsafe extern "C" fn(*mut zend_execute_data);

thread_local! {
    /// From the heartbeat thread to this PHP thread.
    static SIGNAL: Arc<InterruptSignal> = Arc::new(InterruptSignal::new());
}

/// The handler that was there before, or 0.
static PREVIOUS: AtomicUsize = AtomicUsize::new(0);

/// MINIT: puts the handler in front of the one that is there. A module that is started again finds
/// itself and stays.
pub(super) fn module_started() {
    // SAFETY: modules are started and ended on one thread, before and after all others.
    unsafe {
        if zend_interrupt_function
            .is_none_or(|current| current as usize != handler as Handler as usize)
        {
            PREVIOUS.store(
                zend_interrupt_function.map_or(0, |previous| previous as usize),
                Ordering::Release,
            );
            zend_interrupt_function = Some(handler);
        }
    }
}

/// MSHUTDOWN: takes the handler away, unless another module has put its own in front of it and
/// calls this one.
pub(super) fn module_ended() {
    // SAFETY: as in module_started().
    unsafe {
        if zend_interrupt_function
            .is_some_and(|current| current as usize == handler as Handler as usize)
        {
            zend_interrupt_function = previous();
        }
    }
}

fn previous() -> Option<Handler> {
    let address = PREVIOUS.load(Ordering::Acquire);
    // SAFETY: 0, or a handler that module_started() found, and that stays where it is as long as
    // the engine calls this one.
    (address != 0).then(|| unsafe { std::mem::transmute::<usize, Handler>(address) })
}

/// On the PHP thread: from now on [`InterruptSignal::raise`] reaches this request.
pub(super) fn arm() -> Arc<InterruptSignal> {
    SIGNAL.with(|signal| {
        // SAFETY: the globals of a PHP thread stay where they are until the thread has left PHP,
        // and request_ended() comes before. The flag is one byte that every writer stores
        // atomically.
        unsafe {
            let flag = (&raw mut (*globals::executor()).vm_interrupt).cast::<AtomicBool>();
            signal.arm(NonNull::new_unchecked(flag));
        }
        Arc::clone(signal)
    })
}

/// RSHUTDOWN, before the leases are ended: no raise reaches the next request.
pub(super) fn request_ended() {
    end_reminder();
    SIGNAL.with(|signal| signal.request_ended());
}

/// The engine's call, after the flag was raised by anyone.
///
/// # Safety
///
/// Called by the engine alone, on the PHP thread, with the frame that runs or null.
unsafe extern "C" fn handler(execute_data: *mut zend_execute_data) {
    if let Some(previous) = previous() {
        // SAFETY: it is called as the engine called this one.
        unsafe { previous(execute_data) };
    }
    if SIGNAL.with(|signal| signal.is_pending()) {
        // SAFETY: the frame that the engine gave, on the PHP thread.
        let _ = catch_unwind(|| unsafe { interrupt(execute_data) });
    }
}

/// Throws what is lost where the engine can unwind (rule 31). Elsewhere the loss stays due, and the
/// engine is asked again.
///
/// # Safety
///
/// `frame` is null or the frame that the engine gave, on the PHP thread.
unsafe fn interrupt(frame: *mut zend_execute_data) {
    // SAFETY: by this function's contract.
    unsafe {
        if entries::RUNTIME.get().is_some_and(|runtime| frames::is_called_by(frame, runtime)) {
            // The runtime's own methods call getAttemptErrors() alone and drop what it throws. The
            // loss would be dropped with it, and would change what becomes of a run. See
            // call_ended().
            return;
        }
        if !frames::has_user_code(frame) {
            // Only native code runs, as in a native shutdown function. The engine checks the flag
            // when a native call returns to native code or PHP code starts, and not in a loop.
            SIGNAL.with(|signal| signal.ask());
            return;
        }
        match frames::point(frame) {
            Point::Unwindable => {}
            Point::After => return SIGNAL.with(|signal| signal.ask()),
            Point::Later => return SIGNAL.with(remind),
        }
        if SIGNAL.with(|signal| signal.take()) {
            let refused = Cell::new(false);
            throw(frame, |kind| {
                let may = !frames::is_shutting_down()
                    || frames::is_caught(frame, exceptions::class_of(kind));
                refused.set(refused.get() || !may);
                may
            });
            if refused.get() {
                // An exception that nothing catches would end the shutdown, and the functions that
                // settle the run would be skipped. Raising the flag at once would be checked before
                // the next instruction, without end.
                SIGNAL.with(remind);
            } else {
                end_reminder();
            }
        }
    }
}

/// How often the engine is asked again where raising the flag at once would stop it.
const REMINDER_INTERVAL: Duration = Duration::from_millis(1);

/// The thread that asks the engine again.
struct Reminder {
    process: u32,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

thread_local! {
    /// That of this PHP thread.
    static REMINDER: RefCell<Option<Reminder>> = const { RefCell::new(None) };
}

/// Raises the flag every millisecond until what is lost was thrown or the request ends. If no
/// thread can be started, the loss is not thrown, and `state()` reports it.
fn remind(signal: &Arc<InterruptSignal>) {
    signal.post();
    REMINDER.with_borrow_mut(|reminder| {
        let process = std::process::id();
        if reminder.as_ref().is_some_and(|running| running.process == process) {
            return;
        }
        let stop = Arc::new(AtomicBool::new(false));
        let thread = spawn_masked("nrllm-reminder", {
            let (signal, stop) = (Arc::clone(signal), Arc::clone(&stop));
            move || {
                while !stop.load(Ordering::Acquire) {
                    if signal.is_pending() {
                        signal.ask();
                    }
                    std::thread::park_timeout(REMINDER_INTERVAL);
                }
            }
        });
        *reminder = thread.ok().map(|thread| Reminder { process, stop, thread });
    });
}

fn end_reminder() {
    // A forked child has a copy, without the thread.
    if let Some(reminder) = REMINDER.take().filter(|running| running.process == std::process::id())
    {
        reminder.stop.store(true, Ordering::Release);
        reminder.thread.thread().unpark();
        let _ = reminder.thread.join();
    }
}

/// User code that one of the runtime's methods called has ended: what was put off meanwhile is
/// thrown at the next safe point.
pub(super) fn call_ended() {
    SIGNAL.with(|signal| {
        if signal.is_pending() {
            signal.raise();
        }
    });
}

/// Throws what is lost and of a kind that `may` be thrown. Where an exception is on its way already
/// (that of a signal handler, or of another lease), the engine makes it the previous one.
///
/// # Safety
///
/// `frame` is the frame that the engine gave, on the PHP thread.
unsafe fn throw(frame: *mut zend_execute_data, may: impl Fn(Kind) -> bool) {
    let mut first = true;
    while let Some(error) = keeper::take_loss_if(&may) {
        let (message, class) = exceptions::parts(&error);
        // SAFETY: by this function's contract.
        unsafe {
            if first {
                frames::store_operand(frame);
                first = false;
            }
            frames::with_unwindable(frame, || {
                // An error would mean that the class cannot be thrown; ours can.
                let _ = throw_with_code(class, i32::from(error.code), &message);
            });
        }
    }
}
