//! The stored runs: JSON as `cryptmark run --json` writes it, compressed by zstd.

use serde_json::Value;
use std::path::Path;

const FOLDER: &str = "results";
const EXTENSION: &str = ".json.zst";
const CONSTANT_TIME: &str = "crates/cipher/constant_time.tsv";

/// What the page is made of.
#[derive(Default)]
pub(super) struct Runs {
    /// By name.
    runs: Vec<Run>,
    /// The findings of `cargo xtask constant-time`, a line a combination.
    pub(super) constant_time: String,
}

/// A run with the name of its file.
pub(super) struct Run {
    pub(super) name: String,
    pub(super) json: Value,
}

/// One cell of a run.
#[derive(Clone, Copy)]
pub(super) struct Trial<'a>(pub(super) &'a Value);

impl Runs {
    /// Reads `results/*.json.zst` and the findings on constant time below `root`.
    pub(super) fn read(root: &Path) -> Result<Self, String> {
        let folder = root.join(FOLDER);
        let entries = std::fs::read_dir(&folder).map_err(|e| format!("{FOLDER}: {e}"))?;
        let mut runs = Vec::new();
        for entry in entries {
            let entry = entry.map_err(|error| format!("{FOLDER}: {error}"))?;
            let file = entry.file_name().to_string_lossy().into_owned();
            let Some(name) = file.strip_suffix(EXTENSION) else {
                continue;
            };
            let json = json(&entry.path()).map_err(|error| format!("{FOLDER}/{file}: {error}"))?;
            let name = name.to_owned();
            runs.push(Run { name, json });
        }
        runs.sort_by(|a, b| a.name.cmp(&b.name));
        let constant_time = std::fs::read_to_string(root.join(CONSTANT_TIME))
            .map_err(|error| format!("{CONSTANT_TIME}: {error}"))?;
        Ok(Self {
            runs,
            constant_time,
        })
    }

    /// Runs by their names and JSON, for tests.
    #[cfg(test)]
    pub(super) fn of<const N: usize>(runs: [(&str, Value); N]) -> Self {
        let run = |(name, json): (&str, Value)| Run {
            name: name.to_owned(),
            json,
        };
        Self {
            runs: runs.map(run).into(),
            constant_time: String::new(),
        }
    }

    /// Every run, by name.
    pub(super) fn all(&self) -> &[Run] {
        &self.runs
    }

    /// The run of this name.
    pub(super) fn get(&self, name: &str) -> Option<&Run> {
        self.runs.iter().find(|run| run.name == name)
    }

    /// The runs of a CPU tier: `ciphers-TIER`, or its parts `ciphers-TIER.1`, `ciphers-TIER.2`.
    pub(super) fn tier(&self, tier: &str) -> impl Iterator<Item = &Run> {
        self.runs.iter().filter(move |run| run.tier() == Some(tier))
    }
}

fn json(path: &Path) -> Result<Value, String> {
    let packed = std::fs::File::open(path).map_err(|error| error.to_string())?;
    let text = zstd::decode_all(packed).map_err(|error| error.to_string())?;
    serde_json::from_slice(&text).map_err(|error| error.to_string())
}

impl Run {
    /// A value by its JSON pointer.
    pub(super) fn at(&self, pointer: &str) -> &Value {
        self.json.pointer(pointer).unwrap_or(&Value::Null)
    }

    /// Text by its JSON pointer; empty if it is absent.
    pub(super) fn text(&self, pointer: &str) -> &str {
        self.at(pointer).as_str().unwrap_or_default()
    }

    /// The CPU tier of a run of bare ciphers.
    pub(super) fn tier(&self) -> Option<&str> {
        let tier = self.name.strip_prefix("ciphers-")?;
        tier.split('.').next()
    }

    /// Its cells, without those that measure a system against itself.
    pub(super) fn trials(&self) -> impl Iterator<Item = Trial<'_>> + Clone {
        let trials = self.at("/trials").as_array().map(Vec::as_slice);
        let trials = trials.unwrap_or_default().iter().map(Trial);
        trials.filter(|trial| trial.against() != trial.text("/system"))
    }

    /// Whether its drives are simulated.
    pub(super) fn is_simulated(&self) -> bool {
        let mut trials = self.trials();
        trials.any(|trial| trial.text("/device/kind") == "simulated")
    }
}

impl<'a> Trial<'a> {
    /// Text by its JSON pointer; empty if it is absent.
    pub(super) fn text(self, pointer: &str) -> &'a str {
        let value = self.0.pointer(pointer).and_then(Value::as_str);
        value.unwrap_or_default()
    }

    /// A figure by its JSON pointer; NaN if it is absent.
    pub(super) fn figure(self, pointer: &str) -> f64 {
        let value = self.0.pointer(pointer).and_then(Value::as_f64);
        value.unwrap_or(f64::NAN)
    }

    /// A whole number by its JSON pointer; 0 if it is absent.
    pub(super) fn count(self, pointer: &str) -> u64 {
        let value = self.0.pointer(pointer).and_then(Value::as_u64);
        value.unwrap_or_default()
    }

    /// The system that it is compared with; empty if there is none.
    pub(super) fn against(self) -> &'a str {
        self.text("/overhead/against")
    }

    /// Its rate ÷ that of the system it is compared with.
    pub(super) fn ratio(self) -> f64 {
        self.figure("/overhead/ratio/median")
    }

    /// What can be said of that ratio: `faster`, `slower`, `not distinguishable`, `too few`.
    pub(super) fn verdict(self) -> &'a str {
        self.text("/overhead/verdict")
    }

    /// The cipher as people call it: `Serpent`.
    pub(super) fn cipher(self) -> String {
        let notation = self.text("/cipher");
        let name = notation.split('-').next().unwrap_or_default();
        match name {
            "aes" | "des" | "aria" | "sm4" | "cast5" => name.to_uppercase(),
            "des3_ede" => "3DES".to_owned(),
            "cast6" => "CAST-256".to_owned(),
            _ => {
                let (first, rest) = name.split_at(name.len().min(1));
                first.to_uppercase() + rest
            }
        }
    }

    /// The mode in dm-crypt's notation: `xts`.
    pub(super) fn mode(self) -> &'a str {
        self.text("/cipher").split('-').nth(1).unwrap_or_default()
    }
}
