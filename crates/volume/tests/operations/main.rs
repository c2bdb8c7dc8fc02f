//! Each operation of libraries on each format, in each state of a volume that it tells apart: what
//! it says, what it changes, and that it changes nothing where it refuses.

// Files are held and locked here as Linux does it.
#![cfg(target_os = "linux")]

mod begun;
mod chosen;
mod filled;
mod headers;
mod hidden;
mod judged;
mod kept;
mod made;
mod places;
mod resized;
mod run;
mod stopped;
mod tcrypt;

use cipher::Key;
use cryptmark_volume::judge::State;
use cryptmark_volume::operate::{
    Creation, KeySlotCost, Mended, NewKey, Options, create, unwatched,
};
use cryptmark_volume::{
    Access, Format, Hash, Kdf, OpenOptions, Parameters, Place, Secret, Volume, VolumeError,
};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::fs;
use std::path::{Path, PathBuf};

const KIB: usize = 1 << 10;
const MIB: u64 = 1 << 20;

/// The secrets of volumes: long enough for a small PIM.
const ONE: &str = "one passphrase of many letters";
const TWO: &str = "two passphrases of many letters";

/// Where the data of a LUKS volume begin, which has as much again of them.
const OFFSET: u64 = 2 * MIB;

fn key(text: &str) -> Key {
    Key::from_slice(text.as_bytes())
}

fn secret(text: &str) -> Secret {
    Secret::Passphrase(key(text))
}

fn new(text: &str) -> NewKey {
    NewKey {
        secret: key(text),
        cost: KeySlotCost::from(Kdf::Pbkdf2 {
            hash: Hash::Sha256,
            iterations: 1000,
        }),
        allow_empty: false,
    }
}

fn is_tcrypt(format: Format) -> bool {
    matches!(format, Format::Tcrypt | Format::Veracrypt)
}

/// How a volume of `format` opens; as the hidden one if that is meant.
fn parameters(format: Format, hidden: bool) -> Parameters {
    Parameters {
        hash: is_tcrypt(format).then(|| "sha512".to_owned()),
        veracrypt_pim: (format == Format::Veracrypt).then_some(1),
        tcrypt_hidden: hidden,
        ..Parameters::default()
    }
}

fn options(format: Format, accepted: &[State]) -> Options {
    Options {
        format: is_tcrypt(format).then_some(format),
        parameters: parameters(format, false),
        accepted: accepted.to_vec(),
        ..Options::default()
    }
}

/// Data that anyone would know again.
fn text(length: u64) -> Vec<u8> {
    let numbers = (0_u64..).flat_map(|number| format!("line {number}\n").into_bytes());
    numbers.take(length as usize).collect()
}

/// Overwrites with noise.
fn spoil(bytes: &mut [u8]) {
    let noise = Key::random(bytes.len()).unwrap();
    bytes.copy_from_slice(noise.as_bytes());
}

/// An MBR with one partition.
fn mbr(start: &mut [u8]) {
    start[..512].fill(0);
    start[446..462].copy_from_slice(&[0, 1, 1, 0, 0x83, 2, 2, 2, 0, 8, 0, 0, 0, 8, 0, 0]);
    start[510..512].copy_from_slice(&[0x55, 0xaa]);
}

/// What came of it, in words: of a refusal, whose it is as well.
fn outcome<T: Debug>(result: Result<T, VolumeError>) -> String {
    match result {
        Ok(done) => format!("{done:?}"),
        Err(VolumeError::Judged(it)) => {
            let place = if it.in_header { " of the header" } else { "" };
            format!("{}{place}: {it}", it.state.name())
        }
        Err(error) => error.to_string(),
    }
}

/// What was said, and whether something was changed and lost.
fn mended(result: Result<Mended, VolumeError>) -> String {
    match result {
        Ok(it) => {
            let marks = [(it.is_changed, "changed: "), (it.has_lost, "lost: ")];
            let marks: String = marks.iter().filter(|it| it.0).map(|it| it.1).collect();
            marks + &it.said
        }
        refused => outcome(refused),
    }
}

