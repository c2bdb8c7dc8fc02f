//! LUKS2: the binary header, its two copies and their checksums.

use crate::kit::{
    Attempt, COPIES, Case, Expected, HEADER, SIZE, cut, damaged, luks2, luks2_for, put, refused,
};
use cryptmark_volume::Format;

const VERSION: usize = 6;
const HEADER_SIZE: usize = 8;
const SEQID: usize = 16;
const LABEL: usize = 24;
const CHECKSUM_NAME: usize = 72;
const UUID: usize = 168;
const SUBSYSTEM: usize = 208;
const OFFSET: usize = 256;
const PADDING: usize = 264;
const CHECKSUM: usize = 448;

fn bad(damage: &str) -> Expected {
    damaged(Format::Luks2, damage)
}

fn size(name: &str, bytes: u64, expected: Expected) -> Case {
    luks2(
        name,
        |v| v.fields(HEADER_SIZE, &bytes.to_be_bytes()),
        expected,
    )
}

pub fn cases() -> Vec<Case> {
    let mut cases = vec![
        luks2("as_it_was_made", |_| (), Expected::Opens),
        luks2(
            "version_3_in_both_copies",
            |v| v.fields(VERSION, &[0, 3]),
            refused("this is not a LUKS2 volume"),
        ),
        luks2(
            "version_1_in_both_copies",
            |v| v.fields(VERSION, &[0, 1]),
            refused("this is not a LUKS2 volume"),
        ),
        luks2(
            "magic_of_the_other_copy_in_both",
            |v| {
                v.field(0, 0, b"SKUL");
                v.field(HEADER, 0, b"LUKS");
            },
            refused("this is not a LUKS2 volume"),
        ),
        size(
            "header_size_0",
            0,
            bad("`hdr_size` is 0, and must be 16 KiB to 4 MiB, a power of two"),
        ),
        size(
            "header_size_of_the_binary_alone",
            4096,
            bad("`hdr_size` is 4096, and must be 16 KiB to 4 MiB, a power of two"),
        ),
        size(
            "header_size_8_kib",
            8 << 10,
            bad("`hdr_size` is 8192, and must be 16 KiB to 4 MiB, a power of two"),
        ),
        size(
            "header_size_of_no_power_of_two",
            24 << 10,
            bad("`hdr_size` is 24576, and must be 16 KiB to 4 MiB, a power of two"),
        ),
        size(
            "header_size_8_mib",
            8 << 20,
            bad("`hdr_size` is 8388608, and must be 16 KiB to 4 MiB, a power of two"),
        ),
        size(
            "header_size_2_to_the_63",
            1 << 63,
            bad("`hdr_size` is 9223372036854775808, and must be 16 KiB to 4 MiB, a power of two"),
        ),
        size(
            "header_size_all_ones",
            u64::MAX,
            bad("`hdr_size` is 18446744073709551615, and must be 16 KiB to 4 MiB, a power of two"),
        ),
        size(
            "header_size_longer_than_the_volume",
            4 << 20,
            refused(
                "this LUKS2 volume is cut off: it needs 4194304 bytes, and the file or device has \
                 1114112",
            ),
        ),
        size(
            "header_size_of_more_than_was_sealed",
            32 << 10,
            bad("the checksum of the header is wrong"),
        ),
        luks2(
            "offset_of_the_first_copy_wrong",
            |v| {
                v.field(0, OFFSET, &512_u64.to_be_bytes());
                v.destroy(HEADER);
            },
            bad("`hdr_offset` is 512, and it was read from 0"),
        ),
        luks2(
            "offset_of_the_second_copy_wrong",
            |v| {
                v.destroy(0);
                v.field(HEADER, OFFSET, &0_u64.to_be_bytes());
            },
            bad("`hdr_offset` is 0, and it was read from 16384"),
        ),
        luks2(
            "offset_wrong_in_both_copies",
            |v| v.fields(OFFSET, &u64::MAX.to_be_bytes()),
            bad("`hdr_offset` is 18446744073709551615, and it was read from 0"),
        ),
        luks2(
            "second_copy_says_another_size_than_its_place",
            |v| {
                v.destroy(0);
                v.field(HEADER, HEADER_SIZE, &(32_u64 << 10).to_be_bytes());
            },
            bad("`hdr_size` is 32768, and the second copy was read from 16384"),
        ),
        luks2(
            "second_copy_where_none_may_stand",
            |v| {
                let copy = v.bytes[HEADER..2 * HEADER].to_vec();
                v.destroy(0);
                v.destroy(HEADER);
                put(&mut v.bytes, 24 << 10, &copy);
                v.field(24 << 10, OFFSET, &(24_u64 << 10).to_be_bytes());
            },
            refused("this is not a LUKS2 volume"),
        ),
        luks2(
            "both_copies_destroyed",
            |v| COPIES.iter().for_each(|&copy| v.destroy(copy)),
            refused("this is not a LUKS2 volume"),
        ),
        luks2(
            "both_copies_zeros",
            |v| v.bytes[..2 * HEADER].fill(0),
            refused("this is not a LUKS2 volume"),
        ),
    ];
    cases.extend(texts());
    cases.extend(checksums());
    cases.extend(survivors());
    for length in (0..4096).step_by(512).chain([4096, HEADER / 2, HEADER]) {
        let expected = match length {
            0..4096 => refused("this is not a LUKS2 volume"),
            HEADER => cut(Format::Luks2, length, 294_912),
            _ => cut(Format::Luks2, length, HEADER),
        };
        let name = format!("of_{length}_bytes_only");
        cases.push(luks2(&name, |v| v.bytes.truncate(length), expected));
    }
    cases
}

