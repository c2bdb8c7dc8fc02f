//! Outputs that are recognised and not read: the program is named, and the form of its results that
//! is read, or what can be measured here instead.

use super::ImportError;

/// What stands in the output, the program, and what to do.
const KNOWN: &[(&str, &str, &str)] = &[
    (
        "AS SSD Benchmark",
        "AS SSD",
        "Measure the same work here: cryptmark run as-ssd.",
    ),
    (
        "Yet-Another-Bench-Script",
        "YABS",
        "Give the JSON of the fio that it runs (fio's output-format=json).",
    ),
    (
        "Phoronix Test Suite",
        "Phoronix Test Suite",
        "Give the JSON of the fio that it runs (fio's output-format=json).",
    ),
    (
        "StorageClass ",
        "kubestr",
        "Give its JSON (kubestr fio -o json -e FILE), which contains fio's.",
    ),
    (
        "gocryptfs -speed",
        "gocryptfs -speed",
        "Measure it here: cryptmark run file-encryption.",
    ),
    (
        "AES-SIV-512-Go",
        "gocryptfs -speed",
        "Measure it here: cryptmark run file-encryption.",
    ),
    (
        "Doing ",
        "openssl speed",
        "Measure ciphers here: cryptmark run ciphers.",
    ),
    (
        "bytes/sec processed",
        "openssl speed",
        "Measure ciphers here: cryptmark run ciphers.",
    ),
    (
        "1000s of bytes per second processed",
        "openssl speed",
        "Measure ciphers here: cryptmark run ciphers.",
    ),
    (
        "Version  2.00",
        "bonnie++",
        "Measure with fio, and give its JSON (output-format=json).",
    ),
    (
        "------Sequential Create------",
        "bonnie++",
        "Measure with fio, and give its JSON (output-format=json).",
    ),
    (
        "Iozone: Performance Test",
        "iozone",
        "Measure with fio, and give its JSON (output-format=json).",
    ),
    (
        "smartctl",
        "smartctl",
        "It has no speeds. cryptmark drive lifetime takes the drive's data as options.",
    ),
    (
        "Command Line: ",
        "DiskSpd, as text",
        "Run it again with -Rxml, and give that.",
    ),
    (
        "Run status group",
        "fio, as text",
        "Give fio's output as JSON (output-format=json).",
    ),
    (
        "sysbench ",
        "sysbench",
        "Measure with fio, and give its JSON (output-format=json).",
    ),
    (
        "Benchmark 1:",
        "hyperfine, as text",
        "Give the file of its JSON export.",
    ),
];

/// The refusal that names the program, if it is one of these.
pub(super) fn named(text: &str) -> Option<ImportError> {
    let (_, tool, instead) = KNOWN.iter().find(|(sign, ..)| text.contains(sign))?;
    Some(ImportError::Unread { tool, instead })
}
