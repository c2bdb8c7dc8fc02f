//! Methods of proofs that are one instruction, by its name.

/// `enter`, for the features of a proof.
macro_rules! enter {
    ($features:literal) => {
        fn enter<W: Work<Self>>(self, work: W) {
            #[target_feature(enable = $features)]
            #[inline(never)]
            fn enabled<C, W: Work<C>>(cpu: C, work: W) {
                work.run(cpu);
            }
            // SAFETY: `self` proves the features.
            unsafe { enabled(self, work) }
        }
    };
}

/// `load` and `store`: the bytes of a register, and the instructions.
#[cfg(target_arch = "x86_64")]
macro_rules! memory {
    ($bytes:literal, $load:ident, $store:ident) => {
        #[inline(always)]
        fn load(self, bytes: &[u8]) -> Self::Vector {
            let bytes: &[u8; $bytes] = bytes
                .first_chunk()
                .expect($crate::block::registers::WHOLE_REGISTER);
            // SAFETY: `self` proves that the CPU has it, and the bytes are borrowed.
            unsafe { $load(bytes.as_ptr().cast()) }
        }

        #[inline(always)]
        fn store(self, x: Self::Vector, bytes: &mut [u8]) {
            let bytes: &mut [u8; $bytes] = bytes
                .first_chunk_mut()
                .expect($crate::block::registers::WHOLE_REGISTER);
            // SAFETY: `self` proves that the CPU has it, and the bytes are borrowed.
            unsafe { $store(bytes.as_mut_ptr().cast(), x) }
        }
    };
}

/// Methods of two registers.
macro_rules! binary {
    ($($name:ident: $instruction:ident),*) => {$(
        #[inline(always)]
        fn $name(self, x: Self::Vector, y: Self::Vector) -> Self::Vector {
            // SAFETY: `self` proves that the CPU has it.
            unsafe { $instruction(x, y) }
        }
    )*};
}

/// Methods of two registers that give two.
#[cfg(target_arch = "x86_64")]
macro_rules! pairs {
    ($($name:ident: $low:ident, $high:ident;)*) => {$(
        #[inline(always)]
        fn $name(self, x: Self::Vector, y: Self::Vector) -> [Self::Vector; 2] {
            // SAFETY: `self` proves that the CPU has them.
            unsafe { [$low(x, y), $high(x, y)] }
        }
    )*};
}

/// Methods that shift all words or pairs alike.
#[cfg(target_arch = "x86_64")]
macro_rules! shifts {
    ($($name:ident: $instruction:ident),*) => {$(
        #[inline(always)]
        fn $name<const BY: u32>(self, x: Self::Vector) -> Self::Vector {
            // SAFETY: `self` proves that the CPU has it.
            unsafe { $instruction(x, _mm_cvtsi32_si128(BY as i32)) }
        }
    )*};
}

pub(super) use {binary, enter};
#[cfg(target_arch = "x86_64")]
pub(super) use {memory, pairs, shifts};
