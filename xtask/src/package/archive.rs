//! Archives that are the same whoever packs the same files, and their sums.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::output;

/// Packs `program` as `bin/cryptmark` with what is `staged` below `share`, all in
/// a folder `name`, as `name.tar.gz` in `folder`: unpacked without the first part
/// of its paths, it is what `/usr/local` has. `date` is in seconds since 1970.
pub fn pack(
    program: &Path,
    staged: &Path,
    name: &str,
    folder: &Path,
    date: u64,
) -> Result<PathBuf, String> {
    let inside = folder.join(name);
    let told = |error: std::io::Error| format!("{}: {error}", inside.display());
    // What an earlier version had must not be in this one.
    let _ = fs::remove_dir_all(&inside);
    fs::create_dir_all(inside.join("bin")).map_err(told)?;
    fs::copy(program, inside.join("bin/cryptmark")).map_err(told)?;
    output(
        Command::new("cp")
            .arg("--recursive")
            .args([staged.join("share"), inside.join("share")]),
    )?;
    let archive = folder.join(format!("{name}.tar"));
    output(
        Command::new("tar")
            .args(["--create", "--format=gnu", "--sort=name", "--numeric-owner"])
            .args(["--owner=0", "--group=0", "--mode=u=rwX,go=rX"])
            .arg(format!("--mtime=@{date}"))
            .arg("--file")
            .arg(&archive)
            .arg("--directory")
            .args([folder, Path::new(name)]),
    )?;
    // Without the date and name of what it packs.
    output(
        Command::new("gzip")
            .args(["--force", "--best", "--no-name"])
            .arg(&archive),
    )?;
    fs::remove_dir_all(&inside).map_err(told)?;
    Ok(folder.join(format!("{name}.tar.gz")))
}

/// Writes `SHA256SUMS` of `files`, which lie in `folder`, for `sha256sum --check`;
/// what it says.
pub fn sums(folder: &Path, files: &[&Path]) -> Result<String, String> {
    let names = files.iter().filter_map(|file| file.file_name());
    let sums = output(Command::new("sha256sum").args(names).current_dir(folder))?;
    print!("{sums}");
    let file = folder.join("SHA256SUMS");
    fs::write(&file, &sums).map_err(|error| format!("{}: {error}", file.display()))?;
    Ok(sums)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packs a small program and a page that were written in `order`.
    fn packed(order: [&str; 2]) -> (Vec<u8>, String, String) {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path();
        for name in order {
            let file = folder.join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, name).unwrap();
        }
        let (program, staged) = (folder.join("program"), folder.join("stage"));
        let archive = pack(&program, &staged, "name-1.0", folder, 1_000_000_000).unwrap();
        let list = ["--list", "--verbose", "--numeric-owner", "--utc", "--file"];
        let listed = output(Command::new("tar").args(list).arg(&archive)).unwrap();
        let sums = sums(folder, &[&archive]).unwrap();
        let check = ["--check", "--quiet", "SHA256SUMS"];
        output(Command::new("sha256sum").args(check).current_dir(folder)).unwrap();
        (fs::read(archive).unwrap(), listed, sums)
    }

    #[test]
    fn the_same_files_are_the_same_archive() {
        let (bytes, listed, sums) = packed(["program", "stage/share/man/man1/name.1"]);
        let again = packed(["stage/share/man/man1/name.1", "program"]);
        assert_eq!((&bytes, &sums), (&again.0, &again.2));
        for line in listed.lines() {
            assert!(line.contains(" 0/0 ") && line.contains(" 2001-09-09 01:46 "));
        }
        let names: Vec<&str> = listed.split_whitespace().skip(5).step_by(6).collect();
        assert_eq!(
            names,
            [
                "name-1.0/",
                "name-1.0/bin/",
                "name-1.0/bin/cryptmark",
                "name-1.0/share/",
                "name-1.0/share/man/",
                "name-1.0/share/man/man1/",
                "name-1.0/share/man/man1/name.1",
            ]
        );
    }
}
