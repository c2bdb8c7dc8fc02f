//! Volumes on exports that are reached by TLS.

use crate::sandbox::{Kind, MIB, create, sandbox, start};
use std::fs;
use testkit::{Sandbox, have};

/// Makes an authority in `folder`, and what it vouches for, for `localhost`.
fn certificates(sandbox: &Sandbox, folder: &str) {
    fs::create_dir(sandbox.path(folder)).unwrap();
    let key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2";
    let at = |name: &str| format!("{folder}/{name}");
    let (authority, names) = (at("ca-cert.pem"), at("names"));
    sandbox.write(&names, "subjectAltName=DNS:localhost\n");
    let ca = at("ca-key.pem");
    sandbox.tool(
        "openssl",
        &format!("req -x509 {key} -subj /CN=authority -keyout {ca} -out {authority}"),
    );
    for name in ["server", "client"] {
        let [request, signed, private] =
            ["request", "cert", "key"].map(|what| at(&format!("{name}-{what}.pem")));
        sandbox.tool(
            "openssl",
            &format!("req -new {key} -subj /CN={name} -keyout {private} -out {request}"),
        );
        sandbox.tool(
            "openssl",
            &format!(
                "x509 -req -days 2 -in {request} -CA {authority} -CAkey {ca} -CAcreateserial \
                 -extfile {names} -out {signed}"
            ),
        );
    }
}

#[test]
fn volumes_lie_behind_tls() {
    if !have(&["openssl"]) {
        return;
    }
    let sandbox = sandbox();
    sandbox.write_zeros("disk", 20 * MIB);
    certificates(&sandbox, "pki");
    certificates(&sandbox, "foreign");
    let serving = "volume serve disk --type plain --cipher cipher_null-ecb --passphrase-file line \
                   --nbd back --tls require --tls-certificates pki --tls-verify-peer";
    let start = || start(sandbox.cryptmark(serving), &sandbox.path("back"));
    let back = start();
    let place = "nbds+unix:///?socket=back&tls-certificates=pki";
    create(&sandbox, place);
    sandbox.write("plain", vec![7; 1 << 20]);
    sandbox.ok(&format!(
        "volume import {place} --input plain --passphrase-file line --no-progress"
    ));
    // A device that lasts greets again.
    let uri = serve::nbd::Uri::parse(
        format!(
            "nbds+unix:///?socket={}&tls-certificates={}",
            sandbox.path("back").display(),
            sandbox.path("pki").display()
        )
        .as_ref(),
    );
    let device = serve::nbd::NbdDevice::open(&uri.unwrap()).unwrap();
    let mut bytes = [0; 4096];
    block::BlockDevice::read_at(&device, 0, &mut bytes).unwrap();
    drop(back);
    let back = start();
    let mut again = [0; 4096];
    block::BlockDevice::read_at(&device, 0, &mut again).unwrap();
    assert_eq!(bytes, again);
    drop(device);
    sandbox.ok(&format!(
        "volume export {place} --output out --passphrase-file line --no-progress"
    ));
    assert_eq!(sandbox.read("out")[..1 << 20], vec![7; 1 << 20][..]);
    let open = |place: &str| sandbox.run(&format!("volume open {place} --passphrase-file line"));
    for (code, place, words) in [
        (2, "nbd+unix:///?socket=back", "requires TLS"),
        (
            1,
            "nbds+unix:///?socket=back&tls-certificates=foreign",
            "was lost",
        ),
        (
            1,
            "nbds+unix:///?socket=back&tls-certificates=pki&tls-hostname=else",
            "was lost",
        ),
    ] {
        let output = open(place);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{place}: {said}");
        assert!(said.contains(words), "{place}: {said}");
    }
    drop(back);
    // TLS is asked for, and there is none.
    let _back = Kind::Ours.start(&sandbox);
    let output = open(place);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("does not support TLS"), "{said}");
}
