//! A random user: sequences of commands of this program and of cryptsetup on one
//! volume, some killed, some two at once, against a model of which secrets open
//! the volume and what it holds.
//!
//! After every step both programs accept the header, a secret of the model opens,
//! one that was removed does not, and no byte of the data differs.
//! `RANDOM_USER_STEPS` makes it longer (10000 is the long form), `RANDOM_USER_SEED`
//! repeats a run.

mod lab;
mod luks;
mod user;
mod veracrypt;

use user::User;

/// Steps of all formats together in the short form.
const STEPS: u64 = 300;

fn setting(name: &str, default: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) => text.parse().unwrap(),
        Err(_) => default,
    }
}

/// The steps of one of the three formats, in volumes of some tens of steps each.
fn live(format: u64, mut one: impl FnMut(&mut User, u64)) {
    const LIFE: u64 = 25;
    if std::process::Command::new("cryptsetup").output().is_err() {
        println!("skipped: the random user: no cryptsetup");
        return;
    }
    let seed = setting("RANDOM_USER_SEED", 1);
    let mut left = setting("RANDOM_USER_STEPS", STEPS) / 3;
    for life in 0.. {
        let steps = left.min(LIFE);
        if steps == 0 {
            break;
        }
        let mut user = User::new(seed.wrapping_mul(1_000_003) + 3 * life + format);
        one(&mut user, steps);
        left -= steps;
    }
}

#[test]
fn luks1() {
    live(0, |user, steps| luks::live(user, "luks1", steps));
}

#[test]
fn luks2() {
    live(1, |user, steps| luks::live(user, "luks2", steps));
}

#[test]
fn veracrypt() {
    live(2, veracrypt::live);
}
