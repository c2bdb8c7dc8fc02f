//! LLVM's model of a processor, by `llvm-mca`.

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::{Command, Stdio};

use crate::packages::present;

/// Processors that are asked for.
pub struct Core {
    pub name: &'static str,
    /// LLVM's name.
    cpu: &'static str,
}

pub const CORES: &[Core] = &[
    Core {
        name: "Cortex-A53",
        cpu: "cortex-a53",
    },
    Core {
        name: "Cortex-A55",
        cpu: "cortex-a55",
    },
    Core {
        name: "Cortex-A72",
        cpu: "cortex-a72",
    },
    // LLVM takes a Cortex-A57 for the A76, whose pipelines are the N1's.
    Core {
        name: "Cortex-A76, Neoverse N1",
        cpu: "neoverse-n1",
    },
    Core {
        name: "Apple M1",
        cpu: "apple-m1",
    },
];

/// Processors that LLVM has a model of, by the first letters of their units' names.
const MODELLED: &[(&str, &str)] = &[
    ("A53", "Cortex-A53"),
    ("CortexA55", "Cortex-A55"),
    ("A57", "Cortex-A57"),
    ("N1", "Neoverse N1"),
    (CYCLONE, "Apple Cyclone (A7)"),
];

/// The model that takes each operation on two registers for one with a shift, which lasts twice
/// as long and has half of the units.
const CYCLONE: &str = "Cy";

/// The release of LLVM, which is a part of the programs' names. Debian has it beside an older
/// one without a model of the Neoverse N1.
const RELEASE: &str = "19";

/// Extensions that the models know of, besides those of every core.
const EXTENSIONS: &str = "-mattr=+aes,+sha2";

/// Instructions that are modelled of each path, in all of its passes together.
const INSTRUCTIONS: usize = 20_000;

/// Passes through a path, at least and at most.
const PASSES: (usize, usize) = (8, 2000);

/// The two programs of LLVM.
pub struct Mca {
    disassembler: String,
    modeller: String,
    /// The first letters of units in the model of each of [`CORES`].
    models: Vec<String>,
}

/// A path as text.
pub struct Assembly {
    text: String,
    instructions: usize,
}

impl Mca {
    pub fn find() -> Result<Self, String> {
        let [disassembler, modeller] =
            ["llvm-mc", "llvm-mca"].map(|name| format!("{name}-{RELEASE}"));
        let mut found = Self {
            disassembler,
            modeller,
            models: Vec::new(),
        };
        for program in [&found.disassembler, &found.modeller] {
            if !present(program) {
                return Err(format!("{program} is missing"));
            }
        }
        found.models = CORES
            .iter()
            .map(|core| found.units(core))
            .collect::<Result<_, _>>()?;
        Ok(found)
    }

    /// The first line in which the program says its version.
    pub fn version(&self) -> Result<String, String> {
        let said = super::output(Command::new(&self.modeller).arg("--version"))?;
        let line = said.lines().find(|line| line.contains("version"));
        Ok(line.unwrap_or_default().trim().to_owned())
    }

    /// Disassembles a path.
    pub fn assembly(&self, words: &[u32]) -> Result<Assembly, String> {
        let mut bytes = String::new();
        for word in words {
            let [a, b, c, d] = word.to_le_bytes();
            let _ = writeln!(bytes, "{a:#04x} {b:#04x} {c:#04x} {d:#04x}");
        }
        let options = ["--disassemble", "--triple=aarch64", EXTENSIONS];
        let listing = filter(&self.disassembler, &options, &bytes)?;
        let lines: Vec<&str> = listing
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty() && !line.starts_with('.'))
            .collect();
        if lines.len() != words.len() {
            return Err(format!(
                "{} disassembles {} of {} instructions",
                self.disassembler,
                lines.len(),
                words.len()
            ));
        }
        let mut text = String::new();
        for (i, line) in lines.iter().enumerate() {
            if i == 0 || !is_fused(lines[i - 1], line) {
                let _ = writeln!(text, "{}", without_call(line));
            }
        }
        Ok(Assembly {
            text,
            instructions: lines.len(),
        })
    }

    /// Cycles of one pass through a path that is repeated, on the `nth` of [`CORES`]; nothing if
    /// the core's model lacks one of the instructions.
    pub fn cycles(&self, nth: usize, assembly: &Assembly) -> Result<Option<f64>, String> {
        let passes = (INSTRUCTIONS / assembly.instructions).clamp(PASSES.0, PASSES.1);
        let iterations = format!("-iterations={passes}");
        let options = ["-resource-pressure=false", &iterations];
        let text = match self.models[nth] == CYCLONE {
            true => assembly.text.lines().map(without_shift).collect(),
            false => assembly.text.clone(),
        };
        let said = match self.model(&CORES[nth], &options, &text) {
            Err(error) if error.contains("unsupported instruction") => return Ok(None),
            said => said?,
        };
        let cycles: f64 = said
            .lines()
            .find_map(|line| line.strip_prefix("Total Cycles:")?.trim().parse().ok())
            .ok_or_else(|| format!("{} says: {said}", self.modeller))?;
        Ok(Some(cycles / passes as f64))
    }

    /// The processor whose model stands for the `nth` of [`CORES`].
    pub fn modelled(&self, nth: usize) -> &str {
        let letters = &self.models[nth];
        let known = MODELLED.iter().find(|(first, _)| first == letters);
        known.map_or(letters, |(_, name)| name)
    }

    /// The letters before `Unit` in the names of a model's units.
    fn units(&self, core: &Core) -> Result<String, String> {
        let said = self.model(core, &[], "nop\n")?;
        let unit = said.lines().find_map(|line| {
            let (_, unit) = line.split_once("] ")?;
            let (letters, _) = unit.split_once("Unit")?;
            Some(letters.trim_start_matches([' ', '-']).to_owned())
        });
        unit.ok_or_else(|| format!("{} has no model of {}", self.modeller, core.cpu))
    }

    fn model(&self, core: &Core, options: &[&str], text: &str) -> Result<String, String> {
        let cpu = format!("-mcpu={}", core.cpu);
        let all = [
            "-mtriple=aarch64",
            EXTENSIONS,
            "-instruction-info=false",
            &cpu,
        ];
        filter(&self.modeller, &[&all, options].concat(), text)
    }
}

