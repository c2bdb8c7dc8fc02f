//! What others have measured: published figures beside ours, and their results
//! as runs.

use super::{assert_no_litter, sandbox};
use std::path::Path;
use testkit::two_lines;

/// Before and after by a program that knows nothing of this one, and a run that
/// comes from another machine.
#[test]
fn results_of_others_are_imported() {
    let sandbox = sandbox();
    let samples = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/crates/lab/tests/import/samples"
    );
    let before = format!("{samples}/crystaldiskmark.txt");
    let text = std::fs::read_to_string(&before).unwrap();
    let after = sandbox.path("after.txt");
    let half = text.replace("562.430", "281.215").replace("536.4", "268.2");
    std::fs::write(&after, half).unwrap();
    let after = after.to_str().unwrap();
    let id = |said: &str| {
        let said = said.trim_end().trim_end_matches('.');
        said.rsplit(' ').next().unwrap().to_owned()
    };
    let said = sandbox.ok(&["import", &before]);
    assert!(
        said.starts_with("Imported 7 cells of crystaldiskmark as run "),
        "{said}"
    );
    let (before, after) = (id(&said), id(&sandbox.ok(&["import", after])));
    let compared = sandbox.ok(&["compare", &before, &after]);
    assert!(
        compared.contains("seq1m-q8t1-read") && compared.contains("0.5"),
        "{compared}"
    );
    // Of one measurement each nothing is certain.
    sandbox.ok(&["compare", &before, &after, "--fail-if-slower", "3"]);

    sandbox.ok(&["report", &before, "-o", "before.json"]);
    let again = sandbox.ok(&["import", "before.json"]);
    assert_eq!(again, format!("Run {before} is stored already.\n"));
    let elsewhere = sandbox.path("elsewhere.db");
    let elsewhere = elsewhere.to_str().unwrap();
    let said = sandbox.ok(&["--store", elsewhere, "import", "before.json"]);
    assert_eq!(id(&said), before);
    let shown = |store: &[&str]| sandbox.ok(&[store, &["show", "--json", &before]].concat());
    assert_eq!(shown(&["--store", elsewhere]), shown(&[]));

    for file in ["tiny.toml", "nothing.json", "/dev/zero", "at"] {
        let said = sandbox.fails(2, &["import", file]);
        assert!(said.contains(file), "{said}");
    }
}

/// The published experiments in their short form, with what was published
/// beside it in every kind of report. Memory is enough: speed is not asked here.
#[test]
fn published_experiments_run_in_short_and_stand_beside_their_papers() {
    let sandbox = sandbox();
    let one_cipher = &["--cipher", "aes-xts-plain64", "--key-size", "512"][..];
    for (plan, narrowed, cells, words) in [
        (
            "storage-ciphers",
            &[][..],
            4 * 8,
            &[
                "BestCrypt, Samsung 128 GB MLC NAND SSD, Figure 12",
                "36.24 Mb/s",
            ][..],
        ),
        (
            "fde-passmark",
            one_cipher,
            3 * 3,
            &["1.79 MBytes/Sec", "5.1 %", "Executive summary, Fig. 2"],
        ),
        ("ssd-truecrypt", one_cipher, 6 * 3, &["9.5 MB/s", "58 %"]),
    ] {
        let run = [
            "run", plan, "--quick", "--size", "64MB", "--at", "at", "--json",
        ];
        let text = sandbox.ok(&[&run[..], &["run.json"], narrowed].concat());
        for file in ["r.md", "r.html", "r.csv"] {
            sandbox.ok(&["report", "latest", "-o", file]);
        }
        let read = |file: &str| sandbox.read_text(file);
        // Lines of a terminal break where they are full.
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for (report, kind) in [
            (text, "text"),
            (read("r.md"), "Markdown"),
            (read("r.html"), "HTML"),
        ] {
            assert!(
                report.contains("Compared with the paper"),
                "{plan} as {kind}: {report}"
            );
            for word in words {
                assert!(
                    report.contains(word),
                    "{plan}: {word} is not in its {kind}: {report}"
                );
            }
        }
        let json: serde_json::Value = serde_json::from_str(&read("run.json")).unwrap();
        let trials = json["trials"].as_array().unwrap();
        assert_eq!(trials.len(), cells, "{plan}");
        assert!(trials.iter().all(|trial| trial["repetitions"] == 3));
        let published = |trial: &serde_json::Value| trial["published"].as_array().map(Vec::len);
        let of_trials: usize = trials.iter().filter_map(published).sum();
        let in_csv = read("r.csv").matches(" (").count();
        assert!(
            of_trials > 0 && in_csv >= of_trials,
            "{plan}: {of_trials}, {in_csv}"
        );
    }
    assert_no_litter(&sandbox);
}

