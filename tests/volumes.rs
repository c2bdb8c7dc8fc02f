//! Volumes that other programs made, opened as a user opens them: the whole
//! plaintext or a refusal, and the right exit code.

use serde_json::Value;
use sha2::{Digest, Sha256};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Mutex;

/// The program; that for Windows where `cargo xtask windows` runs these.
fn program() -> PathBuf {
    let other = std::env::var_os("CRYPTMARK_WINDOWS");
    other.map_or_else(|| env!("CARGO_BIN_EXE_cryptmark").into(), PathBuf::from)
}

/// The folder of samples, and a place for what they decompress to.
struct Samples {
    folder: PathBuf,
    place: tempfile::TempDir,
}

impl Samples {
    fn at(folder: &str) -> Self {
        Self {
            folder: Path::new(env!("CARGO_MANIFEST_DIR")).join(folder),
            place: tempfile::tempdir().unwrap(),
        }
    }

    fn cases(&self) -> Vec<Value> {
        let text = fs::read(self.folder.join("manifest.json")).unwrap();
        let mut manifest: Value = serde_json::from_slice(&text).unwrap();
        match manifest["cases"].take() {
            Value::Array(cases) => cases,
            _ => panic!("the manifest has no cases"),
        }
    }

    /// The file that `entry` describes, decompressed.
    fn file(&self, entry: &Value) -> PathBuf {
        let path = self.folder.join(entry["path"].as_str().unwrap());
        if entry["compression"].is_null() {
            return path;
        }
        let plain = self.place.path().join(path.file_stem().unwrap());
        if !plain.exists() {
            let compressed = File::open(&path).unwrap();
            zstd::stream::copy_decode(compressed, File::create(&plain).unwrap()).unwrap();
        }
        plain
    }

    /// `cryptmark volume COMMAND`, with the options that open the case with
    /// this secret.
    fn command(&self, command: &str, case: &Value, secret: &Value) -> Command {
        let mut run = Command::new(program());
        run.args(["volume", command]).arg(self.file(case));
        let number = |name: &str| case[name].as_u64().filter(|&number| number != 0);
        let option = |run: &mut Command, name: &str, value: Option<String>| {
            if let Some(value) = value {
                run.arg(name).arg(value);
            }
        };
        let text = |name: &str| case[name].as_str().map(str::to_owned);
        let kind = match case["format"].as_str().unwrap() {
            "dm-crypt-table" => "plain",
            "loop-aes" => "loopaes",
            "truecrypt" => "tcrypt",
            other => other,
        };
        run.args(["--type", kind]);
        let headless = ["plain", "cryptoloop", "loopaes"].contains(&kind);
        if headless {
            option(&mut run, "--cipher", text("cipher"));
            let hex = secret["type"] == "hexkey";
            let bits = number("key_bits").filter(|_| !hex);
            option(&mut run, "--key-size", bits.map(|bits| bits.to_string()));
            option(&mut run, "--hash", text("hash"));
            let sectors = |name| number(name).map(|number| number.to_string());
            option(&mut run, "--offset", sectors("offset_sectors"));
            option(&mut run, "--skip", sectors("skip_sectors"));
            let derivation = text("key_derivation").map(|how| how.replace(' ', "-"));
            option(&mut run, "--key-derivation", derivation);
        }
        if ["tcrypt", "veracrypt"].contains(&kind) {
            // All of them are tried in another test: that takes long.
            option(&mut run, "--hash", text("hash"));
            option(&mut run, "--veracrypt-pim", text_of(&case["pim"]));
            for (field, flag) in [
                ("hidden", "--tcrypt-hidden"),
                ("use_backup_header", "--tcrypt-backup"),
            ] {
                if case[field] == true {
                    run.arg(flag);
                }
            }
            for path in case["keyfiles"].as_array().unwrap() {
                let path = self.folder.join(path.as_str().unwrap());
                run.arg("--keyfile").arg(path);
            }
        }
        if kind == "plain" {
            option(&mut run, "--sector-size", text_of(&case["sector_size"]));
        }
        if case["iv_large_sectors"] == true {
            run.arg("--iv-large-sectors");
        }
        if !case["header"].is_null() {
            run.arg("--header").arg(self.file(&case["header"]));
        }
        self.add_secret(&mut run, case, secret);
        run
    }

    fn add_secret(&self, run: &mut Command, case: &Value, secret: &Value) {
        let value = secret["value"].as_str().unwrap_or_default();
        let name = format!("{}-{}", case["id"].as_str().unwrap(), secret["slot"]);
        let file = |bytes: &[u8]| {
            let path = self.place.path().join(format!("{name}-{}", digest(bytes)));
            fs::write(&path, bytes).unwrap();
            path
        };
        match secret["type"].as_str().unwrap() {
            "passphrase" => {
                let line = [value.as_bytes(), b"\n"].concat();
                run.arg("--passphrase-file").arg(file(&line));
            }
            "hexkey" => {
                run.arg("--volume-key-file").arg(file(&bytes(value)));
            }
            "keyfile" => {
                let path = secret["path"].as_str().unwrap();
                run.arg("--key-file").arg(self.folder.join(path));
            }
            other => panic!("{other}"),
        }
    }
}

fn text_of(value: &Value) -> Option<String> {
    (!value.is_null()).then(|| value.to_string())
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits = hex.as_bytes().chunks(2);
    let byte = |pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.map(byte).collect()
}

fn digest(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn run(mut command: Command) -> Output {
    command.stdin(Stdio::null()).output().unwrap()
}

/// Does `work` for all of `items` on every core.
fn everywhere<T: Sync>(items: &[T], work: impl Fn(&T) + Sync) {
    let next = Mutex::new(items.iter());
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                while let Some(item) = { next.lock().unwrap().next() } {
                    work(item);
                }
            });
        }
    });
}

/// A volume of every kind, made by other programs: they must open for ever.
#[test]
fn golden_volumes_open_with_their_secrets_and_no_other() {
    let samples = Samples::at("tests/golden");
    let (opened, refused) = judge(&samples);
    assert!(opened >= 71 && refused >= 26);
}

/// Opens all of them; how many secrets opened their sample, how many were
/// refused as they should be.
fn judge(samples: &Samples) -> (u32, u32) {
    let cases: Vec<Value> = samples.cases();
    let (opened, refused) = (Mutex::new(0), Mutex::new(0));
    everywhere(&cases, |case| {
        let id = case["id"].as_str().unwrap();
        for secret in case["secrets"].as_array().unwrap() {
            let mut command = samples.command("export", case, secret);
            command.args(["--output", "-"]);
            let shown = format!("{id}: {command:?}");
            let output = run(command);
            let said = String::from_utf8_lossy(&output.stderr);
            if secret["expect"] == "open" {
                assert_eq!(output.status.code(), Some(0), "{shown}\n{said}");
                let size = case["expected"]["size"].as_u64().unwrap();
                assert_eq!(output.stdout.len() as u64, size, "{shown}");
                let expected = case["expected"]["sha256"].as_str().unwrap();
                assert_eq!(digest(&output.stdout), expected, "{shown}");
                *opened.lock().unwrap() += 1;
            } else {
                assert_eq!(output.status.code(), Some(3), "{shown}\n{said}");
                assert_eq!(said.lines().count(), 2, "{shown}\n{said}");
                assert!(output.stdout.is_empty(), "{shown}");
                *refused.lock().unwrap() += 1;
            }
        }
    });
    let (opened, refused) = (opened.into_inner().unwrap(), refused.into_inner().unwrap());
    println!("{opened} secrets opened their sample, {refused} were refused");
    (opened, refused)
}
