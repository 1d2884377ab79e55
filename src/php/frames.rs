//! The frames of the running PHP code: whether an exception may be thrown into them at the point
//! where the engine asks for interrupts.
//!
//! The engine asks between two instructions (after a native call up to PHP 8.3, at jumps, at the
//! start of a function) and inside a native call. Between two instructions, `opline` is the
//! instruction that has *not* run yet, but unwinding takes it for the one that failed.
//!
//! What unwinding and a backtrace rely on and the engine has not written yet is written here, or
//! the exception is put off.

use std::cell::UnsafeCell;
use std::mem::{MaybeUninit, offset_of};
use std::ptr::null_mut;

use ext_php_rs::alloc::efree;
use ext_php_rs::ffi::{
    IS_INDIRECT, IS_STRING, ZEND_INTERNAL_FUNCTION, ext_php_rs_zend_string_release,
    zend_execute_data, zend_function, zend_hash_find, zend_op, zend_op_array, zend_string,
};
use ext_php_rs::types::Zval;
use ext_php_rs::zend::ClassEntry;

use super::globals;

// From Zend/zend_compile.h, zend_vm_opcodes.h and zend_globals.h; the same in PHP 8.2 to 8.6.
const IS_CONST: u8 = 1;
const IS_TMP_VAR: u8 = 1 << 1;
const IS_VAR: u8 = 1 << 2;
const ZEND_ROPE_ADD: u8 = 55;
const ZEND_CALL_FREE_EXTRA_ARGS: u32 = 1 << 19;
const ZEND_CATCH: u8 = 107;
const ZEND_LAST_CATCH: u32 = 1;
const ZEND_HANDLE_EXCEPTION: u8 = 149;
const EG_FLAGS_IN_SHUTDOWN: u8 = 1;
/// `FRAMELESS_ICALL_0` to `FRAMELESS_ICALL_3`, from PHP 8.4 on.
const FRAMELESS_CALLS: std::ops::RangeInclusive<u8> = 204..=207;
/// The instructions that unwinding takes to have stored the argument which their second operand
/// numbers: `SEND_VAR_NO_REF_EX`, `SEND_VAL`, `SEND_VAR_EX`, `SEND_REF`, `SEND_VAR_NO_REF`,
/// `SEND_VAL_EX`, `SEND_VAR`, `SEND_USER`, `SEND_FUNC_ARG`.
const SENDS: [u8; 9] = [50, 65, 66, 67, 106, 116, 117, 120, 185];

unsafe extern "C" {
    // Interned: neither counted nor freed.
    static zend_empty_string: *mut zend_string;
}

thread_local! {
    /// Replaces the released function of a frame that is being unwound.
    static RELEASED: UnsafeCell<MaybeUninit<zend_function>> =
        const { UnsafeCell::new(MaybeUninit::uninit()) };
}

/// The frames from one outwards.
///
/// # Safety
///
/// `frame` is null or a frame of the running code, on the PHP thread, and no code runs while the
/// iterator is used.
unsafe fn outwards<'a>(
    frame: *const zend_execute_data,
) -> impl Iterator<Item = &'a zend_execute_data> {
    // SAFETY: the engine links the frames of running code down to the first one, and keeps each as
    // long as it runs.
    std::iter::successors(unsafe { frame.as_ref() }, |this| unsafe {
        this.prev_execute_data.as_ref()
    })
}

/// The code of a frame of PHP code; `None` for the frame of a native function.
fn user_code(frame: &zend_execute_data) -> Option<&zend_op_array> {
    // SAFETY: the engine keeps a frame's function as long as the frame. The first byte of a
    // function is its kind, and every kind but the native one is an op array.
    unsafe {
        let function = frame.func.as_ref()?;
        (u32::from(function.type_) != ZEND_INTERNAL_FUNCTION).then_some(&function.op_array)
    }
}

/// Returns whether PHP code runs, or has called the native code that does. Where none does, nothing
/// could catch an exception.
///
/// # Safety
///
/// As [`outwards`].
pub(super) unsafe fn has_user_code(frame: *const zend_execute_data) -> bool {
    // SAFETY: by this function's contract.
    unsafe { outwards(frame) }.any(|frame| user_code(frame).is_some())
}

/// Returns whether a native method of a class has called the running code. The frame that the
/// engine gave does not count: from PHP 8.4 on it may be that of a native call that has just
/// returned.
///
/// # Safety
///
/// As [`outwards`].
pub(super) unsafe fn is_called_by(frame: *const zend_execute_data, class: &ClassEntry) -> bool {
    // SAFETY: by this function's contract. The scope of a native function is its class, or null.
    unsafe {
        outwards(frame).skip(1).any(|frame| {
            frame.func.as_ref().is_some_and(|function| {
                u32::from(function.type_) == ZEND_INTERNAL_FUNCTION
                    && std::ptr::eq(function.common.scope.cast_const(), class)
            })
        })
    }
}

