//! The recipes in `packaging/`, by the programs that read them: they are whole, have this version
//! and these features, and name commands that the program has.

use std::path::{Path, PathBuf};
use std::process::Command;

const PROGRAM: &str = env!("CARGO_BIN_EXE_cryptmark");
const VERSION: &str = env!("CARGO_PKG_VERSION");

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn recipe(name: &str) -> (PathBuf, String) {
    let path = root().join("packaging").join(name);
    let text = std::fs::read_to_string(&path).unwrap();
    (path, text)
}

/// What a command that must succeed prints; `None`, and a word of it, where `program` is missing.
fn said(program: &str, arguments: &[&str], file: &Path) -> Option<String> {
    let output = Command::new(program).args(arguments).arg(file).output();
    let Ok(output) = output else {
        println!("skipped: {} ({program} is missing)", file.display());
        return None;
    };
    assert!(output.status.success(), "{program}: {output:?}");
    Some(String::from_utf8(output.stdout).unwrap())
}

/// The features of packages, as the README has them.
fn features() -> Vec<String> {
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    let (_, behind) = readme
        .split_once("`cargo install --path . --locked --features ")
        .unwrap();
    let (features, _) = behind.split_once('`').unwrap();
    features.split(',').map(str::to_owned).collect()
}

#[test]
fn the_recipe_for_arch_has_the_version_the_features_and_files_that_exist() {
    let (path, text) = recipe("aur/PKGBUILD");
    said("bash", &["-n"], &path).unwrap();
    let fields = ". \"$1\"; printf '%s\\n' \"$pkgname\" \"$pkgver\" \"$pkgdesc\" \"${license[0]}\"; \
                  declare -F build package > /dev/null";
    let said = said("bash", &["-euc", fields, "bash"], &path).unwrap();
    let description = env!("CARGO_PKG_DESCRIPTION");
    let licence = "(MIT OR Apache-2.0) AND GPL-2.0-only";
    assert_eq!(
        said.lines().collect::<Vec<_>>(),
        ["cryptmark", VERSION, description, licence]
    );
    assert!(text.contains(&format!("--features {}\n", features().join(","))));
    let installed = text.lines().filter_map(|line| {
        let words = line.trim().strip_prefix("install -Dm644 ")?;
        words
            .split(' ')
            .next()
            .filter(|word| !word.starts_with('<'))
    });
    for file in installed {
        assert!(root().join(file).is_file(), "{file}");
    }
    for command in ["man", "completions"] {
        assert!(text.contains(&format!("\"$program\" {command}")));
    }
    assert!(text.contains(&format!("--prefix=cryptmark-{VERSION}/")));
}

#[test]
fn the_recipe_for_nix_can_be_read_and_has_the_version_and_the_features() {
    let (path, text) = recipe("nix/default.nix");
    if let Some(parsed) = said("nix-instantiate", &["--parse"], &path) {
        let features: Vec<String> = features()
            .iter()
            .map(|name| format!("(\"{name}\")"))
            .collect();
        for part in [
            format!("version = \"{VERSION}\""),
            format!("buildFeatures = [ {} ]", features.join(" ")),
            format!("description = \"{}\"", env!("CARGO_PKG_DESCRIPTION")),
        ] {
            assert!(parsed.contains(&part), "{part} in {parsed}");
        }
    }
    for path in ["../..", "../../Cargo.lock"] {
        assert!(text.contains(&format!(" {path};")));
        assert!(root().join("packaging/nix").join(path).exists());
    }
}

#[test]
fn the_image_has_known_instructions() {
    let (_, text) = recipe("Containerfile");
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let mut instructions = Vec::new();
    for line in lines {
        let (instruction, argument) = line.split_once(' ').unwrap();
        assert!(
            ["FROM", "COPY", "ENV", "USER", "ENTRYPOINT"].contains(&instruction),
            "{line}"
        );
        assert!(!argument.is_empty());
        instructions.push(instruction);
    }
    assert_eq!(
        (instructions[0], instructions.last()),
        ("FROM", Some(&"ENTRYPOINT"))
    );
}

#[test]
fn the_action_is_a_workflow_whose_commands_the_program_has() {
    let (path, _) = recipe("github/encryption-speed.yml");
    let yaml = Path::new("/usr/lib/python3/dist-packages/yaml");
    if !yaml.exists() {
        println!("skipped: an action (python3-yaml is missing)");
        return;
    }
    let to_json = "import json, sys, yaml; print(json.dumps(yaml.safe_load(open(sys.argv[1]))))";
    let json = said("/usr/bin/python3", &["-c", to_json], &path).unwrap();
    let action: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert!(
        action["on"]
            .as_object()
            .unwrap()
            .contains_key("pull_request")
    );
    let steps = action["jobs"]["measure"]["steps"].as_array().unwrap();
    let scripts: Vec<&str> = steps
        .iter()
        .filter_map(|step| step["run"].as_str())
        .collect();
    let mut commands = 0;
    for line in scripts.iter().flat_map(|script| script.lines()) {
        let words: Vec<&str> = line.split(' ').collect();
        assert_eq!(words[0], "cryptmark", "{line}");
        // Options behind which help is asked for are read, and nothing is done.
        let output = Command::new(PROGRAM)
            .args(&words[1..])
            .arg("--help")
            .output()
            .unwrap();
        assert!(output.status.success(), "{line}: {output:?}");
        let unknown = Command::new(PROGRAM)
            .args(&words[1..])
            .args(["--unknown", "--help"])
            .output()
            .unwrap();
        assert!(!unknown.status.success(), "{line}");
        commands += 1;
    }
    assert_eq!(commands, 3);
    assert!(
        scripts
            .concat()
            .contains("--baseline main --fail-if-slower")
    );
}

#[test]
fn no_recipe_names_a_registry() {
    let places = [
        "aur/PKGBUILD",
        "nix/default.nix",
        "Containerfile",
        "github/encryption-speed.yml",
    ];
    for name in places {
        assert!(!recipe(name).1.contains("://"), "{name}");
    }
}
