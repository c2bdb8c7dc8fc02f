//! Java's ciphers, SunJCE, as the published Java comparison used them: one
//! call encrypts a whole buffer.
//!
//! `java/CryptBench.java` runs under the system's `java` and does what it is
//! asked line by line; it times its own calls, because a clock on this side
//! would time the pipe too. Every output is compared with the engine's. A
//! virtual machine serves one request and ends with its `Jvm`; the compiled
//! class lies in a temporary folder that goes with [`Java`].

mod cipher;
mod jvm;

pub use self::cipher::JavaCipher;
use super::peer::Absent;
use crate::error::LabError;
use crate::trial;
use ::cipher::{CipherSpec, IvSector, Key, SectorCipher, SectorLayout};
use jvm::{Jvm, command, finish};
use sha2::{Digest, Sha256};
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use tempfile::TempDir;

const SOURCE: &str = include_str!("java/CryptBench.java");
const CLASS: &str = "CryptBench";

/// The package that provides a Java that can compile one file.
const PACKAGE: &str = match cfg!(target_os = "linux") {
    true => "Debian: openjdk-17-jdk-headless",
    false => "a JDK, by JAVA_HOME or PATH",
};

/// Seeds of the buffers and of key and IV; any values other than zero will do.
const DATA_SEED: u64 = 0x9e37_79b9_7f4a_7c15;
const KEY_SEED: u64 = 0xd1b5_4a32_d192_ed03;

/// Which way data goes through a cipher.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// Plaintext to ciphertext.
    Encrypt,
    /// Ciphertext to plaintext.
    Decrypt,
}

impl Direction {
    /// The contract's word for the operation.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Encrypt => "encrypt",
            Self::Decrypt => "decrypt",
        }
    }
}

/// The measurement that Java is asked for, in the kernel's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JavaRequest<'a> {
    /// `aes`, `blowfish`, `des` or `des3_ede`.
    pub algorithm: &'a str,
    /// `cbc`, with one IV for the whole buffer, or `ecb`.
    pub mode: &'a str,
    /// Bits of the key, with the parity bits of DES: 64 and 192.
    pub key_bits: u32,
    /// Bytes of the buffer, a multiple of the cipher's block.
    pub bytes: usize,
    /// Which way.
    pub direction: Direction,
    /// The first operation of a fresh virtual machine, one machine a
    /// repetition. Otherwise one machine, after its JIT compiled nothing for
    /// ten operations and half a second.
    pub cold: bool,
    /// How many values.
    pub repetitions: u32,
}

/// A Java that can be measured.
pub struct Java {
    program: PathBuf,
    version: String,
    /// Holds the compiled class until it is dropped.
    folder: TempDir,
}

impl Java {
    /// Finds the system's Java, `$JAVA_HOME` before `$PATH`, and compiles the
    /// program that it will run. Root runs that of `$JAVA_HOME` only if nobody else can change it.
    ///
    /// # Errors
    /// [`Absent`] says what to install.
    pub fn find() -> Result<Self, Absent> {
        let home = std::env::var_os("JAVA_HOME").map(|home| {
            let program = format!("java{}", std::env::consts::EXE_SUFFIX);
            PathBuf::from(home).join("bin").join(program)
        });
        let is_safe = |program: &PathBuf| program.is_file() && block::program::is_safe_at(program);
        let program = home.filter(is_safe);
        Self::at(program.unwrap_or_else(|| "java".into()))
    }

    /// The same with the Java launcher `program`.
    ///
    /// # Errors
    /// [`Absent`] says what to install.
    pub fn at(program: PathBuf) -> Result<Self, Absent> {
        let missing = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound => Absent::NotInstalled {
                library: "java",
                package: PACKAGE,
            },
            reason => Absent::NotRunnable {
                library: "java",
                reason,
            },
        };
        let folder = tempfile::Builder::new()
            .prefix("cryptmark-java-")
            .tempdir()
            .map_err(missing)?;
        let asked = finish(command(&program, &folder).arg("-version"), &folder).map_err(missing)?;
        let version = version(&asked.said);
        let source = format!("{CLASS}.java");
        std::fs::write(folder.path().join(&source), SOURCE).map_err(missing)?;
        let mut compiler = command(&program, &folder);
        compiler.args(["-m", "jdk.compiler/com.sun.tools.javac.Main", "-proc:none"]);
        let compiled = finish(compiler.arg(&source), &folder).map_err(missing)?;
        if !compiled.status.success() {
            return Err(Absent::NoCompiler {
                library: "java",
                version,
                package: PACKAGE,
            });
        }
        Ok(Self {
            program,
            version,
            folder,
        })
    }

    /// As it calls itself: `17.0.15 (OpenJDK 64-Bit Server VM)`.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Whether a request is possible, without making it.
    ///
    /// # Errors
    /// [`LabError`].
    pub fn check(request: &JavaRequest<'_>) -> Result<(), LabError> {
        expected(request).map(drop)
    }

    /// Seconds of every repetition; `stop` ends them before the next.
    ///
    /// # Errors
    /// [`LabError`], also if the output is wrong.
    pub fn measure(
        &self,
        request: &JavaRequest<'_>,
        stop: &AtomicBool,
    ) -> Result<Vec<f64>, LabError> {
        let expected = expected(request)?;
        let check = |jvm: &mut Jvm| match jvm.digest()? == expected {
            true => Ok(()),
            false => Err(LabError::failed(
                format!(
                    "java's {}-{} gave a wrong {}ed buffer",
                    request.algorithm,
                    request.mode,
                    request.direction.name()
                ),
                "Do not trust this Java. Please report its version.",
            )),
        };
        let may_go_on = || match stop.load(Ordering::Relaxed) {
            true => Err(trial::interrupted()),
            false => Ok(()),
        };
        let mut seconds = Vec::new();
        if request.cold {
            for _ in 0..request.repetitions {
                may_go_on()?;
                let mut jvm = Jvm::start(&self.program, &self.folder, request)?;
                seconds.push(jvm.time()?);
                check(&mut jvm)?;
            }
        } else {
            let mut jvm = Jvm::start(&self.program, &self.folder, request)?;
            for _ in 0..request.repetitions {
                may_go_on()?;
                seconds.push(jvm.time()?);
            }
            // Only now: hashing would fill the caches between the repetitions.
            check(&mut jvm)?;
        }
        Ok(seconds)
    }
}

