//! Several cores for large requests.
//!
//! A request is cut between sectors into parts of one size. The caller and the threads of a pool
//! take parts until none is left. If the other cores are busy or slow to wake, the caller does the
//! parts that they do not take.
//!
//! Threads sleep between requests, and to wake one takes microseconds. So a part
//! must be large enough, which only a measurement on the machine can tell, and a
//! request of less than two parts stays with the caller.

use std::error::Error;
use std::io;
use std::sync::Mutex;

use rayon_core::{ThreadPool, ThreadPoolBuilder};

use crate::mode::assert_whole;
use crate::{CipherError, IvSector, SectorCipher, SectorLayout};

/// How large requests are shared among cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sharing {
    /// Cores that work on one request, the caller's included; below two,
    /// nothing is shared.
    pub cores: usize,
    /// Bytes that a core takes at a time; rounded down to whole sectors, and
    /// one sector at least.
    pub part: usize,
}

/// Does `work`, which may use rayon, in `count` threads of its own. Those that rayon starts for all
/// are not there in a forked process, which would wait for them forever.
///
/// # Errors
/// [`CipherError::Threads`].
pub fn in_threads<R: Send>(
    count: usize,
    work: impl FnOnce() -> R + Send,
) -> Result<R, CipherError> {
    Ok(threads(count, "key")?.install(work))
}

fn threads(count: usize, name: &'static str) -> Result<ThreadPool, CipherError> {
    ThreadPoolBuilder::new()
        .num_threads(count)
        .thread_name(move |nth| format!("{name}-{nth}"))
        .build()
        .map_err(|error| {
            let io = error.source().and_then(|e| e.downcast_ref::<io::Error>());
            CipherError::Threads {
                count,
                kind: io.map_or(io::ErrorKind::Other, io::Error::kind),
            }
        })
}

/// A cipher whose large requests several cores share.
pub(crate) struct Parallel<C> {
    cipher: C,
    pool: ThreadPool,
    cores: usize,
    part_sectors: usize,
}

impl<C: SectorCipher> Parallel<C> {
    /// Shares the requests of `cipher` among two cores or more.
    ///
    /// # Errors
    /// [`CipherError::Threads`].
    pub(crate) fn new(cipher: C, sharing: Sharing) -> Result<Self, CipherError> {
        let cores = sharing.cores;
        let pool = threads(cores - 1, "cipher")?;
        let part_sectors = (sharing.part / cipher.layout().size.bytes()).max(1);
        Ok(Self {
            cipher,
            pool,
            cores,
            part_sectors,
        })
    }

    /// Has `crypt` work on all of `data`, part by part.
    fn share(&self, first: IvSector, data: &mut [u8], crypt: impl Fn(IvSector, &mut [u8]) + Sync) {
        let layout = self.layout();
        assert_whole(data, layout);
        let part_bytes = self.part_sectors * layout.size.bytes();
        let cores = self.cores.min(data.len() / part_bytes);
        if cores < 2 {
            return crypt(first, data);
        }
        let parts = Mutex::new(data.chunks_mut(part_bytes).enumerate());
        let take = || parts.lock().expect("no holder of the lock panics").next();
        let work = || {
            while let Some((nth, part)) = take() {
                let sectors = (nth * self.part_sectors) as u64;
                crypt(first.advance(sectors, layout), part);
            }
        };
        self.pool.in_place_scope(|scope| {
            for _ in 1..cores {
                scope.spawn(|_| work());
            }
            work();
        });
    }
}

impl<C: SectorCipher> SectorCipher for Parallel<C> {
    fn layout(&self) -> SectorLayout {
        self.cipher.layout()
    }

    fn encrypt(&self, first: IvSector, data: &mut [u8]) {
        self.share(first, data, |first, part| self.cipher.encrypt(first, part));
    }

    fn decrypt(&self, first: IvSector, data: &mut [u8]) {
        self.share(first, data, |first, part| self.cipher.decrypt(first, part));
    }
}
