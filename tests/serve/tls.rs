//! `volume serve --tls`: who gets in, and who does not.

use crate::{MIB, Serving, create, sandbox, served};
use serve::nbd::{ClientTls, NbdDevice, Place};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;
use testkit::{Sandbox, have, noise};

/// Makes an authority in `folder`, and what it vouches for.
fn certificates(sandbox: &Sandbox, folder: &str) {
    fs::create_dir(sandbox.path(folder)).unwrap();
    let key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2";
    let place = |name: &str| format!("{folder}/{name}");
    sandbox.tool(
        "openssl",
        &format!(
            "req -x509 {key} -subj /CN=authority -keyout {} -out {}",
            place("ca-key.pem"),
            place("ca-cert.pem")
        ),
    );
    for (name, subject) in [("server", "/CN=localhost"), ("client", "/CN=someone")] {
        sandbox.write(
            place("names"),
            "subjectAltName=DNS:localhost,IP:127.0.0.1\n",
        );
        let [request, signed, private] =
            ["request", "cert", "key"].map(|what| place(&format!("{name}-{what}.pem")));
        sandbox.tool(
            "openssl",
            &format!("req -new {key} -subj {subject} -keyout {private} -out {request}"),
        );
        sandbox.tool(
            "openssl",
            &format!(
                "x509 -req -days 2 -in {request} -CA {} -CAkey {} -CAcreateserial \
                 -extfile {} -out {signed}",
                place("ca-cert.pem"),
                place("ca-key.pem"),
                place("names")
            ),
        );
    }
}

/// A client's own directory: with a certificate, or without.
fn client(sandbox: &Sandbox, from: &str, name: &str, files: &[&str]) {
    fs::create_dir(sandbox.path(name)).unwrap();
    for file in files {
        let from = sandbox.path(from).join(file);
        fs::copy(from, sandbox.path(name).join(file)).unwrap();
    }
}

const ALL: [&str; 3] = ["ca-cert.pem", "client-cert.pem", "client-key.pem"];

fn prepared() -> Option<Sandbox> {
    if !have(&["openssl", "nbdinfo", "nbdcopy", "qemu-img"]) {
        return None;
    }
    let sandbox = sandbox();
    create(&sandbox, "x.img", 22);
    certificates(&sandbox, "pki");
    certificates(&sandbox, "foreign");
    client(&sandbox, "pki", "known", &ALL);
    client(&sandbox, "pki", "nameless", &["ca-cert.pem"]);
    client(&sandbox, "foreign", "stranger", &ALL);
    // Who trusts the server and has a certificate of somebody else.
    client(&sandbox, "foreign", "liar", &ALL[1..]);
    fs::copy(
        sandbox.path("pki/ca-cert.pem"),
        sandbox.path("liar/ca-cert.pem"),
    )
    .unwrap();
    Some(sandbox)
}

/// libnbd looks at a server's certificate over TCP only.
#[test]
fn who_gets_in() {
    let Some(sandbox) = prepared() else { return };
    for (options, expected) in [
        // Plain, known, without a certificate, who does not trust the server,
        // with a certificate of somebody else.
        ("--tls off", [true, false, false, false, false]),
        ("--tls on", [true, true, true, false, true]),
        ("--tls require", [false, true, true, false, true]),
        (
            "--tls require --tls-verify-peer",
            [false, true, false, false, false],
        ),
    ] {
        let arguments = format!(
            "volume serve x.img --passphrase-file line --nbd localhost:0 \
             --tls-certificates pki {options}"
        );
        let mut server = sandbox
            .cryptmark(&arguments)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut told = BufReader::new(server.stdout.take().unwrap());
        told.read_line(&mut line).unwrap();
        let port = line.trim().rsplit(':').next().unwrap();
        let found = [
            None,
            Some("known"),
            Some("nameless"),
            Some("stranger"),
            Some("liar"),
        ]
        .map(|folder| {
            let uri = match folder {
                None => format!("nbd://localhost:{port}"),
                Some(folder) => format!(
                    "nbds://localhost:{port}?tls-certificates={}",
                    sandbox.path(folder).display()
                ),
            };
            let mut info = sandbox.command("nbdinfo", "--size");
            info.arg(uri).output().unwrap().status.success()
        });
        sandbox.ok("volume umount x.img");
        assert_eq!(server.wait().unwrap().code(), Some(0));
        assert_eq!(found, expected, "{options}");
    }
}

