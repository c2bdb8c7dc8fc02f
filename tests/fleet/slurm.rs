//! A real Slurm on this machine: four nodes, of which one is killed while a job
//! array of 40 shards runs.

use crate::{PROGRAM, on, sandbox, server};
use rustix::process::{Pid, Signal, kill_process};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long all of it may take: it is ended then.
const PATIENCE: Duration = Duration::from_secs(180);

/// Nodes, each with one core.
const NODES: usize = 4;

/// The variable by which what a node's daemon has started is found.
const NODE: &str = "CRYPTMARK_TEST_NODE";

/// Daemons and their files; ended and removed when dropped.
struct Cluster {
    folder: PathBuf,
    munge: Child,
    controller: Child,
    nodes: Vec<Child>,
}

fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/sbin".into(), "/sbin".into()])
        .map(|folder| folder.join(name))
        .find(|path| path.is_file())
}

impl Cluster {
    fn start(folder: &Path) -> Result<Self, String> {
        for name in ["munged", "slurmctld", "slurmd", "sbatch"] {
            if program(name).is_none() {
                return Err(format!(
                    "{name} is not installed (Debian: slurm-wlm, munge)"
                ));
            }
        }
        let root = Command::new("id").arg("-u").output();
        if !root.is_ok_and(|id| id.stdout.trim_ascii() == b"0") {
            return Err("only root can start Slurm's daemons".to_owned());
        }
        let folder = folder.join("slurm");
        std::fs::create_dir(&folder).map_err(|error| error.to_string())?;
        let path = |name: &str| folder.join(name).display().to_string();
        let key: Vec<u8> = (0..128)
            .map(|i: u32| (i * 37 + std::process::id()) as u8)
            .collect();
        write_private(&folder.join("munge.key"), &key);
        let host = output("hostname", &["-s"]);
        let ports: Vec<u16> = free_ports(NODES + 1);
        let mut nodes = String::new();
        for (number, port) in ports[1..].iter().enumerate() {
            nodes.push_str(&format!(
                "NodeName=n{number} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=1 State=UNKNOWN\n"
            ));
        }
        let names: Vec<String> = (0..NODES).map(|number| format!("n{number}")).collect();
        // A node that is silent for five seconds is lost.
        let configuration = format!(
            "ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={munge},cred_expire=10
CredType=cred/munge
StateSaveLocation={state}
SlurmdSpoolDir={folder}/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/%n.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=1,sched_interval=1,sched_min_interval=100000
SlurmdTimeout=5
InactiveLimit=0
KillWait=2
ReturnToService=0
MpiDefault=none
SwitchType=switch/none
{nodes}PartitionName=all Nodes={names} Default=YES MaxTime=INFINITE State=UP
",
            port = ports[0],
            munge = path("munge.socket"),
            state = path("state"),
            folder = folder.display(),
            names = names.join(","),
        );
        std::fs::write(folder.join("slurm.conf"), configuration).unwrap();
        std::fs::write(
            folder.join("cgroup.conf"),
            "CgroupAutomount=no\nCgroupPlugin=autodetect\n",
        )
        .unwrap();
        std::fs::create_dir(folder.join("state")).unwrap();
        let daemon = |name: &str, node: &str, arguments: &[&str]| {
            Command::new(program(name).unwrap())
                .args(arguments)
                .env(NODE, node)
                .env("SLURM_CONF", folder.join("slurm.conf"))
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .map_err(|error| format!("{name}: {error}"))
        };
        let munge = daemon(
            "munged",
            "",
            &[
                "--foreground",
                "--force",
                &format!("--key-file={}", path("munge.key")),
                &format!("--socket={}", path("munge.socket")),
                &format!("--pid-file={}", path("munge.pid")),
                &format!("--log-file={}", path("munge.log")),
                &format!("--seed-file={}", path("munge.seed")),
            ],
        )?;
        wait_for("munged", || folder.join("munge.socket").exists())?;
        let mut cluster = Self {
            controller: daemon("slurmctld", "", &["-D"])?,
            munge,
            nodes: Vec::new(),
            folder: folder.clone(),
        };
        for name in &names {
            cluster
                .nodes
                .push(daemon("slurmd", name, &["-D", "-N", name])?);
        }
        wait_for("the nodes", || {
            let idle = cluster.said("sinfo", &["-h", "-N", "-o", "%T"]);
            idle.lines().filter(|state| *state == "idle").count() == NODES
        })
        .map_err(|error| {
            let logs = ["slurmctld.log", "n0.log", "munge.log"];
            let tail = |name: &&str| {
                let text = std::fs::read_to_string(cluster.folder.join(name)).unwrap_or_default();
                let last: Vec<_> = text.lines().rev().take(5).collect();
                format!("{name}: {}", last.join(" | "))
            };
            format!(
                "{error}; {}",
                logs.iter().map(tail).collect::<Vec<_>>().join("; ")
            )
        })?;
        Ok(cluster)
    }

