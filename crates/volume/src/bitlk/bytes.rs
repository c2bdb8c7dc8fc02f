//! The building blocks of metadata and key files: entries, and keys encrypted with AES-CCM.
//!
//! ```text
//! entry   u16 size │ u16 role │ u16 kind │ u16 flags │ body
//! key     entry of kind 1, its body u16 method │ u16 flags │ key
//! ```

use crate::Damage;
use crate::fields::Fields;
use aes::Aes256;
use ccm::aead::consts::{U12, U16};
use ccm::{AeadInOut, Ccm, KeyInit};
use zeroize::Zeroizing;

/// Length of an entry's head, bytes.
pub(super) const ENTRY_BYTES: usize = 8;

/// Roles of entries.
pub(super) mod role {
    pub const PROTECTOR: u16 = 2;
    pub const DATA_KEY: u16 = 3;
    pub const STARTUP_KEY: u16 = 6;
    pub const DESCRIPTION: u16 = 7;
    pub const FIRST_SECTORS: u16 = 15;
}

/// Kinds of entry bodies.
pub(super) mod kind {
    pub const KEY: u16 = 1;
    pub const TEXT: u16 = 2;
    pub const STRETCHED: u16 = 3;
    pub const SEALED: u16 = 5;
    pub const PROTECTOR: u16 = 8;
    pub const EXTERNAL_KEY: u16 = 9;
    pub const PLACE: u16 = 15;
}

/// An entry.
#[derive(Clone, Copy)]
pub(super) struct Entry<'a> {
    pub(super) role: u16,
    pub(super) kind: u16,
    pub(super) body: &'a [u8],
}

/// Splits `bytes` into entries. An entry of size 0 ends the list.
///
/// # Errors
/// An entry that is shorter than its head or longer than the rest of `bytes`.
pub(super) fn entries(mut bytes: &[u8]) -> Result<Vec<Entry<'_>>, Damage> {
    let mut found = Vec::new();
    while bytes.len() >= ENTRY_BYTES {
        let fields = Fields(bytes);
        let size = usize::from(fields.le16(0));
        if size == 0 {
            break;
        }
        if size < ENTRY_BYTES || size > bytes.len() {
            let rule = format!("must be {ENTRY_BYTES} to {}", bytes.len());
            return Err(Damage::number("entry size", size as u64, rule));
        }
        let (role, kind) = (fields.le16(2), fields.le16(4));
        let (entry, rest) = bytes.split_at(size);
        found.push(Entry {
            role,
            kind,
            body: &entry[ENTRY_BYTES..],
        });
        bytes = rest;
    }
    Ok(found)
}

/// An entry encrypted with AES-256-CCM.
#[derive(Clone, Debug)]
pub(super) struct Sealed {
    nonce: [u8; 12],
    tag: [u8; 16],
    ciphertext: Vec<u8>,
}

impl Sealed {
    /// Parses the body of an entry of kind [`kind::SEALED`].
    pub(super) fn parse(body: &[u8]) -> Result<Self, Damage> {
        let parts = body.split_first_chunk().and_then(|(nonce, rest)| {
            let (tag, ciphertext) = rest.split_first_chunk()?;
            Some((*nonce, *tag, ciphertext))
        });
        match parts {
            Some((nonce, tag, ciphertext)) => Ok(Self {
                nonce,
                tag,
                ciphertext: ciphertext.to_vec(),
            }),
            None => Err(Damage::length(
                "sealed key",
                body.len(),
                "must have at least 28",
            )),
        }
    }

    /// Decrypts the entry; `None` if `key` is wrong.
    pub(super) fn open(&self, key: &[u8; 32]) -> Option<Zeroizing<Vec<u8>>> {
        let cipher = Ccm::<Aes256, U16, U12>::new(key.into());
        let mut opened = Zeroizing::new(self.ciphertext.clone());
        let tag = &self.tag.into();
        cipher
            .decrypt_inout_detached(&self.nonce.into(), &[], (&mut opened[..]).into(), tag)
            .ok()?;
        Some(opened)
    }
}

/// The method and the bytes of the key in a decrypted entry.
pub(super) fn key_in(entry: &[u8]) -> Option<(u16, &[u8])> {
    let entries = entries(entry).ok()?;
    let first = entries.first().filter(|first| first.kind == kind::KEY)?;
    let (method, key) = first.body.split_first_chunk::<4>()?;
    Some((u16::from_le_bytes([method[0], method[1]]), key))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compatibility with Windows is tested by opening volumes that Windows made.
    #[test]
    fn a_sealed_key_opens_with_its_key_alone() {
        let key: [u8; 32] = std::array::from_fn(|i| i as u8);
        let cipher = Ccm::<Aes256, U16, U12>::new((&key).into());
        let mut ciphertext = b"an entry".to_vec();
        let nonce = [7; 12];
        let tag = cipher
            .encrypt_inout_detached(&nonce.into(), &[], (&mut ciphertext[..]).into())
            .unwrap();
        let body = [&nonce[..], &tag, &ciphertext].concat();
        let sealed = Sealed::parse(&body).unwrap();
        assert_eq!(sealed.open(&key).unwrap()[..], b"an entry"[..]);
        assert!(sealed.open(&[0; 32]).is_none());
        assert!(Sealed::parse(&body[..27]).is_err());
    }

    #[test]
    fn entries_end_at_a_size_of_zero_and_never_behind_the_end() {
        let one = [8, 0, 2, 0, 8, 0, 1, 0];
        assert_eq!(entries(&one).unwrap().len(), 1);
        assert_eq!(entries(&[one, [0; 8]].concat()).unwrap().len(), 1);
        assert_eq!(entries(&[&one[..], &[9, 0]].concat()).unwrap().len(), 1);
        for size in [1, 7, 9] {
            let mut entry = one;
            entry[0] = size;
            assert!(entries(&entry).is_err(), "{size}");
        }
    }
}
