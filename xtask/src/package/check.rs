//! Tries what was made: the Debian package in a private copy of this system, the
//! archives' programs on volumes whose plaintext is known, an installation by
//! cargo. Nothing of it stays on the machine.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::{HOST, Made, STATIC, Target, VERSION, builder, output};
use crate::packages::present;
use crate::root;

/// Installs the package `$1` on a copy of this system that ends with the process,
/// uses what it brought, and removes it. What a system keeps of packages that
/// were there (logs, dpkg's and man-db's files) may differ afterwards.
const DEBIAN: &str = r#"
set -eu
mount -t tmpfs tmpfs /mnt
mkdir /mnt/upper /mnt/work /mnt/root
mount -t overlay overlay -o lowerdir=/,upperdir=/mnt/upper,workdir=/mnt/work /mnt/root
for part in proc dev sys; do mount --rbind /$part /mnt/root/$part; done
cp "$1" /mnt/root/package.deb
exec chroot /mnt/root /bin/bash -c '
set -eu
cd /
files() {
    find /bin /etc /lib /opt /root /sbin /usr /var -xdev |
        grep -v -e ^/var/cache/man -e ^/var/lib/dpkg -e ^/var/log | sort
}
say() { echo "failed: $*" >&2; exit 1; }
files > /before
dpkg --install /package.deb
files > /installed
[ "$(command -v cryptmark)" = /usr/bin/cryptmark ] || say "not the installed program"
cryptmark --version
cryptmark doctor --at /usr/bin > /doctor
grep -q "aes-xts-plain64" /doctor || say "doctor says nothing of AES"
pages=0
for page in $(dpkg --listfiles cryptmark | grep "/man1/."); do
    name=$(basename "$page" .1.gz)
    [ "$(man --path "$name")" = "$page" ] || say "man does not find $name"
    said=$(man --warnings "$name" 2>&1 > /page)
    [ -z "$said" ] || say "$name: $said"
    grep -q "SEE ALSO" /page || say "$name is not whole"
    pages=$((pages + 1))
done
[ $pages -gt 40 ] || say "$pages pages"
echo "$pages manual pages"
bash -c ". /usr/share/bash-completion/completions/cryptmark; complete -p cryptmark"
for file in copyright changelog.Debian.gz changelog.gz README.md THIRD-PARTY.txt docs/CIPHERS.md docs/how-to/trim.md; do
    [ -s /usr/share/doc/cryptmark/$file ] || say "no $file"
done
[ -s /usr/share/zsh/vendor-completions/_cryptmark ] || say "no completions for zsh"
[ -s /usr/share/fish/vendor_completions.d/cryptmark.fish ] || say "no completions for fish"
dpkg --verify cryptmark
dpkg --purge cryptmark
files > /after
cmp -s /before /installed && say "nothing was installed"
diff /before /after || say "the package left these behind"
[ -z "$(ls /var/lib/dpkg/info | grep ^cryptmark)" ] || say "dpkg still knows it"
'
"#;

/// A volume of the tests' own, and what its plaintext hashes to.
struct Sample {
    image: &'static str,
    /// Options that open it, beside the passphrase.
    options: &'static [&'static str],
    passphrase: &'static str,
    sha256: &'static str,
}

/// Three ciphers in turn below PBKDF2, and Adiantum below Argon2id.
const SAMPLES: &[Sample] = &[
    Sample {
        image: "tc7_sta_sha512.img",
        options: &["--type", "tcrypt"],
        passphrase: "true sta sha512",
        sha256: "675fe80a5412bdb94381852b8e533870e1de5f8e2e8efef764a0d61f1ab69448",
    },
    Sample {
        image: "luks2_xchacha20_aes-adiantum-plain64_256_512_argon2id.img.zst",
        options: &[],
        passphrase: "thicket-thicket-meadow-ember524",
        sha256: "ee15793309785ac7f441a427af55589a3bdbee3bfe895736cceba54568a92d53",
    },
];

/// How a check ended, unless it passed.
enum Ended {
    Failed(String),
    Skipped(String),
}

impl From<String> for Ended {
    fn from(what: String) -> Self {
        Self::Failed(what)
    }
}

/// Counts of passed, failed and skipped.
#[derive(Default)]
struct Checks([u32; 3]);

impl Checks {
    fn run(&mut self, name: &str, check: impl FnOnce() -> Result<(), Ended>) {
        let (index, said) = match check() {
            Ok(()) => (0, "passed".to_owned()),
            Err(Ended::Failed(what)) => (1, format!("FAILED: {what}")),
            Err(Ended::Skipped(why)) => (2, format!("skipped: {why}")),
        };
        println!("{name}: {said}");
        self.0[index] += 1;
    }

    fn end(&self) -> bool {
        let [passed, failed, skipped] = self.0;
        println!("{passed} passed, {failed} failed, {skipped} skipped");
        failed == 0
    }
}

