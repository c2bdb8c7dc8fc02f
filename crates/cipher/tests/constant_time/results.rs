//! The results that stand in the repository, and what they allow to claim.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use crate::combination::Combination;
use crate::timing::LEAK;

/// The method that looks for branches and addresses that depend on a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    Valgrind,
    Trace,
}

impl Method {
    const ALL: [Self; 2] = [Self::Valgrind, Self::Trace];

    const fn name(self) -> &'static str {
        match self {
            Self::Valgrind => "valgrind",
            Self::Trace => "trace",
        }
    }
}

/// The finding for a combination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// No branch and no address depends on a secret.
    Clean(Method),
    /// Some do.
    Secret(Method),
    /// Nothing has looked, but for a clock.
    Unseen,
}

impl Flow {
    const UNSEEN: [&str; 2] = ["timing", "-"];

    /// The names of the method and of what it found.
    pub const fn names(self) -> [&'static str; 2] {
        match self {
            Self::Clean(method) => [method.name(), "clean"],
            Self::Secret(method) => [method.name(), "secret"],
            Self::Unseen => Self::UNSEEN,
        }
    }

    fn named(names: [&str; 2]) -> Option<Self> {
        let of_method = |method| [Self::Clean(method), Self::Secret(method)];
        let all = Method::ALL.into_iter().flat_map(of_method);
        all.chain([Self::Unseen]).find(|flow| flow.names() == names)
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
            (true, Flow::Secret(method)) => Some(format!(
                "claims constant time, and {} finds a branch or an address that depends on a \
                 secret",
                method.name()
            )),
            (true, Flow::Unseen) => Some(
                "claims constant time, and timing alone has looked, which does not see what \
                 tables do"
                    .to_owned(),
            ),
            (true, Flow::Clean(_)) if self.t > LEAK => Some(format!(
                "claims constant time, and |t| of {} is {:.1}, above {LEAK}",
                self.of, self.t
            )),
            (false, Flow::Clean(method)) if self.t <= LEAK => Some(format!(
                "does not claim constant time, and {} finds nothing that depends on a secret",
                method.name()
            )),
            _ => None,
        }
    }
}

const HEAD: &str = "#ciphers\tmode\tivs\tbackend\tmethod\tfound\tlargest t\tof\tdate";

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
    let [ciphers, mode, ivs, backend, method, found, t, of, date] = fields[..] else {
        return None;
    };
    let row = Combination {
        ciphers: ciphers.to_owned(),
        mode: mode.to_owned(),
        ivs: ivs.to_owned(),
        backend: backend.to_owned(),
    };
    let proof = Proof {
        flow: Flow::named([method, found])?,
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
        let [method, found] = flow.names();
        text += &format!(
            "{ciphers}\t{mode}\t{ivs}\t{backend}\t{method}\t{found}\t{t:.1}\t{of}\t{date}\n"
        );
    }
    fs::write(file(), text)
}

/// Checks that each finding agrees with a claim of constant time, with its absence, or with both.
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
    for method in Method::ALL {
        assert_eq!(bears(Flow::Clean(method), 3.0), [true, false]);
        assert_eq!(bears(Flow::Clean(method), 50.0), [false, true]);
        assert_eq!(bears(Flow::Secret(method), 3.0), [false, true]);
    }
    // A clock alone bears no claim, whatever it says.
    assert_eq!(bears(Flow::Unseen, 3.0), [false, true]);
    assert_eq!(bears(Flow::Unseen, 50.0), [false, true]);
}
