//! The instructions and addresses that a secret changes. The same request is run for several
//! secrets on the real CPU, and every instruction is recorded. If the recordings are equal, no
//! branch and no address has depended on the secret.
//!
//! Each secret has a child of its own. All are copies of one process, so they
//! have the same addresses from the start, and what they allocate gets the same
//! ones. Every instruction is decoded for what it shows of its registers:
//! addresses, those of gathers and masked moves too, and divisions ([`reads`]).
//!
//! This says nothing of secrets that were not tried: a branch that is taken for
//! one key of 2³² is not found. Valgrind finds those, and so it has the rows
//! that it can run.

mod lockstep;
mod reads;
mod step;

use std::process::{Command, Stdio};

use cryptmark_cipher::{Backend, CipherSpec, IvSector, Key, SectorCipher, SectorLayout};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use self::lockstep::{Recordings, Traces};
pub use self::reads::nothing_is_overlooked;
use crate::combination::Combination;
use crate::controls;
use crate::flow;
use crate::instrument::{self, Findings, Request, Scope, Silence};

/// Runs this program once more on each core, with one thread, and returns what
/// each combination has that contains `filter`. In [`Scope::All`] and
/// [`Scope::Known`] these are the combinations that valgrind cannot run.
pub fn findings(scope: Scope, filter: &str) -> Result<Findings, Silence> {
    let failed = |what: String| Silence::Failed(format!("the trace failed: {what}"));
    let this = std::env::current_exe().map_err(|error| failed(error.to_string()))?;
    let parts = std::thread::available_parallelism().map_or(1, usize::from);
    let mut started = Vec::new();
    for part in 0..parts {
        let child = Command::new(&this)
            .args(["trace", scope.name(), filter])
            .arg(part.to_string())
            .arg(parts.to_string())
            .stdout(Stdio::piped())
            .spawn();
        started.push(child.map_err(|error| failed(error.to_string()))?);
    }
    let mut findings = Findings::new();
    for child in started {
        let output = child.wait_with_output();
        let output = output.map_err(|error| failed(error.to_string()))?;
        if !output.status.success() {
            return Err(failed(output.status.to_string()));
        }
        findings.extend(instrument::read(&output.stdout));
    }
    instrument::judge(&mut findings, controls::here().into_iter())?;
    Ok(findings)
}

/// The body of the process that the test starts once more: prints the findings in every combination
/// of its part.
pub fn watched(scope: Scope, filter: &str, part: usize, parts: usize) {
    let mut recordings = Recordings::new(SECRETS);
    for control in controls::here() {
        let traces = recordings.compare(SECRETS, |number| {
            let secret = controls::secret(number);
            step::begin();
            control.run(&secret);
            step::end();
        });
        print(&control.name(), &traces);
    }
    let is_seen = |row: &Combination| {
        let by_valgrind = scope != Scope::Few && flow::sees(row.backend());
        row.to_string().contains(filter) && !by_valgrind
    };
    let mut rows = scope.combinations();
    rows.retain(|row, _| is_seen(row));
    for (row, specs) in rows.into_iter().skip(part).step_by(parts) {
        let name = row.to_string();
        let backend = row.backend();
        let mut found = Traces::Same { steps: 0 };
        for (nth, &spec) in specs.iter().enumerate() {
            let requests = scope.requests(spec, nth == 0);
            let new = |request: &Request| has_new_code(spec, request, nth == 0);
            for request in requests.into_iter().filter(new) {
                if let Traces::Same { steps: before } = found {
                    found = examine(&mut recordings, spec, backend, request);
                    if let Traces::Same { steps } = &mut found {
                        *steps += before;
                    }
                }
            }
        }
        print(&name, &found);
        if scope == Scope::All {
            eprintln!("{name}: {found}");
        }
    }
}

fn print(name: &str, traces: &Traces) {
    match traces {
        Traces::Same { .. } => instrument::print(name, None),
        Traces::Differ { .. } => instrument::print(name, Some(&traces.to_string())),
    }
}

/// Secrets of a request. Tables of 256 entries and branches that are taken half
/// the time are found by two; the last has only bits that are equal.
const SECRETS: usize = 3;

/// Fewer where many sectors take long: what depends on the key is the same as
/// with few.
const SECRETS_OF_MANY: usize = 2;
const MANY: usize = 8;

/// Whether a request runs what others have not: with its default key each length
/// has kernels of its own; other key sizes have other rounds, in one sector and
/// in many; other IV generators have other IVs, in each sector alike.
fn has_new_code(spec: CipherSpec, request: &Request, is_first: bool) -> bool {
    let Request {
        key_bytes, sectors, ..
    } = *request;
    let is_default = key_bytes == spec.default_key_size();
    match (is_first, is_default) {
        (true, true) => true,
        (true, false) => sectors == 1 || sectors > MANY,
        (false, _) => sectors == 1,
    }
}

/// Key setup, encryption and decryption for several keys and data.
fn examine(
    recordings: &mut Recordings,
    spec: CipherSpec,
    backend: Backend,
    request: Request,
) -> Traces {
    let secrets = match request.data_bytes() > MANY * 512 {
        true => SECRETS_OF_MANY,
        false => SECRETS,
    };
    let work = |number, begin: fn(), end: fn()| {
        let (key, plain) = secret(request, number);
        let mut data = plain.clone();
        let layout = SectorLayout {
            size: request.size,
            large_iv: false,
        };
        let first = IvSector::new(6);
        begin();
        let cipher = spec.cipher(&key, layout, Some(backend)).expect("listed");
        cipher.encrypt(first, &mut data);
        cipher.decrypt(first, &mut data);
        drop(cipher);
        end();
        assert!(data == plain, "{spec} {backend}");
    };
    // One-time work of a process is done before the process is copied.
    work(0, || (), || ());
    recordings.compare(secrets, |number| work(number, step::begin, step::end))
}

/// Random ones, but for the last of [`SECRETS`]: there each half of the key and
/// all of the data is one bit, again and again.
fn secret(request: Request, number: u64) -> (Key, Vec<u8>) {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(number);
    let mut key = vec![0; request.key_bytes];
    let mut data = vec![0; request.data_bytes()];
    if number + 1 < SECRETS as u64 {
        random.fill_bytes(&mut key);
        random.fill_bytes(&mut data);
    } else {
        key[request.key_bytes / 2..].fill(0xff);
    }
    (Key::new(key), data)
}
