//! [`Asked`]: what a job of fio was asked to do, by its options.
//!
//! | field | option | if it is absent |
//! |---|---|---|
//! | pattern | `rw`, `readwrite` | unknown |
//! | block size | `bs`, `blocksize`; none of `bssplit`, `bsrange` | 4 KiB |
//! | queue depth | `iodepth`, of engines that keep several requests in flight | 1 |
//! | threads | `numjobs` | 1 |
//! | engine | `ioengine` | unknown, because it depends on the system |
//! | page cache | `direct`, `buffered`, of engines that may use it | used |
//! | size | `size`, `filesize`, `io_size` | unknown |
//! | all others that change the work | as they are written | not asked for |
//!
//! If a result has no options at all, all of it is unknown. A value that fio understands and this
//! module does not is unknown.

use std::collections::BTreeMap;

/// Options by their names.
pub(super) type Options = BTreeMap<String, String>;

/// What the options of a job and the global ones say together.
pub(super) struct Asked<'a> {
    own: &'a Options,
    global: &'a Options,
}

/// Engines that keep one request in flight, whatever queue depth the job states.
const ONE_AT_A_TIME: [&str; 7] = [
    "sync",
    "psync",
    "vsync",
    "pvsync",
    "pvsync2",
    "mmap",
    "ftruncate",
];

/// Engines of which `direct` says whether they go through the page cache.
const CACHED: [&str; 10] = [
    "sync",
    "psync",
    "vsync",
    "pvsync",
    "pvsync2",
    "libaio",
    "posixaio",
    "io_uring",
    "splice",
    "windowsaio",
];

/// Options that stand in a field of their own, name things, or bound the measurement.
const NO_OTHER_WORK: &[&str] = &[
    "allrandrepeat",
    "blocksize",
    "bs",
    "buffered",
    "clat_percentiles",
    "clientname",
    "clustername",
    "description",
    "direct",
    "directory",
    "disk_util",
    "eta",
    "exitall",
    "filename",
    "filename_format",
    "filesize",
    "group_reporting",
    "gtod_cpu",
    "gtod_reduce",
    "io_size",
    "iodepth",
    "ioengine",
    "lat_percentiles",
    "loops",
    "minimal",
    "name",
    "new_group",
    "numjobs",
    "output",
    "output-format",
    "percentile_list",
    "pool",
    "ramp_time",
    "randrepeat",
    "randseed",
    "rbdname",
    "readwrite",
    "runtime",
    "rw",
    "size",
    "slat_percentiles",
    "startdelay",
    "status-interval",
    "stonewall",
    "thread",
    "time_based",
    "timeout",
    "unified_rw_reporting",
    "uri",
    "wait_for",
];

impl<'a> Asked<'a> {
    pub(super) const fn new(own: &'a Options, global: &'a Options) -> Self {
        Self { own, global }
    }

    fn is_unknown(&self) -> bool {
        self.own.is_empty() && self.global.is_empty()
    }

