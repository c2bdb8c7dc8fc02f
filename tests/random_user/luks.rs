//! A LUKS volume in the hands of the user: keys, headers, reencryptions.

mod mistakes;

use crate::user::User;
use sha2::{Digest, Sha256};
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::time::Duration;
use testkit::CHEAP;

/// This program's exit code where no keyslot fits.
const OURS_WRONG: i32 = 3;

/// The volume's name in the kernel.
const MAPPED: &str = "random-user";

/// Where the copies of a LUKS2 header begin.
const COPIES: [u64; 2] = [0, 16 << 10];

/// The volume as it should be.
struct Model<'a> {
    user: &'a mut User,
    luks2: bool,
    /// Converted from LUKS1: its area of key material is small, so that both
    /// programs may say that there is no room.
    cramped: bool,
    /// Key files that open it.
    open: Vec<String>,
    /// Key files that must not.
    gone: Vec<String>,
    data: Vec<u8>,
    /// A header that was saved: of which volume key, and what opened it.
    saved: Option<(u32, Vec<String>, bool)>,
    /// Counts the volume keys.
    epoch: u32,
    labels: u32,
}

/// One volume, from its making through `steps`.
pub fn live(user: &mut User, format: &str, steps: u64) {
    let secret = user.new_secret();
    let size = if format == "luks1" { 4 } else { 20 };
    let made_here = user.below(2) == 0;
    fs::File::create(user.path("v"))
        .unwrap()
        .set_len(size << 20)
        .unwrap();
    let pbkdf = if format == "luks1" {
        "--pbkdf-force-iterations 1000"
    } else {
        CHEAP
    };
    match made_here {
        true => user.must(&format!(
            "ours create v --type {format} {CHEAP} --key-file {secret} --yes"
        )),
        false => user.must(&format!(
            "cryptsetup -q luksFormat --type {format} {pbkdf} v {secret}"
        )),
    }
    let mut model = Model {
        user,
        luks2: format == "luks2",
        cramped: false,
        open: vec![secret],
        gone: Vec::new(),
        data: Vec::new(),
        saved: None,
        epoch: 0,
        labels: 0,
    };
    model.data = model.export();
    for _ in 0..steps {
        model.step();
        model.check();
    }
}

