//! Metadata that lie: each is refused with what is wrong, in bounded time and memory.

use crate::maker::{self, BITMAP, CHUNK, COPIES, ON_WRITE, Recipe};
use crate::{SIZE, clear, device, nothing, plaintext, unlock};
use cryptmark_volume::{Access, Verdict};

/// A field of the metadata that is changed, with checksum and digest made right again.
struct Lie {
    name: &'static str,
    at: usize,
    bytes: &'static [u8],
    told: &'static str,
}

const fn lie(name: &'static str, at: usize, bytes: &'static [u8], told: &'static str) -> Lie {
    Lie {
        name,
        at,
        bytes,
        told,
    }
}

const FULL: [u8; 8] = [0xff; 8];

/// Of all copies alike.
const METADATA: &[Lie] = &[
    lie("no signature", 0, b"-FVE-FX-", "signature"),
    lie("version 0", 10, &[0, 0], "version 0"),
    lie("version 3", 10, &[3, 0], "version 3"),
    lie("largest version", 10, &[0xff, 0xff], "version 65535"),
    lie("size 0", 8, &[0, 0], "size"),
    lie("size of the head less one", 8, &[6, 0], "size"),
    lie(
        "size that is longer than there is",
        8,
        &[0xff, 0x0f],
        "checksum",
    ),
    lie("largest size", 8, &[0xff, 0xff], "size"),
    lie("state 0", 12, &[0, 0], ""),
    lie("state that is not known", 12, &[9, 0], ""),
    lie(
        "encrypted up to half a sector",
        16,
        &[0, 1, 0],
        "encrypted size",
    ),
    lie(
        "encrypted up to the end of the world",
        16,
        &FULL,
        "encrypted size",
    ),
    lie(
        "first sectors behind the end",
        56,
        &[0, 0, 0, 0, 1],
        "is cut off",
    ),
    lie(
        "first sectors at the end of the world",
        56,
        &FULL,
        "data area",
    ),
    lie("first sectors that are not aligned", 56, &[1], "data area"),
    lie("first sectors that are all", 28, &FULL, "is cut off"),
    lie("first copy in another place", 32, &[0, 2], ""),
    lie("first copy at the end of the world", 32, &FULL, ""),
    lie("set of no size", 64, &[0, 0, 0, 0], "entries end"),
    lie(
        "set that is too long",
        64,
        &[0xff, 0xff, 0, 0],
        "entries end",
    ),
    lie("largest set", 64, &[0xff; 4], "entries end"),
    lie(
        "entries that begin in the head",
        72,
        &[40, 0, 0, 0],
        "entries end",
    ),
    lie(
        "entries that begin behind their end",
        72,
        &[0xff, 0xff, 0, 0],
        "entries end",
    ),
    lie(
        "entries that begin at the end of the world",
        72,
        &[0xff; 4],
        "entries end",
    ),
    lie(
        "entries that end before they begin",
        76,
        &[0, 0, 0, 0],
        "entries end",
    ),
    lie(
        "entries that end behind the set",
        76,
        &[0xff, 0xff, 0, 0],
        "entries end",
    ),
    lie(
        "entries that end at the end of the world",
        76,
        &[0xff; 4],
        "entries end",
    ),
    lie("method 0", 100, &[0, 0], "encryption method"),
    lie("method 0x8006", 100, &[6, 0x80], "encryption method"),
    lie(
        "method that is another one",
        100,
        &[2, 0x80],
        "method of the data's key",
    ),
    lie("entry that is too short", 112, &[7, 0], "entry size"),
    lie("entry of one byte", 112, &[1, 0], "entry size"),
    lie("entry that is too long", 112, &[0xff, 0xff], "entry size"),
    lie("entry of no size first", 112, &[0, 0], "no protector"),
];

