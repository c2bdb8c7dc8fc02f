//! How far a [`Plan`] has come, as the segments of the header say it: read from them, and written
//! as them.

use super::{Direction, Mode, Plan, Progress, Window};
use crate::VolumeError;
use crate::luks2::create::crypt_json;
use crate::luks2::metadata::{Segment, SegmentKind};
use crate::luks2::read::Header;
use serde_json::{Value, json};

/// The flag of the segment that is being worked on.
const HOT: &str = "in-reencryption";

/// The state of a part of the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::luks2::reencrypt) enum Kind {
    Old,
    New,
    Hot,
    Moved,
}

/// A part of the data, in the order of the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::luks2::reencrypt) struct Run {
    pub(in crate::luks2::reencrypt) kind: Kind,
    pub(in crate::luks2::reencrypt) window: Window,
}

impl Plan {
    /// The parts of the data.
    pub(in crate::luks2::reencrypt) fn runs(&self, progress: Progress) -> Vec<Run> {
        let moved = self.moved_length();
        let (hot, edge) = match progress {
            Progress::Done => return vec![run(Kind::New, 0, self.length)],
            Progress::Edge(edge) => (None, edge),
            Progress::Hot(window) => (Some(window), self.last_edge()),
        };
        let first = match hot {
            Some(window) if self.is_moved(window) => Kind::Hot,
            _ => Kind::Moved,
        };
        let hot = hot.filter(|window| !self.is_moved(*window));
        let (from, to) = hot.map_or((edge, edge), |window| (window.from, window.to));
        let (before, behind) = match self.direction {
            Direction::Forward => (Kind::New, Kind::Old),
            Direction::Backward => (Kind::Old, Kind::New),
        };
        let runs = [
            run(first, 0, moved),
            run(before, moved, from),
            run(Kind::Hot, from, to),
            run(behind, to, self.length),
        ];
        let mut runs = runs.to_vec();
        runs.retain(|run| run.window.from < run.window.to);
        runs
    }

    /// How far the header says that it has come. Its segments must be those that
    /// [`segments`](Self::segments) makes for that.
    pub(in crate::luks2::reencrypt) fn progress(
        &self,
        header: &Header,
    ) -> Result<Progress, VolumeError> {
        let regular: Vec<&Segment> = header.regular_segments().collect();
        let mut windows = Vec::new();
        let mut from = 0_u64;
        for segment in &regular {
            let to = match segment.size {
                Some(size) => from.saturating_add(size).min(self.length),
                None => self.length,
            };
            windows.push(Window { from, to });
            from = to;
        }
        let hot = regular.iter().position(|segment| is_hot(segment));
        let progress = match hot {
            Some(at) => Progress::Hot(match at {
                0 if self.moved.is_some() => Window {
                    from: 0,
                    to: self.moved_length(),
                },
                _ => windows[at],
            }),
            None if regular.len() == 1 && self.is_new(header, regular[0]) => Progress::Done,
            None => {
                let first = usize::from(self.moved.is_some());
                let untouched = match self.direction {
                    Direction::Forward => self.moved_length(),
                    Direction::Backward => self.length,
                };
                let split = (windows.len() - first.min(windows.len())) == 2;
                match (windows.get(first), regular.get(first)) {
                    (Some(window), Some(_)) if split => Progress::Edge(window.to),
                    // All behind what was moved is new already.
                    (Some(_), Some(segment))
                        if self.moved.is_some() && self.is_new_kind(segment) =>
                    {
                        Progress::Edge(self.last_edge())
                    }
                    _ => Progress::Edge(untouched),
                }
            }
        };
        let runs = self.runs(progress);
        let same = runs.len() == regular.len()
            && runs
                .iter()
                .zip(&regular)
                .all(|(run, segment)| self.is_run(run, segment));
        let possible = match progress {
            Progress::Hot(window) => self.is_possible(window),
            Progress::Edge(edge) => edge.is_multiple_of(self.unit),
            Progress::Done => true,
        };
        match same && possible {
            true => Ok(progress),
            false => Err(VolumeError::ForeignReencryption),
        }
    }

    /// Whether a hot window can have been protected.
    fn is_possible(&self, window: Window) -> bool {
        let whole = window.from.is_multiple_of(self.unit) && window.to.is_multiple_of(self.unit);
        let most = match (self.is_moved(window), self.mode) {
            (true, Mode::Encrypt) => window.length(),
            _ => self.protection(window).capacity(self.shift()),
        };
        whole
            && window.from < window.to
            && window.length() <= most
            && window
                .length()
                .is_multiple_of(self.protection(window).block())
    }

