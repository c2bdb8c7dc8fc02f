//! The four doors of the engine are asked about the same volumes: the crate for Rust, the program,
//! the library for C and the package for Python. They give the same answers in the same words.

#![cfg(target_os = "linux")]

extern crate volume as cryptmark_volume;

mod asked;
mod changed;
mod compared;
mod corpus;
mod damage;
mod door;
mod golden;
mod known;
mod laid;
mod made;
mod opened;
mod table;
mod words;

#[path = "../questions/states.rs"]
#[allow(dead_code, reason = "the program's own test uses more of it")]
mod states;

#[path = "../../crates/volume/tests/bitlk/maker.rs"]
#[allow(dead_code, reason = "other tests use more of it")]
mod bitlk_maker;
#[path = "../../crates/volume/tests/fvault2/maker.rs"]
#[allow(dead_code, reason = "other tests use more of it")]
mod fvault2_maker;
#[path = "../../crates/volume/tests/parts/maker.rs"]
#[allow(dead_code, reason = "other tests use more of it")]
mod parts_maker;

#[path = "../../crates/volume/tests/hostile/kit.rs"]
#[allow(dead_code, reason = "other tests use more of it")]
mod kit;
#[path = "../../crates/volume/tests/hostile/luks1.rs"]
mod luks1;
#[path = "../../crates/volume/tests/hostile/luks1_keyslots.rs"]
mod luks1_keyslots;
#[path = "../../crates/volume/tests/hostile/luks2_areas.rs"]
mod luks2_areas;
#[path = "../../crates/volume/tests/hostile/luks2_copies.rs"]
mod luks2_copies;
#[path = "../../crates/volume/tests/hostile/luks2_costs.rs"]
mod luks2_costs;
#[path = "../../crates/volume/tests/hostile/luks2_digests.rs"]
mod luks2_digests;
#[path = "../../crates/volume/tests/hostile/luks2_json.rs"]
mod luks2_json;
#[path = "../../crates/volume/tests/hostile/luks2_members.rs"]
mod luks2_members;
#[path = "../../crates/volume/tests/hostile/luks2_reencryption.rs"]
mod luks2_reencryption;
#[path = "../../crates/volume/tests/hostile/luks2_segments.rs"]
mod luks2_segments;

use compared::Compared;
use corpus::Case;
use opened::{Built, Doors};
use std::collections::BTreeSet;
use std::sync::Mutex;

fn hostile() -> Vec<kit::Case> {
    let all = [
        luks1::cases(),
        luks1_keyslots::cases(),
        luks2_copies::cases(),
        luks2_json::cases(),
        luks2_members::cases(),
        luks2_areas::cases(),
        luks2_digests::cases(),
        luks2_costs::cases(),
        luks2_costs::cases_of_all(),
        luks2_segments::cases(),
        luks2_reencryption::cases(),
    ];
    let opened = |case: &kit::Case| !matches!(case.attempt, kit::Attempt::Label);
    all.into_iter().flatten().filter(opened).collect()
}

/// The volumes that the environment names, or all of them.
fn chosen(cases: &[Case]) -> (Vec<&Case>, bool) {
    let named = std::env::var("CRYPTMARK_DOORS").unwrap_or_default();
    let cases = cases.iter().filter(|case| case.name.contains(&named));
    (cases.collect(), named.is_empty())
}

fn judge(compared: Mutex<Compared>, are_all: bool) {
    let compared = compared.into_inner().unwrap();
    println!("{:?}", compared.counts);
    let different = compared.different(are_all);
    assert!(
        different.is_empty(),
        "{} differ:\n{}",
        different.len(),
        different.join("\n")
    );
}

#[test]
fn every_door_gives_the_same_answer() {
    let built = Built::new();
    let cases = corpus::all(hostile());
    let (chosen, are_all) = chosen(&cases);
    println!("{} volumes", chosen.len());
    let compared = Mutex::new(Compared::knowing(known::OPENED));
    let refusals = everywhere(&built, &chosen, |doors, case| {
        compared::read(doors, case, &compared)
    });
    // What cannot be read is refused with the same words over and over.
    let mut seen = BTreeSet::new();
    let mut is_new = |refusal: Option<String>| refusal.is_none_or(|words| seen.insert(words));
    let written = chosen.iter().zip(refusals);
    let written = written.filter(|(case, _)| !case.is_costly);
    let written = written.filter_map(|(case, refusal)| is_new(refusal).then_some(*case));
    let written: Vec<&Case> = written.collect();
    everywhere(&built, &written, |doors, case| {
        compared::write(doors, case, &compared);
    });
    judge(compared, are_all);
}

#[test]
fn every_door_makes_and_refuses_the_same_changes() {
    let built = Built::new();
    let cases = corpus::to_change();
    let (chosen, are_all) = chosen(&cases);
    println!("{} volumes are changed", chosen.len());
    let compared = Mutex::new(Compared::knowing(known::CHANGED));
    everywhere(&built, &chosen, |doors, case| {
        compared::change(doors, case, &compared);
    });
    judge(compared, are_all);
}

/// Does `work` with each of `cases` on every core. The answers are in the order of the cases.
fn everywhere<T: Send>(
    built: &Built,
    cases: &[&Case],
    work: impl Fn(&mut Doors, &Case) -> T + Sync,
) -> Vec<T> {
    let next = Mutex::new(cases.iter().enumerate());
    let done = Mutex::new(Vec::new());
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    std::thread::scope(|scope| {
        // Doors wait for disks and for each other's ends.
        for _ in 0..2 * cores {
            scope.spawn(|| {
                let mut doors = Doors::open(built);
                while let Some((number, case)) = { next.lock().unwrap().next() } {
                    let answer = work(&mut doors, case);
                    done.lock().unwrap().push((number, answer));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap();
    done.sort_by_key(|(number, _)| *number);
    done.into_iter().map(|(_, answer)| answer).collect()
}
