//! CTR (NIST SP 800-38A, section 6.5): Cⱼ = Pⱼ ⊕ E(IV + j), the IV a
//! big-endian number of a whole block that wraps, as the kernel counts.

use super::{BATCH, BlockMode, Blocks, add_all, blocks};

/// A block cipher in CTR mode.
pub(crate) struct Ctr<C> {
    pub(crate) cipher: C,
}

impl<C> Ctr<C> {
    fn add_key_stream<const N: usize>(&self, ivs: &[[u8; N]], data: &mut [u8])
    where
        C: Blocks<N>,
    {
        let sector_blocks = data.len() / N / ivs.len();
        let mut counters = ivs.iter().flat_map(|iv| counters(*iv).take(sector_blocks));
        let mut stream = [[0; N]; BATCH];
        for batch in blocks(data).chunks_mut(BATCH) {
            let stream = &mut stream[..batch.len()];
            stream.fill_with(|| counters.next().expect("a counter for every block"));
            self.cipher.encrypt_blocks(stream);
            add_all(batch, stream);
        }
    }
}

impl<C: Blocks<N>, const N: usize> BlockMode<N> for Ctr<C> {
    fn encrypt(&self, ivs: &mut [[u8; N]], data: &mut [u8]) {
        self.add_key_stream(ivs, data);
    }

    fn decrypt(&self, ivs: &mut [[u8; N]], data: &mut [u8]) {
        self.add_key_stream(ivs, data);
    }

    fn encrypt_zeros(&self, ivs: &mut [[u8; N]]) {
        self.cipher.encrypt_blocks(ivs);
    }
}

/// `iv` and the numbers after it.
fn counters<const N: usize>(iv: [u8; N]) -> impl Iterator<Item = [u8; N]> {
    let mut number = [0; 16];
    number[16 - N..].copy_from_slice(&iv);
    let start = u128::from_be_bytes(number);
    (0..).map(move |j| {
        let number = start.wrapping_add(j).to_be_bytes();
        let mut counter = [0; N];
        counter.copy_from_slice(&number[16 - N..]);
        counter
    })
}