fn texts() -> Vec<Case> {
    vec![
        luks2(
            "label_without_end",
            |v| v.fields(LABEL, &[b'l'; 48]),
            Expected::Opens,
        ),
        luks2(
            "subsystem_without_end",
            |v| v.fields(SUBSYSTEM, &[b's'; 48]),
            Expected::Opens,
        ),
        luks2(
            "uuid_without_end",
            |v| v.fields(UUID, &[b'0'; 40]),
            Expected::Opens,
        ),
        luks2(
            "label_of_no_utf8",
            |v| v.fields(LABEL, b"\xe2\x82"),
            Expected::Opens,
        ),
        luks2(
            "label_that_a_terminal_obeys",
            |v| v.fields(LABEL, b"\x1b[2J"),
            Expected::Opens,
        ),
        luks2(
            "checksum_name_unknown",
            |v| v.fields(CHECKSUM_NAME, b"crc32\0\0"),
            refused("this LUKS2 volume uses `crc32` as its `csum_alg`, which is not supported"),
        ),
        luks2(
            "checksum_name_empty",
            |v| v.fields(CHECKSUM_NAME, &[0; 32]),
            refused("this LUKS2 volume uses `` as its `csum_alg`, which is not supported"),
        ),
        luks2(
            "checksum_name_without_end",
            |v| v.fields(CHECKSUM_NAME, &[b's'; 32]),
            refused(
                "this LUKS2 volume uses `ssssssssssssssssssssssssssssssss` as its `csum_alg`, which is not supported",
            ),
        ),
        luks2(
            "checksum_name_of_another_hash",
            |v| v.fields(CHECKSUM_NAME, b"sha512"),
            bad("the checksum of the header is wrong"),
        ),
        luks2(
            "padding_used",
            |v| v.fields(PADDING, &[0xff; 184]),
            Expected::Opens,
        ),
    ]
}

