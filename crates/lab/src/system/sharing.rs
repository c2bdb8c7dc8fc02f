//! From which size on several cores beat one: a measurement on this machine.

use crate::error::LabError;
use cipher::{IvSector, Key, KeyedCipher, SectorCipher, SectorLayout, Sharing};

use super::Encryption;
use crate::clock::Clock;
use crate::stats;
use std::convert::Infallible;

/// Parts to try, as powers of two of bytes: 16 KiB to 2 MiB.
const PARTS: std::ops::RangeInclusive<u32> = 14..=21;

/// The largest request, bytes.
const LARGEST: usize = 4 << 20;

/// Comparisons of one core with several over one size of request.
const PAIRS: u64 = 31;

/// Each side of a comparison lasts at least so long, seconds.
const TURN: f64 = 200e-6;

/// The smallest parts with which `cores` are faster than one on every request
/// from two parts to 4 MiB, in both directions; `None` if no parts are.
///
/// It takes up to a few seconds, and holds for the machine's current load.
///
/// # Errors
/// [`LabError`] if the cipher cannot be built or gets no threads.
pub(super) fn sharing(encryption: &Encryption, cores: usize) -> Result<Option<Sharing>, LabError> {
    let key = Key::random(encryption.key_bits as usize / 8)?;
    let layout = SectorLayout {
        size: encryption.sector_size,
        large_iv: false,
    };
    let cipher = || encryption.spec.cipher(&key, layout, encryption.backend);
    let one = cipher()?;
    let mut data = vec![0x5a; LARGEST];
    let part = smallest_part(|part, request| -> Result<bool, LabError> {
        let several = cipher()?.shared(Sharing { cores, part })?;
        let data = &mut data[..request];
        Ok([KeyedCipher::encrypt, KeyedCipher::decrypt]
            .iter()
            .all(|crypt| is_faster(&several, &one, |cipher| crypt(cipher, FIRST, data))))
    })?;
    Ok(part.map(|part| Sharing { cores, part }))
}

const FIRST: IvSector = IvSector::new(0);

/// Whether `work` by `several` is faster than by `one`, for certain.
fn is_faster(several: &KeyedCipher, one: &KeyedCipher, mut work: impl FnMut(&KeyedCipher)) -> bool {
    let clock = Clock::get();
    let mut rate = |cipher: &KeyedCipher| {
        let start = clock.now();
        let mut calls = 0.0;
        loop {
            work(cipher);
            calls += 1.0;
            let seconds = clock.seconds(clock.now() - start);
            if seconds >= TURN {
                return calls / seconds;
            }
        }
    };
    rate(several);
    let by = |is_several, _| {
        let cipher = if is_several { several } else { one };
        Ok::<_, Infallible>(rate(cipher))
    };
    let Ok(ratio) = stats::in_turns(PAIRS, by);
    ratio.is_some_and(|ratio| ratio.low > 1.0)
}

/// The first of [`PARTS`] with which requests of two parts and more are all
/// faster.
fn smallest_part<E>(
    mut is_faster: impl FnMut(usize, usize) -> Result<bool, E>,
) -> Result<Option<usize>, E> {
    'parts: for part in PARTS.map(|power| 1 << power) {
        let mut request = 2 * part;
        while request <= LARGEST {
            if !is_faster(part, request)? {
                continue 'parts;
            }
            request *= 2;
        }
        return Ok(Some(part));
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(is_faster: impl Fn(usize, usize) -> bool) -> Option<usize> {
        smallest_part(|part, request| Ok::<_, ()>(is_faster(part, request))).unwrap()
    }

    #[test]
    fn parts_outweigh_the_waking() {
        // A byte a tick, and a thread that wakes after 100,000.
        let wake = 100_000;
        let two_cores = |request: usize| request / 2 + wake;
        assert_eq!(
            found(|_, request| two_cores(request) < request),
            Some(128 << 10)
        );
    }

    #[test]
    fn one_request_that_is_slower_is_too_many() {
        assert_eq!(found(|_, _| true), Some(16 << 10));
        assert_eq!(found(|_, _| false), None);
        assert_eq!(found(|_, request| request < LARGEST), None);
        let hole = |part, request| !(part < 64 << 10 && request == 1 << 20);
        assert_eq!(found(hole), Some(64 << 10));
        let failing = smallest_part(|_, _| Err(7));
        assert_eq!(failing, Err(7));
    }
}
