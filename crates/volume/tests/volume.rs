//! [`Volume`]: volumes that are open like files.

use block::{BlockDevice, FileDevice, FileOptions, RamDevice};
use cipher::{Algorithm, Key, SectorSize};
use cryptmark_volume::luks2::{Creation, Header};
use cryptmark_volume::tcrypt::{self, Family};
use cryptmark_volume::{
    Access, Format, Hash, Kdf, Limits, OpenOptions, Parameters, Place, Secret, Unfinished, Verdict,
    Volume, VolumeError, luks1, side_header, unfinished,
};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::fs::{self, File};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::Arc;
use std::thread;

const PASSPHRASE: &[u8] = b"correct horse";

fn passphrase(bytes: &[u8]) -> Secret {
    Secret::Passphrase(Key::from_slice(bytes))
}

fn creation(sector: u32) -> Creation {
    let kdf = Kdf::Pbkdf2 {
        hash: Hash::Sha256,
        iterations: 1000,
    };
    Creation {
        sector_size: SectorSize::from_bytes(sector).unwrap(),
        ..Creation::new(kdf)
    }
}

fn create(device: &dyn BlockDevice, sector: u32) {
    let (key, passphrase) = (Key::random(64).unwrap(), Key::from_slice(PASSPHRASE));
    Header::create(device, &creation(sector), &key, &passphrase).unwrap();
}

/// A file with a LUKS2 volume of 1 MiB.
fn volume_at(path: &Path) {
    File::create(path).unwrap().set_len(17 << 20).unwrap();
    let options = FileOptions {
        write: true,
        ..FileOptions::default()
    };
    create(&FileDevice::open(path, &options).unwrap(), 512);
}

fn to_write() -> OpenOptions<'static> {
    OpenOptions {
        access: Access::Write,
        ..OpenOptions::default()
    }
}

fn open(path: &Path, options: &OpenOptions) -> Result<Volume, VolumeError> {
    Volume::open(path, Some(&passphrase(PASSPHRASE)), options)
}

#[test]
fn any_bytes_are_those_of_a_byte_array() {
    for sector in [512, 4096] {
        let disk: Arc<dyn BlockDevice> = Arc::new(RamDevice::new(17 << 20));
        create(&*disk, sector);
        let secret = passphrase(PASSPHRASE);
        let mut volume = Volume::on(Place::of(disk, None), Some(&secret), &to_write()).unwrap();
        let size = volume.size() as usize;
        assert_eq!(size, 1 << 20);
        volume.write_at(0, &vec![0; size]).unwrap();
        let mut model = vec![0; size];
        let mut random = Xoshiro256PlusPlus::seed_from_u64(u64::from(sector));
        for step in 0..2000 {
            let offset = random.next_u64() as usize % (size + 1);
            let longest = [1, 20, 600, 9000, 700_000][step % 5];
            let length = (random.next_u64() as usize % (longest + 1)).min(size - offset);
            let mut bytes = vec![0; length];
            match step % 3 {
                0 => {
                    random.fill_bytes(&mut bytes);
                    volume.write_at(offset as u64, &bytes).unwrap();
                    model[offset..offset + length].copy_from_slice(&bytes);
                }
                1 => {
                    let read = volume.read_at(offset as u64, &mut bytes).unwrap();
                    assert_eq!((read, &bytes[..]), (length, &model[offset..][..length]));
                }
                _ => {
                    volume.seek(SeekFrom::Start(offset as u64)).unwrap();
                    volume.read_exact(&mut bytes).unwrap();
                    assert!(bytes == model[offset..][..length]);
                }
            }
        }
        let mut all = vec![0; size + 100];
        assert_eq!(volume.read_at(0, &mut all).unwrap(), size);
        assert!(all[..size] == model);
    }
}