/// What the point at which the engine asks allows.
pub(super) enum Point {
    /// An exception may be thrown.
    Unwindable,
    /// Not here. The engine goes on after the call, so that a flag which is raised now is seen at
    /// the next point.
    After,
    /// Not here. The engine checks the flag again before it goes on, so that one which is raised
    /// now would stop it.
    Later,
}

/// Returns what the point allows. A native call that has freed its function, as
/// `Closure::__invoke()` does, cannot be recorded in a backtrace. On the way into a `catch` the
/// engine still has the exception which it has unwound for, and expects no other.
///
/// # Safety
///
/// `frame` is the frame that the engine gave, on the PHP thread.
pub(super) unsafe fn point(frame: *const zend_execute_data) -> Point {
    // SAFETY: by this function's contract. One pointer is read of the engine's globals.
    unsafe {
        let Some(frame) = frame.as_ref().filter(|frame| !frame.func.is_null()) else {
            return Point::After;
        };
        if user_code(frame).is_some()
            && !(*globals::executor()).exception.is_null()
            && (*frame.opline).opcode != ZEND_HANDLE_EXCEPTION
        {
            return Point::Later;
        }
        Point::Unwindable
    }
}

/// Returns whether the script has ended, so that shutdown functions, destructors and output
/// handlers run.
pub(super) fn is_shutting_down() -> bool {
    // SAFETY: one byte of the engine's globals, on the PHP thread.
    unsafe { (*globals::executor()).flags & EG_FLAGS_IN_SHUTDOWN != 0 }
}

/// Returns whether a `catch` around the running code takes an exception of the class.
///
/// # Safety
///
/// As [`outwards`].
pub(super) unsafe fn is_caught(frame: *const zend_execute_data, class: &ClassEntry) -> bool {
    // SAFETY: by this function's contract. `opline` of a frame is one of its own instructions
    // unless an exception is on its way already, and then the number is beyond every `try`. The
    // engine sorts the blocks by their start.
    unsafe {
        outwards(frame).any(|frame| {
            let Some(code) = user_code(frame) else {
                return false;
            };
            let number =
                (frame.opline as usize).wrapping_sub(code.opcodes as usize) / size_of::<zend_op>();
            let blocks = usize::try_from(code.last_try_catch).unwrap_or(0);
            (0..blocks).map(|index| &*code.try_catch_array.add(index)).any(|block| {
                block.catch_op != 0
                    && (block.try_op as usize..block.catch_op as usize).contains(&number)
                    && takes(code.opcodes.add(block.catch_op as usize), class)
            })
        })
    }
}

/// Returns whether one of the `catch` clauses takes the class.
///
/// # Safety
///
/// `clause` is the first `CATCH` instruction of a `try` block.
unsafe fn takes(mut clause: *const zend_op, class: &ClassEntry) -> bool {
    // SAFETY: a clause names its class by a literal that the name in lower case follows; all but
    // the last say where the next one is. Literals and jump targets are relative to the instruction
    // (64 bit). The table of classes lives as long as the request.
    unsafe {
        while (*clause).opcode == ZEND_CATCH {
            let this = &*clause;
            let name = clause.byte_offset(this.op1.constant.cast_signed() as isize).cast::<Zval>();
            let lower: *mut zend_string = (*name.add(1)).value.str_;
            let found = zend_hash_find((*globals::executor()).class_table, lower);
            if found
                .as_ref()
                .and_then(|found| found.value.ptr.cast::<ClassEntry>().as_ref())
                .is_some_and(|caught| class.instance_of(caught))
            {
                return true;
            }
            if this.extended_value & ZEND_LAST_CATCH != 0 {
                return false;
            }
            clause = clause.byte_offset(this.op2.jmp_offset.cast_signed() as isize);
        }
    }
    false
}

/// Makes an exception possible that is thrown between two instructions.
///
/// Where the next instruction passes an argument or adds a piece to a string that is being put
/// together, unwinding counts the argument or the piece as stored and frees it. So it is stored
/// here, as the instruction would have done it. An instruction that is inside a call of its own (a
/// warning of an undefined variable) stores it after this.
///
/// # Safety
///
/// `frame` is the frame that the engine gave, on the PHP thread.
pub(super) unsafe fn store_operand(frame: *const zend_execute_data) {
    // SAFETY: by this function's contract. The engine has stored `opline` before it asks. The call
    // under construction belongs to it and has a slot for every argument; `result` of these
    // instructions is the slot's offset. The pieces of a string are an array of pointers in the
    // frame's slots from the first operand on.
    unsafe {
        let Some(frame) = frame.as_ref().filter(|frame| user_code(frame).is_some()) else {
            return;
        };
        let Some(instruction) = frame.opline.as_ref() else {
            return;
        };
        if instruction.opcode == ZEND_ROPE_ADD {
            let pieces = std::ptr::from_ref(frame).byte_add(instruction.op1.var as usize);
            let piece = temporary(frame, instruction.op2_type, instruction.op2.var)
                .filter(|value| u32::from(value.u1.v.type_) == IS_STRING)
                .map_or(zend_empty_string, |value| value.value.str_);
            pieces
                .cast::<*mut zend_string>()
                .cast_mut()
                .add(instruction.extended_value as usize)
                .write(piece);
        } else if SENDS.contains(&instruction.opcode)
            && instruction.op2_type != IS_CONST
            && !frame.call.is_null()
        {
            let argument = frame.call.byte_add(instruction.result.var as usize).cast::<Zval>();
            match temporary(frame, instruction.op1_type, instruction.op1.var) {
                Some(value) => argument.copy_from_nonoverlapping(value, 1),
                // IS_UNDEF: nothing to free.
                None => (*argument).u1.type_info = 0,
            }
        }
    }
}

