//! Files with settings: certificates, keys and passwords.

use std::fs::{self, File, FileType};
use std::io::{self, ErrorKind, Read};
use std::path::Path;
use std::time::{Duration, Instant};

/// How long to sleep until a pipe is looked at again. If it is longer, a pipe that is written late
/// is read later; if it is shorter, waiting for it takes more time of the processor.
const LOOKS_AGAIN: Duration = Duration::from_millis(2);

/// Reads a regular file or a pipe of at most `most` bytes.
///
/// What a pipe contains must have been written, and its writers must have closed it, before
/// `within` has passed; a signal does not end this wait. A regular file is not waited for.
///
/// # Errors
/// It cannot be read ([`ErrorKind::TimedOut`]: the pipe took too long), is longer
/// ([`ErrorKind::FileTooLarge`]), or is neither a file nor a pipe ([`ErrorKind::InvalidInput`]),
/// such as a device, which may have no end.
pub fn read_file(file: &Path, most: usize, within: Duration) -> io::Result<Vec<u8>> {
    // Before opening, since that alone has effects on some devices. A folder opens without an
    // error.
    check_kind(fs::metadata(file)?.file_type())?;
    let mut source = open(file)?;
    let kind = source.metadata()?.file_type();
    check_kind(kind)?;
    let mut bytes = Vec::new();
    if kind.is_file() {
        let longest = u64::try_from(most).unwrap_or(u64::MAX).saturating_add(1);
        source.take(longest).read_to_end(&mut bytes)?;
    } else {
        read_pipe(&mut source, &mut bytes, most, within)?;
    }
    if bytes.len() > most {
        let text = format!("it is longer than {most} bytes");
        return Err(io::Error::new(ErrorKind::FileTooLarge, text));
    }
    Ok(bytes)
}

/// Reads to the end, or one byte more than the limit.
fn read_pipe(pipe: &mut File, bytes: &mut Vec<u8>, most: usize, within: Duration) -> io::Result<()> {
    let started = Instant::now();
    let mut part = [0; 4096];
    while bytes.len() <= most {
        match pipe.read(&mut part) {
            // Without a byte, the first writer may not have opened it yet.
            Ok(0) if !bytes.is_empty() => return Ok(()),
            Ok(0) => {}
            Ok(length) => {
                bytes.extend_from_slice(part.get(..length).unwrap_or_default());
                continue;
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        }
        if started.elapsed() >= within {
            let text = format!("nothing was written to this pipe, or it was not closed, within {within:?}");
            return Err(io::Error::new(ErrorKind::TimedOut, text));
        }
        std::thread::sleep(LOOKS_AGAIN);
    }
    Ok(())
}

fn check_kind(kind: FileType) -> io::Result<()> {
    if kind.is_file() || is_pipe(kind) {
        Ok(())
    } else {
        Err(io::Error::new(ErrorKind::InvalidInput, "it is neither a regular file nor a pipe"))
    }
}

#[cfg(unix)]
fn is_pipe(kind: FileType) -> bool {
    std::os::unix::fs::FileTypeExt::is_fifo(&kind)
}

#[cfg(not(unix))]
fn is_pipe(_: FileType) -> bool {
    false
}

/// Opens the file without waiting for a pipe's writer.
#[cfg(unix)]
fn open(file: &Path) -> io::Result<File> {
    use rustix::fs::{Mode, OFlags};

    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    Ok(rustix::fs::open(file, flags, Mode::empty())?.into())
}

#[cfg(not(unix))]
fn open(file: &Path) -> io::Result<File> {
    File::open(file)
}

#[cfg(all(test, unix))]
mod tests {
    use std::io::Write;
    use std::path::PathBuf;
    use std::process::Command;
    use std::thread;

    use tempfile::{TempDir, tempdir};

    use super::*;

    const SOON: Duration = Duration::from_millis(50);

    fn pipe_in(folder: &TempDir) -> PathBuf {
        let pipe = folder.path().join("pipe");
        assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo is there").success());
        pipe
    }

    fn kind_of(read: io::Result<Vec<u8>>) -> ErrorKind {
        read.expect_err("it cannot be read").kind()
    }

    #[test]
    fn a_file_is_read_up_to_its_limit() {
        let folder = tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, b"four").unwrap();
        assert_eq!(read_file(&file, 4, SOON).unwrap(), b"four");
        assert_eq!(kind_of(read_file(&file, 3, SOON)), ErrorKind::FileTooLarge);
        assert_eq!(kind_of(read_file(&folder.path().join("none"), 4, SOON)), ErrorKind::NotFound);
    }

    #[test]
    fn folders_and_devices_are_refused() {
        for other in ["/dev/zero", "/dev/null", "/"] {
            assert_eq!(kind_of(read_file(Path::new(other), 4, SOON)), ErrorKind::InvalidInput, "{other}");
        }
    }

    #[test]
    fn a_pipe_is_read_until_its_writer_has_closed_it() {
        let folder = tempdir().unwrap();
        let pipe = pipe_in(&folder);
        let to = pipe.clone();
        let writer = thread::spawn(move || {
            let mut pipe = File::options().write(true).open(to).unwrap();
            for part in 0_u8..3 {
                pipe.write_all(&[part; 3000]).unwrap();
                thread::sleep(LOOKS_AGAIN * 3);
            }
        });
        let read = read_file(&pipe, 9000, Duration::from_secs(60)).unwrap();
        writer.join().unwrap();
        assert_eq!(read, [[0; 3000], [1; 3000], [2; 3000]].concat());
    }

    #[test]
    fn a_pipe_without_a_writer_or_an_end_is_given_up() {
        let folder = tempdir().unwrap();
        let pipe = pipe_in(&folder);
        assert_eq!(kind_of(read_file(&pipe, 4, SOON)), ErrorKind::TimedOut);
        // Opened for both, so that the test itself does not wait for a reader.
        let mut writer = File::options().read(true).write(true).open(&pipe).unwrap();
        writer.write_all(b"four").unwrap();
        assert_eq!(kind_of(read_file(&pipe, 4, SOON)), ErrorKind::TimedOut);
        writer.write_all(&[b'x'; 5]).unwrap();
        assert_eq!(kind_of(read_file(&pipe, 4, SOON)), ErrorKind::FileTooLarge);
    }
}
