//! Every operation of every width against integers, lane by lane.

use super::integers::Integers;
use super::{AnyCpu, Registers};
#[cfg(target_arch = "aarch64")]
use crate::arch::Neon;
#[cfg(target_arch = "x86_64")]
use crate::arch::{Avx2, Avx512};
use crate::work::Work;

/// Bytes of the longest register.
const BYTES: usize = 64;

/// Four registers, different in every byte.
fn inputs() -> [[u8; BYTES]; 4] {
    std::array::from_fn(|j| std::array::from_fn(|i| (i * i * 37 + j * 91 + i / 3) as u8))
}

/// The results of every operation on the first bytes of the inputs, in the order of the code.
struct Everything<'a> {
    inputs: [&'a [u8]; 4],
    outputs: &'a mut Vec<Vec<u8>>,
}

impl<R: Registers> Work<R> for Everything<'_> {
    fn run(self, cpu: R) {
        let [a, b, c, d] = self.inputs.map(|bytes| cpu.load(bytes));
        let mut outputs = vec![
            cpu.splat([1, 0x8000_0000, 3, 0xffff_fffe]),
            cpu.splat_word(0x0123_4567),
            cpu.splat_pair(0x0123_4567_89ab_cdef),
            cpu.xor(a, b),
            cpu.and(a, b),
            cpu.or(a, b),
            cpu.gate::<0x96>(a, b, c),
            cpu.gate::<0xb8>(a, b, c),
            cpu.gate::<0x01>(a, b, c),
            cpu.gate::<0xfe>(a, b, c),
            cpu.add_words(a, b),
            cpu.add_pairs(a, b),
            cpu.multiply_pairs(a),
            cpu.swap_middle(a),
            cpu.shift_left::<7>(a),
            cpu.shift_right::<31>(a),
            cpu.shift_pairs_left::<32>(a),
            cpu.shift_pairs_right::<1>(a),
            cpu.rotate::<16>(a),
            cpu.rotate::<8>(a),
            cpu.rotate::<13>(a),
            cpu.turn::<1>(a),
            cpu.turn::<2>(a),
            cpu.turn::<3>(a),
        ];
        outputs.extend(cpu.transpose([a, b, c, d]));
        for x in outputs {
            let mut bytes = vec![0; 16 * R::LANES];
            cpu.store(x, &mut bytes);
            self.outputs.push(bytes);
        }
    }
}

fn everything<R: Registers>(cpu: R, from: usize) -> Vec<Vec<u8>> {
    let inputs = inputs();
    let mut outputs = Vec::new();
    cpu.enter(Everything {
        inputs: inputs.each_ref().map(|bytes| &bytes[from..]),
        outputs: &mut outputs,
    });
    outputs
}

/// Lane l of register r to lane r of register l, counted along all lanes, and back.
struct Lanes;

impl<R: Registers> Work<R> for Lanes {
    fn run(self, cpu: R) {
        let inputs = inputs();
        let x = inputs.each_ref().map(|bytes| cpu.load(bytes));
        let stored = |x: [R::Vector; 4]| {
            let mut bytes = vec![0; 4 * 16 * R::LANES];
            for (x, bytes) in x.into_iter().zip(bytes.chunks_mut(16 * R::LANES)) {
                cpu.store(x, bytes);
            }
            bytes
        };
        let mut expected = Vec::new();
        for lane in 0..R::LANES {
            for register in &inputs {
                expected.extend_from_slice(&register[16 * lane..][..16]);
            }
        }
        let columns = cpu.columns(x);
        assert_eq!(stored(columns), expected);
        assert_eq!(stored(cpu.rows(columns)), stored(x));
    }
}

fn check<R: Registers>(cpu: Option<R>, name: &str) {
    let Some(cpu) = cpu else {
        println!("skipped: this CPU has no {name}");
        return;
    };
    let found = everything(cpu, 0);
    for lane in 0..R::LANES {
        let expected = everything(Integers, 16 * lane);
        for (nth, (found, expected)) in found.iter().zip(expected).enumerate() {
            assert_eq!(
                &found[16 * lane..][..16],
                expected,
                "operation {nth}, {name}"
            );
        }
    }
    cpu.enter(Lanes);
    if R::Narrow::LANES < R::LANES {
        check(Some(cpu.narrow()), name);
    }
}

#[test]
fn portable() {
    check(Some(AnyCpu), "portable code");
    check(Some(Integers), "integers");
}

#[test]
fn gates_are_their_tables() {
    let rows = |bit: u32| (0..8).fold(0_u128, |word, i: u32| word | u128::from(i >> bit & 1) << i);
    let [x, y, z] = [rows(2), rows(1), rows(0)];
    assert_eq!(Integers.gate::<0x4d>(x, y, z) & 0xff, 0x4d);
    assert_eq!(Integers.gate::<0xe2>(x, y, z) & 0xff, 0xe2);
    assert_eq!(Integers.gate::<0x80>(x, y, z) & 0xff, 0x80);
}

#[cfg(target_arch = "x86_64")]
#[test]
fn avx2() {
    check(Avx2::detect(), "AVX2");
}

#[cfg(target_arch = "x86_64")]
#[test]
fn avx512() {
    check(Avx512::detect(), "AVX-512");
}

#[cfg(target_arch = "aarch64")]
#[test]
fn neon() {
    check(Neon::detect(), "NEON");
}
