//! The scratch file: whole, deterministic, and gone.

use block::{BlockDevice, BlockError, Engine, FileOptions, TestFile};
use std::ops::ControlFlow;
use std::path::Path;
use std::process::Command;

const SIZE: u64 = 9 << 20;

fn on(_: u64) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

fn is_empty(directory: &Path) -> bool {
    std::fs::read_dir(directory).unwrap().next().is_none()
}

fn directories() -> Vec<tempfile::TempDir> {
    ["/var/tmp", "/dev/shm"]
        .into_iter()
        .filter_map(|parent| tempfile::tempdir_in(parent).ok())
        .collect()
}

#[test]
fn is_full_of_what_the_seed_says() {
    for directory in directories() {
        let mut steps = Vec::new();
        let file = TestFile::create(directory.path(), SIZE, 42, &mut |done| {
            steps.push(done);
            ControlFlow::Continue(())
        })
        .unwrap();
        assert!(is_empty(directory.path()));
        assert_eq!(steps.len(), 3);
        assert_eq!(steps.last(), Some(&SIZE));
        assert!(file.allocated().unwrap() >= SIZE, "sparse");

        for engine in [None, Some(Engine::Pread), Some(Engine::Threads)] {
            let device = file.device(engine).unwrap();
            assert_eq!(device.geometry().size, SIZE);
            let mut found = vec![0; SIZE as usize];
            device.read_at(0, &mut found).unwrap();
            for (chunk, found) in found.chunks(TestFile::CHUNK as usize).enumerate() {
                let mut expected = vec![0; found.len()];
                TestFile::content(42, chunk as u64, &mut expected);
                assert!(found == expected, "chunk {chunk}");
            }
            assert_incompressible(&found);
        }
    }
}

/// Bytes are evenly spread, and no 64-bit word comes twice.
fn assert_incompressible(data: &[u8]) {
    let mut counts = [0u64; 256];
    for &byte in data {
        counts[byte as usize] += 1;
    }
    let expected = data.len() as f64 / 256.0;
    let chi_squared: f64 = counts
        .iter()
        .map(|&count| (count as f64 - expected).powi(2) / expected)
        .sum();
    // 255 degrees of freedom: 400 is more than six deviations above the mean.
    assert!(chi_squared < 400.0, "{chi_squared}");
    let mut words: Vec<&[u8]> = data.chunks(8).collect();
    words.sort_unstable();
    assert!(words.windows(2).all(|pair| pair[0] != pair[1]));
}

#[test]
fn direct_and_buffered_devices_do_not_disturb_each_other() {
    let file = TestFile::create(Path::new("/var/tmp"), 1, 0, &mut on).unwrap();
    assert_eq!(file.size(), 4096);
    let direct = file.device(None).unwrap();
    let was = direct.is_direct();
    let buffered = file
        .device_with(&FileOptions {
            direct: false,
            ..FileOptions::default()
        })
        .unwrap();
    assert!(!buffered.is_direct());
    assert!(matches!(
        buffered.write_at(0, &[0; 512]),
        Err(BlockError::ReadOnly)
    ));
    assert_eq!(direct.is_direct(), was);
    direct.read_at(0, &mut [0; 4096]).unwrap();
}

#[test]
fn an_interrupt_leaves_nothing_behind() {
    for directory in directories() {
        let result = TestFile::create(directory.path(), SIZE, 1, &mut |_| ControlFlow::Break(()));
        assert!(matches!(result, Err(BlockError::Interrupted)));
        assert!(is_empty(directory.path()));
    }
}

#[test]
fn too_little_space_is_refused_with_both_numbers() {
    let directory = tempfile::tempdir().unwrap();
    let result = TestFile::create(directory.path(), u64::MAX, 1, &mut on);
    match result {
        Err(BlockError::NoSpace { needed, available }) => assert!(needed > available),
        other => panic!("{other:?}"),
    }
    assert!(is_empty(directory.path()));
}

#[test]
fn places_without_files_are_refused() {
    for place in ["/proc/self", "/nonexistent/directory", "/dev/null"] {
        match TestFile::create(Path::new(place), 4096, 1, &mut on) {
            Err(BlockError::Create { directory, .. }) => assert_eq!(directory, Path::new(place)),
            other => panic!("{place}: {other:?}"),
        }
    }
}

/// Runs this test program again with a small tmpfs mounted, where namespaces
/// or root allow that.
#[test]
fn a_full_or_read_only_file_system() {
    const INSIDE: &str = "CRYPTMARK_TEST_SMALL_TMPFS";
    if let Some(directory) = std::env::var_os(INSIDE) {
        return on_a_small_file_system(Path::new(&directory));
    }
    let directory = tempfile::tempdir().unwrap();
    let script = format!(
        "mount -t tmpfs -o size=8m tmpfs \"${INSIDE}\" && \
         exec \"$0\" --exact a_full_or_read_only_file_system --nocapture"
    );
    let output = Command::new("unshare")
        .args(["-Urm", "sh", "-c", &script])
        .arg(std::env::current_exe().unwrap())
        .env(INSIDE, directory.path())
        .output();
    match output {
        Err(error) => println!("skipped: small tmpfs: no unshare: {error}"),
        Ok(output) => {
            let (out, err) = (
                String::from_utf8_lossy(&output.stdout),
                String::from_utf8_lossy(&output.stderr),
            );
            if out.contains("running 1 test") {
                assert!(output.status.success(), "{out}\n{err}");
            } else {
                println!("skipped: small tmpfs: {err}");
            }
        }
    }
}

fn on_a_small_file_system(directory: &Path) {
    match TestFile::create(directory, SIZE, 1, &mut on) {
        Err(BlockError::NoSpace { needed, available }) => {
            assert!(needed > SIZE && available <= 8 << 20);
        }
        other => panic!("{other:?}"),
    }
    let file = TestFile::create(directory, 6 << 20, 1, &mut on).unwrap();
    assert!(file.allocated().unwrap() >= 6 << 20);
    match TestFile::create(directory, 6 << 20, 1, &mut on) {
        Err(error @ BlockError::NoSpace { .. }) => assert_eq!(error.errno(), 28),
        other => panic!("{other:?}"),
    }
    drop(file);
    TestFile::create(directory, 6 << 20, 1, &mut on).unwrap();
    assert!(is_empty(directory));

    let remounted = Command::new("mount")
        .args(["-o", "remount,ro"])
        .arg(directory)
        .status();
    assert!(remounted.unwrap().success());
    match TestFile::create(directory, 4096, 1, &mut on) {
        Err(error @ BlockError::Create { .. }) => {
            assert!(error.remedy().contains("mounted for writing"));
        }
        other => panic!("{other:?}"),
    }
}
