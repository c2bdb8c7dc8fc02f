//! A folder with passphrases, volumes and a state folder of its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const PROGRAM: &str = env!("CARGO_BIN_EXE_cryptmark");

/// Cheap key derivations: what is tested is something else.
pub const CHEAP: &str = "--pbkdf pbkdf2 --pbkdf-force-iterations 1000";

/// A folder with `a long passphrase one` in `one`, and so on.
pub struct Desk {
    folder: tempfile::TempDir,
}

impl Desk {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["one", "two", "three"] {
            // Without a newline: cryptsetup takes it for the passphrase as well.
            fs::write(
                folder.path().join(name),
                format!("a long passphrase {name}"),
            )
            .unwrap();
        }
        Self { folder }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap()
    }

    pub fn write(&self, name: &str, bytes: &[u8]) {
        fs::write(self.path(name), bytes).unwrap();
    }

    /// Where the program keeps headers.
    pub fn kept(&self) -> PathBuf {
        self.path("state/cryptmark/headers")
    }

    /// The files that it has kept, in their order.
    pub fn all_kept(&self) -> Vec<PathBuf> {
        let Ok(entries) = fs::read_dir(self.kept()) else {
            return Vec::new();
        };
        let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
        files.sort_by_key(|path| {
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            name.split('_').nth(2).map(str::to_owned)
        });
        files
    }

    pub fn command(&self, program: &str, arguments: &str) -> Command {
        let mut command = Command::new(program);
        command
            .args(arguments.split_whitespace())
            .current_dir(self.folder.path())
            .env("XDG_STATE_HOME", self.path("state"))
            .stdin(Stdio::null());
        command
    }

    /// Runs `cryptmark volume`.
    pub fn try_to(&self, arguments: &str) -> Output {
        let arguments = format!("volume {arguments}");
        self.command(PROGRAM, &arguments).output().unwrap()
    }

    /// Runs what has to succeed; what it printed.
    #[track_caller]
    pub fn volume(&self, arguments: &str) -> String {
        self.ends(0, arguments)
    }

    /// Runs what has to end with `code`; what it said.
    #[track_caller]
    pub fn ends(&self, code: i32, arguments: &str) -> String {
        let output = self.try_to(arguments);
        let said = text(&output);
        assert_eq!(output.status.code(), Some(code), "{arguments}\n{said}");
        said
    }

    /// Runs what must be refused with `code`, in two lines, and must change
    /// nothing of `image`.
    #[track_caller]
    pub fn refused(&self, code: i32, image: &str, arguments: &str) -> String {
        let before = self.read(image);
        let said = self.ends(code, arguments);
        assert_eq!(said.lines().count(), 2, "{arguments}\n{said}");
        assert!(self.read(image) == before, "{arguments} changed {image}");
        said
    }

    /// Makes a volume that `one` opens.
    #[track_caller]
    pub fn create(&self, image: &str, kind: &str) {
        self.volume(&format!(
            "create {image} --type {kind} --size 20MiB {CHEAP} --key-file one"
        ));
    }

    /// Whether `secret` opens the volume, by this program and by cryptsetup.
    #[track_caller]
    pub fn opens(&self, image: &str, secret: &str) -> bool {
        let output = self.try_to(&format!("open {image} --key-file {secret}"));
        let ours = match output.status.code() {
            Some(0) => true,
            Some(3) => false,
            _ => panic!("{}", text(&output)),
        };
        let theirs = self.cryptsetup(&format!(
            "open --test-passphrase {image} --key-file {secret}"
        ));
        assert!(
            theirs.is_none_or(|theirs| theirs == ours),
            "{image} {secret}: {ours}"
        );
        ours
    }

    /// Whether cryptsetup does that; nothing where there is none.
    pub fn cryptsetup(&self, arguments: &str) -> Option<bool> {
        let arguments = format!("-q --disable-locks {arguments}");
        let mut command = self.command("cryptsetup", &arguments);
        match command.output() {
            Ok(output) => Some(output.status.success()),
            Err(_) => {
                println!("skipped: cryptsetup's opinion, for there is no cryptsetup");
                None
            }
        }
    }
}

/// What a program said.
pub fn text(output: &Output) -> String {
    let said = [&output.stdout[..], &output.stderr].concat();
    String::from_utf8_lossy(&said).into_owned()
}

/// Writes noise that is the same each time over a part of an image.
pub fn noise(bytes: &mut [u8]) {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    for byte in bytes {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        *byte = (state >> 32) as u8;
    }
}

/// Whether a program is on the path; says so where it is not.
pub fn have(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let there =
        std::env::split_paths(&path).any(|folder| Path::new(&folder).join(program).is_file());
    if !there {
        println!("skipped: there is no {program}");
    }
    there
}