#[test]
fn writers_of_one_sector_keep_what_is_beside() {
    let disk: Arc<dyn BlockDevice> = Arc::new(RamDevice::new(17 << 20));
    create(&*disk, 4096);
    let secret = passphrase(PASSPHRASE);
    let volume = Volume::on(Place::of(disk, None), Some(&secret), &to_write()).unwrap();
    thread::scope(|scope| {
        for writer in 0..4_u8 {
            let volume = &volume;
            scope.spawn(move || {
                for round in 0..500_u64 {
                    let at = round % 8 * 4096 + u64::from(writer) * 1024;
                    volume.write_at(at, &[writer + 1; 1024]).unwrap();
                }
            });
        }
    });
    let mut bytes = vec![0; 8 * 4096];
    volume.read_at(0, &mut bytes).unwrap();
    for (nth, part) in bytes.chunks(1024).enumerate() {
        assert!(part.iter().all(|byte| usize::from(*byte) == nth % 4 + 1));
    }
}

#[test]
fn nothing_is_written_beyond_the_end_or_to_a_volume_for_reading() {
    let folder = tempfile::tempdir().unwrap();
    let path = &folder.path().join("disk");
    volume_at(path);
    let before = fs::read(path).unwrap();
    let mut volume = open(path, &to_write()).unwrap();
    let size = volume.size();
    for (offset, length) in [(size, 1), (size - 1, 2), (u64::MAX, 1), (u64::MAX - 1, 4)] {
        assert!(volume.write_at(offset, &vec![1; length]).is_err());
        volume.write_at(offset, &[]).unwrap_or(());
    }
    for offset in [size, size + 1, u64::MAX] {
        assert_eq!(volume.read_at(offset, &mut [0; 9]).unwrap(), 0);
    }
    volume.seek(SeekFrom::End(0)).unwrap();
    assert_eq!(
        volume.write_all(&[1]).unwrap_err().kind(),
        ErrorKind::WriteZero
    );
    assert!(volume.seek(SeekFrom::Current(-(size as i64) - 1)).is_err());
    // Others are kept out until it is closed.
    assert!(matches!(
        open(path, &to_write()),
        Err(VolumeError::Block(_))
    ));
    drop(volume);
    let mut volume = open(path, &OpenOptions::default()).unwrap();
    assert!(volume.write_at(0, &[1; 512]).is_err());
    assert_eq!(
        volume.write(&[1]).unwrap_err().kind(),
        ErrorKind::PermissionDenied
    );
    assert!(fs::read(path).unwrap() == before);
}

#[test]
fn wrong_uses_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = &folder.path().join("disk");
    volume_at(path);
    let reading = OpenOptions::default();
    let wrong = Volume::open(path, Some(&passphrase(b"wrong")), &reading);
    assert!(matches!(wrong, Err(VolumeError::NoKeyslotFits { .. })));
    let none = Volume::open(path, None, &reading);
    assert!(matches!(none, Err(VolumeError::NoSecret { .. })));
    let missing = open(&folder.path().join("none"), &reading);
    assert!(matches!(missing, Err(VolumeError::Block(_))));

    let with = |format, parameters| OpenOptions {
        format,
        parameters,
        ..OpenOptions::default()
    };
    let foreign = Parameters {
        cipher: Some("aes-xts-plain64".to_owned()),
        ..Parameters::default()
    };
    let refused = open(path, &with(None, foreign)).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "`cipher` has no meaning for a LUKS2 volume"
    );
    // A search would take minutes.
    let tcrypt = open(path, &with(Some(Format::Tcrypt), Parameters::default()));
    assert!(matches!(tcrypt, Err(VolumeError::Impossible { .. })));
    let apart = OpenOptions {
        header: Some(path.clone()),
        ..with(Some(Format::Plain), Parameters::default())
    };
    assert!(matches!(
        open(path, &apart),
        Err(VolumeError::Foreign {
            parameter: "header",
            ..
        })
    ));

    let blank = &folder.path().join("blank");
    File::create(blank).unwrap().set_len(1 << 20).unwrap();
    let unsigned = open(blank, &reading).unwrap_err();
    assert!(matches!(
        unsigned,
        VolumeError::NoSignature { holds: None, .. }
    ));

    let mut file = File::options().write(true).open(path).unwrap();
    file.write_all(&[0; 512]).unwrap();
    file.seek(SeekFrom::Start(16384)).unwrap();
    file.write_all(&[0; 512]).unwrap();
    let lost = open(path, &reading).unwrap_err();
    assert!(matches!(lost, VolumeError::StartLost), "{lost:?}");
}

