//! FileVault 2 volumes, made as macOS makes them, and metadata that lie.

mod maker;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use block::{BlockDevice, RamDevice};
use cipher::Key;
use cryptmark_volume::fvault2::Header;
use cryptmark_volume::{
    Access, Format, Limits, Opened, Opening, Secret, Terms, Verdict, VolumeError, Warning,
};
use maker::{
    BLOCK, EXTENTS, FAMILY, FAMILY_BYTES, LABEL, METADATA, PASSPHRASES, PLAIN, SIZE, UNIT, context,
    extents, logical_volume, metadata, plaintext, put, summed, volume_key, with_list,
};
use std::ops::ControlFlow;

fn volume(blocks: Vec<Vec<u8>>) -> Vec<u8> {
    maker::volume(blocks, &EXTENTS)
}

fn device(image: &[u8]) -> RamDevice {
    let device = RamDevice::new(image.len() as u64);
    device.write_at(0, image).unwrap();
    device
}

fn unlock(device: &RamDevice, secret: &Secret, access: Access) -> Result<Opened, VolumeError> {
    let limits = Limits::default();
    let watch = |_, _| ControlFlow::Continue(());
    let terms = Terms {
        access,
        ..Terms::reading(&limits, &watch)
    };
    Opening::Fvault2.unlock(device, device, secret, &terms)
}

fn passphrase(text: &str) -> Secret {
    Secret::Passphrase(Key::from_slice(text.as_bytes()))
}

fn content(device: &RamDevice, opened: Opened) -> Vec<u8> {
    let view = opened.device::<&dyn BlockDevice>(device, device).unwrap();
    let mut bytes = vec![0; view.geometry().size as usize];
    view.read_at(0, &mut bytes).unwrap();
    bytes
}

#[test]
fn every_secret_opens_it() {
    let device = device(&volume(metadata()));
    assert_eq!(Format::detect(&device).unwrap(), Some(Format::Fvault2));
    let secrets = [
        (passphrase(PASSPHRASES[0]), Some(0)),
        (passphrase(PASSPHRASES[1]), Some(1)),
        (Secret::VolumeKey(volume_key()), None),
    ];
    for (secret, slot) in secrets {
        let opened = unlock(&device, &secret, Access::Read).unwrap();
        assert_eq!(opened.slot, slot);
        assert!(content(&device, opened) == plaintext());
    }
    for secret in [
        passphrase("another"),
        Secret::VolumeKey(Key::from_slice(&[7; 32])),
    ] {
        let error = unlock(&device, &secret, Access::Read).unwrap_err();
        assert_eq!(error.verdict(), Verdict::WrongSecret, "{error}");
    }
    let header = Header::read(&device).unwrap();
    assert_eq!((header.size, header.extents.len()), (PLAIN as u64, 2));
    assert_eq!(header.name.as_deref(), Some("Data"));
    assert_eq!(header.family.as_bytes(), &FAMILY_BYTES);
}

#[test]
fn what_is_written_is_read_and_nothing_else_changes() {
    let image = volume(metadata());
    let device = device(&image);
    let secret = passphrase(PASSPHRASES[0]);
    let opened = unlock(&device, &secret, Access::Write).unwrap();
    let view = opened.device::<&dyn BlockDevice>(&device, &device).unwrap();
    // Across the end of the first extent.
    let at = 400 * UNIT - 1024;
    view.write_at(at as u64, &[7; 2048]).unwrap();
    let mut expected = plaintext();
    expected[at..at + 2048].fill(7);
    let opened = unlock(&device, &secret, Access::Read).unwrap();
    assert!(content(&device, opened) == expected);
    let mut after = vec![0; SIZE];
    device.read_at(0, &mut after).unwrap();
    let changed: Vec<usize> = (0..SIZE / 512)
        .filter(|nth| after[nth * 512..][..512] != image[nth * 512..][..512])
        .collect();
    let (first, second) = ((1000 * UNIT - 1024) / 512, 1100 * UNIT / 512);
    assert_eq!(changed, [first, first + 1, second, second + 1]);
}

