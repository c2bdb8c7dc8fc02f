//! Candidates: how many, in which order, and none twice.

use super::*;
use crate::recall::recipe::{Ending, Form, Slip};
use std::collections::BTreeSet;

const TYPED: Layouts = Layouts {
    typed_on: Layout::De,
    meant: Layout::Us,
};

fn passphrase(text: &str) -> Secret {
    Secret::Passphrase(Key::from_slice(text.as_bytes()))
}

fn known(secret: &Secret) -> Known<'_> {
    Known {
        secret,
        pattern: None,
        layouts: None,
        pims: None,
    }
}

/// All candidates with their changes, after a check that none is there twice.
fn all(known: &Known) -> Vec<(Vec<u8>, String)> {
    let candidates = known.candidates().unwrap();
    let numbers = 0..candidates.count();
    let all: Vec<_> = numbers.map(|number| candidates.candidate(number)).collect();
    let bytes = |candidate: &Candidate| (candidate.secret.bytes().to_vec(), candidate.pim);
    let different: BTreeSet<_> = all.iter().map(bytes).collect();
    assert_eq!(different.len(), all.len(), "a candidate is there twice");
    let told = |candidate: &Candidate| (bytes(candidate).0, candidate.changes.to_string());
    all.iter().map(told).collect()
}

#[test]
fn a_passphrase_of_ascii() {
    let secret = passphrase("ab1");
    let all = all(&known(&secret));
    let expected: [(&str, &str); 20] = [
        ("ab1", "as it is"),
        ("AB1", "with Caps Lock on"),
        ("Ab1", "with the other case of its first letter"),
        ("ab1\n", "with a line feed at its end"),
        (
            "ab1\r\n",
            "with a carriage return and a line feed at its end",
        ),
        ("AB1\n", "with Caps Lock on, with a line feed at its end"),
        (
            "Ab1\n",
            "with the other case of its first letter, with a line feed at its end",
        ),
        (
            "AB1\r\n",
            "with Caps Lock on, with a carriage return and a line feed at its end",
        ),
        (
            "Ab1\r\n",
            "with the other case of its first letter, with a carriage return and a line feed at its end",
        ),
        ("ab1\r", "with a carriage return at its end"),
        ("ab1 ", "with a space at its end"),
        ("ab1\0", "with a zero byte at its end"),
        ("\u{feff}ab1", "with a byte order mark"),
        (
            "\u{feff}ab1\r",
            "with a byte order mark, with a carriage return at its end",
        ),
        (
            "\u{feff}ab1\n",
            "with a byte order mark, with a line feed at its end",
        ),
        (
            "\u{feff}ab1\r\n",
            "with a byte order mark, with a carriage return and a line feed at its end",
        ),
        ("MARKa\0b\x001\0", "in UTF-16 with a byte order mark"),
        (
            "MARKa\0b\x001\0\r\0",
            "in UTF-16 with a byte order mark, with a carriage return at its end",
        ),
        ("a\0b\x001\0", "in UTF-16"),
        (
            "a\0b\x001\0\r\0",
            "in UTF-16, with a carriage return at its end",
        ),
    ];
    let bytes = |text: &str| match text.strip_prefix("MARK") {
        Some(rest) => [b"\xFF\xFE", rest.as_bytes()].concat(),
        None => text.as_bytes().to_vec(),
    };
    let expected = expected.map(|(text, changes)| (bytes(text), changes.to_owned()));
    assert_eq!(all, expected);
}

#[test]
fn forms_of_unicode() {
    for given in ["Zoé".as_bytes(), "Zoe\u{301}".as_bytes(), b"Zo\xe9"] {
        let secret = Secret::Passphrase(Key::from_slice(given));
        let all = all(&known(&secret));
        assert_eq!(all[0].0, given);
        let has = |bytes: &[u8], words: &str| {
            let found = all.iter().find(|(candidate, _)| candidate == bytes);
            let (_, changes) = found.unwrap_or_else(|| panic!("{given:?} gives no {bytes:?}"));
            assert!(bytes == given || changes.contains(words), "{changes}");
        };
        has("Zoé".as_bytes(), "NFC");
        has("Zoe\u{301}".as_bytes(), "NFD");
        has(b"Zo\xe9", "Latin-1");
        has(b"zO\xc9\n", "with a line feed at its end");
    }
    // Latin-1 has no such character, and no form differs.
    let secret = passphrase("κ");
    assert!(
        all(&known(&secret))
            .iter()
            .all(|(_, said)| !said.contains("Latin-1"))
    );
}

