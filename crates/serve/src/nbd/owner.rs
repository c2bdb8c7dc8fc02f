//! Which user of this machine is at the other end of a TCP connection.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};

/// The kernel's tables of TCP sockets. The second one has those that use IPv4 by way of IPv6, too.
const TABLES: [&str; 2] = ["/proc/net/tcp", "/proc/net/tcp6"];

/// Whether the system says here which user has a socket.
pub(super) fn are_told() -> bool {
    let own = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|socket| {
        let found = Tables::open().of(socket.local_addr()?, None);
        Ok(found == Some(rustix::process::geteuid().as_raw()))
    });
    own.unwrap_or(false)
}

/// The tables, held open: a server that has confined itself opens no file any more.
pub(super) struct Tables(Vec<File>);

impl Tables {
    /// Opens those that the system has.
    pub(super) fn open() -> Self {
        Self(
            TABLES
                .iter()
                .filter_map(|path| File::open(path).ok())
                .collect(),
        )
    }

    /// The user who has the socket at `local`, which is connected to `remote` or listens. `None` if
    /// the system does not say that.
    pub(super) fn of(&self, local: SocketAddr, remote: Option<SocketAddr>) -> Option<u32> {
        let tables = self.0.iter().filter_map(|table| text(table).ok());
        tables
            .flat_map(|table| table.lines().filter_map(row).collect::<Vec<_>>())
            .find(|row| is_at(row.local, local) && remote.is_none_or(|at| is_at(row.remote, at)))
            .map(|row| row.user)
    }
}

/// A table as it is now.
fn text(mut table: &File) -> io::Result<String> {
    let mut text = String::new();
    table.rewind()?;
    table.read_to_string(&mut text)?;
    Ok(text)
}

/// The user who has the socket at `local`, as `Tables::of`.
pub fn of(local: SocketAddr, remote: Option<SocketAddr>) -> Option<u32> {
    Tables::open().of(local, remote)
}

/// A line of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Row {
    local: SocketAddr,
    remote: SocketAddr,
    user: u32,
}

/// The row in a line; `None` in the table's head, and for a socket that was closed: the kernel
/// shows root as its user.
fn row(line: &str) -> Option<Row> {
    let mut fields = line.split_whitespace();
    let mut field = |skipped| fields.nth(skipped);
    let (local, remote) = (address(field(1)?)?, address(field(0)?)?);
    let user = field(4)?.parse().ok()?;
    let inode = field(1)?;
    (inode != "0").then_some(Row {
        local,
        remote,
        user,
    })
}

/// An address as the kernel writes it: words of this machine's byte order, and the port.
fn address(text: &str) -> Option<SocketAddr> {
    let (address, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let mut bytes = Vec::new();
    for word in address.as_bytes().chunks(8) {
        let word = u32::from_str_radix(std::str::from_utf8(word).ok()?, 16).ok()?;
        bytes.extend(word.to_ne_bytes());
    }
    let address: IpAddr = match bytes.len() {
        4 => Ipv4Addr::from(<[u8; 4]>::try_from(bytes).ok()?).into(),
        _ => Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?).into(),
    };
    Some(SocketAddr::new(address, port))
}

/// Whether both are one address, however it is written.
fn is_at(one: SocketAddr, other: SocketAddr) -> bool {
    one.port() == other.port() && one.ip().to_canonical() == other.ip().to_canonical()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpStream;

    #[test]
    fn the_user_of_each_way_to_this_machine_is_found() {
        let own = Some(rustix::process::geteuid().as_raw());
        if !are_told() {
            return println!("skipped: users of sockets: the system does not tell them");
        }
        for (listens, calls) in [
            ("127.0.0.1:0", "127.0.0.1"),
            ("127.3.2.1:0", "127.3.2.1"),
            ("[::1]:0", "::1"),
            ("[::ffff:127.0.0.1]:0", "127.0.0.1"),
            ("[::ffff:127.0.0.1]:0", "::ffff:127.0.0.1"),
            ("127.0.0.1:0", "::ffff:127.0.0.1"),
        ] {
            let Ok(server) = TcpListener::bind(listens) else {
                println!("skipped: {listens}: this machine has no such address");
                continue;
            };
            let port = server.local_addr().unwrap().port();
            let client = TcpStream::connect((calls.parse::<IpAddr>().unwrap(), port)).unwrap();
            let (stream, peer) = server.accept().unwrap();
            let here = stream.local_addr().unwrap();
            assert_eq!(of(peer, Some(here)), own, "{listens} {calls}");
            // The kernel shows a closed socket as root's.
            drop(client);
            assert_eq!(of(peer, Some(here)), None, "{listens} {calls}");
        }
    }

    #[cfg(target_endian = "little")]
    #[test]
    fn rows_are_read_and_closed_sockets_have_no_user() {
        let line = "   1: 0100007F:8AF2 0100007F:2A39 01 00000000:00000000 00:00000000 00000000  1000        0 84151 1 0000000000000000 20 4 30 10 -1";
        let found = row(line).unwrap();
        assert_eq!(found.local, "127.0.0.1:35570".parse().unwrap());
        assert_eq!(found.remote, "127.0.0.1:10809".parse().unwrap());
        assert_eq!(found.user, 1000);
        assert_eq!(row(&line.replace("84151", "0")), None);
        assert_eq!(row("  sl  local_address rem_address   st"), None);
    }
}
