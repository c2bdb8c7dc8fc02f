//! Headers kept before an operation changes them.

use super::{Bench, KIB, MIB, OFFSET, ONE, mbr, opened, spoil};
use block::layer::{Effect, Fault, Rule, Trigger};
use block::{ByteRange, OperationKind};
use cryptmark_volume::operate::backups::{
    Backups, Change, ENDS, Otherwise, START_ONLY, mark, plain_name, stored,
};
use cryptmark_volume::{Format, VolumeError};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The start of a device that is kept without a header, and a header of VeraCrypt's and its copy.
const START: usize = 16 << 20;
const END: usize = 128 * KIB;

/// Where LUKS1 has its UUID, and the salt of its last key slot, which is not in use.
const UUID: usize = 168;
const SALT: usize = 592 - 40;

fn before(bench: &Bench, command: &'static str, otherwise: Otherwise) -> Backups {
    let change = Change { command, otherwise };
    Backups::before(Some((change, Some(bench.path("a").join("b")))))
}

impl Bench {
    /// Keeps the header of a file, as the command does; the name of the backup.
    fn keep(&self, backups: &Backups, name: &str) -> Result<Option<String>, VolumeError> {
        let path = self.path(name);
        backups.keep(&path, path.clone(), &*opened(&path))?;
        let kept = backups.kept();
        Ok(kept.map(|kept| kept.file_name().unwrap().to_str().unwrap().to_owned()))
    }

    /// The same by one command, that succeeds.
    fn done(&self, command: &'static str, name: &str) -> Option<String> {
        let backups = before(self, command, Otherwise::Start);
        let kept = self.keep(&backups, name).unwrap();
        backups.end();
        kept
    }

    fn all_kept(&self) -> Vec<(String, PathBuf)> {
        let all = stored(&self.path("a").join("b")).unwrap();
        all.into_iter().map(|one| (one.command, one.path)).collect()
    }
}

/// What is kept of each content, by what is asked for if there is no header.
#[test]
fn each_content_is_kept_as_it_was() {
    let noise = |bytes: usize| {
        let mut noise = vec![0; bytes];
        spoil(&mut noise);
        noise
    };
    let long = noise(START + 4096);
    let short = noise(2 * END - 512);
    let both = noise(2 * END);
    let mut table = vec![0; MIB as usize];
    mbr(&mut table);
    let ends = |bytes: &[u8]| [&bytes[..END], &bytes[bytes.len() - END..]].concat();
    for (case, bytes, at_ends, at_start) in [
        ("zeros", vec![0; MIB as usize], None, None),
        ("table", table.clone(), None, Some(table)),
        (
            "long",
            long.clone(),
            Some(ends(&long)),
            Some(long[..START].to_vec()),
        ),
        (
            "short",
            short.clone(),
            Some(short[..END].to_vec()),
            Some(short),
        ),
        ("both", both.clone(), Some(ends(&both)), Some(both)),
    ] {
        for (otherwise, kind, wanted) in [
            (Otherwise::Nothing, "", None),
            (Otherwise::Ends, ENDS, at_ends),
            (Otherwise::Start, START_ONLY, at_start),
        ] {
            let bench = Bench::new();
            bench.write("v", &bytes);
            let backups = before(&bench, "passwd", otherwise);
            let kept = bench.keep(&backups, "v").unwrap();
            assert_eq!(kept.is_some(), wanted.is_some(), "{case} {otherwise:?}");
            let Some(wanted) = wanted else { continue };
            let path = backups.kept().unwrap();
            assert!(fs::read(&path).unwrap() == wanted, "{case} {otherwise:?}");
            let one = &stored(path.parent().unwrap()).unwrap()[0];
            let told = (&*one.volume, &*one.command, &*one.kind);
            assert_eq!(told, ("unknown", "passwd", kind));
            assert_eq!(
                (one.mark.clone(), &one.path),
                (mark(&bench.path("v")), &path)
            );
        }
    }
}

