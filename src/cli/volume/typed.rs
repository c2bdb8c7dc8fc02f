//! Secrets that a person or a pipe hands over: read by descriptor into the pages of a
//! [`Key`], past every buffer that would keep them.

use crate::cli::{Failure, stop_on_signal};
use cipher::Key;
use std::fs::File;
use std::io::{self, Read};

/// Standard input without a buffer: what is not read stays in the pipe.
pub fn standard_input() -> io::Result<File> {
    #[cfg(unix)]
    {
        use std::os::fd::AsFd;
        Ok(io::stdin().as_fd().try_clone_to_owned()?.into())
    }
    #[cfg(windows)]
    {
        use std::os::windows::io::AsHandle;
        Ok(io::stdin().as_handle().try_clone_to_owned()?.into())
    }
}

/// The first line, without its newline, or as much of it as `most` and one byte.
pub fn line(mut from: impl Read, most: usize) -> io::Result<Key> {
    Key::read(most + 1, |room| {
        let mut length = 0;
        // Byte by byte, because the bytes behind the line may be for another program.
        while length < room.len() {
            match from.read(&mut room[length..=length])? {
                0 => break,
                _ if room[length] == b'\n' => {
                    // Editors of Windows end a line with two bytes.
                    if cfg!(windows) && length > 0 && room[length - 1] == b'\r' {
                        length -= 1;
                    }
                    break;
                }
                _ => length += 1,
            }
        }
        Ok(length)
    })
}

/// Asks for a line on the terminal, which does not show it.
pub fn prompt(question: &str, most: usize) -> Result<Key, Failure> {
    // Ctrl-C then interrupts the reading, after which the terminal shows again
    // what is typed, and does not end the program before that.
    stop_on_signal()?;
    hidden(question, most).map_err(|error| match error.kind() {
        io::ErrorKind::Interrupted => Failure::new(130, "interrupted", "Nothing was changed."),
        _ => Failure::new(
            1,
            format!("cannot read the passphrase: {error}"),
            "Give it with --passphrase-file or --key-file.",
        ),
    })
}

#[cfg(target_os = "linux")]
fn hidden(question: &str, most: usize) -> io::Result<Key> {
    use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
    use std::io::Write;

    /// Shows again what is typed when it goes.
    struct Hidden<'a>(&'a File, Termios);

    impl Drop for Hidden<'_> {
        fn drop(&mut self) {
            // A terminal that is gone shows nothing.
            let _ = tcsetattr(self.0, OptionalActions::Now, &self.1);
        }
    }

    let terminal = File::options().read(true).write(true).open("/dev/tty")?;
    (&terminal).write_all(question.as_bytes())?;
    let shown = Hidden(&terminal, tcgetattr(&terminal)?);
    let mut modes = shown.1.clone();
    modes.local_modes.remove(LocalModes::ECHO);
    modes.local_modes.insert(LocalModes::ECHONL);
    tcsetattr(&terminal, OptionalActions::Now, &modes)?;
    line(&terminal, most)
}

#[cfg(not(target_os = "linux"))]
fn hidden(question: &str, most: usize) -> io::Result<Key> {
    let typed = rpassword::prompt_password(question)?;
    let key = Key::new(typed.into_bytes());
    // One byte more says that it is too long, as of any other line.
    Ok(match key.len() > most {
        true => Key::from_slice(&key.as_bytes()[..=most]),
        false => key,
    })
}
