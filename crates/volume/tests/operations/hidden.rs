//! Hidden volumes made, and passwords of outer and hidden ones changed.

use super::tcrypt::{
    BOTH, COPY, HIDDEN, HIDDEN_AT, HIDDEN_COPY, STRANGE, THREE, both_open, change, creation, hide,
    volumes, with,
};
use super::{Bench, KIB, ONE, TWO, new, options, text};
use cryptmark_volume::judge::State;
use cryptmark_volume::{Format, Keyfiles};
use std::fs::File;

const SAME: &str = "the hidden volume would open with the same passphrase as the outer one, so it \
                    could not be reached";

#[test]
fn a_hidden_volume_is_made_in_what_is_given_up() {
    for format in BOTH {
        let bench = Bench::volume(format);
        let found = "hidden: may have a hidden volume, which would be destroyed, and so would the \
                     outer volume's data in its last 524288 bytes of 1835008; only its passphrase \
                     can reveal one";
        let accepting = options(format, &[State::Hidden]);
        let is_vera = format == Format::Veracrypt;
        let luks = options(Format::Luks2, &State::ALL);
        let no = "only TrueCrypt and VeraCrypt have hidden volumes";
        let empty = "the new passphrase is empty";
        let weak = "weak: would be weak: a PIM below 485 makes passphrases cheap to guess, and \
                    this one has fewer than 20 bytes";
        let refusals = [
            (&luks, creation(format), new(TWO), no),
            (&options(format, &[]), creation(format), new(TWO), found),
            (&accepting, creation(format), new(""), empty),
            (&accepting, creation(format), new(ONE), SAME),
            (
                &accepting,
                creation(format),
                new("short"),
                if is_vera { weak } else { "" },
            ),
        ];
        for (options, creation, to, wanted) in &refusals {
            if wanted.is_empty() {
                continue;
            }
            bench.ends(wanted, wanted, false, || {
                hide(&bench, options, creation, to)
            });
        }
        // Behind the volume, where the copy of the hidden header would be.
        let before = bench.read("v");
        bench.write("v", [&before[..], &[7; 100 << 10]].concat());
        let strange = format!("the volume holds {}", STRANGE.replace("{}", "2134016"));
        bench.ends("behind", &strange, false, || {
            hide(&bench, &accepting, &creation(format), &new(TWO))
        });
        bench.write("v", &before);
        let made = hide(&bench, &accepting, &creation(format), &new(TWO));
        let wanted = "Created { uuid: None, cipher: \"aes-xts-plain64\", key_bits: 512, derivation: \
                      \"sha512\", data: ByteRange { offset: 1437696, length: 524288 }, \
                      leaves_old_data: false }";
        assert_eq!(made, wanted, "{format:?}");
        let hidden = bench.open("v", None, format, true, TWO).unwrap();
        hidden.write_at(0, &text(HIDDEN)).unwrap();
        drop(hidden);
        both_open(&bench, format, [ONE, TWO], "made");
        // The same passphrase is another password with another PIM, or with key files.
        let files = [bench.path("key")];
        bench.write("key", "a key file");
        let mut other = creation(format);
        other.parameters.keyfiles = Some(Keyfiles::read(&files).unwrap());
        let accepting = options(format, &[State::Hidden, State::Weak]);
        for to in [ONE, ""] {
            let made = hide(&bench, &accepting, &other, &new(to));
            assert!(made.starts_with("Created"), "{to}: {made}");
        }
        let keyed = with(format, |it| {
            it.tcrypt_hidden = true;
            it.keyfiles = other.parameters.keyfiles.clone();
        });
        for (from, to) in [("", THREE), (THREE, "")] {
            let said = change(&bench, &keyed, from, to);
            assert!(
                said.starts_with("None") || said.starts_with("Some"),
                "{said}"
            );
        }
        if is_vera {
            let mut other = creation(format);
            other.parameters.veracrypt_pim = Some(2);
            assert!(hide(&bench, &accepting, &other, &new(ONE)).starts_with("Created"));
        }
    }
}

