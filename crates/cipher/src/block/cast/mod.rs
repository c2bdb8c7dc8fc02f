//! What CAST-128 (RFC 2144) and CAST-256 (RFC 2612) share: the three kinds of
//! round, and their S-boxes.

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
    for (to, from) in to.iter_mut().zip(from) {
        *to ^= f::<KIND>(*from, key);
    }
}

/// f of kind `KIND`, 1 to 3.
#[inline(always)]
pub(super) fn f<const KIND: usize>(data: u32, [mask, rotation]: RoundKey) -> u32 {
    let [s1, s2, s3, s4] = &sbox::ROUND;
    let i = match KIND {
        1 => mask.wrapping_add(data),
        2 => mask ^ data,
        _ => mask.wrapping_sub(data),
    };
    let [a, b, c, d] = i.rotate_left(rotation).to_be_bytes().map(usize::from);
    match KIND {
        1 => (s1[a] ^ s2[b]).wrapping_sub(s3[c]).wrapping_add(s4[d]),
        2 => s1[a].wrapping_sub(s2[b]).wrapping_add(s3[c]) ^ s4[d],
        _ => (s1[a].wrapping_add(s2[b]) ^ s3[c]).wrapping_sub(s4[d]),
    }
}
