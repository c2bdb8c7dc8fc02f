//! The S-box in byte planes.

use super::{P as FIRST, Q as SECOND, SBOX, exchange};
use crate::block::planes::Planes;

/// The S-box, made for look-ups.
pub(crate) struct SBox<P: Planes> {
    table: P::Table,
}

impl<P: Planes> SBox<P> {
    pub(crate) fn new() -> Self {
        Self {
            table: P::table(&SBOX),
        }
    }

    /// Its entry for every byte.
    #[inline(always)]
    pub(crate) fn look_up(&self, planes: P, x: P::Vector) -> P::Vector {
        if P::WIDE == 64 {
            return planes.look_up(&self.table, x);
        }
        let x = layer(planes, &FIRST_LAYER, x);
        let x = layer(planes, &SECOND_LAYER, x);
        layer(planes, &THIRD_LAYER, x)
    }
}

/// For the upper nibble and for the lower one: what they come to.
type Layer = [[u8; 16]; 2];

const FIRST_LAYER: Layer = exchanged(&FIRST, &SECOND);
const SECOND_LAYER: Layer = exchanged(&SECOND, &FIRST);
const THIRD_LAYER: Layer = {
    let mut layer = [[0; 16], SECOND];
    let mut x = 0;
    while x < 16 {
        layer[0][x] = FIRST[x] << 4;
        x += 1;
    }
    layer
};

const fn exchanged(upper: &[u8; 16], lower: &[u8; 16]) -> Layer {
    let mut layer = [[0; 16]; 2];
    let mut x = 0;
    while x < 16 {
        let (a, b) = exchange(upper[x], 0);
        layer[0][x] = (a << 4 | b) as u8;
        let (a, b) = exchange(0, lower[x]);
        layer[1][x] = (a << 4 | b) as u8;
        x += 1;
    }
    layer
}

#[inline(always)]
fn layer<P: Planes>(planes: P, [upper, lower]: &Layer, x: P::Vector) -> P::Vector {
    planes.xor(
        planes.look_up_nibble(upper, planes.upper_nibble(x)),
        planes.look_up_nibble(lower, planes.lower_nibble(x)),
    )
}
