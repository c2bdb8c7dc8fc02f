//! What can be chosen for which experiment, and what a plan may say.

use super::*;
use crate::system::simulated::{CipherRate, Driver};
use bytesize::ByteSize;

/// A plan of devices.
fn devices(experiment: Experiment) -> Devices {
    match experiment {
        Experiment::Devices(devices) => devices,
        other => panic!("{other:?}"),
    }
}

const VALID: &str = r#"
title = "a plan"
size = "64 MiB"
ciphers = ["aes-xts-plain64"]

[[workload]]
name = "r"
pattern = "random"
op = "read"
block_size = "4 KiB"
seconds = 0.1
"#;

#[test]
fn every_shipped_plan_is_valid_and_has_a_title() {
    for (name, title) in shipped() {
        let plan = Experiment::load(name).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(!title.is_empty(), "{name}");
        assert_eq!(plan.title(), title);
    }
}

#[test]
fn defaults_are_the_documented_ones() {
    let plan = Devices::parse("x", VALID).unwrap();
    assert_eq!(
        (plan.repetitions, plan.sector_size.all()),
        (10, &[4096][..])
    );
    assert_eq!(plan.systems, [SystemId::Builtin]);
    assert_eq!(plan.workloads[0].queue_depth, 1);
    assert_eq!(plan.size.as_u64(), 64 << 20);
}

/// As `cryptsetup benchmark` lists them: CBC with 128 and 256 bits, XTS with
/// 256 and 512.
#[test]
fn every_cipher_takes_the_key_sizes_that_it_has() {
    let text = VALID.replacen(
        "ciphers = [\"aes-xts-plain64\"]",
        "ciphers = [\"aes-cbc-plain64\", \"aes-xts-plain64\"]\nkey_size = [128, 256, 512]",
        1,
    );
    let plan = Devices::parse("x", &text).unwrap();
    let encryptions = plan.encryptions().unwrap();
    let bits: Vec<u32> = encryptions.iter().map(|e| e.key_bits).collect();
    assert_eq!(bits, [128, 256, 256, 512]);
}

#[test]
fn an_unknown_key_is_named_with_line_and_suggestion() {
    let text = VALID.replace("pattern", "patern");
    let error = Devices::parse("x", &text).unwrap_err();
    let what = error.to_string();
    assert!(what.starts_with("x, line 8: "), "{what}");
    assert!(what.contains("patern"), "{what}");
    assert!(error.remedy().contains("\"pattern\""), "{}", error.remedy());
}

#[test]
fn large_plans_are_refused() {
    let is_large = |text: &str| {
        let refused = Devices::parse("x", text).err();
        refused.is_some_and(|error| error.to_string().contains("is not between"))
    };
    let (head, workload) = VALID.split_once("[[workload]]").unwrap();
    let workloads = |count: usize| {
        let name = |nth| workload.replace("\"r\"", &format!("\"r{nth}\""));
        let all = (0..count).map(|nth| format!("[[workload]]{}", name(nth)));
        format!("{head}{}", all.collect::<String>())
    };
    assert!(!is_large(&workloads(1000)) && is_large(&workloads(1001)));
    let cipher = "\"aes-xts-plain64\"";
    let ciphers = |count| VALID.replace(cipher, &vec![cipher; count].join(","));
    assert!(!is_large(&ciphers(10_000)) && is_large(&ciphers(10_001)));
}

#[test]
fn bad_plans_are_refused() {
    let cases = [
        ("title", "size = 3"),
        ("64 MiB", "64 Mbananas"),
        ("64 MiB", "1 KiB"),
        ("random", "spiral"),
        ("seconds = 0.1", "seconds = -1.0"),
        ("seconds = 0.1", "seconds = 0.1\nbytes = \"1 MiB\""),
        ("seconds = 0.1", "seconds = 0.1\nqueue_depth = 0"),
        ("aes-xts-plain64", "ase-xts-plain64"),
        ("\"a plan\"", "\"a plan\"\nsector_size = 520"),
        ("\"a plan\"", "\"a plan\"\nsector_size = []"),
        ("\"a plan\"", "\"a plan\"\nsector_size = [512, \"x\"]"),
        ("\"a plan\"", "\"a plan\"\nrepetitions = 0"),
        ("\"a plan\"", "\"a plan\"\nslow_repetitions = 0"),
        ("\"a plan\"", "\"a plan\"\ncores = 0"),
        ("\"a plan\"", "\"a plan\"\nderivations = [\"argon2id\"]"),
        ("\"a plan\"", "\"a plan\"\nderivations = [\"md5\"]"),
        ("\"a plan\"", "\"a plan\"\niter_time = 0"),
        ("\"a plan\"", "\"a plan\"\nkey_size = 100"),
        ("\"a plan\"", "\"a plan\"\nkey_size = []"),
        ("\"a plan\"", "\"a plan\"\nkey_size = [100, 128]"),
        ("\"a plan\"", "\"a plan\"\nsystems = [\"truecrypt\"]"),
        ("4 KiB", "512 B"),
        ("[\"aes-xts-plain64\"]", "[]"),
    ];
    for (from, to) in cases {
        let text = VALID.replacen(from, to, 1);
        assert_ne!(text, VALID);
        let error = Devices::parse("x", &text).expect_err(to);
        assert!(!error.to_string().is_empty() && !error.remedy().is_empty());
    }
    let twice = format!(
        "{VALID}{}",
        VALID
            .split_once("[[")
            .unwrap()
            .1
            .replacen("workload", "[[workload", 1)
    );
    let refused = Devices::parse("x", &twice).unwrap_err().to_string();
    assert!(refused.starts_with("two workloads"), "{refused}");
}

