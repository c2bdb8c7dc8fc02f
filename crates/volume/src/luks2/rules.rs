//! cryptsetup's rules for metadata that is written: it refuses a whole header
//! for one of them broken.
//!
//! On reading, [`Metadata::parse`](super::metadata::Metadata::parse) demands less. A broken key
//! slot or token does not keep the data from their owner. `docs/LUKS-RULES.md` compares both.

use super::json::Node;
use super::metadata::is_online;
use super::read::Header;
use super::reencrypt;
use crate::Damage;
use serde_json::{Map, Value};

/// Refuses metadata that cryptsetup would not read.
pub(super) fn check(json: &Map<String, Value>, header_size: u64) -> Result<(), Damage> {
    let keyslots = Node::root(json, "keyslots")?;
    for (_, token) in Node::root(json, "tokens")?.numbered()? {
        token.get("type")?.some_text()?;
        for named in token.get("keyslots")?.list()? {
            if keyslots.find(named.text()?)?.is_none() {
                return Err(named.unknown(named.text()?));
            }
        }
    }
    let digests = Node::root(json, "digests")?.numbered()?;
    for (number, keyslot) in keyslots.numbered()? {
        general_keyslot(&keyslot)?;
        match keyslot.get("type")?.text()? {
            "luks2" => {
                exact_keyslot(&keyslot)?;
                one_digest(number, &keyslot, &digests)?;
            }
            "reencrypt" => reencryption(&keyslot)?,
            _ => {}
        }
    }
    let segments = Node::root(json, "segments")?.numbered()?;
    for (number, segment) in &segments {
        opal(*number, segment, &digests)?;
    }
    let config = Node::root(json, "config")?;
    let required = requirements(&config)?;
    let of_another = Header::is_kept_for_another(json);
    if !of_another && !required.contains(&reencrypt::ALONE) {
        space(&config, &segments, header_size)?;
    }
    online(&keyslots, &segments, &required)
}

/// cryptsetup's rules for every key slot.
fn general_keyslot(node: &Node) -> Result<(), Damage> {
    node.get("type")?.some_text()?;
    node.get("key_size")?.number()?;
    let area = node.get("area")?;
    area.get("type")?.some_text()?;
    area.get("offset")?.big_number()?;
    area.get("size")?.big_number()?;
    Ok(())
}

/// The members of a keyslot of type `luks2`, as far as they must be there to be
/// read at all.
pub(super) fn passphrase_keyslot(node: &Node) -> Result<(), Damage> {
    node.get("key_size")?.number()?;
    let kdf = node.get("kdf")?;
    let (texts, integers): (&[&str], &[&str]) = match kdf.get("type")?.some_text()? {
        "pbkdf2" => (&["hash", "salt"], &["iterations"]),
        "argon2i" | "argon2id" => (&["salt"], &["time", "memory", "cpus"]),
        _ => (&[], &[]),
    };
    for name in texts {
        kdf.get(name)?.some_text()?;
    }
    for name in integers {
        kdf.get(name)?.integer()?;
    }
    let af = node.get("af")?;
    if af.get("type")?.some_text()? == "luks1" {
        af.get("hash")?.some_text()?;
        af.get("stripes")?.integer()?;
    }
    let area = node.get("area")?;
    if area.get("type")?.some_text()? == "raw" {
        area.get("encryption")?.some_text()?;
        area.get("key_size")?.integer()?;
        area.get("offset")?.some_text()?;
        area.get("size")?.some_text()?;
    }
    Ok(())
}

/// The same, and nothing beside them that cryptsetup does not know.
fn exact_keyslot(node: &Node) -> Result<(), Damage> {
    passphrase_keyslot(node)?;
    let kdf = node.get("kdf")?;
    let members = match kdf.get("type")?.text()? {
        "pbkdf2" => Some(4),
        "argon2i" | "argon2id" => Some(5),
        _ => None,
    };
    let found = kdf.object()?.len();
    if members.is_some_and(|members| members != found) {
        let field = format!("the number of members of {}", kdf.path());
        let rule = "is not a number that cryptsetup supports";
        return Err(Damage::number(field, found as u64, rule));
    }
    for (object, known) in [("af", "luks1"), ("area", "raw")] {
        node.get(object)?.must_be("type", known)?;
    }
    Ok(())
}

fn one_digest(number: u32, node: &Node, digests: &[(u32, Node)]) -> Result<(), Damage> {
    let mut count = 0_u64;
    for (_, digest) in digests {
        let listed = digest.get("keyslots")?.list()?;
        let named = listed.iter().any(|slot| slot.reference() == Ok(number));
        count += u64::from(named);
    }
    match count {
        1 => Ok(()),
        _ => Err(Damage::number(
            format!("the number of digests of {}", node.path()),
            count,
            "must be 1",
        )),
    }
}

/// A keyslot of cryptsetup's reencryption.
fn reencryption(node: &Node) -> Result<(), Damage> {
    let key_size = node.get("key_size")?;
    if key_size.number()? != 1 {
        return Err(key_size.refuse(key_size.number()?.into(), "must be 1"));
    }
    for (name, known) in [
        ("mode", &["reencrypt", "encrypt", "decrypt"] as &[&str]),
        ("direction", &["forward", "backward"]),
    ] {
        let value = node.get(name)?;
        if !known.contains(&value.some_text()?) {
            return Err(value.unknown(value.text()?));
        }
    }
    let area = node.get("area")?;
    match area.get("type")?.text()? {
        "checksum" | "datashift-checksum" => {
            area.get("hash")?.some_text()?;
            let size = area.get("sector_size")?;
            let bytes = size.number()?;
            if bytes < 512 || !bytes.is_power_of_two() {
                return Err(size.refuse(bytes.into(), "must be a power of two and at least 512"));
            }
        }
        "datashift" | "datashift-journal" => {
            let shift = area.get("shift_size")?;
            let bytes = shift.big_number()?;
            if bytes == 0 || !bytes.is_multiple_of(512) {
                return Err(shift.refuse(bytes, "must be a multiple of 512, and not 0"));
            }
        }
        _ => {}
    }
    Ok(())
}

