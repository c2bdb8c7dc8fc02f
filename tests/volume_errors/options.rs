//! Options that mean nothing.

use crate::{Refuses as _, sandbox, start};

#[test]
fn options_that_make_no_sense() {
    sandbox().refuses(&[
        ("open luks2 --type lusk2 --passphrase-file pass", 2, "unknown volume type `lusk2`", "Use one of: luks1, luks2, plain, tcrypt, veracrypt, cryptoloop, loopaes, bestcrypt, bitlk, fvault2."),
        ("open noise --type plain --cipher rot13-cbc-plain --passphrase-file pass", 2, "unknown cipher `rot13`", "Use \
                                                                                                                  one \
                                                                                                                  of: \
                                                                                                                  aes, \
                                                                                                                  serpent, \
                                                                                                                  twofish, \
                                                                                                                  camellia, \
                                                                                                                  cast6, \
                                                                                                                  kuznyechik, \
                                                                                                                  sm4, \
                                                                                                                  aria, \
                                                                                                                  anubis, \
                                                                                                                  seed, \
                                                                                                                  blowfish, \
                                                                                                                  blowfish_le, \
                                                                                                                  cast5, \
                                                                                                                  des, \
                                                                                                                  des3_ede, \
                                                                                                                  khazad."),
        ("open noise --type plain --hash crc32 --passphrase-file pass", 2, "unknown hash `crc32`", "Use \
                                                                                                    one \
                                                                                                    of: \
                                                                                                    sha1, \
                                                                                                    sha224, \
                                                                                                    sha256, \
                                                                                                    sha384, \
                                                                                                    sha512, \
                                                                                                    sha3-224, \
                                                                                                    sha3-256, \
                                                                                                    sha3-384, \
                                                                                                    sha3-512, \
                                                                                                    ripemd160, \
                                                                                                    whirlpool, \
                                                                                                    blake2b-512, \
                                                                                                    blake2s-256, \
                                                                                                    skein-512, \
                                                                                                    sm3, \
                                                                                                    stribog256, \
                                                                                                    stribog512. \
                                                                                                    `plain` \
                                                                                                    means \
                                                                                                    no \
                                                                                                    hash."),
        ("reencrypt luks2 --cipher cipher_null-ecb --passphrase-file pass --yes", 2, "cipher_null-ecb encrypts nothing, and has no key that a key slot could hold", "Take aes-xts-plain64. Unencrypted data needs no LUKS header."),
        ("reencrypt noise --encrypt --cipher cipher_null-ecb --passphrase-file pass --yes", 2, "cipher_null-ecb encrypts nothing, and has no key that a key slot could hold", "Take aes-xts-plain64. Unencrypted data needs no LUKS header."),
        ("header backup luks2 --output luks2.cryptmark-header", 2, "luks2.cryptmark-header is a name that is used here itself", "Give the file another name."),
        ("create new --size 20M --header any.cryptmark-header --passphrase-file pass", 2, "any.cryptmark-header is a name that is used here itself", "Give the file another name."),
        ("open noise --type plain --key-size 100 --passphrase-file pass", 2, "a key of 100 bits is not possible", "Give a multiple of 8, as in --key-size 256."),
        ("open noise --type plain --key-size 200 --passphrase-file pass", 2, "aes-xts-plain64 cannot take a key of 200 bits", "Use one of: 256, 384, 512 bits."),
        ("open noise --type plain --sector-size 8192 --passphrase-file pass", 2, "encryption sectors of 8192 bytes are not possible", "Give a --sector-size of 512, 1024, 2048 or 4096."),
        ("open noise --type plain --offset 2048 --passphrase-file pass", 2, "the data area (512 \
                                                                             bytes from byte \
                                                                             1048576) does not fit \
                                                                             into the device of \
                                                                             1048576 bytes", "Check \
                                                                                              that \
                                                                                              it \
                                                                                              is \
                                                                                              the \
                                                                                              right \
                                                                                              file, \
                                                                                              that \
                                                                                              it \
                                                                                              is \
                                                                                              complete, \
                                                                                              and \
                                                                                              that \
                                                                                              the \
                                                                                              offset \
                                                                                              and \
                                                                                              size \
                                                                                              you \
                                                                                              gave \
                                                                                              are \
                                                                                              right."),
        ("open noise --type plain --size 36028797018963967 --passphrase-file pass", 2, "the data \
                                                                                        area \
                                                                                        (18446744073709551104 \
                                                                                        bytes from \
                                                                                        byte 0) \
                                                                                        does not \
                                                                                        fit into \
                                                                                        the device \
                                                                                        of 1048576 \
                                                                                        bytes", "Check \
                                                                                                 that \
                                                                                                 it \
                                                                                                 is \
                                                                                                 the \
                                                                                                 right \
                                                                                                 file, \
                                                                                                 that \
                                                                                                 it \
                                                                                                 is \
                                                                                                 complete, \
                                                                                                 and \
                                                                                                 that \
                                                                                                 the \
                                                                                                 offset \
                                                                                                 and \
                                                                                                 size \
                                                                                                 you \
                                                                                                 gave \
                                                                                                 are \
                                                                                                 right."),
        ("open noise --type cryptoloop --cipher aes-99999999999999999 --passphrase-file pass", 2, "unknown mode `99999999999999999`", "Use \
                                                                                                                                       one \
                                                                                                                                       of: \
                                                                                                                                       xts, \
                                                                                                                                       cbc, \
                                                                                                                                       lrw, \
                                                                                                                                       ctr, \
                                                                                                                                       ecb, \
                                                                                                                                       adiantum, \
                                                                                                                                       hctr2."),
        ("open noise --type cryptoloop --key-derivation sideways --passphrase-file pass", 2, "unknown key derivation `sideways`", "Use one of: util-linux, debian-rmd160, hashalot-HASH, where HASH is rmd160compat or a hash such as ripemd160, sha1, sha256, sha384, sha512 or whirlpool."),
        ("open noise --type loopaes --hash crc32 --key-file key", 2, "unknown hash `crc32`", "Use \
                                                                                              one \
                                                                                              of: \
                                                                                              sha1, \
                                                                                              sha224, \
                                                                                              sha256, \
                                                                                              sha384, \
                                                                                              sha512, \
                                                                                              sha3-224, \
                                                                                              sha3-256, \
                                                                                              sha3-384, \
                                                                                              sha3-512, \
                                                                                              ripemd160, \
                                                                                              whirlpool, \
                                                                                              blake2b-512, \
                                                                                              blake2s-256, \
                                                                                              skein-512, \
                                                                                              sm3, \
                                                                                              stribog256, \
                                                                                              stribog512. \
                                                                                              `plain` \
                                                                                              means \
                                                                                              no \
                                                                                              hash."),
        ("open luks2 --cipher aes-xts-plain64 --passphrase-file pass", 2, "--cipher has no meaning for a luks2 volume", "Omit it; it is for plain, cryptoloop, loopaes, tcrypt, veracrypt."),
        ("open luks1 --offset 8 --passphrase-file pass", 2, "--offset has no meaning for a luks1 volume", "Omit it; it is for plain, cryptoloop, loopaes."),
        ("open luks2 --key-derivation util-linux --passphrase-file pass", 2, "--key-derivation has no meaning for a luks2 volume", "Omit it; it is for cryptoloop."),
        ("open noise --type plain --key-slot 0 --passphrase-file pass", 2, "--key-slot has no meaning for a plain volume", "Omit it; it is for luks1, luks2."),
        ("open noise --type plain --header luks2 --passphrase-file pass", 2, "--header has no meaning for a plain volume", "Omit it; it is for luks1, luks2."),
        ("open noise --type loopaes --sector-size 512 --key-file key", 2, "--sector-size has no meaning for a loopaes volume", "Omit it; it is for plain."),
        ("reencrypt luks1 --decrypt --type luks1 --passphrase-file pass", 2, "a LUKS1 volume cannot be decrypted in place", "Only LUKS2 is possible here. For another type, copy the data."),
        ("reencrypt luks2 --decrypt --type veracrypt --passphrase-file pass", 2, "a VeraCrypt volume cannot be decrypted in place", "Only LUKS2 is possible here. For another type, copy the data."),
        ("reencrypt noise --encrypt --type plain --passphrase-file pass", 2, "a plain volume cannot be encrypted in place", "Only LUKS2 is possible here. For another type, copy the data."),
        ("reencrypt noise --encrypt --type luks1 --passphrase-file pass", 2, "a LUKS1 volume cannot be encrypted in place", "Only LUKS2 is possible here. For another type, copy the data."),
        ("passwd noise --type plain --passphrase-file pass --new-passphrase-file wrong", 2, "a plain volume has no key slots", "Only LUKS volumes have key slots."),
    ]);
}

