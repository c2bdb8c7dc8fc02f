//! Advice on machines that are not here, on this one, and what is not to be had.

use super::sandbox;
use serde_json::Value;
use testkit::Sandbox;

/// Measures what was proposed by the command that the advice gives; every
/// workload must lie where it was expected.
fn expectations_are_met(sandbox: &Sandbox, advice: &Value) {
    let check = advice["check"].as_str().unwrap();
    let words: Vec<&str> = check.split(' ').skip(1).collect();
    let run = sandbox.json(&[&words[..], &["--seed", "7", "--json", "-"]].concat());
    let expected = advice["expected"].as_array().unwrap();
    assert_eq!(expected.len(), 4, "{expected:?}");
    for expected in expected {
        let trials = run["trials"].as_array().unwrap();
        let is_its = |trial: &&Value| {
            trial["workload"] == expected["workload"] && !trial["cipher"].is_null()
        };
        let trial = trials.iter().find(is_its).unwrap();
        let number = |value: &Value| value.as_f64().unwrap();
        let found = number(&trial["overhead"]["ratio"]["median"]);
        let range = number(&expected["ratio"]["low"])..=number(&expected["ratio"]["high"]);
        assert!(range.contains(&found), "{found} is not in {expected}");
    }
}

/// Rates as of a processor with instructions for AES.
const FAST: &str =
    "aes=4500MB/s,xchacha12=2000MB/s,xchacha20=1500MB/s,serpent=700MB/s,twofish=400MB/s";

/// Rates as of one without: AES by tables and in constant time is slow.
const SLOW: &str = "aes=60MB/s,xchacha12=320MB/s,xchacha20=230MB/s,serpent=90MB/s,twofish=85MB/s";

fn nvme() -> String {
    let drive = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/answers/nvme.toml");
    format!("drive:{drive}")
}

fn choice<'a>(advice: &'a Value, what: &str) -> (&'a str, &'a str) {
    let choices = advice["choices"].as_array().unwrap();
    let found = choices.iter().find(|choice| choice["what"] == what);
    let found = found.unwrap_or_else(|| panic!("{what} is not in {choices:?}"));
    let text = |key: &str| found[key].as_str().unwrap();
    (text("value"), text("reason"))
}

#[test]
fn a_fast_disk_behind_a_fast_processor_gets_aes() {
    let sandbox = sandbox();
    let machine = ["advise", "--system", &nvme(), "--cpu", FAST, "--cores", "4"];
    let advice = sandbox.json(&[&machine[..], &["--json"]].concat());
    let setup = &advice["setup"];
    assert_eq!(setup["cipher"], "aes-xts-plain64", "{advice:#}");
    assert_eq!(setup["key_size"], 512);
    assert_eq!(setup["sector_size"], 4096);
    assert_eq!(setup["pbkdf"], "argon2id");
    assert_eq!(setup["format"], "luks2");
    assert_eq!(setup["allow_discards"], true);
    assert_eq!(setup["flags"], serde_json::json!([]));
    let (_, reason) = choice(&advice, "dm-crypt flags");
    assert!(reason.contains("was not measured"), "{reason}");
    assert_eq!(advice["limit"], "chosen", "{advice:#}");
    let (_, reason) = choice(&advice, "cipher");
    assert!(
        reason.contains("4,500 MB/s") && reason.contains("Twofish"),
        "{reason}"
    );
    let (_, reason) = choice(&advice, "TRIM");
    assert!(reason.contains("drive lifetime"), "{reason}");
    // Every part has a reason of one sentence, and every other cipher its cost.
    for choice in advice["choices"].as_array().unwrap() {
        let reason = choice["reason"].as_str().unwrap();
        assert!(reason.ends_with('.') && !reason.contains(". "), "{reason}");
    }
    let alternatives = advice["alternatives"].as_array().unwrap();
    let others = alternatives
        .iter()
        .filter(|other| other["ratio"].is_object());
    assert_eq!(others.count(), 4, "{alternatives:?}");
    let open = advice["commands"]["cryptsetup"][1].as_str().unwrap();
    assert_eq!(
        open,
        "cryptsetup open --allow-discards --persistent /dev/DISK data"
    );
    assert_eq!(
        advice["commands"]["crypttab"],
        "data /dev/DISK none luks,discard"
    );
    expectations_are_met(&sandbox, &advice);
    // The same for a person.
    let text = sandbox.ok(&machine);
    assert!(
        text.starts_with("Choose AES-256 XTS: it keeps up with your disk"),
        "{text}"
    );
    assert!(
        text.contains("cryptsetup luksFormat --type luks2"),
        "{text}"
    );
    assert!(!text.contains("warning: serpent"), "{text}");
}

