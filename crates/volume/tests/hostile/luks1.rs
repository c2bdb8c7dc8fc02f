//! LUKS1: the header, and where it puts things.

use crate::kit::{Case, DATA, Expected, cut, damaged, luks1, put, refused};
use cryptmark_volume::Format;

/// Where the header keeps what.
const VERSION: usize = 6;
const CIPHER: usize = 8;
const MODE: usize = 40;
const HASH: usize = 72;
const PAYLOAD: usize = 104;
const KEY_BYTES: usize = 108;
const UUID: usize = 168;

/// Where keyslot `number` says where its material is.
const fn material(number: usize) -> usize {
    208 + 48 * number + 40
}

pub fn bad(damage: &str) -> Expected {
    damaged(Format::Luks1, damage)
}

/// A number of 32 bits.
pub fn number(name: &str, at: usize, value: u32, expected: Expected) -> Case {
    luks1(name, |bytes| put(bytes, at, &value.to_be_bytes()), expected)
}

/// A text, with zeros behind it.
fn text(name: &str, at: usize, value: &str, expected: Expected) -> Case {
    let mut field = [0; 32];
    put(&mut field, 0, value.as_bytes());
    luks1(name, |bytes| put(bytes, at, &field), expected)
}

pub fn cases() -> Vec<Case> {
    let mut cases = vec![luks1("as_it_was_made", |_| (), Expected::Opens)];
    cases.extend(texts());
    cases.extend(places());
    for length in (0..4096).step_by(512) {
        let expected = match length {
            0 => refused("this is not a LUKS1 volume"),
            512 => cut(Format::Luks1, length, 592),
            _ => cut(Format::Luks1, length, 133_632),
        };
        let name = format!("of_{length}_bytes_only");
        cases.push(luks1(&name, |bytes| bytes.truncate(length), expected));
    }
    cases
}

fn texts() -> Vec<Case> {
    let not_this = || refused("this is not a LUKS1 volume");
    vec![
        luks1(
            "magic_of_the_second_copy",
            |b| put(b, 0, b"SKUL"),
            not_this(),
        ),
        luks1("magic_with_a_flipped_bit", |b| b[4] ^= 1, not_this()),
        luks1("version_0", |b| put(b, VERSION, &[0, 0]), not_this()),
        luks1("version_2", |b| put(b, VERSION, &[0, 2]), not_this()),
        luks1(
            "version_little_endian",
            |b| put(b, VERSION, &[1, 0]),
            not_this(),
        ),
        text(
            "cipher_unknown",
            CIPHER,
            "rot13",
            refused("unknown cipher `rot13`"),
        ),
        text(
            "cipher_empty",
            CIPHER,
            "",
            refused("`-cbc-essiv:sha256` is not a cipher specification"),
        ),
        text(
            "mode_unknown",
            MODE,
            "xyz-plain",
            refused("unknown mode `xyz`"),
        ),
        text(
            "mode_empty",
            MODE,
            "",
            refused("`aes-` is not a cipher specification"),
        ),
        text(
            "mode_without_iv",
            MODE,
            "cbc",
            refused("the mode `cbc` needs an IV generator"),
        ),
        text(
            "iv_unknown",
            MODE,
            "cbc-plain128",
            refused("unknown IV generator `plain128`"),
        ),
        text(
            "essiv_with_unknown_hash",
            MODE,
            "cbc-essiv:crc32",
            refused("unknown hash `crc32` for essiv"),
        ),
        text(
            "mode_that_the_cipher_has_not",
            CIPHER,
            "cast5",
            refused("essiv:sha256 is not possible for cast5: cast5 has no 256-bit key"),
        ),
        text(
            "hash_unknown",
            HASH,
            "crc32",
            refused("this LUKS1 volume uses `crc32` as its `hash-spec`, which is not supported"),
        ),
        text(
            "hash_empty",
            HASH,
            "",
            refused("this LUKS1 volume uses `` as its `hash-spec`, which is not supported"),
        ),
        text(
            "hash_that_a_terminal_obeys",
            HASH,
            "\x1b[2J\x07",
            refused("this LUKS1 volume uses `·[2J·` as its `hash-spec`, which is not supported"),
        ),
        luks1(
            "cipher_without_end",
            |b| b[CIPHER..][..32].fill(b'a'),
            refused("unknown cipher `aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa`"),
        ),
        luks1(
            "mode_without_end",
            |b| b[MODE..][..32].fill(b'c'),
            refused("unknown mode `cccccccccccccccccccccccccccccccc`"),
        ),
        luks1(
            "hash_without_end",
            |b| b[HASH..][..32].fill(b's'),
            refused(
                "this LUKS1 volume uses `ssssssssssssssssssssssssssssssss` as its `hash-spec`, which is not supported",
            ),
        ),
        luks1(
            "uuid_without_end",
            |b| b[UUID..][..40].fill(b'0'),
            Expected::Opens,
        ),
        luks1(
            "cipher_of_no_utf8",
            |b| put(b, CIPHER, b"\xff\xfe"),
            refused("unknown cipher `��s`"),
        ),
        luks1(
            "uuid_of_no_utf8",
            |b| put(b, UUID, b"\xc3\x28"),
            Expected::Opens,
        ),
        luks1("uuid_empty", |b| b[UUID..][..40].fill(0), Expected::Opens),
        luks1(
            "text_behind_the_end_of_the_hash",
            |b| put(b, HASH + 7, b"garbage"),
            Expected::Opens,
        ),
    ]
}

