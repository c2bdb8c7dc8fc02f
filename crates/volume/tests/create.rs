//! Volumes made, resized, converted and reencrypted, as libraries do it.

use block::{BlockDevice, BlockError, ByteRange, Geometry, Queue, QueueOptions, RamDevice};
use cipher::Key;
use cryptmark_volume::judge::{self, Ruling, State, Use};
use cryptmark_volume::operate::{
    Answers, Change, Creation, KeySlotCost, NewKey, Options, Report, check_create, convert, create,
    reencrypt, resize, unwatched,
};
use cryptmark_volume::tcrypt::Keyfiles;
use cryptmark_volume::{
    Access, Format, Hash, Kdf, OpenOptions, Parameters, Place, Secret, Site, Volume, VolumeError,
};
use std::fs;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

const MIB: u64 = 1 << 20;

fn new() -> NewKey {
    NewKey {
        secret: Key::from_slice(b"correct horse"),
        cost: KeySlotCost::from(Kdf::Pbkdf2 {
            hash: Hash::Sha256,
            iterations: 1000,
        }),
        allow_empty: false,
    }
}

fn secret() -> Secret {
    Secret::Passphrase(Key::from_slice(b"correct horse"))
}

fn made(path: &Path, header: Option<&Path>, creation: &Creation) -> Result<u64, VolumeError> {
    let mut place = Place::create(path, header, Some(24 * MIB))?;
    let created = create(&mut place, Some(&new()), creation, &unwatched)?;
    Ok(created.data.length)
}

fn opened(path: &Path, header: Option<&Path>, creation: &Creation) -> Result<Volume, VolumeError> {
    let is_tcrypt = matches!(creation.format, Format::Tcrypt | Format::Veracrypt);
    let options = OpenOptions {
        format: is_tcrypt.then_some(creation.format),
        parameters: Parameters {
            veracrypt_pim: creation.parameters.veracrypt_pim,
            ..Parameters::default()
        },
        header: header.map(Path::to_owned),
        access: Access::Write,
        ..OpenOptions::default()
    };
    Volume::open(path, Some(&secret()), &options)
}

/// A creation of each format, quick ones of those that fill all.
fn all() -> Vec<Creation> {
    let mut all: Vec<Creation> = [
        Format::Luks1,
        Format::Luks2,
        Format::Tcrypt,
        Format::Veracrypt,
    ]
    .map(Creation::new)
    .into();
    for creation in &mut all {
        creation.quick = matches!(creation.format, Format::Tcrypt | Format::Veracrypt);
        if creation.format == Format::Veracrypt {
            creation.parameters.veracrypt_pim = Some(1);
            creation.accepted = vec![State::Weak];
        }
    }
    all.push(Creation {
        integrity: Some("hmac-sha256".into()),
        ..Creation::new(Format::Luks2)
    });
    all
}

#[test]
fn what_is_made_opens_and_is_not_made_twice_unasked() {
    let folder = tempfile::tempdir().unwrap();
    for (nth, mut creation) in all().into_iter().enumerate() {
        let path = &folder.path().join(format!("v{nth}"));
        let length = made(path, None, &creation).unwrap();
        let volume = opened(path, None, &creation).unwrap();
        assert_eq!(volume.size(), length, "{creation:?}");
        volume.write_at(4096, b"content").unwrap();
        drop(volume);
        let before = fs::read(path).unwrap();
        let refused = made(path, None, &creation).unwrap_err();
        let VolumeError::Judged(finding) = refused else {
            panic!("{creation:?}: {refused}")
        };
        assert_eq!(
            (
                finding.state,
                finding.use_,
                finding.ruling(),
                finding.in_header
            ),
            (State::Data, Use::Overwrite, Ruling::Ask, false)
        );
        assert!(fs::read(path).unwrap() == before, "{creation:?}");
        creation.accepted.push(State::Data);
        made(path, None, &creation).unwrap();
        let volume = opened(path, None, &creation).unwrap();
        let mut bytes = [0; 7];
        volume.read_at(4096, &mut bytes).unwrap();
        assert_ne!(&bytes, b"content", "{creation:?}");
    }
}

