//! OpenSSL and libgcrypt for Arm, as Debian builds them.

use std::path::PathBuf;
use std::process::Command;

use super::output;
use super::trace::Program;
use super::works::Work;
use crate::emulated::AARCH64;
use crate::{root, unpacked};

/// Debian's name of the machine.
const ARCHITECTURE: &str = "arm64";

/// The libraries, and what they need besides the C library.
const PACKAGES: &[&str] = &["libgcrypt20", "libgpg-error0", "libssl3"];

/// The libraries, and the program that calls them.
pub struct Peers {
    folder: PathBuf,
    caller: PathBuf,
}

impl Peers {
    /// Fetches the libraries, if they are not there, and builds the program.
    pub fn provide() -> Result<Self, String> {
        let folder = root().join("target/tools/arm-model");
        if unpacked::fetched(&folder).is_empty() {
            eprintln!("── fetching libraries for {ARCHITECTURE} into target/tools");
            unpacked::unpack(ARCHITECTURE, PACKAGES, &folder)?;
        }
        let caller = folder.join("peer");
        let source = root().join("xtask/src/arm_model/peer.c");
        let mut compiler = Command::new(AARCH64.linker());
        compiler.args(["-O2", "-Wall", "-Werror", "-o"]);
        output(compiler.args([&caller, &source]))?;
        Ok(Self { folder, caller })
    }

    /// Names and versions of the packages.
    pub fn versions(&self) -> Vec<String> {
        let files = unpacked::fetched(&self.folder);
        let names = files.iter().filter_map(|file| file.file_stem()?.to_str());
        names
            .filter_map(|name| {
                let mut parts = name.split('_');
                Some(format!("{} {}", parts.next()?, parts.next()?))
            })
            .collect()
    }

    /// What runs `work` by a library that calls it `cipher`.
    pub fn program(&self, library: &str, cipher: &str, work: &Work, direction: &str) -> Program {
        let mut program = Program::new(&self.caller);
        let key_bytes = work.key_bytes.to_string();
        let arguments = [library, cipher, work.mode(), &key_bytes, direction];
        program.arguments = arguments.map(str::to_owned).to_vec();
        let folder = self.folder.display();
        let triplet = AARCH64.triplet;
        program.environment = vec![
            format!("LD_LIBRARY_PATH={folder}/usr/lib/{triplet}:{folder}/lib/{triplet}"),
            format!("OPENSSL_MODULES={folder}/usr/lib/{triplet}/ossl-modules"),
            "OPENSSL_CONF=/dev/null".to_owned(),
        ];
        if work.without_aes() {
            program.arguments.push("without-aes".to_owned());
            // NEON alone.
            program.environment.push("OPENSSL_armcap=1".to_owned());
        }
        program
    }
}
