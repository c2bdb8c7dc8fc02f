//! BitLocker volumes: every method, protector and state, and metadata that lie.

mod damage;
mod maker;

use block::layer::Slice;
use block::model::Model;
use block::{BlockDevice, ByteRange, RamDevice};
use cipher::{Key, SectorSize};
use cryptmark_volume::bitlk::{Header, ProtectorKind};
use cryptmark_volume::judge::State;
use cryptmark_volume::{
    Access, Format, Limits, Opened, Opening, Secret, Terms, Verdict, VolumeError, Warning,
};
use maker::{CHUNK, COPIES, MOVED, Made, PASSPHRASE, RECOVERY, Recipe, protection};
use std::ops::ControlFlow;

const SIZE: usize = 5 << 20;

/// A plaintext that begins as NTFS does, and has the start of a file table where that says.
fn plaintext() -> Vec<u8> {
    let mut plain: Vec<u8> = (0..SIZE as u32 / 4)
        .flat_map(|word| word.wrapping_mul(0x9e37_79b9).to_le_bytes())
        .collect();
    plain[..11].copy_from_slice(b"\xeb\x52\x90NTFS    ");
    plain[11..13].copy_from_slice(&512_u16.to_le_bytes());
    plain[13] = 8;
    plain[48..56].copy_from_slice(&(FILE_TABLE as u64 / 4096).to_le_bytes());
    plain[FILE_TABLE..][..4].copy_from_slice(b"FILE");
    plain[510..512].copy_from_slice(b"\x55\xaa");
    plain
}

const FILE_TABLE: usize = 9 << 19;

fn device(image: &[u8]) -> RamDevice {
    let device = RamDevice::new(image.len() as u64);
    device.write_at(0, image).unwrap();
    device
}

fn content(device: &dyn BlockDevice) -> Vec<u8> {
    let mut bytes = vec![0; device.geometry().size as usize];
    device.read_at(0, &mut bytes).unwrap();
    bytes
}

fn passphrase(text: &str) -> Secret {
    Secret::Passphrase(Key::from_slice(text.as_bytes()))
}

fn nothing() -> Secret {
    passphrase("")
}

fn unlock(
    device: &dyn BlockDevice,
    secret: &Secret,
    access: Access,
) -> Result<Opened, VolumeError> {
    let limits = Limits::default();
    let watch = |_, _| ControlFlow::Continue(());
    Opening::Bitlk.unlock(
        device,
        device,
        secret,
        &Terms {
            access,
            // Most of these volumes have a clear key.
            accepted: &[State::Exposed],
            ..Terms::reading(&limits, &watch)
        },
    )
}

#[track_caller]
fn assert_opens(made: &Made, secret: &Secret) {
    let device = device(&made.image);
    let opened = unlock(&device, secret, Access::Read).unwrap();
    let view = opened.device::<&dyn BlockDevice>(&device, &device).unwrap();
    assert!(content(&*view) == made.plaintext, "another plaintext");
}

/// What the volume is said to leave unprotected, and the verdict on writing it.
fn judged(image: &[u8]) -> (Vec<&'static str>, Option<Verdict>) {
    let device = device(image);
    let opened = unlock(&device, &nothing(), Access::Read).unwrap();
    let kinds = opened.warnings.iter().map(Warning::kind).collect();
    let written = unlock(&device, &nothing(), Access::Write);
    (kinds, written.err().map(|error| error.verdict()))
}

