//! The numbers of a drive that measurements can determine, for tools that fit a preset to a real
//! drive.

use crate::DriveError;
use crate::hdd::HddPreset;
use crate::preset::Preset;
use bytesize::ByteSize;

/// The least milliseconds that a coefficient of a seek curve is taken for.
const LEAST_SEEK: f64 = 1e-3;

impl Preset {
    /// Numbers that show in how long requests take, by their names in TOML;
    /// `cache` is bytes. None of a flash chip.
    pub fn numbers(&self) -> Vec<(&'static str, f64)> {
        match self {
            Self::Ssd(ssd) => vec![
                ("read_us", ssd.read_us),
                ("program_us", ssd.program_us),
                ("channel_mb_s", ssd.channel_mb_s),
                ("interface_mb_s", ssd.interface_mb_s),
                ("command_us", ssd.command_us),
                ("cache", ssd.cache.as_u64() as f64),
            ],
            Self::Hdd(hdd) => vec![
                ("rpm", hdd.rpm),
                ("track_seek_ms", hdd.track_seek_ms),
                ("average_seek_ms", hdd.average_seek_ms),
                ("full_seek_ms", hdd.full_seek_ms),
                ("write_settle_ms", hdd.write_settle_ms),
                ("outer_mb_s", hdd.outer_mb_s),
                ("inner_mb_s", hdd.inner_mb_s),
                ("overhead_ms", hdd.overhead_ms),
            ],
            // A read or write waits for the chip or for the interface, and shows
            // one of them: its data sheet knows better.
            Self::Flash(_) => Vec::new(),
        }
    }

    /// The same numbers, in the same order, as a search can change each of them
    /// alone: of a disk's seeks, the coefficients of the curve. All above 0.
    pub fn knobs(&self) -> Vec<f64> {
        let mut knobs: Vec<f64> = self.numbers().iter().map(|(_, value)| *value).collect();
        if let Self::Hdd(hdd) = self {
            let (root, linear) = hdd.curve().expect("a preset was checked");
            (knobs[2], knobs[3]) = (root.max(LEAST_SEEK), linear.max(LEAST_SEEK));
        }
        knobs.iter().map(|knob| knob.max(LEAST_SEEK)).collect()
    }

    /// The same drive with other numbers, as [`knobs`](Self::knobs) orders them.
    ///
    /// # Errors
    /// [`DriveError::OutOfRange`] names the number.
    ///
    /// # Panics
    /// With another number of numbers.
    pub fn turned(&self, knobs: &[f64]) -> Result<Self, DriveError> {
        match self {
            Self::Ssd(ssd) => {
                let &[read, program, channel, interface, command, cache] = knobs else {
                    panic!("six numbers of an SSD");
                };
                let mut ssd = ssd.clone();
                ssd.read_us = read;
                ssd.program_us = program;
                ssd.channel_mb_s = channel;
                ssd.interface_mb_s = interface;
                ssd.command_us = command;
                ssd.cache = ByteSize::b(cache as u64);
                // Those of a data sheet are no limits of another drive.
                (ssd.read_iops, ssd.write_iops) = (None, None);
                ssd.checked().map(Self::Ssd)
            }
            Self::Hdd(hdd) => {
                let &[rpm, track, root, linear, settle, outer, inner, overhead] = knobs else {
                    panic!("eight numbers of a disk");
                };
                let disk = HddPreset {
                    rpm,
                    write_settle_ms: settle,
                    outer_mb_s: outer,
                    inner_mb_s: inner,
                    overhead_ms: overhead,
                    ..hdd.clone()
                };
                disk.with_curve(track, root, linear).map(Self::Hdd)
            }
            Self::Flash(_) => Ok(self.clone()),
        }
    }

    /// The same drive with another capacity; a chip has what it has.
    pub fn sized(mut self, capacity: u64) -> Self {
        match &mut self {
            Self::Ssd(ssd) => ssd.capacity = ByteSize::b(capacity),
            Self::Hdd(hdd) => hdd.capacity = ByteSize::b(capacity),
            Self::Flash(_) => {}
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knobs_turn_a_drive_into_itself() {
        for name in Preset::names() {
            let preset = Preset::named(name).expect(name);
            let same = preset.turned(&preset.knobs()).expect(name);
            for ((key, was), (_, is)) in preset.numbers().into_iter().zip(same.numbers()) {
                assert!(
                    (was - is).abs() <= 1e-3 * was + 1e-3,
                    "{name}: {key} {was} {is}"
                );
            }
        }
    }

    #[test]
    fn a_knob_changes_its_number() {
        for name in Preset::names() {
            let preset = Preset::named(name).expect(name);
            for place in 0..preset.knobs().len() {
                let mut knobs = preset.knobs();
                knobs[place] *= 1.5;
                let turned = preset.turned(&knobs).expect(name);
                assert_ne!(turned.numbers()[place], preset.numbers()[place], "{name}");
            }
        }
    }
}