/// Runs code that throws into the frame that the engine gave, after making the frame one that can
/// be recorded in a backtrace and unwound.
///
/// # Safety
///
/// `frame` is that frame, on the PHP thread.
pub(super) unsafe fn with_unwindable(frame: *mut zend_execute_data, throw: impl FnOnce()) {
    // SAFETY: by this function's contract. One setting of the engine's globals is changed and
    // restored.
    unsafe {
        let executor = globals::executor();
        let code = frame.as_ref().and_then(user_code);
        let begins_call = code.is_some_and(|code| {
            std::ptr::eq(code.opcodes, &raw const (*executor).call_trampoline_op)
                && !code.function_name.is_null()
                && (*executor).exception.is_null()
        });
        // From some release of PHP 8.4 on the engine also asks at the end of a frameless call, when
        // the arguments are freed. The backtrace has an entry for that call nevertheless, and would
        // copy them.
        let is_frameless_call =
            code.is_some() && FRAMELESS_CALLS.contains(&(*(*frame).opline).opcode);
        if begins_call {
            move_arguments(frame);
        }
        let setting = &raw mut (*executor).exception_ignore_args;
        let before = setting.read();
        setting.write(before || is_frameless_call);
        throw();
        setting.write(before);
        if begins_call {
            release_function(frame);
        }
    }
}

/// Moves the arguments of a call that `__call()` or `__callStatic()` handles to where a backtrace
/// and unwinding look for arguments beyond the declared ones. The engine leaves them at the start
/// of the frame, for its instruction that collects them.
///
/// # Safety
///
/// The frame is that of such a call, before that instruction.
unsafe fn move_arguments(frame: *mut zend_execute_data) {
    // SAFETY: the frame has slots for the arguments and the variables together; the variables are
    // not used yet.
    unsafe {
        let code = &(*(*frame).func).op_array;
        let count = (*frame).This.u2.num_args as usize;
        let distance = code.last_var.cast_unsigned() as usize + code.T as usize;
        let first = frame.add(1).cast::<Zval>();
        for argument in (0..count).rev().map(|index| first.add(index)) {
            argument.add(distance).copy_from_nonoverlapping(argument, 1);
            // IS_UNDEF.
            (*argument).u1.type_info = 0;
        }
        (*frame).This.u1.type_info |= ZEND_CALL_FREE_EXTRA_ARGS;
    }
}

/// Releases the function of a call that `__call()` or `__callStatic()` handles, which is made for
/// that call alone, and keeps a copy in the frame.
///
/// # Safety
///
/// An exception is on its way through the frame, so that only unwinding reads the function.
unsafe fn release_function(frame: *mut zend_execute_data) {
    // SAFETY: by this function's contract. The copy has no name, which unwinding does not read. It
    // lives as long as the thread; that of another frame which is being unwound is not needed any
    // more when this one is. The function is the engine's own or on its heap.
    unsafe {
        let function = (*frame).func;
        let copy = RELEASED.with(|released| (*released.get()).as_mut_ptr());
        (&raw mut (*copy).op_array).write((*function).op_array);
        (*copy).op_array.function_name = null_mut();
        (*frame).func = copy;
        ext_php_rs_zend_string_release((*function).common.function_name);
        if std::ptr::eq(function, &raw const (*globals::executor()).trampoline) {
            (*function).common.function_name = null_mut();
        } else {
            efree(function.cast());
        }
    }
}

/// The value of an operand that the instruction takes over: that of a temporary, unless it only
/// points to a variable.
///
/// # Safety
///
/// The operand is one of the instruction that the frame runs next.
unsafe fn temporary(frame: &zend_execute_data, kind: u8, offset: u32) -> Option<&Zval> {
    // SAFETY: a temporary operand is a slot of the frame that holds a value until the instruction
    // has taken it over.
    (kind & (IS_TMP_VAR | IS_VAR) != 0)
        .then(|| unsafe { &*std::ptr::from_ref(frame).byte_add(offset as usize).cast::<Zval>() })
        .filter(|value| u32::from(unsafe { value.u1.v.type_ }) != IS_INDIRECT)
}

/// The engine counts the slots of a frame from the end of its head, in values.
const _: () = assert!(size_of::<zend_execute_data>().is_multiple_of(size_of::<Zval>()));
/// The offsets that [`store_operand`] adds to a frame are counted from its start, as the engine
/// counts them.
const _: () = assert!(offset_of!(zend_execute_data, opline) == 0);
