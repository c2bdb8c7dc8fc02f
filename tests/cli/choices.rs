//! Whatever is chosen for a run takes effect, or is refused in the same words.

use super::sandbox;

/// Lives of drives, which take a seed and nothing else.
const LIVES: &str = r#"
title = "lives"
devices = ["mlc-128g"]
seeds = 3
ciphers = ["aes-xts-plain64"]
cpu = { aes = "1500MB/s" }
"#;

/// Every option that chooses something, with its words in a refusal.
const OPTIONS: &[(&str, &str)] = &[
    ("--at=at", "a place"),
    ("--size=1GiB", "a size"),
    ("--repeat=7", "repetitions"),
    ("--time=7", "a time limit"),
    ("--precision=7", "a precision"),
    ("--quick", "a first look"),
    ("--cipher=twofish", "ciphers"),
    ("--key-size=384", "a key size"),
    ("--threads=7", "threads"),
    ("--cores=7", "cores"),
    ("--cpu=aes=7MB/s", "cipher rates"),
    ("--driver=truecrypt", "a driver model"),
    ("--sector-size=1024", "a sector size"),
    ("--backend=portable", "a backend"),
    ("--op=sync", "commands"),
    ("--jobs=2", "jobs"),
    ("--energy=none", "an energy sensor"),
    ("--seed=7", "a seed"),
    ("--yes", "overwriting"),
];

/// Options that a shard takes too: all others say what is measured, which its plan does.
const OF_SHARDS: [&str; 5] = [
    "--at=at",
    "--backend=portable",
    "--energy=none",
    "--seed=7",
    "--yes",
];

#[test]
fn options_take_effect_or_are_refused_in_the_same_words() {
    let sandbox = sandbox();
    sandbox.write("lives.toml", LIVES);
    for plan in [
        "tiny.toml",
        "snia",
        "ciphers",
        "kdf",
        "file-systems",
        "crypto-fs",
        "lives.toml",
    ] {
        let plain = sandbox.ok(&["run", plan, "--dry-run"]);
        let shard = ["run", plan, "--dry-run", "--shard=1/1"];
        for (option, words) in OPTIONS {
            let option = match (*option, plan) {
                // Its keys have 256 bits, and Serpent has no larger ones.
                ("--key-size=384", "crypto-fs") => "--key-size=128",
                // Twice the files need twice the room.
                ("--jobs=2", "crypto-fs" | "file-systems") => "--jobs=2 --size=1GiB",
                (option, _) => option,
            };
            let option: Vec<&str> = option.split(' ').collect();
            let chosen = sandbox.run(&[&["run", plan, "--dry-run"], &option[..]].concat());
            let said = String::from_utf8_lossy(&chosen.stderr).into_owned();
            match chosen.status.code() {
                // What is there is overwritten if it is a file: `data_is_not_overwritten_unasked`.
                Some(0) if option == ["--yes"] => {}
                Some(0) => assert_ne!(
                    String::from_utf8_lossy(&chosen.stdout),
                    plain,
                    "{plan} {option:?} changes nothing that is said"
                ),
                Some(2) => {
                    let first = format!("error: {words} cannot be chosen for ");
                    assert!(said.starts_with(&first), "{plan} {option:?}: {said}");
                }
                other => panic!("{plan} {option:?}: {other:?}, {said}"),
            }
            if plan == "snia" {
                continue;
            }
            let part = sandbox.run(&[&shard[..], &option[..]].concat());
            match OF_SHARDS.contains(&option[0]) {
                true => {
                    assert_eq!(
                        part.status.code(),
                        chosen.status.code(),
                        "{plan} {option:?}"
                    );
                    assert_eq!(
                        String::from_utf8_lossy(&part.stderr),
                        said,
                        "{plan} {option:?}"
                    );
                }
                false => assert_eq!(part.status.code(), Some(2), "{plan} {option:?}"),
            }
        }
    }
}

/// What people ask for that is no system here: the error says how it is measured, and the page of
/// questions has it too.
#[test]
fn what_people_ask_for_is_answered() {
    let sandbox = sandbox();
    let page = include_str!("../../docs/FAQ.md").to_lowercase();
    for (asked, answer) in [
        ("zfs", "path:DIR"),
        ("btrfs", "path:DIR"),
        ("bcachefs", "path:DIR"),
        ("opal", "before and after"),
        ("BitLocker", "before and after"),
        ("ebs", "two disks"),
        ("ceph", "fleet manifest"),
        ("longhorn", "storage classes"),
        ("rook", "fleet manifest"),
        ("luks2", "dm-crypt"),
        ("truecrypt", "veracrypt"),
        ("nothing-at-all", "doctor"),
    ] {
        let output = sandbox.run(&["run", "--system", asked]);
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{error}");
        assert!(error.contains(answer), "{asked}: {error}");
        let word = asked.trim_end_matches('2').to_lowercase();
        assert!(page.contains(&word) || word == "nothing-at-all", "{word}");
    }
}

/// Of two rates of one cipher one would have no effect, by whatever name it is called.
#[test]
fn two_rates_of_a_cipher_are_refused() {
    let sandbox = sandbox();
    let drive = ["--system", "drive:tlc-1t"];
    let device = ["--device", "tlc-1t", "--cipher", "aes"];
    for (command, of) in [
        (&["run", "quick", "--dry-run"][..], drive.as_slice()),
        (&["advise"], &drive),
        (&["drive", "predict"], &device),
    ] {
        for again in ["aes=2MB/s", "aes-xts-plain64=1MB/s"] {
            let rates = ["--cpu", "aes=1MB/s", "--cpu", again];
            let said = sandbox.fails(2, &[command, of, &rates].concat());
            assert!(said.contains("two rates of aes"), "{command:?} {said}");
        }
    }
}
