//! `cryptmark drive trace`: a trace in another program's format.

use crate::cli::Failure;
use crate::cli::whole::{self, Other};
use ::drive::trace::{Format, Reader, TraceError, Writer};
use clap::Args;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Options of `cryptmark drive trace`.
#[derive(Debug, Args)]
pub struct TraceOptions {
    /// A trace of fio (iolog), DiskSim, MSR Cambridge or blkparse
    trace: PathBuf,
    /// The format to write: fio, disksim, msr or blkparse
    #[arg(long, value_name = "FORMAT")]
    format: Format,
    /// Where to; - is standard output
    #[arg(short, long, value_name = "FILE|-", default_value = "-")]
    output: PathBuf,
}

/// Runs the command.
pub fn run(options: &TraceOptions) -> Result<(), Failure> {
    let name = options.trace.display().to_string();
    let input = File::open(&options.trace).map_err(|error| {
        Failure::new(
            2,
            format!("cannot read {name}: {error}"),
            "Give the file of a trace.",
        )
    })?;
    let told = |error: TraceError| Failure::of(2, &error, error.remedy()).within(&name);
    if options.output == Path::new("-") {
        let written = rewrite(input, BufWriter::new(io::stdout().lock()), options.format);
        return match written {
            // Who reads no further has enough.
            Err(TraceError::Io(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            written => written.map(drop).map_err(told),
        };
    }
    let unwritable = |error: io::Error| {
        Failure::new(
            1,
            format!("cannot write {}: {error}", options.output.display()),
            "Check the directory, its permissions and its free space.",
        )
    };
    // The file appears whole or not at all.
    let draft = whole::draft(&options.output).map_err(unwritable)?;
    rewrite(input, BufWriter::new(draft.as_file()), options.format).map_err(told)?;
    whole::publish(draft, &options.output, Other::Goes).map_err(unwritable)
}

fn rewrite<W: Write>(input: File, output: W, format: Format) -> Result<W, TraceError> {
    let mut writer = Writer::new(output, format)?;
    for entry in Reader::new(BufReader::new(input)) {
        writer.write(&entry?)?;
    }
    writer.finish()
}
