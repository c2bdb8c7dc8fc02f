//! Where volumes are: files that are made, held, and go again, and the header beside a volume.

use super::stopped::{self, Left};
use super::{Bench, MIB, ONE, new, options, outcome};
use cryptmark_volume::judge::{State, Use};
use cryptmark_volume::operate::{Change, Creation, create, unwatched};
use cryptmark_volume::{Format, NewFile, Place, Site, open_file};
use std::fs;
use std::os::unix::fs::PermissionsExt;

#[test]
fn a_new_file_goes_unless_it_is_another_ones() {
    let bench = Bench::new();
    let path = bench.path("v");
    let make = || NewFile::make(&path, 4096).unwrap();
    drop(make());
    assert!(!path.exists());
    // What another program has written there, and another file of that name.
    let made = make();
    assert_eq!(
        fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o600
    );
    fs::write(&path, "somebody's").unwrap();
    drop(made);
    assert_eq!(bench.read("v"), b"somebody's");
    fs::remove_file(&path).unwrap();
    let made = make();
    fs::rename(&path, bench.path("w")).unwrap();
    fs::write(&path, []).unwrap();
    drop(made);
    assert!(path.exists() && bench.path("w").exists());
    assert!(NewFile::make(&path, 4096).is_err());
}

#[test]
fn files_of_a_volume_are_made_with_it() {
    let bench = Bench::new();
    let [path, header] = ["v", "h"].map(|name| bench.path(name));
    let few = "does not exist, and no size of 1 MiB or more is given";
    for bytes in [None, Some(0), Some(MIB - 1)] {
        let said = outcome(Place::create(&path, None, bytes));
        assert!(said.ends_with(few), "{said}");
    }
    for (creation, stays) in [
        (Creation::new(Format::Luks2), true),
        (
            Creation {
                uuid: Some("none".into()),
                ..Creation::new(Format::Luks2)
            },
            false,
        ),
    ] {
        let mut place = Place::create(&path, Some(&header), Some(MIB)).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().len(), MIB);
        assert_eq!(fs::metadata(&header).unwrap().len(), 16 * MIB);
        assert!(place.is_apart() && !place.is_beside());
        let made = create(&mut place, Some(&new(ONE)), &creation, &unwatched);
        assert_eq!(made.is_ok(), stays, "{made:?}");
        drop(place);
        assert_eq!(path.exists(), stays);
        assert_eq!(header.exists(), stays);
        for file in [&path, &header] {
            let _ = fs::remove_file(file);
        }
    }
    // Each file is asked for by itself: what was there is not given up, what is made is no loss.
    for there in ["v", "h"] {
        bench.write(there, vec![7; MIB as usize]);
        let mut place = Place::create(&path, Some(&header), Some(MIB)).unwrap();
        let creation = Creation::new(Format::Luks2);
        let made = outcome(create(&mut place, Some(&new(ONE)), &creation, &unwatched));
        let of = if there == "h" {
            "data of the header: "
        } else {
            "data: "
        };
        assert!(made.starts_with(of), "{made}");
        drop(place);
        assert_eq!(bench.files().len(), 1);
        fs::remove_file(bench.path(there)).unwrap();
    }
}

/// One who writes keeps all out but readers, and a steady reader keeps out who writes.
#[test]
fn a_place_is_held_as_its_use_demands() {
    let bench = Bench::volume(Format::Luks2);
    let path = bench.path("v");
    let place = Place::open(&path, None, Use::WriteData).unwrap();
    assert!(Place::open(&path, None, Use::Read).is_ok());
    assert!(open_file(&path, Use::Read, false).is_ok());
    assert!(open_file(&path, Use::Read, true).is_err());
    assert!(Place::open(&path, None, Use::Overwrite).is_err());
    drop(place);
    let steady = open_file(&path, Use::Read, true).unwrap();
    assert!(Place::open(&path, None, Use::Read).is_ok());
    assert!(Place::open(&path, None, Use::WriteData).is_err());
    drop(steady);
    for use_ in Use::ALL {
        let place = Place::open(&path, None, use_).unwrap();
        let mut start = [0; 512];
        place.data().read_at(0, &mut start).unwrap();
        assert_eq!(
            place.data().write_at(0, &start).is_ok(),
            use_ != Use::Read,
            "{use_:?}"
        );
    }
}

