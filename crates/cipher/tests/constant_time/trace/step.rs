//! UNSAFE ROOM: a child whose instructions run one after the other in copies.
//!
//! Between a first `int3` and a second the child runs no code where it is, but
//! copies of it: instructions up to the next branch, each with code before it
//! that writes down the address that it touches, and then an `int3`. The handler
//! does branches, and looks at what has vectors of addresses. To set the CPU's trap flag would be
//! simpler, but a virtual machine leaves to its host each time: 15 µs instead
//! of one. A debugger would be another process, to be woken up twice a step.
//!
//! # Safety case
//!
//! * `fork` is sound in a process with one thread: the child inherits no lock that would never be
//!   released. [`prepare`] asserts that there is one. The child never returns from there: a panic
//!   is caught, and `_exit` runs nothing of the parent's.
//! * The handler interrupts any code, that of the allocator as well. So it
//!   allocates nothing, locks nothing, makes no system call and does not panic;
//!   the decoder's tables exist before ([`prepare`]). It runs on a stack of its
//!   own, so what is below the stack pointer stays as it is.
//! * A copy does what its original does: what is counted from the instruction's
//!   address is counted anew, and whatever cannot be reached so, or goes
//!   elsewhere in a way that [`Goes`] does not know, is a fault that ends the
//!   child. A call puts the original's address on the stack.
//! * [`State`] is used by the handler alone while copies run, and by the only
//!   thread while none do. Its buffers for copies may be written to and run.
//! * A recording is memory shared with one child, which ends before this
//!   process reads it.
//! * What is read at an address was about to be read by the CPU: an
//!   instruction's bytes, never beyond their page unless the instruction goes
//!   on there, what it divides by, where it goes, and the stack's last word.
//! * The vector registers are where Linux says in the signal's frame, as many
//!   bytes as it says.

use std::cell::UnsafeCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use super::reads::{Goes, Known, Place, Registers, holds};

/// Steps, which are instructions that show something, of which each is kept; of those that follow, a sum of all.
pub const KEPT: usize = 1 << 20;

/// Instructions that a request has, at most.
const INSTRUCTIONS: usize = 1 << 16;

/// Bytes for copies, of this program's code and of its libraries'.
const COPIES: usize = 16 << 20;

/// Instructions that are copied at a time.
const AT_A_TIME: usize = 256;

const INT3: u8 = 0xcc;

const PAGE: u64 = 4096;

/// The longest instruction there is.
const LONGEST: usize = 15;

/// Of the handler.
const STACK: usize = 256 << 10;

/// Components of what XSAVE stores, by their bit: upper halves of YMM0 to 15,
/// k0 to k7, upper halves of ZMM0 to 15, ZMM16 to 31.
const YMM_HIGH: usize = 2;
const MASKS: usize = 5;
const ZMM_HIGH: usize = 6;
const ZMM_16: usize = 7;
const COMPONENTS: usize = 8;

/// Where XMM0 to 15 are, what Linux adds, and which components are stored.
const XMM: usize = 160;
const XSTATE_SIZE: usize = 464 + 16;
const XSTATE_BV: usize = 512;

/// One step, as it is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Step {
    /// Where the instruction is.
    pub address: u64,
    /// A sum of what can be observed of it.
    pub seen: u64,
}

/// The results that a child leaves behind.
#[repr(C)]
struct Shared {
    /// All that its work was.
    steps: u64,
    sum: u64,
    /// Where an instruction is that cannot be copied.
    fault: u64,
    kept: [Step; KEPT],
}

/// Room for copies: the bytes, and how many are used.
struct Copies {
    start: *mut u8,
    used: usize,
}

/// The handler's state.
struct State {
    shared: *mut Shared,
    /// Instructions by hash of their address, which is 0 where there is none,
    /// and where their copies are, which is 0 if there is none.
    known: [(u64, Known, u64); INSTRUCTIONS],
    /// Near to this program, and near to its libraries: displacements reach 2 GiB.
    copies: [Copies; 2],
    /// Addresses that copies have touched since the handler ran, and what RAX
    /// was before one was written down.
    touched: [u64; AT_A_TIME],
    rax: u64,
    offsets: [usize; COMPONENTS],
    stack: [u8; STACK],
}

struct Single(UnsafeCell<State>);

// SAFETY: that there is one thread is asserted before it is used.
unsafe impl Sync for Single {}