/// Numbers and names that are out of range are named with what is possible.
#[test]
fn values_that_are_not_possible() {
    sandbox().refuses(&[
        (
            "create new --size 20MiB --pbkdf-parallel 8 --passphrase-file pass",
            2,
            "8 lanes for a key derivation are not possible",
            "Give a number from 1 to 4.",
        ),
        (
            "create new --size 20MiB --pbkdf-memory 16 --passphrase-file pass",
            2,
            "16 KiB of memory for a key derivation are not possible",
            "Give a number from 32 to 4194304.",
        ),
        (
            "create new --size 20MiB --uuid hello --passphrase-file pass",
            2,
            "`hello` is not a UUID",
            "Give a UUID such as 123e4567-e89b-42d3-a456-426614174000, or omit it for a \
             random one.",
        ),
        (
            "header set luks2 --uuid hello",
            2,
            "`hello` is not a UUID",
            "Give a UUID such as 123e4567-e89b-42d3-a456-426614174000, or omit it for a \
             random one.",
        ),
        (
            "create new --type plain --key-file key --size 1MiB",
            2,
            "--key-file has no meaning for a plain volume",
            "Omit it, or choose another --type.",
        ),
        (
            "create new --header new --size 20MiB --passphrase-file pass",
            2,
            "--header new is the same as new",
            "Name another file or device.",
        ),
        (
            "create new --size 20MiB --cipher cipher_null-ecb --passphrase-file pass",
            2,
            "cipher_null-ecb encrypts nothing, and has no key that a key slot could hold",
            "Take aes-xts-plain64. Unencrypted data needs no LUKS header.",
        ),
        (
            "open luks2 --header luks2 --passphrase-file pass",
            2,
            "--header luks2 is the same as luks2",
            "Name another file or device.",
        ),
        (
            "header set luks2",
            2,
            "no field to set is given",
            "Give --label, --subsystem or --uuid.",
        ),
    ]);
}

