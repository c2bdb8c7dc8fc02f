//! What both versions of LUKS have in common.

/// What every header begins with; its version follows.
pub(crate) const MAGIC: &[u8] = b"LUKS\xBA\xBE";

/// The longest volume key that a header may ask for: cryptsetup's limit.
pub(crate) const MOST_KEY_BYTES: usize = 512;
