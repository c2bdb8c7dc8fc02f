//! The kernel's ciphers for programs: AF_ALG sockets, of the type `skcipher`.
//!
//! A socket is bound to a cipher and keyed; the one that it accepts takes
//! `sendmsg` with direction, IV and data, and gives the result to `read`: two
//! system calls a sector. Descriptors are owned; the one unsafe line takes
//! ownership of what `accept` returns.

use super::{Absent, Keyed, Opened, Wanted};
use nix::errno::Errno;
use nix::libc::{ALG_OP_DECRYPT, ALG_OP_ENCRYPT};
use nix::sys::socket::sockopt::AlgSetKey;
use nix::sys::socket::{
    AddressFamily, AlgAddr, ControlMessage, MsgFlags, SockFlag, SockType, accept4, bind, sendmsg,
    setsockopt, socket,
};
use nix::unistd::read;
use std::ffi::c_int;
use std::io::IoSlice;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

pub(super) fn open(wanted: Wanted<'_>) -> Opened {
    let keyed = AfAlg::new(wanted).map_err(|refused| Absent::NotInKernel {
        library: "af_alg",
        reason: refused.desc(),
        option: "CONFIG_CRYPTO_USER_API_SKCIPHER",
    })?;
    let release = rustix::system::uname();
    Ok((
        format!("Linux {}", release.release().to_string_lossy()),
        keyed.map(|keyed| Box::new(keyed) as _),
    ))
}

struct AfAlg {
    operation: OwnedFd,
    iv_bytes: usize,
}

impl AfAlg {
    /// `None` if the kernel has the interface but not the cipher.
    fn new(wanted: Wanted<'_>) -> Result<Option<Self>, Errno> {
        let listening = socket(
            AddressFamily::Alg,
            SockType::SeqPacket,
            SockFlag::SOCK_CLOEXEC,
            None,
        )?;
        // The engine's names are the kernel's.
        let name = format!("{}({})", wanted.mode, wanted.algorithm);
        // The kernel keys Serpent with nothing, if that is what it gets.
        if wanted.cipher_bits().is_none() {
            return Ok(None);
        }
        let address = AlgAddr::new("skcipher", &name);
        match bind(listening.as_raw_fd(), &address) {
            Ok(()) => {}
            Err(Errno::ENOENT | Errno::EINVAL) => return Ok(None),
            Err(refused) => return Err(refused),
        }
        if setsockopt(&listening, AlgSetKey::default(), &wanted.key).is_err() {
            return Ok(None);
        }
        let accepted = accept4(listening.as_raw_fd(), SockFlag::SOCK_CLOEXEC)?;
        // SAFETY: the descriptor is new and nobody else's.
        let operation = unsafe { OwnedFd::from_raw_fd(accepted) };
        Ok(Some(Self {
            operation,
            iv_bytes: match wanted.mode {
                "ecb" => 0,
                _ => wanted.block_bytes(),
            },
        }))
    }

    fn crypt(&mut self, direction: c_int, iv: &[u8; 16], sector: &mut [u8]) {
        let control = [
            ControlMessage::AlgSetOp(&direction),
            ControlMessage::AlgSetIv(&iv[..self.iv_bytes]),
        ];
        // Of a cipher without IV the kernel refuses even an empty one.
        let control = match self.iv_bytes {
            0 => &control[..1],
            _ => &control[..],
        };
        let sent = sendmsg::<()>(
            self.operation.as_raw_fd(),
            &[IoSlice::new(sector)],
            control,
            MsgFlags::empty(),
            None,
        );
        assert_eq!(sent, Ok(sector.len()), "the kernel refused a sector");
        let received = read(&self.operation, sector);
        assert_eq!(received, Ok(sector.len()), "the kernel kept a sector");
    }
}

impl Keyed for AfAlg {
    fn encrypt(&mut self, iv: &[u8; 16], sector: &mut [u8]) {
        self.crypt(ALG_OP_ENCRYPT, iv, sector);
    }

    fn decrypt(&mut self, iv: &[u8; 16], sector: &mut [u8]) {
        self.crypt(ALG_OP_DECRYPT, iv, sector);
    }
}
