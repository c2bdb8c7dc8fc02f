//! What a program for aarch64 executes, by QEMU's log.
//!
//! QEMU translates a program in blocks of instructions without a branch inside. Its log has each
//! block once, and a line each time a block is executed.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path as FilePath, PathBuf};
use std::process::{Command, Stdio};

use crate::emulated::AARCH64;

/// The core that QEMU imitates. It has AES and PMULL, and none of the later extensions that some
/// libraries look for, so every core is modelled with the same instructions.
const CPU: &str = "cortex-a72";

/// Blocks belong to one path if they follow each other in this share of all cases.
const ALWAYS: f64 = 0.99;

/// A program for aarch64. Its second write to the standard output ends what is traced, and its
/// first begins it.
pub struct Program {
    file: PathBuf,
    pub arguments: Vec<String>,
    pub environment: Vec<String>,
}

/// What was executed between the two writes.
pub struct Trace {
    pub instructions: u64,
    /// The heaviest first.
    pub paths: Vec<Path>,
    /// What the program printed.
    pub output: String,
}

/// Instructions that are executed one after another.
#[derive(Debug, PartialEq, Eq)]
pub struct Path {
    /// Their encodings.
    pub words: Vec<u32>,
    /// How many were executed in all passes.
    pub instructions: u64,
}

impl Program {
    pub fn new(file: &FilePath) -> Self {
        Self {
            file: file.to_owned(),
            arguments: Vec::new(),
            environment: Vec::new(),
        }
    }

    /// Runs the program and follows it.
    pub fn trace(&self) -> Result<Trace, String> {
        let failed = |error: std::io::Error| format!("{}: {error}", self.file.display());
        let mut command = Command::new(AARCH64.emulator);
        command
            .args(["-L", &AARCH64.system(), "-cpu", CPU])
            .args(["-d", "in_asm,exec,nochain,strace"]);
        for variable in &self.environment {
            command.args(["-E", variable]);
        }
        let mut child = command
            .arg(&self.file)
            .args(&self.arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(failed)?;
        let mut log = Log::default();
        if let Some(stream) = child.stderr.take() {
            log.read(BufReader::new(stream))?;
        }
        let mut output = String::new();
        if let Some(mut stream) = child.stdout.take() {
            stream.read_to_string(&mut output).map_err(failed)?;
        }
        if !child.wait().map_err(failed)?.success() {
            let arguments = self.arguments.join(" ");
            return Err(format!("{} {arguments} failed", self.file.display()));
        }
        Ok(Trace {
            instructions: log.instructions(),
            paths: log.paths(),
            output,
        })
    }
}

/// What has been read of QEMU's log.
#[derive(Default)]
struct Log {
    /// Encodings by the address of the first.
    blocks: BTreeMap<u64, Vec<u32>>,
    /// The block whose instructions are being listed.
    listed: Option<u64>,
    writes: usize,
    executed: BTreeMap<u64, u64>,
    /// How often a block came after another.
    followed: BTreeMap<(u64, u64), u64>,
    last: Option<u64>,
}

impl Log {
    fn read(&mut self, mut stream: impl BufRead) -> Result<(), String> {
        let mut line = Vec::new();
        loop {
            line.clear();
            match stream.read_until(b'\n', &mut line) {
                Ok(0) => return Ok(()),
                Ok(_) => self.line(&String::from_utf8_lossy(&line))?,
                Err(error) => return Err(format!("QEMU's log: {error}")),
            }
        }
    }

    fn line(&mut self, line: &str) -> Result<(), String> {
        let understood = if line.starts_with("Trace ") {
            self.execution(line)
        } else if line.starts_with("0x") {
            self.instruction(line)
        } else {
            self.listed = None;
            self.writes += usize::from(line.contains(" write(1,"));
            Some(())
        };
        understood.ok_or_else(|| format!("QEMU's log: {}", line.trim()))
    }

    /// `0x550001ac40:  d503201f  nop`
    fn instruction(&mut self, line: &str) -> Option<()> {
        let (address, rest) = line.strip_prefix("0x")?.split_once(':')?;
        let address = u64::from_str_radix(address, 16).ok()?;
        let word = u32::from_str_radix(rest.split_whitespace().next()?, 16).ok()?;
        let first = *self.listed.get_or_insert(address);
        let block = self.blocks.entry(first).or_default();
        if address == first {
            block.clear();
        }
        block.push(word);
        (address == first + 4 * (block.len() as u64 - 1)).then_some(())
    }