/// Nobody needs a secret to change the state of Vista's volumes, bitmaps, or all of the metadata.
#[test]
fn what_is_not_encrypted_is_told_and_not_written() {
    let all = vec![true; SIZE / CHUNK];
    let some = |not: usize| (0..all.len()).map(|chunk| chunk != not).collect();
    let chunks = |chunks: Vec<bool>| Recipe {
        chunks: Some(chunks),
        up_to: SIZE as u64,
        ..Recipe::default()
    };
    let vista = |up_to| Recipe {
        version: 1,
        method: 0x8002,
        up_to,
        ..Recipe::default()
    };
    let (half, whole) = (SIZE as u64 / 2, SIZE as u64);
    let cases = [
        ("encrypted", Recipe::default(), None),
        (
            "up to its end",
            Recipe {
                up_to: whole,
                ..Recipe::default()
            },
            None,
        ),
        (
            "up to half",
            Recipe {
                up_to: half,
                ..Recipe::default()
            },
            Some("unprotected"),
        ),
        ("all chunks", chunks(all.clone()), None),
        ("but the first chunk", chunks(some(0)), Some("unprotected")),
        ("but one chunk", chunks(some(20)), Some("unprotected")),
        (
            "but the last chunk",
            chunks(some(all.len() - 1)),
            Some("unprotected"),
        ),
        (
            "fewer chunks",
            chunks(all[1..].to_vec()),
            Some("unprotected"),
        ),
        ("no chunks", chunks(Vec::new()), Some("unprotected")),
        ("Vista", vista(0), None),
        ("Vista, up to its end", vista(whole), None),
        ("Vista, up to half", vista(half), Some("unprotected")),
        ("Vista, up to a sector", vista(512), Some("unprotected")),
        (
            "decrypted",
            Recipe {
                state: [1, 1],
                ..Recipe::default()
            },
            Some("plaintext"),
        ),
    ];
    for (name, recipe, warning) in cases {
        let (mut kinds, verdict) = judged(&clear(recipe).make(plaintext()).image);
        kinds.retain(|kind| *kind != "clear-key");
        assert_eq!(kinds, warning.into_iter().collect::<Vec<_>>(), "{name}");
        assert_eq!(verdict, warning.map(|_| Verdict::Protected), "{name}");
    }
    // The bitmaps say nothing: all counts as encrypted, and C, Python and the program agree.
    let mut image = clear(chunks(all)).make(plaintext()).image;
    for at in maker::ON_WRITE {
        image[at] ^= 1;
    }
    let (kinds, verdict) = judged(&image);
    assert_eq!(kinds, ["clear-key", "unknown-parts"]);
    assert_eq!(verdict, Some(Verdict::Protected));
}

/// A secret that is given is a claim, which a volume that needs none must not confirm unseen.
#[test]
fn a_secret_that_is_given_must_fit() {
    let protectors = vec![protection::CLEAR, protection::PASSPHRASE];
    for state in [[4, 4], [1, 1]] {
        let recipe = Recipe {
            state,
            protectors: protectors.clone(),
            ..Recipe::default()
        };
        let device = device(&recipe.make(plaintext()).image);
        let outcome = |secret: &Secret| unlock(&device, secret, Access::Read).map(drop);
        outcome(&nothing()).unwrap();
        outcome(&passphrase(PASSPHRASE)).unwrap();
        for wrong in [
            passphrase("wrong"),
            passphrase(RECOVERY),
            Secret::KeyFile(Key::new(maker::startup_key_file())),
            Secret::VolumeKey(Key::from_slice(&[7; 32])),
        ] {
            let error = outcome(&wrong).unwrap_err();
            assert_eq!(error.verdict(), Verdict::WrongSecret, "{state:?}: {error}");
        }
    }
}

/// Windows saves it as UTF-16 in the user's language. The identifier has digits as well.
#[test]
fn recovery_passwords_in_the_file_that_windows_saves() {
    let recipe = Recipe {
        protectors: vec![protection::RECOVERY],
        ..Recipe::default()
    };
    let made = recipe.make(plaintext());
    let identifier = "11111111-2222-3333-4444-555555555555";
    for words in [
        "Recovery Key",
        "Wiederherstellungsschl\u{fc}ssel",
        "\u{56de}\u{5fa9}",
    ] {
        let text = format!("{words}\r\n\r\n\t{identifier}\r\n{words}:\r\n\r\n\t{RECOVERY}\r\n");
        let wide = |mark: &[u8], bytes: fn(u16) -> [u8; 2]| {
            let units = text.encode_utf16().flat_map(bytes);
            [mark, &units.collect::<Vec<_>>()].concat()
        };
        for file in [
            wide(b"\xFF\xFE", u16::to_le_bytes),
            wide(b"\xFE\xFF", u16::to_be_bytes),
            text.as_bytes().to_vec(),
            [b"\xEF\xBB\xBF", text.as_bytes()].concat(),
        ] {
            assert_opens(&made, &Secret::KeyFile(Key::new(file)));
        }
    }
}

/// A volume with a clear key, which needs no slow key derivation.
fn clear(recipe: Recipe) -> Recipe {
    Recipe {
        protectors: vec![protection::CLEAR],
        ..recipe
    }
}

