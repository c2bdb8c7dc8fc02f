//! The files of a volume, as they are laid out for the doors.

use crate::asked::{Answer, Question, Work};
use crate::corpus::{Case, Image};
use crate::kit::{Expected, luks2};
use std::fs;
use std::path::{Path, PathBuf};

/// A folder with the files of a case.
pub struct Laid {
    folder: tempfile::TempDir,
    image: PathBuf,
    /// What the files hold at first.
    pub before: Vec<Option<Vec<u8>>>,
    /// Whether sectors get random numbers when they are written.
    pub is_random: bool,
    options: Vec<(&'static str, String)>,
}

impl Laid {
    pub fn out(case: &Case) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut options = case.options.clone();
        if case.header.is_some() {
            let header = folder.path().join("header");
            options.push(("header", header.into_os_string().into_string().unwrap()));
        }
        let image = folder.path().join("image");
        let mut laid = Self {
            folder,
            image,
            before: Vec::new(),
            is_random: case.name.contains("integrity"),
            options,
        };
        laid.put(case);
        laid.before = laid.bytes();
        laid
    }

    pub fn question<'a>(&'a self, case: &'a Case, work: Work) -> Question<'a> {
        Question {
            path: &self.image,
            options: &self.options,
            secret: case.secret.as_ref(),
            work,
            folder: self.folder.path(),
        }
    }

    /// Puts the files there as they were.
    pub fn put(&self, case: &Case) {
        put(&self.image, &case.image);
        if let Some(header) = &case.header {
            put(&self.folder.path().join("header"), header);
        }
        if let Some(beside) = &case.beside {
            fs::write(self.folder.path().join("image.cryptmark-header"), &**beside).unwrap();
        }
    }

    /// Keeps the start of the volume as it was, for a change that takes it for a backup. What has
    /// no header that can be kept gets the one of another volume.
    pub fn save(&self, case: &Case) {
        let holder = case.header.as_ref().unwrap_or(&case.image);
        let is_luks = |bytes: &[u8]| bytes.starts_with(b"LUKS");
        let is_tcrypt = case.options.contains(&("format", "tcrypt".to_owned()));
        let whole = match holder {
            Image::File(bytes, _) if is_luks(bytes) || is_tcrypt => bytes.to_vec(),
            _ => luks2("", |_| {}, Expected::Opens).bytes,
        };
        let start = &whole[..whole.len().min(1 << 20)];
        fs::write(self.folder.path().join("saved"), start).unwrap();
    }

    /// What the files hold.
    pub fn bytes(&self) -> Vec<Option<Vec<u8>>> {
        let names = ["image", "header", "image.cryptmark-header"];
        let read = |name| {
            let path = self.folder.path().join(name);
            path.is_file().then(|| fs::read(path).unwrap())
        };
        names.map(read).into()
    }

    pub fn shown(&self, answer: &Answer) -> String {
        let shown = match answer {
            Answer::Opened(opened) => format!(
                "opened, {:?} bytes, starting with {:?}, warnings {:?}",
                opened.size,
                opened.ends.as_ref().map(|ends| &ends[..ends.len().min(8)]),
                opened.warnings
            ),
            Answer::Refused(refused) => {
                let question = refused.question.as_deref().unwrap_or("nothing");
                format!("{} {} (asks for {question})", refused.code, refused.what)
            }
        };
        shown.replace(&*self.folder.path().to_string_lossy(), "FOLDER")
    }
}

fn put(path: &Path, image: &Image) {
    match image {
        Image::File(bytes, damage) => {
            let mut bytes = bytes.to_vec();
            (damage.apply)(&mut bytes);
            fs::write(path, bytes).unwrap();
        }
        Image::Directory => fs::create_dir_all(path).unwrap(),
        Image::Pipe if path.exists() => {}
        Image::Pipe => {
            let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
            rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, mode, 0)
                .unwrap();
        }
        Image::Missing => {}
    }
}
