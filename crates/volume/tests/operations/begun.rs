//! What a reencryption has begun, what others have made of it, and what stands behind the data.

use super::run::{CHANGES, Run, begun};
use super::{Bench, MIB, OFFSET, ONE, TWO, new, options, outcome, secret, spoil, text};
use cryptmark_volume::judge::{State, Use};
use cryptmark_volume::luks2::Header;
use cryptmark_volume::operate::{Answers, Change, KeySlotCost, Options, reencrypt};
use cryptmark_volume::{Files, Format, Limits, Opener, Place, Site, check_opened, open_file};
use std::fs::{self, File};
use std::io::Write;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

/// What was begun goes on, and becomes nothing else meanwhile.
#[test]
fn what_has_begun_is_not_changed() {
    const SLOTS: &str = "the key slots are those with which this began: options for them have no \
                         effect now";
    for change in CHANGES {
        let bench = match change {
            Change::Encrypt => Bench::new(),
            _ => Bench::volume(Format::Luks2),
        };
        match change {
            Change::Encrypt => bench.write("v", text(2 * MIB)),
            _ => bench.part(),
        }
        let mut run = Run {
            header: Some("h"),
            ..Run::new(&bench, change)
        };
        begun(&mut run, "h");
        for other in [Change::Encrypt, Change::Decrypt]
            .into_iter()
            .filter(|it| *it != change)
        {
            let mode = ["reencrypt", "encrypt", "decrypt"][change as usize];
            let wanted = format!("the volume is in the middle of another change: `{mode}`");
            Run {
                header: Some("h"),
                ..Run::new(&bench, other)
            }
            .refused(&wanted);
        }
        let other = Run {
            secret: secret(TWO),
            header: Some("h"),
            ..Run::new(&bench, change)
        };
        other.refused("no keyslot opens");
        for (cipher, sector_size) in [(Some("serpent-xts-plain64"), None), (None, Some(1024))] {
            if change == Change::Decrypt {
                continue;
            }
            let mut other = Run {
                header: Some("h"),
                ..Run::new(&bench, change)
            };
            other.options.parameters.cipher = cipher.map(str::to_owned);
            other.options.parameters.sector_size = sector_size;
            let wanted = "the change was begun with aes-xts-plain64 and sectors of";
            other.refused(wanted);
        }
        // Options that choose nothing are no choice.
        let before = bench.files();
        let quiet = Run {
            header: Some("h"),
            cost: KeySlotCost::default(),
            ..Run::new(&bench, Change::Anew)
        };
        assert!(quiet.done().is_empty());
        bench.put_back(&before);
        let mut hashed = Run {
            header: Some("h"),
            cost: KeySlotCost::default(),
            ..Run::new(&bench, Change::Anew)
        };
        hashed.options.parameters.hash = Some("sha512".into());
        assert_eq!(hashed.done(), [SLOTS]);
        bench.put_back(&before);
        assert_eq!(run.done(), [SLOTS]);
    }
}

/// A header at the start of the data, beside the one that is used.
#[test]
fn a_header_of_its_own_is_older_or_refused() {
    let bench = Bench::volume(Format::Luks2);
    let own = bench.read("v");
    let header = "h";
    let of_header = |change| Run {
        header: Some(header),
        ..Run::new(&bench, change)
    };
    // The same header twice.
    bench.write("h", &own);
    let same = "has a header of its own, which would know nothing of the change";
    of_header(Change::Anew).refused(same);
    of_header(Change::Decrypt).refused(same);
    // One of before goes on by the other.
    bench.part();
    let mut run = of_header(Change::Anew);
    begun(&mut run, "h");
    let mut image = bench.read("v");
    image[..OFFSET as usize].copy_from_slice(&own[..OFFSET as usize]);
    bench.write("v", &image);
    let warning = "the data begin with a header of their own, which is out of date: do not open \
                   the volume without the separate one";
    assert!(run.done().iter().any(|said| said == warning));
    // With another key it contradicts.
    run.refused("begins with a header of its own, by which its data are encrypted differently");
    // That of another volume is data, which are not encrypted.
    bench.make("w", Format::Luks2);
    let mut image = bench.read("v");
    image[..OFFSET as usize].copy_from_slice(&bench.read("w")[..OFFSET as usize]);
    bench.write("v", image);
    run.refused("unencrypted: holds the header of another LUKS volume");
    run.options.accepted = vec![State::Unencrypted];
    run.done();
}

/// All is decrypted, and a header tells of it.
#[test]
fn what_is_decrypted_is_decrypted_once() {
    let bench = Bench::volume(Format::Luks2);
    bench.part();
    let run = |change| Run {
        header: Some("h"),
        ..Run::new(&bench, change)
    };
    run(Change::Decrypt).done();
    let plain = bench.files();
    run(Change::Decrypt).done();
    assert!(bench.files() == plain);
    run(Change::Anew).refused("the header says that all data are decrypted");
    run(Change::Encrypt).refused("h is the header of data that were decrypted");
    let mut other = bench.read("v");
    other[OFFSET as usize..].fill(7);
    bench.write("v", other);
    run(Change::Decrypt).refused("the header describes a reencryption of different data");
}