fn places() -> Vec<Case> {
    let sectors = |bytes: u64| (bytes / 512) as u32;
    vec![
        number(
            "key_of_0_bytes",
            KEY_BYTES,
            0,
            bad("`key-bytes` is 0, and aes-cbc-essiv:sha256 takes [16, 24, 32]"),
        ),
        number(
            "key_of_17_bytes",
            KEY_BYTES,
            17,
            bad("`key-bytes` is 17, and aes-cbc-essiv:sha256 takes [16, 24, 32]"),
        ),
        number(
            "key_of_513_bytes",
            KEY_BYTES,
            513,
            bad("`key-bytes` is 513, and aes-cbc-essiv:sha256 takes [16, 24, 32]"),
        ),
        number(
            "key_of_2_gib",
            KEY_BYTES,
            1 << 31,
            bad("`key-bytes` is 2147483648, and aes-cbc-essiv:sha256 takes [16, 24, 32]"),
        ),
        number(
            "key_of_4_gib",
            KEY_BYTES,
            u32::MAX,
            bad("`key-bytes` is 4294967295, and aes-cbc-essiv:sha256 takes [16, 24, 32]"),
        ),
        number(
            "key_whose_material_overlaps",
            KEY_BYTES,
            32,
            bad("the key material of keyslot 0 and the key material of keyslot 1 overlap"),
        ),
        number(
            "payload_in_the_header",
            PAYLOAD,
            1,
            bad("the key material of keyslot 0 and the data overlap"),
        ),
        number(
            "payload_in_key_material",
            PAYLOAD,
            16,
            bad("the key material of keyslot 0 and the data overlap"),
        ),
        number(
            "payload_of_a_detached_header",
            PAYLOAD,
            0,
            refused("the data of this LUKS1 volume would overlap its own header"),
        ),
        number(
            "payload_at_the_end",
            PAYLOAD,
            sectors(DATA + (64 << 10)),
            refused(
                "the data area (512 bytes from byte 1114112) does not fit into the device of \
                 1114112 bytes",
            ),
        ),
        number(
            "payload_behind_the_end",
            PAYLOAD,
            u32::MAX,
            refused(
                "the data area (512 bytes from byte 2199023255040) does not fit into the device of \
                 1114112 bytes",
            ),
        ),
        number(
            "material_in_the_header",
            material(0),
            0,
            bad("the key material of keyslot 0 and the header overlap"),
        ),
        number(
            "material_in_the_headers_last_bytes",
            material(0),
            1,
            bad("the key material of keyslot 0 and the header overlap"),
        ),
        number(
            "material_in_that_of_another_slot",
            material(1),
            9,
            bad("the key material of keyslot 0 and the key material of keyslot 1 overlap"),
        ),
        number(
            "material_of_two_slots_the_same",
            material(1),
            8,
            bad("the key material of keyslot 0 and the key material of keyslot 1 overlap"),
        ),
        number(
            "material_in_the_data",
            material(1),
            sectors(DATA),
            bad("the key material of keyslot 1 and the data overlap"),
        ),
        number(
            "material_across_the_datas_start",
            material(1),
            sectors(DATA) - 1,
            bad("the key material of keyslot 1 and the data overlap"),
        ),
        number(
            "material_behind_the_end",
            material(1),
            u32::MAX,
            bad("the key material of keyslot 1 and the data overlap"),
        ),
        luks1(
            "cut_in_the_key_material",
            |bytes| bytes.truncate(8192),
            refused(
                "this LUKS1 volume is cut off: it needs 133632 bytes, and the file or device has \
                 8192",
            ),
        ),
        luks1(
            "cut_before_the_data",
            |bytes| bytes.truncate(DATA as usize),
            refused(
                "the data area (512 bytes from byte 1048576) does not fit into the device of \
                 1048576 bytes",
            ),
        ),
    ]
}
