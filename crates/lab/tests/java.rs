//! The system's Java: its ciphers give what the engine gives, and nothing
//! stays behind.

use cryptmark_lab::system::java::{Direction, Java, JavaRequest};
use cryptmark_lab::system::peer::Absent;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, MutexGuard, PoisonError};

const REQUEST: JavaRequest<'_> = JavaRequest {
    algorithm: "aes",
    mode: "cbc",
    key_bits: 128,
    bytes: 64 << 10,
    direction: Direction::Encrypt,
    cold: true,
    repetitions: 1,
};

static ON: AtomicBool = AtomicBool::new(false);

/// One test at a time: a script that was just written cannot be started while
/// another thread's half-started child still has it open.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn java() -> Option<(Java, MutexGuard<'static, ()>)> {
    let alone = alone();
    match Java::find() {
        Ok(java) => Some((java, alone)),
        Err(absent) => {
            println!("skipped: {absent}");
            None
        }
    }
}

/// `measure` compares every output with the engine's and fails if it differs.
#[test]
fn every_cipher_gives_the_right_output_both_ways() {
    let Some((java, _alone)) = java() else { return };
    assert!(java.version().contains('.'), "{}", java.version());
    for (algorithm, key_bits) in [
        ("aes", 128),
        ("aes", 192),
        ("aes", 256),
        ("blowfish", 128),
        ("blowfish", 448),
        ("des", 64),
        ("des3_ede", 192),
    ] {
        for mode in ["cbc", "ecb"] {
            for direction in [Direction::Encrypt, Direction::Decrypt] {
                let request = JavaRequest {
                    algorithm,
                    mode,
                    key_bits,
                    direction,
                    ..REQUEST
                };
                let seconds = java.measure(&request, &ON).unwrap();
                assert!(seconds.len() == 1 && seconds[0] > 0.0, "{request:?}");
            }
        }
    }
}

#[test]
fn as_many_values_come_back_as_were_asked_for() {
    let Some((java, _alone)) = java() else { return };
    for cold in [true, false] {
        let request = JavaRequest {
            cold,
            repetitions: 3,
            ..REQUEST
        };
        assert_eq!(java.measure(&request, &ON).unwrap().len(), 3);
    }
}

#[test]
fn what_java_has_not_is_refused() {
    let Some((java, _alone)) = java() else { return };
    for (algorithm, mode, key_bits) in [
        ("serpent", "cbc", 256),
        ("aes", "xts", 512),
        ("aes", "cbc", 100),
        ("aes", "cbc", 512),
        ("des3_ede", "cbc", 128),
    ] {
        let request = JavaRequest {
            algorithm,
            mode,
            key_bits,
            ..REQUEST
        };
        let error = java.measure(&request, &ON).unwrap_err();
        assert!(error.to_string().contains("java has no"), "{error}");
        assert!(!error.remedy().is_empty());
    }
    let request = JavaRequest {
        bytes: 1001,
        ..REQUEST
    };
    let error = java.measure(&request, &ON).unwrap_err();
    let what = "1001 bytes are not a multiple of the block size of 16 bytes";
    assert_eq!(error.to_string(), what);
}

/// A launcher that answers as `script` says; the folder is its life.
#[cfg(unix)]
fn launcher(script: &str) -> (tempfile::TempDir, std::path::PathBuf) {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("java");
    std::fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    (folder, program)
}

#[cfg(unix)]
#[test]
fn a_java_that_is_none_is_absent() {
    let _alone = alone();
    let absent = Java::at("/nonexistent/java".into()).err().unwrap();
    assert!(matches!(absent, Absent::NotInstalled { .. }), "{absent}");

    let (_folder, runtime_only) = launcher(
        r#"case "$*" in *-version) echo 'openjdk version "21.0.1"' >&2 ;; *) exit 1 ;; esac"#,
    );
    let absent = Java::at(runtime_only).err().unwrap();
    assert_eq!(
        absent.to_string(),
        "java 21.0.1 has no compiler (Debian: openjdk-17-jdk-headless)"
    );

    let (folder, program) = launcher("");
    let readable = std::os::unix::fs::PermissionsExt::from_mode(0o644);
    std::fs::set_permissions(&program, readable).unwrap();
    let absent = Java::at(program).err().unwrap();
    assert!(matches!(absent, Absent::NotRunnable { .. }), "{absent}");
    drop(folder);
}

#[cfg(unix)]
#[test]
fn a_java_that_misbehaves_is_an_error() {
    let _alone = alone();
    let measured = |script: &str| {
        let (_folder, program) = launcher(&format!(
            r#"case "$*" in *CryptBench) ;; *) exit 0 ;; esac
            {script}"#
        ));
        let error = Java::at(program)
            .unwrap()
            .measure(&REQUEST, &ON)
            .unwrap_err();
        assert!(!error.remedy().is_empty());
        error
    };
    let wrong = measured(
        "read line; echo ready; read line; echo time 5; read line; echo digest 00; read line",
    );
    assert!(wrong.to_string().contains("gave a wrong"), "{wrong}");
    let ended = measured("echo out of memory >&2; exit 1");
    assert_eq!(ended.to_string(), "java ended: out of memory");
    let refused = measured("read line; echo error no such cipher; read line");
    assert!(refused.to_string().contains("java answered"), "{refused}");
    let number = measured("read line; echo ready; read line; echo time soon; read line");
    assert!(number.to_string().contains("java answered"), "{number}");
}

/// Ctrl-C in a terminal reaches a whole process group at once.
#[cfg(target_os = "linux")]
#[test]
fn a_java_is_in_a_process_group_of_its_own() {
    let _alone = alone();
    let (_folder, program) = launcher(
        r#"case "$*" in *CryptBench) ;; *) exit 0 ;; esac
        read _ _ _ _ group _ < /proc/$$/stat
        echo "group $group of $$" >&2"#,
    );
    let error = Java::at(program).unwrap().measure(&REQUEST, &ON);
    let said = error.unwrap_err().to_string();
    let words: Vec<&str> = said.split(' ').collect();
    assert_eq!(words[words.len() - 3], words[words.len() - 1], "{said}");
}

/// A Java that the environment names reaches none of the user's files.
#[cfg(target_os = "linux")]
#[test]
fn a_java_reaches_its_own_files_alone() {
    let _alone = alone();
    if let Some(lacking) = block::confine::lacking() {
        return println!("skipped: Landlock of Linux 6.12: {lacking}");
    }
    let others = tempfile::tempdir().unwrap();
    let secret = others.path().join("secret");
    std::fs::write(&secret, "secret").unwrap();
    let (folder, program) = launcher(&format!(
        r#"case "$*" in *-version)
            cat {secret} >&2
            echo changed > {secret}
            cat "$0" > copy && cat copy > /dev/null && echo 'version "17"' >&2
        esac"#,
        secret = secret.display(),
    ));
    let java = Java::at(program).unwrap();
    assert!(java.version().starts_with("17"), "{}", java.version());
    assert_eq!(std::fs::read(&secret).unwrap(), b"secret");
    drop(folder);
}

#[test]
fn a_stop_comes_between_repetitions() {
    let Some((java, _alone)) = java() else { return };
    for cold in [true, false] {
        let request = JavaRequest { cold, ..REQUEST };
        let error = java.measure(&request, &AtomicBool::new(true)).unwrap_err();
        assert!(error.is_interrupted(), "{error}");
    }
}
