//! What the user does by mistake: nothing of it is done unasked, and nothing is changed.

use super::Model;
use sha2::{Digest, Sha256};
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use testkit::CHEAP;

/// Where another program's signature is written over a header, and what.
const STRANGERS: [(u64, &[u8]); 3] = [
    // A partition table with one partition.
    (
        446,
        b"\x80\x01\x01\x00\x83\xfe\xff\xff\x00\x08\x00\x00\x00\x10\x00\x00",
    ),
    (4086, b"SWAPSPACE2"),
    (0, b"\x7fELF\x02\x01\x01"),
];

/// The bytes at the start that are another program's then, and come back.
const START: usize = 4096;

impl Model<'_> {
    pub fn mistake(&mut self) {
        let all = [
            Self::header_of_another,
            Self::command_for_another,
            Self::start_of_another,
            Self::served,
        ];
        self.user.one_of(&all)(self);
    }

    /// Runs what must not be done unasked; no file that it names has changed.
    fn refused(&self, line: &str) {
        let digest = |name: &str| {
            let bytes = fs::read(self.user.path(name));
            Sha256::digest(bytes.unwrap_or_default()).to_vec()
        };
        let before = ["v", "other", "other.h"].map(digest);
        let ended = self.user.run(line);
        if ended.code == Some(0) {
            self.user.fail(&format!("{line} was done unasked"));
        }
        if ["v", "other", "other.h"].map(digest) != before {
            self.user.fail(&format!(
                "{line} failed and changed something\n{}",
                ended.said
            ));
        }
    }

    /// Another volume with its header apart; what opens it.
    fn another(&mut self) -> &'static str {
        const OPENER: &str = "of-another";
        if !self.user.path("other").exists() {
            fs::write(self.user.path(OPENER), "of another volume").unwrap();
            fs::write(self.user.path("some"), [7; 5120]).unwrap();
            self.user.must(&format!(
                "ours create other --size 2MiB --header other.h --key-file {OPENER} {CHEAP}"
            ));
            // Something known, so that the header knows its data.
            self.user.must(&format!(
                "ours import other --header other.h --key-file {OPENER} --input some"
            ));
        }
        OPENER
    }

    fn header_of_another(&mut self) {
        let opener = self.another();
        let commands = [
            "import v --header other.h --input some",
            "reencrypt v --header other.h --no-progress",
            "reencrypt v --header other.h --decrypt --no-progress",
            "serve v --header other.h --nbd by-mistake --daemon",
        ];
        let command = self.user.one_of(&commands);
        self.refused(&format!("ours {command} --key-file {opener}"));
    }

    fn command_for_another(&mut self) {
        let opener = self.another();
        let commands = [
            format!("create v --key-file {opener} {CHEAP}"),
            format!("create v --type veracrypt --key-file {opener} --quick"),
            format!("create new --size 2MiB --header v --key-file {opener} {CHEAP}"),
            format!("import v --type plain --key-file {opener} --input some"),
            "header restore v --input other.h".to_owned(),
            format!("reencrypt v --encrypt --key-file {opener} --no-progress"),
            format!("reencrypt v --encrypt --header new.h --key-file {opener} --no-progress"),
            "header backup v --output other".to_owned(),
            format!("export v --key-file {} --output other.h", self.opener()),
            format!("export v --key-file {} --output v", self.opener()),
            "resize v --to 1MiB".to_owned(),
        ];
        self.refused(&format!("ours {}", self.user.one_of(&commands)));
        for new in ["new", "new.h"] {
            let _ = fs::remove_file(self.user.path(new));
        }
    }

    /// Another program has written over the start.
    fn start_of_another(&mut self) {
        let opener = self.opener();
        let new = self.user.new_secret();
        let mut options = File::options();
        let file = options.read(true).write(true);
        let file = file.open(self.user.path("v")).unwrap();
        let mut before = [0; START];
        file.read_exact_at(&mut before, 0).unwrap();
        let &(at, bytes) = self.user.one_of(&STRANGERS);
        let mut start = [0; START];
        let end = bytes.len().min(START - at as usize);
        start[at as usize..][..end].copy_from_slice(&bytes[..end]);
        if at == 446 {
            start[510..512].copy_from_slice(b"\x55\xaa");
        }
        file.write_all_at(&start, 0).unwrap();
        self.user
            .note(format!("[another program's {START} bytes at the start]"));
        let commands = [
            format!("passwd v --key-file {opener} --new-key-file {new} {CHEAP}"),
            format!("key add v --key-file {opener} --new-key-file {new} {CHEAP}"),
            format!("key kill v --key-file {opener}"),
            format!("import v --key-file {opener} --input {new}"),
            format!("reencrypt v --key-file {opener} --no-progress"),
            format!("create v --key-file {opener} {CHEAP}"),
            "header repair v".to_owned(),
            "header set v --label mistaken".to_owned(),
        ];
        self.refused(&format!("ours {}", self.user.one_of(&commands)));
        file.write_all_at(&before, 0).unwrap();
        self.user.note("[the start is back]".to_owned());
        self.gone.push(new);
    }

    /// This program changes no header of a volume that is served. cryptsetup may while nothing is
    /// being written, and what it has added opens the volume.
    fn served(&mut self) {
        // cryptsetup takes no lock for LUKS1.
        if !self.luks2 {
            return;
        }
        let opener = self.opener();
        let new = self.user.new_secret();
        self.user.must(&format!(
            "ours serve v --key-file {opener} --nbd served --daemon"
        ));
        let theirs = self.user.below(2) == 0 && self.has_room();
        if theirs {
            self.user.must(&format!(
                "cryptsetup -q luksAddKey {CHEAP} --key-file {opener} v {new}"
            ));
        } else {
            let commands = [
                format!("ours passwd v --key-file {opener} --new-key-file {new} {CHEAP}"),
                format!("ours reencrypt v --key-file {opener} --yes --no-progress"),
                format!("ours create v --key-file {opener} --yes {CHEAP}"),
            ];
            let command: &String = self.user.one_of(&commands);
            self.refused(command);
        }
        self.user.must("ours umount v");
        match theirs {
            true => self.open.push(new),
            false => self.gone.push(new),
        }
    }
}
