//! The results that stand in the repository, and what they allow to claim.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use crate::combination::Combination;
use crate::timing::LEAK;

/// What valgrind says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// No branch and no address depends on a secret.
    Clean,
    /// Some do.
    Secret,
    /// It cannot run the backend.
    Unseen,
}

impl Flow {
    const ALL: [Self; 3] = [Self::Clean, Self::Secret, Self::Unseen];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Clean => "clean",
            Self::Secret => "secret",
            Self::Unseen => "-",
        }
    }

    pub const fn of_errors(errors: Option<usize>) -> Self {
        match errors {
            Some(0) => Self::Clean,
            Some(_) => Self::Secret,
            None => Self::Unseen,
        }
    }
}

/// A row.
#[derive(Clone, Debug, PartialEq)]
pub struct Proof {
    pub flow: Flow,
    /// The largest |t|, and of what.
    pub t: f64,
    pub of: String,
    pub date: String,
}

impl Proof {
    /// Why a combination that was found so may not claim `constant_time`.
    pub fn refutation(&self, constant_time: bool) -> Option<String> {
        match (constant_time, self.flow) {
            (true, Flow::Secret) => Some(
                "claims constant time, and valgrind finds a branch or an address that depends on \
                 a secret"
                    .to_owned(),
            ),
            (true, _) if self.t > LEAK => Some(format!(
                "claims constant time, and |t| of {} is {:.1}, above {LEAK}",
                self.of, self.t
            )),
            (false, Flow::Clean) if self.t <= LEAK => Some(
                "does not claim constant time, and valgrind finds nothing that depends on a secret"
                    .to_owned(),
            ),
            _ => None,
        }
    }
}

const HEAD: &str = "#ciphers\tmode\tivs\tbackend\tvalgrind\tlargest t\tof\tdate";

/// Every row.
pub type Proofs = BTreeMap<Combination, Proof>;

fn file() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("constant_time.tsv")
}

/// Reads the file.
pub fn read() -> Proofs {
    let text = fs::read_to_string(file()).unwrap_or_default();
    text.lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| parsed(line).unwrap_or_else(|| panic!("constant_time.tsv: `{line}`")))
        .collect()
}

fn parsed(line: &str) -> Option<(Combination, Proof)> {
    let fields: Vec<&str> = line.split('\t').collect();
    let [ciphers, mode, ivs, backend, flow, t, of, date] = fields[..] else {
        return None;
    };
    let row = Combination {
        ciphers: ciphers.to_owned(),
        mode: mode.to_owned(),
        ivs: ivs.to_owned(),
        backend: backend.to_owned(),
    };
    let proof = Proof {
        flow: Flow::ALL.into_iter().find(|known| known.name() == flow)?,
        t: t.parse().ok()?,
        of: of.to_owned(),
        date: date.to_owned(),
    };
    Some((row, proof))
}

/// Writes the file.
pub fn write(proofs: &Proofs) -> std::io::Result<()> {
    let mut text = format!("{HEAD}\n");
    for (row, proof) in proofs {
        let Combination {
            ciphers,
            mode,
            ivs,
            backend,
        } = row;
        let Proof { flow, t, of, date } = proof;
        let flow = flow.name();
        text += &format!("{ciphers}\t{mode}\t{ivs}\t{backend}\t{flow}\t{t:.1}\t{of}\t{date}\n");
    }
    fs::write(file(), text)
}

/// What each finding bears: a claim of constant time, its absence, both.
pub fn false_claims_are_refuted() {
    let bears = |flow, t| {
        let proof = Proof {
            flow,
            t,
            of: "key setup".to_owned(),
            date: "2026-11-21".to_owned(),
        };
        [true, false].map(|claim| proof.refutation(claim).is_none())
    };
    assert_eq!(bears(Flow::Clean, 3.0), [true, false]);
    assert_eq!(bears(Flow::Clean, 50.0), [false, true]);
    assert_eq!(bears(Flow::Secret, 3.0), [false, true]);
    assert_eq!(bears(Flow::Unseen, 3.0), [true, true]);
    assert_eq!(bears(Flow::Unseen, 50.0), [false, true]);
}
