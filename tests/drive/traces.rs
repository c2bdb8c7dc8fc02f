//! Traces, played and written anew.

use crate::{json, run_drive};

/// A trace of another program, played: 3 pages written, one discarded.
#[test]
fn a_trace_is_played() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("trace");
    std::fs::write(
        &file,
        "fio version 2 iolog\nf write 0 12288\nf trim 0 4096\nf read 0 512\n",
    )
    .unwrap();
    let path = file.to_str().unwrap();
    let run = json(&[
        "run",
        "--workload",
        path,
        "--blocks",
        "64",
        "--over-provisioning",
        "20%",
        "--json",
        "-",
    ]);
    let count = |name: &str| run[name].as_u64().unwrap();
    assert_eq!((count("host_pages"), count("discarded_pages")), (3, 1));
    assert_eq!(count("pages_in_use"), count("logical_pages") - 1);

    let refused = |text: &str, more: &[&str], says: &str| {
        std::fs::write(&file, text).unwrap();
        let output = run_drive(&[&["run", "--workload", path], more].concat());
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{errors}");
        assert!(errors.contains(says), "{errors}");
    };
    refused("0 0 8 8 1\n0 0 8 x 1\n", &[], "trace: line 2");
    refused("hello\n", &[], "none of the supported formats");
    refused("", &[], "has no requests");
    refused("0 0 99999999 8 0\n", &[], "request 1 of the trace ends at");
    refused("0 0 8 8 0\n", &["--hot", "20/80"], "--hot");
    refused("0 0 8 8 0\n", &["--page-size", "0"], "--page-size");
}

#[test]
fn a_trace_is_written_in_another_format() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    std::fs::write(file("trace"), "0 0 8 8 1\n1.5 0 16 8 0\n").unwrap();
    let output = run_drive(&["trace", &file("trace"), "--format", "fio"]);
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    assert!(text.starts_with("fio version 3 iolog\n"), "{text}");
    assert!(
        text.ends_with("0 drive read 4096 4096\n1500 drive write 8192 4096\n1500 drive close\n"),
        "{text}"
    );
    let written = run_drive(&[
        "trace",
        &file("trace"),
        "--format",
        "msr",
        "-o",
        &file("other"),
    ]);
    assert!(written.status.success());
    let text = std::fs::read_to_string(file("other")).unwrap();
    assert_eq!(
        text,
        "0,drive,0,Read,4096,4096,0\n15000,drive,0,Write,8192,4096,0\n"
    );
    // Whole numbers are MQSim's nanoseconds, and a user whose they are not is told so.
    assert!(output.stderr.is_empty());
    std::fs::write(file("trace"), "0 0 8 8 1\n1500000 0 16 8 0\n").unwrap();
    let other = run_drive(&["trace", &file("trace"), "--format", "fio"]);
    assert_eq!(other.stdout, output.stdout);
    let told = String::from_utf8(other.stderr).unwrap();
    assert!(told.contains("MQSim's nanoseconds"), "{told}");
    // A discard is nothing that MSR's format has: no half-written file stays behind.
    std::fs::write(file("trace"), "fio version 2 iolog\nf trim 0 4096\n").unwrap();
    let refused = run_drive(&[
        "trace",
        &file("trace"),
        "--format",
        "msr",
        "-o",
        &file("third"),
    ]);
    assert_eq!(refused.status.code(), Some(2));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
}