fn checksums() -> Vec<Case> {
    vec![
        luks2(
            "checksums_of_zeros",
            |v| {
                for copy in COPIES {
                    v.bytes[copy + CHECKSUM..][..64].fill(0);
                }
            },
            bad("the checksum of the header is wrong"),
        ),
        luks2(
            "checksums_of_each_other",
            |v| {
                let (first, second) = v.bytes.split_at_mut(HEADER);
                first[CHECKSUM..][..64].swap_with_slice(&mut second[CHECKSUM..][..64]);
            },
            bad("the checksum of the header is wrong"),
        ),
        luks2(
            "checksums_with_more_behind_them",
            |v| {
                for copy in COPIES {
                    v.bytes[copy + CHECKSUM + 63] = 1;
                }
            },
            Expected::Opens,
        ),
        luks2(
            "json_changed_without_its_checksum",
            |v| {
                for copy in COPIES {
                    v.bytes[copy + 4096] = b'[';
                }
            },
            bad("the checksum of the header is wrong"),
        ),
        luks2(
            "a_bit_behind_the_json_flipped",
            |v| {
                for copy in COPIES {
                    v.bytes[copy + HEADER - 1] ^= 1;
                }
            },
            bad("the checksum of the header is wrong"),
        ),
        luks2(
            "first_copy_torn_and_second_destroyed",
            |v| {
                v.bytes[HEADER / 2..HEADER].fill(0xff);
                v.destroy(HEADER);
            },
            bad("the checksum of the header is wrong"),
        ),
    ]
}

/// One copy is enough.
fn survivors() -> Vec<Case> {
    let epoch = |number: u64| number.to_be_bytes();
    vec![
        luks2("first_copy_destroyed", |v| v.destroy(0), Expected::Opens),
        luks2(
            "second_copy_destroyed",
            |v| v.destroy(HEADER),
            Expected::Opens,
        ),
        luks2(
            "first_copy_with_a_flipped_bit",
            |v| v.bytes[5000] ^= 4,
            Expected::Opens,
        ),
        luks2(
            "second_copy_with_a_flipped_bit",
            |v| v.bytes[HEADER + 300] ^= 4,
            Expected::Opens,
        ),
        luks2(
            "first_copy_of_version_1",
            |v| v.field(0, VERSION, &[0, 1]),
            Expected::Opens,
        ),
        luks2(
            "first_copy_stale_and_bad",
            |v| {
                let good = v.text();
                v.set_area(b"[]");
                let json = &mut v.bytes[HEADER + 4096..2 * HEADER];
                put(json, 0, good.as_bytes());
                v.field(0, SEQID, &epoch(1));
                v.seal(HEADER);
            },
            Expected::Opens,
        ),
        luks2(
            "first_copy_stale_with_another_keyslot",
            |v| {
                let good = v.text();
                v.replace("\"iterations\":1000", "\"iterations\":1001");
                v.field(0, SEQID, &epoch(1));
                put(&mut v.bytes[HEADER + 4096..2 * HEADER], 0, good.as_bytes());
                v.seal(HEADER);
            },
            Expected::Opens,
        ),
        luks2("epochs_0", |v| v.fields(SEQID, &epoch(0)), Expected::Opens),
        luks2(
            "epochs_all_ones",
            |v| v.fields(SEQID, &epoch(u64::MAX)),
            Expected::Opens,
        ),
        luks2_for(
            Attempt::Label,
            "epochs_all_ones_to_be_followed",
            |v| {
                v.fields(SEQID, &epoch(u64::MAX));
            },
            bad("`seqid` is 18446744073709551615, and no number follows it"),
        ),
        luks2_for(
            Attempt::Label,
            "first_copy_destroyed_to_be_changed",
            |v| v.destroy(0),
            Expected::Opens,
        ),
        luks2(
            "cut_behind_the_first_copy_and_material",
            |v| v.bytes.truncate(SIZE as usize - (64 << 10)),
            refused(
                "the data area (512 bytes from byte 1048576) does not fit into the device of \
                 1048576 bytes",
            ),
        ),
    ]
}