    /// `Trace 0: 0x7f4830000100 [0000000000001001/000000550001ac40/00000001/00000200]`
    fn execution(&mut self, line: &str) -> Option<()> {
        if self.writes != 1 {
            return Some(());
        }
        let address = line.split('[').nth(1)?.split('/').nth(1)?;
        let address = u64::from_str_radix(address, 16).ok()?;
        *self.executed.entry(address).or_default() += 1;
        if let Some(last) = self.last.replace(address) {
            *self.followed.entry((last, address)).or_default() += 1;
        }
        Some(())
    }

    fn instructions(&self) -> u64 {
        self.executed.keys().map(|&block| self.weight(block)).sum()
    }

    /// Instructions that were executed in a block.
    fn weight(&self, block: u64) -> u64 {
        let length = self.blocks.get(&block).map_or(0, Vec::len);
        self.executed[&block] * length as u64
    }

    /// Joins blocks that always follow each other.
    fn paths(&self) -> Vec<Path> {
        let always = |times: u64, block: u64| times as f64 >= ALWAYS * self.executed[&block] as f64;
        let next: BTreeMap<u64, u64> = self
            .followed
            .iter()
            .filter(|&(&(from, to), &times)| always(times, from) && always(times, to))
            .map(|(&edge, _)| edge)
            .collect();
        let followers: BTreeSet<u64> = next.values().copied().collect();
        // Every path begins where no other leads. What remains then are loops.
        let (inner, heads): (Vec<u64>, Vec<u64>) = self
            .executed
            .keys()
            .copied()
            .partition(|block| followers.contains(block));
        let mut left: BTreeSet<u64> = self.executed.keys().copied().collect();
        let mut paths = Vec::new();
        for head in heads.into_iter().chain(inner) {
            let mut path = Path {
                words: Vec::new(),
                instructions: 0,
            };
            let mut at = Some(head);
            while let Some(block) = at.filter(|block| left.remove(block)) {
                path.words
                    .extend(self.blocks.get(&block).into_iter().flatten());
                path.instructions += self.weight(block);
                at = next.get(&block).copied();
            }
            if !path.words.is_empty() {
                paths.push(path);
            }
        }
        paths.sort_by_key(|path| std::cmp::Reverse(path.instructions));
        paths
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(address: u64, words: &[u32]) -> String {
        let lines = words.iter().enumerate().map(|(i, word)| {
            let address = address + 4 * i as u64;
            format!("0x{address:x}:  {word:08x}  nop\n")
        });
        format!("----\nIN: \n{}\n", lines.collect::<String>())
    }

    fn executed(address: u64) -> String {
        format!("Trace 0: 0x7f4830000100 [0000/{address:016x}/0001/0200] \n")
    }

    fn read(text: &str) -> Log {
        let mut log = Log::default();
        log.read(text.as_bytes()).expect("a log");
        log
    }

    #[test]
    fn only_what_is_between_the_writes_counts() {
        let text = [
            block(0x100, &[1, 2]),
            executed(0x100),
            "7 write(1,0x100,6) = 6\n".to_owned(),
            executed(0x100),
            block(0x200, &[3]),
            executed(0x200),
            "7 write(1,0x100,6) = 6\n".to_owned(),
            executed(0x100),
        ];
        assert_eq!(read(&text.concat()).instructions(), 3);
    }

    #[test]
    fn a_loop_of_two_blocks_is_one_path_and_its_exit_is_another() {
        let mut text = block(0x100, &[1, 2]) + &block(0x200, &[3]) + &block(0x300, &[4]);
        text += "7 write(1,0x100,6) = 6\n";
        for _ in 0..1000 {
            text += &executed(0x200);
            text += &executed(0x100);
        }
        text += &executed(0x300);
        let paths = read(&text).paths();
        let expected = [(vec![1, 2, 3], 3000), (vec![4], 1)].map(|(words, instructions)| Path {
            words,
            instructions,
        });
        assert_eq!(paths, expected);
    }

    #[test]
    fn a_loop_inside_another_is_a_path_of_its_own() {
        let mut text = block(0x100, &[1]) + &block(0x200, &[2]);
        text += "7 write(1,0x100,6) = 6\n";
        for _ in 0..10 {
            text += &executed(0x100);
            text += &executed(0x200).repeat(5);
        }
        let paths = read(&text).paths();
        let words: Vec<_> = paths.iter().map(|path| path.words.clone()).collect();
        assert_eq!(words, [vec![2], vec![1]]);
    }

    #[test]
    fn a_gap_between_addresses_is_an_error() {
        let text = "0x100:  00000001  nop\n0x108:  00000002  nop\n";
        assert!(Log::default().read(text.as_bytes()).is_err());
    }
}