static STATE: Single = Single(UnsafeCell::new(State {
    shared: ptr::null_mut(),
    known: [(0, Known::NOTHING, 0); INSTRUCTIONS],
    copies: [const {
        Copies {
            start: ptr::null_mut(),
            used: 0,
        }
    }; 2],
    touched: [0; AT_A_TIME],
    rax: 0,
    offsets: [0; COMPONENTS],
    stack: [0; STACK],
}));

#[repr(align(4096))]
struct Near(UnsafeCell<[u8; COPIES]>);

// SAFETY: as above.
unsafe impl Sync for Near {}

static NEAR: Near = Near(UnsafeCell::new([0; COPIES]));

/// Installs the handler, once.
pub fn prepare() {
    assert!(has_one_thread(), "copies are made of one thread");
    // The decoder makes its tables when it is first used.
    _ = Known::of(&[0x90], 0);
    let state = STATE.0.get();
    for component in [YMM_HIGH, MASKS, ZMM_HIGH, ZMM_16] {
        let found = std::arch::x86_64::__cpuid_count(13, component as u32);
        let offset = match found.eax {
            0 => usize::MAX / 2,
            _ => found.ebx as usize,
        };
        // SAFETY: no handler runs, and there is one thread.
        unsafe { (*state).offsets[component] = offset };
    }
    // SAFETY: one is a static of that size, and the other is new.
    unsafe {
        let all = libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC;
        let near = NEAR.0.get();
        assert_eq!(
            libc::mprotect(near.cast(), COPIES, all),
            0,
            "a buffer for copies"
        );
        let private = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let far = libc::mmap(ptr::null_mut(), COPIES, all, private, -1, 0);
        assert_ne!(far, libc::MAP_FAILED, "a buffer for copies");
        (*state).copies = [near.cast::<u8>(), far.cast()].map(|start| Copies { start, used: 0 });
    }
    // SAFETY: the stack is static and used for nothing else; the handler has the
    // signature that SA_SIGINFO asks for; all zeros are a `sigaction`.
    let done = unsafe {
        let stack = libc::stack_t {
            ss_sp: (&raw mut (*state).stack).cast(),
            ss_flags: 0,
            ss_size: STACK,
        };
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        libc::sigaltstack(&stack, ptr::null_mut())
            | libc::sigaction(libc::SIGTRAP, &action, ptr::null_mut())
    };
    assert_eq!(done, 0, "a handler for single steps");
}

fn has_one_thread() -> bool {
    std::fs::read_dir("/proc/self/task").is_ok_and(|threads| threads.count() == 1)
}

/// Room for what one child does.
pub struct Recording {
    shared: *mut Shared,
}

