//! Which of two kernels of one cipher works faster on this CPU: measured, and not looked up
//! in a table of vendors.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use crate::Algorithm;
use crate::block::{AnyKeying, Keyed};

/// Bytes that one turn decrypts: a page or two of sectors, which stay in the cache.
const BYTES: usize = 8192;

/// Turns of each kernel: both take about a millisecond. The shortest counts, so that
/// whatever else the machine does has to come sixteen times in a row to be seen.
const TURNS: usize = 16;

/// Keys `algorithm` by the faster of two kernels. Both are measured when a process keys it
/// for the first time; listing what there is measures nothing.
pub(crate) fn faster(algorithm: Algorithm, kernels: [AnyKeying; 2]) -> AnyKeying {
    static CHOSEN: [OnceLock<bool>; Algorithm::ALL.len()] =
        [const { OnceLock::new() }; Algorithm::ALL.len()];
    let chosen = &CHOSEN[algorithm as usize];
    match kernels {
        [AnyKeying::Wide(first), AnyKeying::Wide(second)] => {
            AnyKeying::Wide(Box::new(move |key| {
                let is_second = || second_is_faster(algorithm, [&*first, &*second]);
                match *chosen.get_or_init(is_second) {
                    true => second(key),
                    false => first(key),
                }
            }))
        }
        [AnyKeying::Narrow(first), AnyKeying::Narrow(second)] => {
            AnyKeying::Narrow(Box::new(move |key| {
                let is_second = || second_is_faster(algorithm, [&*first, &*second]);
                match *chosen.get_or_init(is_second) {
                    true => second(key),
                    false => first(key),
                }
            }))
        }
        _ => unreachable!("kernels of one cipher have blocks of one size"),
    }
}

/// Whether the second kernel takes less time, under a key of zeros.
fn second_is_faster<const N: usize>(
    algorithm: Algorithm,
    kernels: [&dyn Fn(&[u8]) -> Keyed<N>; 2],
) -> bool {
    let key = vec![0; algorithm.longest_key()];
    let ciphers = kernels.map(|keyed| keyed(&key));
    let mut shortest = [Duration::MAX; 2];
    let mut data = [0; BYTES];
    let blocks = data.as_chunks_mut().0;
    for _ in 0..TURNS {
        for (cipher, shortest) in ciphers.iter().zip(&mut shortest) {
            let start = Instant::now();
            cipher.decrypt_blocks(blocks);
            *shortest = start.elapsed().min(*shortest);
        }
    }
    shortest[1] < shortest[0]
}

#[cfg(test)]
mod tests {
    use super::second_is_faster;
    use crate::Algorithm;
    use crate::block::{BlockCipher, Keyed, Null};

    /// Decrypts nothing, `0` times.
    struct Slow(u64);

    impl BlockCipher<16> for Slow {
        fn encrypt_blocks(&self, _: &mut [[u8; 16]]) {}

        fn decrypt_blocks(&self, _: &mut [[u8; 16]]) {
            std::thread::sleep(std::time::Duration::from_micros(self.0));
        }
    }

    #[test]
    fn who_sleeps_is_not_chosen() {
        let quick = |_: &[u8]| -> Keyed<16> { Box::new(Null) };
        let slow = |_: &[u8]| -> Keyed<16> { Box::new(Slow(100)) };
        assert!(second_is_faster(Algorithm::Cast6, [&slow, &quick]));
        assert!(!second_is_faster(Algorithm::Cast6, [&quick, &slow]));
    }
}
