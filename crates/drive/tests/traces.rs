//! Traces as other programs write them, there and back, and lines that are wrong.

extern crate cryptmark_drive as drive;

use drive::trace::{Action, Entry, Fault, Format, Reader, TraceError, Writer};
use proptest::prelude::*;

fn read(text: &str) -> Result<Vec<Entry>, TraceError> {
    Reader::new(text.as_bytes()).collect()
}

fn entry(time: u64, action: Action, offset: u64, bytes: u64) -> Entry {
    Entry {
        time,
        action,
        offset,
        bytes,
    }
}

#[test]
fn as_others_write_them() {
    let fio2 = "fio version 2 iolog\n/dev/sdb add\n/dev/sdb open\n/dev/sdb write 4096 8192\n\
                /dev/sdb wait 1500 0\n/dev/sdb read 0 512\n/dev/sdb trim 8192 4096\n/dev/sdb sync\n/dev/sdb close\n";
    let expected = [
        entry(0, Action::Write, 4096, 8192),
        entry(1_500_000, Action::Read, 0, 512),
        entry(1_500_000, Action::Discard, 8192, 4096),
        entry(1_500_000, Action::Flush, 0, 0),
    ];
    assert_eq!(read(fio2).unwrap(), expected);

    let fio3 = "fio version 3 iolog\n0 f add\n0 f open\n237 f write 0 4096\n100237 f datasync\n100300 f close\n";
    let expected = [
        entry(0, Action::Write, 0, 4096),
        entry(100_000_000, Action::Flush, 0, 0),
    ];
    assert_eq!(read(fio3).unwrap(), expected);

    let disksim = "0.000000 0 3345071 2 1\n # a remark\n1.250000 0 16 8 0\n";
    let expected = [
        entry(0, Action::Read, 3_345_071 * 512, 1024),
        entry(1_250_000, Action::Write, 8192, 4096),
    ];
    assert_eq!(read(disksim).unwrap(), expected);

    // A first time of 0 may be either's.
    let by_printf = disksim.replace("0.000000", "0");
    assert_eq!(read(&by_printf).unwrap(), expected);
    let mqsim = "0 0 3345071 2 1\n1250000 0 16 8 0\n";
    assert_eq!(read(mqsim).unwrap(), expected);

    let msr = "128166372003061629,usr,0,Read,7014609920,24576,41286\n\
               128166372016382155,usr,0,Write,1317441536,8192,1963\n";
    let expected = [
        entry(0, Action::Read, 7_014_609_920, 24_576),
        entry(1_332_052_600, Action::Write, 1_317_441_536, 8192),
    ];
    assert_eq!(read(msr).unwrap(), expected);

    let blkparse = "  8,0    3        1     0.000000000   697  A  WS 223490 + 8 <- (8,1) 223427\n  \
                      8,0    3        2     0.000001829   697  Q  WS 223490 + 8 [kjournald]\n  \
                      8,0    3        3     0.000005000   697  G  WS 223490 + 8 [kjournald]\n  \
                      8,0    3        4     0.000101829   697  Q   D 1024 + 2048 [fstrim]\n  \
                      8,0    3        5     0.000201829   697  Q  FN [jbd2]\n  \
                      8,0    3        6     0.000301829   697  Q   R 8 + 8 [cat]\n\
                    CPU3 (8,0):\n Reads Queued:           1,        4KiB\n";
    let expected = [
        entry(0, Action::Write, 223_490 * 512, 4096),
        entry(100_000, Action::Discard, 524_288, 1_048_576),
        entry(200_000, Action::Flush, 0, 0),
        entry(300_000, Action::Read, 4096, 4096),
    ];
    assert_eq!(read(blkparse).unwrap(), expected);

    // A trace of the requests that reach the drive (blktrace -a issue) has no other event. A trace
    // of all events has each request twice.
    let issued = "  8,0    3        1     0.000000000   697  D  WS 223490 + 8 [kworker]\n  \
                    8,0    3        2     0.000001829   697  C  WS 223490 + 8 [0]\n  \
                    8,0    3        3     0.000101829   697  D   R 8 + 8 [cat]\n";
    let expected = [
        entry(0, Action::Write, 223_490 * 512, 4096),
        entry(101_829, Action::Read, 4096, 4096),
    ];
    assert_eq!(read(issued).unwrap(), expected);
    let both = "  8,0    3        1     0.000000000   697  Q  WS 16 + 8 [cp]\n  \
                  8,0    3        2     0.000001829   697  D  WS 16 + 8 [cp]\n";
    let expected = [entry(0, Action::Write, 8192, 4096)];
    assert_eq!(read(both).unwrap(), expected);
}