impl Recording {
    pub fn new() -> Self {
        // SAFETY: new memory at a place of the kernel's choice; zeros are a `Shared`.
        let shared = unsafe {
            libc::mmap(
                ptr::null_mut(),
                size_of::<Shared>(),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        assert_ne!(shared, libc::MAP_FAILED, "memory for a recording");
        Self {
            shared: shared.cast(),
        }
    }

    /// Starts a copy of this process that does `work`, which calls
    /// [`begin`] and [`end`] around what is to be recorded.
    ///
    /// Nothing is allocated here, so copies that are made one after the other
    /// start with the same memory and get the same addresses.
    pub fn made_by(&mut self, work: impl FnOnce()) -> Child {
        // SAFETY: no child of this recording is left: a `Child` is waited for.
        unsafe {
            (*self.shared).steps = 0;
            (*self.shared).sum = 0;
            (*self.shared).fault = 0;
        }
        // SAFETY: there is one thread, see `prepare`.
        match unsafe { libc::fork() } {
            -1 => panic!(
                "no copy of this process: {}",
                std::io::Error::last_os_error()
            ),
            0 => {
                // SAFETY: this copy has one thread, whose trap flag is not set.
                unsafe { (*STATE.0.get()).shared = self.shared };
                let done = catch_unwind(AssertUnwindSafe(work));
                // SAFETY: it ends this copy, and runs nothing.
                unsafe { libc::_exit(i32::from(done.is_err())) }
            }
            pid => Child { pid },
        }
    }

    /// How many steps there were, and a sum of all that was observed.
    pub fn total(&self) -> (u64, u64) {
        // SAFETY: nobody writes to it: its child has ended.
        unsafe { ((*self.shared).steps, (*self.shared).sum) }
    }

    /// The first [`KEPT`] steps.
    pub fn kept(&self) -> &[Step] {
        let (steps, _) = self.total();
        let len = KEPT.min(steps as usize);
        // SAFETY: nobody writes to it, and so many have been written.
        unsafe { std::slice::from_raw_parts((&raw const (*self.shared).kept).cast(), len) }
    }

    /// Where an instruction is that could not be copied.
    pub fn fault(&self) -> Option<u64> {
        // SAFETY: nobody writes to it.
        let fault = unsafe { (*self.shared).fault };
        (fault != 0).then_some(fault)
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        // SAFETY: it was mapped so, and nothing borrows it any more.
        unsafe { libc::munmap(self.shared.cast(), size_of::<Shared>()) };
    }
}

/// A copy of this process.
#[must_use]
pub struct Child {
    pid: libc::pid_t,
}

impl Child {
    /// Waits for its end: true if it did all of its work.
    pub fn ends_well(self) -> bool {
        let mut status = 0;
        // SAFETY: it writes to `status` only.
        let ended = unsafe { libc::waitpid(self.pid, &mut status, 0) };
        ended == self.pid && libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0
    }
}

/// From here on, steps are recorded.
#[inline(never)]
pub fn begin() {
    // SAFETY: the handler goes on with a copy of what follows.
    unsafe { std::arch::asm!("int3") };
}

/// No steps are recorded any more.
#[inline(never)]
pub fn end() {
    // SAFETY: the handler goes on with what follows.
    unsafe { std::arch::asm!("int3") };
}

/// The instruction at `address`.
fn decoded(address: u64) -> Option<Known> {
    let in_page = (PAGE - address % PAGE) as usize;
    let decoded = |len: usize| {
        // SAFETY: what the CPU was about to run. See the module's safety case.
        let code = unsafe { std::slice::from_raw_parts(address as *const u8, len) };
        Known::of(code, address)
    };
    decoded(LONGEST.min(in_page)).or_else(|| decoded(LONGEST))
}

/// Runs the next instructions, up to one that an observer could see something of.
extern "C" fn handler(_signal: i32, _info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel gives the context of what was interrupted, and nothing
    // else uses the state meanwhile.
    let (state, context) = unsafe {
        (
            &mut *STATE.0.get(),
            &mut *context.cast::<libc::ucontext_t>(),
        )
    };
    let stopped = context.uc_mcontext.gregs[libc::REG_RIP as usize].cast_unsigned();
    // Behind the `int3` of a copy is what comes next, what came before, and how
    // many addresses that touched.
    let next = match state.copies.iter().any(|copies| copies.has(stopped)) {
        true => {
            let touched = state.touched.iter().take(read(stopped + 16, 8) as usize);
            let seen = touched.fold(0, |sum, address| mixed(sum, *address));
            state.record(Step {
                address: read(stopped + 8, 8),
                seen,
            });
            read(stopped, 8)
        }
        false => stopped,
    };
    let goes_on = match state.run(next, context) {
        Ok(address) => address,
        Err(address) => {
            // SAFETY: memory shared with the parent, which waits.
            unsafe { (*state.shared).fault = address };
            // SAFETY: it ends this copy, and runs nothing.
            unsafe { libc::_exit(1) }
        }
    };
    context.uc_mcontext.gregs[libc::REG_RIP as usize] = goes_on.cast_signed();
}

impl Copies {
    fn has(&self, address: u64) -> bool {
        let start = self.start.addr() as u64;
        (start..start + COPIES as u64).contains(&address)
    }

    /// Puts bytes behind the others; none if there is no room.
    fn put(&mut self, bytes: &[u8]) -> Option<u64> {
        let address = self.start.addr() + self.used;
        if self.used + bytes.len() > COPIES {
            return None;
        }
        // SAFETY: there is room, as was just seen, and the state owns it.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), address as *mut u8, bytes.len()) };
        self.used += bytes.len();
        Some(address as u64)
    }

    fn next(&self) -> u64 {
        (self.start.addr() + self.used) as u64
    }
}

impl State {
    /// Records instructions from `address` on and does their branches; returns
    /// where to go on, or where the instruction is that it cannot do.
    fn run(&mut self, mut address: u64, context: &mut libc::ucontext_t) -> Result<u64, u64> {
        loop {
            let place = self.place(address).ok_or(address)?;
            let known = self.known[place].1;
            let registers = registers(&context.uc_mcontext.gregs);
            if known.goes == Goes::Nowhere {
                return Ok(address + known.len as u64);
            }
            let offsets = &self.offsets;
            let vectors = || {
                // SAFETY: the kernel's frame is there as long as the handler runs.
                unsafe { Vectors::of(context, offsets) }
            };
            let seen = known.reads.observe(&registers, vectors, read);
            self.record(Step { address, seen });
            let behind = address + known.len as u64;
            let stack = registers.general[4];
            let general = |place| match place {
                Place::Register(register) => registers.general[usize::from(register)],
                Place::Memory => read(known.address(&registers), 8),
            };
            let mut moves = |stack: u64| {
                context.uc_mcontext.gregs[libc::REG_RSP as usize] = stack.cast_signed();
            };
            address = match known.goes {
                Goes::On => return self.copy(place).ok_or(address),
                Goes::To(target) => target,
                Goes::If(condition, target) if holds(condition, registers.flags) => target,
                Goes::IfNoCount(target) if registers.general[1] == 0 => target,
                Goes::If(..) | Goes::IfNoCount(_) => behind,
                Goes::Where(place) => general(place),
                Goes::Calls(_) | Goes::CallsWhere(_) => {
                    let target = match known.goes {
                        Goes::CallsWhere(place) => general(place),
                        Goes::Calls(target) => target,
                        _ => behind,
                    };
                    moves(stack - 8);
                    // SAFETY: the CPU was about to write it there.
                    unsafe { ((stack - 8) as *mut u64).write_unaligned(behind) };
                    target
                }
                Goes::Back(bytes) => {
                    moves(stack + bytes);
                    read(stack, 8)
                }
                Goes::Nowhere => return Err(address),
            };
        }
    }

    fn record(&mut self, step: Step) {
        // SAFETY: memory shared with the parent, which waits.
        let shared = unsafe { &mut *self.shared };
        if let Some(kept) = shared.kept.get_mut(shared.steps as usize) {
            *kept = step;
        }
        shared.sum = mixed(mixed(shared.sum, step.address), step.seen);
        shared.steps += 1;
    }

    /// Where what is known of the instruction at `address` is.
    fn place(&mut self, address: u64) -> Option<usize> {
        let hash = (mixed(0, address) >> 32) as usize;
        let mut places = (0..INSTRUCTIONS).map(|nth| hash.wrapping_add(nth) % INSTRUCTIONS);
        let is_its = |place: &usize| [address, 0].contains(&self.known[*place].0);
        let place = places.find(is_its)?;
        if self.known[place].0 == 0 {
            self.known[place] = (address, decoded(address)?, 0);
        }
        Some(place)
    }

    /// Where the copy is of the instruction at this place, and of those behind it
    /// that show nothing.
    fn copy(&mut self, place: usize) -> Option<u64> {
        let (address, first, copy) = self.known[place];
        if copy != 0 {
            return Some(copy);
        }
        // Both are the program's, or neither.
        let near = (handler as *const () as u64).abs_diff(address) < 1 << 31;
        let copies = &mut self.copies[usize::from(!near)];
        let copy = copies.next();
        let (mut from, mut known) = (address, first);
        let mut touched = 0;
        for nth in 0..AT_A_TIME {
            let into_rax = known.address_into_rax();
            match into_rax {
                // The handler has looked at the first.
                _ if nth == 0 => {}
                None => break,
                Some(None) => {}
                Some(Some(lea)) => {
                    let place = &raw const self.touched as u64 + 8 * touched;
                    copies.put(&absolute(STORE_RAX, &raw const self.rax as u64))?;
                    copies.put(&lea)?;
                    copies.put(&absolute(STORE_RAX, place))?;
                    copies.put(&absolute(LOAD_RAX, &raw const self.rax as u64))?;
                    touched += 1;
                }
            }
            let mut bytes = [0; LONGEST];
            // SAFETY: an instruction that was decoded there.
            let original = unsafe { std::slice::from_raw_parts(from as *const u8, known.len) };
            let bytes = bytes.get_mut(..known.len)?;
            bytes.copy_from_slice(original);
            if let Some((offset, target)) = known.relative {
                let behind = copies.next() + known.len as u64;
                let distance = target.wrapping_sub(behind).cast_signed();
                let distance = i32::try_from(distance).ok()?.to_le_bytes();
                bytes
                    .get_mut(offset..offset + 4)?
                    .copy_from_slice(&distance);
            }
            copies.put(bytes)?;
            from += known.len as u64;
            known = decoded(from)?;
        }
        copies.put(&[INT3])?;
        for word in [from, address, touched] {
            copies.put(&word.to_le_bytes())?;
        }
        self.known[place].2 = copy;
        Some(copy)
    }
}

/// `mov [ADDRESS], rax` and `mov rax, [ADDRESS]`.
const STORE_RAX: u8 = 0xa3;
const LOAD_RAX: u8 = 0xa1;

fn absolute(code: u8, address: u64) -> [u8; 10] {
    let [a, b, c, d, e, f, g, h] = address.to_le_bytes();
    [0x48, code, a, b, c, d, e, f, g, h]
}

/// A sum that keeps order: it differs if one of its parts does.
pub const fn mixed(sum: u64, part: u64) -> u64 {
    (sum.rotate_left(23) ^ part).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

fn registers(general: &[libc::greg_t; 23]) -> Registers {
    // As instructions number them.
    const ORDER: [i32; 16] = [
        libc::REG_RAX,
        libc::REG_RCX,
        libc::REG_RDX,
        libc::REG_RBX,
        libc::REG_RSP,
        libc::REG_RBP,
        libc::REG_RSI,
        libc::REG_RDI,
        libc::REG_R8,
        libc::REG_R9,
        libc::REG_R10,
        libc::REG_R11,
        libc::REG_R12,
        libc::REG_R13,
        libc::REG_R14,
        libc::REG_R15,
    ];
    Registers {
        general: ORDER.map(|register| general[register as usize].cast_unsigned()),
        flags: general[libc::REG_EFL as usize].cast_unsigned(),
    }
}

/// Up to eight bytes that the next instruction reads.
fn read(address: u64, len: usize) -> u64 {
    let mut bytes = [0; 8];
    let len = len.min(bytes.len());
    // SAFETY: the CPU is about to read them.
    unsafe { ptr::copy_nonoverlapping(address as *const u8, bytes.as_mut_ptr(), len) };
    u64::from_le_bytes(bytes)
}

/// The vector and mask registers of what was interrupted.
pub struct Vectors<'a> {
    stored: &'a [u8],
    offsets: &'a [usize; COMPONENTS],
}

impl<'a> Vectors<'a> {
    /// # Safety
    ///
    /// `context` is a signal's, whose handler outlives the result.
    unsafe fn of(context: &'a libc::ucontext_t, offsets: &'a [usize; COMPONENTS]) -> Self {
        let start: *const u8 = context.uc_mcontext.fpregs.cast();
        // SAFETY: Linux says how much there is behind the legacy area.
        let stored = unsafe {
            let len = start.add(XSTATE_SIZE).cast::<u32>().read_unaligned();
            std::slice::from_raw_parts(start, len as usize)
        };
        Self { stored, offsets }
    }

    /// All of ZMM0 to ZMM31; zeros where the CPU has less.
    pub fn zmm(&self, number: usize) -> [u64; 8] {
        let mut register = [0; 64];
        if number < 16 {
            self.copy(1, XMM + 16 * number, &mut register[..16]);
            self.copy_of(YMM_HIGH, 16 * number, &mut register[16..32]);
            self.copy_of(ZMM_HIGH, 32 * number, &mut register[32..]);
        } else {
            self.copy_of(ZMM_16, 64 * (number - 16), &mut register);
        }
        let mut words = register.chunks_exact(8);
        std::array::from_fn(|_| {
            let word = words.next().and_then(|word| word.try_into().ok());
            u64::from_le_bytes(word.unwrap_or_default())
        })
    }

    /// k0 to k7.
    pub fn mask(&self, number: usize) -> u64 {
        let mut register = [0; 8];
        self.copy_of(MASKS, 8 * number, &mut register);
        u64::from_le_bytes(register)
    }

    fn copy_of(&self, component: usize, from: usize, to: &mut [u8]) {
        self.copy(component, self.offsets[component] + from, to);
    }

    /// Copies a part of a component; a component that is not stored is zero.
    fn copy(&self, component: usize, from: usize, to: &mut [u8]) {
        let is_stored = self
            .stored
            .get(XSTATE_BV)
            .is_some_and(|bits| bits >> component & 1 == 1);
        if let (true, Some(bytes)) = (is_stored, self.stored.get(from..from + to.len())) {
            to.copy_from_slice(bytes);
        }
    }
}
