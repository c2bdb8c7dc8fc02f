//! Reencryption in place: another cipher, mode, sector size or volume key for the data. It uses
//! cryptsetup's own format, so either program can continue what the other one has begun.
//!
//! The data is processed a window at a time. First, the bytes that a crash would need are kept.
//! Then the header states that the window is hot, the data is written, and the header states that
//! it is new. Each of these is on the device before the next.
//!
//! A segment that is not encrypted makes it an encryption or a decryption in place. Data that
//! moves to a higher place is moved from its end on.

mod begin;
mod bound;
mod conversion;
mod plan;
mod room;
mod sample;
mod step;

pub use self::begin::Target;
pub(super) use self::begin::{Announcement, flagged};
pub use self::room::Room;

use self::conversion::{Side, mapping};
use self::plan::{Kind, Plan, Progress, Protection, slot_of};
use self::step::Devices;
use super::create::digest_json;
use super::keyslots::forget;
use super::metadata::{Segment, SegmentKind};
use super::read::Header;
use super::unsupported;
use crate::damage::printable;
use crate::error::standing;
use crate::keyslot::wipe;
use crate::{Access, Limits, Row, Secret, Storage, VolumeError};
use block::transfer::Report;
use block::{AlignedBuffer, BlockDevice, ByteRange};
use cipher::{Key, SectorSize};
use serde_json::{Map, Value, json};
use std::ops::ControlFlow;

/// The type of the keyslot that tells of a reencryption.
const KEYSLOT_KIND: &str = "reencrypt";

/// The requirement of a volume that is being reencrypted, and the version of the reencryption
/// digest that goes with it.
const REQUIREMENTS: [(&str, u8); 2] = [("online-reencrypt-v2", 2), ("online-reencrypt-v3", 3)];

/// cryptsetup's first form, which nothing binds to the keys.
const UNBOUND: &str = "online-reencrypt";

/// The requirement of a volume that cryptsetup-reencrypt works on.
const OFFLINE: &str = "offline-reencrypt";

/// A requirement that keeps cryptsetup away from reencryptions that it could not continue
/// correctly. In these, the data ends before its device does, or has another format's header.
pub(super) const ALONE: &str = "cryptmark-reencrypt-alone";

/// The type of the token that says that the device was made longer for the data to move.
const GROWN: &str = "cryptmark-grown";

/// Parts that a volume may have for reading, at most.
const MOST_ROWS: usize = 4096;

/// Bytes that are wiped at a time.
const WIPED_AT_ONCE: u64 = 1 << 20;

/// A segment that tells of the volume before or after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Backup {
    Previous,
    Final,
    Moved,
}

impl Backup {
    const ALL: [Self; 3] = [Self::Previous, Self::Final, Self::Moved];

    const fn flag(self) -> &'static str {
        match self {
            Self::Previous => "backup-previous",
            Self::Final => "backup-final",
            Self::Moved => "backup-moved-segment",
        }
    }
}

/// The segment with this flag, and its name.
fn named(json: &Map<String, Value>, backup: Backup) -> Option<(&String, &Value)> {
    let has = |(_, segment): &(&String, &Value)| {
        let flags = segment["flags"].as_array();
        flags.is_some_and(|flags| flags.iter().any(|flag| flag == backup.flag()))
    };
    json["segments"].as_object()?.iter().find(has)
}

/// The segment with this flag.
fn backup(json: &Map<String, Value>, backup: Backup) -> Option<&Value> {
    named(json, backup).map(|(_, segment)| segment)
}

/// The number of the segment with this flag.
fn number_of(json: &Map<String, Value>, backup: Backup) -> Option<u32> {
    named(json, backup)?.0.parse().ok()
}

/// Takes away the tokens of these types.
fn forget_tokens(json: &mut Map<String, Value>, kinds: &[&str]) {
    if let Some(Value::Object(tokens)) = json.get_mut("tokens") {
        tokens.retain(|_, token| !kinds.iter().any(|kind| token["type"] == *kind));
    }
}

