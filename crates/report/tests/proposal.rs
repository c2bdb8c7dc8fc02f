//! A set-up is proposed by what its costs are known to be, not by their medians.

mod sample;

use cryptmark_report::proposal::{Flags, Format, Limit, Machine, Place, Proposal, propose};
use lab::record::{Run, Verdict};

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
        flags: None,
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

/// A run in which dm-crypt has these options, each with the ratios of its workloads.
fn with_options(rows: &[(Option<&str>, [f64; 3])]) -> Run {
    let mut run = sample::run();
    let mut own = run.trials.clone();
    own.retain(|trial| trial.system == "dm-crypt");
    run.trials.clear();
    for (options, ratios) in rows {
        for (trial, ratio) in own.iter().zip(ratios) {
            let mut trial = trial.clone();
            trial.backend = options.map(str::to_owned);
            trial.overhead.as_mut().unwrap().ratio = sample::interval(*ratio, 0.02);
            run.trials.push(trial);
        }
    }
    run
}

#[test]
fn flags_are_chosen_by_a_run_that_shows_them_to_pay() {
    const QUEUES: Option<&str> = Some("no_read_workqueue no_write_workqueue");
    const READS: Option<&str> = Some("no_read_workqueue");
    let bare = (None, [0.5; 3]);
    let queues = &["no-read-workqueue", "no-write-workqueue"][..];
    for (rows, names) in [
        (&[bare, (QUEUES, [0.5, 0.8, 0.5])][..], Some(queues)),
        // The one that gains most.
        (
            &[bare, (READS, [0.6; 3]), (QUEUES, [0.5, 0.8, 0.5])],
            Some(queues),
        ),
        // It costs something elsewhere, or nothing is certain.
        (
            &[bare, (READS, [0.6; 3]), (QUEUES, [0.9, 0.8, 0.4])],
            Some(&queues[..1]),
        ),
        (&[bare, (QUEUES, [0.51; 3])], Some(&[])),
        // Other options are no flags, and without a row beside it nothing is shown.
        (&[bare, (Some("allow_discards"), [0.9; 3])], None),
        (&[(QUEUES, [0.9; 3])], None),
        (&[bare], None),
    ] {
        let run = with_options(rows);
        let device = run.trials[0].device.clone();
        let shown = Flags::shown(&run, &device);
        assert_eq!(shown.as_ref().map(|it| &*it.names), names, "{rows:?}");
        let text = shown.map(|it| it.reason).unwrap_or_default();
        let is_told = text.contains("at least") && text.contains(&run.run);
        assert_eq!(
            is_told,
            names.is_some_and(|names| !names.is_empty()),
            "{text}"
        );
        let mut other = device;
        other.model = Some("another".into());
        assert_eq!(Flags::shown(&run, &other), None);
    }
}
