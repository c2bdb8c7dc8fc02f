//! [`Writer`]: requests to lines.

use super::parse::SECTOR;
use super::{Action, Entry, Fault, Format, TraceError};
use std::io::Write;

/// Name of the file that fio is to use.
const FIO_FILE: &str = "drive";

/// Writes a trace.
pub struct Writer<W> {
    output: W,
    format: Format,
    line: u64,
    /// Time of the last request, as fio counts.
    last: u64,
}

impl<W: Write> Writer<W> {
    /// Begins a trace.
    ///
    /// # Errors
    /// [`TraceError::Io`].
    pub fn new(mut output: W, format: Format) -> Result<Self, TraceError> {
        if let Format::Fio { version } = format {
            writeln!(output, "fio version {version} iolog")?;
            let time = if version == 3 { "0 " } else { "" };
            writeln!(output, "{time}{FIO_FILE} add\n{time}{FIO_FILE} open")?;
        }
        Ok(Self {
            output,
            format,
            line: 0,
            last: 0,
        })
    }

    /// Writes a request.
    ///
    /// # Errors
    /// [`Fault::Unwritable`] for a discard or flush that the format does not have, and
    /// [`Fault::Range`] for a request that is not made of its sectors. The line is the number of
    /// the request. [`TraceError::Io`].
    pub fn write(&mut self, entry: &Entry) -> Result<(), TraceError> {
        self.line += 1;
        let line = self.line;
        let faulty = |fault| TraceError::Line { line, fault };
        let Entry {
            time,
            action,
            offset,
            bytes,
        } = *entry;
        let sectors = || match (offset | bytes).is_multiple_of(SECTOR) {
            true => Ok((offset / SECTOR, bytes / SECTOR)),
            false => Err(faulty(Fault::Range)),
        };
        match self.format {
            Format::Fio { version } => {
                if version == 3 {
                    write!(self.output, "{} ", time / 1000)?;
                    self.last = time / 1000;
                }
                let word = match action {
                    Action::Read => "read",
                    Action::Write => "write",
                    Action::Discard => "trim",
                    Action::Flush => "sync",
                };
                writeln!(self.output, "{FIO_FILE} {word} {offset} {bytes}")?;
            }
            Format::DiskSim | Format::MqSim => {
                let flags = match action {
                    Action::Read => 1,
                    Action::Write => 0,
                    Action::Discard | Action::Flush => return Err(faulty(Fault::Unwritable)),
                };
                let (sector, sectors) = sectors()?;
                match self.format {
                    Format::MqSim => write!(self.output, "{time}")?,
                    _ => write!(self.output, "{:.6}", time as f64 / 1e6)?,
                }
                writeln!(self.output, " 0 {sector} {sectors} {flags}")?;
            }
            Format::Msr => {
                let word = match action {
                    Action::Read => "Read",
                    Action::Write => "Write",
                    Action::Discard | Action::Flush => return Err(faulty(Fault::Unwritable)),
                };
                writeln!(
                    self.output,
                    "{},drive,0,{word},{offset},{bytes},0",
                    time / 100
                )?;
            }
            Format::Blkparse => {
                let (seconds, rest) = (time / 1_000_000_000, time % 1_000_000_000);
                let begin = format!("  8,0    0 {line:>8} {seconds:>5}.{rest:09}     0  Q");
                if action == Action::Flush {
                    writeln!(self.output, "{begin}  FN [cryptmark]")?;
                } else {
                    let word = match action {
                        Action::Read => 'R',
                        Action::Write => 'W',
                        Action::Discard | Action::Flush => 'D',
                    };
                    let (sector, sectors) = sectors()?;
                    writeln!(
                        self.output,
                        "{begin}   {word} {sector} + {sectors} [cryptmark]"
                    )?;
                }
            }
        }
        Ok(())
    }

    /// Ends the trace, and gives back what it was written to.
    ///
    /// # Errors
    /// [`TraceError::Io`].
    pub fn finish(mut self) -> Result<W, TraceError> {
        if let Format::Fio { version } = self.format {
            // Times never go back.
            let time = match version {
                3 => format!("{} ", self.last),
                _ => String::new(),
            };
            writeln!(self.output, "{time}{FIO_FILE} close")?;
        }
        self.output.flush()?;
        Ok(self.output)
    }
}