#[test]
fn a_header_apart_is_looked_at_as_well() {
    let folder = tempfile::tempdir().unwrap();
    let [path, header] = ["v", "h"].map(|name| folder.path().join(name));
    for format in [Format::Luks1, Format::Luks2] {
        let creation = Creation::new(format);
        let length = made(&path, Some(&header), &creation).unwrap();
        assert_eq!(length, 24 * MIB);
        opened(&path, Some(&header), &creation).unwrap();
        let before = fs::read(&header).unwrap();
        let refused = made(&path, Some(&header), &creation).unwrap_err();
        assert!(matches!(refused, VolumeError::Judged(it) if it.in_header));
        assert!(fs::read(&header).unwrap() == before);
        let same = made(&path, Some(&path), &creation).unwrap_err();
        assert!(matches!(same, VolumeError::Impossible { .. }), "{same}");
        fs::remove_file(&header).unwrap();
        fs::remove_file(&path).unwrap();
    }
}

/// A key stream that every version of a sector shares is no cipher for a disk, whoever makes the
/// tags. What other programs made so opens, with a warning.
#[test]
fn a_key_stream_is_used_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = &folder.path().join("v");
    let (mut made_one, mut refused) = (0, 0);
    for (transform, words) in [
        ("aes-gcm", ["aead", "hmac-sha256"]),
        ("aegis128", ["aead", "hmac-sha512"]),
        ("chacha20", ["poly1305", "aead"]),
        ("aes-ctr", ["hmac-sha256", "none"]),
        ("serpent-ctr", ["hmac-sha1", "aead"]),
    ] {
        for generator in [
            "plain",
            "plain64",
            "plain64be",
            "essiv:sha256",
            "null",
            "benbi",
            "random",
        ] {
            for word in words {
                let mut creation = Creation::new(Format::Luks2);
                creation.integrity = Some(word.into());
                creation.parameters.cipher = Some(format!("{transform}-{generator}"));
                creation.accepted = State::ALL.to_vec();
                match made(path, None, &creation) {
                    Ok(_) => {
                        assert_eq!(generator, "random", "{creation:?}");
                        let opened = opened(path, None, &creation).unwrap();
                        assert_eq!(opened.info()["warnings"].as_array().unwrap().len(), 0);
                        fs::remove_file(path).unwrap();
                        made_one += 1;
                    }
                    Err(error) => {
                        assert!(!path.exists(), "{error}");
                        refused += 1;
                    }
                }
            }
        }
    }
    assert!(made_one >= 3 && refused > 50, "{made_one} {refused}");
    let mut creation = Creation::new(Format::Luks2);
    creation.parameters.cipher = Some("aes-ctr-plain64".into());
    made(path, None, &creation).unwrap();
    let volume = opened(path, None, &creation).unwrap();
    assert_eq!(volume.info()["warnings"][0]["kind"], "repeated-key-stream");
}

#[test]
fn what_cannot_be_is_refused_and_leaves_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = &folder.path().join("v");
    let with = |format, change: &dyn Fn(&mut Creation)| {
        let mut creation = Creation::new(format);
        change(&mut creation);
        creation
    };
    for creation in [
        with(Format::Bitlk, &|_| {}),
        with(Format::Luks1, &|it| it.label = "x".into()),
        with(Format::Luks1, &|it| it.integrity = Some("aead".into())),
        with(Format::Luks2, &|it| it.quick = true),
        with(Format::Luks2, &|it| it.uuid = Some("mine".into())),
        with(Format::Luks2, &|it| it.parameters.key_slot = Some(1)),
        with(Format::Luks2, &|it| it.parameters.veracrypt_pim = Some(1)),
        with(Format::Luks2, &|it| it.parameters.key_size = Some(9)),
        with(Format::Luks2, &|it| it.parameters.hash = Some("md6".into())),
        with(Format::Luks2, &|it| {
            it.volume_key = Some(Key::from(vec![1; 64]))
        }),
        with(Format::Luks2, &|it| {
            it.volume_key = Some(Key::from(vec![1; 5]))
        }),
        with(Format::Luks2, &|it| it.parameters.offset = Some(1 << 40)),
        with(Format::Luks2, &|it| {
            it.parameters.cipher = Some("cipher_null-ecb".into())
        }),
        with(Format::Luks2, &|it| {
            it.parameters.cipher = Some("aes-xts-random".into())
        }),
        with(Format::Luks2, &|it| {
            it.parameters.cipher = Some("aes-ecb".into())
        }),
        with(Format::Veracrypt, &|it| {
            it.parameters.veracrypt_pim = Some(1)
        }),
        with(Format::Veracrypt, &|it| it.wipe = true),
        with(Format::Plain, &|it| {
            it.parameters.cipher = Some("aes-ecb".into())
        }),
    ] {
        let refused = made(path, None, &creation);
        assert!(refused.is_err(), "{creation:?}");
        assert!(!path.exists(), "{creation:?}");
    }
    let few = Place::create(path, None, Some(5)).unwrap_err();
    assert!(matches!(few, VolumeError::Impossible { .. }));
    let mut place = Place::create(path, None, Some(24 * MIB)).unwrap();
    let none = create(&mut place, None, &Creation::new(Format::Luks2), &unwatched).unwrap_err();
    assert!(matches!(none, VolumeError::NoSecret { .. }));
    drop(place);
    assert!(!path.exists());
}

