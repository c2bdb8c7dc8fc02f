//! The shell script of the machine's first process, which receives it through a
//! descriptor.

use super::boot::Job;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// The status messages for the start of the command, for a step before it that
/// failed, and for the exit code.
pub(super) const STARTED: &str = "started";
pub(super) const FAILED: &str = "failed ";
pub(super) const EXIT: &str = "exit ";

/// The prologue puts an overlay in memory over the host's root, which takes all
/// writes. The nodes of the device mapper are made by its library, not by udev.
const PROLOGUE: &str = "\
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
exec </dev/null >/dev/lab/output 2>/dev/lab/errors 9>/dev/lab/status
fail() { echo \"failed $1\" >&9; echo exit >&9; }
mount -t tmpfs -o mode=0755 lab /run || fail 'mount a tmpfs'
mkdir /run/upper /run/work /run/root
mount -t overlay -o lowerdir=/,upperdir=/run/upper,workdir=/run/work lab /run/root || fail 'mount the overlay'
cd /run/root || fail 'enter the overlay'
mount --move /dev dev && mkdir -p dev/pts dev/shm && mount -t devpts -o mode=0620,ptmxmode=0666 devpts dev/pts &&
mount -t tmpfs -o mode=1777 shm dev/shm && mount -t proc proc proc && mount -t sysfs sysfs sys &&
mount -t tmpfs -o mode=0755 run run &&
ln -s /proc/self/fd dev/fd && ln -s fd/0 dev/stdin && ln -s fd/1 dev/stdout && ln -s fd/2 dev/stderr || fail 'mount what programs expect'
";

const PIVOT: &str = "\
pivot_root . . && umount -l . && cd / || fail 'change its root'
";

/// The whole script. Words are quoted; nothing of them is looked at by the shell.
pub(super) fn script(job: &Job) -> Vec<u8> {
    let mut text = PROLOGUE.as_bytes().to_vec();
    for directory in &job.writable {
        let directory = quoted(directory.as_os_str());
        for part in [
            &b"{ test -d ."[..],
            &directory,
            b" || mkdir -p .",
            &directory,
            b"; } && mount -t hostfs -o ",
            &directory,
            b" none .",
            &directory,
            b" || fail 'make a directory writable'\n",
        ] {
            text.extend_from_slice(part);
        }
    }
    text.extend_from_slice(PIVOT.as_bytes());
    for (name, value) in &job.environment {
        if is_name(name) {
            text.extend_from_slice(b"export ");
            text.extend_from_slice(name.as_bytes());
            text.push(b'=');
            text.extend_from_slice(&quoted(value));
            text.push(b'\n');
        }
    }
    text.extend_from_slice(
        b"export DM_DISABLE_UDEV=1 PATH=\"$PATH:/usr/sbin:/usr/bin:/sbin:/bin\"\n",
    );
    text.extend_from_slice(b"cd ");
    text.extend_from_slice(&quoted(job.directory.as_os_str()));
    text.extend_from_slice(b" || fail 'enter the directory'\n");
    // The word means a program, even if the shell has a builtin of that name.
    text.extend_from_slice(format!("echo {STARTED} >&9\n( exec 9>&- ; exec").as_bytes());
    for word in &job.command {
        text.push(b' ');
        text.extend_from_slice(&quoted(word));
    }
    text.extend_from_slice(format!(" )\necho \"{EXIT}$?\" >&9\n").as_bytes());
    text
}

/// A word in single quotes.
fn quoted(word: &OsStr) -> Vec<u8> {
    let mut text = vec![b'\''];
    for &byte in word.as_bytes() {
        match byte {
            b'\'' => text.extend_from_slice(b"'\\''"),
            byte => text.push(byte),
        }
    }
    text.push(b'\'');
    text
}

/// Whether a shell can export the variable. A shell sets variables such as PWD
/// itself.
fn is_name(name: &OsStr) -> bool {
    let bytes = name.as_bytes();
    let first = bytes
        .first()
        .is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'_');
    first
        && bytes
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
        && !["PWD", "OLDPWD", "PPID", "IFS"]
            .iter()
            .any(|own| name == *own)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn quoted_words_come_back_as_they_were() {
        for word in [
            "",
            "plain",
            "it's",
            "a b\n$HOME `x` \\ \"",
            "''",
            "-n",
            "ü\u{7f}",
        ] {
            let mut script = b"printf %s ".to_vec();
            script.extend_from_slice(&quoted(OsStr::new(word)));
            let output = Command::new("sh")
                .arg("-c")
                .arg(OsStr::from_bytes(&script))
                .output()
                .unwrap();
            assert_eq!(output.stdout, word.as_bytes(), "{word:?}");
        }
    }

    #[test]
    fn only_names_are_exported() {
        for (name, is) in [
            ("PATH", true),
            ("_x1", true),
            ("", false),
            ("1x", false),
            ("a-b", false),
            ("BASH_FUNC_f%%", false),
            ("IFS", false),
        ] {
            assert_eq!(is_name(OsStr::new(name)), is, "{name}");
        }
    }
}