#[test]
fn line_ends_of_files() {
    let file = |bytes: &[u8]| Secret::KeyFile(Key::from_slice(bytes));
    let secret = file(b"\0\x01key\r\n");
    let candidates = known(&secret).candidates().unwrap();
    assert!(matches!(candidates.candidate(0).secret, Secret::KeyFile(_)));
    let ends: Vec<_> = all(&known(&secret))
        .into_iter()
        .map(|(bytes, _)| bytes)
        .collect();
    assert_eq!(ends, [&b"\0\x01key\r\n"[..], b"\0\x01key", b"\0\x01key\n"]);
    let said = all(&known(&secret))[1].1.clone();
    assert_eq!(said, "without its line end");
    let ends = all(&known(&file(b"\r")));
    assert!(ends.iter().any(|(bytes, _)| bytes.is_empty()));
    // What an editor has put around the passphrase goes away as well.
    for given in [
        &b"\xEF\xBB\xBFpass word "[..],
        b"\xEF\xBB\xBFpass word\r\n",
        b"\xFF\xFEp\0a\0s\0s\0 \0w\0o\0r\0d\0\r\0\n\0",
        b"pass word\0",
        b"pass word  ",
    ] {
        let has = |secret: &Secret| {
            let all = all(&known(secret));
            all.iter().any(|(bytes, _)| bytes == b"pass word")
        };
        assert!(has(&file(given)), "{given:?}");
        assert!(
            has(&Secret::Passphrase(Key::from_slice(given))),
            "{given:?}"
        );
    }
    let of_key = Secret::VolumeKey(Key::from_slice(b"key"));
    let refused = known(&of_key).candidates().err();
    assert_eq!(refused, Some(RecallError::VolumeKey));
}

#[test]
fn keyboards() {
    let secret = passphrase("zy-7Q");
    let knows = Known {
        layouts: Some(TYPED),
        ..known(&secret)
    };
    let found = all(&knows);
    assert_eq!(found[0].0, b"zy-7Q");
    let typed = (
        "yzß7Q".as_bytes().to_vec(),
        "typed on a German keyboard".to_owned(),
    );
    assert_eq!(found[1], typed);
    let both = "typed on a German keyboard, with Caps Lock on, in Latin-1";
    assert!(found.contains(&(b"YZ\xdf7q".to_vec(), both.to_owned())));
    // Back by the two options the other way round.
    let typed = passphrase("yzß7Q");
    let back = Known {
        layouts: Some(Layouts {
            typed_on: Layout::Us,
            meant: Layout::De,
        }),
        ..known(&typed)
    };
    assert_eq!(all(&back)[1].0, b"zy-7Q");
    let no_key = passphrase("ä");
    let knows = Known {
        layouts: Some(TYPED),
        ..known(&no_key)
    };
    let Layouts { typed_on, meant } = TYPED;
    let refused = Some(RecallError::NoKey { meant, typed_on });
    assert_eq!(knows.candidates().err(), refused);
}

#[test]
fn patterns_give_everything_once() {
    let letters: Characters = "abAB1".parse().unwrap();
    let secret = passphrase("x?[1ä]?");
    let knows = Known {
        pattern: Some(&letters),
        ..known(&secret)
    };
    let found = all(&knows);
    let plain = found.iter().filter(|(_, said)| said == "as it is");
    assert_eq!(plain.count(), 5 * 2 * 5);
    assert_eq!(found[0].0, b"xa1a");
    assert_eq!(found[1].0, b"xa1b");
    assert!(found[..50].iter().all(|(_, said)| said == "as it is"));
    assert!(found.iter().any(|(bytes, _)| bytes == b"xa\xe41"));
    assert!(found.iter().any(|(bytes, _)| bytes == "Xaä1".as_bytes()));
    // One change at a time.
    assert!(found.iter().all(|(_, said)| said.matches(',').count() == 0));
    // Caps Lock changes nothing if both cases are tried.
    let wild = passphrase("??");
    let knows = Known {
        pattern: Some(&letters),
        ..known(&wild)
    };
    assert_eq!(all(&knows).len(), 3 * 25);
}

