//! Names and seeds of new runs.

use std::hash::{BuildHasher, Hasher, RandomState};

/// A name for a run that begins now. It is sortable by start time, to 15 µs, with a tail that tells
/// runs apart that thousands of hosts start in the same second.
pub fn new_id() -> String {
    let now = jiff::Timestamp::now();
    let mut tail = RandomState::new().build_hasher();
    tail.write_u64(seed_of_now());
    // In units of which a second has 65,536.
    let within = (u64::from(now.subsec_nanosecond().unsigned_abs()) << 16) / 1_000_000_000;
    format!(
        "{}-{within:04x}{:06x}",
        now.strftime("%Y%m%d-%H%M%S"),
        tail.finish() >> 40
    )
}

/// A seed for a run that was given none.
pub fn seed_of_now() -> u64 {
    jiff::Timestamp::now().as_nanosecond() as u64
}

#[cfg(test)]
mod tests {
    /// `latest` is the last of all by its name.
    #[test]
    fn runs_are_sorted_as_they_began() {
        let mut ids = Vec::new();
        for _ in 0..200 {
            ids.push(super::new_id());
            std::thread::sleep(std::time::Duration::from_micros(50));
        }
        assert!(ids.is_sorted_by(|a, b| a < b), "{ids:?}");
        assert!(ids.iter().all(|id| id.len() == 26), "{ids:?}");
    }
}