/// A header that another program has used where it was, and data behind a volume.
#[test]
fn a_header_beside_the_data_comes_home() {
    let bench = Bench::new();
    bench.write("v", text(2 * MIB));
    let side = bench.path("v.cryptmark-header");
    let plain = bench.files();
    let mut run = Run::new(&bench, Change::Encrypt);
    begun(&mut run, "v.cryptmark-header");
    let begun = bench.files();
    // By another name it is not taken, and no other header beside it.
    let named = Run {
        header: Some("h"),
        ..Run::new(&bench, Change::Anew)
    };
    named.refused("is the header of an unfinished reencryption of");
    fs::rename(&side, bench.path("h")).unwrap();
    named.refused("is a header that belongs before the data of");
    bench.put_back(&begun);
    run.done();
    bench.put_back(&begun);
    // As soon as the start of the data is copied, cryptsetup encrypts all by that header.
    let encrypted = |left| {
        bench.put_back(&plain);
        Run {
            left,
            ..Run::new(&bench, Change::Encrypt)
        }
        .ends();
        let device = |path: &Path| Files.open(path, Use::Reencrypt).unwrap();
        let (header, data) = (device(&side), device(&bench.path("v")));
        let mut told = Header::read(&*header)?;
        let keys = told.unlock_both(&*header, &secret(ONE), &Limits::default())?;
        told.reencrypt(&*header, &*data, &keys, &|_| ControlFlow::Continue(()))
    };
    (2..).find(|left| encrypted(*left).is_ok()).unwrap();
    let theirs = bench.files();
    run.done();
    assert!(!side.exists());
    bench.holds(Format::Luks2, ONE, "home");
    assert_eq!(bench.read("v").len() as u64, 18 * MIB);
    // It does not go over what may be the only copy.
    bench.put_back(&theirs);
    let mut image = bench.read("v");
    image[100] ^= 1;
    bench.write("v", image);
    let wanted = "v, and the encrypted data do not begin as the file does";
    run.refused(wanted);
    Run {
        secret: secret(TWO),
        ..Run::new(&bench, Change::Encrypt)
    }
    .refused("no keyslot opens");
}

/// What lies behind a volume is no part of it, and goes when it is decrypted.
#[test]
fn data_behind_a_volume_are_asked_for() {
    for (tail, is_asked) in [
        (vec![0; 1024], false),
        (vec![7; 1024], true),
        (vec![7; 100], true),
    ] {
        let bench = Bench::volume(Format::Luks2);
        let image = bench.read("v");
        let mut fixed = image.clone();
        super::resized::forge(&mut fixed, |json| {
            json["segments"]["0"]["size"] = "2097152".into();
        });
        bench.write("v", [fixed, tail.clone()].concat());
        let mut run = Run::new(&bench, Change::Decrypt);
        if is_asked {
            let wanted = format!(
                "behind: holds data behind the volume, {} bytes from byte 4194304 on",
                tail.len()
            );
            run.refused(&wanted);
            run.options.accepted = vec![State::Behind];
        }
        run.done();
        assert!(bench.read("v") == text(OFFSET));
    }
}

/// The same of TrueCrypt and VeraCrypt, whose journal is a file apart.
#[test]
fn a_volume_that_says_nothing_of_itself_gets_another_key() {
    for format in [Format::Tcrypt, Format::Veracrypt] {
        let bench = Bench::volume(format);
        let run = |change: &dyn Fn(&mut Options)| {
            let mut run = Run::new(&bench, Change::Anew);
            run.options = options(format, &[State::Hidden]);
            change(&mut run.options);
            run
        };
        let size = format!("{} has no choice of sector or key size", format.title());
        run(&|it| it.parameters.sector_size = Some(512)).refused(&size);
        run(&|it| it.parameters.key_size = Some(512)).refused(&size);
        let hidden = "hidden: may have a hidden volume, which would be destroyed;";
        run(&|it| it.accepted.clear()).refused(hidden);
        let shows = |file| {
            format!(
                "weak: would be weak: until all is done, {} shows that there is a hidden volume, and where",
                bench.path(file).display()
            )
        };
        run(&|it| it.parameters.tcrypt_hidden = true).refused(&shows("v.cryptmark-header"));
        let apart = Run {
            header: Some("h"),
            ..run(&|it| it.parameters.tcrypt_hidden = true)
        };
        apart.refused(&shows("h"));
        let image = bench.read("v");
        let mut spoilt = image.clone();
        spoil(&mut spoilt[..512]);
        bench.write("v", &spoilt);
        run(&|it| it.parameters.tcrypt_backup = true).done();
        bench.write("v", [&image[..], &vec![7; 200 << 10]].concat());
        run(&|_| ()).refused("behind: holds data behind the volume, at byte 2170880");
        bench.write("v", &image);
        // The names are those of the new encryption.
        let cipher =
            |name: &'static str| move |it: &mut Options| it.parameters.cipher = Some(name.into());
        let mut first = Run {
            header: Some("h"),
            ..run(&cipher("serpent"))
        };
        begun(&mut first, "h");
        let other = Run {
            header: Some("h"),
            ..run(&cipher("aes"))
        };
        other.refused("the change was begun with serpent-xts-plain64 and sectors of 512 bytes");
        let link = bench.path("link");
        fs::hard_link(bench.path("h"), &link).unwrap();
        let slots = first.done();
        assert_eq!(slots.len(), 1);
        // The keys that were in the file are on the disk no more.
        assert!(bench.read("link").iter().all(|byte| *byte == 0) && !bench.path("h").exists());
        fs::remove_file(link).unwrap();
        bench.holds(format, ONE, "serpent");
        let volume = bench.open("v", None, format, false, ONE).unwrap();
        assert_eq!(
            volume.info()["mappings"][0]["cipher"],
            "serpent-xts-plain64"
        );
        drop(volume);
        run(&|it| it.parameters.hash = None).done();
        bench.holds(format, ONE, "the same");
        let volume = bench.open("v", None, format, false, ONE).unwrap();
        assert_eq!(
            volume.info()["mappings"][0]["cipher"],
            "serpent-xts-plain64"
        );
    }
}