#[test]
fn other_programs_copy_over_tls() {
    let Some(sandbox) = prepared() else { return };
    let secure = "--tls require --tls-certificates pki --tls-verify-peer";
    let serving = served(&sandbox, "x.img", &format!("{secure} --trim pass"));
    let size = 6 * MIB;
    sandbox.write("plain", noise(size as usize, 5));
    let known = format!(
        "nbds+unix:///?socket={}&tls-certificates={}",
        serving.socket.display(),
        sandbox.path("known").display()
    );
    sandbox.tool("nbdcopy", &format!("plain {known}"));
    sandbox.tool("nbdcopy", &format!("--no-extents {known} copy"));
    assert!(sandbox.read("copy") == sandbox.read("plain"));
    let json = sandbox.tool("nbdinfo", &format!("--json {known}"));
    let told: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(told["TLS"], true);
    let socket = sandbox.path("disk.sock");
    let image = format!(
        "driver=nbd,server.type=unix,server.path={},tls-creds=tls,tls-hostname=localhost",
        socket.display()
    );
    sandbox.tool(
        "qemu-img",
        &format!(
            "compare --object tls-creds-x509,id=tls,endpoint=client,dir={} \
             --image-opts driver=raw,file.filename=plain {image}",
            sandbox.path("known").display()
        ),
    );
    serving.end();
}

fn connect(serving: &Serving, folder: &Path, host: &str) -> Option<NbdDevice> {
    let tls = ClientTls::open(folder, host).unwrap();
    NbdDevice::connect_securely(&Place::Unix(serving.socket.clone()), "", tls).ok()
}

/// The same by our own client, with many requests under way.
#[test]
fn our_client_over_tls() {
    let Some(sandbox) = prepared() else { return };
    let secure = "--tls require --tls-certificates pki --tls-verify-peer";
    let serving = served(&sandbox, "x.img", secure);
    for (folder, host, in_) in [
        ("known", "localhost", true),
        ("known", "127.0.0.1", true),
        ("known", "elsewhere", false),
        ("nameless", "localhost", false),
        ("stranger", "localhost", false),
        ("liar", "localhost", false),
    ] {
        let device = connect(&serving, &sandbox.path(folder), host);
        assert_eq!(device.is_some(), in_, "{folder} {host}");
    }
    assert!(NbdDevice::connect(&Place::Unix(serving.socket.clone()), "").is_err());
    let device = connect(&serving, &sandbox.path("known"), "localhost").unwrap();
    block::model::Model {
        discarded: block::model::Discarded::Anything,
        longest: 2 * MIB,
        steps: 120,
        ..block::model::Model::new(17)
    }
    .run(&device);
    drop(device);
    serving.end();
}

#[test]
fn certificates_that_cannot_be_used_are_said() {
    let Some(sandbox) = prepared() else { return };
    fs::create_dir(sandbox.path("empty")).unwrap();
    fs::create_dir(sandbox.path("mixed")).unwrap();
    fs::copy(
        sandbox.path("pki/server-cert.pem"),
        sandbox.path("mixed/server-cert.pem"),
    )
    .unwrap();
    fs::copy(
        sandbox.path("foreign/server-key.pem"),
        sandbox.path("mixed/server-key.pem"),
    )
    .unwrap();
    client(&sandbox, "pki", "swapped", &["ca-cert.pem"]);
    for name in ["server-cert.pem", "server-key.pem"] {
        let other = ["server-key.pem", "server-cert.pem"];
        let other = other.iter().find(|&&other| other != name).unwrap();
        fs::copy(
            sandbox.path("pki").join(other),
            sandbox.path("swapped").join(name),
        )
        .unwrap();
    }
    for options in [
        "--tls on",
        "--tls require --tls-certificates nowhere",
        "--tls require --tls-certificates empty",
        "--tls require --tls-certificates mixed",
        "--tls require --tls-certificates swapped",
        "--tls require --tls-certificates mixed --tls-verify-peer",
        "--tls maybe --tls-certificates pki",
        "--tls-certificates pki --tls-verify-peer",
        "--tls off --tls-certificates pki --tls-verify-peer",
        "--tls-certificates pki",
    ] {
        let arguments =
            format!("volume serve x.img --passphrase-file line --nbd disk.sock {options}");
        let output = sandbox.run(&arguments);
        assert_eq!(output.status.code(), Some(2), "{options}");
        assert!(!sandbox.path("disk.sock").exists());
    }
    let file = "volume serve x.img --fuse f --tls require --tls-certificates pki";
    let output = sandbox.run(file);
    assert_eq!(output.status.code(), Some(2), "a file has no TLS");
}
