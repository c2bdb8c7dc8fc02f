//! What the notation, the keys and the forced backends refuse, and in which
//! words.

use cryptmark_cipher::{Algorithm, Backend, CipherError, CipherSpec, Key, SectorLayout};

fn error(text: &str) -> CipherError {
    match text.parse::<CipherSpec>() {
        Ok(spec) => panic!("`{text}` was read as {spec}"),
        Err(error) => error,
    }
}

#[test]
fn what_is_read_is_printed_in_the_short_form() {
    for (text, printed) in [
        ("aes-xts-plain64", "aes-xts-plain64"),
        ("aes-xts-plain", "aes-xts-plain"),
        ("serpent-xts-plain64", "serpent-xts-plain64"),
        ("serpent-xts-plain", "serpent-xts-plain"),
        ("twofish-xts-plain64", "twofish-xts-plain64"),
        ("twofish-xts-plain", "twofish-xts-plain"),
        ("capi:xts(aes)-plain64", "aes-xts-plain64"),
        ("capi:xts(serpent)-plain", "serpent-xts-plain"),
    ] {
        let spec: CipherSpec = text.parse().unwrap();
        assert_eq!(spec.to_string(), printed);
        assert_eq!(spec.to_string().parse(), Ok(spec));
    }
    for known in CipherSpec::KNOWN {
        assert_eq!(known.parse::<CipherSpec>().unwrap().to_string(), *known);
    }
    let spec: CipherSpec = "aes-xts-plain".parse().unwrap();
    assert_eq!(format!("{spec:>15}|"), "  aes-xts-plain|");
}

#[test]
fn notation_that_is_none() {
    let long = "x".repeat(1 << 20);
    for text in [
        "",
        " ",
        "-",
        "--",
        "---",
        "-xts-plain64",
        "aes",
        "aes-",
        "aes--plain64",
        "aes xts plain64",
        "aes/xts/plain64",
        "aesxtsplain64",
        "capi:",
        "capi:aes",
        "capi:aes-xts-plain64",
        "capi:xts(aes-plain64",
        "capi:xts)aes(-plain64",
        "capi:xts()-plain64",
        "capi:(aes)-plain64",
        "capi:xts(aes)plain64",
        "capi:xts(aes) -plain64",
        "ключ",
        "🔑",
        "\0",
        &long,
    ] {
        assert!(
            matches!(error(text), CipherError::Notation { .. }),
            "{text:?}: {:?}",
            error(text)
        );
    }
}

#[test]
fn unknown_ciphers() {
    let long = format!("{}-xts-plain64", "aes".repeat(100_000));
    for text in [
        "serpant-xts-plain64",
        "AES-xts-plain64",
        "aes256-xts-plain64",
        " aes-xts-plain64",
        "aes:64-xts-plain64",
        "rot13-xts-plain64",
        "aés-xts-plain64",
        "aes\n-xts-plain64",
        "capi:xts(ecb(aes))-plain64",
        "capi:xts(aes))-plain64",
        "xts(aes)-plain64-plain64",
        &long,
    ] {
        assert!(
            matches!(error(text), CipherError::UnknownCipher { .. }),
            "{text:?}: {:?}",
            error(text)
        );
    }
    assert_eq!(
        error("serpant-xts-plain64").to_string(),
        "unknown cipher `serpant`"
    );
    assert_eq!(
        error("serpant-xts-plain64").remedy(),
        "Did you mean `serpent`? Known are aes, serpent, twofish."
    );
    assert_eq!(
        error("zzz-xts-plain64").remedy(),
        "Known are aes, serpent, twofish."
    );
    assert!(error(&long).to_string().chars().count() < 100);
}