/// Tries everything.
pub fn all(made: &Made) -> bool {
    let mut checks = Checks::default();
    checks.run("Debian package, installed and purged", || {
        debian(&made.debian)
    });
    checks.run("Debian package, by lintian", || lintian(&made.debian));
    let programs = made.programs.iter().zip(&made.archives);
    for (target, (program, archive)) in STATIC.iter().zip(programs) {
        let run = |what: &str| format!("{}, {what}", target.name);
        checks.run(&run("static"), || is_static(program));
        checks.run(&run("archive"), || unpacked(archive, target));
        checks.run(&run("the same version as the host's"), || {
            same_version(program, made, target)
        });
        checks.run(&run("doctor"), || {
            let said = output(started(program, target)?.arg("doctor"))?;
            match said.contains("aes-xts-plain64") {
                true => Ok(()),
                false => Err(said.into()),
            }
        });
        checks.run(&run("volumes"), || volumes(program, target));
        checks.run(&run("measures"), || measures(program, target));
    }
    checks.run("packed again, the same bytes", || again(made));
    checks.run("built elsewhere, installed by cargo", || elsewhere(made));
    checks.end()
}

/// Tries the Debian package alone.
pub fn debian_alone(package: &Path) -> bool {
    let mut checks = Checks::default();
    checks.run("Debian package, installed and purged", || debian(package));
    checks.end()
}

fn debian(package: &Path) -> Result<(), Ended> {
    for tool in ["unshare", "chroot", "dpkg", "man"] {
        if !present(tool) {
            return Err(Ended::Skipped(format!("{tool} is missing")));
        }
    }
    if !crate::packages::is_root() {
        return Err(Ended::Skipped("only root can install packages".to_owned()));
    }
    // Ended with its first process: whatever a package's scripts may start.
    let said = output(
        Command::new("unshare")
            .args(["--mount", "--pid", "--fork", "--kill-child"])
            .args(["--mount-proc", "--propagation", "private"])
            .args(["sh", "-c", DEBIAN, "sh"])
            .arg(package),
    )?;
    print!("{said}");
    Ok(())
}

fn lintian(package: &Path) -> Result<(), Ended> {
    if !present("lintian") {
        return Err(Ended::Skipped("lintian is missing".to_owned()));
    }
    let found = Command::new("lintian")
        .args(["--allow-root", "--no-tag-display-limit", "--fail-on=error"])
        .arg(package)
        .output()
        .map_err(|error| error.to_string())?;
    let said = String::from_utf8_lossy(&found.stdout).into_owned();
    print!("{said}");
    match found.status.success() {
        true => Ok(()),
        false => Err(said.into()),
    }
}

/// Neither an interpreter nor a library is asked for.
fn is_static(program: &Path) -> Result<(), Ended> {
    let said = output(
        Command::new("readelf")
            .args(["--wide", "--program-headers", "--dynamic"])
            .arg(program),
    )?;
    match said.contains("INTERP") || said.contains("(NEEDED)") {
        true => Err(said.into()),
        false => Ok(()),
    }
}

/// The archive holds what `/usr/local` needs, with nobody's name.
fn unpacked(archive: &Path, target: &Target) -> Result<(), Ended> {
    let said = output(
        Command::new("tar")
            .args(["--list", "--verbose", "--file"])
            .arg(archive),
    )?;
    let top = format!("cryptmark-{VERSION}-{}", target.name);
    for part in [
        "bin/cryptmark",
        "share/man/man1/cryptmark-run.1",
        "share/bash-completion/completions/cryptmark",
        "share/zsh/site-functions/_cryptmark",
        "share/fish/vendor_completions.d/cryptmark.fish",
        "share/doc/cryptmark/LICENSE-MIT",
        "share/doc/cryptmark/THIRD-PARTY.txt",
        "share/doc/cryptmark/docs/how-to/trim.md",
    ] {
        if !said
            .lines()
            .any(|line| line.ends_with(&format!(" {top}/{part}")))
        {
            return Err(format!("no {part} in\n{said}").into());
        }
    }
    match said
        .lines()
        .find(|line| line.split_whitespace().nth(1) != Some("0/0"))
    {
        Some(line) => Err(format!("owned by somebody: {line}").into()),
        None => Ok(()),
    }
}

fn same_version(program: &Path, made: &Made, target: &Target) -> Result<(), Ended> {
    let host = output(Command::new(&made.program).arg("--version"))?;
    let said = output(started(program, target)?.arg("--version"))?;
    print!("{said}");
    match said == host.replace(HOST.name, target.name) {
        true => Ok(()),
        false => Err(format!("{said} but on the host {host}").into()),
    }
}

/// `program`, to be run here.
fn started(program: &Path, target: &Target) -> Result<Command, Ended> {
    match target.emulator {
        None => Ok(Command::new(program)),
        Some(emulator) if present(emulator) => {
            let mut command = Command::new(emulator);
            command.arg(program);
            Ok(command)
        }
        Some(emulator) => Err(Ended::Skipped(format!("{emulator} is missing"))),
    }
}