    /// Whether the only segment is the new one.
    fn is_new(&self, header: &Header, segment: &Segment) -> bool {
        if self.mode != Mode::Reencrypt || self.old_digest == self.new_digest {
            return self.is_new_kind(segment) && segment.offset == self.last.offset;
        }
        let listed = |digest: Option<u32>| {
            let digest = digest.and_then(|number| header.metadata.digests.get(&number));
            let first = header.metadata.segments.keys().next();
            digest
                .zip(first)
                .is_some_and(|(digest, first)| digest.segments.contains(first))
        };
        listed(self.new_digest) && !listed(self.old_digest)
    }

    /// Whether it is encrypted as the new data, and not as the old.
    fn is_new_kind(&self, segment: &Segment) -> bool {
        let is = |like: &Segment| match (&segment.kind, &like.kind) {
            (SegmentKind::Linear, SegmentKind::Linear) => true,
            (SegmentKind::Crypt(own), SegmentKind::Crypt(like)) => {
                own.encryption == like.encryption && own.sector_size == like.sector_size
            }
            _ => false,
        };
        is(&self.last) && !is(&self.previous)
    }

    /// Whether a segment of the header is this part of the data.
    fn is_run(&self, run: &Run, segment: &Segment) -> bool {
        let mut kind = self.like(run.kind).kind.clone();
        if let SegmentKind::Crypt(crypt) = &mut kind {
            crypt.iv_tweak = crypt.iv_tweak.wrapping_add(run.window.from / 512);
        }
        let length = run.window.length();
        let size = match segment.size {
            // cryptsetup says the whole shift here, also of less data.
            Some(size) if run.kind == Kind::Hot && run.window.from == 0 => {
                size == length || (self.moved.is_some() && size == self.shift())
            }
            Some(size) => size == length,
            None => run.window.to == self.length,
        };
        segment.offset == self.place(run)
            && size
            && segment.kind == kind
            && is_hot(segment) == (run.kind == Kind::Hot)
    }

    /// The segment that tells how a part is encrypted.
    const fn like(&self, kind: Kind) -> &Segment {
        match kind {
            Kind::Old | Kind::Moved => &self.previous,
            Kind::New | Kind::Hot => &self.last,
        }
    }

    /// Where a part begins on the device.
    fn place(&self, run: &Run) -> u64 {
        match run.kind {
            Kind::Old | Kind::Moved => self.old_at(run.window.from),
            Kind::New | Kind::Hot => self.new_at(run.window.from),
        }
    }

    /// The segments of the header, and for each the digests that it belongs to.
    pub(in crate::luks2::reencrypt) fn segments(
        &self,
        progress: Progress,
    ) -> Vec<(Value, Vec<u32>)> {
        let segments = self.runs(progress).into_iter().map(|run| {
            let dynamic = !self.fixed
                && run.window.to == self.length
                && matches!(run.kind, Kind::Old | Kind::New);
            let size = match dynamic {
                true => "dynamic".to_owned(),
                false => run.window.length().to_string(),
            };
            let place = self.place(&run).to_string();
            let mut segment = match &self.like(run.kind).kind {
                SegmentKind::Linear => json!({ "type": "linear", "offset": place, "size": size }),
                SegmentKind::Other { kind, .. } => {
                    json!({ "type": kind, "offset": place, "size": size })
                }
                SegmentKind::Crypt(crypt) => {
                    let iv_tweak = crypt.iv_tweak.wrapping_add(run.window.from / 512);
                    let cipher = (crypt.encryption.clone(), crypt.sector_size.bytes());
                    crypt_json(self.place(&run), size.into(), iv_tweak, cipher)
                }
            };
            if run.kind == Kind::Hot {
                segment["flags"] = json!([HOT]);
            }
            let digests = match run.kind {
                Kind::Old | Kind::Moved => vec![self.old_digest],
                Kind::New => vec![self.new_digest],
                Kind::Hot => vec![self.old_digest, self.new_digest],
            };
            let mut digests: Vec<u32> = digests.into_iter().flatten().collect();
            // Data that are not encrypted have no key, even while they are being decrypted.
            if self.like(run.kind).kind == SegmentKind::Linear {
                digests.clear();
            }
            digests.dedup();
            (segment, digests)
        });
        segments.collect()
    }
}

const fn run(kind: Kind, from: u64, to: u64) -> Run {
    Run {
        kind,
        window: Window { from, to },
    }
}

fn is_hot(segment: &Segment) -> bool {
    segment.flags.iter().any(|flag| flag == HOT)
}
