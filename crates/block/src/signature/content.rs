//! The content of a device: the formats found by their magic bytes, and whether it holds anything
//! at all.
//!
//! Offsets and bytes are those of the formats' own documentation (most are in util-linux's libblkid
//! documentation and the kernel's headers). Random data may match a short magic; a wrong name still
//! protects the data.

mod identity;
mod magics;
mod shapes;
mod stored;
mod view;

pub use magics::LUKS;
pub use stored::Data;
pub(super) use stored::{kind, places};

use crate::positioned;
use magics::MAGICS;
use std::fmt;
use std::fs::File;
use std::io;
use stored::Blank;
use view::{View, Windows};

/// Places where partitions and volumes begin, so that what stood behind a table that
/// is gone is found: the start, and 1, 2, 4 and 16 MiB.
const BASES: [u64; 5] = [0, 1 << 20, 2 << 20, 4 << 20, 16 << 20];

/// Read from each of them.
const WINDOW: u64 = 1 << 20;

/// Read before the end: backup headers live there.
const TAIL: u64 = 2 << 20;

/// The content of a device or file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Content {
    /// The recognised formats.
    pub found: Vec<Found>,
    /// Whether anything is there, named or not.
    pub data: Option<Data>,
}

/// A recognised format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The name, with its article where it has one.
    pub name: &'static str,
    /// Where it begins.
    pub at: u64,
    /// Its label, as far as it is text.
    pub label: Option<String>,
    /// Its UUID or serial number.
    pub uuid: Option<String>,
}

impl Found {
    /// Whether it is one disk of an array, or of another store that has a part of its bytes
    /// elsewhere.
    pub fn is_member(&self) -> bool {
        self.name.starts_with("a member of ") || shapes::MEMBERS.contains(&self.name)
    }
}

impl Content {
    /// Whether all bytes that were looked at are zeros, or all are ones, as on a new or wiped
    /// device.
    pub fn is_blank(&self) -> bool {
        self.found.is_empty() && self.data.is_none()
    }

    /// The content of a file or disk of the system. For a file, all stored data is read.
    pub(super) fn of_file(file: &File, size: u64, regular: bool) -> io::Result<Self> {
        let read = |offset, into: &mut [u8]| positioned::read_exact_at(file, into, offset);
        if !regular {
            return Self::sampled(size, read);
        }
        let extents = stored::extents(file, size)?;
        let data = stored::of_file(&mut Blank::default(), size, &extents, read)?;
        let found = match data {
            Some(_) => names(size, read)?,
            None => Vec::new(),
        };
        Ok(Self { found, data })
    }

    /// The content of `size` bytes, from samples all over them; `read` reads from any offset.
    pub(crate) fn sampled<E>(
        size: u64,
        read: impl Fn(u64, &mut [u8]) -> Result<(), E>,
    ) -> Result<Self, E> {
        let windows = look(size, &read)?;
        let mut blank = Blank::default();
        let parts = windows.parts.iter();
        let first = parts
            .clone()
            .find_map(|(start, bytes)| blank.odd(*start, bytes));
        let first = match first {
            Some(first) => Some(first),
            None => stored::first_odd(&mut blank, stored::places(size), &read)?,
        };
        Ok(Self {
            found: recognise(&windows),
            data: first.map(|first| Data {
                first,
                stored: None,
            }),
        })
    }
}

/// The formats that are recognised among `size` bytes; `read` reads from any offset.
pub(super) fn names<E>(
    size: u64,
    read: impl Fn(u64, &mut [u8]) -> Result<(), E>,
) -> Result<Vec<Found>, E> {
    Ok(recognise(&look(size, &read)?))
}

/// Where among `size` bytes there is something that is not encrypted, as far as samples
/// tell.
pub(super) fn readable<E>(
    size: u64,
    read: impl FnMut(u64, &mut [u8]) -> Result<(), E>,
) -> Result<Option<u64>, E> {
    let start = (0, size.min(WINDOW));
    let ranges = std::iter::once(start).chain(stored::places(size));
    stored::first_readable(ranges, read)
}

