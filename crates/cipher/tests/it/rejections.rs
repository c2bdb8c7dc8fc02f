//! The errors of the notation, the keys and the forced backends, and their texts.

use cryptmark_cipher::{
    Algorithm, Backend, CipherError, CipherSpec, Key, SectorLayout, SectorSize,
};

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
        ("aes", "aes-cbc-plain"),
        ("aes-plain", "aes-cbc-plain"),
        ("twofish", "twofish-cbc-plain"),
        ("aes:1-cbc-lmk", "aes-cbc-lmk"),
        ("aes:64-cbc-lmk", "aes:64-cbc-lmk"),
        ("aes:64", "aes:64-cbc-plain"),
        ("capi:cbc(aes)-lmk", "aes:64-cbc-lmk"),
        ("capi:cbc(aes)-essiv:sha256", "aes-cbc-essiv:sha256"),
        (
            "capi:essiv(cbc(aes),sha256)-plain64",
            "aes-cbc-essiv:sha256",
        ),
        ("capi:ecb(aes)", "aes-ecb"),
        ("aes-ecb", "aes-ecb"),
        ("aes-ecb-null", "aes-ecb-null"),
        ("aes-xts-essiv:wp256", "aes-xts-essiv:wp256"),
        ("aes-twofish", "aes-twofish-xts-plain64"),
        ("aes-twofish-serpent", "aes-twofish-serpent-xts-plain64"),
        ("serpent-aes-cbc-tcw", "serpent-aes-cbc-tcw"),
        ("serpent-aes-lrw-benbi", "serpent-aes-lrw-benbi"),
        ("AES-Twofish-Serpent", "aes-twofish-serpent-xts-plain64"),
        ("AES(Twofish(Serpent))", "aes-twofish-serpent-xts-plain64"),
        ("Camellia(Kuznyechik)", "camellia-kuznyechik-xts-plain64"),
        ("aes(twofish)-cbc-tcw", "aes-twofish-cbc-tcw"),
        ("SERPENT-AES-lrw-benbi", "serpent-aes-lrw-benbi"),
        (
            "xchacha12,aes-adiantum-plain64",
            "xchacha12,aes-adiantum-plain64",
        ),
        (
            "xchacha20,serpent-adiantum-null",
            "xchacha20,serpent-adiantum-null",
        ),
        (
            "capi:adiantum(xchacha12,aes)-plain64",
            "xchacha12,aes-adiantum-plain64",
        ),
        (
            "capi:adiantum(xchacha20,aes)-plain",
            "xchacha20,aes-adiantum-plain",
        ),
        ("capi:hctr2(aes)-plain64", "aes-hctr2-plain64"),
        ("aes-hctr2-plain64be", "aes-hctr2-plain64be"),
        ("cipher_null-ecb", "cipher_null-ecb"),
        ("capi:ecb(cipher_null)", "cipher_null-ecb"),
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
        "aes-",
        "aesx",
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
        "AES",
        "aes(twofish",
        "aes(twofish))",
        "aes(twofish)xts",
        "aestwofish)",
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

