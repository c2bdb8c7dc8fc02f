//! Passphrases of which something is still known, found on volumes of every kind.

// What makes the volumes is shared with the crate's own tests.
extern crate volume as cryptmark_volume;

#[path = "../crates/volume/tests/bitlk/maker.rs"]
#[allow(dead_code)]
mod maker;

use maker::{PASSPHRASE, RECOVERY, Recipe};
use serde_json::Value;
use std::process::{Command, Output, Stdio};
use std::time::Duration;
use testkit::{CHEAP, Expect, Running, Sandbox, wait_until};

const PROGRAM: &str = env!("CARGO_BIN_EXE_cryptmark");

fn sandbox() -> Sandbox {
    Sandbox::new(PROGRAM)
}

/// A LUKS volume `v.img` that `secret` opens, whatever its bytes.
fn luks(sandbox: &Sandbox, kind: &str, secret: impl AsRef<[u8]>) {
    sandbox.write("secret", secret);
    let _ = std::fs::remove_file(sandbox.path("v.img"));
    sandbox.volume(&format!(
        "create v.img --type {kind} --size 20MiB {CHEAP} --key-file secret"
    ));
}

/// What `recall` prints and says, after checks that it has left `image` alone, and that nothing
/// of `secrets` is in it.
#[track_caller]
fn recall(sandbox: &Sandbox, code: i32, image: &str, options: &str, secrets: &[&str]) -> Output {
    let before = sandbox.read(image);
    let output = sandbox
        .volume_command(&format!("recall {image} {options}"))
        .ends(code);
    assert!(sandbox.read(image) == before, "it changed the volume");
    let both = [&output.stdout[..], &output.stderr].concat();
    for secret in secrets {
        let has = both
            .windows(secret.len())
            .any(|part| part == secret.as_bytes());
        assert!(!has, "{}", String::from_utf8_lossy(&both));
    }
    output
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// What was found, without how much there was to try and how long it takes.
fn found(output: &Output) -> &str {
    let said = text(&output.stdout);
    &said[said.find("found ").unwrap_or(said.len())..]
}

#[test]
fn every_kind_of_change_is_found() {
    let sandbox = sandbox();
    let line = "--passphrase-file given";
    let keyboards = &format!("{line} --typed-on de --meant us");
    let cases: [(&[u8], &str, &str, &str); 11] = [
        (b"Sesame 7", "Sesame 7\n", line, "the passphrase as it is"),
        (
            b"Sesame 7\n",
            "Sesame 7\n",
            line,
            "the passphrase with a line feed at its end",
        ),
        (
            b"Sesame 7",
            "Sesame 7\r\n",
            line,
            "the passphrase without its line end",
        ),
        (
            b"Sesame 7",
            "Sesame 7\n",
            "--key-file given",
            "the key file without its line end",
        ),
        (
            b"sESAME 7",
            "Sesame 7\n",
            line,
            "the passphrase with Caps Lock on",
        ),
        (
            b"sesame 7",
            "Sesame 7\n",
            line,
            "the passphrase with the other case of its first letter",
        ),
        (
            "Sésame".as_bytes(),
            "Se\u{301}same\n",
            line,
            "the passphrase with composed characters (Unicode NFC)",
        ),
        (
            "Se\u{301}same".as_bytes(),
            "Sésame\n",
            line,
            "the passphrase with decomposed characters (Unicode NFD)",
        ),
        (b"S\xe9same", "Sésame\n", line, "the passphrase in Latin-1"),
        (
            "Seyameß".as_bytes(),
            "Sezame-\n",
            keyboards,
            "the passphrase typed on a German keyboard",
        ),
        (
            b"sEYAME\r\n",
            "Sezame\n",
            keyboards,
            "the passphrase typed on a German keyboard, with Caps Lock on, with a carriage return \
             and a line feed at its end",
        ),
    ];
    for (secret, given, options, words) in cases {
        luks(&sandbox, "luks2", secret);
        sandbox.write("given", given);
        let secrets = ["esame", "ezame", "eyame", "same", "SAME"];
        let output = recall(&sandbox, 0, "v.img", options, &secrets);
        let expected = format!("found       {words}\nkeyslot     0\n");
        assert_eq!(found(&output), expected);
    }
}

#[test]
fn a_pattern_is_filled_in() {
    let sandbox = sandbox();
    luks(&sandbox, "luks2", "Sesame h?");
    sandbox.write("given", "[R-T]?sam[e] ?\\?\n");
    let options = "--passphrase-file given --pattern --characters e-h";
    let output = recall(&sandbox, 0, "v.img", options, &["esame", "sam"]);
    let said = found(&output);
    assert_eq!(said, "found       the pattern as it is\nkeyslot     0\n");
    // As it is, with Caps Lock on, with the other case, and with two line ends.
    let count = 3 * 4 * 4 * 5;
    let said = text(&output.stdout);
    let expected = format!("candidates  {count}, ");
    assert!(said.starts_with(&expected), "{said}");
    let output = recall(&sandbox, 0, "v.img", &format!("{options} --show"), &[]);
    assert!(text(&output.stdout).ends_with("\npassphrase  Sesame h?\n"));
}

/// Its header is all that a passphrase is tried on.
#[test]
fn a_backup_of_a_header_is_enough() {
    let sandbox = sandbox();
    luks(&sandbox, "luks2", "Sesame\n");
    sandbox.volume("header backup v.img --output saved");
    sandbox.write("given", "Sesame\n");
    let words = "found       the passphrase with a line feed at its end\nkeyslot     0\n";
    for options in ["saved", "v.img --header saved"] {
        let (image, options) = options.split_once(' ').unwrap_or((options, ""));
        let options = format!("{options} --passphrase-file given");
        let output = recall(&sandbox, 0, image, &options, &["Sesame"]);
        assert_eq!(found(&output), words);
    }
}

#[test]
fn what_is_not_text_is_shown_in_hexadecimal() {
    let sandbox = sandbox();
    luks(&sandbox, "luks2", b"\xe9t\xe9");
    sandbox.write("given", "été\n");
    let options = "--passphrase-file given --show --key-slot 0";
    let output = recall(&sandbox, 0, "v.img", options, &[]);
    assert!(text(&output.stdout).ends_with("\nhexadecimal e974e9\n"));
}

#[test]
fn nothing_fits() {
    let sandbox = sandbox();
    luks(&sandbox, "luks1", "Sesame");
    sandbox.write("given", "Mohn\n");
    let options = "--passphrase-file given --resume kept";
    for round in 0..2 {
        let output = recall(&sandbox, 3, "v.img", options, &["Mohn", "mohn", "MOHN"]);
        let counted = text(&output.stdout);
        assert!(counted.starts_with("candidates  20, "), "{counted}");
        let said = text(&output.stderr);
        let mut lines = said.lines().rev();
        let (tried, error) = (lines.next().unwrap(), lines.next().unwrap());
        assert_eq!(error, "error: none of the 20 candidates opens the volume");
        for words in [
            "as it is",
            "with Caps Lock on",
            "with a line feed at its end",
        ] {
            assert!(tried.contains(words), "{tried}");
        }
        let before = counted.contains("\ntried       20 before, ");
        assert_eq!(before, round == 1, "{counted}");
        assert_eq!(sandbox.read_json("kept")["tried"], 20);
        assert!(!sandbox.read_text("kept").contains("ohn"));
    }
}

#[test]
fn a_pim_is_found_in_a_range() {
    let sandbox = sandbox();
    sandbox.write("right", "Sesame\n");
    let kind = "--type veracrypt --hash sha512";
    sandbox.volume(&format!(
        "create v.img {kind} --veracrypt-pim 3 --yes --size 1MiB --passphrase-file right"
    ));
    let options = format!("{kind} --passphrase-file right --veracrypt-pim 1..4");
    let output = recall(&sandbox, 0, "v.img", &options, &["Sesame"]);
    let said = found(&output);
    assert_eq!(said, "found       the passphrase as it is, PIM 3\n");
    // A change and a PIM together, and one PIM as for every command.
    sandbox.write("right", "sesame\n");
    let slip = "the passphrase with the other case of its first letter";
    let output = recall(&sandbox, 0, "v.img", &options, &["esame"]);
    assert_eq!(found(&output), format!("found       {slip}, PIM 3\n"));
    let one = options.replace("1..4", "3");
    let output = recall(&sandbox, 0, "v.img", &one, &["esame"]);
    assert_eq!(found(&output), format!("found       {slip}\n"));
    let output = recall(
        &sandbox,
        3,
        "v.img",
        &options.replace("1..4", "1..2"),
        &["esame"],
    );
    assert!(text(&output.stderr).contains("each with PIM 1 to 2"));
    let open = format!("open v.img {options}");
    let said = sandbox.refused(2, "v.img", &open);
    assert!(said.contains("volume recall"), "{said}");
    let huge = options.replace("1..4", "2147468..2147469");
    let said = sandbox.refused(2, "v.img", &format!("recall v.img {huge}"));
    assert!(said.contains("2147468"), "{said}");
}

#[test]
fn truecrypt_and_its_limits() {
    let sandbox = sandbox();
    // The longest that it takes, so that no line end fits.
    let longest = "Sesame".repeat(11)[..64].to_owned();
    sandbox.write("right", &longest);
    sandbox.volume("create v.img --type tcrypt --size 1MiB --passphrase-file right");
    sandbox.write("given", format!("[sS]{}", &longest[1..]));
    let options = "--type tcrypt --pattern --passphrase-file given";
    let output = recall(&sandbox, 0, "v.img", options, &["esame"]);
    assert_eq!(found(&output), "found       the pattern as it is\n");
    sandbox.write("given", format!("{}x", &longest[1..]));
    recall(&sandbox, 3, "v.img", options, &["esame"]);
}

#[test]
fn bitlocker_by_passphrase_and_recovery_password() {
    let sandbox = sandbox();
    let made = Recipe::default().make(vec![0; 6 << 20]);
    sandbox.write("v.img", &made.image);
    let decomposed = PASSPHRASE.replace('\u{fc}', "u\u{308}");
    assert_ne!(decomposed, PASSPHRASE);
    sandbox.write("given", format!("{decomposed}\n"));
    let options = "--passphrase-file given";
    let output = recall(&sandbox, 0, "v.img", options, &["a passphrase"]);
    let said = found(&output);
    let words = "found       the passphrase with composed characters (Unicode NFC)\nprotector   ";
    assert!(said.starts_with(words), "{said}");
    // A digit of the recovery password that cannot be read.
    let pattern = RECOVERY.replacen("278", "2?8", 1);
    sandbox.write("given", format!("{pattern}\n"));
    let options = "--passphrase-file given --pattern --characters 0-9";
    let output = recall(&sandbox, 0, "v.img", options, &["471207", "278498"]);
    let said = found(&output);
    assert!(
        said.starts_with("found       the pattern as it is\nprotector   "),
        "{said}"
    );
}

#[test]
fn a_search_goes_on_where_it_was() {
    let sandbox = sandbox();
    luks(&sandbox, "luks2", "Sesame9");
    sandbox.write("given", "Sesame?\n");
    let recalled = "--passphrase-file given --pattern --characters 0-9 --resume kept";
    // Somebody has tried all of them on another volume, and the file says so.
    luks(&sandbox, "luks2", "Mohn");
    recall(&sandbox, 3, "v.img", recalled, &["esame"]);
    let said = sandbox.read_text("kept");
    assert!(!said.contains("esame"), "{said}");
    let other = sandbox.read_json("kept");
    luks(&sandbox, "luks2", "Sesame9");
    let command = format!("recall v.img {recalled}");
    let said = sandbox.refused(2, "v.img", &command);
    assert!(said.contains("kept is of another search"), "{said}");
    assert_eq!(sandbox.read_json("kept"), other);
    std::fs::remove_file(sandbox.path("kept")).unwrap();
    // The right one is the tenth: beyond it, it is not found again, and before it, it is.
    sandbox.write("given", "Mohnxx?\n");
    recall(&sandbox, 3, "v.img", recalled, &["ohn"]);
    sandbox.write("given", "Sesame?\n");
    for (tried, code) in [(10, 3), (9, 0)] {
        let mut kept: Value = match code {
            3 => sandbox.read_json("kept"),
            _ => sandbox.read_json("before"),
        };
        sandbox.write("before", kept.to_string());
        kept["tried"] = tried.into();
        sandbox.write("kept", kept.to_string());
        let output = recall(&sandbox, code, "v.img", recalled, &["esame"]);
        let said = text(&output.stdout);
        assert!(
            said.contains(&format!("\ntried       {tried} before, ")),
            "{said}"
        );
    }
    // The number of the right one would say which it is.
    assert!(!sandbox.path("kept").exists());
    for foreign in ["", "{}", "\u{0}", r#"{"schema":"cryptmark-recall/2"}"#] {
        sandbox.write("kept", foreign);
        let said = sandbox.refused(2, "v.img", &command);
        assert!(
            said.contains("is not a file that --resume has made"),
            "{said}"
        );
        assert_eq!(sandbox.read_text("kept"), foreign);
    }
}

#[cfg(unix)]
#[test]
fn an_interrupted_search_is_kept() {
    let sandbox = sandbox();
    luks(&sandbox, "luks2", "Sesame~~");
    sandbox.write("given", "Sesame??\n");
    let options = "recall v.img --passphrase-file given --pattern --characters a-zA-Z0-9~ --resume kept \
                   --yes";
    let begin = |command: &mut Command| {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        Running::start(command)
    };
    let mut running = begin(&mut sandbox.volume_command(options));
    wait_until("the search does not begin", || {
        sandbox.path("kept").exists()
    });
    std::thread::sleep(Duration::from_millis(1500));
    running.signal("-INT");
    assert_eq!(running.0.wait().unwrap().code(), Some(130));
    let kept = sandbox.read_json("kept");
    let (tried, count) = (kept["tried"].as_u64(), kept["candidates"].as_u64());
    let (tried, count) = (tried.unwrap(), count.unwrap());
    assert!(tried > 0 && tried < count, "{kept}");
    assert!(!sandbox.read_text("kept").contains("esame"));
    let output = recall(&sandbox, 0, "v.img", &options[13..], &["esame"]);
    let said = text(&output.stdout);
    assert!(
        said.contains(&format!("\ntried       {tried} before, ")),
        "{said}"
    );
    assert!(!sandbox.path("kept").exists());
}

#[test]
fn long_searches_are_confirmed_and_endless_ones_refused() {
    let sandbox = sandbox();
    luks(&sandbox, "luks2", "Sesame");
    sandbox.write("given", "Mohn?????\n");
    let options = "--passphrase-file given --pattern";
    let output = recall(&sandbox, 2, "v.img", options, &["Mohn"]);
    let said = text(&output.stderr);
    assert!(said.contains("takes more than 10 minutes"), "{said}");
    let said = text(&output.stdout);
    assert!(said.contains("years") || said.contains("weeks"), "{said}");
    sandbox.write("given", "Mohn???????\n");
    let said = sandbox.refused(2, "v.img", &format!("recall v.img {options}"));
    assert!(said.contains("69833729609375"), "{said}");
}

#[test]
fn what_cannot_be_searched_is_refused() {
    let sandbox = sandbox();
    luks(&sandbox, "luks2", "Sesame");
    sandbox.write("given", "Sesame[a\n");
    for kind in ["plain", "cryptoloop", "loopaes"] {
        let command = format!("recall v.img --type {kind} --passphrase-file given");
        let said = sandbox.refused(2, "v.img", &command);
        assert!(said.contains("cannot tell a right passphrase"), "{said}");
    }
    for (options, words) in [
        (
            "--passphrase-file given --pattern",
            "character 7 of the pattern",
        ),
        ("--volume-key-file given", "not a passphrase or a key file"),
        (
            "--passphrase-file given --resume v.img",
            "is the same as v.img",
        ),
        (
            "--passphrase-file given --resume given",
            "is the same as given",
        ),
        (
            "--passphrase-file secret --typed-on de --meant fr --veracrypt-pim 1..2",
            "--veracrypt-pim has no meaning",
        ),
        (
            "--passphrase-file umlaut --typed-on de --meant us",
            "needs AltGr",
        ),
        ("--passphrase-file secret --key-slot 3", "keyslot 3"),
    ] {
        sandbox.write("umlaut", "ä\n");
        let before = sandbox.read("given");
        let output = recall(&sandbox, 2, "v.img", options, &["Sesame"]);
        let said = text(&output.stderr);
        assert!(said.contains(words), "{said}");
        assert!(sandbox.read("given") == before);
    }
}
