//! Arguments that nothing shows in the list of processes. Some options say that there is a hidden
//! volume, and the process that serves it may run for days.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::OnceLock;

/// Tells the program which of its open files has its arguments.
const VARIABLE: &str = "CRYPTMARK_ARGUMENTS";

/// The name of that file, which is in memory alone.
const NAME: &str = "cryptmark-arguments";

/// The commands that go on for long.
const COMMANDS: [&str; 2] = ["serve", "mount"];

/// Options of these that betray a hidden volume, and whether they take a value.
const BETRAYING: [(&str, bool); 5] = [
    ("--tcrypt-hidden", false),
    ("--protect-hidden", false),
    ("--protection-passphrase-file", true),
    ("--protection-pim", true),
    ("--protection-keyfile", true),
];

/// The arguments of this program, the unseen ones among them.
pub fn arguments() -> &'static [OsString] {
    static ARGUMENTS: OnceLock<Vec<OsString>> = OnceLock::new();
    ARGUMENTS.get_or_init(|| handed_over().unwrap_or_else(|| std::env::args_os().collect()))
}

/// Starts the program again in its own place, so that its arguments are seen by no one else, if
/// they must not be. With --daemon, a program in the background is started so later.
pub fn hide() {
    let all = arguments();
    if std::env::args_os().eq(seen(all)) || all.iter().any(|argument| argument == "--daemon") {
        return;
    }
    if let Ok((mut command, _file)) = command() {
        // Without it, the arguments are seen as those of any other program.
        let _ = command.exec();
    }
}

/// A command that starts this program once more with the same arguments. The file must stay open
/// until then.
///
/// # Errors
/// Those of the system.
pub fn command() -> io::Result<(Command, File)> {
    use rustix::fs::{MemfdFlags, memfd_create};
    let all = arguments();
    // Inherited by the new program.
    let mut file = File::from(memfd_create(NAME, MemfdFlags::empty())?);
    for argument in all {
        file.write_all(argument.as_bytes())?;
        file.write_all(&[0])?;
    }
    let seen = seen(all);
    let mut command = block::program::command(std::env::current_exe()?);
    if let Some((name, rest)) = seen.split_first() {
        command.arg0(name).args(rest);
    }
    command.env(VARIABLE, file.as_raw_fd().to_string());
    Ok((command, file))
}

/// The arguments that this program was given in a file, which is empty from then on.
fn handed_over() -> Option<Vec<OsString>> {
    let number: u32 = std::env::var(VARIABLE).ok()?.parse().ok()?;
    let path = format!("/proc/self/fd/{number}");
    let name = std::fs::read_link(&path).ok()?;
    // Programs that this one starts inherit the variable and not the file.
    if !name
        .as_os_str()
        .as_bytes()
        .starts_with(format!("/memfd:{NAME}").as_bytes())
    {
        return None;
    }
    let mut file = File::options().read(true).write(true).open(path).ok()?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).ok()?;
    file.set_len(0).ok()?;
    let all = bytes.strip_suffix(&[0])?.split(|&byte| byte == 0);
    Some(
        all.map(|argument| OsString::from_vec(argument.to_vec()))
            .collect(),
    )
}

/// The arguments that others may see.
fn seen(all: &[OsString]) -> Vec<OsString> {
    let is_command = |argument: &OsString| COMMANDS.iter().any(|name| argument == name);
    if !all.iter().any(is_command) {
        return all.to_vec();
    }
    let mut seen = Vec::new();
    let mut rest = all.iter();
    while let Some(argument) = rest.next() {
        match BETRAYING.iter().find(|(name, _)| is_option(argument, name)) {
            None => seen.push(argument.clone()),
            Some((name, true)) if argument == name => drop(rest.next()),
            Some(_) => {}
        }
    }
    seen
}

/// Whether an argument is this option, perhaps with its value.
fn is_option(argument: &OsStr, name: &str) -> bool {
    let after = argument.as_bytes().strip_prefix(name.as_bytes());
    after.is_some_and(|after| after.is_empty() || after[0] == b'=')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hidden_volume_is_served_with_the_arguments_of_an_outer_one() {
        let seen_of = |line: &str| {
            let all: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            let words: Vec<String> = seen(&all)
                .into_iter()
                .map(|word| word.into_string().unwrap())
                .collect();
            words.join(" ")
        };
        for (given, shown) in [
            (
                "cryptmark volume serve a.hc --tcrypt-hidden --nbd s",
                "cryptmark volume serve a.hc --nbd s",
            ),
            (
                "cryptmark volume mount a.hc d --protect-hidden --protection-passphrase-file p \
                 --protection-pim=5 --protection-keyfile k",
                "cryptmark volume mount a.hc d",
            ),
            (
                "cryptmark volume mount a.hc d --daemon",
                "cryptmark volume mount a.hc d --daemon",
            ),
            (
                "cryptmark volume export a.hc --tcrypt-hidden",
                "cryptmark volume export a.hc --tcrypt-hidden",
            ),
        ] {
            assert_eq!(seen_of(given), shown);
        }
    }
}