/// Both keys of a volume that is being reencrypted.
#[derive(Debug)]
pub struct Keys {
    /// The key of the old segment; empty if that segment is not encrypted.
    pub old: Key,
    /// The key of the new segment; empty if that segment is not encrypted, or has the old key.
    pub new: Key,
}

impl Header {
    /// Whether a reencryption has begun and not ended.
    pub fn is_reencrypting(&self) -> bool {
        let known = |name: &String| name.starts_with(UNBOUND) || name == ALONE;
        self.metadata.config.requirements.iter().any(known)
    }

    /// Whether cryptsetup-reencrypt, which works offline, has begun a reencryption and not ended it.
    pub(crate) fn is_reencrypted_offline(&self) -> bool {
        let known = |name: &String| name.starts_with(OFFLINE);
        self.metadata.config.requirements.iter().any(known)
    }

    /// The programs that are reencrypting the volume, as far as this can be known. cryptsetup locks
    /// the volume's file for moments only. As long as it works, it locks a name with the UUID in
    /// it.
    #[cfg(target_os = "linux")]
    #[doc(hidden)]
    pub fn reencrypted_by(&self) -> Option<block::hold::Users> {
        let name = self.reencryption_lock().filter(|_| self.is_reencrypting());
        block::hold::resource_users(&name?)
    }

    /// The name of the lock under which cryptsetup reencrypts the volume, if it has one.
    #[cfg(target_os = "linux")]
    pub(crate) fn reencryption_lock(&self) -> Option<String> {
        let uuid = self.binary.uuid.lossy();
        // The header says what it likes, and this is going to be the name of a file.
        let plain = |byte: u8| byte.is_ascii_hexdigit() || byte == b'-';
        let is_plain = uuid.bytes().all(plain);
        is_plain.then(|| format!("LUKS2-reencryption-{uuid}"))
    }

    /// Whether all the data are decrypted, and no reencryption is left to end.
    #[doc(hidden)]
    pub fn is_decrypted(&self) -> bool {
        let mut segments = self.metadata.segments.values();
        let linear = segments.next().map(|segment| &segment.kind) == Some(&SegmentKind::Linear);
        linear && segments.next().is_none() && !self.is_reencrypting()
    }

    /// The kind of reencryption in the header: `encrypt`, `reencrypt` or `decrypt`.
    #[doc(hidden)]
    pub fn reencryption_mode(&self) -> Option<&str> {
        let slot = slot_of(self)?;
        self.json["keyslots"][slot.to_string()]["mode"].as_str()
    }

    /// The cipher and the sector size of the data when the reencryption is done, if they are
    /// encrypted then.
    pub(crate) fn becomes(&self) -> Option<(&str, SectorSize)> {
        let mut segments = self.metadata.segments.values();
        let is_final = |flag: &String| flag == Backup::Final.flag();
        let last = segments.find(|segment| segment.flags.iter().any(is_final))?;
        let crypt = last.crypt()?;
        Some((&crypt.encryption, crypt.sector_size))
    }

    /// The length that a file should have after the encryption that has begun, if the file was made
    /// longer for it.
    #[doc(hidden)]
    pub fn length_afterwards(&self) -> Option<u64> {
        let encrypts = self.reencryption_mode() == Some("encrypt");
        let grown = encrypts && self.metadata.tokens.values().any(|kind| kind == GROWN);
        let length = self.backup(Backup::Previous).filter(|_| grown)?.size?;
        self.backup(Backup::Final)?.offset.checked_add(length)
    }

    /// The segment that tells of the volume before or after.
    fn backup(&self, flag: Backup) -> Option<&Segment> {
        self.metadata.segments.get(&number_of(&self.json, flag)?)
    }

    /// The token of this type, if there is one.
    pub(super) fn token_of(&self, kind: &str) -> Option<&Value> {
        let tokens = self.json.get("tokens")?.as_object()?;
        tokens.values().find(|token| token["type"] == kind)
    }

