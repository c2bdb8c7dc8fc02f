//! What a reencryption becomes, what it warns of, and what it refuses before it begins.

use super::run::{CHANGES, Run};
use super::{Bench, MIB, ONE, TWO, new, options, outcome, place, secret, spoil, text};
use block::{BlockDevice, RamDevice};
use cipher::Key;
use cryptmark_volume::judge::{State, Use};
use cryptmark_volume::luks2::Header;
use cryptmark_volume::operate::{
    Answers, Change, KeyOptions, Options, add_key, reencrypt, unwatched,
};
use cryptmark_volume::{Files, Format, Limits, Opener, Parameters, Secret, Site, VolumeError};
use std::fs;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

#[test]
fn what_is_impossible_is_refused() {
    use Change::{Anew, Decrypt, Encrypt};
    let bench = Bench::volume(Format::Luks1);
    let no_room = "its header has no room for a journal";
    for (change, format, wanted) in [
        (
            Encrypt,
            Some(Format::Luks1),
            "a LUKS1 volume cannot be encrypted in place",
        ),
        (
            Decrypt,
            Some(Format::Tcrypt),
            "a TrueCrypt volume cannot be decrypted in place",
        ),
        (
            Anew,
            Some(Format::Plain),
            "a plain volume cannot be reencrypted in place",
        ),
        (Encrypt, None, "is a LUKS1 volume already"),
        (Encrypt, Some(Format::Luks2), "is a LUKS1 volume already"),
        (Decrypt, None, no_room),
        (Anew, None, no_room),
    ] {
        let options = Options {
            format,
            ..Options::default()
        };
        Run {
            options,
            ..Run::new(&bench, change)
        }
        .refused(wanted);
    }
    let bench = Bench::volume(Format::Luks2);
    for (header, wanted) in [
        ("v", "would be header and data at once"),
        ("v.cryptmark-header", "is a name that is used here itself"),
        ("./v.cryptmark-header", "is a name that is used here itself"),
    ] {
        for change in CHANGES {
            Run {
                header: Some(header),
                ..Run::new(&bench, change)
            }
            .refused(wanted);
        }
    }
    let bytes = bench.read("v");
    bench.write("v", vec![0; MIB as usize]);
    Run::new(&bench, Anew).refused("this has no signature of a volume");
    Run::new(&bench, Decrypt).refused("this is not a LUKS2 volume");
    // By its volume key it opens, but there would be no key slot.
    bench.write("v", bytes);
    let device = super::opened(&bench.path("v"));
    let unlocked = Header::read(&*device).unwrap();
    let unlocked = unlocked.unlock(&*device, &secret(ONE), None, &Limits::default());
    let key = Run {
        secret: Secret::VolumeKey(unlocked.unwrap().key),
        ..Run::new(&bench, Anew)
    };
    key.refused("the new key slot needs a passphrase");
}

/// What the segment of `v`, or of its header, says: cipher and sector size; and the bits of its key.
fn encryption(bench: &Bench, name: &str) -> (String, u32, usize) {
    let device = super::opened(&bench.path(name));
    let header = Header::read(&*device).unwrap();
    let unlocked = header.unlock(&*device, &secret(ONE), None, &Limits::default());
    let bits = unlocked.unwrap().key.len() * 8;
    let crypt = header.metadata.segments[&0].crypt().unwrap();
    let sector_bytes = crypt.sector_size.bytes() as u32;
    (crypt.encryption.clone(), sector_bytes, bits)
}

#[test]
fn it_becomes_what_is_chosen_and_stays_what_it_was_else() {
    const AES: &str = "aes-xts-plain64";
    let said = |cipher: Option<&str>, key_size, sector_size| Parameters {
        cipher: cipher.map(str::to_owned),
        key_size,
        sector_size,
        ..Parameters::default()
    };
    let cbc = "aes-cbc-essiv:sha256";
    for (parameters, anew, encrypted) in [
        (said(None, None, None), (AES, 512, 512), (AES, 4096, 512)),
        (
            said(None, Some(256), None),
            (AES, 512, 256),
            (AES, 4096, 256),
        ),
        (
            said(Some(cbc), None, Some(1024)),
            (cbc, 1024, 256),
            (cbc, 1024, 256),
        ),
        (
            said(Some("serpent-xts-plain64"), None, None),
            ("serpent-xts-plain64", 512, 512),
            ("serpent-xts-plain64", 4096, 512),
        ),
    ] {
        let run = |bench, change, header| {
            let mut run = Run::new(bench, change);
            run.options.parameters = parameters.clone();
            run.header = header;
            run.done()
        };
        let bench = Bench::volume(Format::Luks2);
        assert!(run(&bench, Change::Anew, None).is_empty());
        let (cipher, sector, bits) = encryption(&bench, "v");
        assert_eq!((&*cipher, sector, bits), anew);
        bench.holds(Format::Luks2, ONE, &cipher);
        let bench = Bench::new();
        bench.write("v", text(MIB));
        assert!(run(&bench, Change::Encrypt, Some("h")).is_empty());
        let (cipher, sector, bits) = encryption(&bench, "h");
        assert_eq!((&*cipher, sector, bits), encrypted);
        assert_eq!(fs::metadata(bench.path("h")).unwrap().len(), 16 * MIB);
    }
}

