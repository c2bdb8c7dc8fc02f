//! Which user of this machine is at the other end of a TCP connection.

use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketType, netlink, recv, send, socket};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};

/// `SOCK_DIAG_BY_FAMILY` of `linux/sock_diag.h`: the type of a request, and of its answer.
const BY_FAMILY: u16 = 20;
/// `NLM_F_REQUEST` of `linux/netlink.h`.
const REQUEST: u16 = 1;
const TCP: u8 = 6;

/// Whether the system says here which user has a socket.
pub(super) fn are_told() -> bool {
    let own = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|here| {
        let client = TcpStream::connect(here.local_addr()?)?;
        let found = of(client.local_addr()?, here.local_addr()?);
        Ok(found == Some(rustix::process::geteuid().as_raw()))
    });
    own.unwrap_or(false)
}

/// The user who has the socket at `local`, which is connected to `remote`. `None` if the system does
/// not say that, and for a socket that was closed. The kernel looks for this one socket: its table
/// in `/proc/net` takes a thousand times as long to read.
pub fn of(local: SocketAddr, remote: SocketAddr) -> Option<u32> {
    let kernel = socket(
        AddressFamily::NETLINK,
        SocketType::DGRAM,
        Some(netlink::SOCK_DIAG),
    )
    .ok()?;
    send(&kernel, &request(local, remote), SendFlags::empty()).ok()?;
    let mut answer = [0; 1024];
    let (length, _) = recv(&kernel, &mut answer[..], RecvFlags::DONTWAIT).ok()?;
    user(&answer[..length], remote.port())
}

/// `struct nlmsghdr` and `struct inet_diag_req_v2`, in any state, with any cookie.
fn request(local: SocketAddr, remote: SocketAddr) -> Vec<u8> {
    let ends = [local, remote].map(|end| (end.ip().to_canonical(), end.port()));
    let is_4 = ends.iter().all(|(ip, _)| ip.is_ipv4());
    let family = match is_4 {
        true => AddressFamily::INET,
        false => AddressFamily::INET6,
    };
    let mut body = vec![family.as_raw() as u8, TCP, 0, 0];
    body.extend(u32::MAX.to_ne_bytes());
    body.extend(ends.iter().flat_map(|(_, port)| port.to_be_bytes()));
    for (ip, _) in ends {
        let mut place = [0; 16];
        match ip {
            IpAddr::V4(ip) if is_4 => place[..4].copy_from_slice(&ip.octets()),
            IpAddr::V4(ip) => place = ip.to_ipv6_mapped().octets(),
            IpAddr::V6(ip) => place = ip.octets(),
        }
        body.extend(place);
    }
    body.extend(0_u32.to_ne_bytes());
    body.extend([u8::MAX; 8]);
    let mut request = Vec::new();
    request.extend((16 + body.len() as u32).to_ne_bytes());
    request.extend([BY_FAMILY, REQUEST].map(u16::to_ne_bytes).concat());
    request.extend([0; 8]);
    request.extend(body);
    request
}

/// The user in an answer of the kernel, `struct nlmsghdr` and `struct inet_diag_msg`. One that
/// listens is at no `port`, and one that was closed has no inode.
fn user(answer: &[u8], port: u16) -> Option<u32> {
    let word = |at: usize| {
        let bytes = answer.get(at..at + 4)?;
        bytes.try_into().ok().map(u32::from_ne_bytes)
    };
    let is_of = answer.get(4..6)? == BY_FAMILY.to_ne_bytes()
        && answer.get(22..24)? == port.to_be_bytes()
        && word(84)? != 0;
    is_of.then(|| word(80))?
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
            assert_eq!(of(peer, here), own, "{listens} {calls}");
            // The kernel shows a closed socket as root's.
            drop(client);
            assert_eq!(of(peer, here), None, "{listens} {calls}");
        }
    }

    /// A socket that listens at the address of a client that is gone is another one.
    #[test]
    fn a_listener_is_no_client() {
        let here = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = here.local_addr().unwrap();
        assert_eq!(of(at, "127.0.0.1:9".parse().unwrap()), None);
    }

    #[test]
    fn answers_that_are_cut_off_name_nobody() {
        let mut answer = vec![0; 88];
        answer[4..6].copy_from_slice(&BY_FAMILY.to_ne_bytes());
        answer[22..24].copy_from_slice(&7_u16.to_be_bytes());
        answer[80..84].copy_from_slice(&1000_u32.to_ne_bytes());
        answer[84..].fill(1);
        assert_eq!(user(&answer, 7), Some(1000));
        assert_eq!(user(&answer, 8), None);
        for length in 0..answer.len() {
            assert_eq!(user(&answer[..length], 7), None, "{length}");
        }
        answer[84..].fill(0);
        assert_eq!(user(&answer, 7), None);
    }
}
