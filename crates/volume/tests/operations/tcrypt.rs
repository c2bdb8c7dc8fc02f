//! TrueCrypt and VeraCrypt: headers and their copies, passwords, and hidden volumes.

use super::{
    Bench, KIB, MIB, ONE, TWO, mbr, mended, new, options, outcome, parameters, place, secret,
    spoil, text,
};
use cryptmark_volume::judge::{State, Use};
use cryptmark_volume::operate::{
    Creation, HiddenCreation, NewKey, Options, PasswordChange, repair_header, resize,
    restore_header, save_header, unwatched,
};
use cryptmark_volume::{Format, Parameters};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU32, Ordering};

pub const BOTH: [Format; 2] = [Format::Tcrypt, Format::Veracrypt];
pub const THREE: &str = "three passphrases of many letters";
pub const HIDDEN: u64 = 512 << 10;

/// The headers, and their copies, in a volume of 2 MiB.
pub const HIDDEN_AT: usize = 64 * KIB;
pub const COPY: usize = (2 << 20) - 128 * KIB;
pub const HIDDEN_COPY: usize = COPY + HIDDEN_AT;

pub const STRANGE: &str =
    "data behind the volume, at byte {}, where the copy of its header belongs";

pub fn with(format: Format, change: impl FnOnce(&mut Parameters)) -> Options {
    let mut options = options(format, &[]);
    change(&mut options.parameters);
    options
}

/// Makes a hidden volume, and says what came of it.
pub fn hide(bench: &Bench, outer: &Options, creation: &Creation, to: &NewKey) -> String {
    let place = place(&bench.path("v"), Use::WriteData);
    let one = secret(ONE);
    let begun = HiddenCreation::begin(&place, &one, (creation, HIDDEN), outer, &unwatched);
    outcome(begun.and_then(|begun| begun.finish(to)))
}

/// How a hidden volume of `format` is made.
pub fn creation(format: Format) -> Creation {
    Creation {
        parameters: parameters(format, false),
        ..Creation::new(format)
    }
}

/// A volume with a hidden one, which opens with [`TWO`] and is full of [`text`].
pub fn volumes(format: Format) -> Bench {
    let bench = Bench::volume(format);
    let accepting = options(format, &[State::Hidden]);
    hide(&bench, &accepting, &creation(format), &new(TWO));
    let hidden = bench.open("v", None, format, true, TWO).unwrap();
    hidden.write_at(0, &text(HIDDEN)).unwrap();
    bench
}

/// Asserts that both volumes open, by their headers and by the copies, and that the hidden one's
/// data are whole.
pub fn both_open(bench: &Bench, format: Format, [outer, hidden]: [&str; 2], case: &str) {
    for (of_hidden, text_of) in [(false, outer), (true, hidden)] {
        for backup in [false, true] {
            let options = cryptmark_volume::OpenOptions {
                format: Some(format),
                parameters: Parameters {
                    tcrypt_backup: backup,
                    ..parameters(format, of_hidden)
                },
                ..Default::default()
            };
            let path = bench.path("v");
            let opened = cryptmark_volume::Volume::open(&path, Some(&secret(text_of)), &options);
            let volume =
                opened.unwrap_or_else(|error| panic!("{case} {of_hidden} {backup}: {error}"));
            let mut bytes = vec![0; if of_hidden { HIDDEN } else { MIB } as usize];
            volume.read_at(0, &mut bytes).unwrap();
            assert!(
                bytes == text(bytes.len() as u64),
                "{case} {of_hidden} {backup}"
            );
        }
    }
}

pub fn change(bench: &Bench, options: &Options, from: &str, to: &str) -> String {
    let place = place(&bench.path("v"), Use::ChangeHeader);
    let begun = PasswordChange::begin(&place, &secret(from), options, &unwatched);
    outcome(begun.and_then(|begun| {
        assert_eq!(begun.has_keyfiles(), options.parameters.keyfiles.is_some());
        begun.finish(&new(to), &unwatched)
    }))
}