/// A device that has no names, and is no file.
struct Disk<'a>(&'a Path, Arc<RamDevice>);

impl Opener for Disk<'_> {
    fn open(&self, path: &Path, use_: Use) -> Result<Box<dyn BlockDevice>, VolumeError> {
        match path == self.0 {
            true => Ok(Box::new(Arc::clone(&self.1))),
            false => Files.open(path, use_),
        }
    }
    fn part(&self, _: &Path) -> Option<String> {
        None
    }
}

/// On a device all is as in a file, but that the header has to be elsewhere.
#[test]
fn a_device_is_encrypted_with_its_header_apart() {
    let bench = Bench::new();
    let (path, header) = (bench.path("v"), bench.path("h"));
    let run = |length: usize, change, header, options: &Options| {
        let device = Arc::new(RamDevice::new(length as u64));
        device.write_at(0, &text(length as u64)).unwrap();
        let disk = Disk(&path, Arc::clone(&device));
        let one = secret(ONE);
        let caller = Answers {
            cost: new(ONE).cost,
            ..Answers::new(&one, &unwatched)
        };
        let site = Site::new(&path, header).opened_by(&disk);
        let said = outcome(reencrypt(&site, change, options, &caller));
        let mut bytes = vec![0; length];
        device.read_at(0, &mut bytes).unwrap();
        (said, bytes == text(length as u64))
    };
    let mut odd = options(Format::Luks2, &[]);
    odd.parameters.sector_size = Some(4096);
    let all = [State::Hidden];
    for (length, change, is_apart, options, wanted) in [
        (
            MIB,
            Change::Encrypt,
            false,
            &options(Format::Luks2, &[]),
            "v has no room for a header",
        ),
        (
            MIB + 512,
            Change::Encrypt,
            true,
            &odd,
            "the 1049088 bytes are not a multiple of 4096-byte sectors",
        ),
        (
            MIB,
            Change::Decrypt,
            false,
            &odd,
            "only a file is decrypted in place",
        ),
        (
            MIB,
            Change::Anew,
            false,
            &options(Format::Tcrypt, &all),
            "a journal beside a device would not be safe from a power cut",
        ),
    ] {
        let (said, is_same) = run(
            length as usize,
            change,
            is_apart.then_some(&*header),
            options,
        );
        assert!(said.contains(wanted), "{said}");
        assert!(is_same && bench.files().is_empty(), "{wanted}");
    }
    let (said, is_same) = run(1 << 20, Change::Encrypt, Some(&header), &odd);
    assert_eq!((said.as_str(), is_same), ("Done", false));
}

#[test]
fn what_is_not_to_be_encrypted_stays() {
    let bench = Bench::new();
    let encrypt = |header| Run {
        header,
        ..Run::new(&bench, Change::Encrypt)
    };
    bench.write("v", []);
    encrypt(None).refused("v is empty: there is nothing to encrypt");
    bench.write("v", text(MIB));
    for secret in [
        Secret::Passphrase(Key::from_slice(&[])),
        Secret::VolumeKey(Key::random(64).unwrap()),
    ] {
        let wanted = match secret {
            Secret::Passphrase(_) => "the new passphrase is empty",
            _ => "a LUKS2 volume cannot be",
        };
        Run {
            secret,
            ..encrypt(None)
        }
        .refused(wanted);
    }
    bench.write("h", "a letter");
    encrypt(Some("h")).refused("h exists already");
    fs::remove_file(bench.path("h")).unwrap();
    bench.make("h", Format::Luks2);
    encrypt(Some("h")).refused("h is the header of a volume already");
    fs::remove_file(bench.path("h")).unwrap();
    let mut weak = encrypt(None);
    weak.options.parameters.cipher = Some("aes-ecb".into());
    weak.refused("would be weak: aes-ecb does not protect");
    let [path, apart] = ["v", "e"].map(|name| bench.path(name));
    let none = secret("");
    let caller = Answers {
        cost: new(ONE).cost,
        allow_empty: true,
        ..Answers::new(&none, &unwatched)
    };
    let allowed = options(Format::Luks2, &[]);
    reencrypt(
        &Site::new(&path, Some(&apart)),
        Change::Encrypt,
        &allowed,
        &caller,
    )
    .unwrap();
    assert!(bench.open("v", Some("e"), Format::Luks2, false, "").is_ok());
    fs::remove_file(apart).unwrap();
    // Where it cannot be published, the file is as long as it was.
    bench.write("v", &text(MIB)[1..]);
    for header in [None, Some("h")] {
        let path = bench.path("v");
        let apart = header.map(|name| bench.path(name));
        let one = secret(ONE);
        let stop = |_, _| ControlFlow::Break(());
        let caller = Answers {
            cost: new(ONE).cost,
            ..Answers::new(&one, &stop)
        };
        let site = Site::new(&path, apart.as_deref());
        let before = bench.files();
        let said = reencrypt(
            &site,
            Change::Encrypt,
            &options(Format::Luks2, &[]),
            &caller,
        );
        assert_eq!(outcome(said), "interrupted");
        assert!(bench.files() == before);
    }
}