/// dm-crypt takes them, and so volumes have them.
#[test]
fn other_spellings_mean_the_same() {
    for (text, same) in [
        ("aes-xts-plain64:sha256", "aes-xts-plain64"),
        ("aes-cbc-plain:whatever", "aes-cbc-plain"),
        ("aes-lrw-benbi:", "aes-lrw-benbi"),
        ("capi:xts(ecb(aes-generic))-plain64", "aes-xts-plain64"),
        ("capi:xts(ecb(aes))-plain64:sha256", "aes-xts-plain64"),
        ("capi:cbc(aes-aesni)-plain64", "aes-cbc-plain64"),
        ("capi:xts-aes-aesni-plain64", "aes-xts-plain64"),
        ("capi:xts-aes-vaes-avx512-plain64", "aes-xts-plain64"),
        ("capi:cbc-serpent-avx2-plain64", "serpent-cbc-plain64"),
    ] {
        let parsed: CipherSpec = text.parse().unwrap();
        assert_eq!(parsed, same.parse().unwrap(), "{text}");
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
        "rot13-xts-plain64",
        "aés-xts-plain64",
        "aes\n-xts-plain64",
        "capi:xts(ecb(rot13))-plain64",
        "capi:cbc(ecb(aes))-plain64",
        "capi:xts(rot13-generic)-plain64",
        "capi:xts(aes))-plain64",
        "xts(aes)-plain64-plain64",
        "xts(aes)-plain64",
        "Rot13(AES)",
        "AES(Twofish-Serpent)",
        "AES()",
        "(AES)",
        "AES-xts",
        "AES-cipher_null",
        "AES(cipher_null)",
        "CIPHER_NULL-ecb",
        "xchacha12,AES-adiantum-plain64",
        "xchacha12,-adiantum-plain64",
        "xchacha12,aes,nhpoly1305-adiantum-plain64",
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
    assert!(
        error("serpant-xts-plain64")
            .remedy()
            .starts_with("Did you mean `serpent`? Use one of: aes, serpent, twofish, ")
    );
    assert!(
        error("zzz-xts-plain64")
            .remedy()
            .starts_with("Use one of: aes, serpent, twofish, ")
    );
    assert!(error(&long).to_string().chars().count() < 100);
}

#[test]
fn unknown_modes_and_iv_generators() {
    for text in [
        "aes-xt-plain64",
        "aes-xtsplain64",
        "aes-twofish-xex-plain64",
        "aes-twofish-",
        "AES-Twofish-XTS-plain64",
        "aes-cipher_null",
        "aes-Adiantum-plain64",
        "aes-plain-plain",
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
        "aes-xts-essive:sha256",
        "aes-twofish-xts-plain65",
        "capi:xts(aes)-",
        "capi:xts(aes)-plain65",
    ] {
        assert!(matches!(error(text), CipherError::UnknownIv { .. }));
    }
    for text in [
        "aes-xts",
        "aes-cbc",
        "aes-lrw",
        "aes-ctr",
        "aes:64-cbc",
        "aes-twofish-xts",
        "capi:xts(aes)",
        "xchacha12,aes-adiantum",
        "aes-hctr2",
    ] {
        assert!(matches!(error(text), CipherError::MissingIv { .. }));
    }
    assert_eq!(
        error("aes-xts-plain65").to_string(),
        "unknown IV generator `plain65`"
    );
    assert_eq!(
        error("aes-xts-plain65").remedy(),
        "Did you mean `plain64`? Use one of: plain64, plain, plain64be, essiv, benbi, null, eboiv, \
         elephant, lmk, tcw."
    );
    assert_eq!(
        error("aes-xts").to_string(),
        "the mode `xts` needs an IV generator"
    );
    assert_eq!(
        error("aes-xts").remedy(),
        "Append one of: -plain64, -plain, -plain64be, -essiv:sha256, -benbi, -null, -eboiv."
    );
    assert_eq!(
        error("aes-twofish-cbc").remedy(),
        "Append one of: -plain64, -plain, -plain64be, -null, -tcw."
    );
}

#[test]
fn hashes_that_essiv_cannot_have() {
    for text in [
        "aes-cbc-essiv",
        "aes-cbc-essiv:",
        "aes-cbc-essiv:sha257",
        "aes-cbc-essiv:SHA256",
        "aes-cbc-essiv:sha256:sha256",
        "capi:essiv(cbc(aes),)-plain64",
        "capi:essiv(cbc(aes),md6)-plain64",
    ] {
        assert!(
            matches!(error(text), CipherError::UnknownHash { .. }),
            "{text}"
        );
    }
    for hash in [
        "sha1",
        "sha224",
        "rmd160",
        "ripemd160",
        "sha384",
        "sha512",
        "whirlpool",
    ] {
        let error = error(&format!("aes-cbc-essiv:{hash}"));
        assert!(matches!(error, CipherError::UnfitHash { .. }), "{hash}");
        assert_eq!(error.remedy(), "Use one of: sha256, md5, wp256.");
    }
    assert_eq!(
        error("aes-cbc-essiv:sha512").to_string(),
        "essiv:sha512 is not possible for aes: aes has no 512-bit key"
    );
    for text in [
        "capi:essiv(cbc(aes),sha256)",
        "capi:essiv(cbc(aes),sha256)-plain",
        "capi:essiv(cbc(aes),sha256)-null",
        "capi:essiv(cbc(aes))-plain64",
        "capi:essiv(cbc,sha256)-plain64",
    ] {
        assert!(
            matches!(error(text), CipherError::Notation { .. }),
            "{text}"
        );
    }
}

#[test]
fn modes_and_iv_generators_that_do_not_fit() {
    for text in [
        "aes-xts-lmk",
        "aes-xts-tcw",
        "aes-xts-elephant",
        "aes-lrw-lmk",
        "aes-lrw-elephant",
        "aes-ctr-eboiv",
        "aes-ctr-lmk",
        "aes-ctr-tcw",
        "aes-ecb-benbi",
        "aes-ecb-essiv:sha256",
        "aes-ecb-tcw",
        "aes:2-cbc-elephant",
        "capi:xts(aes)-lmk",
        "aes-twofish-xts-essiv:sha256",
        "aes-twofish-cbc-essiv:sha256",
        "aes-twofish-cbc-lmk",
        "aes-twofish-cbc-elephant",
        "aes-twofish-lrw-tcw",
        "aes-twofish-xts-benbi",
        "xchacha12,aes-adiantum-essiv:sha256",
        "xchacha12,aes-adiantum-eboiv",
        "xchacha12,aes-adiantum-elephant",
        "xchacha12,aes-adiantum-lmk",
        "aes-hctr2-tcw",
        "aes-hctr2-essiv:sha256",
        "capi:essiv(adiantum(xchacha12,aes),sha256)-plain64",
    ] {
        assert!(matches!(error(text), CipherError::UnfitIv { .. }), "{text}");
    }
    let lmk = error("aes-xts-lmk");
    assert_eq!(
        lmk.to_string(),
        "the IV generator `lmk` is not possible for aes-xts"
    );
    assert_eq!(
        lmk.remedy(),
        "Use one of: plain64, plain, plain64be, essiv:sha256, benbi, null, eboiv."
    );
    for text in ["aes-twofish-ctr-plain64", "aes-twofish-ecb"] {
        let error = error(text);
        assert!(matches!(error, CipherError::UnfitMode { .. }), "{text}");
        assert_eq!(error.remedy(), "Use one of: xts, cbc, lrw.");
    }
    assert_eq!(
        error("aes-twofish-ecb").to_string(),
        "the mode `ecb` is not possible for aes-twofish"
    );
    let eboiv = error("xchacha20,aes-adiantum-eboiv");
    assert_eq!(
        eboiv.to_string(),
        "the IV generator `eboiv` is not possible for xchacha20,aes-adiantum"
    );
    assert_eq!(
        eboiv.remedy(),
        "Use one of: plain64, plain, plain64be, benbi, null."
    );
}

#[test]
fn ciphers_that_a_mode_cannot_have() {
    for (text, possible) in [
        ("des-hctr2-plain64", "cbc, ctr, ecb"),
        ("aes:2-hctr2-plain64", "xts, cbc, lrw, ctr, ecb"),
        ("aes-twofish-hctr2-plain64", "xts, cbc, lrw"),
        ("aes-twofish-adiantum-plain64", "xts, cbc, lrw"),
        (
            "xchacha12,aes:2-adiantum-plain64",
            "xts, cbc, lrw, ctr, ecb",
        ),
        ("xchacha12,blowfish-adiantum-plain64", "cbc, ctr, ecb"),
        (
            "xchacha12,sm4-adiantum-plain64",
            "xts, cbc, lrw, ctr, ecb, hctr2",
        ),
        ("xchacha12,aes-xts-plain64", "adiantum"),
        ("capi:xts(xchacha12,aes)-plain64", "adiantum"),
        ("xchacha12,aes-plain", "adiantum"),
        ("cipher_null", "ecb"),
        ("cipher_null-xts-plain64", "ecb"),
        ("xchacha12,cipher_null-adiantum-plain64", "ecb"),
    ] {
        let error = error(text);
        assert!(matches!(error, CipherError::UnfitMode { .. }), "{text}");
        assert_eq!(error.remedy(), format!("Use one of: {possible}."), "{text}");
    }
    let keys = error("cipher_null:2-ecb");
    assert_eq!(
        keys.to_string(),
        "the mode `ecb` is not possible for cipher_null:2"
    );
    assert_eq!(
        keys.remedy(),
        "No mode is possible with that. Name one cipher with one key."
    );
}

#[test]
fn stream_ciphers_of_adiantum() {
    for text in ["aes-adiantum-plain64", "capi:adiantum(aes)-plain64"] {
        let error = error(text);
        assert_eq!(
            error.to_string(),
            "the mode `adiantum` needs a stream cipher before the block cipher"
        );
        assert_eq!(
            error.remedy(),
            "Begin with one of: xchacha12,aes-adiantum, xchacha20,aes-adiantum."
        );
    }
    for text in [
        "xchacha8,aes-adiantum-plain64",
        "chacha20,aes-adiantum-plain64",
        "XChaCha12,aes-adiantum-plain64",
        ",aes-adiantum-plain64",
        "capi:adiantum(xchacha12 ,aes)-plain64",
    ] {
        let error = error(text);
        assert!(matches!(error, CipherError::UnknownStream { .. }), "{text}");
    }
    assert_eq!(
        error("xchaca20,aes-adiantum-plain64").remedy(),
        "Did you mean `xchacha20`? Use one of: xchacha12, xchacha20."
    );
}

#[test]
fn what_needs_blocks_of_16_bytes() {
    let narrow = |cipher: &Algorithm| cipher.block_bytes() == 8;
    assert_eq!(Algorithm::ALL.iter().filter(|c| narrow(c)).count(), 6);
    for cipher in Algorithm::ALL.into_iter().filter(narrow) {
        // In LRW those of TrueCrypt 4 only, and as it counts only.
        let truecrypt = ["blowfish_le", "cast5", "des3_ede"].contains(&cipher.name());
        let possible = match truecrypt {
            true => "Use one of: cbc, lrw, ctr, ecb.",
            false => "Use one of: cbc, ctr, ecb.",
        };
        for mode in ["xts-plain64", "xts-essiv:md5"] {
            let error = error(&format!("{cipher}-{mode}"));
            assert!(matches!(error, CipherError::UnfitMode { .. }), "{cipher}");
            assert_eq!(error.remedy(), possible);
        }
        let benbi = format!("{cipher}-lrw-benbi").parse::<CipherSpec>();
        assert_eq!(benbi.is_ok(), truecrypt, "{cipher}");
        for mode in ["lrw-plain64", "lrw-null", "lrw-essiv:md5"] {
            let error = error(&format!("{cipher}-{mode}"));
            let as_expected = match truecrypt {
                true => matches!(error, CipherError::UnfitIv { .. }),
                false => matches!(error, CipherError::UnfitMode { .. }),
            };
            assert!(as_expected, "{cipher}-{mode}: {error}");
        }
        let elephant = error(&format!("{cipher}-cbc-elephant"));
        assert!(matches!(elephant, CipherError::UnfitIv { .. }), "{cipher}");
        assert!(!elephant.remedy().contains("elephant"));
        for mode in ["", "-xts-plain64", "-lrw-benbi"] {
            let error = error(&format!("aes-{cipher}{mode}"));
            assert!(matches!(error, CipherError::UnfitMode { .. }), "{cipher}");
            assert_eq!(error.remedy(), "Use one of: cbc.");
        }
    }
    assert_eq!(
        error("des3_ede-xts-plain64").to_string(),
        "the mode `xts` is not possible for des3_ede"
    );
}

/// The digest must be a key of the cipher: those that are, are named.
#[test]
fn hashes_that_are_no_key() {
    for (notation, possible) in [
        ("des-cbc-essiv:sha256", None),
        ("sm4-cbc-essiv:sha256", Some("md5")),
        ("kuznyechik-xts-essiv:sha1", Some("sha256, wp256")),
        ("des3_ede-cbc-essiv:sha256", Some("md5")),
        (
            "blowfish-cbc-essiv:sha512",
            Some("sha256, sha1, sha224, sha384, md5, rmd160, wp256, wp384"),
        ),
    ] {
        let error = error(notation);
        assert!(matches!(error, CipherError::UnfitHash { .. }), "{notation}");
        match possible {
            Some(list) => assert_eq!(error.remedy(), format!("Use one of: {list}.")),
            None => assert_eq!(
                error.remedy(),
                "No hash is possible with that. Choose another IV generator."
            ),
        }
    }
}

#[test]
fn sector_sizes_are_dm_crypts() {
    for bytes in [0, 1, 256, 511, 513, 520, 1536, 4095, 4097, 8192, u32::MAX] {
        assert_eq!(SectorSize::from_bytes(bytes), None, "{bytes}");
    }
    for size in SectorSize::ALL {
        assert_eq!(SectorSize::from_bytes(size.bytes() as u32), Some(size));
    }
}

#[test]
fn numbers_of_keys_and_of_ciphers() {
    for count in [
        "",
        "0",
        "3",
        "63",
        "65",
        "128",
        "-1",
        "+2",
        " 2",
        "02",
        "2 ",
        "two",
        "0x2",
        "18446744073709551616",
        "4294967296",
    ] {
        let error = error(&format!("aes:{count}-cbc-plain64"));
        assert!(
            matches!(
                error,
                CipherError::KeyCount { .. } | CipherError::UnknownCipher { .. }
            ) || matches!(error, CipherError::Notation { .. }),
            "{count}: {error:?}"
        );
        assert_ne!(error.remedy(), "");
    }
    let three = error("aes:3-cbc-plain64");
    assert_eq!(three.to_string(), "a cipher cannot have `3` keys");
    assert_eq!(three.remedy(), "Use a power of two up to 64.");
    let cascade = "aes-".repeat(100_000) + "xts-plain64";
    for text in [
        "aes-twofish-serpent-aes",
        "aes-aes-aes-aes-xts-plain64",
        &cascade,
    ] {
        let error = error(text);
        assert!(matches!(error, CipherError::LongCascade { .. }));
        assert_eq!(error.remedy(), "Name at most 3 ciphers.");
    }
    for text in ["aes-twofish:2-xts-plain64", "aes:2-twofish-xts-plain64"] {
        assert!(
            matches!(error(text), CipherError::UnknownMode { .. }),
            "{text}"
        );
    }
}

#[test]
fn sectors_that_the_iv_generator_cannot_have() {
    for notation in ["aes:64-cbc-lmk", "aes-cbc-tcw", "serpent-aes-cbc-tcw"] {
        let spec: CipherSpec = notation.parse().unwrap();
        let key = Key::random(spec.default_key_size()).unwrap();
        for size in SectorSize::ALL.into_iter().skip(1) {
            let layout = SectorLayout {
                size,
                large_iv: false,
            };
            let error = spec.cipher(&key, layout, None).err().unwrap();
            assert!(matches!(error, CipherError::SectorSize { .. }));
            assert_eq!(error.remedy(), "Use one of: 512 bytes.");
        }
    }
}

#[test]
fn key_sizes_are_cryptsetups() {
    for (notation, bytes) in [
        ("aes-xts-plain64", &[32, 48, 64][..]),
        ("aes-cbc-plain", &[16, 24, 32]),
        ("aes-lrw-benbi", &[32, 40, 48]),
        ("des3_ede-lrw-benbi", &[24, 32]),
        ("aes-ecb", &[16, 24, 32]),
        ("aes-cbc-elephant", &[32, 48, 64]),
        ("aes-cbc-tcw", &[48, 56, 64]),
        ("aes-cbc-lmk", &[16, 24, 32]),
        ("aes:64-cbc-lmk", &[1024, 1040, 1536, 1560, 2048, 2080]),
        ("aes:8-xts-plain64", &[256, 384, 512]),
        ("aes-twofish", &[128]),
        ("aes-twofish-serpent", &[192]),
        ("aes-twofish-serpent-cbc-tcw", &[128]),
        ("aes-twofish-cbc-null", &[64]),
        ("aes-twofish-lrw-benbi", &[96]),
        ("serpent-xts-plain64", &[32, 48, 64]),
        ("twofish-cbc-plain", &[16, 24, 32]),
        ("camellia-xts-plain64", &[32, 48, 64]),
        ("cast6-cbc-plain", &[16, 20, 24, 28, 32]),
        ("kuznyechik-xts-plain64", &[64]),
        ("sm4-xts-plain64", &[32]),
        ("aria-cbc-plain", &[16, 24, 32]),
        ("seed-cbc-plain", &[16]),
        ("anubis-cbc-plain", &[16, 20, 24, 28, 32, 36, 40]),
        (
            "cast5-cbc-plain",
            &[5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16],
        ),
        ("des-cbc-plain", &[8]),
        ("des3_ede-cbc-plain", &[16, 24]),
        ("khazad-cbc-plain", &[16]),
        ("blowfish-aes-cbc-tcw", &[120]),
        ("xchacha12,aes-adiantum-plain64", &[32]),
        ("xchacha20,anubis-adiantum-plain64", &[32]),
        ("aes-hctr2-plain64", &[16, 24, 32]),
        ("cipher_null-ecb", &[0]),
    ] {
        let spec: CipherSpec = notation.parse().unwrap();
        assert_eq!(spec.key_sizes(), bytes, "{notation}");
        assert!(bytes.contains(&spec.default_key_size()));
    }
    for (notation, bytes) in [
        ("aes-xts-plain64", 64),
        ("aes-cbc-plain", 32),
        ("aes-lrw-benbi", 48),
        ("aes:64-cbc-lmk", 2048),
    ] {
        let spec: CipherSpec = notation.parse().unwrap();
        assert_eq!(spec.default_key_size(), bytes, "{notation}");
    }
}

#[test]
fn keys_of_impossible_length() {
    for known in CipherSpec::KNOWN {
        let spec: CipherSpec = known.parse().unwrap();
        assert!(spec.key_sizes().contains(&spec.default_key_size()));
        for bytes in (0..=2100).filter(|bytes| !spec.key_sizes().contains(bytes)) {
            let key = Key::from_slice(&vec![1; bytes]);
            let error = spec.cipher(&key, SectorLayout::default(), None).err();
            assert_eq!(
                error,
                Some(CipherError::KeySize {
                    spec,
                    got_bits: 8 * bytes,
                    possible_bits: spec.key_sizes().iter().map(|size| 8 * size).collect(),
                })
            );
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
    assert_eq!(error.remedy(), "Use one of: 256, 384, 512 bits.");
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
    let mut names = Algorithm::ALL.map(Algorithm::name);
    names.sort_unstable();
    assert!(names.windows(2).all(|pair| pair[0] != pair[1]));
}