#[test]
fn a_misspelt_name_gets_a_suggestion() {
    let error = Experiment::load("quik").unwrap_err();
    assert!(error.remedy().contains("quick"), "{}", error.remedy());
    let missing = Experiment::load("/nonexistent/x.toml").unwrap_err();
    assert_eq!(
        missing.to_string(),
        "cannot read the plan /nonexistent/x.toml"
    );
}

#[test]
fn nothing_is_changed_unless_it_is_named() {
    for name in ["quick", "ciphers", "snia"] {
        let plan = Experiment::load(name).unwrap();
        assert_eq!(plan.clone().changed(&Changes::default()).unwrap(), plan);
    }
}

#[test]
fn a_number_of_repetitions_or_seconds_takes_the_place_of_the_plans_end() {
    let changed = |changes| Experiment::load("quick").unwrap().changed(&changes);
    let plan = changed(Changes {
        repetitions: Some(4),
        trial_seconds: Some(0.01),
        ..Changes::default()
    })
    .unwrap();
    let plan = devices(plan);
    assert_eq!((plan.repetitions, plan.until), (4, None));
    let lengths = plan.workloads.iter().map(|workload| workload.seconds);
    assert!(lengths.into_iter().all(|seconds| seconds == Some(0.01)));
    let limited = changed(Changes {
        time_limit: Some(5.0),
        ..Changes::default()
    });
    assert_eq!(devices(limited.unwrap()).until.unwrap().seconds, 5.0);
}

#[test]
fn impossible_changes_are_refused() {
    let changed = |name: &str, changes| Experiment::load(name).unwrap().changed(&changes);
    for seconds in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let changes = Changes {
            trial_seconds: Some(seconds),
            ..Changes::default()
        };
        let refused = changed("quick", changes).unwrap_err().to_string();
        assert!(refused.starts_with("workload "), "{refused}");
    }
    let none = Changes {
        repetitions: Some(0),
        ..Changes::default()
    };
    let refused = changed("quick", none).unwrap_err().to_string();
    assert!(refused.contains("is not between"), "{refused}");
}

const LIVES: &str = r#"
title = "lives"
devices = ["mlc-128g"]
seeds = 3
ciphers = ["aes-xts-plain64"]
cpu = { aes = "1500MB/s" }
"#;

/// One experiment of each kind, and of devices one for each way in which settings differ.
fn kinds() -> Vec<(&'static str, Experiment)> {
    let load = |name: &str| Experiment::load(name).unwrap();
    let of = |system: &str| {
        let systems = vec![system.parse().unwrap()];
        let changes = Changes {
            systems,
            ..Changes::default()
        };
        load("quick").changed(&changes).unwrap()
    };
    vec![
        ("devices", load("quick")),
        ("simulated drives", of("drive:hdd-wd")),
        ("another program's devices", of("veracrypt")),
        ("a mounted directory", of("path:/tmp")),
        ("a steady state", load("snia")),
        ("ciphers", load("ciphers")),
        (
            "ciphers by Java",
            load("ciphers").changed(&only("java")).unwrap(),
        ),
        ("key derivations", load("kdf")),
        ("file systems", load("file-systems")),
        ("file systems in a lab kernel", load("crypto-fs")),
        ("lives", Experiment::parse("lives", LIVES).unwrap()),
    ]
}

fn only(system: &str) -> Changes {
    Changes {
        systems: vec![system.parse().unwrap()],
        ..Changes::default()
    }
}

