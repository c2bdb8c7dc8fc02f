//! The table of what may be done, and what is said of each of its rows.

use super::{Bench, KIB, MIB, ONE, TWO, mbr, new, outcome, secret, unwatched};
use block::{BlockDevice as _, Hold, RamDevice};
use cryptmark_volume::judge::{self, Finding, Ruling, State, Use};
use cryptmark_volume::operate::{Creation, KeyOptions, add_key, check_blank, create, remove_key};
use cryptmark_volume::{Format, Place};
use std::fs;

/// The documentation has the table, and all that is not said there is not so.
#[test]
fn the_table_is_the_one_in_the_documentation() {
    let source = include_str!("../../src/judge.rs");
    let table = source.split("```").nth(1).unwrap();
    let rows = table
        .lines()
        .skip(2)
        .filter_map(|line| line.strip_prefix("//! "));
    let mut states = State::ALL.into_iter();
    for row in rows.filter(|row| !row.is_empty()) {
        let (name, cells) = row.split_at(16);
        let state = states.next().unwrap();
        assert_eq!(name.trim().replace(' ', "-"), state.name());
        let rulings = cells.split_whitespace().map(|cell| match cell {
            "–" => Ruling::Allowed,
            "ask" => Ruling::Ask,
            "no" => Ruling::Refused,
            other => panic!("{other}"),
        });
        let told: Vec<Ruling> = Use::ALL.iter().map(|use_| use_.ruling(state)).collect();
        assert_eq!(told, rulings.collect::<Vec<_>>(), "{state:?}");
    }
    assert_eq!(states.next(), None);
}

#[test]
fn only_changes_of_headers_wait() {
    for use_ in Use::ALL {
        let is_brief = matches!(
            use_,
            Use::ChangeHeader | Use::ChangeLayout | Use::MendHeader
        );
        for (steady, usual) in [(false, Hold::Usual), (true, Hold::Steady)] {
            let expected = if is_brief { Hold::Brief } else { usual };
            assert_eq!(use_.hold(steady), expected, "{use_:?}");
        }
        let only_header = matches!(use_, Use::ChangeHeader | Use::MendHeader);
        let of_data = if only_header { Use::Read } else { use_ };
        assert_eq!((use_.of_data(true), use_.of_data(false)), (of_data, use_));
    }
}

/// Of a state and a use, how what is found is said, and how what to do about it begins.
const SAID: &str = "
data | Overwrite | holds IT | All of that would be lost. If you don't need it, ALLOW.
stale-header | MendHeader | holds IT in the place of its header, and what is | Nothing was changed. If you want the
stale-header | ChangeHeader | holds IT in the place of its header | Nothing was changed. The device has become
stale-header | Overwrite | holds IT in the place of its header | All of that would be lost.
member | WriteData | is IT, and the other disks would differ from it | Nothing was changed. Assemble the array
member | Overwrite | is IT, and | All of that would be lost.
unfinished | WriteData | IT |
other-header | WriteData | IT | Nothing was changed. Compare the data by each
unencrypted | WriteData | holds IT, which would not be there | Nothing was changed. Check that it is the right
unknown | WriteData | holds IT that decrypt to noise | Nothing was changed. Check the header, the passphrase
exposed | WriteData | IT | Nothing was changed. Make a new volume
weak | Reencrypt | would be weak: IT | Choose aes-xts-plain64, and for VeraCrypt
keyslots | Reencrypt | would lose IT, whose secrets were not given | Where the volume stays encrypted, give each
hidden | Reencrypt | may have a hidden volume, which IT; only its | Nothing was changed. If there is none, ALLOW.
behind | ChangeHeader | holds data behind the volume, IT, which would | Nothing was changed. If you don't need them, repair
behind | ChangeLayout | holds data behind the volume, IT, | Nothing was changed. If you don't need them, ALLOW.
cut-off | ChangeLayout | would lose IT, which would be cut off | Nothing was changed. Make the file system
replaced | MendHeader | would lose IT | Nothing was changed. If the header belongs there
unproved | MendHeader | has IT | Nothing was changed. Prove it with a passphrase
";

#[test]
fn a_finding_says_what_and_what_to_do() {
    for line in SAID.lines().skip(1) {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let [state, use_, said, advice] = cells[..] else {
            panic!("{line}")
        };
        let finding = Finding {
            state: State::named(state).unwrap(),
            use_: *Use::ALL
                .iter()
                .find(|it| format!("{it:?}") == use_)
                .unwrap(),
            found: "IT".into(),
            in_header: false,
        };
        assert!(finding.to_string().starts_with(said), "{finding}");
        let allow = format!("allow `{state}`");
        let remedy = finding.remedy().replace(&allow, "ALLOW");
        assert!(remedy.starts_with(advice), "{line}: {remedy}");
        assert_eq!(remedy.is_empty(), advice.is_empty(), "{line}");
    }
}

