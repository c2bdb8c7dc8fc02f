//! A set-up is proposed by what its costs are known to be, not by their medians.

mod sample;

use cryptmark_report::proposal::{Format, Limit, Machine, Place, Proposal, propose};
use lab::record::Verdict;

/// The proposal if AES and Twofish have these ratios in all workloads, `median` ± `arm`, and
/// Serpent has the lowest ones.
fn proposed(aes: (f64, f64, Verdict), twofish: (f64, f64, Verdict)) -> Proposal {
    let mut run = sample::run();
    for trial in &mut run.trials {
        let cipher = trial.cipher.clone().unwrap_or_default();
        let (median, arm, verdict) = match cipher.split('-').next() {
            Some("aes") => aes,
            Some("twofish") => twofish,
            _ => (0.5, 0.01, Verdict::Slower),
        };
        if let Some(overhead) = trial.overhead.as_mut().filter(|_| !cipher.is_empty()) {
            overhead.ratio = sample::interval(median, arm);
            overhead.verdict = verdict;
        }
    }
    let machine = Machine {
        rates: Vec::new(),
        flash: None,
        discards: None,
        physical_block: None,
        beside: Vec::new(),
        argon2: Some((1 << 20, 4)),
        place: Place::Elsewhere,
    };
    propose(&run, &machine, Format::Luks2).unwrap()
}

#[test]
fn what_is_open_does_not_keep_up_with_the_disk() {
    let open = (0.94, 0.6, Verdict::NotDistinguishable);
    let proposal = proposed(open, (0.8, 0.01, Verdict::Slower));
    assert_eq!(proposal.limit, Limit::Open);
    assert_eq!(proposal.setup.cipher, "aes-xts-plain64");
    assert!(
        proposal.answer.contains("at most 62 %") && proposal.answer.contains("could not decide"),
        "{}",
        proposal.answer
    );
}

#[test]
fn the_preferred_cipher_is_proposed_while_it_may_cost_hardly_more() {
    let keeps_up = (0.98, 0.01, Verdict::Slower);
    let near = proposed((0.95, 0.01, Verdict::Slower), keeps_up);
    assert_eq!(near.setup.cipher, "aes-xts-plain64", "{}", near.answer);
    let far = proposed((0.9, 0.01, Verdict::Slower), keeps_up);
    assert_eq!(far.setup.cipher, "twofish-xts-plain64", "{}", far.answer);
    assert_eq!(far.limit, Limit::Chosen);
    let all = proposed((0.9, 0.01, Verdict::Slower), (0.9, 0.01, Verdict::Slower));
    assert_eq!(all.limit, Limit::Cipher);
    assert!(
        all.answer.starts_with("Your disk is faster than all"),
        "{}",
        all.answer
    );
}
