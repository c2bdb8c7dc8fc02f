//! Bad volumes by name: each says what is wrong with it, and beside it stands
//! what the user is told. Some are odd only, and open.
//!
//! None of them panics, and none takes much memory or any time before it is
//! refused: the costs that some ask for would take hours.

mod kit;
mod luks1;
mod luks1_keyslots;
mod luks2_areas;
mod luks2_copies;
mod luks2_costs;
mod luks2_digests;
mod luks2_json;
mod luks2_members;
mod luks2_reencryption;
mod luks2_segments;

use kit::{Case, Expected, PLAINTEXT};
use peak_alloc::PeakAlloc;
use std::collections::BTreeSet;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// The most memory that opening any header may take, bytes, without that of its key derivation.
const MOST_MEMORY: usize = 64 << 20;

#[test]
fn bad_volumes_are_refused_and_odd_ones_open() {
    let cases: Vec<Case> = [
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
    ]
    .into_iter()
    .flatten()
    .collect();
    let names: BTreeSet<&str> = cases.iter().map(|case| case.name.as_str()).collect();
    assert_eq!(names.len(), cases.len(), "two volumes have the same name");

    let mut wrong = Vec::new();
    let (mut opened, mut refused) = (0, 0);
    for case in &cases {
        MEMORY.reset_peak_usage();
        let before = MEMORY.current_usage();
        let outcome = case.open();
        let taken = MEMORY.peak_usage().saturating_sub(before);
        assert!(taken < MOST_MEMORY, "{}: {taken} bytes", case.name);
        match (&outcome, &case.expected) {
            (Ok(plaintext), Expected::Opens) if *plaintext == PLAINTEXT => opened += 1,
            (Err(told), Expected::Refused(text, verdict)) if *told == (text.clone(), *verdict) => {
                refused += 1;
            }
            (Ok(_), _) => wrong.push(format!("{} opens", case.name)),
            (Err((text, verdict)), _) => {
                wrong.push(format!("{}\n    {text}\n    {verdict:?}", case.name));
            }
        }
    }
    assert!(wrong.is_empty(), "not as expected:\n{}", wrong.join("\n"));
    println!("{refused} volumes were refused, {opened} opened");
}
