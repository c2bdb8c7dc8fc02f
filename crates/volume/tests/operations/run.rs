//! One reencryption, as a caller asks for it.

use super::stopped::Left;
use super::{Bench, ONE, new, opened, options, outcome, secret};
use block::BlockDevice;
use cipher::Key;
use cryptmark_volume::luks2::Header;
use cryptmark_volume::operate::{
    Answers, Caller, Change, KeySlotCost, Options, reencrypt, unwatched,
};
use cryptmark_volume::{Format, Hash, Kdf, Secret, Site, VolumeError};
use std::ops::ControlFlow;
use std::sync::Mutex;

pub const CHANGES: [Change; 3] = [Change::Anew, Change::Encrypt, Change::Decrypt];

/// A caller that hears what it is warned of.
struct Hearing<'a> {
    answers: Answers<'a>,
    heard: Mutex<Vec<String>>,
}

impl Caller for Hearing<'_> {
    fn secret(&self, format: Format) -> Result<Secret, VolumeError> {
        self.answers.secret(format)
    }
    fn new_secret(&self) -> Result<Key, VolumeError> {
        self.answers.new_secret()
    }
    fn kept(
        &self,
        header: &Header,
        device: &dyn BlockDevice,
        first: (u32, Key),
    ) -> Result<Vec<(u32, Key)>, VolumeError> {
        self.answers.kept(header, device, first)
    }
    fn others(&self) -> usize {
        self.answers.others()
    }
    fn chooses_cost(&self) -> bool {
        self.answers.chooses_cost()
    }
    fn derivation(&self, hash: Option<Hash>) -> Result<Kdf, VolumeError> {
        self.answers.derivation(hash)
    }
    fn warn(&self, what: &str) {
        self.heard.lock().unwrap().push(what.to_owned());
    }
    fn begin(&self) -> Result<(), VolumeError> {
        self.answers.begin()
    }
    fn search(&self, done: u64, total: u64) -> ControlFlow<()> {
        self.answers.search(done, total)
    }
    fn report(&self, done: u64, total: u64) -> ControlFlow<()> {
        self.answers.report(done, total)
    }
}

/// One reencryption of `v`.
pub struct Run<'a> {
    pub bench: &'a Bench,
    pub change: Change,
    pub header: Option<&'a str>,
    pub options: Options,
    pub secret: Secret,
    pub kept: &'a [Key],
    pub cost: KeySlotCost,
    pub left: u32,
}

impl<'a> Run<'a> {
    pub fn new(bench: &'a Bench, change: Change) -> Self {
        Self {
            bench,
            change,
            header: None,
            options: options(Format::Luks2, &[]),
            secret: secret(ONE),
            kept: &[],
            cost: new(ONE).cost,
            left: u32::MAX,
        }
    }

    /// What came of it, and the warnings.
    pub fn ends(&self) -> (String, Vec<String>) {
        let caller = Hearing {
            answers: Answers {
                kept: self.kept,
                cost: self.cost,
                ..Answers::new(&self.secret, &unwatched)
            },
            heard: Mutex::default(),
        };
        let path = self.bench.path("v");
        let header = self.header.map(|name| self.bench.path(name));
        let left = Left::new(self.left);
        let site = Site::new(&path, header.as_deref()).opened_by(&left);
        let said = outcome(reencrypt(&site, self.change, &self.options, &caller));
        (said, caller.heard.into_inner().unwrap())
    }

    /// Asserts that it is refused so, and changes nothing.
    pub fn refused(&self, wanted: &str) {
        let before = self.bench.files();
        let (said, _) = self.ends();
        assert!(said.contains(wanted), "{wanted}: {said}");
        assert!(self.bench.files() == before, "{wanted}");
    }

    pub fn done(&self) -> Vec<String> {
        let (said, heard) = self.ends();
        assert_eq!(said, "Done");
        heard
    }
}

/// Stops it after the first write that has the header tell of it.
pub fn begun(run: &mut Run<'_>, header: &str) {
    let before = run.bench.files();
    for left in 1.. {
        run.bench.put_back(&before);
        run.left = left;
        assert_ne!(run.ends().0, "Done");
        let path = run.bench.path(header);
        if !path.exists() {
            continue;
        }
        let there = Header::read(&*opened(&path));
        if there.is_ok_and(|header| header.is_reencrypting()) {
            run.left = u32::MAX;
            return;
        }
    }
}
