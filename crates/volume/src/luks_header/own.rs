//! [`Own`]: which of two headers of one volume the data are encrypted by.

use super::LuksHeader;
use serde_json::Value;

/// The relation of the header at the start of a volume to the one in a file of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Own {
    /// It has no key slot of the data, so no passphrase opens the data by it. It has no newer key
    /// either.
    Erased,
    /// It is of another volume.
    Other,
    /// Both say the same of the data.
    Same,
    /// It is from before a reencryption that the other one is in the middle of.
    Older,
    /// It records a change of the data whose end, or all of it, the other one does not know.
    Newer,
    /// They describe the data differently, and it's unclear which of them is right.
    Unclear,
}

impl LuksHeader {
    /// The relation of `own`, the header at the start of the volume, to this one.
    ///
    /// Epochs decide nothing, because a new passphrase raises them as much as a new volume key
    /// does. A header in the middle of a reencryption has both keys, and so tells before from
    /// after.
    pub fn own(&self, own: &Self) -> Own {
        let has_keyslot = |digest: &Value| {
            let keyslots = digest["keyslots"].as_array();
            keyslots.is_some_and(|keyslots| !keyslots.is_empty())
        };
        let digests = own.bound_digests();
        let erased = !digests.is_empty() && !digests.iter().any(has_keyslot);
        if self.uuid() != own.uuid() {
            return Own::Other;
        }
        if erased && !own.is_reencrypting() {
            // With another key, it may tell of a change that the other one has not seen.
            let is_behind = self.digests() != own.digests() && self.seqid() < own.seqid();
            return if is_behind { Own::Unclear } else { Own::Erased };
        }
        let is_at = |middle: &Self, other, flag, not| {
            middle.has_end(flag, other) && !middle.has_end(not, other)
        };
        let [before, after] = ["backup-previous", "backup-final"];
        match (self.is_reencrypting(), own.is_reencrypting()) {
            (true, false) if is_at(self, own, before, after) => Own::Older,
            (true, false) if is_at(self, own, after, before) => Own::Newer,
            (false, true) if is_at(own, self, before, after) => Own::Newer,
            (here, there)
                if here == there
                    && self.digests() == own.digests()
                    && self.segments() == own.segments() =>
            {
                Own::Same
            }
            _ => Own::Unclear,
        }
    }

    /// How often the metadata of LUKS2 were written.
    fn seqid(&self) -> u64 {
        match self {
            Self::Luks1(_) => 0,
            Self::Luks2(header) => header.binary.seqid,
        }
    }

    /// Whether `other` says of the data what this header says of them before or after its
    /// reencryption, in the segment with this flag.
    fn has_end(&self, flag: &str, other: &Self) -> bool {
        let segments = self.members("segments");
        let flagged = |(_, segment): &&(String, Value)| {
            let flags = segment["flags"].as_array();
            flags.is_some_and(|flags| flags.iter().any(|one| one == flag))
        };
        let Some((number, segment)) = segments.iter().find(flagged) else {
            return false;
        };
        let of_segment = |digest: &Value| {
            let segments = digest["segments"].as_array();
            segments.is_some_and(|segments| segments.iter().any(|one| one == number))
        };
        let digests = self.bound_digests().into_iter().filter(of_segment);
        let digests: Vec<Value> = digests.map(|digest| Self::told(&digest)).collect();
        let (expected, others) = (Self::said(segment), other.segments());
        // A size may be written out while it lasts: type, offset, IV, cipher and sector size.
        let same = |said: &Value| [0, 1, 3, 4, 5].iter().all(|at| said[*at] == expected[*at]);
        !digests.is_empty() && digests == other.digests() && others.len() == 1 && same(&others[0])
    }
}
