//! UNSAFE ROOM: requests to valgrind's memcheck.
//!
//! # Safety case
//!
//! A request is a few rotations of a register by 128 bits in all, and an
//! exchange of a register with itself: nothing at all to a CPU. Valgrind knows
//! the sequence, reads six words at `rax` and leaves its answer in `rdx`. It
//! never writes to the program's memory; what it is told about bytes changes
//! only what it thinks of them.
//!
//! Source: valgrind 3.19, valgrind.h and memcheck.h, the interface that
//! "will not change".

/// "Is this valgrind?"
const RUNNING_ON_VALGRIND: usize = 0x1001;

/// "How many errors have there been?"
const COUNT_ERRORS: usize = 0x1201;

/// Requests of the tool "MC", which is memcheck.
const MEMCHECK: usize = (b'M' as usize) << 24 | (b'C' as usize) << 16;
const MAKE_UNDEFINED: usize = MEMCHECK + 1;
const MAKE_DEFINED: usize = MEMCHECK + 2;

/// Whether memcheck watches this program.
pub fn is_watching() -> bool {
    request(RUNNING_ON_VALGRIND, 0, 0) != 0
}

/// The errors that memcheck has found so far, repetitions counted.
pub fn errors() -> usize {
    request(COUNT_ERRORS, 0, 0)
}

/// From now on a branch or an address that depends on `bytes` is an error.
pub fn mark_secret(bytes: &[u8]) {
    request(MAKE_UNDEFINED, bytes.as_ptr().addr(), bytes.len());
}

/// Takes back [`mark_secret`], for all that `bytes` were computed from.
pub fn mark_public(bytes: &[u8]) {
    request(MAKE_DEFINED, bytes.as_ptr().addr(), bytes.len());
}

#[cfg(target_arch = "x86_64")]
fn request(code: usize, first: usize, second: usize) -> usize {
    let arguments = [code, first, second, 0, 0, 0];
    let mut answer = 0;
    // SAFETY: the module's safety case; `arguments` outlive the request.
    unsafe {
        std::arch::asm!(
            "rol rdi, 3",
            "rol rdi, 13",
            "rol rdi, 61",
            "rol rdi, 51",
            "xchg rbx, rbx",
            in("rax") arguments.as_ptr(),
            inout("rdx") answer,
            options(nostack),
        );
    }
    answer
}

/// Valgrind is asked on x86-64 only. Elsewhere the answer is that it does not watch.
#[cfg(not(target_arch = "x86_64"))]
fn request(_code: usize, _first: usize, _second: usize) -> usize {
    0
}