/// A device that holds nothing until it was looked at so many times, or that fails to write.
struct Treacherous {
    memory: RamDevice,
    looks: AtomicU32,
    fills_at: u32,
    fails_at: u32,
    writes: AtomicU32,
}

impl Treacherous {
    fn new(fills_at: u32, fails_at: u32) -> Arc<Self> {
        Arc::new(Self {
            memory: RamDevice::new(24 * MIB),
            looks: AtomicU32::new(0),
            fills_at,
            fails_at,
            writes: AtomicU32::new(0),
        })
    }
}

impl BlockDevice for Treacherous {
    fn geometry(&self) -> Geometry {
        self.memory.geometry()
    }
    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), BlockError> {
        self.memory.read_at(offset, into)
    }
    fn write_at(&self, offset: u64, data: &[u8]) -> Result<(), BlockError> {
        match self.writes.fetch_add(1, Ordering::Relaxed) >= self.fails_at {
            true => Err(BlockError::ReadOnly),
            false => self.memory.write_at(offset, data),
        }
    }
    fn flush(&self) -> Result<(), BlockError> {
        self.memory.flush()
    }
    fn discard(&self, range: ByteRange) -> Result<(), BlockError> {
        self.memory.discard(range)
    }
    fn queue(&self, options: QueueOptions) -> Result<Box<dyn Queue + '_>, BlockError> {
        self.memory.queue(options)
    }
    fn content(&self) -> Result<block::signature::Content, BlockError> {
        if self.looks.fetch_add(1, Ordering::Relaxed) == self.fills_at {
            self.memory.write_at(4096, &[7; 512])?;
        }
        self.memory.content()
    }
}

#[test]
fn it_is_looked_at_again_before_the_first_write() {
    for creation in all() {
        let device = Treacherous::new(2, u32::MAX);
        let mut place = Place::of(device.clone(), None);
        check_create(&place, &creation).unwrap();
        let refused = create(&mut place, Some(&new()), &creation, &unwatched).unwrap_err();
        assert!(matches!(refused, VolumeError::Judged(_)), "{refused}");
        assert_eq!(device.writes.load(Ordering::Relaxed), 0, "{creation:?}");
    }
}

#[test]
fn an_error_says_that_old_data_are_gone() {
    for creation in all() {
        let device = Treacherous::new(u32::MAX, 1);
        let mut place = Place::of(device, None);
        let failed = create(&mut place, Some(&new()), &creation, &unwatched).unwrap_err();
        assert!(
            matches!(failed, VolumeError::Overwritten { .. }),
            "{failed}"
        );
    }
}

#[test]
fn a_place_without_a_header_is_noise_and_can_be_stopped() {
    for format in [Format::Plain, Format::Cryptoloop] {
        let device = Arc::new(RamDevice::new(24 * MIB));
        let mut place = Place::of(device.clone(), None);
        let creation = Creation::new(format);
        let stop = |_, _| ControlFlow::Break(());
        let stopped = create(&mut place, None, &creation, &stop).unwrap_err();
        assert_eq!(
            stopped.verdict(),
            cryptmark_volume::Verdict::Interrupted,
            "{stopped}"
        );
        let device = Arc::new(RamDevice::new(24 * MIB));
        let mut place = Place::of(device.clone(), None);
        create(&mut place, None, &creation, &unwatched).unwrap();
        let mut bytes = [0; 4096];
        device.read_at(20 * MIB, &mut bytes).unwrap();
        assert!(bytes.iter().filter(|byte| **byte == 0).count() < 60);
    }
}