/// cryptsetup reads a header under a shared lock of its file, and changes it under one of its own.
#[test]
fn cryptsetup_is_kept_out_as_the_use_demands() {
    let bench = Bench::volume(Format::Luks2);
    let path = bench.path("v");
    for (use_, steady, reads, changes) in [
        (Use::Read, false, true, true),
        (Use::Read, true, true, false),
        (Use::WriteData, false, true, true),
        (Use::ChangeHeader, false, false, false),
        (Use::ChangeLayout, false, false, false),
        (Use::MendHeader, false, false, false),
        (Use::Reencrypt, false, true, false),
        (Use::Overwrite, false, true, false),
    ] {
        let device = open_file(&path, use_, steady).unwrap();
        let file = fs::File::open(&path).unwrap();
        assert_eq!(file.try_lock_shared().is_ok(), reads, "{use_:?} {steady}");
        file.unlock().unwrap();
        assert_eq!(file.try_lock().is_ok(), changes, "{use_:?} {steady}");
        file.unlock().unwrap();
        drop(device);
    }
}

/// A reencryption that was stopped, with its header beside the volume.
#[test]
fn a_header_beside_a_volume_is_used_until_all_is_done() {
    let bench = Bench::new();
    let path = bench.path("v");
    bench.make("v", Format::Tcrypt);
    let options = options(Format::Tcrypt, &[State::Hidden]);
    let anew = |left| stopped::work(&bench, (Change::Anew, false), &options, &Left::new(left));
    let side = bench.path("v.cryptmark-header");
    // One write is done, and nothing else.
    assert!(anew(1).is_err() && side.exists());
    let place = Place::open(&path, None, Use::Read).unwrap();
    assert!(place.is_beside() && place.is_apart());
    drop(place);
    let site = Site::new(&path, None);
    for (format, free) in [
        (Format::Luks1, true),
        (Format::Luks2, true),
        (Format::Tcrypt, false),
        (Format::Plain, false),
    ] {
        assert_eq!(site.check_format(format).is_ok(), free, "{format:?}");
        assert!(Site::new(&path, Some(&side)).check_format(format).is_ok());
    }
    for use_ in Use::ALL.into_iter().filter(|use_| *use_ != Use::Read) {
        let said = Place::open(&path, None, use_);
        let refused = matches!(said, Err(super::VolumeError::RecoveryNeeded));
        assert!(refused, "{use_:?}: {said:?}");
    }
    site.check_beside().unwrap();
    anew(u32::MAX).unwrap();
    assert!(!side.exists());
    site.check_beside().unwrap();
    assert!(bench.opens(Format::Tcrypt, ONE));
    // A file that is no such header is nobody's.
    bench.write("v.cryptmark-header", "a letter");
    let words = "isn't the header of a reencryption";
    for use_ in Use::ALL {
        let said = outcome(Place::open(&path, None, use_));
        assert!(said.contains(words), "{use_:?}: {said}");
    }
    assert!(outcome(site.check_beside()).contains(words));
}

/// One name for header and data is refused, but for reading.
#[test]
fn header_and_data_are_two_files() {
    let bench = Bench::volume(Format::Luks2);
    let path = bench.path("v");
    let link = bench.path("link");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    for header in [&path, &link] {
        for use_ in Use::ALL {
            let said = outcome(Place::open(&path, Some(header), use_));
            let is_refused = said.ends_with("would be header and data at once");
            assert_eq!(is_refused, use_ != Use::Read, "{use_:?}: {said}");
        }
    }
}