    fn command(&self, name: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(name);
        command
            .args(arguments)
            .env("SLURM_CONF", self.folder.join("slurm.conf"));
        command
    }

    fn said(&self, name: &str, arguments: &[&str]) -> String {
        match self.command(name, arguments).output() {
            Ok(output) => String::from_utf8_lossy(&output.stdout).trim().to_owned(),
            Err(_) => String::new(),
        }
    }

    /// Ends a node with everything that runs on it, as a machine that loses its power.
    fn kill_node(&mut self, name: &str) {
        let number = self.names().position(|known| known == name).unwrap();
        self.kill_what_runs_on(name);
        self.nodes[number].wait().unwrap();
    }

    /// What the controller said of a task and a node.
    fn log_of(&self, shard: &str, node: &str) -> String {
        let log = std::fs::read_to_string(self.folder.join("slurmctld.log")).unwrap_or_default();
        let words = [format!("_{shard}("), format!("_{shard} "), node.to_owned()];
        let said = |line: &&str| words.iter().any(|word| line.contains(word));
        let lines: Vec<&str> = log.lines().filter(said).collect();
        lines[lines.len().saturating_sub(40)..].join("\n")
    }

    fn names(&self) -> impl Iterator<Item = String> + use<> {
        (0..NODES).map(|number| format!("n{number}"))
    }

    /// Jobs, and what starts them: they carry the node's name in their environment.
    fn processes_of(&self, node: &str) -> Vec<Pid> {
        let folder = self.folder.display().to_string();
        let names = [format!("SLURMD_NODENAME={node}"), format!("{NODE}={node}")];
        let ours = |environment: &[u8]| {
            let mut words = environment.split(|byte| *byte == 0);
            let named = words.any(|word| names.iter().any(|name| name.as_bytes() == word));
            named
                && environment
                    .windows(folder.len())
                    .any(|part| part == folder.as_bytes())
        };
        let processes = std::fs::read_dir("/proc").unwrap().flatten();
        processes
            .filter(|process| {
                let environment = std::fs::read(process.path().join("environ"));
                ours(&environment.unwrap_or_default())
            })
            .filter_map(|process| process.file_name().to_string_lossy().parse().ok())
            .flat_map(|process: i32| [Some(process), step_above(process)])
            .flatten()
            .filter_map(Pid::from_raw)
            .collect()
    }

