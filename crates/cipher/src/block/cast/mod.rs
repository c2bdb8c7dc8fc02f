//! The parts that CAST-128 (RFC 2144) and CAST-256 (RFC 2612) share: the three kinds of round, and
//! their S-boxes.

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(super) mod planes;
pub(crate) mod sbox;

/// A masking and a rotation subkey.
pub(super) type RoundKey = [u32; 2];

/// Adds f of kind `KIND`, 1 to 3, of `from` to `to`, in every lane: RFC 2144,
/// section 2.2, and RFC 2612, section 2.
#[inline(always)]
pub(super) fn half_round<const KIND: usize, const N: usize>(
    to: &mut [u32; N],
    from: &[u32; N],
    key: RoundKey,
) {
    for lane in 0..N {
        to[lane] ^= f::<KIND>(from[lane], key, |table, x| table[usize::from(x)]);
    }
}

/// f of kind `KIND`, 1 to 3, where `look_up` gives the entry of a table.
#[inline(always)]
pub(super) fn f<const KIND: usize>(
    data: u32,
    [mask, rotation]: RoundKey,
    look_up: impl Fn(&[u32; 256], u8) -> u32,
) -> u32 {
    let i = match KIND {
        1 => mask.wrapping_add(data),
        2 => mask ^ data,
        _ => mask.wrapping_sub(data),
    };
    let bytes = i.rotate_left(rotation).to_be_bytes();
    let [a, b, c, d] = std::array::from_fn(|i| look_up(&sbox::ROUND[i], bytes[i]));
    match KIND {
        1 => (a ^ b).wrapping_sub(c).wrapping_add(d),
        2 => a.wrapping_sub(b).wrapping_add(c) ^ d,
        _ => (a.wrapping_add(b) ^ c).wrapping_sub(d),
    }
}