/// An operation on two general registers as ADC, if it has no shift. [`CYCLONE`] has the true
/// time of that one.
fn without_shift(line: &str) -> String {
    let (name, operands) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let operands: Vec<&str> = operands.split(',').map(str::trim).collect();
    let is_general = |operand: &&str| {
        let number = operand.strip_prefix(['w', 'x']).unwrap_or_default();
        number == "zr" || number.parse::<u8>().is_ok()
    };
    let general = operands.iter().all(is_general);
    match (name, operands.as_slice()) {
        ("add" | "sub" | "and" | "orr" | "eor" | "bic" | "orn" | "eon", [to, one, other])
            if general =>
        {
            format!("adc {to}, {one}, {other}\n")
        }
        ("mov" | "mvn" | "neg", [to, from]) if general => format!("adc {to}, {from}, {from}\n"),
        _ => format!("{line}\n"),
    }
}

/// Whether the processors execute `second` together with `first`: AESMC or AESIMC on the register
/// of an AESE or AESD right before it. LLVM says so of all [`CORES`], and `llvm-mca` does not know.
fn is_fused(first: &str, second: &str) -> bool {
    let register = |line: &str, names: [&str; 2]| {
        let (name, operands) = line.split_once(char::is_whitespace)?;
        let (register, _) = operands.split_once(',')?;
        names.contains(&name).then(|| register.trim().to_owned())
    };
    let round = register(first, ["aese", "aesd"]);
    round.is_some() && round == register(second, ["aesmc", "aesimc"])
}

/// A call or a return as the branch that it is: `llvm-mca` takes a call for 100 cycles.
fn without_call(line: &str) -> String {
    let (name, operands) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    match name {
        "bl" => format!("b {operands}"),
        "blr" => format!("br {operands}"),
        "ret" => "br x30".to_owned(),
        _ => line.to_owned(),
    }
}

/// What a program prints when it reads `input`.
fn filter(program: &str, options: &[&str], input: &str) -> Result<String, String> {
    let failed = |error: std::io::Error| format!("{program}: {error}");
    let mut child = Command::new(program)
        .args(options)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    // The programs read all of their input before they print.
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(input.as_bytes()).map_err(failed)?;
    }
    let done = child.wait_with_output().map_err(failed)?;
    match done.status.success() {
        true => Ok(String::from_utf8_lossy(&done.stdout).into_owned()),
        false => Err(String::from_utf8_lossy(&done.stderr).into_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::{is_fused, without_call, without_shift};

    #[test]
    fn operations_without_a_shift_become_adc() {
        let lines = [
            "eor\tw0, w1, w2",
            "mov\tx0, xzr",
            "eor\tw0, w1, w2, lsl #3",
            "add\tx0, x1, #16",
            "eor\tv0.16b, v1.16b, v2.16b",
            "mov\tx29, sp",
        ];
        let expected = ["adc w0, w1, w2", "adc x0, xzr, xzr"];
        let same = lines[2..].iter().copied();
        let expected = expected
            .into_iter()
            .chain(same)
            .map(|line| format!("{line}\n"));
        assert!(lines.into_iter().map(without_shift).eq(expected));
    }

    #[test]
    fn a_round_is_fused_with_the_mix_of_its_own_columns_alone() {
        let round = "aese\tv0.16b, v16.16b";
        assert!(is_fused(round, "aesmc\tv0.16b, v0.16b"));
        assert!(!is_fused(round, "aesmc\tv1.16b, v1.16b"));
        assert!(!is_fused(round, "eor\tv0.16b, v0.16b, v1.16b"));
        assert!(!is_fused("nop", "ret"));
    }

    #[test]
    fn calls_and_returns_become_branches() {
        let lines = ["bl\t#64", "blr\tx3", "ret", "aese\tv0.16b, v1.16b"];
        let expected = ["b #64", "br x3", "br x30", "aese\tv0.16b, v1.16b"];
        assert_eq!(lines.map(without_call), expected);
    }
}