/// The copy of a header opens the volume again, and has nothing of what is not in use.
#[test]
fn a_header_is_kept_with_the_key_slots_in_use() {
    for format in [Format::Luks1, Format::Luks2] {
        for otherwise in [Otherwise::Nothing, Otherwise::Ends, Otherwise::Start] {
            let bench = Bench::volume(format);
            let mut bytes = bench.read("v");
            // The end of the key slots' area.
            let unused = OFFSET as usize - 4096..OFFSET as usize;
            spoil(&mut bytes[unused.clone()]);
            bench.write("v", &bytes);
            let name = bench
                .keep(&before(&bench, "key", otherwise), "v")
                .unwrap()
                .unwrap();
            let (_, path) = bench.all_kept().remove(0);
            let kept = fs::read(&path).unwrap();
            assert!(name.ends_with(&format!("_key.{}", format.name())), "{name}");
            assert!(
                kept.get(unused)
                    .is_none_or(|kept| kept.iter().all(|byte| *byte == 0))
            );
            bytes[..OFFSET as usize].fill(0);
            bytes[..kept.len()].copy_from_slice(&kept);
            bench.write("v", &bytes);
            bench.holds(format, ONE, "put back");
        }
    }
}

/// Folders that are made are the user's alone.
#[test]
fn the_folder_is_made_or_said_to_be_missing() {
    let bench = Bench::volume(Format::Luks1);
    let change = Change {
        command: "key",
        otherwise: Otherwise::Nothing,
    };
    let nowhere = Backups::before(Some((change, None)));
    let no = bench.keep(&nowhere, "v").unwrap_err();
    assert!(matches!(no, VolumeError::NoBackupFolder), "{no}");
    assert_eq!(bench.keep(&Backups::default(), "v").unwrap(), None);
    assert!(stored(&bench.path("a")).unwrap().is_empty());
    bench.write("a", "a file");
    let no = bench
        .keep(&before(&bench, "key", Otherwise::Nothing), "v")
        .unwrap_err();
    assert!(matches!(no, VolumeError::NotKept { .. }), "{no}");
    assert!(stored(&bench.path("a")).is_err());
    fs::remove_file(bench.path("a")).unwrap();
    bench.done("key", "v").unwrap();
    for folder in [bench.path("a"), bench.path("a").join("b")] {
        let mode = fs::metadata(folder).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
    }
    // Bytes that cannot be read may be anything.
    bench.write("v", vec![0; MIB as usize]);
    for (otherwise, kind) in [(Otherwise::Ends, ENDS), (Otherwise::Start, START_ONLY)] {
        let middle = Trigger::Touching(ByteRange::new(MIB / 2, 512));
        let rules = [OperationKind::Read].map(|read| Rule::on(read, middle, Effect::Fail(5)));
        let failing = Fault::new(opened(&bench.path("v")), rules);
        let backups = before(&bench, "key", otherwise);
        backups.keep(Path::new("v"), "v".into(), &failing).unwrap();
        let kept = backups.kept().unwrap();
        assert_eq!(kept.extension().unwrap(), kind);
    }
}

#[test]
fn a_header_is_kept_once_and_its_oldest_copies_go() {
    let bench = Bench::volume(Format::Luks1);
    let change = |number: u8| {
        let mut bytes = bench.read("v");
        bytes[SALT] = number;
        bench.write("v", &bytes);
    };
    let one = before(&bench, "key", Otherwise::Nothing);
    let first = bench.keep(&one, "v").unwrap();
    change(1);
    // The same command again.
    assert_eq!(bench.keep(&one, "v").unwrap(), first);
    assert_eq!(bench.all_kept().len(), 1);
    // Its own files are no volumes.
    for own in [".cryptmark-1", "x.cryptmark-header"] {
        bench.write(own, bench.read("v"));
        assert_eq!(
            bench
                .keep(&before(&bench, "key", Otherwise::Start), own)
                .unwrap(),
            None
        );
    }
    let second = bench.done("key", "v").unwrap();
    assert_ne!(Some(&second), first.as_ref());
    // Another command on the same header, which is there already.
    assert_eq!(bench.done("passwd", "v").unwrap(), second);
    change(2);
    let third = bench.done("key", "v").unwrap();
    change(3);
    // A command that fails may have been about to restore the oldest.
    let failed = before(&bench, "key", Otherwise::Nothing);
    bench.keep(&failed, "v").unwrap();
    assert_eq!(bench.all_kept().len(), 4);
    let oldest = bench.all_kept()[0].1.clone();
    failed.spare(&bench.all_kept()[1].1);
    drop(failed);
    assert!(oldest.exists());
    change(4);
    let spared = before(&bench, "restore", Otherwise::Nothing);
    bench.keep(&spared, "v").unwrap();
    spared.spare(&oldest);
    spared.end();
    let left: Vec<_> = bench.all_kept().into_iter().map(|(_, path)| path).collect();
    assert!(left.contains(&oldest), "{left:?}");
    assert!(!left.iter().any(|path| path.ends_with(&second)), "{left:?}");
    assert!(left.iter().any(|path| path.ends_with(&third)), "{left:?}");
    assert_eq!(left.len(), 4);
}