/// What is warned of, and only that.
#[test]
fn warnings_are_of_what_is_so() {
    let noise = "are noise, from byte {} on: they may be encrypted already, and are now encrypted \
                 once more";
    let mut noisy = vec![0; 1 << 20];
    spoil(&mut noisy[8192..]);
    let mut named = noisy.clone();
    named[..4096].fill(0);
    named[4086..4096].copy_from_slice(b"SWAPSPACE2");
    let tail = "3996 bytes of the last sector are added to the data, which keep them when they are \
                decrypted";
    for (data, wanted) in [
        (text(MIB), String::new()),
        (text(MIB + 100), tail.to_owned()),
        (noisy, noise.replace("{}", "8192")),
        (named, String::new()),
        (vec![0; 1 << 20], String::new()),
    ] {
        for header in [None, Some("h")] {
            let bench = Bench::new();
            bench.write("v", &data);
            let heard = Run {
                header,
                ..Run::new(&bench, Change::Encrypt)
            }
            .done();
            assert_eq!(heard.len(), usize::from(!wanted.is_empty()), "{heard:?}");
            assert!(heard.iter().all(|it| it.ends_with(&wanted)), "{heard:?}");
            let length = data.len().next_multiple_of(4096);
            let room = if header.is_some() { 0 } else { 16 << 20 };
            assert_eq!(bench.read("v").len(), length + room);
            let heard = Run {
                header,
                ..Run::new(&bench, Change::Decrypt)
            }
            .done();
            assert!(heard.is_empty());
            let now = bench.read("v");
            assert!(now.len() == length && now.starts_with(&data), "{wanted}");
        }
    }
}

/// The key slots whose secrets are given stay, and nothing else does.
#[test]
fn key_slots_stay_whose_secrets_are_given() {
    let bench = Bench::volume(Format::Luks2);
    let add = |text| {
        let place = place(&bench.path("v"), Use::ChangeHeader);
        add_key(&place, &secret(ONE), &new(text), &KeyOptions::default()).unwrap();
    };
    add(TWO);
    add("three");
    let kept = [super::key(TWO), super::key("three")];
    let all = [ONE, TWO, "three"];
    let opening = || all.map(|text| bench.opens(Format::Luks2, text));
    fn run<'a>(bench: &'a Bench, kept: &'a [Key], accepted: &[State]) -> Run<'a> {
        Run {
            kept,
            options: options(Format::Luks2, accepted),
            ..Run::new(bench, Change::Anew)
        }
    }
    run(&bench, &[], &[]).refused("keyslots: would lose");
    run(&bench, &kept[..1], &[]).refused("keyslots: would lose");
    for none in [[super::key("four")], [super::key(ONE)]] {
        run(&bench, &none, &[]).refused("no keyslot opens");
    }
    run(&bench, &kept, &[]).done();
    assert_eq!(opening(), [true; 3]);
    run(&bench, &kept[1..], &[State::Keyslots]).done();
    assert_eq!(opening(), [true, false, true]);
    bench.holds(Format::Luks2, ONE, "kept");
    // Who is asked about a weak cipher hears of them as well.
    let mut weak = run(&bench, &[], &[]);
    weak.options.parameters.cipher = Some("aes-ecb".into());
    weak.refused("; and 1 more of its key slots would be lost, whose secrets were not given");
    let weak = Run {
        kept: &kept[1..],
        ..weak
    };
    let (said, _) = weak.ends();
    assert!(
        said.starts_with("weak: ") && !said.contains("more of its"),
        "{said}"
    );
    let weak = Run {
        options: Options {
            accepted: vec![State::Weak],
            ..weak.options
        },
        ..weak
    };
    let warning = "aes-ecb: equal blocks of data show as equal blocks on the disk";
    assert_eq!(weak.done(), [warning]);
}