/// A choice of `setting` that no plan above has made.
fn chosen(setting: Setting, experiment: &Experiment) -> Changes {
    let none = Changes::default();
    match setting {
        Setting::Size => Changes {
            size: Some(ByteSize::mib(777)),
            ..none
        },
        Setting::FirstLook => Changes {
            first_look: true,
            ..none
        },
        Setting::Repetitions => Changes {
            repetitions: Some(7),
            ..none
        },
        Setting::TrialSeconds => Changes {
            trial_seconds: Some(0.07),
            ..none
        },
        Setting::TimeLimit => Changes {
            time_limit: Some(77.0),
            ..none
        },
        Setting::Precision => Changes {
            precision: Some(7.0),
            ..none
        },
        Setting::InMemory => Changes {
            in_memory: true,
            ..none
        },
        Setting::Systems => match experiment.tier() {
            Tier::Fs => only("lab:none"),
            Tier::Cipher => only("openssl"),
            // It has no ciphers that another system could take.
            Tier::Block if experiment.systems().iter().any(|s| s.directory().is_some()) => {
                only("path:/var")
            }
            Tier::Block => only("builtin-nbd"),
        },
        Setting::Ciphers => Changes {
            ciphers: vec!["twofish".into()],
            ..none
        },
        Setting::KeySize => Changes {
            key_size: Some(256),
            ciphers: vec!["aes".into()],
            ..none
        },
        Setting::SectorSizes => Changes {
            sector_sizes: vec![1024],
            ..none
        },
        Setting::Threads => Changes {
            threads: vec![7],
            ..none
        },
        Setting::Cores => Changes {
            cores: Some(7),
            ..none
        },
        Setting::Cpu => Changes {
            cpu: vec![("aes".into(), CipherRate(77.0))],
            ..none
        },
        Setting::Driver => Changes {
            driver: Some(Driver::TrueCrypt),
            ..none
        },
        Setting::Backend => Changes {
            backend: Some("portable".parse().unwrap()),
            ..none
        },
        Setting::Commands => Changes {
            commands: vec!["sync".into()],
            ..none
        },
        // Twice the files need twice the room.
        Setting::Jobs => Changes {
            jobs: Some(2),
            size: matches!(experiment, Experiment::FileSystems(_)).then(|| ByteSize::gib(1)),
            ..none
        },
        Setting::Energy => Changes {
            energy: Some("none".parse().unwrap()),
            ..none
        },
        Setting::Seed => Changes {
            seed: Some(7),
            ..none
        },
        Setting::Place => Changes {
            at: Some("/tmp".into()),
            ..none
        },
        Setting::Overwrite => Changes {
            overwrite: true,
            ..none
        },
    }
}

/// Whatever is chosen changes what is described, or is refused in the same words. Energy, seed,
/// place and overwriting are the run's, which describes them itself.
#[test]
fn every_setting_takes_effect_in_every_kind_or_is_refused() {
    let at = Path::new("/data");
    for (kind, experiment) in kinds() {
        for setting in Setting::ALL {
            let changes = chosen(setting, &experiment);
            let changed = experiment.clone().changed(&changes);
            let of_the_run = [
                Setting::Energy,
                Setting::Seed,
                Setting::Place,
                Setting::Overwrite,
            ];
            match (experiment.refuses(setting), changed) {
                (Some(of), Err(error)) => {
                    let words = format!("{} cannot be chosen for {of}", setting.name());
                    // A key size comes with its cipher here, which may be refused before.
                    let refused = error.to_string();
                    assert!(refused == words || setting == Setting::KeySize, "{refused}");
                    assert!(error.remedy().starts_with("Leave it out"));
                }
                (None, Ok(changed)) if of_the_run.contains(&setting) => {
                    assert_eq!(changed, experiment, "{kind}: {setting:?}");
                }
                (None, Ok(changed)) => assert_ne!(
                    changed.describe(at),
                    experiment.describe(at),
                    "{kind}: {setting:?} changes nothing that is said"
                ),
                (refuses, changed) => {
                    panic!("{kind}: {setting:?}: refused for {refuses:?}, but {changed:?}")
                }
            }
        }
    }
}

/// The number of the plan is told, and not another one.
#[test]
fn erase_blocks_of_odd_sizes_are_refused() {
    let (_, text) = read("crypto-fs").unwrap();
    for (size, words) in [
        ("12345 B", "erase_size = 12345 is not a power of two"),
        ("2 KiB", "erase_size = 2048 is not between 4096 and 1048576"),
    ] {
        let text = format!("erase_size = \"{size}\"\n{}", without_erase_size(&text));
        let error = FileSystems::parse("x", &text).unwrap_err();
        assert_eq!(error.to_string(), words);
        assert!(!error.remedy().is_empty());
    }
}

fn without_erase_size(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.starts_with("erase_size"));
    lines.map(|line| format!("{line}\n")).collect()
}

/// A key of a plan that chooses what its kind does not take is refused like the option.
#[test]
fn keys_are_refused_in_the_words_of_options() {
    let head = |tier: &str| format!("title = \"x\"\ntier = \"{tier}\"\n");
    for (tier, key, words) in [
        (
            "kdf",
            "size = \"1 MiB\"",
            "a size cannot be chosen for key derivations",
        ),
        (
            "kdf",
            "systems = []",
            "systems cannot be chosen for key derivations",
        ),
        (
            "cipher",
            "driver = \"queue\"",
            "a driver model cannot be chosen for ciphers in memory",
        ),
        (
            "cipher",
            "jobs = 2",
            "jobs cannot be chosen for ciphers in memory",
        ),
        (
            "block",
            "jobs = 2",
            "jobs cannot be chosen for block devices",
        ),
        ("fs", "cores = 2", "cores cannot be chosen for file systems"),
        (
            "fs",
            "cpu = {}",
            "cipher rates cannot be chosen for file systems",
        ),
    ] {
        let error = Experiment::parse("x", &(head(tier) + key)).expect_err(key);
        assert_eq!(error.to_string(), words);
    }
    let error = Experiment::parse("x", &(LIVES.to_owned() + "jobs = 2\n")).unwrap_err();
    let words = "jobs cannot be chosen for lives of simulated drives";
    assert_eq!(error.to_string(), words);
}