    fn kill_what_runs_on(&self, node: &str) {
        // All stand still before the first ends: none can tell of another's end.
        for signal in [Signal::STOP, Signal::KILL] {
            for process in self.processes_of(node) {
                // It may end by itself meanwhile.
                let _ = kill_process(process, signal);
            }
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for daemon in self
            .nodes
            .iter_mut()
            .chain([&mut self.controller, &mut self.munge])
        {
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
        for name in self.names() {
            self.kill_what_runs_on(&name);
        }
    }
}

/// The process of Slurm's that has started a job's: it names itself over its
/// environment, and is found as a parent only.
fn step_above(process: i32) -> Option<i32> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"))?;
    let parent: i32 = parent.trim().parse().ok()?;
    let name = std::fs::read_to_string(format!("/proc/{parent}/comm")).ok()?;
    (name.trim() == "slurmstepd").then_some(parent)
}

fn output(name: &str, arguments: &[&str]) -> String {
    let output = Command::new(name).args(arguments).output().unwrap();
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

fn write_private(path: &Path, bytes: &[u8]) {
    std::fs::write(path, bytes).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
}

/// Ports that nobody listens on.
fn free_ports(count: usize) -> Vec<u16> {
    let held: Vec<_> = (0..count)
        .map(|_| TcpListener::bind("127.0.0.1:0").unwrap())
        .collect();
    held.iter()
        .map(|one| one.local_addr().unwrap().port())
        .collect()
}

fn wait_for(what: &str, done: impl Fn() -> bool) -> Result<(), String> {
    let start = Instant::now();
    while !done() {
        if start.elapsed() > PATIENCE {
            return Err(format!("{what}: not there after {} s", PATIENCE.as_secs()));
        }
        std::thread::sleep(Duration::from_millis(200));
    }
    Ok(())
}

#[test]
fn an_array_of_forty_shards_survives_the_loss_of_a_node() {
    let Some(postgres) = server() else { return };
    let sandbox = sandbox();
    let mut cluster = match Cluster::start(sandbox.directory()) {
        Ok(cluster) => cluster,
        Err(reason) => {
            println!("skipped: Slurm: {reason}");
            return;
        }
    };
    // Long enough that one is caught half done.
    let plan = crate::DRIVES.replace("repetitions = 3", "repetitions = 15");
    sandbox.write("drives.toml", &plan);
    let cut = [
        "fleet",
        "plan",
        "drives.toml",
        "--hosts",
        "40",
        "--seed",
        "7",
    ];
    sandbox.ok(&[&cut[..], &["-o", "experiment.toml"]].concat());
    let script = [
        "fleet",
        "manifest",
        "experiment.toml",
        "--slurm",
        "--program",
        PROGRAM,
    ];
    sandbox.ok(&[&script[..], &["-o", "drives.sbatch"]].concat());
    // It carries the experiment with it.
    std::fs::remove_file(sandbox.path("experiment.toml")).unwrap();

    let url = postgres.url("runs");
    let submitted = cluster
        .command("sbatch", &["drives.sbatch"])
        .current_dir(sandbox.directory())
        .env("CRYPTMARK_STORE", &url)
        .env("XDG_DATA_HOME", sandbox.path("nodes"))
        // Where a killed task leaves its copy of the experiment.
        .env("TMPDIR", sandbox.directory())
        .output()
        .unwrap();
    assert!(
        submitted.status.success(),
        "{}",
        String::from_utf8_lossy(&submitted.stderr)
    );
    let stored = || -> u32 {
        // Before the first task there are no tables.
        let there = postgres.sql("runs", "SELECT to_regclass('cryptmark.shards') IS NOT NULL");
        match there.as_str() {
            "t" => postgres
                .sql("runs", "SELECT count(*) FROM cryptmark.shards")
                .parse()
                .unwrap(),
            _ => 0,
        }
    };
    wait_for("ten shards", || stored() >= 10).unwrap();
    // A node whose shard has begun and is not stored.
    let under_way = || {
        let running = cluster.said("squeue", &["-h", "-t", "R", "-o", "%K %N"]);
        running.lines().find_map(|line| {
            let (shard, node) = line.split_once(' ')?;
            let begun = postgres.sql(
                "runs",
                &format!(
                    "SELECT count(*) FROM cryptmark.attempts WHERE shard = {shard} AND shard NOT IN
                     (SELECT shard FROM cryptmark.shards)"
                ),
            );
            (begun == "1").then(|| (shard.to_owned(), node.to_owned()))
        })
    };
    let started = Instant::now();
    let (shard, node) = loop {
        match under_way() {
            Some(found) => break found,
            None => assert!(started.elapsed() < PATIENCE, "no shard is under way"),
        }
    };
    cluster.kill_node(&node);
    let before = stored();
    assert!(before < 40, "all was done before the node was killed");
    wait_for("the rest", || {
        stored() == 40
            && cluster
                .said("squeue", &["-h", "-t", "all", "-o", "%T"])
                .lines()
                .all(|state| state == "COMPLETED")
    })
    .unwrap_or_else(|error| {
        panic!(
            "{error}: {} stored\n{}\n{}\n{}",
            stored(),
            cluster.log_of(&shard, &node),
            cluster.said("squeue", &["-t", "all"]),
            cluster.said("sinfo", &["-N", "-l"])
        )
    });
    let down = cluster.said("sinfo", &["-h", "-N", "-n", &node, "-o", "%T"]);
    assert!(down.starts_with("down"), "{node} is {down}");

    // Once each, nothing left of what the node had begun.
    let count =
        |what: &str| postgres.sql("runs", &format!("SELECT count(*) FROM cryptmark.{what}"));
    assert_eq!(
        (count("runs").as_str(), count("runs WHERE partial").as_str()),
        ("40", "0")
    );
    let attempts: u32 = count("attempts").parse().unwrap();
    assert!(attempts >= 40, "{attempts}");
    println!(
        "node {node} was killed with shard {shard} under way and {before} of 40 stored; \
         40 stored after {attempts} attempts"
    );
    let status = sandbox.ok(&["--store", &url, "fleet", "status", "drives"]);
    assert!(status.contains("40 of 40 shards are stored"), "{status}");

    // The same as one machine makes of it.
    let single = ["run", "drives.toml", "--seed", "7", "--no-progress"];
    let single = on(&sandbox, "single", &single);
    let id = single
        .split("Stored as ")
        .nth(1)
        .unwrap()
        .split(';')
        .next()
        .unwrap();
    on(&sandbox, "single", &["report", id, "-o", "one.csv"]);
    sandbox.ok(&["--store", &url, "report", "drives", "-o", "many.csv"]);
    let rows = |name: &str| crate::rows(&crate::read(&sandbox.path(name)));
    assert!(rows("many.csv") == rows("one.csv"), "the reports differ");
}