/// What others do to the file while it is encrypted: what they add stays, and their own file as well.
#[test]
fn what_others_do_meanwhile_stays() {
    for header in [None, Some("h")] {
        for renamed in [false, true] {
            let bench = Bench::new();
            bench.write("v", text(2 * MIB));
            let [path, other] = ["v", "w"].map(|name| bench.path(name));
            let apart = header.map(|name| bench.path(name));
            let calls = AtomicU32::new(0);
            let report = |_, _| {
                if calls.fetch_add(1, Ordering::Relaxed) == 1 {
                    match renamed {
                        true => {
                            fs::rename(&path, &other).unwrap();
                            bench.make("v", Format::Luks2);
                        }
                        false => {
                            let mut file = File::options().append(true).open(&path).unwrap();
                            file.write_all(b"added").unwrap();
                        }
                    }
                }
                ControlFlow::Continue(())
            };
            let one = secret(ONE);
            let caller = Answers {
                cost: new(ONE).cost,
                ..Answers::new(&one, &report)
            };
            let site = Site::new(&path, apart.as_deref());
            let options = options(Format::Luks2, &[]);
            let said = outcome(reencrypt(&site, Change::Encrypt, &options, &caller));
            match (header, renamed) {
                // Nobody looks for a file with its header apart once more.
                (Some(_), true) => assert_eq!(said, "Done"),
                (None, true) => {
                    assert!(said.ends_with("v is not the same file as before"), "{said}")
                }
                (_, false) => {
                    assert!(said.contains("made longer meanwhile"), "{said}");
                    assert!(bench.read("v").ends_with(b"added"));
                }
            }
            if renamed {
                bench.holds(Format::Luks2, ONE, "the other one");
                assert_eq!(bench.read("v").len() as u64, 2 * OFFSET);
            }
        }
    }
    // Or while it is stopped.
    let bench = Bench::new();
    bench.write("v", text(2 * MIB));
    let mut run = Run {
        header: Some("h"),
        ..Run::new(&bench, Change::Encrypt)
    };
    begun(&mut run, "h");
    let longer = [&bench.read("v")[..], &[9; 4096]].concat();
    bench.write("v", longer);
    let (said, _) = run.ends();
    assert!(said.contains("made longer meanwhile"), "{said}");
    assert!(bench.read("v").ends_with(&[9; 4096]));
}

/// cryptsetup holds a lock while it reencrypts, and so does this.
#[test]
fn two_do_not_reencrypt_one_volume() {
    let bench = Bench::volume(Format::Luks2);
    let mut run = Run::new(&bench, Change::Anew);
    begun(&mut run, "v");
    let header = Header::read(&*super::opened(&bench.path("v"))).unwrap();
    let name = format!("LUKS2-reencryption-{}", header.binary.uuid);
    // Where its folder cannot be had, there is no lock.
    let Ok(lock) = block::hold::lock_resource(&name) else {
        return;
    };
    let path = bench.path("v");
    for use_ in [Use::ChangeHeader, Use::WriteData, Use::Reencrypt] {
        let held = Place::open(&path, None, use_);
        assert!(held.is_err(), "{use_:?}");
    }
    assert!(open_file(&path, Use::Read, true).is_ok_and(|device| {
        check_opened(&device, &path, Use::Read, true).is_err()
            && check_opened(&device, &path, Use::Read, false).is_ok()
    }));
    assert_ne!(run.ends().0, "Done");
    drop(lock);
    run.done();
    bench.holds(Format::Luks2, ONE, "after the lock");
}