    /// Ends an encryption whose data moved: forgets from where, and lets data that goes to the end
    /// of its device go there ever after, whatever the size.
    ///
    /// # Errors
    /// Those of writing.
    #[doc(hidden)]
    pub fn fill_device(&mut self, device: &dyn BlockDevice) -> Result<(), VolumeError> {
        let (number, segment) = self.data_segment()?;
        let end = segment.size.map(|size| segment.offset + size);
        let fills = end == Some(device.geometry().size);
        self.commit(device, |json| {
            if fills {
                json["segments"][number.to_string()]["size"] = "dynamic".into();
            }
            forget_tokens(json, &[GROWN]);
        })
    }

    /// Whether all the data has the new key alone, and only key slots and segments of the old one
    /// are left to remove. cryptsetup removes them one by one, so that the old key may be out of
    /// reach already. The volume then opens by the new key as any other does. Forging this state
    /// gains no more than forging a header without a reencryption.
    fn only_leftovers(&self) -> bool {
        let Some((segment, now, previous, last)) = self.single() else {
            return false;
        };
        let [old, new, now] = [previous, last, now].map(|number| self.digest_of(number).ok());
        let last = &self.metadata.segments[&last];
        // Where nothing was encrypted before, no key is missing.
        old.is_some()
            && new.is_some()
            && old != new
            && now == new
            && segment.crypt().is_some()
            && (segment.offset, &segment.kind) == (last.offset, &last.kind)
    }

    /// Where the data begins, if the header says that all of it is decrypted. cryptsetup wipes
    /// the keyslots before it says that nothing is left to do.
    fn decrypted(&self) -> Option<u64> {
        let (segment, _, _, last) = self.single()?;
        let kinds = [&segment.kind, &self.metadata.segments[&last].kind];
        (kinds == [&SegmentKind::Linear; 2]).then_some(segment.offset)
    }

    /// The segment that is all of the data, its number, and those of what was and what is to be.
    fn single(&self) -> Option<(&Segment, u32, u32, u32)> {
        let mut regular = self.regular_segments();
        let segment = regular.next().filter(|segment| segment.flags.is_empty())?;
        let (now, _) = self.metadata.segments.first_key_value()?;
        let single = regular.next().is_none();
        let [previous, last] =
            [Backup::Previous, Backup::Final].map(|of| number_of(&self.json, of));
        single.then_some((segment, *now, previous?, last?))
    }

    /// Both volume keys, by a passphrase that opens a key slot of each. The reencryption's digest
    /// must verify with them. If only leftovers of the old key remain, that key is empty.
    ///
    /// # Errors
    /// As those of [`unlock`](Self::unlock), [`VolumeError::UnboundReencryption`], and
    /// [`VolumeError::Decrypted`].
    pub fn unlock_both(
        &self,
        device: &dyn BlockDevice,
        secret: &Secret,
        limits: &Limits,
    ) -> Result<Keys, VolumeError> {
        self.version()?;
        let digest = |flag| {
            let number = number_of(&self.json, flag).ok_or(VolumeError::ForeignReencryption)?;
            Ok::<_, VolumeError>(self.digest_of(number).ok())
        };
        let key = |digest: Option<u32>| match digest {
            Some(digest) => {
                let digest = &self.metadata.digests[&digest];
                let unlocked = self.unlock_digest(device, digest, secret, None, limits)?;
                Ok::<_, VolumeError>(unlocked.key)
            }
            None => Ok(Key::from_slice(&[])),
        };
        let (old, new) = (digest(Backup::Previous)?, digest(Backup::Final)?);
        if self.only_leftovers() {
            let (old, new) = (Key::from_slice(&[]), key(new)?);
            return Ok(Keys { old, new });
        }
        let old_key = match (key(old), self.decrypted()) {
            (Err(_), Some(offset)) => return Err(VolumeError::Decrypted { offset }),
            (old_key, _) => old_key?,
        };
        let keys = Keys {
            old: old_key,
            new: key(new.filter(|_| new != old))?,
        };
        self.check_bound(&keys, limits)?;
        Ok(keys)
    }

