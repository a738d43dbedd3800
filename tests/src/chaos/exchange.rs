//! Locks on their way from one client to another: each is a file in a directory until one client
//! takes it. A client that is killed meanwhile takes it along, and the lock runs out.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use quorlock_core::{FencingToken, Resumption};

use super::history::Seeker;

/// A client's view of the directory.
#[derive(Debug)]
pub(crate) struct Exchange {
    directory: PathBuf,
    /// The file that this client writes or reads.
    own: PathBuf,
}

/// A lock that its holder has handed over. It has no `Debug`: it contains the token.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct HandedOver {
    /// The holder.
    pub(crate) by: Seeker,
    pub(crate) resource: String,
    pub(crate) resumption: Resumption,
}

impl Exchange {
    /// Opens the directory, which must exist, for the client of this name.
    pub(crate) fn open(directory: &Path, client: &str) -> Self {
        Self { directory: directory.to_owned(), own: directory.join(format!(".{client}")) }
    }

    /// Leaves a lock to the client that takes it first.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub(crate) fn leave(&self, lock: &HandedOver) -> io::Result<()> {
        fs::write(&self.own, lock.to_text())?;
        // From now on others see it, and all of it.
        fs::rename(&self.own, self.directory.join(lock.by.to_string()))
    }

    /// Takes a lock, if there is one. No other client gets the same one.
    ///
    /// # Errors
    /// When the directory or the file cannot be read, or the text is not that of a lock.
    pub(crate) fn take(&self) -> io::Result<Option<HandedOver>> {
        for entry in fs::read_dir(&self.directory)? {
            let entry = entry?;
            if entry.file_name().as_encoded_bytes().starts_with(b".") {
                continue;
            }
            match fs::rename(entry.path(), &self.own) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            }
            let text = fs::read_to_string(&self.own)?;
            fs::remove_file(&self.own)?;
            let lock = HandedOver::from_text(&text);
            return lock.map(Some).ok_or_else(|| io::Error::other("this is no lock that was handed over"));
        }
        Ok(None)
    }
}

impl HandedOver {
    fn to_text(&self) -> String {
        let Self { by, resource, resumption } = self;
        let number = resumption.fencing_token.map_or_else(|| "-".to_owned(), |token| token.get().to_string());
        format!("{by} {resource} {number} {}", resumption.expose())
    }

    fn from_text(text: &str) -> Option<Self> {
        let mut words = text.split(' ');
        let by = words.next()?.parse().ok()?;
        let resource = words.next()?.to_owned();
        let number = match words.next()? {
            "-" => None,
            number => Some(FencingToken::new(number.parse().ok()?)?),
        };
        let resumption = Resumption::from_text(words.next()?, number)?;
        Some(Self { by, resource, resumption })
    }
}

#[cfg(test)]
mod tests {
    use quorlock_core::Token;

    use super::*;

    fn lock(attempt: u64, number: Option<u64>) -> HandedOver {
        let by = Seeker { client: "3.1".to_owned(), attempt };
        let number = number.and_then(FencingToken::new);
        let resumption = Resumption::new(Token::from_bytes([7; Token::BYTES]), number);
        HandedOver { by, resource: "job".to_owned(), resumption }
    }

    #[test]
    fn a_lock_is_taken_once_and_by_any_client() {
        let directory = tempfile::tempdir().unwrap();
        let [first, second] = ["3.1", "4.1"].map(|client| Exchange::open(directory.path(), client));
        let locks = [lock(1, Some(7)), lock(2, None)];
        locks.iter().for_each(|lock| first.leave(lock).unwrap());

        let mut taken = [&second, &first].map(|exchange| exchange.take().unwrap().unwrap());
        taken.sort_by_key(|lock| lock.by.attempt);

        assert!(taken == locks);
        assert!(first.take().unwrap().is_none() && second.take().unwrap().is_none());
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0, "no token is left behind");
    }

    #[test]
    fn a_lock_that_is_still_written_is_not_taken() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join(".4.1"), "3.1#1 jo").unwrap();
        assert!(Exchange::open(directory.path(), "3.1").take().unwrap().is_none());
    }
}
