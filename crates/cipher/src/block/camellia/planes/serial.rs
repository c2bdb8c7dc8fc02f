//! Camellia with AVX-512, which has a kernel for a few blocks besides.

use super::{IN, Linear, Maps, OUT, ROTATE_LEFT, ROTATE_RIGHT, Sums, input_mask, subkeys};
use crate::arch::{Avx512Bytes, CamelliaKeys, CamelliaLayer, CamelliaSerial};
use crate::block::Block;
use crate::block::camellia::is_of_s4;
use crate::block::planes::Planes;
use crate::block::planes::linear::{IDENTITY, apply, compose, inverse};
use crate::block::planes::sectors::{InPlanes, Kernel};

/// [`Maps`] with that kernel.
pub(crate) struct WithSerial {
    many: Maps<Avx512Bytes>,
    serial: CamelliaSerial,
}

/// The cipher under a key of 16, 24 or 32 bytes.
pub(crate) fn keyed(key: &[u8], planes: Avx512Bytes) -> InPlanes<Avx512Bytes, WithSerial> {
    let many = super::keyed(key, planes).kernel;
    let serial = CamelliaSerial::new(planes, serial_keys(key, planes));
    let kernel = WithSerial { many, serial };
    InPlanes { planes, kernel }
}

fn serial_keys(key: &[u8], planes: Avx512Bytes) -> CamelliaKeys {
    // Of the places of s₁, s₂ and s₃, and of those of s₄.
    let enter = [IN, compose(&IN, &ROTATE_LEFT)];
    let maps = |maps: [Linear; 2]| maps.map(|map| <Avx512Bytes>::map(&map));
    let image = |half: u64| {
        let mut bytes = half.to_be_bytes();
        for (place, byte) in bytes.iter_mut().enumerate() {
            *byte = apply(&enter[usize::from(is_of_s4(place))], *byte);
        }
        u64::from_le_bytes(bytes)
    };
    let mut subkeys = subkeys(key, planes);
    let sums = Sums::new(&subkeys, [input_mask(&inverse(&IN), 0); 2]);
    let keys = CamelliaKeys {
        enter: maps(enter),
        leave: maps(enter.map(|enter| inverse(&enter))),
        substitute: [IDENTITY, ROTATE_LEFT, ROTATE_RIGHT]
            .map(|rotate| maps(enter.map(|enter| compose(&enter, &compose(&rotate, &OUT))))),
        before: image(sums.before),
        sixes: sums.sixes.map(|six| six.map(image)),
        between: subkeys.between.map(|keys| keys.map(CamelliaLayer::new)),
        after: sums.after.map(image),
        six_count: subkeys.six_count,
    };
    subkeys.wipe();
    keys
}

type Rows = [<Avx512Bytes as Planes>::Vector; 16];

impl Kernel<Avx512Bytes> for WithSerial {
    #[inline(always)]
    fn crypt(&self, planes: Avx512Bytes, encrypt: bool, rows: Rows) -> Rows {
        self.many.crypt(planes, encrypt, rows)
    }

    const FEW: usize = <Maps<Avx512Bytes> as Kernel<Avx512Bytes>>::FEW;

    #[inline(always)]
    fn encrypt_few(&self, planes: Avx512Bytes, blocks: &mut [Block]) {
        if blocks.len() <= CamelliaSerial::MOST {
            self.serial.encrypt(blocks);
        } else {
            self.many.encrypt_few(planes, blocks);
        }
    }

    fn encrypt_few_cbc(
        &self,
        planes: Avx512Bytes,
        ivs: &[Block],
        sector_bytes: usize,
        data: &mut [u8],
    ) {
        if ivs.len() <= CamelliaSerial::MOST {
            self.serial.encrypt_cbc(ivs, sector_bytes, data);
        } else {
            self.many.encrypt_few_cbc(planes, ivs, sector_bytes, data);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::keyed;
    use crate::arch::Avx512Bytes;
    use crate::block::tests;
    use crate::reference;

    #[test]
    fn avx512() {
        let Some(planes) = Avx512Bytes::detect() else {
            println!("skipped: this CPU has no AVX-512 VBMI with GFNI");
            return;
        };
        let keyed = |key: &[u8]| keyed(key, planes);
        tests::known_answers::<reference::Camellia, _, 16>("camellia", keyed);
        tests::equals_reference::<reference::Camellia, _, 16>(&[16, 24, 32], keyed);
        tests::agrees_with::<camellia::Camellia128, _, 16>(&[16], keyed);
        tests::agrees_with::<camellia::Camellia192, _, 16>(&[24], keyed);
        tests::agrees_with::<camellia::Camellia256, _, 16>(&[32], keyed);
    }
}
