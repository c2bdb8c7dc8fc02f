//! LUKS1: keyslots, the digest, and what they cost.

use crate::kit::{Case, Expected, luks1, no_keyslot, put, refused, untried, without_keyslots};
use crate::luks1::{bad, number};
use cryptmark_volume::Format;

const DIGEST: usize = 112;
const DIGEST_ITERATIONS: usize = 164;

/// Fields of a keyslot.
const STATE: usize = 0;
const ITERATIONS: usize = 4;
const SALT: usize = 8;
const MATERIAL: usize = 40;
const STRIPES: usize = 44;

const fn slot(number: usize, field: usize) -> usize {
    208 + 48 * number + field
}

pub fn cases() -> Vec<Case> {
    let mut cases = keyslots();
    cases.extend(costs());
    cases
}

fn keyslots() -> Vec<Case> {
    vec![
        number(
            "keyslot_state_0",
            slot(0, STATE),
            0,
            untried(0, "`key-slot-0.active` is 0, and must be 11301363 or 57005"),
        ),
        number(
            "keyslot_state_of_neither_kind",
            slot(7, STATE),
            0xAC71F4,
            Expected::Opens,
        ),
        number(
            "stripes_0",
            slot(0, STRIPES),
            0,
            untried(0, "`key-slot-0.stripes` is 0, and must be 1 to 16384"),
        ),
        number("stripes_1", slot(0, STRIPES), 1, no_keyslot()),
        number(
            "stripes_16385",
            slot(0, STRIPES),
            16_385,
            untried(0, "`key-slot-0.stripes` is 16385, and must be 1 to 16384"),
        ),
        number(
            "stripes_2_to_the_31",
            slot(0, STRIPES),
            1 << 31,
            untried(
                0,
                "`key-slot-0.stripes` is 2147483648, and must be 1 to 16384",
            ),
        ),
        number(
            "stripes_that_overflow_with_the_key",
            slot(0, STRIPES),
            u32::MAX,
            untried(
                0,
                "`key-slot-0.stripes` is 4294967295, and must be 1 to 16384",
            ),
        ),
        number(
            "keyslot_that_opens_is_disabled",
            slot(0, STATE),
            0xDEAD,
            no_keyslot(),
        ),
        luks1(
            "no_keyslot_at_all",
            |bytes| (0..8).for_each(|n| put(bytes, slot(n, STATE), &0xDEAD_u32.to_be_bytes())),
            without_keyslots(Format::Luks1),
        ),
        luks1(
            "keyslots_all_ones",
            |bytes| bytes[208..592].fill(0xff),
            refused(
                "none of the keyslots is usable; keyslot 0: `key-slot-0.active` is 4294967295, and \
                 must be 11301363 or 57005; keyslot 1: `key-slot-1.active` is 4294967295, and must \
                 be 11301363 or 57005; keyslot 2: `key-slot-2.active` is 4294967295, and must be \
                 11301363 or 57005; and 5 more",
            ),
        ),
        luks1(
            "nonsense_in_a_disabled_keyslot",
            |b| b[slot(5, ITERATIONS)..slot(6, 0)].fill(0xff),
            Expected::Opens,
        ),
        luks1(
            "salt_of_another_slot",
            |b| b.copy_within(slot(1, SALT)..slot(1, MATERIAL), slot(0, SALT)),
            no_keyslot(),
        ),
        luks1(
            "digest_of_zeros",
            |b| b[DIGEST..][..20].fill(0),
            no_keyslot(),
        ),
    ]
}

fn costs() -> Vec<Case> {
    let bomb = || {
        untried(
            0,
            "the key derivation takes about 858 s on one core, and the limit is 188 s",
        )
    };
    vec![
        number(
            "iterations_0",
            slot(0, ITERATIONS),
            0,
            untried(0, "`key-slot-0.iterations` is 0, and must be at least 1"),
        ),
        number(
            "iterations_2_to_the_32",
            slot(0, ITERATIONS),
            u32::MAX,
            bomb(),
        ),
        number(
            "iterations_2_to_the_32_in_a_later_slot",
            slot(1, ITERATIONS),
            u32::MAX,
            Expected::Opens,
        ),
        number(
            "iterations_one_too_many",
            slot(0, ITERATIONS),
            1_000_000_000,
            untried(
                0,
                "the key derivation takes about 200 s on one core, and the limit is 188 s",
            ),
        ),
        luks1(
            "iterations_too_many_in_all",
            |bytes| {
                let most = 900_000_000_u32.to_be_bytes();
                for nth in 0..8 {
                    put(bytes, slot(nth, STATE), &0x00AC_71F3_u32.to_be_bytes());
                    put(bytes, slot(nth, ITERATIONS), &most);
                }
                put(bytes, DIGEST_ITERATIONS, &most);
            },
            refused(
                "all key slots together take about 2880 s on one core, and the limit is 1500 s",
            ),
        ),
        number(
            "digest_iterations_0",
            DIGEST_ITERATIONS,
            0,
            bad("`mk-digest-iter` is 0, and must be at least 1"),
        ),
        number(
            "digest_iterations_2_to_the_32",
            DIGEST_ITERATIONS,
            u32::MAX,
            refused("the key derivation takes about 858 s on one core, and the limit is 188 s"),
        ),
    ]
}
