//! The frames of the running PHP code: whether an exception may be thrown into them at the point where the engine asks for interrupts.
//!
//! The engine asks between two instructions (after a native call up to PHP 8.3, at jumps, at the start of a function) and inside a native
//! call. Between two instructions, `opline` is the instruction that has *not* run yet, but unwinding takes it for the one that failed.

use std::mem::offset_of;
use std::ptr::null;

use ext_php_rs::ffi::{
    IS_INDIRECT, ZEND_INTERNAL_FUNCTION, zend_execute_data, zend_hash_find, zend_op, zend_op_array,
    zend_string,
};
use ext_php_rs::types::Zval;
use ext_php_rs::zend::ClassEntry;

use super::globals;

// From Zend/zend_compile.h, zend_vm_opcodes.h and zend_globals.h; the same in PHP 8.2 to 8.6.
const IS_CONST: u8 = 1;
const IS_TMP_VAR: u8 = 1 << 1;
const IS_VAR: u8 = 1 << 2;
const ZEND_CATCH: u8 = 107;
const ZEND_LAST_CATCH: u32 = 1;
const EG_FLAGS_IN_SHUTDOWN: u8 = 1;
/// The instructions that unwinding takes to have stored the argument which their second operand numbers: `SEND_VAR_NO_REF_EX`, `SEND_VAL`,
/// `SEND_VAR_EX`, `SEND_REF`, `SEND_VAR_NO_REF`, `SEND_VAL_EX`, `SEND_VAR`, `SEND_USER`, `SEND_FUNC_ARG`.
const SENDS: [u8; 9] = [50, 65, 66, 67, 106, 116, 117, 120, 185];

/// The frames from one outwards.
///
/// # Safety
///
/// `frame` is null or a frame of the running code, on the PHP thread, and no code runs while the iterator is used.
unsafe fn outwards<'a>(
    frame: *const zend_execute_data,
) -> impl Iterator<Item = &'a zend_execute_data> {
    // SAFETY: the engine links the frames of running code down to the first one, and keeps each as long as it runs.
    std::iter::successors(unsafe { frame.as_ref() }, |this| unsafe {
        this.prev_execute_data.as_ref()
    })
}

/// The code of a frame of PHP code; `None` for the frame of a native function.
fn user_code(frame: &zend_execute_data) -> Option<&zend_op_array> {
    // SAFETY: the engine keeps a frame's function as long as the frame. The first byte of a function is its kind, and every kind
    // but the native one is an op array.
    unsafe {
        let function = frame.func.as_ref()?;
        (u32::from(function.type_) != ZEND_INTERNAL_FUNCTION).then_some(&function.op_array)
    }
}

/// Returns whether PHP code runs, or has called the native code that does. Where none does, nothing could catch an exception.
///
/// # Safety
///
/// As [`outwards`].
pub(super) unsafe fn has_user_code(frame: *const zend_execute_data) -> bool {
    // SAFETY: by this function's contract.
    unsafe { outwards(frame) }.any(|frame| user_code(frame).is_some())
}

/// Returns whether a native method of a class has called the running code. The frame that the engine gave does not count: from PHP 8.4 on it
/// may be that of a native call that has just returned.
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

/// Returns whether the script has ended, so that shutdown functions, destructors and output handlers run.
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
    // SAFETY: by this function's contract. `opline` of a frame is one of its own instructions unless an exception is on its way already,
    // and then the number is beyond every `try`. The engine sorts the blocks by their start.
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
    // SAFETY: a clause names its class by a literal that the name in lower case follows; all but the last say where the next one
    // is. Literals and jump targets are relative to the instruction (64 bit). The table of classes lives as long as the request.
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
/// Where the next instruction passes an argument, unwinding counts that argument as passed and frees it. So it is passed here, as the instruction
/// would have done it. An instruction that is inside a call of its own (a warning of an undefined variable) writes the argument after it.
///
/// # Safety
///
/// As [`outwards`]; `frame` is the frame that the engine gave.
pub(super) unsafe fn pass_argument(frame: *const zend_execute_data) {
    // SAFETY: by this function's contract. The engine has stored `opline` before it asks. The call under construction belongs to it and has
    // a slot for every argument; `result` of these instructions is the slot's offset. A temporary operand is a slot of the frame
    // that holds a value until the instruction has taken it over.
    unsafe {
        let Some(frame) = frame.as_ref().filter(|frame| user_code(frame).is_some()) else {
            return;
        };
        let (Some(instruction), false) = (frame.opline.as_ref(), frame.call.is_null()) else {
            return;
        };
        if !SENDS.contains(&instruction.opcode) || instruction.op2_type == IS_CONST {
            return;
        }
        let argument = frame.call.byte_add(instruction.result.var as usize).cast::<Zval>();
        let value = if instruction.op1_type & (IS_TMP_VAR | IS_VAR) == 0 {
            null()
        } else {
            std::ptr::from_ref(frame).byte_add(instruction.op1.var as usize).cast::<Zval>()
        };
        if value.is_null() || u32::from((*value).u1.v.type_) == IS_INDIRECT {
            // IS_UNDEF: nothing to free.
            (*argument).u1.type_info = 0;
        } else {
            argument.copy_from_nonoverlapping(value, 1);
        }
    }
}

/// The offset that [`pass_argument`] adds to a frame is counted from its start, as the engine counts it.
const _: () = assert!(offset_of!(zend_execute_data, opline) == 0);
