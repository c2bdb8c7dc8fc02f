//! A planted fault of debug builds: a thread tries what it must not reach, before and after it is
//! confined. Tests ask for it and read the outcomes.

use std::fs::File;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr as UnixAddr, UnixStream};
use std::path::Path;

/// Names a file, a TCP address, a process and an abstract socket, with spaces between them.
const VARIABLE: &str = "CRYPTMARK_PLANTED";

/// Prints a line of what succeeds now.
pub fn attempt(when: &str) {
    let Ok(named) = std::env::var(VARIABLE) else {
        return;
    };
    let mut named = named.split(' ');
    let mut next = || named.next().unwrap_or_default().to_owned();
    let (file, address, process, socket) = (next(), next(), next(), next());
    let process = process
        .parse()
        .ok()
        .and_then(rustix::process::Pid::from_raw);
    let socket = UnixAddr::from_abstract_name(socket);
    let beside = Path::new(&file).with_extension(when);
    let own = |port| SocketAddr::from(([127, 0, 0, 1], port));
    let outcomes = [
        ("read", File::open(&file).is_ok()),
        ("write", File::options().append(true).open(&file).is_ok()),
        ("make", File::create_new(beside).is_ok()),
        ("list", std::fs::read_dir("/etc").is_ok()),
        ("connect", TcpStream::connect(&address).is_ok()),
        ("bind", TcpListener::bind(own(0)).is_ok()),
        ("run", block::program::command("true").status().is_ok()),
        (
            "signal",
            process.is_some_and(|at| rustix::process::test_kill_process(at).is_ok()),
        ),
        (
            "abstract",
            socket.is_ok_and(|at| UnixStream::connect_addr(&at).is_ok()),
        ),
    ];
    let done: Vec<&str> = outcomes
        .iter()
        .filter(|(_, done)| *done)
        .map(|(name, _)| *name)
        .collect();
    eprintln!("planted {when}: {}", done.join(" "));
}