#[test]
fn metadata_that_lie() {
    for Lie {
        name,
        at,
        bytes,
        told,
    } in METADATA
    {
        let recipe = clear(Recipe::default());
        let mut image = recipe.make(plaintext()).image;
        let whole = maker::metadata(&recipe);
        let size = usize::from(u16::from_le_bytes([whole[8], whole[9]])) * 16;
        let mut lying = whole[..size].to_vec();
        lying[*at..][..bytes.len()].copy_from_slice(bytes);
        let lying = maker::checked(lying, 2);
        for copy in COPIES {
            image[copy..][..lying.len()].copy_from_slice(&lying);
        }
        assert_told(name, &image, told);
    }
}

#[track_caller]
fn assert_told(name: &str, image: &[u8], told: &str) {
    let device = device(image);
    let outcome = unlock(&device, &nothing(), Access::Read);
    let outcome = outcome.and_then(|opened| {
        let warnings = opened.warnings.iter().map(ToString::to_string);
        let warnings: Vec<_> = warnings.collect();
        opened.device(&device, &device).map(|_| warnings.join("; "))
    });
    match outcome {
        Ok(warnings) => assert!(warnings.contains(told), "{name}: it opens: {warnings}"),
        Err(error) => {
            let said = error.to_string();
            assert!(!told.is_empty() && said.contains(told), "{name}: {said}");
            assert_ne!(error.verdict(), Verdict::Failed, "{name}: {said}");
        }
    }
}

/// Of the boot sector.
const BOOT: &[Lie] = &[
    lie("sectors of 1 byte", 11, &[1, 0], "sectors of 1 bytes"),
    lie(
        "sectors of 64 KiB less one",
        11,
        &[0xff, 0xff],
        "sectors of 65535",
    ),
    lie("sectors of 8192", 11, &[0, 0x20], "sectors of 8192"),
    lie("no sector size", 11, &[0, 0], ""),
    lie("no identifier", 160, &[0; 16], "-FVE-FS-"),
    lie("copies at 0", 176, &[0; 24], "signature"),
    lie(
        "copies at the end of the world",
        176,
        &[0xff; 24],
        "metadata",
    ),
    lie(
        "copies behind the end",
        176,
        &[
            0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0,
        ],
        "metadata",
    ),
    lie(
        "copies that are one",
        184,
        &[0, 0, 16, 0, 0, 0, 0, 0, 0, 0, 16, 0, 0, 0, 0, 0],
        "",
    ),
];

#[test]
fn boot_sectors_that_lie() {
    for Lie {
        name,
        at,
        bytes,
        told,
    } in BOOT
    {
        let mut image = clear(Recipe::default()).make(plaintext()).image;
        image[*at..][..bytes.len()].copy_from_slice(bytes);
        let told = match *name {
            // It begins like a volume of Windows Vista, whose metadata are in cluster 0.
            "no identifier" => "",
            _ => told,
        };
        if *name != "no identifier" {
            assert_told(name, &image, told);
            continue;
        }
        assert!(unlock(&device(&image), &nothing(), Access::Read).is_err());
    }
    // Volumes that are cut off anywhere.
    let image = clear(Recipe::default()).make(plaintext()).image;
    let whole = COPIES[2] + (64 << 10);
    for length in [
        512,
        4096,
        COPIES[0],
        COPIES[0] + 512,
        COPIES[2],
        whole,
        SIZE - 4096,
    ] {
        let device = device(&image[..length]);
        let read = unlock(&device, &nothing(), Access::Read);
        let written = unlock(&device, &nothing(), Access::Write);
        assert_eq!(read.is_ok(), length >= COPIES[2], "{length}");
        assert_eq!(written.is_ok(), length >= whole, "{length}");
    }
}

