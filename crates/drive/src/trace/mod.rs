//! Traces: the requests of hosts to their drives, read and written line by line.
//!
//! Five text formats are known. Information in a line that [`Entry`] does not hold is ignored.

mod format;
mod parse;
mod render;

pub use format::Format;
pub use render::Writer;

use std::io::BufRead;
use thiserror::Error;

/// The longest line of a trace, bytes. A file with a longer line isn't a trace.
const LONGEST_LINE: u64 = 64 << 10;

/// The operation that a host asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Bytes from the drive.
    Read,
    /// Bytes to the drive.
    Write,
    /// A range that holds nothing any more.
    Discard,
    /// All earlier writes become durable.
    Flush,
}

/// A line of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Since the first line, nanoseconds.
    pub time: u64,
    /// The operation.
    pub action: Action,
    /// First byte; 0 for a flush.
    pub offset: u64,
    /// Length in bytes; 0 for a flush.
    pub bytes: u64,
}

/// Why a trace cannot be read or written.
#[derive(Debug, Error)]
pub enum TraceError {
    /// A line that is not as the format has it.
    #[error("line {line}: {fault}")]
    Line {
        /// From 1.
        line: u64,
        /// The fault.
        fault: Fault,
    },
    /// The first line is of no format that is known.
    #[error("line {line} matches none of the supported formats: {}", Format::KNOWN)]
    NoFormat {
        /// From 1.
        line: u64,
    },
    /// Requests of two devices, which would count as those of one drive.
    #[error("line {line} has a request of {second}, and those before it are of {first}")]
    Devices {
        /// From 1.
        line: u64,
        /// The device, or file, of the first request.
        first: String,
        /// The other one.
        second: String,
    },
    /// There is nothing in it.
    #[error("the trace has no requests")]
    Empty,
    /// The file failed.
    #[error("the trace cannot be read or written")]
    Io(#[from] std::io::Error),
}

/// The faults of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Fault {
    /// Too few words.
    #[error("the line has {found} words instead of {expected}")]
    Words {
        /// At least.
        expected: usize,
        /// The number of words in the line.
        found: usize,
    },
    /// A word that isn't a number, or is too large a number.
    #[error("the {name} is not a valid number")]
    Number {
        /// The meaning of the word, such as `time`.
        name: &'static str,
    },
    /// An action that is not known.
    #[error("the action is not known")]
    Action,
    /// A request that ends beyond 2⁶³ bytes, or has no length.
    #[error("the request has no length, or ends beyond the largest possible drive")]
    Range,
    /// A time before the first line's.
    #[error("the time is before that of the first request")]
    Time,
    /// A decimal point among times that are whole nanoseconds until here.
    #[error(
        "the time has a decimal point, but earlier times have none: whole numbers mean nanoseconds \
         (MQSim), and a point means milliseconds (DiskSim)"
    )]
    Point,
    /// Longer than 64 KiB, or not text.
    #[error("the line is too long, or not text")]
    NotText,
    /// The format has no way to write this request.
    #[error("the format has no such action")]
    Unwritable,
}

impl TraceError {
    /// The remedy, as one sentence.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Line {
                fault: Fault::Point,
                ..
            } => "Write every time with a decimal point if they are milliseconds.",
            Self::Line { .. } => "Correct the line, or remove it.",
            Self::NoFormat { .. } => {
                "Give a trace of fio (iolog), DiskSim, MQSim, MSR Cambridge or blkparse."
            }
            Self::Devices { .. } => {
                "Keep the lines of one of them: of a device and the one below it, each request is in the trace twice."
            }
            Self::Empty => "Give a trace with reads, writes or discards in it.",
            Self::Io(_) => "Check the file, its permissions and the free space.",
        }
    }
}

/// Reads a trace line by line.
pub struct Reader<R> {
    input: R,
    format: Option<Format>,
    line: u64,
    text: Vec<u8>,
    state: parse::State,
    /// Of the first request.
    device: Option<String>,
}

impl<R: BufRead> Reader<R> {
    /// Of whatever format the first line has.
    pub fn new(input: R) -> Self {
        Self {
            input,
            format: None,
            line: 0,
            text: Vec::new(),
            state: parse::State::default(),
            device: None,
        }
    }

    /// The format, once a line was read.
    pub fn format(&self) -> Option<Format> {
        self.format
    }

    /// The next request; `None` at the end.
    ///
    /// # Errors
    /// [`TraceError`].
    pub fn entry(&mut self) -> Result<Option<Entry>, TraceError> {
        loop {
            self.text.clear();
            let mut limited = std::io::Read::take(&mut self.input, LONGEST_LINE + 1);
            if limited.read_until(b'\n', &mut self.text)? == 0 {
                return match self.device {
                    Some(_) => Ok(None),
                    None => Err(TraceError::Empty),
                };
            }
            self.line += 1;
            let line = self.line;
            let faulty = |fault| TraceError::Line { line, fault };
            if self.text.len() as u64 > LONGEST_LINE {
                return Err(faulty(Fault::NotText));
            }
            let text = std::str::from_utf8(&self.text).map_err(|_| faulty(Fault::NotText))?;
            let text = text.trim();
            if text.is_empty() || text.starts_with('#') {
                continue;
            }
            let format = match &mut self.format {
                Some(format) => format,
                unknown => {
                    let format = Format::detect(text).ok_or(TraceError::NoFormat { line })?;
                    unknown.insert(format)
                }
            };
            if let Some((entry, device)) = self.state.parse(format, text).map_err(faulty)? {
                let first = self.device.get_or_insert_with(|| device.to_owned());
                if first != device {
                    return Err(TraceError::Devices {
                        line,
                        first: first.clone(),
                        second: device.to_owned(),
                    });
                }
                return Ok(Some(entry));
            }
        }
    }
}

impl<R: BufRead> Iterator for Reader<R> {
    type Item = Result<Entry, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.entry().transpose()
    }
}
