//! A cipher of Java's as a system under test.

use super::{Direction, Java, JavaRequest};
use crate::error::LabError;
use crate::system::Encryption;
use cipher::IvGenerator;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// A cipher that Java has, under a key of its own: in ECB the same as the
/// engine's, in CBC with one IV for a whole request.
pub struct JavaCipher {
    java: Arc<Java>,
    /// The cipher.
    pub encryption: Encryption,
    algorithm: &'static str,
    mode: &'static str,
}

impl JavaCipher {
    /// The cipher, if Java has it.
    pub fn new(java: &Arc<Java>, encryption: Encryption) -> Option<Self> {
        let spec = &encryption.spec;
        let [algorithm] = spec.algorithms() else {
            return None;
        };
        let public = matches!(spec.iv(), None | Some(IvGenerator::Plain64));
        if spec.key_count() != 1 || !public {
            return None;
        }
        let cipher = Self {
            java: Arc::clone(java),
            encryption,
            algorithm: algorithm.name(),
            mode: spec.mode().name(),
        };
        let sector = encryption.sector_size.bytes() as u64;
        let request = cipher.request(true, sector, false, 1);
        Java::check(&request).is_ok().then_some(cipher)
    }

    /// Java's version.
    pub fn version(&self) -> &str {
        self.java.version()
    }

    /// Seconds of every repetition over `bytes`; `cold` as
    /// [`JavaRequest::cold`], `stop` as in [`Java::measure`].
    ///
    /// # Errors
    /// [`LabError`], also if the output is wrong.
    pub fn measure(
        &self,
        encrypts: bool,
        bytes: u64,
        cold: bool,
        repetitions: u32,
        stop: &AtomicBool,
    ) -> Result<Vec<f64>, LabError> {
        self.java
            .measure(&self.request(encrypts, bytes, cold, repetitions), stop)
    }

    fn request(&self, encrypts: bool, bytes: u64, cold: bool, repetitions: u32) -> JavaRequest<'_> {
        JavaRequest {
            algorithm: self.algorithm,
            mode: self.mode,
            key_bits: self.encryption.key_bits,
            bytes: bytes as usize,
            direction: match encrypts {
                true => Direction::Encrypt,
                false => Direction::Decrypt,
            },
            cold,
            repetitions,
        }
    }
}