/// The shortest of the Java comparison's texts, two ciphers: its two systems
/// stand beside Java here, and beside nothing else.
#[test]
fn the_java_comparison_stands_beside_its_paper() {
    let sandbox = sandbox();
    let shipped = sandbox.ok(&["plans", "show", "java-os"]);
    let (plan, published) = shipped.split_once("# Rows of").unwrap();
    let mut workloads = plan.split("[[workload]]");
    let mut short = workloads.next().unwrap().to_owned();
    for workload in workloads.take(2) {
        short.push_str("[[workload]]");
        short.push_str(workload);
    }
    let kept = |line: &&str| !line.contains("{ workload") || line.contains("\"encrypt-400k");
    let published: Vec<&str> = published.lines().skip(1).filter(kept).collect();
    let short = format!("{short}\n{}\n", published.join("\n"));
    sandbox.write("java.toml", short);
    let ciphers = ["--cipher", "aes-ecb", "--cipher", "des3_ede-ecb"];
    let run = ["run", "java.toml", "--quick", "--json", "run.json"];
    let text = sandbox.ok(&[&run[..], &ciphers].concat());
    if text.contains("absent: java") {
        println!("skipped: java among the systems (it is absent)");
        return;
    }
    for word in [
        "Ubuntu MATE, Java 8",
        "Windows 8 64-bit, Java 8",
        "56.54 ms",
        "3.41",
        "So here? yes.",
    ] {
        assert!(text.contains(word), "{word} is not in {text}");
    }
    let json = sandbox.read_json("run.json");
    for trial in json["trials"].as_array().unwrap() {
        let expected = if trial["system"] == "java" { 2 } else { 0 };
        assert_eq!(
            trial["published"].as_array().unwrap().len(),
            expected,
            "{trial}"
        );
    }
}

#[test]
fn papercheck_names_the_claims_that_do_not_follow() {
    let sandbox = sandbox();
    let published = Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/lab/plans/published");
    let check = |file: &str| sandbox.run(&["papercheck", published.join(file).to_str().unwrap()]);
    let output = check("storage-ciphers.csv");
    two_lines(&output, 5, "a claim that does not follow");
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.lines().count(), 2, "{text}");
    for word in [
        "line 94, row 93",
        "53.03 %",
        "399.23",
        "360.89",
        "10.62 %",
        "36 claimed",
    ] {
        assert!(text.contains(word), "{word} is not in {text}");
    }
    let output = check("fde-passmark.csv");
    two_lines(&output, 5, "claims in two ways");
    assert!(
        String::from_utf8(output.stdout)
            .unwrap()
            .contains("2.4 %, and 2.5 % in line 5")
    );
    for file in ["java-os.csv", "ssd-truecrypt.csv", "crypto-fs.csv"] {
        assert_eq!(check(file).status.code(), Some(0), "{file}");
    }
    // Those that ship need no file.
    for name in ["storage-ciphers", "fde-passmark"] {
        two_lines(&sandbox.run(&["papercheck", name]), 5, name);
    }
    for name in ["java-os", "ssd-truecrypt", "crypto-fs"] {
        sandbox.ok(&["papercheck", name]);
    }
    assert!(
        sandbox
            .fails(2, &["papercheck", "anvil"])
            .contains("storage-ciphers")
    );

    let header = std::fs::read_to_string(published.join("java-os.csv")).unwrap();
    let header = header.lines().next().unwrap();
    let row = |value: &str| format!("d,1,claimed difference,A over B,,,,,,m,%,{value},f,,\n");
    for (text, told) in [
        (String::new(), "line 1: the header has no column"),
        (format!("{header}\n"), "no row"),
        (
            format!("{header}\n{}d,s,2\n", row("5")),
            "line 3: there are 3 fields",
        ),
        (
            format!("{header}\n{}{}", row("5"), row("much")),
            "line 3: \"much\"",
        ),
    ] {
        sandbox.write("bad.csv", text);
        let error = sandbox.fails(2, &["papercheck", "bad.csv"]);
        assert!(error.contains("bad.csv") && error.contains(told), "{error}");
    }
    sandbox.write("bad.csv", b"\xff\xfe");
    sandbox.fails(2, &["papercheck", "bad.csv"]);
    sandbox.fails(2, &["papercheck", "nowhere.csv"]);
    sandbox.fails(2, &["papercheck", "at"]);
}
