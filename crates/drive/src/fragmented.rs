//! [`Fragmented`]: a file whose pieces lie over a drive.

use crate::DriveError;
use crate::demand::{Demand, Drive};
use crate::hdd::Placement;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::collections::HashMap;

/// Bytes that the places of pieces are multiples of.
const CLUSTER: u64 = 4096;

/// A drive on which there is nothing but the file.
pub struct Fragmented {
    below: Box<dyn Drive>,
    file: u64,
    /// First bytes of the pieces, in the file and on the drive.
    pieces: Vec<(u64, u64)>,
    /// Requests that are with the drive, by the tags of their parts.
    parts: HashMap<u64, u64>,
    /// Parts that are not done yet, and when the last one was.
    requests: HashMap<u64, (Demand, u32, u64)>,
    next: u64,
}

impl Fragmented {
    /// Lays a file of so many bytes out over a drive; the same seed gives the
    /// same places.
    ///
    /// # Errors
    /// [`DriveError::OutOfRange`] where it does not fit.
    pub fn new(
        below: Box<dyn Drive>,
        file: u64,
        placement: Placement,
        seed: u64,
    ) -> Result<Self, DriveError> {
        let Placement { used, pieces } = placement;
        let bytes = below.capacity() as f64 * used;
        let fits = match pieces {
            // As much again as the file, so that the rest has room between its pieces.
            Some(pieces) => pieces.as_u64() > 0 && file as f64 * 2.0 <= bytes,
            None => bytes + file as f64 <= below.capacity() as f64,
        };
        DriveError::require(
            (0.0..=1.0).contains(&used) && fits && file > 0,
            "placement.used",
            used,
            "0 to 1: pieces need room for twice the file, and a file in one piece needs room after \
             it",
        )?;
        let used = bytes as u64;
        Ok(Self {
            file,
            pieces: match pieces {
                Some(mean) => places(file, mean.as_u64(), used, seed),
                None => vec![(0, used / CLUSTER * CLUSTER)],
            },
            below,
            parts: HashMap::new(),
            requests: HashMap::new(),
            next: 0,
        })
    }

    /// A file that lies on a drive in these pieces, one after the other: first byte on the drive,
    /// and length, which is more than 0.
    pub fn over(below: Box<dyn Drive>, pieces: impl IntoIterator<Item = (u64, u64)>) -> Self {
        let mut file = 0;
        let mut places = Vec::new();
        for (lies, bytes) in pieces {
            places.push((file, lies));
            file += bytes;
        }
        Self {
            below,
            file,
            pieces: places,
            parts: HashMap::new(),
            requests: HashMap::new(),
            next: 0,
        }
    }

    /// How many pieces the file has.
    pub fn pieces(&self) -> usize {
        self.pieces.len()
    }

    /// Parts of a request: first byte on the drive and length.
    fn split(&self, demand: &Demand) -> Vec<(u64, u64)> {
        let (mut offset, end) = (demand.offset, demand.offset + demand.bytes);
        let mut parts = Vec::new();
        let mut place = self.pieces.partition_point(|(first, _)| *first <= offset) - 1;
        while offset < end {
            let (first, lies) = self.pieces[place];
            let piece_end = self.pieces.get(place + 1).map_or(self.file, |next| next.0);
            let bytes = piece_end.min(end) - offset;
            parts.push((lies + offset - first, bytes));
            offset += bytes;
            place += 1;
        }
        if parts.is_empty() {
            parts.push((0, 0));
        }
        parts
    }
}

/// Lengths of pieces, and places in equal strips of what is used, one a strip,
/// in no order.
fn places(file: u64, mean: u64, used: u64, seed: u64) -> Vec<(u64, u64)> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut share = || (rng.next_u64() >> 11) as f64 / 2.0_f64.powi(53);
    let mut firsts = vec![0];
    let mut first = 0;
    loop {
        let length = -(1.0 - share()).ln() * mean as f64;
        first += (length as u64 / CLUSTER + 1) * CLUSTER;
        if first >= file {
            break;
        }
        firsts.push(first);
    }
    let pieces = firsts.len();
    let mut strips: Vec<usize> = (0..pieces).collect();
    for place in (1..pieces).rev() {
        strips.swap(place, (share() * (place + 1) as f64) as usize);
    }
    // Strips as long as the pieces need: each has its share of the rest before it.
    let rest = (used - file) / pieces as u64;
    let length = |piece: usize| {
        let end = firsts.get(piece + 1).copied().unwrap_or(file);
        end - firsts[piece]
    };
    let mut lies = vec![0; pieces];
    let mut end = 0;
    for piece in strips {
        let gap = (share() * rest as f64) as u64;
        lies[piece] = (end + gap) / CLUSTER * CLUSTER;
        end += rest + length(piece);
    }
    firsts.into_iter().zip(lies).collect()
}

impl Drive for Fragmented {
    fn duplicate(&self) -> Box<dyn Drive> {
        Box::new(Self {
            below: self.below.duplicate(),
            file: self.file,
            pieces: self.pieces.clone(),
            parts: self.parts.clone(),
            requests: self.requests.clone(),
            next: self.next,
        })
    }

    fn capacity(&self) -> u64 {
        self.file
    }

    fn discard_granularity(&self) -> Option<u32> {
        self.below.discard_granularity()
    }

    fn submit(&mut self, demand: Demand) {
        let end = demand.offset + demand.bytes;
        assert!(end <= self.file, "within the file");
        let parts = self.split(&demand);
        self.requests
            .insert(demand.tag, (demand, parts.len() as u32, 0));
        for (offset, bytes) in parts {
            let tag = self.next;
            self.next += 1;
            self.parts.insert(tag, demand.tag);
            self.below.submit(Demand {
                tag,
                offset,
                bytes,
                ..demand
            });
        }
    }

    fn hold(&mut self, until: u64) {
        self.below.hold(until);
    }

    fn next_start(&self) -> Option<u64> {
        self.below.next_start()
    }

    /// Parts are served until a request has no more of them.
    fn serve(&mut self) -> Option<(Demand, u64)> {
        loop {
            let (part, done) = self.below.serve()?;
            let tag = self.parts.remove(&part.tag)?;
            let (demand, left, last) = self.requests.get_mut(&tag)?;
            *left -= 1;
            *last = done.max(*last);
            if *left == 0 {
                let whole = (*demand, *last);
                self.requests.remove(&tag);
                return Some(whole);
            }
        }
    }

    fn utilisation(&self, end: u64) -> f64 {
        self.below.utilisation(end)
    }
}