/// SHA-256 of what the operation must give, by the engine, which tests hold against other implementations.
fn expected(request: &JavaRequest<'_>) -> Result<String, LabError> {
    let no_cipher = || {
        let (algorithm, mode, bits) = (request.algorithm, request.mode, request.key_bits);
        LabError::failed(
            format!("java has no {algorithm}-{mode} with {bits} bits"),
            "Use one of: aes, blowfish, des, des3_ede. The mode must be cbc or ecb.",
        )
    };
    // SunJCE takes 3DES with three keys only.
    let known = match request.algorithm {
        "aes" | "blowfish" | "des" => true,
        "des3_ede" => request.key_bits == 192,
        _ => false,
    };
    if !known || !matches!(request.mode, "cbc" | "ecb") || !request.key_bits.is_multiple_of(8) {
        return Err(no_cipher());
    }
    let block = block_bytes(request);
    if !request.bytes.is_multiple_of(block) {
        return Err(LabError::failed(
            format!(
                "{} bytes are not a multiple of the block size of {block} bytes",
                request.bytes
            ),
            "Give a size that is a multiple of 16.",
        ));
    }
    let (key, mut iv) = secrets(request);
    let scheme = match request.mode {
        "cbc" => "-null",
        _ => "",
    };
    let notation = format!("{}-{}{scheme}", request.algorithm, request.mode);
    let layout = SectorLayout::default();
    let spec: CipherSpec = notation.parse().map_err(|_| no_cipher())?;
    let engine = spec.cipher(&Key::from_slice(&key), layout, None);
    let engine = engine.map_err(|_| no_cipher())?;
    let mut data = pattern(request.bytes, DATA_SEED);
    for part in data.chunks_mut(layout.size.bytes()) {
        // The engine takes whole sectors under an IV of zeros. In CBC another IV is added to
        // the first block, and the last block of the ciphertext is the next one.
        let mut sector = vec![0; layout.size.bytes()];
        sector[..part.len()].copy_from_slice(part);
        let add = |iv: &[u8], sector: &mut [u8]| {
            if request.mode == "cbc" {
                sector.iter_mut().zip(iv).for_each(|(byte, iv)| *byte ^= iv);
            }
        };
        let next = part.len() - block..part.len();
        let first = IvSector::new(0);
        match request.direction {
            Direction::Encrypt => {
                add(&iv[..block], &mut sector);
                engine.encrypt(first, &mut sector);
                iv[..block].copy_from_slice(&sector[next]);
            }
            Direction::Decrypt => {
                engine.decrypt(first, &mut sector);
                add(&iv[..block], &mut sector);
                iv[..block].copy_from_slice(&part[next]);
            }
        }
        part.copy_from_slice(&sector[..part.len()]);
    }
    Ok(hex(&Sha256::digest(&data)))
}

fn block_bytes(request: &JavaRequest<'_>) -> usize {
    match request.algorithm {
        "aes" => 16,
        _ => 8,
    }
}

/// Key and IV: fixed, since nothing is kept secret with them.
fn secrets(request: &JavaRequest<'_>) -> (Vec<u8>, [u8; 16]) {
    let key = pattern(request.key_bits as usize / 8, KEY_SEED);
    let mut iv = [0; 16];
    iv.copy_from_slice(&pattern(16, !KEY_SEED));
    (key, iv)
}

/// Marsaglia's xorshift64 (13, 7, 17), eight bytes a step, little endian: the
/// same as in the Java program.
fn pattern(length: usize, mut state: u64) -> Vec<u8> {
    let mut pattern = Vec::with_capacity(length + 8);
    while pattern.len() < length {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        pattern.extend(state.to_le_bytes());
    }
    pattern.truncate(length);
    pattern
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// `openjdk version "17.0.15" 2025-04-15`, …, `OpenJDK 64-Bit Server VM (build …)`.
fn version(said: &str) -> String {
    let number = said.split('"').nth(1).unwrap_or("of unknown version");
    let machine = said
        .lines()
        .find(|line| line.contains(" VM"))
        .and_then(|line| line.split(" (").next());
    match machine {
        Some(machine) => format!("{number} ({machine})"),
        None => number.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_in_both_forms() {
        let of_17 = "openjdk version \"17.0.15\" 2025-04-15\n\
             OpenJDK Runtime Environment (build 17.0.15+6-Debian-1deb12u1)\n\
             OpenJDK 64-Bit Server VM (build 17.0.15+6-Debian-1deb12u1, mixed mode, sharing)\n";
        assert_eq!(version(of_17), "17.0.15 (OpenJDK 64-Bit Server VM)");
        let of_8 = "java version \"1.8.0_391\"\n";
        assert_eq!(version(of_8), "1.8.0_391");
        assert_eq!(version("no java"), "of unknown version");
    }
}
