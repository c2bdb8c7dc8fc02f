//! A VeraCrypt volume in the hands of the user: this program changes it, and
//! cryptsetup says whether it opens.

use crate::user::User;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::time::Duration;

const KIND: &str = "--type veracrypt --veracrypt-pim 1 --hash sha512";
const SIZE: u64 = 1 << 20;

/// The volume as it should be.
struct Model<'a> {
    user: &'a mut User,
    opener: String,
    gone: Vec<String>,
    data: Vec<u8>,
    /// A header that was saved: of which volume key, and what opened it.
    saved: Option<(u32, String)>,
    epoch: u32,
}

/// One volume, from its making through `steps`.
pub fn live(user: &mut User, steps: u64) {
    let opener = user.new_secret();
    user.must(&format!(
        "ours create v {KIND} --size 1MiB --quick --no-progress --passphrase-file {opener} --yes"
    ));
    let mut model = Model {
        user,
        opener,
        gone: Vec::new(),
        data: Vec::new(),
        saved: None,
        epoch: 0,
    };
    model.data = model.export();
    for _ in 0..steps {
        model.step();
        model.check();
    }
}

impl Model<'_> {
    fn step(&mut self) {
        let steps = [
            Self::change,
            Self::change_killed,
            Self::write,
            Self::save,
            Self::restore,
            Self::spoil,
            Self::reencrypt,
            Self::reencrypt_killed,
        ];
        let step = *self.user.one_of(&steps);
        step(self);
    }

    fn changing(&self, new: &str) -> String {
        let opener = &self.opener;
        format!("ours passwd v {KIND} --passphrase-file {opener} --new-passphrase-file {new}")
    }

    fn change(&mut self) {
        let new = self.user.new_secret();
        self.user.must(&self.changing(&new));
        let old = std::mem::replace(&mut self.opener, new);
        self.gone.push(old);
    }

    /// Header and copy are written one after the other: one of them opens.
    fn change_killed(&mut self) {
        let new = self.user.new_secret();
        self.user
            .kill(&self.changing(&new), Duration::from_millis(300));
        let (old, new) = (self.opener.clone(), new);
        let [header, copy] = ["", "--tcrypt-backup"]
            .map(|place| [&old, &new].map(|secret| self.opened_at(place, secret).is_some()));
        match (header, copy) {
            ([true, false], [true, false]) => self.gone.push(new),
            ([false, true], [false, true]) => {
                self.gone.push(old);
                self.opener = new;
            }
            // Whoever meets a header and a copy that differ mends one by the other.
            ([false, true], _) => {
                self.opener = new;
                self.repair();
                self.gone.push(old);
            }
            (_, [false, true]) => {
                self.repair_from_copy(&new);
                self.opener = new;
                self.gone.push(old);
            }
            other => self.user.fail(&format!("{other:?}")),
        }
    }

    fn repair(&self) {
        let opener = &self.opener;
        self.user.must(&format!(
            "ours header repair v {KIND} --passphrase-file {opener} --yes"
        ));
    }

    fn repair_from_copy(&self, opener: &str) {
        self.user.must(&format!(
            "ours header repair v {KIND} --tcrypt-backup --passphrase-file {opener} --yes"
        ));
    }

    fn write(&mut self) {
        let length = 512 * (1 + self.user.below(self.data.len() / 512));
        let mut bytes = vec![0; length];
        self.user.fill(&mut bytes);
        fs::write(self.user.path("new"), &bytes).unwrap();
        let opener = &self.opener;
        self.user.must(&format!(
            "ours import v {KIND} --passphrase-file {opener} --input new --yes --no-progress"
        ));
        self.data[..length].copy_from_slice(&bytes);
    }

    fn save(&mut self) {
        let _ = fs::remove_file(self.user.path("saved"));
        self.user
            .must("ours header backup v --type veracrypt --output saved");
        self.saved = Some((self.epoch, self.opener.clone()));
    }

    fn restore(&mut self) {
        let Some((epoch, secret)) = self.saved.clone() else {
            return;
        };
        let line = format!("ours header restore v {KIND} --input saved --passphrase-file {secret}");
        if epoch != self.epoch {
            let before = fs::read(self.user.path("v")).unwrap();
            let ended = self.user.run(&line);
            if ended.code != Some(4) || fs::read(self.user.path("v")).unwrap() != before {
                self.user
                    .fail(&format!("a foreign header was restored\n{}", ended.said));
            }
            return;
        }
        self.user.must(&format!("{line} --yes"));
        let now = std::mem::replace(&mut self.opener, secret);
        self.gone.push(now);
        let opener = self.opener.clone();
        self.gone.retain(|secret| *secret != opener);
    }

    /// The header or its copy is lost, and mended.
    fn spoil(&mut self) {
        let at = *self.user.one_of(&[0, SIZE - (128 << 10)]);
        let file = File::options()
            .write(true)
            .open(self.user.path("v"))
            .unwrap();
        let mut noise = [0; 512];
        self.user.fill(&mut noise);
        file.write_all_at(&noise, at).unwrap();
        drop(file);
        self.user.note(format!("[512 bytes at {at} are spoilt]"));
        self.repair();
    }

    fn reencrypting(&self) -> String {
        let opener = &self.opener;
        let cipher = self.user.one_of(&["aes", "serpent", "aes-twofish"]);
        format!(
            "ours reencrypt v {KIND} --cipher {cipher} --pbkdf pbkdf2 --pbkdf-force-iterations 1000 \
             --passphrase-file {opener} --yes --no-progress"
        )
    }

    fn reencrypt(&mut self) {
        self.user.must(&self.reencrypting());
        self.epoch += 1;
    }

    fn reencrypt_killed(&mut self) {
        self.user
            .kill(&self.reencrypting(), Duration::from_millis(400));
        let side = self.user.path("v.cryptmark-header");
        while side.exists() {
            self.check_data();
            let opener = &self.opener;
            let line =
                format!("ours reencrypt v {KIND} --passphrase-file {opener} --yes --no-progress");
            match self.user.below(3) {
                0 => drop(self.user.kill(&line, Duration::from_millis(400))),
                _ => self.user.must(&line),
            }
        }
        // Whether it had begun, nobody outside can tell: no header is restored over it.
        self.saved = None;
        self.epoch += 1;
    }

    /// What is said of it if `secret` opens it there.
    fn opened_at(&self, place: &str, secret: &str) -> Option<String> {
        let line = format!("ours open v {KIND} {place} --passphrase-file {secret}");
        match self
            .user
            .output(&line)
            .map_err(|ended| (ended.code, ended.said))
        {
            Ok(said) => Some(String::from_utf8(said).unwrap()),
            Err((Some(3), _)) => None,
            Err((_, said)) => self.user.fail(&said),
        }
    }

    /// Whether `secret` opens it; both programs say the same.
    fn opens(&self, secret: &str) -> bool {
        let said = self.opened_at("", secret);
        let ours = said.is_some();
        let theirs = self.user.output(&format!(
            "cryptsetup open --type tcrypt --veracrypt --veracrypt-pim 1 --test-passphrase v < {secret}"
        ));
        // Other ciphers than AES it leaves to a kernel that not everybody has. Newer ones then say
        // that no header opens.
        let is_aes = said.is_some_and(|said| said.contains(" aes-xts-plain64"));
        let agrees = match &theirs {
            Ok(_) => ours,
            Err(_) => !ours || !is_aes,
        };
        if !agrees {
            self.user.fail(&format!(
                "{secret} opens the volume: {ours}, and {theirs:?}"
            ));
        }
        ours
    }

    fn exported(&self) -> Vec<u8> {
        // While it is reencrypted, the file beside it has the keys.
        let kind = match self.user.path("v.cryptmark-header").exists() {
            true => "",
            false => KIND,
        };
        let opener = &self.opener;
        let line =
            format!("ours export v {kind} --passphrase-file {opener} --output - --no-progress");
        match self.user.output(&line) {
            Ok(data) => data,
            Err(ended) => self.user.fail(&ended.said),
        }
    }

    fn export(&self) -> Vec<u8> {
        self.exported()
    }

    fn check_data(&self) {
        if self.exported() != self.data {
            self.user.fail("the data differ");
        }
    }

    fn check(&mut self) {
        if !self.opens(&self.opener) {
            self.user
                .fail("the passphrase does not open the volume any more");
        }
        if !self.gone.is_empty() {
            let gone = self.user.one_of(&self.gone).clone();
            if self.opens(&gone) {
                self.user.fail(&format!("{gone} still opens the volume"));
            }
        }
        self.check_data();
    }
}