#[test]
fn a_volume_without_a_header_is_opened_by_its_parameters() {
    let folder = tempfile::tempdir().unwrap();
    let path = &folder.path().join("disk");
    File::create(path).unwrap().set_len(1 << 20).unwrap();
    let options = OpenOptions {
        format: Some(Format::Plain),
        parameters: Parameters {
            key_size: Some(512),
            hash: Some("sha512".to_owned()),
            offset: Some(4096),
            ..Parameters::default()
        },
        ..to_write()
    };
    let volume = open(path, &options).unwrap();
    assert_eq!(volume.size(), (1 << 20) - 4096);
    assert_eq!(volume.info()["mappings"][0]["key_bits"], 512);
    volume.write_at(7, b"seven").unwrap();
    drop(volume);
    let mut bytes = [0; 5];
    open(path, &options)
        .unwrap()
        .read_at(7, &mut bytes)
        .unwrap();
    assert_eq!(&bytes, b"seven");
    assert!(
        fs::read(path).unwrap()[..4096]
            .iter()
            .all(|byte| *byte == 0)
    );
}

/// What another program does to the header of an open volume, and whether writing goes on.
type Meddling = (&'static str, fn(&dyn BlockDevice), bool);

#[test]
fn writing_stops_when_another_program_changes_the_header() {
    let label: fn(&dyn BlockDevice) = |disk| {
        let mut header = Header::read(disk).unwrap();
        header.set_labels(disk, Some("new"), None).unwrap();
    };
    let meddling: [Meddling; 5] = [
        ("nothing", |_| {}, true),
        ("a label", label, true),
        ("another volume", |disk| create(disk, 512), false),
        (
            "zeros",
            |disk| disk.write_at(0, &vec![0; 64 << 10]).unwrap(),
            false,
        ),
        (
            "the first copy",
            |disk| disk.write_at(0, &[0; 4096]).unwrap(),
            true,
        ),
    ];
    for (name, meddle, goes_on) in meddling {
        let disk: Arc<dyn BlockDevice> = Arc::new(RamDevice::new(17 << 20));
        create(&*disk, 512);
        let secret = passphrase(PASSPHRASE);
        let volume = Volume::on(
            Place::of(Arc::clone(&disk), None),
            Some(&secret),
            &to_write(),
        )
        .unwrap();
        volume.write_at(0, &[1; 512]).unwrap();
        volume.flush().unwrap();
        meddle(&*disk);
        let mut stored = vec![0; 17 << 20];
        disk.read_at(0, &mut stored).unwrap();
        for _ in 0..2 {
            assert_eq!(volume.write_at(4096, &[2; 512]).is_ok(), goes_on, "{name}");
            assert_eq!(volume.flush().is_ok(), goes_on, "{name}");
        }
        assert!(volume.read_at(0, &mut [0; 512]).is_ok(), "{name}");
        let mut after = vec![0; 17 << 20];
        disk.read_at(0, &mut after).unwrap();
        assert_eq!(after != stored, goes_on, "{name}");
    }
}

#[test]
fn a_planted_header_beside_a_volume_is_not_used() {
    let folder = tempfile::tempdir().unwrap();
    let path = &folder.path().join("disk");
    let side = side_header(path, None);
    volume_at(path);
    let planted = |refused: Result<Volume, VolumeError>| match refused {
        Err(VolumeError::Standing { what, .. }) => {
            assert!(what.starts_with(side.to_str().unwrap()), "{what}");
        }
        other => panic!("{other:?}"),
    };
    let reading = OpenOptions::default();
    // Of another volume.
    volume_at(&side);
    planted(open(path, &reading));
    fs::copy(path, &side).unwrap();
    assert!(open(path, &reading).is_ok());
    #[cfg(unix)]
    {
        // A link, and a file of another user.
        let elsewhere = folder.path().join("elsewhere");
        fs::rename(&side, &elsewhere).unwrap();
        std::os::unix::fs::symlink(&elsewhere, &side).unwrap();
        planted(open(path, &reading));
        fs::remove_file(&side).unwrap();
        fs::copy(path, &side).unwrap();
        // Only root can make one.
        if std::os::unix::fs::chown(&side, Some(65534), None).is_ok() {
            planted(open(path, &reading));
        }
    }
}

#[test]
fn a_volume_in_the_middle_of_a_change_is_not_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = &folder.path().join("disk");
    volume_at(path);
    // The header of an encryption in place, which another run has to end.
    fs::copy(path, side_header(path, None)).unwrap();
    let refused = open(path, &to_write()).unwrap_err();
    assert!(matches!(refused, VolumeError::RecoveryNeeded));
    let refused = open(
        path,
        &OpenOptions {
            format: Some(Format::Veracrypt),
            ..OpenOptions::default()
        },
    );
    assert!(matches!(refused, Err(VolumeError::Reencrypting)));
}

