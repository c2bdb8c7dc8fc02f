//! The processor's own counters.

/// Whether the time-stamp counter runs at a constant rate and may be read.
#[cfg(target_arch = "x86_64")]
pub(super) fn trustworthy() -> bool {
    use std::arch::x86_64::__cpuid;
    let invariant =
        __cpuid(0x8000_0000).eax >= 0x8000_0007 && __cpuid(0x8000_0007).edx & (1 << 8) != 0;
    // A kernel that found the counter unstable has switched to another source.
    let kernel =
        std::fs::read_to_string("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    match kernel {
        Ok(source) => matches!(source.trim(), "tsc") || (invariant && source.trim() == "kvm-clock"),
        Err(_) => invariant,
    }
}

/// Reads the time-stamp counter, in its ticks.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(super) fn read() -> u64 {
    // SAFETY: RDTSC exists on every x86-64 processor and touches no memory;
    // `trustworthy` has made sure that user space may execute it.
    unsafe { std::arch::x86_64::_rdtsc() }
}

/// Executes `n` (rounded down to a multiple of 64) additions, each needing the one before.
#[cfg(target_arch = "x86_64")]
pub(super) fn dependent_additions(n: u64) -> Option<()> {
    let mut rounds = n / 64;
    // SAFETY: the block changes only the two registers it names and flags.
    unsafe {
        std::arch::asm!(
            "2:",
            ".rept 64",
            "add {sum}, {step}",
            ".endr",
            "dec {rounds}",
            "jnz 2b",
            sum = inout(reg) 0_u64 => _,
            step = in(reg) 3_u64,
            rounds = inout(reg) rounds,
            options(nomem, nostack)
        );
    }
    debug_assert_eq!(rounds, 0);
    Some(())
}

/// Whether the generic timer may be read: always so in user space on Linux.
#[cfg(target_arch = "aarch64")]
pub(super) fn trustworthy() -> bool {
    cfg!(target_os = "linux")
}

/// Reads the generic timer's virtual count.
#[cfg(target_arch = "aarch64")]
#[inline]
pub(super) fn read() -> u64 {
    let ticks: u64;
    // SAFETY: CNTVCT_EL0 is readable from user space on Linux; no memory is touched.
    unsafe { std::arch::asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack)) };
    ticks
}

/// Executes `n` (rounded down to a multiple of 64) additions, each needing the one before.
#[cfg(target_arch = "aarch64")]
pub(super) fn dependent_additions(n: u64) -> Option<()> {
    let mut rounds = n / 64;
    // SAFETY: the block changes only the two registers it names and flags.
    unsafe {
        std::arch::asm!(
            "2:",
            ".rept 64",
            "add {sum}, {sum}, {step}",
            ".endr",
            "subs {rounds}, {rounds}, #1",
            "b.ne 2b",
            sum = inout(reg) 0_u64 => _,
            step = in(reg) 3_u64,
            rounds = inout(reg) rounds,
            options(nomem, nostack)
        );
    }
    debug_assert_eq!(rounds, 0);
    Some(())
}

/// No counter is known for this architecture: the kernel's clock serves.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(super) fn trustworthy() -> bool {
    false
}

/// Never called, because this architecture has no trusted counter.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(super) fn read() -> u64 {
    0
}

/// No chain is written for this architecture.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(super) fn dependent_additions(_n: u64) -> Option<()> {
    None
}
