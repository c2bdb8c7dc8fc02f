//! [`Kind`]: what a command writes, and how an earlier output of the same kind is recognised.

use serde::Deserialize;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};

/// The bytes at the start and at the end of a file by which its kind is recognised.
const HEAD: u64 = 4096;
const TAIL: u64 = 64;

/// What a command writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// JSON with a schema of this name.
    Json(&'static str),
    /// A report as a page.
    Html,
    /// A report as text.
    Markdown,
    /// A report as a table.
    Csv,
    /// A page of the manual.
    Manual,
    /// The plaintext of a volume. Nothing tells it from other data.
    Plaintext,
    /// A file that users edit, or that other programs write as well.
    Other,
}

/// The part of a record that names its schema.
#[derive(Deserialize)]
struct Named {
    schema: String,
}

impl Kind {
    /// Whether this program plainly wrote `file`, as an output of this kind.
    ///
    /// # Errors
    /// Those of reading it.
    pub(super) fn is_of(self, mut file: &File) -> io::Result<bool> {
        file.seek(SeekFrom::Start(0))?;
        if let Self::Json(schema) = self {
            let is_named = |named: &Named| {
                let name = named.schema.split_once('/');
                name.is_some_and(|(name, _)| name == schema)
            };
            // A record, or several. Only the schemas are kept in memory.
            if let Ok(one) = serde_json::from_reader(BufReader::new(file)) {
                return Ok(is_named(&one));
            }
            file.seek(SeekFrom::Start(0))?;
            let several: Result<Vec<_>, _> = serde_json::from_reader(BufReader::new(file));
            return Ok(several.is_ok_and(|all| !all.is_empty() && all.iter().all(is_named)));
        }
        let text = |file: &File, length| {
            let mut bytes = Vec::new();
            file.take(length).read_to_end(&mut bytes)?;
            Ok::<_, io::Error>(String::from_utf8_lossy(&bytes).into_owned())
        };
        let head = text(file, HEAD)?;
        let length = file.seek(SeekFrom::End(0))?;
        file.seek(SeekFrom::Start(length.saturating_sub(TAIL)))?;
        let tail = text(file, TAIL)?;
        let is_text = !head.contains('\0') && tail.ends_with('\n');
        Ok(match self {
            Self::Json(_) | Self::Plaintext | Self::Other => false,
            Self::Html => {
                head.starts_with("<!DOCTYPE html>")
                    && head.contains(::report::html::GENERATOR)
                    && tail.trim_end().ends_with("</html>")
            }
            Self::Markdown => is_text && head.starts_with("# ") && head.contains("\n* Run: "),
            Self::Csv => {
                let header = ::report::csv::header().join(",");
                is_text && head.starts_with(&header[..header.len().min(HEAD as usize / 2)])
            }
            Self::Manual => is_text && head.starts_with(".ie ") && head.contains("\n.TH cryptmark"),
        })
    }
}