#[test]
fn every_method_and_sector_size() {
    for method in 0x8000..=0x8005 {
        for sector_size in SectorSize::ALL {
            for to_go in [false, true] {
                let recipe = clear(Recipe {
                    method,
                    sector_size,
                    to_go,
                    ..Recipe::default()
                });
                assert_opens(&recipe.make(plaintext()), &nothing());
            }
        }
    }
}

#[test]
fn volumes_of_vista() {
    for method in [0x8000, 0x8001, 0x8002, 0x8003] {
        let recipe = clear(Recipe {
            version: 1,
            method,
            ..Recipe::default()
        });
        let made = recipe.make(plaintext());
        assert_opens(&made, &nothing());
        let device = device(&made.image);
        assert_eq!(Format::detect(&device).unwrap(), Some(Format::Bitlk));
        let view = unlock(&device, &nothing(), Access::Write).unwrap();
        let view = view.device::<&dyn BlockDevice>(&device, &device).unwrap();
        // The boot sector that NTFS sees goes back as what BitLocker needs.
        let mut boot = made.plaintext[..512].to_vec();
        boot[100] ^= 1;
        view.write_at(0, &boot).unwrap();
        assert_opens_with(&device, |plain| plain[100] ^= 1, &made.plaintext);
        for at in [3, 56] {
            let mut other = boot.clone();
            other[at] ^= 1;
            assert!(view.write_at(0, &other).is_err(), "{at}");
        }
        assert_opens_with(&device, |plain| plain[100] ^= 1, &made.plaintext);
    }
}

fn assert_opens_with(device: &RamDevice, change: impl Fn(&mut [u8]), plaintext: &[u8]) {
    let mut expected = plaintext.to_vec();
    change(&mut expected);
    let opened = unlock(device, &nothing(), Access::Read).unwrap();
    let view = opened.device::<&dyn BlockDevice>(device, device).unwrap();
    assert!(content(&*view) == expected);
}

#[test]
fn every_secret_opens_its_protector() {
    let recipe = Recipe::default();
    let made = recipe.make(plaintext());
    let startup = maker::startup_key_file();
    for (secret, slot) in [
        (passphrase(PASSPHRASE), Some(1)),
        (passphrase(RECOVERY), Some(2)),
        (
            Secret::KeyFile(Key::from_slice(format!("{RECOVERY}\n").as_bytes())),
            Some(2),
        ),
        (Secret::KeyFile(Key::new(startup)), Some(3)),
        (
            Secret::VolumeKey(Key::new(maker::data_key(recipe.method).1)),
            None,
        ),
    ] {
        assert_opens(&made, &secret);
        let device = device(&made.image);
        assert_eq!(unlock(&device, &secret, Access::Read).unwrap().slot, slot);
    }
    let header = Header::read(&device(&made.image)).unwrap();
    assert!(!header.opens_by_itself());
    let kinds: Vec<ProtectorKind> = header.protectors.iter().map(|p| p.kind).collect();
    let tpm = ProtectorKind::Tpm {
        pin: false,
        startup_key: false,
    };
    let expected = [
        tpm,
        ProtectorKind::Passphrase,
        ProtectorKind::RecoveryPassword,
        ProtectorKind::StartupKey,
    ];
    assert_eq!(kinds, expected);
    assert_eq!(header.description.as_deref(), Some("HOST C: 27.11.2026"));
}

#[test]
fn protectors_for_other_hardware_are_named() {
    let recipe = Recipe {
        protectors: vec![
            protection::TPM_PIN,
            protection::CERTIFICATE,
            0x0300,
            0x0700,
            0x4000,
        ],
        ..Recipe::default()
    };
    let device = device(&recipe.make(plaintext()).image);
    let error = unlock(&device, &passphrase("any"), Access::Read).unwrap_err();
    assert_eq!(error.verdict(), Verdict::WrongSecret);
    let said = error.to_string();
    for name in [
        "TPM and PIN",
        "smart card or certificate",
        "TPM and startup key",
        "TPM, PIN and startup key",
        "unknown",
    ] {
        assert!(said.contains(name), "{said}");
    }
}

#[test]
fn the_key_as_windows_stores_it_and_as_a_cipher_takes_it() {
    for method in 0x8000..=0x8005 {
        let made = clear(Recipe {
            method,
            ..Recipe::default()
        })
        .make(plaintext());
        let (stored, key) = maker::data_key(method);
        for key in [stored, key] {
            assert_opens(&made, &Secret::VolumeKey(Key::new(key)));
        }
    }
}

