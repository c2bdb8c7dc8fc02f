//! A volume on an RBD image of a real Ceph, all of it on this machine: one
//! monitor, one manager, three OSDs. OSDs are killed under verified load, and so
//! is qemu-nbd, with what librbd has in its cache.

use crate::killed::{is_same, model, opened};
use crate::sandbox::{MIB, create, given, sandbox, start};
use block::BlockDevice;
use serve::nbd::{NbdDevice, Uri};
use std::fs;
use std::net::TcpListener;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use testkit::{Running, Sandbox, have};

const OSDS: usize = 3;
const IMAGE_MIB: u64 = 18;

/// How long the cluster may take to do what it is told.
const PATIENCE: Duration = Duration::from_secs(180);

/// A cluster in a sandbox's folder; it ends with the test.
struct Ceph<'a> {
    sandbox: &'a Sandbox,
    daemons: Vec<Child>,
    osds: Vec<Child>,
}

impl<'a> Ceph<'a> {
    fn start(sandbox: &'a Sandbox) -> Self {
        let ports: Vec<TcpListener> = (0..2)
            .map(|_| TcpListener::bind("127.0.0.1:0").unwrap())
            .collect();
        let port = |index: usize| ports[index].local_addr().unwrap().port();
        let monitor = format!("[v2:127.0.0.1:{},v1:127.0.0.1:{}]", port(0), port(1));
        drop(ports);
        let fsid = "c3f1a6de-0000-4000-8000-00000000cafe";
        let folder = sandbox.path("").display().to_string();
        let folder = folder.trim_end_matches('/');
        let configuration = format!(
            "[global]
fsid = {fsid}
mon host = {monitor}
mon initial members = a
auth cluster required = none
auth service required = none
auth client required = none
public addr = 127.0.0.1
cluster addr = 127.0.0.1
run dir = {folder}
admin socket = {folder}/$name.asok
pid file = {folder}/$name.pid
log file = {folder}/$name.log
crash dir = {folder}
mon data = {folder}/$name
mgr data = {folder}/$name
osd data = {folder}/$name
keyring = {folder}/keyring
osd crush chooseleaf type = 0
osd pool default size = 3
osd pool default min size = 2
osd pool default pg autoscale mode = off
osd heartbeat interval = 1
osd heartbeat grace = 4
mon osd min down reporters = 1
mon osd adjust heartbeat grace = false
mon osd down out interval = 3600
mon data avail crit = 1
osd objectstore = bluestore
bluestore block size = 1073741824
osd memory target = 939524096
rbd default features = 1
"
        );
        sandbox.write("ceph.conf", configuration);
        sandbox.tool(
            "ceph-authtool",
            "--create-keyring keyring --gen-key -n mon. --cap mon allow*",
        );
        sandbox.tool(
            "monmaptool",
            &format!("--create --fsid {fsid} --addv a {monitor} monmap"),
        );
        sandbox.tool(
            "ceph-mon",
            "-c ceph.conf -i a --mkfs --monmap monmap --keyring keyring",
        );
        let mut ceph = Self {
            sandbox,
            daemons: Vec::new(),
            osds: Vec::new(),
        };
        ceph.daemons.push(daemon(sandbox, "ceph-mon", "a"));
        ceph.wait("monitor", |ceph| ceph.says("status").is_some());
        fs::create_dir(sandbox.path("mgr.x")).unwrap();
        ceph.daemons.push(daemon(sandbox, "ceph-mgr", "x"));
        for osd in 0..OSDS {
            let uuid = format!("c3f1a6de-0000-4000-8000-{osd:012}");
            let number = ceph.says(&format!("osd new {uuid}")).unwrap();
            assert_eq!(number.trim(), osd.to_string());
            fs::create_dir(sandbox.path(format!("osd.{osd}"))).unwrap();
            sandbox.tool(
                "ceph-osd",
                &format!("-c ceph.conf -i {osd} --mkfs --osd-uuid {uuid}"),
            );
            ceph.osds
                .push(daemon(sandbox, "ceph-osd", &osd.to_string()));
        }
        ceph.await_osds(OSDS);
        sandbox.tool("ceph", "-c ceph.conf osd pool create rbd 8 8");
        sandbox.tool("rbd", "-c ceph.conf pool init rbd");
        sandbox.tool(
            "rbd",
            &format!("-c ceph.conf create --size {IMAGE_MIB}M rbd/disk"),
        );
        ceph
    }