    /// The value of the first of these names that is given.
    fn option(&self, names: &[&str]) -> Option<&'a str> {
        let of = |options: &'a Options| names.iter().find_map(|name| options.get(*name));
        of(self.own).or_else(|| of(self.global)).map(String::as_str)
    }

    fn integer(&self, name: &str, default: u64) -> Option<u64> {
        match self.option(&[name]) {
            None => (!self.is_unknown()).then_some(default),
            Some(text) => self.number(text),
        }
    }

    /// A number with its suffix. What a suffix stands for depends on where `kb_base` was written,
    /// which a result does not say.
    fn number(&self, text: &str) -> Option<u64> {
        let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
        match is_plain || self.option(&["kb_base"]).is_none() {
            true => integer(text),
            false => None,
        }
    }

    fn is(&self, name: &str) -> Option<bool> {
        match self.option(&[name])? {
            "true" => Some(true),
            "false" => Some(false),
            text => integer(text).map(|number| number != 0),
        }
    }

    /// `read`, `randread`, `write`, `randrw`, …
    pub(super) fn pattern(&self) -> Option<&'a str> {
        let pattern = self.option(&["rw", "readwrite"])?;
        Some(pattern.split(':').next().unwrap_or(pattern))
    }

    /// The size of the requests of this kind, if all have the same one.
    pub(super) fn block_bytes(&self, op: &str) -> Option<u64> {
        if self.is_unknown()
            || self
                .option(&["bssplit", "bsrange", "bs_unaligned"])
                .is_some()
        {
            return None;
        }
        let Some(text) = self.option(&["bs", "blocksize"]) else {
            return Some(4096);
        };
        let sizes = text.split(',').map(|size| match size {
            "" => Some(4096),
            size => self.number(size),
        });
        let sizes: Vec<Option<u64>> = sizes.collect();
        // One size is for all, and one that is left out at the end is that of the one before it.
        let of = |place: usize| sizes.get(place).or(sizes.last()).copied().flatten();
        let size = match op {
            "read" => of(0),
            "write" => of(1),
            "trim" => of(2),
            _ => of(0).filter(|size| of(1) == Some(*size)),
        };
        size.filter(|size| *size > 0)
    }

    pub(super) fn engine(&self) -> Option<&'a str> {
        let engine = self.option(&["ioengine"])?;
        Some(match engine {
            "linuxaio" => "libaio",
            engine => engine,
        })
    }

    pub(super) fn queue_depth(&self) -> Option<u32> {
        let depth = self.integer("iodepth", 1)?.try_into().ok();
        match self.engine() {
            Some(engine) if ONE_AT_A_TIME.contains(&engine) => Some(1),
            Some(_) => depth,
            // On one system it is psync, and on another windowsaio.
            None => depth.filter(|depth| *depth == 1),
        }
    }

    pub(super) fn threads(&self) -> Option<u32> {
        self.integer("numjobs", 1)?.try_into().ok()
    }

    pub(super) fn is_grouped(&self) -> bool {
        self.option(&["group_reporting"])
            .is_some_and(|value| !matches!(value, "0" | "false"))
    }

    /// `direct`, `buffered`, `unknown`.
    pub(super) fn cache(&self) -> &'static str {
        let engine = self.engine();
        if engine == Some("mmap") {
            return "buffered";
        }
        if self.is_unknown() || engine.is_some_and(|engine| !CACHED.contains(&engine)) {
            return "unknown";
        }
        let (direct, buffered) = (self.option(&["direct"]), self.option(&["buffered"]));
        let is_direct = match (direct, buffered) {
            (None, None) => Some(false),
            (Some(_), _) => self.is("direct"),
            (None, Some(_)) => self.is("buffered").map(|is| !is),
        };
        match is_direct {
            Some(true) => "direct",
            Some(false) => "buffered",
            None => "unknown",
        }
    }

    /// Bytes of the file or the part of a device that a job works on.
    pub(super) fn size(&self) -> Option<u64> {
        let size = self.option(&["io_size", "size", "filesize"])?;
        self.number(size)
    }

    /// Whether what is read was written before by the same job, to be compared.
    pub(super) fn verifies(&self) -> bool {
        self.option(&["verify"])
            .is_some_and(|kind| !matches!(kind, "0" | "null"))
    }

    /// The file or directory that the job worked on, if its own options state it.
    pub(super) fn file(&self) -> &'a str {
        let place = ["filename", "directory"].iter();
        place
            .filter_map(|name| self.own.get(*name))
            .map(String::as_str)
            .next()
            .unwrap_or("no file of its own")
    }

    /// What else was asked for: two jobs of one name that differ in it are two cells.
    pub(super) fn others(&self, name: &str) -> Vec<String> {
        let pattern = self.option(&["rw", "readwrite"]);
        let mut others: Vec<String> = pattern
            .filter(|pattern| *pattern != name)
            .map(str::to_owned)
            .into_iter()
            .collect();
        if let Some(sizes) = self.option(&["bs", "blocksize"])
            && sizes.contains(',')
        {
            others.push(format!("bs={sizes}"));
        }
        let mut all = self.global.clone();
        all.extend(self.own.clone());
        let is_work = |(name, _): &(&String, &String)| {
            !NO_OTHER_WORK.contains(&name.as_str())
                && !name.starts_with("write_")
                && !name.starts_with("log_")
        };
        others.extend(
            all.iter()
                .filter(is_work)
                .map(|(name, value)| match value.as_str() {
                    "" => name.clone(),
                    value => format!("{name}={value}"),
                }),
        );
        others
    }
}

/// fio's notation for integers: `32`, `0x20`, `4k`, `4kb`, `4ki`, `1m`. As fio has it, `kib` is 1000.
fn integer(text: &str) -> Option<u64> {
    let text = text.trim().to_ascii_lowercase();
    if let Some(digits) = text.strip_prefix("0x") {
        return u64::from_str_radix(digits, 16).ok();
    }
    let end = text.find(|sign: char| !sign.is_ascii_digit());
    let (digits, unit) = text.split_at(end.unwrap_or(text.len()));
    let number: u64 = digits.parse().ok()?;
    let (letter, step) = match unit.get(1..) {
        None => return Some(number),
        Some("ib") => (unit, 1000_u64),
        Some("" | "b" | "i") => (unit, 1024),
        Some(_) => return None,
    };
    let power = match &letter[..1] {
        "b" if unit == "b" => 0,
        "k" => 1,
        "m" => 2,
        "g" => 3,
        "t" => 4,
        "p" => 5,
        _ => return None,
    };
    number.checked_mul(step.checked_pow(power)?)
}
