//! Our client beside nbdcopy: a volume on an export, encrypted here, beside a
//! plain copy to and from the same export.

use super::{PROGRAM, median, run, start, stop};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

/// A server's name, and what starts it on `target`; none is pinned to a core.
type Server = (&'static str, fn() -> Command);

const SERVERS: [Server; 3] = [
    ("nbdkit memory", || {
        let mut command = Command::new("nbdkit");
        command.args(["--foreground", "--unix", "socket", "memory", "640M"]);
        command
    }),
    ("nbdkit file", || {
        let mut command = Command::new("nbdkit");
        command.args(["--foreground", "--unix", "socket", "file", "target"]);
        command
    }),
    ("cryptmark", || {
        let mut command = Command::new(PROGRAM);
        let words = "volume serve target --type plain --cipher cipher_null-ecb \
                     --passphrase-file line --nbd socket";
        command.args(words.split_whitespace());
        command
    }),
];

/// What is timed of each server: nbdcopy's way, then ours.
const WAYS: [(&str, [&str; 2]); 2] = [
    (
        "write",
        [
            "nbdcopy plain nbd+unix:///?socket=socket",
            "volume import nbd+unix:///?socket=socket --header head --input plain --passphrase-file line --yes --no-progress",
        ],
    ),
    (
        "read",
        [
            "nbdcopy nbd+unix:///?socket=socket null:",
            "volume export nbd+unix:///?socket=socket --header head --output /dev/null --passphrase-file line --no-progress",
        ],
    ),
];

/// Prints MB/s of both, and their ratio, of `rounds` pairs.
pub fn compare(folder: &Path, rounds: usize) {
    println!(
        "\nA whole export of 640 MiB, AES-XTS by our client beside nbdcopy's plain copy; MB/s, \
         median (least–most), ratio of the pairs"
    );
    for (name, command) in SERVERS {
        let target = std::fs::File::create(folder.join("target")).expect("room in memory");
        target.set_len(640 << 20).expect("room in memory");
        let mut command = command();
        command
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        let mut server = start(command, &folder.join("socket"));
        // Left by the server before.
        let _ = std::fs::remove_file(folder.join("head"));
        let creation = "volume create nbd+unix:///?socket=socket --header head --sector-size 4096 \
                        --passphrase-file line --yes --pbkdf pbkdf2 --pbkdf-force-iterations 1000";
        run(Command::new(PROGRAM)
            .args(creation.split_whitespace())
            .current_dir(folder));
        for (way, [theirs, ours]) in WAYS {
            let (mut plain, mut encrypted, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
            // The first writes of an export take memory.
            timed(folder, theirs);
            for _ in 0..rounds {
                let rates = [timed(folder, theirs), timed(folder, ours)];
                plain.push(rates[0]);
                encrypted.push(rates[1]);
                ratios.push(rates[1] / rates[0]);
            }
            let told = |values: Vec<f64>, digits: usize| {
                let (middle, least, most) = median(values);
                format!("{middle:.digits$} ({least:.digits$}–{most:.digits$})")
            };
            println!(
                "{name:<16}{way:<7}nbdcopy {:<20}cryptmark {:<20}ratio {}",
                told(plain, 0),
                told(encrypted, 0),
                told(ratios, 2)
            );
        }
        stop(&mut server);
    }
}

/// MB/s of a command from its start to its end.
fn timed(folder: &Path, words: &str) -> f64 {
    let (program, words) = match words.strip_prefix("nbdcopy ") {
        Some(words) => ("nbdcopy", words),
        None => (PROGRAM, words),
    };
    let begun = Instant::now();
    run(Command::new(program)
        .args(words.split_whitespace())
        .current_dir(folder));
    (640 << 20) as f64 / 1e6 / begun.elapsed().as_secs_f64()
}