/// A folder with volumes.
struct Bench {
    folder: tempfile::TempDir,
}

impl Bench {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap()
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        fs::write(self.path(name), bytes).unwrap();
    }

    /// All files.
    fn files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let entries = fs::read_dir(self.folder.path()).unwrap();
        let paths = entries.map(|entry| entry.unwrap().path());
        paths
            .map(|path| (path.clone(), fs::read(path).unwrap()))
            .collect()
    }

    fn put_back(&self, files: &BTreeMap<PathBuf, Vec<u8>>) {
        for path in self
            .files()
            .keys()
            .filter(|path| !files.contains_key(*path))
        {
            fs::remove_file(path).unwrap();
        }
        files
            .iter()
            .for_each(|(path, bytes)| fs::write(path, bytes).unwrap());
    }

    /// Puts the header of `v` into the file `h`, and leaves zeros in its place.
    fn part(&self) {
        let mut bytes = self.read("v");
        self.write("h", &bytes);
        bytes[..OFFSET as usize].fill(0);
        self.write("v", bytes);
    }

    /// Makes the volume `v`, which opens with [`ONE`] and is full of [`text`].
    fn volume(format: Format) -> Self {
        let bench = Self::new();
        bench.make("v", format);
        bench
    }

    /// The same with another name.
    fn make(&self, name: &str, format: Format) {
        let is_tcrypt = is_tcrypt(format);
        let creation = Creation {
            quick: is_tcrypt,
            parameters: Parameters {
                offset: (!is_tcrypt).then_some(OFFSET),
                sector_size: (format == Format::Luks2).then_some(512),
                ..parameters(format, false)
            },
            ..Creation::new(format)
        };
        let bytes = if is_tcrypt { 2 * MIB } else { 2 * OFFSET };
        let mut place = Place::create(&self.path(name), None, Some(bytes)).unwrap();
        create(&mut place, Some(&new(ONE)), &creation, &unwatched).unwrap();
        drop(place);
        let volume = self.open(name, None, format, false, ONE).unwrap();
        volume.write_at(0, &text(volume.size())).unwrap();
        volume.flush().unwrap();
    }

    fn open(
        &self,
        name: &str,
        header: Option<&str>,
        format: Format,
        hidden: bool,
        with: &str,
    ) -> Result<Volume, VolumeError> {
        let options = OpenOptions {
            format: is_tcrypt(format).then_some(format),
            parameters: parameters(format, hidden),
            header: header.map(|header| self.path(header)),
            access: Access::Write,
            ..OpenOptions::default()
        };
        Volume::open(&self.path(name), Some(&secret(with)), &options)
    }

    /// Whether `v` opens.
    fn opens(&self, format: Format, with: &str) -> bool {
        self.open("v", None, format, false, with).is_ok()
    }

    /// Asserts that `v` opens with `with`, and holds all of [`text`].
    fn holds(&self, format: Format, with: &str, case: &str) {
        let volume = self.open("v", None, format, false, with);
        let volume = volume.unwrap_or_else(|error| panic!("{case}: {error}"));
        let mut bytes = vec![0; volume.size() as usize];
        volume.read_at(0, &mut bytes).unwrap();
        assert!(bytes == text(volume.size()), "{case}");
    }

    /// Does `work`, which has to end with these words; it changes no file unless `changes`.
    fn ends(&self, case: &str, wanted: &str, changes: bool, work: impl FnOnce() -> String) {
        let before = self.files();
        let said = work();
        assert_eq!(said, wanted, "{case}");
        assert_eq!(self.files() != before, changes, "{case}: {said}");
    }
}

fn place(path: &Path, use_: cryptmark_volume::judge::Use) -> Place {
    Place::open(path, None, use_).unwrap()
}

fn opened(path: &Path) -> Box<dyn block::BlockDevice> {
    let options = block::FileOptions::default();
    Box::new(block::FileDevice::open(path, &options).unwrap())
}