/// False metadata are refused. Each case has its change and a part of the message.
#[test]
fn metadata_that_lie_are_refused() {
    type Change = fn(&mut Vec<Vec<u8>>);
    let cases: &[(&str, Change, &str)] = &[
        ("no context", |m| drop(m.remove(1)), "no keyslot left"),
        ("no volume", |m| drop(m.remove(2)), "logical volume"),
        ("no extents", |m| m.truncate(3), "extents"),
        ("nothing", |m| m.clear(), "logical volume"),
        (
            "a list behind the block",
            |m| put(&mut m[1], 112, &8000_u32.to_le_bytes()),
            "property list",
        ),
        (
            "the longest list",
            |m| put(&mut m[1], 116, &[0xff; 4]),
            "property list",
        ),
        (
            "a compressed list",
            |m| put(&mut m[1], 200, &[0x78, 0x9c]),
            "compressed",
        ),
        (
            "a list that is no XML",
            |m| m[1] = with_list(0x19, 5, 112, "<dict><key></dict>"),
            "XML",
        ),
        (
            "entities",
            |m| {
                m[1] = with_list(
                    0x19,
                    5,
                    112,
                    "<!DOCTYPE d [<!ENTITY a 'aa'>]><dict>&a;</dict>",
                )
            },
            "XML",
        ),
        (
            "a key that is not in base 64",
            |m| {
                let list = "<dict><key>PassphraseWrappedKEKStruct</key><data>!</data></dict>";
                m[1] = with_list(0x19, 5, 112, list);
            },
            "base 64",
        ),
        (
            "a key that is too short",
            |m| {
                let list = "<dict><key>PassphraseWrappedKEKStruct</key><data>AAAA</data></dict>";
                m[1] = with_list(0x19, 5, 112, list);
            },
            "PassphraseWrappedKEKStruct",
        ),
        (
            "a conversion that has not ended",
            |m| m[1] = with_list(0x19, 5, 112, &context().replace("Complete", "Converting")),
            "Converting",
        ),
        (
            "more iterations than anybody waits for",
            |m| {
                let mut told = vec![0; 284];
                put(&mut told, 168, &[0xff; 4]);
                let told = STANDARD.encode(told);
                let list = format!(
                    "<dict><key>PassphraseWrappedKEKStruct</key><data>{told}</data></dict>"
                );
                m[1] = with_list(0x19, 5, 112, &list);
            },
            "takes about 858 s",
        ),
        (
            "no size",
            |m| m[2] = with_list(0x1a, 5, 128, &logical_volume(0)),
            "size of the logical volume",
        ),
        (
            "a size beyond the extents",
            |m| m[2] = with_list(0x1a, 5, 128, &logical_volume(601 * UNIT)),
            "size of the logical volume",
        ),
        (
            "a size that is no number",
            |m| {
                let list = logical_volume(1).replace("0x1<", "many<");
                m[2] = with_list(0x1a, 5, 128, &list);
            },
            "size",
        ),
        (
            "a family that is no UUID",
            |m| m[2] = with_list(0x1a, 5, 128, &logical_volume(PLAIN).replace(FAMILY, "F")),
            "familyUUID",
        ),
        (
            "another logical volume",
            |m| {
                let list = logical_volume(PLAIN).replace(">A<", ">B<");
                m.push(with_list(0x1a, 5, 128, &list));
            },
            "several logical volumes",
        ),
        (
            "the most extents",
            |m| put(&mut m[3], 64, &[0xff; 4]),
            "extents",
        ),
        (
            "extents with a hole between them",
            |m| m[3] = extents(&[(0, 600, 400), (401, 1100, 200)]),
            "start of an extent",
        ),
        (
            "extents that overlap",
            |m| m[3] = extents(&[(0, 600, 400), (399, 1100, 201)]),
            "start of an extent",
        ),
        (
            "an extent behind the end",
            |m| m[3] = extents(&[(0, 1 << 40, 600)]),
            "data area",
        ),
        (
            "an extent at the end of the world",
            |m| m[3] = extents(&[(u64::MAX, 600, 400)]),
            "extent",
        ),
        (
            "an extent on another disk",
            |m| put(&mut m[3], 72 + 38, &[1, 0]),
            "several physical volumes",
        ),
    ];
    for (name, change, told) in cases {
        let mut blocks = metadata();
        change(&mut blocks);
        let device = device(&volume(blocks));
        let error = unlock(&device, &passphrase(PASSPHRASES[0]), Access::Read).unwrap_err();
        let said = error.to_string();
        assert!(said.contains(told), "{name}: {said}");
        assert_ne!(error.verdict(), Verdict::Failed, "{name}: {said}");
    }
}

#[test]
fn headers_that_lie_are_refused() {
    let cases: &[(&str, usize, &[u8], &str)] = &[
        ("blocks of no size", 96, &[0; 4], "block size"),
        ("blocks of no power of two", 96, &[0, 3, 0, 0], "block size"),
        ("the largest blocks", 96, &[0xff; 4], "block size"),
        ("another method", 172, &[3, 0, 0, 0], "encryption method"),
        ("a longer key", 168, &[32, 0, 0, 0], "encryption method"),
        (
            "the label at the end of the world",
            104,
            &[0xff; 8],
            "disk label",
        ),
        ("the label in the header", 104, &[0; 8], "disk label"),
    ];
    for (name, at, bytes, told) in cases {
        let mut image = volume(metadata());
        put(&mut image, *at, bytes);
        summed(&mut image[..512]);
        let error = Header::read(&device(&image)).unwrap_err().to_string();
        assert!(error.contains(told), "{name}: {error}");
    }
    let mut image = volume(metadata());
    image[200] ^= 1;
    let error = Header::read(&device(&image)).unwrap_err().to_string();
    assert!(error.contains("checksum"), "{error}");
    // A block that is damaged is not there.
    let mut image = volume(metadata());
    image[METADATA + 3 * BLOCK + 5000] ^= 1;
    let error = Header::read(&device(&image)).unwrap_err().to_string();
    assert!(error.contains("size of the logical volume"), "{error}");
    for length in [512, LABEL, METADATA, METADATA + BLOCK, 600 * UNIT] {
        let image = volume(metadata());
        let device = device(&image[..length]);
        assert!(unlock(&device, &passphrase(PASSPHRASES[0]), Access::Read).is_err());
    }
}

#[test]
fn a_volume_that_is_cut_off_is_read_up_to_the_first_gap() {
    let image = volume(metadata());
    let needed = (1100 + 190) * UNIT as u64 + 512;
    for (units, there) in [(601, 1), (1000, 400), (1100, 400), (1101, 401), (1290, 590)] {
        let got = (units * UNIT) as u64;
        let device = device(&image[..units * UNIT]);
        for secret in [passphrase(PASSPHRASES[0]), Secret::VolumeKey(volume_key())] {
            let opened = unlock(&device, &secret, Access::Read).unwrap();
            assert_eq!(
                opened.warnings,
                [Warning::CutOff { needed, got }],
                "{units}"
            );
            assert!(
                content(&device, opened) == plaintext()[..there * UNIT],
                "{units}"
            );
            let error = unlock(&device, &secret, Access::Write).unwrap_err();
            assert!(matches!(error, VolumeError::Cut { .. }), "{error}");
        }
    }
}