    /// Continues to the end, from the start or from the place where it was stopped. Then it makes
    /// the new segment the only one. `report` gets the number of bytes that are done.
    ///
    /// # Errors
    /// [`VolumeError::UnboundReencryption`] if the header was not made with the keys,
    /// [`VolumeError::Stopped`] if `report` asks for it, and those of reading and writing. The
    /// volume opens after an error, and this can be called again.
    pub fn reencrypt(
        &mut self,
        device: &dyn BlockDevice,
        data: &dyn BlockDevice,
        keys: &Keys,
        report: Report,
    ) -> Result<(), VolumeError> {
        let leftovers = self.only_leftovers();
        if !leftovers {
            self.check_bound(keys, &Limits::default())?;
        }
        self.check_room(device, data)?;
        match self.rows(device, data, keys, Access::Read) {
            // It can go on all the same.
            Ok(_) | Err(VolumeError::RecoveryNeeded) => {}
            Err(error) => return Err(error),
        }
        let mut plan = Plan::read(self, data.geometry())?;
        let devices = Devices {
            header: device,
            data,
        };
        let mut progress = plan.progress(self)?;
        if leftovers {
            return self.end_reencryption(devices, &plan);
        }
        if plan.is_unprotected() && progress != Progress::Done {
            if let Progress::Hot(_) = progress {
                return Err(VolumeError::ForeignReencryption);
            }
            self.take_a_journal(device, keys)?;
            plan = Plan::read(self, data.geometry())?;
            if plan.is_unprotected() {
                return Err(VolumeError::NoFreeKeyslot);
            }
        }
        // A run that was killed may have left what was read here in a cache, and nowhere else.
        self.commit(device, |_| {})?;
        plan.forget_header(data, self)?;
        let sides = self.sides(&plan, keys)?;
        while progress != Progress::Done {
            let window = match progress {
                Progress::Hot(window) => window,
                Progress::Edge(edge) => {
                    let window = plan.window_at(edge)?;
                    plan.protect(devices, window)?;
                    self.mark(device, &plan, Progress::Hot(window))?;
                    window
                }
                Progress::Done => break,
            };
            plan.apply(devices, &sides, window)?;
            progress = plan.after(window);
            match progress {
                Progress::Done => break,
                // cryptsetup cannot begin with what was moved, and can go on with it.
                Progress::Edge(edge) if plan.is_moved_at(edge) => {
                    let window = plan.window_at(edge)?;
                    plan.protect(devices, window)?;
                    progress = Progress::Hot(window);
                    self.mark(device, &plan, progress)?;
                    continue;
                }
                _ => self.mark(device, &plan, progress)?,
            }
            if let ControlFlow::Break(()) = report(plan.done(progress)) {
                return Err(VolumeError::Stopped);
            }
        }
        self.end_reencryption(devices, &plan)?;
        // It is done: there is nothing left to stop.
        let _ = report(plan.length);
        Ok(())
    }

    /// The data as they were, and as they are to be.
    fn sides(&self, plan: &Plan, keys: &Keys) -> Result<(Side, Side), VolumeError> {
        Ok((
            Side::new(&plan.previous, &keys.old, self.has_holes())?,
            Side::new(&plan.last, keys.of_new(plan), false)?,
        ))
    }

    /// Says in the header how far it is.
    fn mark(
        &mut self,
        device: &dyn BlockDevice,
        plan: &Plan,
        progress: Progress,
    ) -> Result<(), VolumeError> {
        let regular = plan.segments(progress);
        self.commit(device, |json| set_segments(json, plan, regular))
    }