#[test]
fn wrong_secrets_are_told_so() {
    let made = Recipe::default().make(plaintext());
    let device = device(&made.image);
    let mistyped = RECOVERY.replace("422125", "422126");
    let other = RECOVERY.replace("422125", "422114");
    for (secret, words) in [
        (
            passphrase("wrong"),
            "TPM, passphrase, recovery password, startup key",
        ),
        (passphrase(&mistyped), "group 3"),
        (passphrase(&other), "no protector opens"),
        (passphrase(""), "an empty passphrase"),
        (
            Secret::KeyFile(Key::from_slice(&[7; 32])),
            "no protector opens",
        ),
        (
            Secret::VolumeKey(Key::from_slice(&[7; 32])),
            "not the volume key",
        ),
    ] {
        let error = unlock(&device, &secret, Access::Read).unwrap_err();
        assert_eq!(error.verdict(), Verdict::WrongSecret, "{error}");
        let told = error.to_string();
        assert!(told.contains(words), "{told}");
        assert!(!told.contains("422"), "{told}");
    }
    let vista = Recipe {
        version: 1,
        method: 0x8001,
        protectors: vec![protection::RECOVERY],
        ..Recipe::default()
    };
    let device = self::device(&vista.make(plaintext()).image);
    let wrong = Secret::VolumeKey(Key::from_slice(&[7; 64]));
    let error = unlock(&device, &wrong, Access::Read).unwrap_err();
    assert!(matches!(error, VolumeError::WrongVolumeKey), "{error}");
}

#[test]
fn one_good_copy_is_enough() {
    for version in [1, 2] {
        let recipe = clear(Recipe {
            version,
            method: 0x8002,
            ..Recipe::default()
        });
        let made = recipe.make(plaintext());
        for good in 0..3 {
            // Vista's boot sector tells of the first copy alone.
            if version == 1 && good > 0 {
                continue;
            }
            let mut image = made.image.clone();
            for (nth, copy) in COPIES.into_iter().enumerate() {
                if nth != good {
                    image[copy + 200] ^= 1;
                }
            }
            let damaged = Made {
                image,
                plaintext: made.plaintext.clone(),
            };
            assert_opens(&damaged, &nothing());
        }
        let mut image = made.image.clone();
        for copy in COPIES {
            image[copy + 200] ^= 1;
        }
        let error = unlock(&device(&image), &nothing(), Access::Read).unwrap_err();
        assert!(error.to_string().contains("checksum"), "{error}");
    }
}

/// Any program can make a checksum, but the digest needs the key.
#[test]
fn metadata_that_the_key_does_not_confirm_are_refused() {
    let recipe = clear(Recipe::default());
    let mut made = recipe.make(plaintext());
    let metadata = maker::metadata(&recipe);
    let size = usize::from(u16::from_le_bytes([metadata[8], metadata[9]])) * 16;
    let mut forged = metadata[..size].to_vec();
    // The description, which nothing else depends on.
    forged[64 + 48 + 10] ^= 1;
    let sum = maker::crc32(&forged);
    forged.extend_from_slice(&metadata[size..]);
    forged[size + 4..size + 8].copy_from_slice(&sum.to_le_bytes());
    for copy in COPIES {
        made.image[copy..][..forged.len()].copy_from_slice(&forged);
    }
    let error = unlock(&device(&made.image), &nothing(), Access::Read).unwrap_err();
    assert!(
        error.to_string().contains("the volume's key confirms"),
        "{error}"
    );
}

