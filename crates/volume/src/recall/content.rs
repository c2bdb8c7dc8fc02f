//! [`Content`]: what a file says in which a search is kept.

use serde::{Deserialize, Serialize};

/// The schema that the file names.
const SCHEMA: &str = "cryptmark-recall/1";

/// How far a search is, as a file keeps it.
#[derive(Serialize, Deserialize)]
pub struct Content {
    schema: String,
    /// The fingerprint by which the search is recognised.
    pub search: String,
    /// How many candidates the search has.
    pub candidates: u64,
    /// How many of them were tried.
    pub tried: u64,
}

impl Content {
    /// That of a file which this program writes.
    pub fn new(search: String, candidates: u64, tried: u64) -> Self {
        Self {
            schema: SCHEMA.to_owned(),
            search,
            candidates,
            tried,
        }
    }

    /// That of a file of any bytes; `None` if no search has written it.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let content: Self = serde_json::from_slice(bytes).ok()?;
        (content.schema == SCHEMA && content.tried <= content.candidates).then_some(content)
    }
}