#[test]
fn flash_behind_a_processor_without_aes_gets_adiantum_by_figures() {
    let sandbox = sandbox();
    let machine = ["advise", "--system", "drive:tlc-1t", "--json", "--cpu"];
    let advice = sandbox.json(&[&machine[..], &[SLOW]].concat());
    let setup = &advice["setup"];
    assert_eq!(
        setup["cipher"], "xchacha12,aes-adiantum-plain64",
        "{advice:#}"
    );
    assert_eq!(setup["key_size"], 256);
    assert_eq!(setup["flags"], serde_json::json!([]));
    assert_eq!(advice["limit"], "cipher");
    let answer = advice["answer"].as_str().unwrap();
    assert!(
        answer.starts_with("Your disk is faster than all of these ciphers"),
        "{answer}"
    );
    let (_, reason) = choice(&advice, "cipher");
    assert!(
        reason.contains("320 MB/s") && reason.contains("AES-256 XTS costs"),
        "{reason}"
    );
    expectations_are_met(&sandbox, &advice);

    // By figures: with others another cipher is reached.
    let serpent = "aes=60MB/s,xchacha12=80MB/s,xchacha20=70MB/s,serpent=300MB/s,twofish=85MB/s";
    let advice = sandbox.json(&[&machine[..], &[serpent]].concat());
    assert_eq!(
        advice["setup"]["cipher"], "serpent-xts-plain64",
        "{advice:#}"
    );
    // And what was measured of portable code decides where nobody gives figures.
    let portable = ["--backend", "portable"];
    let advice = sandbox.json(&[&machine[..4], &portable].concat());
    let rates = advice["rates"].as_array().unwrap();
    let rate = |cipher: &str| {
        let found = rates.iter().find(|rate| rate["cipher"] == cipher);
        found.unwrap()["mb_s"].as_f64().unwrap()
    };
    let cipher = advice["setup"]["cipher"].as_str().unwrap();
    // Which one it is depends on the machine and on what else it does.
    assert!(rate(cipher) >= rate("aes-xts-plain64"), "{rates:?}");
    expectations_are_met(&sandbox, &advice);
}

#[test]
fn a_disk_that_turns_gets_aes_since_nothing_is_slower() {
    let sandbox = sandbox();
    let machine = ["advise", "--system", "drive:hdd-wd", "--cpu", FAST];
    let advice = sandbox.json(&[&machine[..], &["--json"]].concat());
    let setup = &advice["setup"];
    assert_eq!(setup["cipher"], "aes-xts-plain64");
    assert_eq!(setup["sector_size"], 512);
    assert_eq!(setup["allow_discards"], false);
    assert_eq!(setup["flags"], serde_json::json!([]));
    assert_eq!(advice["limit"], "disk", "{advice:#}");
    assert_eq!(
        advice["answer"],
        "Each of these ciphers is faster than your disk: choose AES-256 XTS."
    );
    let (_, reason) = choice(&advice, "TRIM");
    assert!(reason.contains("hard disk"), "{reason}");
    assert_eq!(advice["commands"]["crypttab"], "data /dev/DISK none luks");
    expectations_are_met(&sandbox, &advice);
}

/// Of a drive that is smaller than what is measured elsewhere, all is.
#[test]
fn a_small_drive_is_asked_for_all_of_it() {
    let sandbox = sandbox();
    let key = ["advise", "--system", "drive:flash-key-128m", "--json"];
    let cipher = ["--cpu", "aes=60MB/s", "--cipher", "aes-xts-plain64"];
    let advice = sandbox.json(&[key, cipher].concat());
    let check = advice["check"].as_str().unwrap();
    assert!(check.contains("--size 128000000"), "{check}");
    let words: Vec<&str> = check.split(' ').skip(1).collect();
    let said = sandbox.ok(&[&words[..], &["--dry-run"]].concat());
    assert!(said.contains("the first 128.0 MB"), "{said}");
}