#[test]
fn a_password_is_changed_where_it_opens_no_other_volume() {
    for format in BOTH {
        let bench = volumes(format);
        let outer = || options(format, &[]);
        let hidden = || with(format, |it| it.tcrypt_hidden = true);
        let backup = || with(format, |it| it.tcrypt_backup = true);
        let no = "only TrueCrypt and VeraCrypt volumes have a password of their own";
        for (options, from, to, wanted) in [
            (options(Format::Luks2, &[]), ONE, THREE, no),
            (outer(), ONE, TWO, SAME),
            (backup(), ONE, TWO, SAME),
            (hidden(), TWO, ONE, SAME),
            (outer(), ONE, "", "the new passphrase is empty"),
            (outer(), TWO, THREE, "no header fits"),
        ] {
            let said = |bench: &Bench| change(bench, &options, from, to);
            if wanted == "no header fits" {
                assert!(!said(&bench).contains("None"));
                continue;
            }
            bench.ends(wanted, wanted, false, || said(&bench));
        }
        // Nothing but the headers is written.
        let before = bench.read("v");
        assert_eq!(change(&bench, &outer(), ONE, THREE), "None");
        both_open(&bench, format, [THREE, TWO], "outer");
        assert_eq!(change(&bench, &hidden(), TWO, ONE), "None");
        both_open(&bench, format, [THREE, ONE], "hidden");
        assert_eq!(change(&bench, &backup(), THREE, TWO), "None");
        both_open(&bench, format, [TWO, ONE], "backup");
        let after = bench.read("v");
        let headers = [0, HIDDEN_AT, COPY, HIDDEN_COPY];
        for at in (0..after.len()).step_by(512) {
            let is_header = headers.contains(&at);
            assert_eq!(
                before[at..at + 512] != after[at..at + 512],
                is_header,
                "{at}"
            );
        }
        let said = change(&bench, &outer(), TWO, "short");
        let weak = "Some(\"a PIM below 485 makes passphrases cheap to guess, and this one has \
                    fewer than 20 bytes\")";
        let is_vera = format == Format::Veracrypt;
        assert_eq!(said, if is_vera { weak } else { "None" });
    }
}

/// Where the file is longer than its volume: a copy of the header goes to the end of the file if
/// nothing is there, and the one of before goes.
#[test]
fn no_copy_is_left_that_opens_with_the_old_password() {
    for format in BOTH {
        let bench = volumes(format);
        let sound = bench.read("v");
        for length in [200 << 10, 6 << 20] {
            let file = File::options().write(true).open(bench.path("v")).unwrap();
            file.set_len((sound.len() + length) as u64).unwrap();
            assert_eq!(change(&bench, &options(format, &[]), ONE, THREE), "None");
            let hidden = with(format, |it| it.tcrypt_hidden = true);
            assert_eq!(change(&bench, &hidden, TWO, ONE), "None");
            both_open(&bench, format, [THREE, ONE], "longer");
            // Its own copies are no reason not to change it again.
            assert_eq!(change(&bench, &options(format, &[]), THREE, TWO), "None");
            assert_eq!(change(&bench, &hidden, ONE, THREE), "None");
            both_open(&bench, format, [TWO, THREE], "again");
            file.set_len(sound.len() as u64).unwrap();
            for (options, old) in [
                (with(format, |it| it.tcrypt_backup = true), ONE),
                (
                    with(format, |it| {
                        it.tcrypt_backup = true;
                        it.tcrypt_hidden = true;
                    }),
                    TWO,
                ),
            ] {
                assert!(!change(&bench, &options, old, "anything").contains("None"));
            }
            bench.write("v", &sound);
            // Something of somebody else's.
            let longer = [&sound[..], &vec![7; length]].concat();
            bench.write("v", &longer);
            for (options, from, at) in [
                (options(format, &[]), ONE, longer.len() - 128 * KIB),
                (
                    with(format, |it| it.tcrypt_hidden = true),
                    TWO,
                    longer.len() - 64 * KIB,
                ),
            ] {
                let wanted = format!(
                    "behind: holds data behind the volume, at byte {at}, where the copy of its \
                     header belongs, which would be lost"
                );
                bench.ends("behind", &wanted, false, || {
                    change(&bench, &options, from, THREE)
                });
            }
            bench.write("v", &sound);
        }
    }
}
