//! `cryptmark drive trace`: a trace in another program's format.

use crate::cli::whole::{self, Kind, Target};
use crate::cli::{Failure, standard};
use ::drive::trace::{Format, Reader, TraceError, Writer};
use clap::Args;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Options of `cryptmark drive trace`.
#[derive(Debug, Args)]
pub struct TraceOptions {
    /// A trace of fio (iolog), DiskSim, MQSim, MSR Cambridge or blkparse
    trace: PathBuf,
    /// The format to write: fio, disksim, mqsim, msr or blkparse
    #[arg(long, value_name = "FORMAT")]
    format: Format,
    /// The file to write; - is standard output
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
        standard::check_output()?;
        return stream(input, io::stdout().lock(), options.format).map_err(told);
    }
    let unwritable = |error: io::Error| whole::unwritable(&options.output, &error);
    let target = Target::of(&options.output, Kind::Other, false)?;
    if let Some(pipe) = target.stream().map_err(unwritable)? {
        return stream(input, pipe, options.format).map_err(told);
    }
    // The file appears whole or not at all.
    let draft = target.draft(0o600).map_err(unwritable)?;
    rewrite(input, BufWriter::new(draft.file()), options.format).map_err(told)?;
    target.publish(draft).map_err(unwritable)
}

/// Converts a trace to `format` and writes it to `output`. A reader that closes the pipe early is
/// not an error.
fn stream(input: File, output: impl Write, format: Format) -> Result<(), TraceError> {
    match rewrite(input, BufWriter::new(output), format) {
        // The reader closed the pipe, and needs no more.
        Err(TraceError::Io(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written.map(drop),
    }
}

fn rewrite<W: Write>(input: File, output: W, format: Format) -> Result<W, TraceError> {
    let mut writer = Writer::new(output, format)?;
    let mut reader = Reader::new(BufReader::new(input));
    while let Some(entry) = reader.entry()? {
        writer.write(&entry)?;
    }
    if reader.format() == Some(Format::MqSim) {
        eprintln!(
            "the times are whole numbers, so they are read as MQSim's nanoseconds; \
             DiskSim's milliseconds have a decimal point"
        );
    }
    writer.finish()
}