/// Reads the windows.
fn look<E>(size: u64, read: &impl Fn(u64, &mut [u8]) -> Result<(), E>) -> Result<Windows, E> {
    let tail = size.saturating_sub(TAIL) & !4095;
    let ends = BASES.map(|base| (base, base + WINDOW));
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    for (start, end) in ends.into_iter().chain([(tail, size)]) {
        let end = end.min(size);
        match ranges.last_mut() {
            _ if start >= end => {}
            // Adjacent ranges become one, so that nothing is cut in two.
            Some(last) if start <= last.1 && start >= last.0 => last.1 = last.1.max(end),
            _ => ranges.push((start, end)),
        }
    }
    let mut parts = Vec::new();
    for (start, end) in ranges {
        let mut bytes = vec![0; (end - start) as usize];
        read(start, &mut bytes)?;
        parts.push((start, bytes));
    }
    Ok(Windows { parts, size })
}

fn recognise(windows: &Windows) -> Vec<Found> {
    let mut found: Vec<Found> = Vec::new();
    let mut add = |view: &View, name: &'static str, at: u64| {
        // Two magics of one volume, or its second header seen from elsewhere.
        if found.iter().any(|known| known.name == name) {
            return;
        }
        let (label, uuid) = identity::of(view, name);
        found.push(Found {
            name,
            at,
            label,
            uuid,
        });
    };
    for base in BASES.into_iter().filter(|&base| base < windows.size) {
        let view = windows.from(base);
        let by_magic = MAGICS.iter().filter(|(at, magic, _)| view.is(*at, magic));
        let by_shape = shapes::ANYWHERE.iter().filter_map(|shape| shape(&view));
        for name in by_magic.map(|&(_, _, name)| name).chain(by_shape) {
            add(&view, name, base);
        }
        if base == 0 {
            for name in shapes::WHOLE.iter().filter_map(|shape| shape(&view)) {
                add(&view, name, base);
            }
        }
    }
    // Most file systems of PCs begin as a boot sector does, and a GPT is one table in
    // three places.
    let implied: &[&str] = match found.iter().any(|found| found.name == magics::GPT) {
        true => &[shapes::GPT_BACKUP, shapes::MBR, shapes::BOOT],
        false if found.len() > 1 => &[shapes::BOOT],
        false => &[],
    };
    found.retain(|found| !implied.contains(&found.name));
    found
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)?;
        if let Some(label) = &self.label {
            write!(f, " \"{}\"", label.escape_debug())?;
        }
        if let Some(uuid) = &self.uuid {
            write!(f, " (UUID {uuid})")?;
        }
        if self.at > 0 {
            write!(f, " at byte {}", self.at)?;
        }
        Ok(())
    }
}

impl Content {
    /// A description of the data that would be lost. `known` may name a format better than its
    /// [`Found`] does.
    pub fn in_words(&self, known: impl Fn(&Found) -> Option<String>) -> String {
        let mut words = String::new();
        for (index, found) in self.found.iter().enumerate() {
            words += match index {
                0 => "",
                index if index + 1 == self.found.len() => " and ",
                _ => ", ",
            };
            words += &known(found).unwrap_or_else(|| found.to_string());
        }
        let stored = self.data.and_then(|data| data.stored);
        let stored = stored.map_or_else(String::new, |bytes| format!(", {bytes} bytes stored"));
        match (self.data, self.found.is_empty()) {
            (None, true) => "nothing".to_owned(),
            (None, false) => words,
            (Some(_), false) => words + &stored,
            (Some(data), true) => format!(
                "data from byte {} on{stored}, with no known signature \
                 (encrypted data looks like this)",
                data.first
            ),
        }
    }
}

impl fmt::Display for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.in_words(|_| None))
    }
}

#[cfg(test)]
mod tests;