/// What the program refuses when it opens the devices, a place refuses as well: on each of them, for
/// every use that writes.
#[test]
fn each_device_of_a_place_is_judged() {
    let folder = tempfile::tempdir().unwrap();
    let [path, header] = ["v", "h"].map(|name| folder.path().join(name));
    made(&path, Some(&header), &Creation::new(Format::Luks2)).unwrap();
    for name in [&path, &header] {
        let before = fs::read(name).unwrap();
        // The superblock of an array, near the end.
        let mut member = before.clone();
        let at = (member.len() - 8192) & !4095;
        member[at..at + 4].copy_from_slice(&0xa92b_4efc_u32.to_le_bytes());
        fs::write(name, member).unwrap();
        for use_ in Use::ALL {
            let opened = Place::open(&path, Some(&header), use_);
            // A header is changed without a write to the data.
            let writes = match use_ {
                Use::Read | Use::Overwrite => false,
                Use::ChangeHeader | Use::MendHeader => name == &header,
                _ => true,
            };
            match opened {
                Err(VolumeError::Judged(it)) => {
                    assert!(writes && it.state == State::Member, "{use_:?}: {it}");
                    assert_eq!(it.in_header, name == &header, "{use_:?}");
                }
                opened => assert!(opened.is_ok() && !writes, "{use_:?} {name:?}: {opened:?}"),
            }
        }
        fs::write(name, before).unwrap();
    }
}

#[test]
fn a_question_is_asked_once_and_its_answer_counts() {
    let folder = tempfile::tempdir().unwrap();
    let path = &folder.path().join("v");
    let mut creation = Creation::new(Format::Luks2);
    made(path, None, &creation).unwrap();
    creation.parameters.cipher = Some("aes-ecb".into());
    let mut asked = Vec::new();
    for accepts in [&[][..], &[State::Data], &[State::Weak, State::Data]] {
        asked.clear();
        let mut place = Place::create(path, None, None).unwrap();
        let done = judge::asking(
            &[],
            |finding| {
                asked.push(finding.state);
                accepts.contains(&finding.state)
            },
            |accepted| {
                creation.accepted = accepted.to_vec();
                create(&mut place, Some(&new()), &creation, &unwatched)
            },
        );
        let expected = &[State::Data, State::Weak][..(accepts.len() + 1).min(2)];
        assert_eq!(asked, expected);
        assert_eq!(done.is_ok(), accepts.len() == 2);
    }
}

#[test]
fn data_keep_their_content_under_another_key_size_and_version() {
    let folder = tempfile::tempdir().unwrap();
    let path = &folder.path().join("v");
    let creation = Creation::new(Format::Luks1);
    made(path, None, &creation).unwrap();
    let volume = opened(path, None, &creation).unwrap();
    volume.write_at(4096, b"content").unwrap();
    drop(volume);
    let place = || Place::open(path, None, Use::ChangeLayout).unwrap();
    let options = Options {
        parameters: Parameters {
            cipher: Some("serpent-xts-plain64".into()),
            ..Parameters::default()
        },
        ..Options::default()
    };
    let secret = secret();
    let again = |report: Report<'_>| {
        let caller = Answers {
            cost: new().cost,
            ..Answers::new(&secret, report)
        };
        reencrypt(&Site::new(path, None), Change::Anew, &options, &caller)
    };
    let no_room = again(&unwatched).unwrap_err();
    assert!(no_room.to_string().contains("no room for a journal"));
    assert!(convert(&place(), Format::Luks2).unwrap());
    assert!(!convert(&place(), Format::Luks2).unwrap());
    assert!(convert(&place(), Format::Plain).is_err());
    let stop = |_, _| ControlFlow::Break(());
    // There is little to do: it may be done by then.
    let _ = again(&stop);
    again(&unwatched).unwrap();
    let to = |bytes, accepted: &[State]| {
        let options = Options {
            accepted: accepted.to_vec(),
            ..Options::default()
        };
        resize(&mut place(), bytes, None, &options, &unwatched)
    };
    let cut = to(20 * MIB, &[]).unwrap_err();
    assert!(matches!(cut, VolumeError::Judged(it) if it.state == State::CutOff));
    assert!(to(20 * MIB + 5, &State::ALL).is_err());
    to(20 * MIB, &[State::CutOff]).unwrap();
    to(32 * MIB, &[]).unwrap();
    let volume = opened(path, None, &creation).unwrap();
    let mut bytes = [0; 7];
    volume.read_at(4096, &mut bytes).unwrap();
    assert_eq!(&bytes, b"content");
    assert_eq!(fs::metadata(path).unwrap().len(), 32 * MIB);
}