fn repair(bench: &Bench, options: &Options, with: &str) -> String {
    let place = place(&bench.path("v"), Use::MendHeader);
    mended(repair_header(
        &place,
        Some(&secret(with)),
        None,
        options,
        &unwatched,
    ))
}

#[test]
fn whichever_is_good_mends_the_other() {
    for format in BOTH {
        let bench = volumes(format);
        let sound = bench.read("v");
        for (at, of_hidden, wanted) in [
            (0, false, "the header is rewritten from its copy"),
            (COPY, false, "the copy is rewritten from the header"),
            (
                HIDDEN_AT,
                true,
                "the hidden volume's header is rewritten from its copy",
            ),
            (
                HIDDEN_COPY,
                true,
                "the hidden volume's copy is rewritten from its header",
            ),
        ] {
            let with_one = if of_hidden { TWO } else { ONE };
            let named = with(format, |it| it.tcrypt_hidden = of_hidden);
            // The place need not be named.
            for options in [named, options(format, &[])] {
                let mut image = sound.clone();
                spoil(&mut image[at..][..512]);
                bench.write("v", &image);
                bench.ends(wanted, "no header", false, || {
                    repair(&bench, &options, THREE)[..9].to_owned()
                });
                let said = format!("changed: {wanted}\n");
                bench.ends(wanted, &said, true, || repair(&bench, &options, with_one));
                both_open(&bench, format, [ONE, TWO], wanted);
                image[at..][..512].copy_from_slice(&bench.read("v")[at..][..512]);
                assert!(bench.read("v") == image, "{wanted}: elsewhere");
                let good = "the header and its copy are good\n";
                bench.ends(wanted, good, false, || repair(&bench, &options, with_one));
            }
        }
    }
}

#[test]
fn what_took_the_place_of_a_header_stays() {
    for format in BOTH {
        let bench = volumes(format);
        let sound = bench.read("v");
        let all = options(format, &State::ALL);
        // A table where the header was, and something else behind the volume.
        let mut image = sound.clone();
        mbr(&mut image);
        let there = "replaced: would lose an MBR partition table, which it holds where the header \
                     belongs";
        let longer = [&sound[..], &vec![7; 200 << 10]].concat();
        let behind = format!("replaced: would lose {}", STRANGE.replace("{}", "2170880"));
        for (image, wanted) in [(&image, there), (&longer, &behind)] {
            bench.write("v", image);
            bench.ends(wanted, wanted, false, || {
                repair(&bench, &options(format, &[]), ONE)
            });
            assert!(
                repair(&bench, &all, ONE).starts_with("changed: "),
                "{wanted}"
            );
            assert!(bench.opens(format, ONE), "{wanted}");
        }
    }
}

/// A header that was put back by hand, of a smaller volume than its copy tells of.
#[test]
fn one_of_two_that_differ_is_not_chosen_unasked() {
    for format in BOTH {
        let bench = Bench::volume(format);
        let old = bench.read("v");
        let mut place = place(&bench.path("v"), Use::ChangeLayout);
        resize(
            &mut place,
            3 * MIB,
            Some(&secret(ONE)),
            &options(format, &[]),
            &unwatched,
        )
        .unwrap();
        drop(place);
        let mut image = bench.read("v");
        image[..512].copy_from_slice(&old[..512]);
        bench.write("v", image);
        let wanted = "replaced: would lose one of a header and its copy, which open and describe \
                      different data";
        bench.ends(wanted, wanted, false, || {
            repair(&bench, &options(format, &[]), ONE)
        });
        let all = options(format, &State::ALL);
        bench.ends(
            wanted,
            "changed: the copy is rewritten from the header\n",
            true,
            || repair(&bench, &all, ONE),
        );
    }
}

fn restore(bench: &Bench, name: &str, options: &Options) -> String {
    let place = place(&bench.path(name), Use::MendHeader);
    let saved = super::opened(&bench.path("saved"));
    mended(restore_header(
        &place,
        &*saved,
        Some(&secret(ONE)),
        options,
        &unwatched,
    ))
}