    /// Makes the new segment the only one, and wipes the old keyslots.
    fn end_reencryption(&mut self, devices: Devices, plan: &Plan) -> Result<(), VolumeError> {
        if let Some(range) = plan.left_behind() {
            // cryptsetup would take one segment for one that is to be begun.
            let regular = plan.segments(Progress::Done);
            self.commit(devices.header, |json| {
                set_segments(json, plan, regular);
                let required = &mut json["config"]["requirements"]["mandatory"];
                if let Some(required) = required.as_array_mut() {
                    required.retain(|name| name != ALONE);
                    required.push(ALONE.into());
                }
            })?;
            let nothing = AlignedBuffer::new(WIPED_AT_ONCE.min(range.length) as usize);
            for done in (0..range.length).step_by(WIPED_AT_ONCE as usize) {
                let bytes = &nothing[..WIPED_AT_ONCE.min(range.length - done) as usize];
                devices.data.write_at(range.offset + done, bytes)?;
            }
            devices.data.flush()?;
        }
        let old = plan.old_digest.filter(|old| Some(*old) != plan.new_digest);
        let old_slots: &[u32] = match old.and_then(|old| self.metadata.digests.get(&old)) {
            Some(digest) => &digest.keyslots,
            None => &[],
        };
        let leaves = |number: &u32| *number == plan.slot || old_slots.contains(number);
        let keyslots = self.metadata.keyslots.iter();
        let leaving: Vec<(u32, Option<ByteRange>)> = keyslots
            .filter(|(number, _)| leaves(number))
            .map(|(number, keyslot)| (*number, keyslot.area()))
            .collect();
        // The file is cut there.
        let size = match plan.last.kind {
            SegmentKind::Crypt(_) if self.length_afterwards().is_none() => None,
            _ => Some(plan.length.to_string()),
        };
        // A header apart is there still, and nothing else tells what has become of the data.
        let decrypted = match plan.decrypts() && !begin::is_same(devices.header, devices.data) {
            true => {
                let range = ByteRange::new(plan.last.offset, plan.length);
                Some(sample::of_plaintext(devices.data, range)?)
            }
            false => None,
        };
        self.commit(devices.header, |json| {
            let mut segment = backup(json, Backup::Final).cloned().unwrap_or_default();
            if let Value::Object(segment) = &mut segment {
                segment.shift_remove("flags");
                segment.extend(size.map(|size| ("size".to_owned(), size.into())));
            }
            json["segments"] = json!({ "0": segment });
            assign(json, &[plan.new_digest.into_iter().collect()]);
            for (number, _) in &leaving {
                forget(json, *number);
            }
            if let Value::Object(config) = &mut json["config"] {
                config.shift_remove("requirements");
            }
            forget_tokens(json, &[sample::SAMPLE]);
            // Without room for it, it is not said.
            let _ = sample::insert(json, decrypted);
        })?;
        for (_, area) in leaving {
            area.map_or(Ok(()), |area| wipe(devices.header, area))?;
        }
        Ok(())
    }

    /// The rows of a volume that is being reencrypted: the new, the hot and the old parts.
    ///
    /// # Errors
    /// [`VolumeError::OtherData`] if they are not of the data with which it began.
    /// [`VolumeError::RecoveryNeeded`] if the data have no room for their header yet, or are to be
    /// written and the header recognises them by their start.
    pub(crate) fn rows(
        &self,
        device: &dyn BlockDevice,
        data: &dyn BlockDevice,
        keys: &Keys,
        access: Access,
    ) -> Result<Vec<Row>, VolumeError> {
        self.check_room(device, data)?;
        if access == Access::Write && (self.has_sample() || self.is_told_by_start()) {
            // A write might change the data by which they are recognised.
            return Err(VolumeError::RecoveryNeeded);
        }
        let told = || self.rows_as_told(device, data, keys, access);
        let rows = told()?;
        self.check_sample((device, data), told()?, keys)?;
        Ok(rows)
    }