#[test]
fn debug_tells_no_secret() {
    let disk: Arc<dyn BlockDevice> = Arc::new(RamDevice::new(17 << 20));
    create(&*disk, 512);
    let secret = passphrase(PASSPHRASE);
    let volume = Volume::on(
        Place::of(disk, None),
        Some(&secret),
        &OpenOptions::default(),
    )
    .unwrap();
    let said = format!("{volume:?} {}", volume.info());
    assert!(said.contains("luks2") && !said.contains("correct horse"));
}

/// Asserts that a volume whose end is missing is read as far as it is there, that this is said, and
/// that it is not written. `open` opens it, and `needed` is where its data end.
fn assert_cut(
    name: &str,
    image: &[u8],
    needed: u64,
    open: impl Fn(Arc<dyn BlockDevice>, Access) -> Result<Volume, VolumeError>,
) {
    let disk = |length: usize| -> Arc<dyn BlockDevice> {
        let disk = RamDevice::new(length as u64);
        disk.write_at(0, &image[..length]).unwrap();
        Arc::new(disk)
    };
    let content = |volume: &Volume| {
        let mut bytes = vec![0; volume.size() as usize];
        volume.read_at(0, &mut bytes).unwrap();
        bytes
    };
    let whole = open(disk(image.len()), Access::Read).unwrap();
    assert_eq!(whole.info()["warnings"], serde_json::json!([]), "{name}");
    let whole = content(&whole);
    for missing in [4096, whole.len() / 2, whole.len() - 4096] {
        let got = needed as usize - missing;
        let volume = open(disk(got), Access::Read).unwrap();
        let warning = &volume.info()["warnings"][0];
        assert_eq!(warning["kind"], "cut-off", "{name}");
        assert_eq!(warning["needed_bytes"], needed, "{name}");
        assert_eq!(warning["device_bytes"], got, "{name}");
        assert!(content(&volume) == whole[..whole.len() - missing], "{name}");
        let written = open(disk(got), Access::Write).map(drop);
        assert!(
            matches!(written, Err(VolumeError::Cut { .. })),
            "{name}: {written:?}"
        );
    }
    // Nothing of the data is there.
    let nothing = open(disk(needed as usize - whole.len()), Access::Read).map(drop);
    assert!(
        matches!(nothing, Err(VolumeError::DataArea { .. })),
        "{name}: {nothing:?}"
    );
}