#[test]
fn unknown_modes_and_iv_generators() {
    for text in [
        "aes-xt-plain64",
        "aes-xtsplain64",
        "aes-plain64",
        "aes-xex-plain64",
        "aes-XTS-plain64",
        "capi:xtss(aes)-plain64",
    ] {
        assert!(matches!(error(text), CipherError::UnknownMode { .. }));
    }
    for text in [
        "aes-xts-",
        "aes-xts-plain65",
        "aes-xts-plain64 ",
        "aes-xts-plain64-",
        "aes-xts-plain64-plain64",
        "aes-xts-PLAIN",
        "aes-xts-essiv:md7",
        "aes-xts-plain64:sha256",
        "capi:xts(aes)-",
        "capi:xts(aes)-plain65",
    ] {
        assert!(matches!(error(text), CipherError::UnknownIv { .. }));
    }
    for text in ["aes-xts", "capi:xts(aes)"] {
        assert!(matches!(error(text), CipherError::MissingIv { .. }));
    }
    assert_eq!(
        error("aes-xts-plain65").to_string(),
        "unknown IV generator `plain65`"
    );
    assert_eq!(
        error("aes-xts-plain65").remedy(),
        "Did you mean `plain64`? Known are plain64, plain."
    );
    assert_eq!(
        error("aes-xts").to_string(),
        "the mode `xts` needs an IV generator"
    );
    assert_eq!(error("aes-xts").remedy(), "Append one of -plain64, -plain.");
}

#[test]
fn keys_of_impossible_length() {
    for known in CipherSpec::KNOWN {
        let spec: CipherSpec = known.parse().unwrap();
        assert!(spec.key_sizes().contains(&spec.default_key_size()));
        for bytes in (0..=130).filter(|bytes| !spec.key_sizes().contains(bytes)) {
            let key = Key::from_slice(&vec![1; bytes]);
            let error = spec.cipher(&key, SectorLayout::default(), None).err();
            assert!(matches!(error, Some(CipherError::KeySize { .. })));
        }
    }
    let spec: CipherSpec = "aes-xts-plain64".parse().unwrap();
    let key = Key::from_slice(&[1; 40]);
    let error = spec
        .cipher(&key, SectorLayout::default(), None)
        .err()
        .unwrap();
    assert_eq!(
        error.to_string(),
        "aes-xts-plain64 cannot take a key of 320 bits"
    );
    assert_eq!(error.remedy(), "Possible are 256, 384, 512 bits.");
}

#[test]
fn backends_that_do_not_exist() {
    for known in CipherSpec::KNOWN {
        let spec: CipherSpec = known.parse().unwrap();
        let key = Key::random(spec.default_key_size()).unwrap();
        let available = spec.backends();
        assert!(!available.is_empty());
        for backend in Backend::ALL {
            let cipher = spec.cipher(&key, SectorLayout::default(), Some(backend));
            if available.contains(&backend) {
                assert_eq!(cipher.ok().unwrap().backend(), backend);
                continue;
            }
            let error = cipher.err().unwrap();
            assert_eq!(
                error,
                CipherError::BackendUnavailable {
                    spec,
                    backend,
                    available: available.clone()
                }
            );
            assert!(error.remedy().contains(available[0].name()));
        }
        let fastest = spec.cipher(&key, SectorLayout::default(), None);
        assert_eq!(fastest.ok().unwrap().backend(), available[0]);
    }
    for backend in Backend::ALL {
        assert_eq!(backend.to_string().parse(), Ok(backend));
    }
    for name in ["", "Portable", "portable ", "sse9", "portabel", "🔑"] {
        let error = name.parse::<Backend>().unwrap_err();
        assert!(matches!(error, CipherError::UnknownBackend { .. }));
    }
    let error = "portabel".parse::<Backend>().unwrap_err();
    assert_eq!(error.to_string(), "unknown backend `portabel`");
    assert!(error.remedy().starts_with("Did you mean `portable`?"));
}

#[test]
fn a_key_does_not_show_itself() {
    let key = Key::from_slice(&[0xa5; 64]);
    for printed in [format!("{key:?}"), format!("{key:#?}")] {
        assert_eq!(printed, "Key(64 bytes)");
    }
}

#[test]
fn names_are_the_kernels() {
    assert_eq!(
        Algorithm::ALL.map(Algorithm::name),
        ["aes", "serpent", "twofish"]
    );
}
