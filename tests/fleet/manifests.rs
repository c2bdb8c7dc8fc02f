//! Manifests: what Kubernetes' own schemas say of them, and that scripts hold
//! nothing but what was meant.

use crate::sandbox;
use std::path::PathBuf;
use std::process::Command;

/// The releases whose schemas are asked.
const RELEASES: [&str; 2] = ["1.36.0", "1.37.0"];

/// `kubernetes-validate` of PyPI, where the tests' tools are.
fn validator() -> Option<PathBuf> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let own = root.join("target/tools/kubernetes-validate/bin/kubernetes-validate");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|folder| folder.join("kubernetes-validate"));
    found.chain([own]).find(|path| path.is_file())
}

#[test]
fn kubernetes_accepts_the_manifests() {
    let Some(validator) = validator() else {
        println!("skipped: kubernetes-validate is not installed (PyPI: kubernetes-validate)");
        return;
    };
    let sandbox = sandbox();
    let cut = |plan: &str, hosts: &str, name: &str| {
        let cut = ["fleet", "plan", plan, "--hosts", hosts, "--name", name];
        let _ = std::fs::remove_file(sandbox.path("experiment.toml"));
        sandbox.ok(&[&cut[..], &["-o", "experiment.toml"]].concat());
    };
    let manifest = |options: &[&str]| {
        let manifest = ["fleet", "manifest", "experiment.toml", "--kubernetes"];
        sandbox.ok(&[&manifest[..], options].concat())
    };
    let valid = |text: &str, release: &str| {
        let file = sandbox.path("manifest.yaml");
        std::fs::write(&file, items(text)).unwrap();
        let output = Command::new(&validator)
            .args(["--strict", "--kubernetes-version", release])
            .arg(&file)
            .output()
            .unwrap();
        let said = format!(
            "{}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
        (output.status.success(), said)
    };
    cut("drives.toml", "40", "Spring.2026");
    let simulated = manifest(&["--at-once", "8"]);
    assert!(!simulated.contains("privileged\": true") && !simulated.contains("podAntiAffinity"));
    cut("quick", "100", "disks");
    let storage = manifest(&[
        "--storage-class",
        "fast",
        "--storage-class",
        "slow.zone-b",
        "--namespace",
        "lab",
        "--toleration",
        "dedicated=storage:NoSchedule",
        "--toleration",
        "gpu",
        "--node-label",
        "disk=nvme",
        "--memory",
        "2Gi",
        "--cores",
        "4",
    ]);
    assert_eq!(storage.matches("\"kind\": \"Job\"").count(), 2);
    assert!(storage.contains("\"storageClassName\": \"slow.zone-b\""));
    assert!(storage.contains("podAntiAffinity") && storage.contains("\"runAsNonRoot\": true"));
    let mapped = "title = \"dm-crypt\"\nsize = \"64 MiB\"\nsystems = [\"dm-crypt\"]\n\
                  ciphers = [\"aes-xts-plain64\"]\n[[workload]]\nname = \"r\"\n\
                  pattern = \"random\"\nop = \"read\"\nblock_size = \"4 KiB\"\nseconds = 1.0\n";
    sandbox.write("mapped.toml", mapped);
    cut("mapped.toml", "3", "mapped");
    let mapped = manifest(&[]);
    assert!(mapped.contains("\"privileged\": true"));
    for release in RELEASES {
        for text in [&simulated, &storage, &mapped] {
            let (accepted, said) = valid(text, release);
            assert!(accepted, "{release}: {said}");
        }
        // It would tell: a word that Kubernetes does not know, and a wrong type.
        for (from, to) in [
            ("\"completionMode\"", "\"completionmode\""),
            ("\"completions\": 40", "\"completions\": \"40\""),
        ] {
            let wrong = simulated.replacen(from, to, 1);
            assert_ne!(wrong, simulated);
            assert!(!valid(&wrong, release).0, "{release} accepts {to}");
        }
    }
}

/// The objects of a list as documents: the validator takes them one by one.
fn items(list: &str) -> String {
    let list: serde_json::Value = serde_json::from_str(list).unwrap();
    let items = list["items"].as_array().unwrap();
    items
        .iter()
        .map(|item| format!("---\n{item:#}\n"))
        .collect()
}

#[test]
fn scripts_hold_what_was_meant() {
    let sandbox = sandbox();
    let cut = [
        "fleet",
        "plan",
        "drives.toml",
        "--hosts",
        "40",
        "-o",
        "experiment.toml",
    ];
    sandbox.ok(&cut);
    fn with<'a>(options: &[&'a str]) -> Vec<&'a str> {
        let slurm = ["fleet", "manifest", "experiment.toml", "--slurm"];
        [&slurm[..], options].concat()
    }
    let script = sandbox.ok(&with(&[
        "--partition",
        "disks",
        "--time",
        "1:30:00",
        "--memory",
        "2G",
        "--at-once",
        "8",
    ]));
    for line in [
        "#SBATCH --array=1-40%8",
        "#SBATCH --requeue",
        "#SBATCH --partition=disks",
        "#SBATCH --time=1:30:00",
        "#SBATCH --mem=2G",
    ] {
        assert!(
            script.lines().any(|known| known == line),
            "{line}: {script}"
        );
    }
    assert!(
        !script.contains("--exclusive"),
        "nobody is disturbed by virtual time"
    );
    let syntax = Command::new("bash")
        .args(["-n", "-c", &script])
        .output()
        .unwrap();
    assert!(
        syntax.status.success(),
        "{}",
        String::from_utf8_lossy(&syntax.stderr)
    );
    for wrong in [
        &["--partition", "a b"][..],
        &["--partition", "a\n#SBATCH --uid=0"],
        &["--at", "/mnt/'; rm -rf /; '"],
        &["--program", ""],
    ] {
        sandbox.fails(2, &with(wrong));
    }
    let told = sandbox.fails(2, &["fleet", "manifest", "drives.toml", "--slurm"]);
    assert!(told.contains("not an experiment in shards"), "{told}");
    std::fs::remove_file(sandbox.path("experiment.toml")).unwrap();
    // More shards than an array has tasks: every task takes several.
    let many = [
        "fleet",
        "plan",
        "quick",
        "--hosts",
        "2500",
        "-o",
        "experiment.toml",
    ];
    sandbox.ok(&many);
    let script = sandbox.ok(&with(&["--at", "/mnt/a disk"]));
    assert!(script.contains("#SBATCH --array=1-1000\n") && script.contains("shard += 1000"));
    assert!(script.contains("#SBATCH --exclusive") && script.contains("--at '/mnt/a disk'"));
}

