//! Key derivations through a session: what is asked is measured and kept.

use cryptmark_lab::LabError;
use cryptmark_lab::experiment::Derivations;
use cryptmark_lab::record::{Run, Tier};
use cryptmark_lab::session::{Observer, Session, Visit};
use cryptmark_lab::system::unlock::{RECIPES, Recipe};
use std::sync::atomic::{AtomicBool, Ordering};

/// Recipes that take milliseconds.
fn cheap() -> Vec<Recipe> {
    let cheap = |recipe: &&Recipe| recipe.format == "truecrypt";
    RECIPES.iter().filter(cheap).take(2).copied().collect()
}

/// Counts its visits, and stops the session after a given number.
struct Watcher<'a> {
    visits: Vec<String>,
    kept: usize,
    stop_at: usize,
    stop: &'a AtomicBool,
}

impl Observer for Watcher<'_> {
    fn visiting(&mut self, visit: &Visit<'_>) {
        if self.visits.len() == self.stop_at {
            self.stop.store(true, Ordering::Relaxed);
        }
        self.visits
            .push(format!("{} {}", visit.workload, visit.label));
        assert_eq!(visit.done as usize + 1, self.visits.len());
    }

    fn keep(
        &mut self,
        run: &Run,
        changed: &[usize],
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        assert!(changed.iter().all(|&place| place < run.trials.len()));
        self.kept += changed.len();
        Ok(())
    }
}

fn measure(rounds: u32, stop_at: usize) -> (Run, Result<(), LabError>, Vec<String>, usize) {
    let stop = AtomicBool::new(false);
    let mut watcher = Watcher {
        visits: Vec::new(),
        kept: 0,
        stop_at,
        stop: &stop,
    };
    let text = format!("title = \"cheap\"\ntier = \"kdf\"\nrepetitions = {rounds}\n");
    let plan = Derivations::parse("kdf", &text).unwrap();
    let session = Session::of_derivations(&plan, &cheap(), 7, "id".to_owned()).unwrap();
    assert!(session.header().partial && session.header().plan == "kdf");
    let (run, outcome) = session.measure(&stop, &mut watcher);
    (run, outcome, watcher.visits, watcher.kept)
}

#[test]
fn every_recipe_is_unlocked_and_guessed_in_turns() {
    let (run, outcome, visits, kept) = measure(3, usize::MAX);
    outcome.unwrap();
    assert!(!run.partial);
    assert_eq!(visits.len(), 15);
    assert!(kept >= 5);
    // A B A, C D, each of them backwards, and again.
    assert_eq!(visits[0], visits[2]);
    assert_eq!((&visits[3], &visits[4]), (&visits[9], &visits[8]));
    assert_eq!(visits[..5], visits[10..]);

    assert_eq!(run.trials.len(), 5);
    for (trial, op) in run
        .trials
        .iter()
        .zip(["unlock", "guess", "unlock", "unlock", "guess"])
    {
        assert_eq!((trial.op.as_str(), trial.tier), (op, Tier::Cipher));
        assert_eq!(trial.format.as_deref(), Some("truecrypt"));
        let kdf = trial.kdf().unwrap();
        assert_eq!((kdf.name.as_str(), kdf.iterations), ("pbkdf2", 1000));
        assert_eq!((trial.repetitions, trial.iops.n), (3, 3));
        let requests = trial.requests.zip(trial.block_bytes);
        assert_eq!(
            trial.bytes,
            requests.map(|(requests, bytes)| requests * bytes)
        );
        assert!(trial.median_us() > Some(0.0) && trial.iops.median > 0.0);
        let cores = match op {
            "guess" => run.host.cores,
            _ => 1,
        };
        assert_eq!(trial.threads, Some(cores));
    }
    // A guess stops at the key of one cipher, an unlock derives them all.
    assert_eq!(run.trials[0].block_bytes, Some(192));
    assert_eq!(run.trials[1].block_bytes, Some(64));
    assert!(run.noise.aa_ratio.is_some_and(|aa| aa.n == 3));
    let again = run.trials[2].overhead.as_ref().unwrap();
    assert_eq!(again.against, run.trials[0].system);
}

#[test]
fn what_was_measured_before_an_interruption_is_kept() {
    let (run, outcome, _, kept) = measure(3, 4);
    assert!(outcome.unwrap_err().is_interrupted());
    assert!(run.partial);
    assert_eq!((run.trials.len(), kept), (3, 3));
}
