//! Work that is done in a function compiled for a CPU.

/// A kernel with its arguments, over the registers of `C`, which proves that the CPU
/// has them.
///
/// `run` and all that it calls are `#[inline(always)]`: they must become part
/// of the function with the CPU's features.
pub(crate) trait Work<C> {
    /// Does the work.
    fn run(self, cpu: C);
}