impl Model<'_> {
    fn step(&mut self) {
        let any = [
            Self::add,
            Self::add,
            Self::remove,
            Self::change,
            Self::write,
            Self::save,
            Self::restore,
            Self::add_two_at_once,
            Self::add_killed,
            Self::change_killed,
            Self::mistake,
            Self::mistake,
        ];
        let luks2: [fn(&mut Self); _] = [
            Self::label,
            Self::spoil_a_copy,
            Self::reencrypt,
            Self::reencrypt_killed,
            Self::reencrypt_killed,
            Self::reencrypt_both_at_once,
            Self::add_unbound,
            Self::token,
        ];
        let luks1: [fn(&mut Self); 1] = [Self::convert];
        let own: &[fn(&mut Self)] = if self.luks2 { &luks2 } else { &luks1 };
        let at = self.user.below(any.len() + own.len());
        match any.get(at) {
            Some(step) => step(self),
            None => own[at - any.len()](self),
        }
    }

    fn pbkdf(&self) -> &'static str {
        if self.luks2 {
            CHEAP
        } else {
            "--pbkdf-force-iterations 1000"
        }
    }

    fn opener(&self) -> String {
        self.user.one_of(&self.open).clone()
    }

    /// The line that adds `new`, by one of the programs.
    fn adding(&self, by: &str, new: &str) -> String {
        let (opener, pbkdf) = (self.opener(), self.pbkdf());
        match by {
            "ours" => format!("ours key add v --key-file {opener} --new-key-file {new} {CHEAP}"),
            _ => format!("cryptsetup -q luksAddKey {pbkdf} --key-file {opener} v {new}"),
        }
    }

    fn anyone(&self) -> &'static str {
        ["ours", "cryptsetup"][self.user.below(2)]
    }

    /// Whether there is surely room for another key.
    fn has_room(&self) -> bool {
        !self.cramped && self.open.len() < 6
    }

    fn digest(&self) -> Vec<u8> {
        Sha256::digest(fs::read(self.user.path("v")).unwrap()).to_vec()
    }

    /// Runs what has to work if `sure`; whether it did. What did not has changed nothing.
    fn done(&self, line: &str, sure: bool) -> bool {
        let before = self.digest();
        let ended = self.user.run(line);
        if ended.code == Some(0) {
            return true;
        }
        if sure {
            self.user.fail(&format!("{line}\n{}", ended.said));
        }
        if self.digest() != before {
            self.user.fail(&format!(
                "{line} failed and changed the volume\n{}",
                ended.said
            ));
        }
        false
    }

    fn add(&mut self) {
        let new = self.user.new_secret();
        let line = self.adding(self.anyone(), &new);
        match self.done(&line, self.has_room()) {
            true => self.open.push(new),
            false => self.gone.push(new),
        }
    }

    fn add_two_at_once(&mut self) {
        let [a, b] = [self.user.new_secret(), self.user.new_secret()];
        // cryptsetup takes no lock for LUKS1.
        let by = [(); 2].map(|()| if self.luks2 { self.anyone() } else { "ours" });
        let lines = [(&a, by[0]), (&b, by[1])].map(|(new, by)| self.adding(by, new));
        let ended = self.user.both(&lines[0], &lines[1]);
        for ((new, by), ended) in [a, b].into_iter().zip(by).zip(ended) {
            match ended.code {
                Some(0) => self.open.push(new),
                // Of two, cryptsetup gives up, and this program waits for it for a moment.
                Some(4) if ended.said.contains("in use by cryptsetup") => self.gone.push(new),
                _ if by == "ours" && self.has_room() => self.user.fail(&ended.said),
                _ => self.gone.push(new),
            }
        }
    }

    fn add_killed(&mut self) {
        let new = self.user.new_secret();
        let line = self.adding(self.anyone(), &new);
        self.user.kill(&line, Duration::from_millis(40));
        match self.opens(&new) {
            true => self.open.push(new),
            false => self.gone.push(new),
        }
    }

    fn remove(&mut self) {
        if self.open.len() < 2 {
            return;
        }
        let at = self.user.below(self.open.len());
        let secret = self.open.remove(at);
        let line = match self.anyone() {
            "ours" => format!("ours key kill v --key-file {secret}"),
            _ => format!("cryptsetup -q luksRemoveKey v {secret}"),
        };
        self.done(&line, true);
        self.gone.push(secret);
    }

    fn changing(&self, old: &str, new: &str) -> String {
        let pbkdf = self.pbkdf();
        match self.anyone() {
            "ours" => format!("ours passwd v --key-file {old} --new-key-file {new} {CHEAP}"),
            _ => format!("cryptsetup -q luksChangeKey {pbkdf} v --key-file {old} {new}"),
        }
    }

    fn change(&mut self) {
        let at = self.user.below(self.open.len());
        let new = self.user.new_secret();
        let line = self.changing(&self.open[at], &new);
        if self.done(&line, self.has_room()) {
            let old = std::mem::replace(&mut self.open[at], new);
            self.gone.push(old);
        } else {
            self.gone.push(new);
        }
    }

    /// At every moment one of the two opens it. Of LUKS1, cryptsetup wipes the old one first.
    fn change_killed(&mut self) {
        let at = self.user.below(self.open.len());
        let new = self.user.new_secret();
        let old = self.open[at].clone();
        let line = match self.luks2 {
            true => self.changing(&old, &new),
            false => format!("ours passwd v --key-file {old} --new-key-file {new} {CHEAP}"),
        };
        self.user.kill(&line, Duration::from_millis(40));
        let opens = [&old, &new].map(|secret| self.opens(secret));
        self.open.remove(at);
        for (secret, opens) in [old, new].into_iter().zip(opens) {
            match opens {
                true => self.open.push(secret),
                false => self.gone.push(secret),
            }
        }
        if opens == [false; 2] {
            self.user
                .fail("a killed change of a passphrase has lost both");
        }
    }

    fn write(&mut self) {
        let sectors = self.data.len() / 512;
        let length = 512 * (1 + self.user.below(sectors.min(1024)));
        let mut bytes = vec![0; length];
        self.user.fill(&mut bytes);
        fs::write(self.user.path("new"), &bytes).unwrap();
        let opener = self.opener();
        self.done(
            &format!("ours import v --key-file {opener} --input new --yes"),
            true,
        );
        self.data[..length].copy_from_slice(&bytes);
    }

    fn save(&mut self) {
        let _ = fs::remove_file(self.user.path("saved"));
        let line = match self.anyone() {
            "ours" => "ours header backup v --output saved",
            _ => "cryptsetup -q luksHeaderBackup v --header-backup-file saved",
        };
        self.done(line, true);
        self.saved = Some((self.epoch, self.open.clone(), self.luks2));
    }

    fn restore(&mut self) {
        let Some((epoch, open, luks2)) = self.saved.clone() else {
            return;
        };
        if epoch != self.epoch || luks2 != self.luks2 {
            // The key that the data have would be gone.
            let before = self.digest();
            let ended = self.user.run("ours header restore v --input saved");
            if ended.code != Some(4) || self.digest() != before {
                self.user
                    .fail(&format!("a foreign header was restored\n{}", ended.said));
            }
            return;
        }
        let line = match self.anyone() {
            "ours" => "ours header restore v --input saved --yes",
            _ => "cryptsetup -q luksHeaderRestore v --header-backup-file saved",
        };
        self.done(line, true);
        let now = std::mem::replace(&mut self.open, open);
        self.gone.extend(now);
        self.gone.retain(|secret| !self.open.contains(secret));
    }

    fn label(&mut self) {
        self.labels += 1;
        let line = match self.anyone() {
            "ours" => format!("ours header set v --label l{}", self.labels),
            _ => format!("cryptsetup -q config v --label l{}", self.labels),
        };
        self.done(&line, true);
    }

    fn spoil_a_copy(&mut self) {
        let at = *self.user.one_of(&COPIES);
        let file = File::options()
            .write(true)
            .open(self.user.path("v"))
            .unwrap();
        file.write_all_at(&[0x5A; 512], at).unwrap();
        drop(file);
        self.user.note(format!("[512 bytes at {at} are spoilt]"));
        if !self.opens(&self.opener()) {
            self.user.fail("one copy of the header is not enough");
        }
        let line = match self.anyone() {
            "ours" => "ours header repair v --yes",
            _ => "cryptsetup -q repair v",
        };
        self.done(line, true);
    }

    fn reencrypting(&self, by: &str, opener: &str) -> String {
        let cipher = self
            .user
            .one_of(&["aes-xts-plain64", "aes-cbc-essiv:sha256"]);
        match by {
            "ours" => format!(
                "ours reencrypt v --key-file {opener} --cipher {cipher} {CHEAP} --yes --no-progress"
            ),
            _ => format!(
                "cryptsetup -q reencrypt --force-offline-reencrypt {CHEAP} --cipher {cipher} \
                 --key-size 256 --key-file {opener} --key-slot {} v",
                self.slot_of(opener)
            ),
        }
    }

    fn slot_of(&self, secret: &str) -> String {
        let output = self
            .user
            .output(&format!("ours open v --key-file {secret}"));
        let text = match output {
            Ok(text) => String::from_utf8(text).unwrap(),
            Err(ended) => self.user.fail(&ended.said),
        };
        let line = text.lines().find_map(|line| line.strip_prefix("keyslot"));
        line.unwrap_or("0").trim().to_owned()
    }

    /// The volume has another key, which `opener` alone opens.
    fn reencrypted(&mut self, opener: String) {
        let others = std::mem::replace(&mut self.open, vec![opener]);
        self.gone.extend(others);
        self.gone.retain(|secret| !self.open.contains(secret));
        self.epoch += 1;
    }

    fn reencrypt(&mut self) {
        let opener = self.opener();
        let line = self.reencrypting(self.anyone(), &opener);
        if self.done(&line, !self.cramped) {
            self.reencrypted(opener);
        }
    }

    /// Begun by either program and killed, and finished by whoever comes next, who may be killed,
    /// too.
    fn reencrypt_killed(&mut self) {
        let opener = self.opener();
        let line = self.reencrypting(self.anyone(), &opener);
        let before = self.digest_of_data();
        self.user.kill(&line, Duration::from_millis(250));
        self.finish_reencryption(opener, &before);
    }

    /// Goes on until it is done, by either program, which may be killed again.
    fn finish_reencryption(&mut self, opener: String, before: &str) {
        while self.is_reencrypting() {
            self.check_data(&opener);
            self.refuse_meanwhile(&opener);
            let ours = format!("ours reencrypt v --key-file {opener} --no-progress");
            let theirs = format!(
                "cryptsetup -q reencrypt --resume-only --force-offline-reencrypt \
                 --key-file {opener} v"
            );
            // cryptsetup 2.6.1 encrypts again what it was killed at the end of.
            let by = match self.has_one_segment() {
                true => "ours",
                false => self.anyone(),
            };
            match (by, self.user.below(3)) {
                ("ours", 0) => drop(self.user.kill(&ours, Duration::from_millis(250))),
                ("ours", _) => self.user.must(&ours),
                (_, dice) => {
                    // What was cut in the middle of a write it mends by another command.
                    self.user
                        .run(&format!("cryptsetup -q repair --key-file {opener} v"));
                    if dice == 0 {
                        self.user.kill(&theirs, Duration::from_millis(250));
                    } else if self.user.run(&theirs).code != Some(0) {
                        // It needs the old key, also where no data has that any more.
                        self.user.must(&ours);
                    }
                }
            }
        }
        if self.digest_of_data() != before {
            self.reencrypted(opener);
        }
        self.remove_unbound();
    }

    /// One of two that reencrypt at once is refused, or comes second.
    fn reencrypt_both_at_once(&mut self) {
        let opener = self.opener();
        let before = self.digest_of_data();
        let lines = ["ours", "ours"].map(|by| self.reencrypting(by, &opener));
        let ended = self.user.both(&lines[0], &lines[1]);
        if !self.cramped && ended.iter().all(|ended| ended.code != Some(0)) {
            self.user.fail("neither of two reencryptions was done");
        }
        if self.digest_of_data() != before {
            self.reencrypted(opener);
        }
    }

    /// What would lose something while the data move is refused.
    fn refuse_meanwhile(&mut self, opener: &str) {
        let new = self.user.new_secret();
        let line = match self.user.below(4) {
            0 => format!("ours key add v --key-file {opener} --new-key-file {new} {CHEAP}"),
            1 => format!("ours key kill v --key-file {opener}"),
            2 => "ours header set v --label meanwhile".to_owned(),
            _ => format!("ours passwd v --key-file {opener} --new-key-file {new} {CHEAP}"),
        };
        if self.done(&line, false) {
            self.user
                .fail(&format!("{line} was done during a reencryption"));
        }
        self.gone.push(new);
    }

    /// What the kernel reads is what this program reads, and the other way round.
    fn check_kernel(&mut self, opener: &str) {
        self.user
            .must(&format!("cryptsetup open v {MAPPED} --key-file {opener}"));
        let path = format!("/dev/mapper/{MAPPED}");
        let mut device = File::options().read(true).write(true).open(path).unwrap();
        let mut data = Vec::new();
        device.read_to_end(&mut data).unwrap();
        if data != self.data {
            self.user.fail("dm-crypt reads something else");
        }
        let at = 512 * self.user.below(self.data.len() / 512);
        let mut sector = [0; 512];
        self.user.fill(&mut sector);
        device.write_all_at(&sector, at as u64).unwrap();
        device.sync_all().unwrap();
        self.data[at..at + 512].copy_from_slice(&sector);
        drop(device);
        self.user.must(&format!("cryptsetup close {MAPPED}"));
    }

    fn is_reencrypting(&self) -> bool {
        self.dump().contains("reencrypt")
    }

    fn dump(&self) -> String {
        match self.user.output("cryptsetup luksDump v") {
            Ok(text) => String::from_utf8_lossy(&text).into_owned(),
            Err(ended) => self.user.fail(&ended.said),
        }
    }

    /// Tells one volume key from another: the digest that the data's segment is in.
    fn digest_of_data(&self) -> String {
        let json = self.json();
        let mut digests = json["digests"].as_object().unwrap().values();
        let of_data = digests.find(|digest| !digest["segments"].as_array().unwrap().is_empty());
        of_data.map_or(String::new(), |digest| digest["digest"].to_string())
    }

    fn json(&self) -> serde_json::Value {
        match self
            .user
            .output("cryptsetup luksDump --dump-json-metadata v")
        {
            Ok(text) => serde_json::from_slice(&text).unwrap(),
            Err(ended) => self.user.fail(&ended.said),
        }
    }

    /// Whether all the data is of one kind, beside what tells of a reencryption.
    fn has_one_segment(&self) -> bool {
        let json = self.json();
        let mut segments = json["segments"].as_object().unwrap().values();
        let backup = |segment: &&serde_json::Value| segment["flags"].to_string().contains("backup");
        segments.by_ref().filter(|segment| !backup(segment)).count() == 1
    }

    /// Removes the keyslots that open no data. Whoever is killed before a reencryption has begun
    /// leaves one of the same passphrase, and cryptsetup would change that one.
    fn remove_unbound(&self) {
        let json = self.json();
        for digest in json["digests"].as_object().unwrap().values() {
            if !digest["segments"].as_array().unwrap().is_empty() {
                continue;
            }
            for slot in digest["keyslots"].as_array().unwrap() {
                let slot = slot.as_str().unwrap();
                self.user
                    .must(&format!("cryptsetup -q luksKillSlot v {slot}"));
            }
        }
    }

    fn add_unbound(&mut self) {
        let new = self.user.new_secret();
        let line = format!("cryptsetup -q luksAddKey --unbound --key-size 256 {CHEAP} v {new}");
        self.done(&line, self.has_room());
    }

    fn token(&mut self) {
        let slot = self.slot_of(&self.opener());
        self.done(
            &format!("cryptsetup -q token add --key-description mine --key-slot {slot} v"),
            false,
        );
    }

    /// Where all keyslots are taken, cryptsetup moves each over itself, and this program refuses:
    /// a power cut would lose them.
    fn convert(&mut self) {
        let theirs = "cryptsetup -q convert --type luks2 v";
        let by_us = self.anyone() == "ours" && self.done("ours convert v --type luks2", false);
        if by_us || self.done(theirs, true) {
            self.luks2 = true;
            self.cramped = true;
            // Of the same key, so that it may go back, to a volume of LUKS1.
            self.saved = None;
        }
    }

    /// Whether `secret` opens it; both programs say the same.
    fn opens(&self, secret: &str) -> bool {
        let ours = self
            .user
            .output(&format!("ours open v --key-file {secret}"));
        let theirs = format!("cryptsetup open --test-passphrase v --key-file {secret}");
        let theirs = self.user.output(&theirs);
        match (ours.map_err(|ended| ended.code), theirs) {
            (Ok(_), Ok(_)) => true,
            (Err(Some(OURS_WRONG)), Err(ended)) if ended.is_wrong_for_them() => false,
            (ours, theirs) => self.user.fail(&format!("{secret}: {ours:?} {theirs:?}")),
        }
    }

    fn export(&self) -> Vec<u8> {
        let opener = self.opener();
        match self.user.output(&format!(
            "ours export v --key-file {opener} --output - --no-progress"
        )) {
            Ok(data) => data,
            Err(ended) => self.user.fail(&ended.said),
        }
    }

    fn check_data(&self, opener: &str) {
        let line = format!("ours export v --key-file {opener} --output - --no-progress");
        match self.user.output(&line) {
            Ok(data) if data == self.data => {}
            Ok(data) => {
                let at = data.iter().zip(&self.data).position(|(a, b)| a != b);
                self.user.fail(&format!(
                    "{} bytes of {}, the first that differs at {at:?}",
                    data.len(),
                    self.data.len()
                ));
            }
            Err(ended) => self.user.fail(&ended.said),
        }
    }

    fn check(&mut self) {
        let ours = self.user.output("ours info v");
        if let Err(ended) = ours {
            self.user.fail(&ended.said);
        }
        self.dump();
        let opener = self.opener();
        if !self.opens(&opener) {
            self.user
                .fail(&format!("{opener} does not open the volume any more"));
        }
        if !self.gone.is_empty() {
            let gone = self.user.one_of(&self.gone).clone();
            if self.opens(&gone) {
                self.user.fail(&format!("{gone} still opens the volume"));
            }
        }
        self.check_data(&opener);
        if self.user.kernel {
            self.check_kernel(&opener);
            self.check_data(&opener);
        }
    }
}
