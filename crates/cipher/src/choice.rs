//! Which of two kernels of one cipher works faster on this CPU: measured, and not looked up
//! in a table of vendors.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use crate::Algorithm;
use crate::block::{AnyKeying, Keying};

/// Bytes that one turn decrypts: few enough to stay in the first-level cache.
const BYTES: usize = 8192;

/// Turns of each kernel: about a millisecond for both. The shortest turn counts, because other
/// work on the machine can only make one longer.
const TURNS: usize = 16;

/// Keys `algorithm` by the faster of two kernels. Both are measured when a process keys it
/// for the first time; listing what there is measures nothing.
pub(crate) fn faster(algorithm: Algorithm, kernels: [AnyKeying; 2]) -> AnyKeying {
    match kernels {
        [AnyKeying::Wide(first), AnyKeying::Wide(second)] => {
            AnyKeying::Wide(either(algorithm, [first, second]))
        }
        [AnyKeying::Narrow(first), AnyKeying::Narrow(second)] => {
            AnyKeying::Narrow(either(algorithm, [first, second]))
        }
        _ => unreachable!("kernels of one cipher have blocks of one size"),
    }
}

fn either<const N: usize>(algorithm: Algorithm, kernels: [Keying<N>; 2]) -> Keying<N> {
    static CHOSEN: [OnceLock<bool>; Algorithm::ALL.len()] =
        [const { OnceLock::new() }; Algorithm::ALL.len()];
    let chosen = &CHOSEN[algorithm as usize];
    Box::new(move |key| {
        let second = *chosen.get_or_init(|| second_is_faster(algorithm, &kernels));
        kernels[usize::from(second)](key)
    })
}

/// Whether the second kernel takes less time, under a key of zeros.
fn second_is_faster<const N: usize>(algorithm: Algorithm, kernels: &[Keying<N>; 2]) -> bool {
    let key = vec![0; algorithm.longest_key()];
    let ciphers = kernels.each_ref().map(|keyed| keyed(&key));
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
    use crate::block::{BlockCipher, Keying, Null};

    /// Decrypts nothing, and sleeps over it.
    struct Slow;

    impl BlockCipher<16> for Slow {
        fn encrypt_blocks(&self, _: &mut [[u8; 16]]) {}

        fn decrypt_blocks(&self, _: &mut [[u8; 16]]) {
            std::thread::sleep(std::time::Duration::from_micros(100));
        }
    }

    #[test]
    fn who_sleeps_is_not_chosen() {
        let quick = || -> Keying<16> { Box::new(|_| Box::new(Null)) };
        let slow = || -> Keying<16> { Box::new(|_| Box::new(Slow)) };
        assert!(second_is_faster(Algorithm::Cast6, &[slow(), quick()]));
        assert!(!second_is_faster(Algorithm::Cast6, &[quick(), slow()]));
    }
}
