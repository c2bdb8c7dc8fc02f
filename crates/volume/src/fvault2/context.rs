//! The encryption context: a property list with the wrapped keys.

use super::damaged;
use crate::fields::Fields;
use crate::{Damage, Hash, Kdf, VolumeError};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use roxmltree::{Document, Node};

/// Length of a wrapped 128-bit key, bytes (NIST SP 800-38F).
pub(super) const WRAPPED_BYTES: usize = 24;

/// A passphrase or recovery key that opens the volume.
#[derive(Clone, Debug)]
pub struct User {
    /// Its identifier.
    pub identifier: Option<String>,
    /// The passphrase hint.
    pub hint: Option<String>,
    /// Iterations of PBKDF2 with SHA-256.
    pub iterations: u32,
    pub(super) salt: [u8; 16],
    pub(super) wrapped_kek: [u8; WRAPPED_BYTES],
}

impl User {
    pub(super) const fn kdf(&self) -> Kdf {
        Kdf::Pbkdf2 {
            hash: Hash::Sha256,
            iterations: self.iterations,
        }
    }
}

/// The parsed property list.
#[derive(Clone, Debug, Default)]
pub(super) struct Context {
    pub(super) users: Vec<User>,
    /// Volume keys, wrapped by the key-encrypting key.
    pub(super) volume_keys: Vec<[u8; WRAPPED_BYTES]>,
    /// The conversion status: `Complete`, or another while the volume is converted.
    pub(super) conversion: Option<String>,
}

impl Context {
    /// Parses the context in `xml`.
    pub(super) fn parse(xml: &str) -> Result<Self, VolumeError> {
        let document = document(xml)?;
        let mut context = Self::default();
        for dict in document
            .descendants()
            .filter(|node| node.has_tag_name("dict"))
        {
            if let Some(wrapped) = value(dict, "PassphraseWrappedKEKStruct") {
                context.users.push(user(dict, wrapped)?);
            }
            if let Some(wrapped) = value(dict, "KEKWrappedVolumeKeyStruct") {
                let bytes = data(wrapped, "KEKWrappedVolumeKeyStruct")?;
                // There is an empty one beside those of a volume that is encrypted.
                if let Some(key) = bytes.get(8..).and_then(<[u8]>::first_chunk) {
                    context.volume_keys.push(*key);
                }
            }
            if let Some(status) = value(dict, "ConversionStatus").and_then(|node| node.text()) {
                context.conversion = Some(status.to_owned());
            }
        }
        Ok(context)
    }
}

/// Parses the property list in `text`.
pub(super) fn document(text: &str) -> Result<Document<'_>, VolumeError> {
    let parsed = block::xml::is_simple(text).then(|| Document::parse(text).ok());
    parsed
        .flatten()
        .ok_or_else(|| damaged(Damage::kind("property list", "XML")))
}

/// The value of the key `name` in `dict`.
pub(super) fn value<'a, 'input>(dict: Node<'a, 'input>, name: &str) -> Option<Node<'a, 'input>> {
    let mut keys = dict.children().filter(|node| node.has_tag_name("key"));
    let key = keys.find(|key| key.text() == Some(name))?;
    key.next_siblings().skip(1).find(Node::is_element)
}

fn data(node: Node, name: &str) -> Result<Vec<u8>, VolumeError> {
    let text: String = node.text().unwrap_or_default().split_whitespace().collect();
    STANDARD
        .decode(text)
        .map_err(|_| damaged(Damage::kind(name, "in base 64")))
}

fn user(dict: Node, wrapped: Node) -> Result<User, VolumeError> {
    const BYTES: usize = 176;
    let name = "PassphraseWrappedKEKStruct";
    let bytes = data(wrapped, name)?;
    if bytes.len() < BYTES {
        return Err(damaged(Damage::length(
            name,
            bytes.len(),
            format!("must have at least {BYTES}"),
        )));
    }
    let fields = Fields(&bytes);
    let text = |name| {
        let text = value(dict, name)?.text()?;
        Some(text.to_owned())
    };
    Ok(User {
        identifier: text("UserIdent"),
        hint: text("PassphraseHint"),
        iterations: fields.le32(168),
        salt: fields.array(8),
        wrapped_kek: fields.array(32),
    })
}