/// A device and the one below it have the same requests, and two files the same offsets.
#[test]
fn traces_of_two_devices_are_refused() {
    for (trace, devices) in [
        (
            "253,0 0 1 0.0 7 Q W 0 + 8 [dd]\n8,0 0 1 0.1 7 Q W 0 + 8 [k]\n",
            ["253,0", "8,0"],
        ),
        (
            "9,0 0 1 0.0 7 D W 0 + 8 [md]\n8,16 0 1 0.1 7 D W 0 + 8 [md]\n",
            ["9,0", "8,16"],
        ),
        ("0.5 0 8 8 1\n0.6 1 8 8 1\n", ["0", "1"]),
        ("5 3 8 8 1\n6 4 8 8 1\n", ["3", "4"]),
        (
            "1,usr,0,Read,0,512,1\n2,usr,1,Write,0,512,1\n",
            ["usr,0", "usr,1"],
        ),
        (
            "fio version 2 iolog\n/a read 0 512\n/b read 0 512\n",
            ["/a", "/b"],
        ),
        (
            "fio version 3 iolog\n0 /a read 0 512\n1 /b sync\n",
            ["/a", "/b"],
        ),
    ] {
        let refused = read(trace).unwrap_err();
        let TraceError::Devices { first, second, .. } = &refused else {
            panic!("{refused}");
        };
        assert_eq!([first.as_str(), second.as_str()], devices, "{trace}");
    }
}

/// A terminal shows a command and the names of files before the first event.
#[test]
fn what_a_terminal_shows_is_no_request() {
    let event = "8,0 0 1 0.0 7 Q W 0 + 8 [dd]\n";
    for before in [
        "Input file sda.blktrace.0 added\nInput file sda.blktrace.1 added\n",
        "$ blkparse -i sda\n",
        "root@host:~# blktrace -d /dev/sda -o - | blkparse -i -\nInput file a added\n",
    ] {
        let found = read(&format!("{before}{event}"));
        assert_eq!(
            found.unwrap(),
            [entry(0, Action::Write, 0, 4096)],
            "{before}"
        );
    }
    let systor = "Timestamp,Response,IOType,LUN,Offset,Size\n1455592804.03,0.1,W,0,474,4096\n";
    for other in [systor, &systor[systor.find('\n').unwrap() + 1..]] {
        let refused = read(other);
        assert!(
            matches!(refused, Err(TraceError::NoFormat { line: 1 })),
            "{other}"
        );
    }
}

#[track_caller]
fn fault(text: &str) -> (u64, Fault) {
    match read(text) {
        Err(TraceError::Line { line, fault }) => (line, fault),
        other => panic!("{other:?}"),
    }
}