/// What is proposed here is made by the command that is given, in the place that
/// was measured; nothing else stays there.
#[test]
fn this_machine_gets_a_set_up_that_can_be_made() {
    let sandbox = sandbox();
    let one = ["advise", "--at", "at", "--cipher", "aes-xts-plain64"];
    let advice = sandbox.json(&[&one[..], &["--json"]].concat());
    assert_eq!(std::fs::read_dir(sandbox.path("at")).unwrap().count(), 0);
    assert_eq!(advice["setup"]["cipher"], "aes-xts-plain64");
    // A key of half the size and the other sectors are measured in memory, in turns.
    let others = advice["alternatives"].as_array().unwrap().iter();
    let others = others.filter(|other| other["ratio"]["n"] == 15);
    assert_eq!(others.count(), 2, "{advice:#}");
    assert_eq!(advice["rates"][0]["interval"]["n"], 9);
    assert!(
        sandbox
            .ok(&["list"])
            .contains(advice["run"].as_str().unwrap())
    );

    let image = sandbox.path("at/volume.img");
    sandbox.write("passphrase", "correct horse\n");
    let create = advice["commands"]["cryptmark"][0].as_str().unwrap();
    assert!(create.contains(image.to_str().unwrap()), "{create}");
    // The same, cheap to open, and smaller.
    let cheap = create
        .replace("--size 10GiB", "--size 32MiB")
        .replace("--iter-time 2000", "--iter-time 1");
    assert_ne!(cheap, create);
    let words: Vec<&str> = cheap.split(' ').skip(1).collect();
    let said = sandbox.ok(&[&words[..], &["--passphrase-file", "passphrase"]].concat());
    assert!(
        said.contains("luks2 volume") && said.contains("argon2id"),
        "{said}"
    );
    let info = sandbox.ok(&["volume", "info", "at/volume.img"]);
    let sector = advice["setup"]["sector_size"].to_string();
    for word in ["aes-xts-plain64", "512", &sector] {
        assert!(info.contains(word), "{word} is not in\n{info}");
    }
}

/// Of another machine nothing is known but what was given: no rate, no memory, no cores.
#[test]
fn this_machine_says_nothing_about_another() {
    let sandbox = sandbox();
    let board = ["advise", "--system", "drive:sd-64g", "--json", "--cpu"];
    let given = "aes=60MB/s,xchacha12=90MB/s";
    let advice = sandbox.json(&[&board[..], &[given]].concat());
    let rates = advice["rates"].as_array().unwrap();
    assert_eq!(rates.len(), 2, "{rates:?}");
    assert!(rates.iter().all(|rate| rate["interval"].is_null()));
    assert_eq!(advice["setup"]["pbkdf"], "argon2id");
    assert!(advice["setup"]["pbkdf_memory"].is_null(), "{advice:#}");
    assert!(advice["setup"]["pbkdf_parallel"].is_null());
    let create = advice["commands"]["cryptmark"][0].as_str().unwrap();
    assert!(!create.contains("--pbkdf-memory"), "{create}");
    let notes = advice["notes"].to_string();
    for word in ["Argon2", "serpent-xts-plain64", "twofish-xts-plain64"] {
        assert!(notes.contains(word), "{word}: {notes}");
    }
    // With its memory, of which there is half for a derivation.
    let memory = ["--memory", "1GiB", "--cores", "2"];
    let advice = sandbox.json(&[&board[..], &[given], &memory].concat());
    assert_eq!(advice["setup"]["pbkdf_memory"], 512 << 10);
    assert_eq!(advice["setup"]["pbkdf_parallel"], 2);
    let unrated = [
        "--cipher",
        "serpent-xts-plain64",
        "--cipher",
        "aes-xts-plain64",
    ];
    let error = sandbox.fails(2, &[&board[..], &["aes=60MB/s"], &unrated].concat());
    assert!(error.contains("--cpu serpent="), "{error}");
}

#[test]
fn what_is_weak_or_impossible_is_refused() {
    let sandbox = sandbox();
    let refused: [(&[&str], &str); 8] = [
        (&["--cipher", "aes-cbc-plain64"], "watermarking"),
        (&["--cipher", "aes-ecb"], "equal blocks"),
        (&["--cipher", "blowfish-cbc-essiv:sha256"], "64 bits"),
        (&["--cipher", "aes-xts-plain64", "--key-size", "128"], "128"),
        (&["--key-size", "100"], "100"),
        (&["--sector-size", "520"], "520"),
        (&["--type", "luks1", "--sector-size", "4096"], "LUKS1"),
        (&["--system", "builtin"], "isn't a simulated drive"),
    ];
    for (arguments, word) in refused {
        let error = sandbox.fails(2, &[&["advise"], arguments].concat());
        assert!(error.contains(word), "{arguments:?}: {error}");
    }
    let unused = [
        "advise",
        "--system",
        "drive:hdd-wd",
        "--cpu",
        "camellia=1MB/s",
    ];
    assert!(sandbox.fails(2, &unused).contains("camellia"));
}