#[test]
fn a_backup_goes_over_nothing_unasked() {
    const DONE: &str = "the header and its copy are rewritten from the backup\n";
    for format in BOTH {
        let bench = volumes(format);
        let path = bench.path("v");
        let said = save_header(
            &place(&path, Use::Read),
            &bench.path("saved"),
            &options(format, &[]),
        );
        let wanted = format!("the {format} volume that says nothing of itself");
        assert_eq!(said.unwrap(), wanted);
        let sound = bench.read("v");
        assert!(bench.read("saved") == sound[..128 * KIB]);
        bench.make("other", format);
        let other = bench.read("other");
        let mut fallen = sound.clone();
        mbr(&mut fallen);
        let longer = [&sound[..], &vec![7; 200 << 10]].concat();
        let mut place = place(&path, Use::ChangeLayout);
        resize(
            &mut place,
            3 * MIB,
            Some(&secret(ONE)),
            &options(format, &[]),
            &unwatched,
        )
        .unwrap();
        drop(place);
        let grown = bench.read("v");
        bench.write("v", &sound);
        assert_eq!(change(&bench, &options(format, &[]), ONE, THREE), "None");
        let changed = bench.read("v");
        let mut spoilt = sound.clone();
        spoil(&mut spoilt[..512]);
        let mut swapped = vec![0; sound.len()];
        swapped[4086..4096].copy_from_slice(b"SWAPSPACE2");
        let nothing = "what it holds: no header there opens with what opens the backup, and that \
                       of another volume or another passphrase looks like noise";
        for (image, lost) in [
            (&sound, ""),
            (&spoilt, ""),
            (
                &fallen,
                "an MBR partition table, which it holds in place of that header",
            ),
            (&longer, &*STRANGE.replace("{}", "2170880")),
            (
                &grown,
                "the place of its data: 2883584 bytes from byte 131072, and in the backup 1835008 \
                 bytes from byte 131072",
            ),
            (
                &other,
                "the keys of its data, which are not the backup's: they could never be read again",
            ),
            (&changed, nothing),
            (&vec![0; sound.len()], nothing),
            (
                &swapped,
                "swap space, which it holds in place of that header",
            ),
        ] {
            bench.write("w", image);
            if !lost.is_empty() {
                let wanted = format!("replaced: would lose {lost}");
                bench.ends(lost, &wanted, false, || {
                    restore(&bench, "w", &options(format, &[]))
                });
            }
            let accepted: &[State] = if lost.is_empty() {
                &[]
            } else {
                &[State::Replaced]
            };
            let mark = if lost.is_empty() { "" } else { "lost: " };
            let done = format!("changed: {mark}{DONE}");
            bench.ends(lost, &done, true, || {
                restore(&bench, "w", &options(format, accepted))
            });
            // Only its own volume has the hidden one, and the data.
            if [&sound, &spoilt, &fallen, &changed].contains(&image) {
                bench.write("v", bench.read("w"));
                both_open(&bench, format, [ONE, TWO], lost);
            }
        }
        bench.write("v", &changed);
        // It needs a secret, and a search that is stopped says nothing of the volume.
        let saved = super::opened(&bench.path("saved"));
        let place = super::place(&path, Use::MendHeader);
        let all = options(format, &State::ALL);
        let none = restore_header(&place, &*saved, None, &all, &unwatched).unwrap_err();
        assert!(
            matches!(none, super::VolumeError::NoSecret { .. }),
            "{none}"
        );
        let none = repair_header(&place, None, None, &all, &unwatched).unwrap_err();
        assert!(
            matches!(none, super::VolumeError::NoSecret { .. }),
            "{none}"
        );
        let one = secret(ONE);
        // Each of the two searches, that in the backup and that in the volume, can be stopped.
        for most in 1.. {
            let calls = AtomicU32::new(0);
            let stop = |_, _| match calls.fetch_add(1, Ordering::Relaxed) < most {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(()),
            };
            let before = bench.read("v");
            let said = restore_header(&place, &*saved, Some(&one), &options(format, &[]), &stop);
            assert!(bench.read("v") == before);
            if calls.into_inner() <= most {
                assert!(outcome(said).starts_with("replaced: "));
                break;
            }
            assert_eq!(outcome(said), "interrupted");
        }
    }
}