#[test]
fn wrong_lines_are_named() {
    let number = |name| Fault::Number { name };
    assert_eq!(
        fault("0 0 8 8 1\n\n0 0 8 x 1\n"),
        (3, number("number of sectors"))
    );
    assert_eq!(fault("0 0 8 8 1\n0 0 8 8\n").0, 2);
    assert_eq!(fault("0 0 8 8 z\n"), (1, number("flags")));
    assert_eq!(fault("0 0 8 0 1\n"), (1, Fault::Range));
    assert_eq!(fault("0 0 18014398509481983 8 1\n"), (1, Fault::Range));
    assert_eq!(fault("0 0 36028797018963968 8 1\n"), (1, number("sector")));
    assert_eq!(fault("5 0 8 8 1\n4 0 8 8 1\n"), (2, Fault::Time));
    assert_eq!(fault("5 0 8 8 1\n5.5 0 8 8 1\n"), (2, Fault::Point));
    assert_eq!(fault("-5 0 8 8 1\n"), (1, number("time")));
    assert_eq!(fault("nan 0 8 8 1\n"), (1, number("time")));
    assert_eq!(
        fault("1,h,0,Read,0,512,1\n1,h,0,Erase,0,512,1\n"),
        (2, Fault::Action)
    );
    assert_eq!(fault("1,h,0,Read,0,512,1\n1,h,0\n").0, 2);
    assert_eq!(
        fault("fio version 2 iolog\nf frob 0 1\n"),
        (2, Fault::Action)
    );
    assert_eq!(fault("fio version 2 iolog\nf read 0\n").0, 2);
    assert_eq!(
        fault("fio version 3 iolog\nsoon f read 0 1\n"),
        (2, number("time"))
    );
    let long = format!("fio version 2 iolog\n{}\n", "x".repeat(100_000));
    assert_eq!(fault(&long), (2, Fault::NotText));
    let bytes: &[u8] = b"fio version 2 iolog\n\xff\xfe\n";
    let mut reader = Reader::new(bytes);
    assert!(matches!(
        reader.entry(),
        Err(TraceError::Line { line: 2, .. })
    ));
    assert!(matches!(
        read("hello\n"),
        Err(TraceError::NoFormat { line: 1 })
    ));
    assert!(matches!(read(""), Err(TraceError::Empty)));
    assert!(matches!(
        read("fio version 2 iolog\n"),
        Err(TraceError::Empty)
    ));
}

fn entries() -> impl Strategy<Value = Vec<Entry>> {
    let action = prop::sample::select(vec![
        Action::Read,
        Action::Write,
        Action::Discard,
        Action::Flush,
    ]);
    let one = (0_u64..10_000, action, 0_u64..1 << 40, 1_u64..1 << 20).prop_map(
        |(milliseconds, action, sector, sectors)| match action {
            Action::Flush => entry(milliseconds * 1_000_000, action, 0, 0),
            _ => entry(
                milliseconds * 1_000_000,
                action,
                sector * 512,
                sectors * 512,
            ),
        },
    );
    prop::collection::vec(one, 1..50).prop_map(|mut entries| {
        let mut time = 0;
        for entry in &mut entries {
            entry.time += time;
            time = entry.time;
        }
        let first = entries[0].time;
        for entry in &mut entries {
            entry.time -= first;
        }
        entries
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// Written entries are read again, if the format can express them.
    #[test]
    fn there_and_back(entries in entries()) {
        for word in ["fio", "disksim", "mqsim", "msr", "blkparse"] {
            let format: Format = word.parse().unwrap();
            let mut writer = Writer::new(Vec::new(), format).unwrap();
            let mut written = Vec::new();
            for entry in &entries {
                match writer.write(entry) {
                    Ok(()) => written.push(*entry),
                    Err(error) => {
                        let is_unwritable = matches!(error, TraceError::Line { fault: Fault::Unwritable, .. });
                        prop_assert!(is_unwritable && ["disksim", "mqsim", "msr"].contains(&word));
                    }
                }
            }
            let text = String::from_utf8(writer.finish().unwrap()).unwrap();
            let Some(first) = written.first().map(|entry| entry.time) else { continue };
            for entry in &mut written {
                entry.time -= first;
            }
            prop_assert_eq!(read(&text).unwrap(), written, "{}", text);
        }
    }

    /// Any text is read or refused.
    #[test]
    fn any_text(text in "(fio version [23] iolog\n)?([0-9,. a-zA-Z+#-]{0,40}\n){0,20}") {
        let _ = read(&text);
    }
}
