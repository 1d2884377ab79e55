//! Interrupting PHP when a lease is lost: the keeper raises the engine's own flag, and the handler here throws at the next safe
//! point of the code that runs.
//!
//! What is set, in which order, and what a late raise finds in the next request, is [`InterruptSignal`]'s; the flag is shared with signals,
//! time limits and profilers.

use std::panic::catch_unwind;
use std::ptr::{NonNull, null};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use ext_php_rs::class::RegisteredClass;
use ext_php_rs::exception::throw_with_code;
use ext_php_rs::ffi::{
    ZEND_INTERNAL_FUNCTION, executor_globals, zend_execute_data, zend_interrupt_function,
};

use super::exceptions;
use super::runtime::NrLlmRuntime;
use crate::keeper::interrupt_signal::InterruptSignal;
use crate::keeper::thread as keeper;

/// The engine's handler.
type Handler = unsafe extern "C" fn(*mut zend_execute_data);

thread_local! {
    /// From the heartbeat thread to this PHP thread.
    static SIGNAL: Arc<InterruptSignal> = Arc::new(InterruptSignal::new());
}

/// The handler that was there before, or 0.
static PREVIOUS: AtomicUsize = AtomicUsize::new(0);

/// MINIT: puts the handler in front of the one that is there. A module that is started again finds itself and stays.
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

/// MSHUTDOWN: takes the handler away, unless another module has put its own in front of it and calls this one.
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
    // SAFETY: 0, or a handler that module_started() found, and that stays where it is as long as the engine calls this one.
    (address != 0).then(|| unsafe { std::mem::transmute::<usize, Handler>(address) })
}

/// On the PHP thread: from now on [`raise`] reaches this request.
pub(super) fn arm() -> Arc<InterruptSignal> {
    SIGNAL.with(|signal| {
        // SAFETY: without thread safety the globals are one static of the process, so that the address stays right for ever; the flag
        // is one byte that everybody writes atomically.
        unsafe {
            let flag = (&raw mut executor_globals.vm_interrupt).cast::<AtomicBool>();
            signal.arm(NonNull::new_unchecked(flag));
        }
        Arc::clone(signal)
    })
}

/// RSHUTDOWN, before the leases are ended: no raise reaches the next request.
pub(super) fn request_ended() {
    SIGNAL.with(|signal| signal.request_ended());
}

/// The engine's call at a safe point, after anybody raised the flag.
///
/// # Safety
///
/// Called by the engine alone, on the PHP thread, while a function runs.
unsafe extern "C" fn handler(execute_data: *mut zend_execute_data) {
    if let Some(previous) = previous() {
        // SAFETY: it is called as the engine called this one.
        unsafe { previous(execute_data) };
    }
    if SIGNAL.with(|signal| signal.is_pending()) {
        let _ = catch_unwind(|| {
            // SAFETY: the frame that the engine gave, on the PHP thread.
            if !unsafe { is_below_our_call(execute_data) } && SIGNAL.with(|signal| signal.take()) {
                throw();
            }
        });
    }
}

/// Is the running code called by one of the runtime's own methods? Those run `getAttemptErrors()` alone, and drop what that throws: a loss would
/// be lost there, and would change what becomes of a run, be it that of another lease. So it is put off until the method returns, as in
/// any native call; see [`call_ended`].
///
/// The frame that the engine gave is none of those below: in newer versions of PHP it may be that of a native call that has just returned.
///
/// # Safety
///
/// `frame` is null or a frame of the running code, on the PHP thread.
unsafe fn is_below_our_call(frame: *const zend_execute_data) -> bool {
    // SAFETY: by this function's contract.
    let mut frame =
        unsafe { frame.as_ref() }.map_or(null(), |this| this.prev_execute_data.cast_const());
    let ours = std::ptr::from_ref(NrLlmRuntime::get_metadata().ce());
    // SAFETY: the frames of running code are linked down to the first one, and each is there, with its function, as long as it runs. The
    // scope of an internal function is its class.
    unsafe {
        while let Some(this) = frame.as_ref() {
            if let Some(function) = this.func.as_ref()
                && u32::from(function.type_) == ZEND_INTERNAL_FUNCTION
                && std::ptr::eq(function.common.scope.cast_const(), ours)
            {
                return true;
            }
            frame = this.prev_execute_data;
        }
    }
    false
}

/// User code that one of the runtime's methods called has ended: what was put off meanwhile is thrown at the next safe point.
pub(super) fn call_ended() {
    SIGNAL.with(|signal| {
        if signal.is_pending() {
            signal.raise();
        }
    });
}

/// Throws what is lost. Where an exception is on its way already (that of a signal handler, or of another lease), the engine makes
/// it the previous one of ours. It cannot be put off by raising the flag again: the engine would ask before it goes on, for ever.
fn throw() {
    while let Some(error) = keeper::take_loss() {
        let (message, class) = exceptions::parts(&error);
        // An error would mean that the class cannot be thrown; ours can.
        let _ = throw_with_code(class, i32::from(error.code), &message);
    }
}