/// Every sample's plaintext is what it was on the machine that made it, and a
/// wrong passphrase is refused with the exit code for that.
fn volumes(program: &Path, target: &Target) -> Result<(), Ended> {
    let work = Work::new("volumes")?;
    for sample in SAMPLES {
        let golden = root().join("tests/golden/images").join(sample.image);
        let image = work.0.join("volume.img");
        match sample.image.strip_suffix(".zst") {
            None => {
                fs::copy(&golden, &image).map_err(|error| error.to_string())?;
            }
            Some(_) if !present("zstd") => {
                return Err(Ended::Skipped("zstd is missing".to_owned()));
            }
            Some(_) => {
                let unpack = ["--decompress", "--force", "--quiet", "-o"];
                output(Command::new("zstd").args(unpack).args([&image, &golden]))?;
            }
        }
        let secret = work.0.join("passphrase");
        let plain = work.0.join("plain.img");
        let export = |passphrase: &str| -> Result<std::process::Output, Ended> {
            fs::write(&secret, passphrase).map_err(|error| error.to_string())?;
            let _ = fs::remove_file(&plain);
            started(program, target)?
                .args(["volume", "export"])
                .arg(&image)
                .args(sample.options)
                .arg("--passphrase-file")
                .arg(&secret)
                .arg("-o")
                .arg(&plain)
                .output()
                .map_err(|error| error.to_string().into())
        };
        let refused = export("certainly not the passphrase")?;
        if refused.status.code() != Some(3) {
            return Err(format!("{}: a wrong passphrase: {refused:?}", sample.image).into());
        }
        let exported = export(sample.passphrase)?;
        if !exported.status.success() {
            return Err(format!("{}: {exported:?}", sample.image).into());
        }
        let sum = output(Command::new("sha256sum").arg(&plain))?;
        if !sum.starts_with(sample.sha256) {
            return Err(format!("{}: its plaintext is {sum}", sample.image).into());
        }
    }
    Ok(())
}

/// A short run of the cipher tier; where no emulator stands between, of the
/// block tier too. Each must end as a whole run with a figure in every trial.
fn measures(program: &Path, target: &Target) -> Result<(), Ended> {
    let work = Work::new("measures")?;
    let ciphers = [
        "run",
        "ciphers",
        "--cipher",
        "aes-xts-plain64",
        "--system",
        "builtin",
    ];
    let quick = ["run", "quick", "--size", "64MB"];
    let runs: &[&[&str]] = match target.emulator {
        None => &[&quick, &ciphers],
        Some(_) => &[&ciphers],
    };
    for run in runs {
        let record = work.0.join("run.json");
        output(
            started(program, target)?
                .args(*run)
                .args(["--quick", "--no-progress", "--at"])
                .arg(&work.0)
                .arg("--store")
                .arg(work.0.join("runs.db"))
                .arg("--json")
                .arg(&record),
        )?;
        let text = fs::read(&record).map_err(|error| error.to_string())?;
        let record: serde_json::Value =
            serde_json::from_slice(&text).map_err(|error| error.to_string())?;
        let trials = record["trials"].as_array().cloned().unwrap_or_default();
        let measured = |trial: &serde_json::Value| trial["throughput_mb_s"]["median"].is_number();
        if record["partial"] != false || trials.is_empty() || !trials.iter().all(measured) {
            return Err(format!("{run:?} recorded {record}").into());
        }
        println!(
            "{} trials by cryptmark {}",
            trials.len(),
            record["host"]["versions"]["cryptmark"]
        );
    }
    Ok(())
}

/// Packs the same programs once more.
fn again(made: &Made) -> Result<(), Ended> {
    let work = Work::new("again")?;
    let packed = super::pack(&made.program, &made.programs, &work.0)?;
    match packed.sums == made.sums {
        true => Ok(()),
        false => Err(format!("{} and then {}", made.sums, packed.sums).into()),
    }
}

/// Clones the commit to another place and lets cargo install it from there: the
/// program must be the very same bytes.
fn elsewhere(made: &Made) -> Result<(), Ended> {
    let work = Work::new("elsewhere-with-a-longer-path")?;
    let source = work.0.join("source");
    let changed = output(
        Command::new("git")
            .args(["status", "--porcelain", "--untracked-files=no"])
            .current_dir(root()),
    )?;
    if !changed.is_empty() {
        return Err(Ended::Skipped(
            "this checkout differs from its commit".to_owned(),
        ));
    }
    output(
        Command::new("git")
            .args(["clone", "--quiet"])
            .arg(root())
            .arg(&source),
    )?;
    let installed = work.0.join("installed");
    let done = builder(&HOST, "install", &source)?
        .args(["--path", ".", "--root"])
        .arg(&installed)
        .env("CARGO_TARGET_DIR", source.join("target"))
        .stdout(Stdio::null())
        .status();
    if !done.is_ok_and(|status| status.success()) {
        return Err("cargo install failed".to_owned().into());
    }
    output(Command::new("cmp").args([&made.program, &installed.join("bin/cryptmark")]))?;
    Ok(())
}

/// A folder that goes with its value.
struct Work(PathBuf);

impl Work {
    fn new(name: &str) -> Result<Self, String> {
        let folder = root().join(format!("target/package/{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
        Ok(Self(folder))
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        // A folder that stays behind is in the way of nobody.
        let _ = fs::remove_dir_all(&self.0);
    }
}