    /// The rows, whatever data they are of.
    fn rows_as_told(
        &self,
        device: &dyn BlockDevice,
        data: &dyn BlockDevice,
        keys: &Keys,
        access: Access,
    ) -> Result<Vec<Row>, VolumeError> {
        self.check_beside(device, data)?;
        let plan = Plan::read(self, data.geometry())?;
        let progress = plan.progress(self)?;
        let devices = Devices {
            header: device,
            data,
        };
        if matches!(progress, Progress::Hot(_)) && access == Access::Write {
            return Err(VolumeError::RecoveryNeeded);
        }
        let old = |window: plan::Window, storage, at| {
            let range = ByteRange::new(at, window.length());
            let mapping = mapping(&plan.previous, &keys.old, window.from, range)?;
            Ok::<_, VolumeError>(Row { storage, mapping })
        };
        let new = |window: plan::Window| {
            let range = ByteRange::new(plan.new_at(window.from), window.length());
            let mapping = mapping(&plan.last, keys.of_new(&plan), window.from, range)?;
            let storage = Storage::Data;
            Ok::<_, VolumeError>(Row { storage, mapping })
        };
        let mut rows = Vec::new();
        for run in plan.runs(progress) {
            let window = run.window;
            match (run.kind, plan.protection(window)) {
                (Kind::New, _) => rows.push(new(window)?),
                (Kind::Old | Kind::Moved, _) | (Kind::Hot, Protection::Elsewhere) => {
                    rows.push(old(window, Storage::Data, plan.old_at(window.from))?);
                }
                (Kind::Hot, Protection::Journal(area)) => {
                    if window.from == 0 && self.has_sample() {
                        let (sides, kept) = (self.sides(&plan, keys)?, (window, area));
                        if !plan.is_of_journal(devices, &sides, kept, sample::LENGTH)? {
                            return Err(VolumeError::OtherData);
                        }
                    }
                    rows.push(old(window, Storage::Header, area.offset)?);
                }
                (Kind::Hot, Protection::Checksum { area, hash, block }) => {
                    let parts = plan.old_parts(devices, window, (area, hash, block))?;
                    if parts.len() > MOST_ROWS {
                        return Err(VolumeError::RecoveryNeeded);
                    }
                    for (is_old, part) in parts {
                        rows.push(match is_old {
                            true => old(part, Storage::Data, plan.old_at(part.from))?,
                            false => new(part)?,
                        });
                    }
                }
                (Kind::Hot, Protection::Nothing) => return Err(VolumeError::ForeignReencryption),
            }
        }
        for row in &mut rows {
            row.mapping.holes = self.has_holes();
        }
        Ok(rows)
    }

    /// The version of the reencryption's metadata, if this program goes on with that.
    fn version(&self) -> Result<u8, VolumeError> {
        let mut version = None;
        for name in &self.metadata.config.requirements {
            let known = REQUIREMENTS.iter().find(|(known, _)| known == name);
            match (known, name.as_str()) {
                (Some((_, known)), _) if version.is_none() => version = Some(*known),
                (None, ALONE) => {}
                (None, UNBOUND) => {
                    return Err(standing(
                        "the volume is being reencrypted in an old form that is not continued here",
                        "Finish it with cryptsetup 2.4 or newer: run `cryptsetup repair`, then run \
                         this command again.",
                    ));
                }
                _ => {
                    return Err(unsupported(format!("`{}`", printable(name))));
                }
            }
        }
        version.ok_or(VolumeError::ForeignReencryption)
    }

    /// Whether who wrote what the header says of the reencryption had both keys.
    fn check_bound(&self, keys: &Keys, limits: &Limits) -> Result<(), VolumeError> {
        let version = self.version()?;
        let bound = || {
            let slot = slot_of(self)?;
            let message = bound::message(&self.json, version, slot, keys)?;
            let mut digests = self.metadata.digests.values();
            let digest = digests.find(|digest| digest.keyslots.contains(&slot))?;
            Some((digest, message))
        };
        let unbound = VolumeError::UnboundReencryption;
        match bound() {
            Some((digest, message)) if digest.is_of(&message, limits)? => Ok(()),
            _ => Err(unbound),
        }
    }