/// What clap refuses, a command that changes nothing, and a name that others write.
#[test]
fn values_that_are_understood() {
    let sandbox = sandbox();
    let cheap = "--pbkdf pbkdf2 --pbkdf-force-iterations 1000 --passphrase-file pass";
    let vera = "--type veracrypt --veracrypt-pim 1 --yes --quick --passphrase-file pass";
    for (arguments, code, phrase) in [
        ("resize luks2 --to 99999999TiB".to_owned(), 2, "more bytes than any device has"),
        ("header repair luks1".into(), 0, ""),
        // cryptsetup's suffixes.
        (format!("create ten --type luks1 --size 10m {cheap}"), 0, ""),
        (format!("create vera --hash HMAC-SHA-512 --size 1MiB {vera}"), 0, ""),
        ("open vera --type veracrypt --hash SHA-512 --veracrypt-pim 1 --passphrase-file pass".into(), 0, ""),
        ("open vera --type veracrypt --hash sha512 --veracrypt-pim 2147469 --passphrase-file pass".into(), 2, "the \
                                                                                                               maximum \
                                                                                                               is \
                                                                                                               2147468"),
    ] {
        let words: Vec<&str> = arguments.split(' ').collect();
        let (got, said) = start(&sandbox, &words);
        assert_eq!(got, Some(code), "{arguments}\n{said}");
        assert!(said.contains(phrase), "{arguments}\n{said}");
    }
    assert_eq!(
        std::fs::metadata(sandbox.path("ten")).unwrap().len(),
        10 << 20
    );
}