#[test]
fn writing_is_what_a_byte_array_does() {
    let layouts = [
        (2, 0x8000, SectorSize::B512),
        (2, 0x8003, SectorSize::B512),
        (2, 0x8005, SectorSize::B4096),
        (1, 0x8001, SectorSize::B512),
    ];
    for (seed, (version, method, sector_size)) in (1..).zip(layouts) {
        let recipe = clear(Recipe {
            version,
            method,
            sector_size,
            ..Recipe::default()
        });
        let made = recipe.make(plaintext());
        let device = device(&made.image);
        let opened = unlock(&device, &nothing(), Access::Write).unwrap();
        let view = opened.device::<&dyn BlockDevice>(&device, &device).unwrap();
        for (from, to) in [(4096, COPIES[0]), (4 << 20, SIZE)] {
            let range = ByteRange::new(from as u64, (to - from) as u64);
            Model::new(seed).run(&Slice::new(&view, range).unwrap());
        }
        // The written data are there for the next one, and nothing else has changed.
        let written = content(&*view);
        let opened = unlock(&device, &nothing(), Access::Read).unwrap();
        let view = opened.device::<&dyn BlockDevice>(&device, &device).unwrap();
        assert!(content(&*view) == written);
        assert!(written[COPIES[0]..4 << 20] == made.plaintext[COPIES[0]..4 << 20]);
        let header = Header::read(&device).unwrap();
        assert!(header.copies.iter().all(|copy| copy.to_string() == "good"));
    }
}

#[test]
fn what_belongs_to_bitlocker_is_not_written() {
    let made = clear(Recipe::default()).make(plaintext());
    let device = device(&made.image);
    let opened = unlock(&device, &nothing(), Access::Write).unwrap();
    let view = opened.device::<&dyn BlockDevice>(&device, &device).unwrap();
    for at in COPIES.into_iter().chain([MOVED]) {
        // The request begins before it, where it could be written.
        let mut data = vec![0; 8192];
        view.write_at(at as u64, &data).unwrap();
        data[4096..].fill(1);
        assert!(view.write_at(at as u64 - 4096, &data).is_err());
    }
    assert!(content(&device) == made.image);
}

#[test]
fn conversions_that_have_not_ended() {
    let middle = 9 << 19;
    for (version, state) in [(2, [5, 4]), (2, [5, 1]), (1, [3, 4])] {
        let recipe = clear(Recipe {
            version,
            method: 0x8002,
            state,
            up_to: middle,
            ..Recipe::default()
        });
        let made = recipe.make(plaintext());
        assert_opens(&made, &nothing());
        let device = device(&made.image);
        let header = Header::read(&device).unwrap();
        assert_eq!(header.conversion.encrypted_bytes(SIZE as u64), Some(middle));
    }
    // Nothing is encrypted, and nothing is needed.
    let decrypted = Recipe {
        state: [1, 1],
        protectors: vec![protection::TPM],
        ..Recipe::default()
    };
    let made = decrypted.make(plaintext());
    assert!(
        Header::read(&device(&made.image))
            .unwrap()
            .opens_by_itself()
    );
    assert_opens(&made, &nothing());
    // A step that was cut off is read, and not written.
    let cut = clear(Recipe {
        state: [2, 4],
        up_to: middle,
        ..Recipe::default()
    });
    let made = cut.make(plaintext());
    assert_opens(&made, &nothing());
    let error = unlock(&device(&made.image), &nothing(), Access::Write).unwrap_err();
    assert_eq!(error.verdict(), Verdict::Protected, "{error}");
}

#[test]
fn volumes_that_are_encrypted_as_they_are_written() {
    let chunks = SIZE / CHUNK;
    let some: Vec<bool> = (0..chunks).map(|nth| nth % 7 < 4 || nth < 2).collect();
    for sector_size in [SectorSize::B512, SectorSize::B4096] {
        let recipe = clear(Recipe {
            sector_size,
            chunks: Some(some.clone()),
            up_to: SIZE as u64,
            ..Recipe::default()
        });
        let made = recipe.make(plaintext());
        assert_opens(&made, &nothing());
        let device = device(&made.image);
        let error = unlock(&device, &nothing(), Access::Write).unwrap_err();
        assert_eq!(error.verdict(), Verdict::Protected, "{error}");
        let header = Header::read(&device).unwrap();
        let set = some.iter().filter(|set| **set).count();
        let encrypted = header.conversion.encrypted_bytes(SIZE as u64);
        assert_eq!(encrypted, Some((set * CHUNK) as u64));
        // The first copy of what tells of the bitmaps may be lost.
        let mut image = made.image.clone();
        image[maker::ON_WRITE[0]] ^= 1;
        let plaintext = made.plaintext;
        assert_opens(&Made { image, plaintext }, &nothing());
    }
    let all = clear(Recipe {
        chunks: Some(vec![true; chunks]),
        ..Recipe::default()
    });
    let made = all.make(plaintext());
    assert_opens(&made, &nothing());
    unlock(&device(&made.image), &nothing(), Access::Write).unwrap();
}