    /// Protects by a journal what was begun without protection, or with one that does not fit.
    fn take_a_journal(&mut self, device: &dyn BlockDevice, keys: &Keys) -> Result<(), VolumeError> {
        let (version, slot) = (
            self.version()?,
            slot_of(self).ok_or(VolumeError::ForeignReencryption)?,
        );
        let mut json = self.json.clone();
        let area = &mut json["keyslots"][slot.to_string()]["area"];
        let kind = match area["type"].as_str() {
            Some(kind) if kind.starts_with("datashift") => "datashift-journal",
            _ => "journal",
        };
        if let Value::Object(area) = area {
            area.insert("type".to_owned(), kind.into());
            area.shift_remove("hash");
            area.shift_remove("sector_size");
        }
        bind(&mut json, version, slot, keys)?;
        self.commit(device, |written| *written = json)
    }
}

impl Keys {
    /// The key of what is to be, which may be the old one.
    fn of_new(&self, plan: &Plan) -> &Key {
        match plan.old_digest == plan.new_digest {
            true => &self.old,
            false => &self.new,
        }
    }
}

/// Makes the digest over the metadata of a reencryption.
fn bind(
    json: &mut Map<String, Value>,
    version: u8,
    slot: u32,
    keys: &Keys,
) -> Result<(), VolumeError> {
    let message =
        bound::message(json, version, slot, keys).ok_or(VolumeError::ForeignReencryption)?;
    let digest = digest_json(&message, &[slot], &[])?;
    let Value::Object(digests) = &mut json["digests"] else {
        return Err(VolumeError::ForeignReencryption);
    };
    let name = json!(slot.to_string());
    digests.retain(|_, digest| {
        let listed = digest["keyslots"].as_array();
        !listed.is_some_and(|slots| slots.contains(&name))
    });
    let number = free_number(digests).ok_or(VolumeError::NoFreeKeyslot)?;
    digests.insert(number.to_string(), digest);
    Ok(())
}

/// The first number up to 31 that no member has.
fn free_number(members: &Map<String, Value>) -> Option<u32> {
    (0..32).find(|number: &u32| !members.contains_key(&number.to_string()))
}

/// Sets the segments that are the volume's now before those that tell of it before and after.
fn set_segments(json: &mut Map<String, Value>, plan: &Plan, regular: Vec<(Value, Vec<u32>)>) {
    let (mut segments, mut digests): (Vec<_>, Vec<_>) = regular.into_iter().unzip();
    for flag in Backup::ALL {
        let Some(segment) = backup(json, flag) else {
            continue;
        };
        segments.push(segment.clone());
        let digest = match flag {
            Backup::Previous | Backup::Moved => plan.old_digest,
            Backup::Final => plan.new_digest,
        };
        digests.push(digest.into_iter().collect());
    }
    json["segments"] = numbered(segments);
    assign(json, &digests);
}

/// Segments by their numbers.
fn numbered(segments: Vec<Value>) -> Value {
    let numbers = (0_u32..).map(|number| number.to_string());
    Value::Object(numbers.zip(segments).collect())
}

/// Says in each digest which segments have its key, by the digests of each segment.
fn assign(json: &mut Map<String, Value>, of_segments: &[Vec<u32>]) {
    let Value::Object(digests) = &mut json["digests"] else {
        return;
    };
    for (name, digest) in digests {
        let has = |digests: &Vec<u32>| digests.iter().any(|number| number.to_string() == *name);
        let segments = of_segments.iter().enumerate().filter(|(_, of)| has(of));
        let segments: Vec<String> = segments.map(|(number, _)| number.to_string()).collect();
        digest["segments"] = json!(segments);
    }
}