/// A segment that the drive encrypts.
fn opal(number: u32, node: &Node, digests: &[(u32, Node)]) -> Result<(), Damage> {
    let kind = node.get("type")?.text()?;
    if !kind.starts_with("hw-opal") {
        return Ok(());
    }
    let size = node.get("size")?;
    node.get("opal_segment_number")?.integer()?;
    node.get("opal_key_size")?.integer()?;
    let range = node.get("opal_segment_size")?;
    let (bytes, most) = (size.big_number()?, range.big_number()?);
    if most == 0 || bytes > most {
        return Err(range.refuse(most, format!("the segment has {bytes}")));
    }
    if kind != "hw-opal-crypt" {
        return Ok(());
    }
    node.get("iv_tweak")?.big_number()?;
    node.get("encryption")?.some_text()?;
    node.get("sector_size")?.number()?;
    for (_, digest) in digests {
        for segment in digest.get("segments")?.list()? {
            if segment.reference()? == number {
                return Ok(());
            }
        }
    }
    Err(Damage::missing(format!("the digest of segments.{number}")))
}

fn requirements<'a>(config: &Node<'a>) -> Result<Vec<&'a str>, Damage> {
    let mandatory = match config.find("requirements")? {
        Some(requirements) => requirements.find("mandatory")?,
        None => None,
    };
    let list = mandatory.map(|list| list.list()).transpose()?;
    list.iter().flatten().map(Node::text).collect()
}

/// Keyslots end before the first data begin, also if the two are on two devices.
///
/// It does not hold while data of another format are reencrypted, which may
/// begin anywhere: no other program reads that header.
fn space(config: &Node, segments: &[(u32, Node)], header_size: u64) -> Result<(), Damage> {
    let keyslots_size = config.get("keyslots_size")?;
    let end = (2 * header_size).saturating_add(keyslots_size.big_number()?);
    let mut first: Option<(u64, Node)> = None;
    for (_, segment) in segments {
        if is_flagged(segment, |flag| flag.starts_with("backup-"))? {
            continue;
        }
        let offset = segment.get("offset")?;
        let bytes = offset.big_number()?;
        if first.as_ref().is_none_or(|(least, _)| bytes < *least) {
            first = Some((bytes, offset));
        }
    }
    match first {
        // Data that begin where their device does have their header elsewhere.
        Some((bytes, offset)) if bytes != 0 && bytes < end => {
            Err(offset.refuse(bytes, format!("header and keyslots end at {end}")))
        }
        _ => Ok(()),
    }
}

/// Checks that all parts of an online reencryption of cryptsetup's are there, or none of them.
fn online(keyslots: &Node, segments: &[(u32, Node)], required: &[&str]) -> Result<(), Damage> {
    let mut count = 0_u64;
    for (_, keyslot) in keyslots.numbered()? {
        count += u64::from(keyslot.get("type")?.text()? == "reencrypt");
    }
    let online = required.iter().any(|name| is_online(name));
    if count > 1 || online != (count == 1) {
        let rule = format!("must be {}, as the requirements say", u8::from(online));
        return Err(Damage::number(
            "the number of keyslots of type reencrypt",
            count,
            rule,
        ));
    }
    if !online {
        return Ok(());
    }
    let flagged = |name: &str| {
        for (_, segment) in segments {
            if is_flagged(segment, |flag| flag == name)? {
                return Ok(segment);
            }
        }
        Err(Damage::missing(format!("the segment with the flag {name}")))
    };
    let (last, first) = (flagged("backup-final")?, flagged("backup-previous")?);
    for (_, segment) in segments {
        if is_flagged(segment, |flag| flag.starts_with("backup-"))? {
            continue;
        }
        let moving = is_flagged(segment, |flag| flag == "in-reencryption")?;
        if !(same_kind(segment, last)? || (!moving && same_kind(segment, first)?)) {
            return Err(Damage::kind(
                segment.path(),
                "as the segments before or after the reencryption",
            ));
        }
    }
    Ok(())
}

fn same_kind(a: &Node, b: &Node) -> Result<bool, Damage> {
    let kind = a.get("type")?.text()?;
    if kind != b.get("type")?.text()? {
        return Ok(false);
    }
    if kind != "crypt" {
        return Ok(true);
    }
    let parts = |node: &Node| -> Result<_, Damage> {
        let sector_size = node.get("sector_size")?.number()?;
        Ok((sector_size, node.get("encryption")?.text()?.to_owned()))
    };
    Ok(parts(a)? == parts(b)?)
}

fn is_flagged(segment: &Node, is: impl Fn(&str) -> bool) -> Result<bool, Damage> {
    let flags = segment
        .find("flags")?
        .map(|flags| flags.list())
        .transpose()?;
    for flag in flags.iter().flatten() {
        if is(flag.text()?) {
            return Ok(true);
        }
    }
    Ok(false)
}