#[test]
fn patterns_on_other_keyboards() {
    let printable = Characters::default();
    let secret = passphrase("z??");
    let knows = Known {
        pattern: Some(&printable),
        layouts: Some(TYPED),
        ..known(&secret)
    };
    let found = all(&knows);
    let plain: BTreeSet<_> = found.iter().take(95 * 95).collect();
    assert!(plain.iter().all(|(bytes, _)| bytes.starts_with(b"z")));
    assert_eq!(found[95 * 95].0[0], b'y');
    let typed: Vec<_> = found
        .iter()
        .filter(|(_, said)| said.contains("German"))
        .collect();
    // All but the backslash's key and its neighbours are on both.
    assert_eq!(typed.len(), 95 * 95);
    assert!(typed.iter().any(|(bytes, _)| bytes == "yüß".as_bytes()));
}

#[test]
fn pims_rise() {
    let secret = passphrase("a");
    let knows = Known {
        pims: Some("3..5".parse().unwrap()),
        ..known(&secret)
    };
    let candidates = knows.candidates().unwrap();
    let pims: Vec<_> = (0..6)
        .map(|number| candidates.candidate(number).pim)
        .collect();
    assert_eq!(pims, [3, 4, 5, 3, 4, 5].map(Some));
    let said = candidates.candidate(4).changes.to_string();
    assert_eq!(said, "with Caps Lock on, PIM 4");
    let said = candidates.candidate(1).changes.to_string();
    assert_eq!(said, "as it is, PIM 4");
    // a, A, each with two line ends, and ten forms of a file with a.
    assert_eq!(candidates.count(), 16 * 3);
    let cost = |pim: Option<u32>| f64::from(pim.unwrap());
    assert_eq!(candidates.work_from(0, cost), 16.0 * 12.0);
    assert_eq!(candidates.work_from(4, cost), 16.0 * 12.0 - 12.0 - 3.0);
    assert_eq!(candidates.work_from(48, cost), 0.0);
}

#[test]
fn what_is_too_much_is_refused_with_its_count() {
    let set: Characters = "01".parse().unwrap();
    let of = |text: &str, pims: Option<&str>| {
        let secret = passphrase(text);
        let knows = Known {
            pattern: Some(&set),
            pims: pims.map(|text| text.parse().unwrap()),
            ..known(&secret)
        };
        knows.candidates().err()
    };
    let many = |count| Some(RecallError::Many(count));
    assert_eq!(of(&"?".repeat(41), None), many(1 << 41));
    assert_eq!(of(&"?".repeat(39), Some("1..4")), many(1 << 41));
    assert_eq!(of(&"?".repeat(40), None), many((1 << 40) * 2));
    assert_eq!(of(&"?".repeat(60_000), None), many(u128::MAX));
    assert!(RecallError::Many(u128::MAX).to_string().contains("10^38"));
    assert_eq!(of(&"?".repeat(38), None), None);
    // Each place may have one byte or two.
    assert_eq!(of(&"[aä]".repeat(13), None), Some(RecallError::Tangled));
    let not_text = of("a\tb", None);
    assert_eq!(not_text, Some(RecallError::NotText));
}

#[test]
fn nothing_secret_is_said() {
    let secret = passphrase("Sesame");
    let candidates = known(&secret).candidates().unwrap();
    for number in 0..candidates.count() {
        let said = format!("{:?}", candidates.candidate(number));
        assert!(!said.to_lowercase().contains("sesame"), "{said}");
    }
}

#[test]
fn recipes_change_less_first() {
    let all = Recipe::all(true, Some(TYPED), 4);
    assert_eq!(all.len(), 2 * 3 * 4 * 4);
    assert_eq!(Recipe::all(true, None, 4).len(), 3 * 4 * 4);
    assert_eq!(Recipe::all(false, None, 4).len(), 4);
    assert_eq!(Recipe::all(true, Some(TYPED), 1).len(), 1 + 1 + 2 + 3 + 3);
    let first = Recipe {
        layouts: None,
        slip: Slip::None,
        form: Form::Given,
        ending: Ending::Given,
        dress: crate::recall::recipe::Dress::Given,
    };
    assert_eq!(all[0], first);
    assert_eq!(all[1].layouts, Some(TYPED));
}
