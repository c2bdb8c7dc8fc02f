//! musl's headers for a machine that this is not: Debian has no compiler with
//! them, but its package of headers can be unpacked without installing it.

use std::process::Command;

use super::output;
use crate::{root, unpacked};

/// Flags with which `compiler` finds musl's headers, and its own, in place of
/// those of the C library that it was made for. `architecture` and `triplet` are
/// Debian's names of the machine.
pub fn flags(architecture: &str, triplet: &str, compiler: &str) -> Result<Vec<String>, String> {
    let folder = root().join(format!("target/tools/musl-{architecture}"));
    let headers = folder.join("usr/include").join(triplet);
    if !headers.is_dir() {
        println!("── fetching musl's headers for {architecture} into target/tools");
        unpacked::unpack(architecture, &["musl-dev"], &folder)?;
    }
    let own = output(Command::new(compiler).arg("-print-file-name=include"))?;
    Ok(vec![
        "-nostdinc".to_owned(),
        format!("-isystem {}", headers.display()),
        format!("-isystem {}", own.trim()),
    ])
}
