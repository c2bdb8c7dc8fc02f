//! Volumes that the engine's tests make.

use crate::asked::{Given, Kind};
use crate::corpus::{Base, Case, Image, passphrase};
use crate::damage;
use crate::kit::{Case as Hostile, Expected, begun, luks1, luks2};
use crate::{bitlk_maker as bitlk, fvault2_maker as fvault2};
use std::sync::Arc;

/// LUKS volumes with cheap key derivations, one of them in the middle of a reencryption.
pub fn cheap() -> Vec<Base> {
    let reencrypted = begun("", |_| {}, Expected::Opens);
    let volumes = [
        ("luks1 true", luks1("", |_| {}, Expected::Opens)),
        ("luks1 false", luks1("", |_| {}, Expected::Opens)),
        ("luks2 true", luks2("", |_| {}, Expected::Opens)),
        ("luks2 false", luks2("", |_| {}, Expected::Opens)),
        ("luks2 reencrypted", reencrypted),
    ];
    let base = |(kind, volume): (&str, Hostile)| {
        let mut case = of_hostile(volume);
        case.name = kind.to_owned();
        if kind.ends_with("true")
            && let Image::File(whole, _) = &case.image
        {
            let data = whole[crate::kit::DATA as usize..].to_vec();
            case.header = Some(case.image.clone());
            case.image = Image::File(Arc::new(data), damage::NONE);
        }
        Base {
            case,
            others: vec![("other secret".to_owned(), passphrase("another"))],
            kind: kind.to_owned(),
        }
    };
    volumes.into_iter().map(base).collect()
}

/// Volumes that only other systems make: tests of the engine make them too.
pub fn of_other_systems() -> Vec<Base> {
    use bitlk::{CHUNK, Recipe, protection};
    let size = 5 << 20;
    let recipe = Recipe {
        protectors: vec![protection::CLEAR],
        ..Recipe::default()
    };
    let protected = |protector| Recipe {
        protectors: vec![protector],
        ..Recipe::default()
    };
    let half = Recipe {
        up_to: size as u64 / 2,
        ..recipe.clone()
    };
    let but_one_chunk = Recipe {
        chunks: Some((0..size / CHUNK).map(|chunk| chunk != 20).collect()),
        up_to: size as u64,
        ..recipe.clone()
    };
    let decrypted = Recipe {
        state: [1, 1],
        ..recipe.clone()
    };
    let of_vista = Recipe {
        version: 1,
        method: 0x8002,
        ..recipe.clone()
    };
    let startup_key = Given {
        kind: Kind::KeyFile,
        bytes: bitlk::startup_key_file(),
    };
    let recipes = [
        ("bitlk with a clear key", recipe, passphrase("")),
        ("bitlk", protected(protection::STARTUP), startup_key),
        (
            "bitlk with a passphrase",
            protected(protection::PASSPHRASE),
            passphrase(bitlk::PASSPHRASE),
        ),
        ("bitlk up to half", half, passphrase("")),
        ("bitlk but one chunk", but_one_chunk, passphrase("")),
        ("bitlk decrypted", decrypted, passphrase("")),
        ("bitlk of Vista", of_vista, passphrase("")),
    ];
    let mut plain = testkit::noise(size, 9);
    plain[..11].copy_from_slice(b"\xeb\x52\x90NTFS    ");
    let base = |(name, recipe, secret): (&str, Recipe, Given)| Base {
        case: Case {
            // A million hashes.
            is_costly: secret.bytes == bitlk::PASSPHRASE.as_bytes(),
            secret: Some(secret),
            ..Case::new(name, recipe.make(plain.clone()).image)
        },
        others: Vec::new(),
        kind: "bitlk".to_owned(),
    };
    let mut bases: Vec<Base> = recipes.into_iter().map(base).collect();
    let image = fvault2::volume(fvault2::metadata(), &fvault2::EXTENTS);
    bases.push(Base {
        case: Case {
            secret: Some(passphrase(fvault2::PASSPHRASES[0])),
            ..Case::new("fvault2", image)
        },
        others: vec![(
            "recovery key".to_owned(),
            passphrase(fvault2::PASSPHRASES[1]),
        )],
        kind: "fvault2".to_owned(),
    });
    bases
}

/// A bad volume of the engine's tests.
pub fn of_hostile(hostile: Hostile) -> Case {
    let mut case = Case {
        secret: Some(Given {
            kind: Kind::Passphrase,
            bytes: crate::kit::PASSPHRASE.to_vec(),
        }),
        ..Case::new(hostile.name, hostile.bytes)
    };
    case.options
        .push(("format", hostile.format.name().to_owned()));
    if let crate::kit::Attempt::OpenSlot(slot) = hostile.attempt {
        case.options.push(("key_slot", slot.to_string()));
    }
    case
}
