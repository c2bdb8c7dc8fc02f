//! `cargo xtask library PREFIX`: the library for C, built and laid out for other programs.

use crate::{cargo, root};
use std::path::Path;
use std::{fs, io};

/// What the static library needs besides, as rustc prints it for Linux with glibc.
const PRIVATE: &str = "-lgcc_s -lpthread -ldl -lm";

/// Builds `libcryptmark` and installs it below `prefix`.
pub fn install(prefix: &str) -> bool {
    if !cargo(&["build", "--release", "--package", "cryptmark-c"]) {
        return false;
    }
    let built = root().join("target/release");
    match std::path::absolute(prefix).and_then(|prefix| lay_out(&built, &prefix)) {
        Ok(()) => {
            println!("installed in {prefix}: include, lib, lib/pkgconfig and share/man/man3");
            true
        }
        Err(error) => {
            eprintln!("the library could not be installed in {prefix}: {error}");
            false
        }
    }
}

/// Copies what is in `built`, and what the sources have, to their places below `prefix`.
fn lay_out(built: &Path, prefix: &Path) -> io::Result<()> {
    let sources = root().join("bindings/c");
    for folder in ["include", "lib/pkgconfig", "share/man/man3"] {
        fs::create_dir_all(prefix.join(folder))?;
    }
    let copies = [
        (sources.join("include/cryptmark.h"), "include/cryptmark.h"),
        (
            sources.join("man/cryptmark.3"),
            "share/man/man3/cryptmark.3",
        ),
        (built.join("libcryptmark.a"), "lib/libcryptmark.a"),
        (built.join("libcryptmark.so"), "lib/libcryptmark.so.0"),
    ];
    for (from, to) in copies {
        fs::copy(from, prefix.join(to))?;
    }
    let linked = prefix.join("lib/libcryptmark.so");
    if fs::symlink_metadata(&linked).is_ok() {
        fs::remove_file(&linked)?;
    }
    std::os::unix::fs::symlink("libcryptmark.so.0", &linked)?;
    let described = fs::read_to_string(sources.join("cryptmark.pc.in"))?
        .replace("@prefix@", &prefix.to_string_lossy())
        .replace("@version@", env!("CARGO_PKG_VERSION"))
        .replace("@private@", PRIVATE);
    fs::write(prefix.join("lib/pkgconfig/cryptmark.pc"), described)
}

#[test]
fn everything_is_laid_out_twice_over() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["libcryptmark.so", "libcryptmark.a"] {
        fs::write(folder.path().join(name), name).unwrap();
    }
    let prefix = folder.path().join("prefix");
    for _ in 0..2 {
        lay_out(folder.path(), &prefix).unwrap();
    }
    let library = fs::read_to_string(prefix.join("lib/libcryptmark.so")).unwrap();
    assert_eq!(library, "libcryptmark.so");
    let described = fs::read_to_string(prefix.join("lib/pkgconfig/cryptmark.pc")).unwrap();
    assert!(!described.contains('@'), "{described}");
}