/// Of what tells of the bitmaps, and of the bitmap: which of them, where, and where its checksum is.
const ON_WRITE_LIES: &[(Part, Lie)] = &[
    (
        Part::Head,
        lie("no signature", 0, b"FVE-EOX\0", "signature"),
    ),
    (Part::Head, lie("head of no size", 8, &[0, 0], "head size")),
    (
        Part::Head,
        lie("head of another size", 8, &[64, 0], "head size"),
    ),
    (
        Part::Head,
        lie("head that is longer than all", 10, &[8, 0], "head size"),
    ),
    (
        Part::Head,
        lie("chunks of no size", 20, &[0; 4], "chunk size"),
    ),
    (
        Part::Head,
        lie("chunks of a byte", 20, &[1, 0, 0, 0], "chunk size"),
    ),
    (
        Part::Head,
        lie("chunks of no power of two", 20, &[0, 0, 3, 0], "chunk size"),
    ),
    (
        Part::Head,
        lie("largest chunks", 20, &[0xff; 4], "chunk size"),
    ),
    (Part::Head, lie("largest log", 24, &[0xff; 4], "")),
    (
        Part::Head,
        lie("bitmap at the end of the world", 56, &FULL, "bitmap"),
    ),
    (
        Part::Head,
        lie("bitmap in the boot sector", 56, &[0; 8], "signature"),
    ),
    (
        Part::Bitmap,
        lie("no signature", 0, b"FVE-EOWBX\0", "signature"),
    ),
    (Part::Bitmap, lie("no size", 12, &[0; 4], "record offset")),
    (
        Part::Bitmap,
        lie("largest size", 12, &[0xff; 4], "bitmap size"),
    ),
    (
        Part::Bitmap,
        lie("size behind the end", 12, &[0, 0, 0xf0, 0], "bitmap"),
    ),
    (
        Part::Bitmap,
        lie("region that begins late", 20, &[0, 0, 1], ""),
    ),
    (
        Part::Bitmap,
        lie("region at the end of the world", 20, &FULL, "region size"),
    ),
    (
        Part::Bitmap,
        lie("largest region", 28, &FULL, "region size"),
    ),
    (
        Part::Bitmap,
        lie("log at the end of the world", 36, &FULL, ""),
    ),
    (
        Part::Bitmap,
        lie("record in the head", 44, &[0; 4], "record offset"),
    ),
    (
        Part::Bitmap,
        lie(
            "record at the end of the world",
            44,
            &[0xff; 4],
            "record offset",
        ),
    ),
    (Part::Record, lie("no signature", 0, b"FVE-EOWBX\0", "")),
    (Part::Record, lie("no size", 12, &[0; 4], "")),
    (Part::Record, lie("largest size", 12, &[0xff; 4], "")),
    (
        Part::Record,
        lie("fewer bits than chunks", 16, &[1, 0, 0, 0], ""),
    ),
];

#[derive(Clone, Copy)]
enum Part {
    Head,
    Bitmap,
    /// The newer one: the older one counts then.
    Record,
}

#[test]
fn bitmaps_that_lie() {
    let recipe = clear(Recipe {
        chunks: Some(vec![true; SIZE / CHUNK]),
        ..Recipe::default()
    });
    let good = recipe.make(plaintext()).image;
    let second = u32::from_le_bytes(*good[BITMAP + 48..].first_chunk().unwrap()) as usize;
    for (
        part,
        Lie {
            name,
            at,
            bytes,
            told,
        },
    ) in ON_WRITE_LIES
    {
        let mut image = good.clone();
        let (starts, length, sum) = match part {
            Part::Head => (ON_WRITE.to_vec(), 64, 36),
            Part::Bitmap => (vec![BITMAP], 64, 56),
            Part::Record => (vec![BITMAP + second], 36 + SIZE / CHUNK / 8, 32),
        };
        for start in starts {
            let bytes_there = &mut image[start..start + length];
            bytes_there[*at..][..bytes.len()].copy_from_slice(bytes);
            let summed = maker::summed(bytes_there.to_vec(), sum);
            bytes_there.copy_from_slice(&summed);
        }
        assert_told(name, &image, told);
    }
    let mut image = good;
    for at in [BITMAP + 64, BITMAP + second] {
        image[at + 36] ^= 1;
    }
    assert_told("both records have wrong checksums", &image, "checksum");
}