    /// What `ceph` answers; nothing where it fails.
    fn says(&self, words: &str) -> Option<String> {
        let words = format!("-c ceph.conf --connect-timeout 10 {words}");
        let output = self.sandbox.command("ceph", &words).output().unwrap();
        output
            .status
            .success()
            .then(|| String::from_utf8_lossy(&output.stdout).into_owned())
    }

    fn wait(&self, what: &str, mut done: impl FnMut(&Self) -> bool) {
        let begun = Instant::now();
        while !done(self) {
            let late = begun.elapsed() > PATIENCE;
            assert!(!late, "{what}: {:?}", self.says("status"));
            std::thread::sleep(Duration::from_millis(500));
        }
    }

    /// Waits until so many OSDs are up.
    fn await_osds(&self, up: usize) {
        self.wait("OSDs", |ceph| {
            let json = ceph.says("osd stat --format json").unwrap_or_default();
            let told: serde_json::Value = serde_json::from_str(&json).unwrap_or_default();
            told["num_up_osds"] == up
        });
    }

    fn kill(&mut self, osd: usize) {
        self.osds[osd].kill().unwrap();
        self.osds[osd].wait().unwrap();
    }

    fn revive(&mut self, osd: usize) {
        self.osds[osd] = daemon(self.sandbox, "ceph-osd", &osd.to_string());
    }

    /// qemu-nbd with the image, at the socket `back`.
    fn export(&self) -> Running {
        let words = format!(
            "--persistent --shared=4 --cache=writeback --format=raw --socket={} \
             rbd:rbd/disk:conf={}",
            self.sandbox.path("back").display(),
            self.sandbox.path("ceph.conf").display()
        );
        start(
            self.sandbox.command("qemu-nbd", &words),
            &self.sandbox.path("back"),
        )
    }
}

impl Drop for Ceph<'_> {
    fn drop(&mut self) {
        for child in self.osds.iter_mut().chain(&mut self.daemons) {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn daemon(sandbox: &Sandbox, program: &str, name: &str) -> Child {
    sandbox
        .command(program, &format!("-c ceph.conf -i {name} -f"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

#[test]
#[ignore = "needs Ceph: cargo xtask install ceph"]
fn an_osd_killed_under_load_loses_nothing() {
    if !have(&[
        "ceph-mon", "ceph-mgr", "ceph-osd", "ceph", "rbd", "qemu-nbd",
    ]) {
        return;
    }
    let rounds = given("CEPH_KILLS", 3) as usize;
    let sandbox = sandbox();
    let mut ceph = Ceph::start(&sandbox);
    println!("{}", ceph.says("status").unwrap());
    let back = ceph.export();
    let place = format!("nbd+unix:///?socket={}", sandbox.path("back").display());
    create(&sandbox, &place);
    let device = NbdDevice::open(&Uri::parse(place.as_ref()).unwrap()).unwrap();
    let plain = opened(&device);
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let load = scope.spawn(|| {
            let mut round = 0;
            while !over.load(Ordering::SeqCst) {
                round += 1;
                model(round).run(&plain);
            }
            round
        });
        let mut back = Some(back);
        for round in 0..rounds {
            std::thread::sleep(Duration::from_secs(2));
            ceph.kill(round % OSDS);
            ceph.await_osds(OSDS - 1);
            // Without one of three it goes on.
            std::thread::sleep(Duration::from_secs(2));
            if let Some(back) = back.take() {
                drop(back);
            }
            back = Some(ceph.export());
            std::thread::sleep(Duration::from_secs(1));
            ceph.revive(round % OSDS);
            ceph.await_osds(OSDS);
            assert!(!load.is_finished(), "the load has failed");
        }
        over.store(true, Ordering::SeqCst);
        let done = load.join().unwrap();
        println!("{rounds} OSDs and {rounds} servers killed, {done} rounds of the load");
        let mut expected = vec![0; plain.geometry().size as usize];
        plain.read_at(0, &mut expected).unwrap();
        plain.flush().unwrap();
        if let Some(back) = back.take() {
            drop(back);
        }
        sandbox.write("expected", expected);
    });
    drop(plain);
    sandbox.tool("rbd", "-c ceph.conf export rbd/disk image --no-progress");
    sandbox.ok("volume export image --passphrase-file line --output out");
    let found = sandbox.read("out");
    assert_eq!(found.len() as u64, (IMAGE_MIB - 16) * MIB);
    assert!(is_same(&found, &sandbox.read("expected")));
}