/// What an interrupted reencryption has left beside a volume is used for the data with which it
/// began, and goes on with what it began with.
#[test]
fn a_header_beside_a_volume_is_of_its_data() {
    // More than is worked on at a time.
    const SIZE: u64 = 64 * MIB;
    let folder = tempfile::tempdir().unwrap();
    let path = &folder.path().join("v");
    let side = folder.path().join("v.cryptmark-header");
    let keyfile = folder.path().join("k");
    fs::write(&keyfile, "a key file").unwrap();
    let parameters = || Parameters {
        keyfiles: Some(Keyfiles::read(std::slice::from_ref(&keyfile)).unwrap()),
        hash: Some("sha512".into()),
        veracrypt_pim: Some(1),
        ..Parameters::default()
    };
    let creation = Creation {
        quick: true,
        accepted: vec![State::Weak],
        parameters: parameters(),
        ..Creation::new(Format::Veracrypt)
    };
    let mut place = Place::create(path, None, Some(SIZE)).unwrap();
    create(&mut place, Some(&new()), &creation, &unwatched).unwrap();
    drop(place);
    let whole = fs::read(path).unwrap();
    let secret = secret();
    let change = |cipher: Option<&str>, hidden, accepted: &[State], report: Report<'_>| {
        let options = Options {
            format: Some(Format::Veracrypt),
            parameters: Parameters {
                cipher: cipher.map(str::to_owned),
                tcrypt_hidden: hidden,
                ..parameters()
            },
            accepted: accepted.to_vec(),
            ..Options::default()
        };
        let caller = Answers {
            cost: new().cost,
            ..Answers::new(&secret, report)
        };
        let site = Site::new(path, None);
        reencrypt(&site, Change::Anew, &options, &caller)
    };
    let read = |format| {
        let options = OpenOptions {
            format,
            parameters: match format {
                Some(_) => parameters(),
                None => Parameters::default(),
            },
            ..OpenOptions::default()
        };
        Volume::open(path, Some(&secret), &options).map(drop)
    };
    // Its place would be in the file beside the volume.
    let betrayed = change(None, true, &[], &unwatched).unwrap_err();
    let VolumeError::Judged(finding) = betrayed else {
        panic!("{betrayed}");
    };
    assert_eq!(finding.state, State::Weak);
    assert!(
        finding
            .found
            .contains("shows that there is a hidden volume")
    );
    // The search for the key derivation is told as well, and counts something else.
    let stop = |_, total| match total == SIZE {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    };
    let stopped = change(None, false, &[State::Hidden], &stop);
    assert!(side.exists(), "{stopped:?}");
    assert!(
        matches!(stopped, Err(VolumeError::Partly { .. })),
        "{stopped:?}"
    );
    let half = fs::read(path).unwrap();
    // The key files are a part of what opens it, as before.
    read(Some(Format::Veracrypt)).unwrap();
    assert!(matches!(read(None), Err(VolumeError::NoKeyslotFits { .. })));
    let other = change(Some("serpent"), false, &State::ALL, &unwatched).unwrap_err();
    assert!(matches!(other, VolumeError::Standing { .. }), "{other}");
    for (there, name) in [(&whole, "restored"), (&vec![0; whole.len()], "another")] {
        fs::write(path, there).unwrap();
        assert!(
            matches!(read(None), Err(VolumeError::OtherData)),
            "{name}: {:?}",
            read(None)
        );
        let resumed = change(None, false, &State::ALL, &unwatched);
        assert!(matches!(resumed, Err(VolumeError::OtherData)), "{name}");
        assert!(fs::read(path).unwrap() == *there, "{name}");
    }
    fs::write(path, half).unwrap();
    change(Some("aes"), false, &[], &unwatched).unwrap();
    assert!(!side.exists());
    read(Some(Format::Veracrypt)).unwrap();
}