/// Copies of other volumes at this place, of this volume at others, and files of others stay.
#[test]
fn only_copies_of_the_same_volume_at_its_place_go() {
    let bench = Bench::volume(Format::Luks1);
    bench.make("w", Format::Luks1);
    let bytes = bench.read("v");
    let with = |number: u8, uuid: &[u8]| {
        let mut bytes = bytes.clone();
        bytes[SALT] = number;
        bytes[UUID..UUID + uuid.len()].copy_from_slice(uuid);
        bytes
    };
    let keep = |name: &str, bytes: Vec<u8>| {
        bench.write(name, bytes);
        bench.done("key", name).unwrap()
    };
    // The same header elsewhere, and another volume here.
    let elsewhere = keep("copy", bytes.clone());
    let other = keep("v", bench.read("w"));
    let foreign = bench.path("a").join("b").join("notes.txt");
    fs::write(&foreign, "of somebody").unwrap();
    let unnamed = keep("v", with(0, b"../a"));
    assert!(unnamed.starts_with("unnamed_"), "{unnamed}");
    for number in 0..6 {
        keep("v", with(number, b""));
    }
    let left = bench.all_kept();
    assert_eq!(left.len(), 3 + 3, "{left:?}");
    for kept in [elsewhere, other, unnamed] {
        assert!(left.iter().any(|(_, path)| path.ends_with(&kept)), "{kept}");
    }
    assert!(foreign.exists());
    // Without a UUID, the noise behind the header tells volumes apart.
    for (same, wanted) in [(true, 3), (false, 5)] {
        let bench = Bench::new();
        let mut noise = vec![0; MIB as usize];
        spoil(&mut noise);
        for _ in 0..5 {
            let changed = if same { ..512 } else { ..64 * KIB };
            spoil(&mut noise[changed]);
            bench.write("v", &noise);
            bench.done("passwd", "v").unwrap();
        }
        assert_eq!(bench.all_kept().len(), wanted, "same: {same}");
    }
}

/// A header that was replaced may be the only one by which its data can be read.
#[test]
fn a_header_that_was_replaced_stays() {
    let bench = Bench::volume(Format::Luks1);
    bench.make("w", Format::Luks1);
    let (own, mut other) = (bench.read("v"), bench.read("w"));
    other[UUID..UUID + 40].copy_from_slice(&own[UUID..UUID + 40]);
    bench.done("key", "v").unwrap();
    // The same bytes, and a copy that is spared.
    let replaced = bench.done("restore", "v").unwrap();
    assert_eq!(bench.all_kept().len(), 2);
    assert_eq!(bench.done("restore", "v").unwrap(), replaced);
    for number in 0..5 {
        other[SALT] = number;
        bench.write("v", &other);
        bench.done("key", "v").unwrap();
    }
    let left = bench.all_kept();
    assert_eq!(left.len(), 4, "{left:?}");
    assert!(
        left.iter().any(|(_, path)| path.ends_with(&replaced)),
        "{left:?}"
    );
}

#[test]
fn names_of_files_are_plain() {
    for (uuid, wanted) in [
        (
            "11111111-2222-3333-4444-555555555555",
            "11111111-2222-3333-4444-555555555555",
        ),
        ("", "unnamed"),
        ("a/b", "unnamed"),
        ("a_b", "unnamed"),
        ("a.b", "unnamed"),
    ] {
        assert_eq!(plain_name(uuid), wanted);
    }
    let marks = ["/a", "/b", "/a/b"].map(|place| mark(Path::new(place)));
    assert!(marks.iter().all(|mark| mark.len() == 16), "{marks:?}");
    assert!(marks[0] != marks[1] && marks[1] != marks[2]);
    let bench = Bench::new();
    for name in [
        "a_b_c_d_e.luks1",
        "a_b_c.luks1",
        "a_b_c_d",
        "v_m_2_key.luks1",
        "v_m_1_key.luks2",
    ] {
        bench.write(name, "");
    }
    let found = stored(&bench.path("")).unwrap();
    let found: Vec<_> = found.iter().map(|one| (&*one.time, &*one.kind)).collect();
    assert_eq!(found, [("1", "luks2"), ("2", "luks1")]);
}