/// A volume that would be overwritten is named so that it is known for sure.
#[test]
fn what_would_be_lost_is_named() {
    const UUID: &str = "11111111-2222-3333-4444-555555555555";
    let bench = Bench::new();
    for (format, label, slots, wanted) in [
        (Format::Luks1, "", 1, "a LUKS1 volume (UUID {}, key slot 0)"),
        (
            Format::Luks2,
            "x",
            2,
            "a LUKS2 volume \"x\" (UUID {}, key slots 0, 1)",
        ),
        (
            Format::Luks2,
            "",
            0,
            "a LUKS2 volume (UUID {}, no key slots)",
        ),
    ] {
        let path = bench.path("v");
        let creation = Creation {
            label: label.into(),
            uuid: Some(UUID.into()),
            ..Creation::new(format)
        };
        let mut place = Place::create(&path, None, Some(17 * MIB)).unwrap();
        create(&mut place, Some(&new(ONE)), &creation, &unwatched).unwrap();
        let options = KeyOptions {
            last_too: true,
            ..KeyOptions::default()
        };
        match slots {
            0 => drop(remove_key(&place, &secret(ONE), &options).unwrap()),
            1 => {}
            _ => drop(add_key(&place, &secret(ONE), &new(TWO), &options).unwrap()),
        }
        let said = outcome(check_blank(place.data(), &[]));
        let wanted = format!("data: holds {}", wanted.replace("{}", UUID));
        assert!(said.starts_with(&wanted), "{said}");
        assert!(check_blank(place.data(), &[State::Data]).unwrap());
        drop(place);
        fs::remove_file(path).unwrap();
    }
}

/// What has taken the place of a header, in all of its space.
#[test]
fn a_header_under_something_else_is_stale() {
    fn table(bytes: &mut [u8], format: Format) {
        let magic: [u8; 8] = bytes[..8].try_into().unwrap();
        mbr(bytes);
        if format == Format::Luks1 {
            bytes[..8].copy_from_slice(&magic);
        }
    }
    for (format, name, at, magic) in [
        (Format::Luks1, "", 0, &b""[..]),
        (Format::Luks2, "", 0, b""),
        (Format::Luks1, "MBR", 0, b""),
        (Format::Luks2, "MBR", 0, b""),
        (Format::Luks2, "swap", 4086, b"SWAPSPACE2"),
        (Format::Luks1, "JFS", 32 * KIB, b"JFS1"),
        (Format::Luks2, "JFS", 32 * KIB, b"JFS1"),
    ] {
        let bench = Bench::volume(format);
        let mut bytes = bench.read("v");
        if name == "MBR" {
            table(&mut bytes, format);
        }
        bytes[at..at + magic.len()].copy_from_slice(magic);
        let device = RamDevice::new(bytes.len() as u64);
        device.write_at(0, &bytes).unwrap();
        for use_ in Use::ALL {
            let ruling = use_.ruling(State::StaleHeader);
            let free = name.is_empty() || matches!(use_, Use::Read | Use::Overwrite);
            let said = outcome(judge::check_device(use_, &device, &[]));
            if free || ruling == Ruling::Allowed {
                assert_eq!(said, "()", "{format:?} {name} {use_:?}");
            } else {
                let is_said = said.starts_with("stale-header: holds ") && said.contains(name);
                assert!(is_said, "{format:?} {name} {use_:?}: {said}");
            }
            let accepted = judge::check_device(use_, &device, &State::ALL).is_ok();
            assert_eq!(
                accepted,
                free || ruling != Ruling::Refused,
                "{name} {use_:?}"
            );
        }
    }
}

/// What the table refuses, and what was accepted already, is no question.
#[test]
fn nobody_is_asked_in_vain() {
    for (use_, state, asks) in [
        (Use::WriteData, State::Member, 0),
        (Use::WriteData, State::Unknown, 1),
    ] {
        let mut asked = 0;
        let refuse = |_: &[State]| judge::check(use_, state, "it", &[]);
        let said = judge::asking(
            &[],
            |_| {
                asked += 1;
                true
            },
            refuse,
        );
        assert!(said.is_err());
        assert_eq!(asked, asks, "{state:?}");
    }
}