#[test]
fn volumes_that_are_cut_off_are_read_as_far_as_they_are_there() {
    let image = |disk: &RamDevice| {
        let mut image = vec![0; disk.geometry().size as usize];
        disk.read_at(0, &mut image).unwrap();
        image
    };
    let size = 17 << 20;
    let (key, first) = (Key::random(64).unwrap(), Key::from_slice(PASSPHRASE));

    let disk = RamDevice::new(size);
    let mut header = Header::create(&disk, &creation(512), &key, &first).unwrap();
    header.json["segments"]["0"]["size"] = (1 << 20).to_string().into();
    // As if it were on no device yet.
    header.binary.seqid = 0;
    header.set_labels(&disk, Some("fixed"), None).unwrap();
    for secret in [
        passphrase(PASSPHRASE),
        Secret::VolumeKey(Key::from_slice(key.as_bytes())),
    ] {
        let open = |disk, access| {
            let options = OpenOptions {
                access,
                ..OpenOptions::default()
            };
            Volume::on(Place::of(disk, None), Some(&secret), &options)
        };
        assert_cut("LUKS2 of a fixed size", &image(&disk), size, open);
    }

    for (family, format) in [
        (Family::VeraCrypt, Format::Veracrypt),
        (Family::TrueCrypt, Format::Tcrypt),
    ] {
        let disk = RamDevice::new(1 << 20);
        let pim = Some(1).filter(|_| family == Family::VeraCrypt);
        let creation = tcrypt::Creation {
            family,
            algorithms: vec![Algorithm::Aes],
            sealing: tcrypt::Sealing {
                pim,
                ..tcrypt::Sealing::new(tcrypt::Prf::of(family, "sha512").unwrap())
            },
        };
        creation.create(&disk, &first, &Limits::default()).unwrap();
        let needed = (1 << 20) - tcrypt::HEADERS_BYTES;
        let open = |disk, access| {
            let options = OpenOptions {
                access,
                format: Some(format),
                parameters: Parameters {
                    hash: Some("sha512".into()),
                    veracrypt_pim: pim,
                    ..Parameters::default()
                },
                ..OpenOptions::default()
            };
            Volume::on(
                Place::of(disk, None),
                Some(&passphrase(PASSPHRASE)),
                &options,
            )
        };
        assert_cut(format.name(), &image(&disk), needed, open);
    }
}

/// cryptsetup-reencrypt takes the magic away while it works. A program that gives it back has a
/// volume of which a part has another key.
#[test]
fn work_of_other_programs_is_theirs_to_finish() {
    let disk = RamDevice::new(3 << 20);
    let creation = luks1::Creation {
        spec: "aes-xts-plain64".parse().unwrap(),
        key_bytes: 64,
        hash: Hash::Sha256,
        iterations: 1000,
        payload_offset: None,
        detached: false,
        uuid: None,
    };
    let (key, first) = (Key::random(64).unwrap(), Key::from_slice(PASSPHRASE));
    let header = luks1::Header::create(&disk, &creation, &key, &first).unwrap();
    assert_eq!(unfinished(&disk), None);
    let mut sector = vec![0; 512];
    disk.read_at(0, &mut sector).unwrap();
    sector[4..6].copy_from_slice(b"\xDE\xAD");
    disk.write_at(0, &sector).unwrap();
    let uuid = header.uuid.to_string();
    let found = unfinished(&disk);
    assert_eq!(
        found,
        Some(Unfinished::CryptsetupReencrypt { uuid: uuid.clone() })
    );
    let rebuilt = luks1::Header::rebuild(&disk).map(drop);
    let disk: Arc<dyn BlockDevice> = Arc::new(disk);
    let opened = Volume::on(
        Place::of(disk, None),
        Some(&passphrase(PASSPHRASE)),
        &OpenOptions::default(),
    );
    for error in [rebuilt.unwrap_err(), opened.map(drop).unwrap_err()] {
        assert_eq!(error.verdict(), Verdict::Protected);
        for file in ["log", "org", "new"] {
            let name = format!("LUKS-{uuid}.{file}");
            assert!(error.to_string().contains(&name), "{error}");
        }
    }
    // One that only lost its magic is mended.
    let disk = RamDevice::new(3 << 20);
    sector[..6].fill(0);
    disk.write_at(0, &sector).unwrap();
    assert_eq!(unfinished(&disk), None);

    // The same of LUKS2, which has a requirement in its place.
    let disk = RamDevice::new(17 << 20);
    let mut header = Header::create(&disk, &self::creation(512), &key, &first).unwrap();
    header.json["config"]["requirements"] =
        serde_json::json!({ "mandatory": ["offline-reencrypt"] });
    header.binary.seqid = 0;
    let written = header.set_labels(&disk, Some("begun"), None);
    written.unwrap();
    let found = unfinished(&disk);
    assert!(
        matches!(found, Some(Unfinished::CryptsetupReencrypt { .. })),
        "{found:?}"
    );
}