/// Every option of a manifest changes it, or is refused; and a place in the words of `run`.
#[test]
fn options_take_effect_or_are_refused() {
    const OPTIONS: [&[&str]; 14] = [
        &["--at-once", "2"],
        &["--memory", "3G"],
        &["--cores", "2"],
        &["--partition", "disks"],
        &["--time", "1:00:00"],
        &["--at", "/mnt"],
        &["--program", "/opt/cryptmark"],
        &["--image", "other"],
        &["--namespace", "lab"],
        &["--storage-class", "fast"],
        &["--volume-size", "9Gi"],
        &["--toleration", "disks"],
        &["--node-label", "a=b"],
        &["--secret", "other"],
    ];
    let sandbox = sandbox();
    // Storage, simulated drives, and nothing but memory.
    for (plan, has_place) in [("quick", true), ("drives.toml", false), ("ciphers", false)] {
        let _ = std::fs::remove_file(sandbox.path("experiment.toml"));
        let cut = [
            "fleet",
            "plan",
            plan,
            "--hosts",
            "3",
            "-o",
            "experiment.toml",
        ];
        sandbox.ok(&cut);
        for engine in ["--slurm", "--kubernetes"] {
            let manifest = ["fleet", "manifest", "experiment.toml", engine];
            let plain = sandbox.ok(&manifest);
            let mut taken = 0;
            for option in OPTIONS {
                let chosen = sandbox.run(&[&manifest[..], option].concat());
                let of_place = ["--at", "--storage-class"].contains(&option[0]);
                match chosen.status.code() {
                    Some(0) => {
                        assert!(has_place || !of_place, "{plan} {engine} {option:?}");
                        assert_ne!(String::from_utf8_lossy(&chosen.stdout), plain, "{option:?}");
                        taken += 1;
                    }
                    code => assert_eq!(code, Some(2), "{plan} {engine} {option:?}"),
                }
            }
            let of_place = usize::from(has_place);
            let all = if engine == "--slurm" { 6 } else { 8 };
            assert_eq!(taken, all + of_place, "{plan} {engine}");
        }
        if !has_place {
            let run = sandbox.fails(2, &["run", plan, "--at", "/mnt", "--dry-run"]);
            let manifest = [
                "fleet",
                "manifest",
                "experiment.toml",
                "--slurm",
                "--at",
                "/mnt",
            ];
            assert_eq!(sandbox.fails(2, &manifest), run, "{plan}");
        }
    }
}
