//! The files that a URL names, read again when they have changed.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use quorlock_core::TlsOptions;
use quorlock_host::read_file;
use rustls::ClientConfig;

use crate::builder::{Settings, certificates, identity};
use crate::error::{Pem, TlsError};

/// What was read from some files, and their state at that time.
pub(crate) struct Files {
    config: Arc<ClientConfig>,
    stamps: Vec<Stamp>,
    /// Whether the files have changed, and could not be used when they were read last.
    are_outdated: bool,
}

/// The longest file that is read. All issuers that a system trusts take less than half of it.
const LONGEST: usize = 1024 * 1024;

/// How long to wait for a pipe whose configuration is not known yet: the default of
/// `request_timeout`.
const PATIENCE: Duration = Duration::from_millis(200);

/// The state of a file without its contents. Kubernetes changes a link to another folder, which
/// changes length or time too. A pipe always has the same state: its contents come only once.
#[derive(PartialEq, Eq)]
struct Stamp {
    modified: Option<SystemTime>,
    bytes: u64,
}

impl Files {
    pub(crate) fn read(options: &TlsOptions, settings: &Settings) -> Result<Self, TlsError> {
        // The stamps are taken before the files are read, so that a change in between is noticed.
        let stamps = stamps(options);
        let within = settings.patience.unwrap_or(PATIENCE);
        let roots = options
            .root_file()
            .map(|file| certificates(&contents(file, Pem::Roots, within)?, Pem::Roots, Some(file)));
        let own = options.client_files().map(|(certificate, key)| {
            let chain = contents(certificate, Pem::Certificate, within)?;
            identity(&chain, &contents(key, Pem::Key, within)?, Some((certificate, key)))
        });
        let config = settings.client_config(roots.transpose()?, own.transpose()?)?;
        Ok(Self { config, stamps, are_outdated: false })
    }

    /// What was read, and whether it is outdated.
    pub(crate) fn config(&self) -> (Arc<ClientConfig>, bool) {
        (Arc::clone(&self.config), self.are_outdated)
    }

    /// Reads the files again if one has changed. The earlier contents stay in use while the new
    /// ones cannot be used, because files may be written one after the other.
    pub(crate) fn refresh(&mut self, options: &TlsOptions, settings: &Settings) {
        self.are_outdated = false;
        if stamps(options) != self.stamps {
            match Self::read(options, settings) {
                Ok(read) => *self = read,
                Err(_) => self.are_outdated = true,
            }
        }
    }
}

fn stamps(options: &TlsOptions) -> Vec<Stamp> {
    let client = options.client_files().into_iter().flat_map(|(certificate, key)| [certificate, key]);
    let stamp = |file: &Path| match fs::metadata(file) {
        Ok(metadata) if metadata.is_file() => {
            Stamp { modified: metadata.modified().ok(), bytes: metadata.len() }
        }
        _ => Stamp { modified: None, bytes: 0 },
    };
    options.root_file().into_iter().chain(client).map(stamp).collect()
}

fn contents(file: &Path, what: Pem, within: Duration) -> Result<Vec<u8>, TlsError> {
    let unreadable = |error| TlsError::Unreadable { what, file: PathBuf::from(file), error };
    read_file(file, LONGEST, within).map_err(unreadable)
}

#[cfg(all(test, unix))]
mod tests {
    use std::process::Command;
    use std::thread;

    use super::*;

    fn error(options: &TlsOptions) -> String {
        let mut settings = Settings::default();
        settings.patience = Some(Duration::from_millis(50));
        Files::read(options, &settings).err().expect("they cannot be read").to_string()
    }

    fn pipe(folder: &tempfile::TempDir) -> PathBuf {
        let pipe = folder.path().join("pipe");
        assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo is there").success());
        pipe
    }

    #[test]
    fn a_device_or_a_file_without_end_is_refused_for_each_of_the_three() {
        let folder = tempfile::tempdir().unwrap();
        let long = folder.path().join("long");
        fs::write(&long, vec![b' '; LONGEST + 1]).unwrap();
        let too_long = format!("{} cannot be read for a ", long.display());
        for (file, begin, end) in [
            (&*long, &*too_long, "it is longer than 1048576 bytes"),
            (
                Path::new("/dev/zero"),
                "/dev/zero cannot be read for a ",
                "it is neither a regular file nor a pipe",
            ),
        ] {
            for options in [
                TlsOptions::default().with_root_file(file),
                TlsOptions::default().with_client_files(file, "none"),
            ] {
                let said = error(&options);
                assert!(said.starts_with(begin) && said.ends_with(end), "{said}");
            }
        }
    }

    #[test]
    fn a_pipe_is_read_once_and_is_not_waited_for_without_end() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = pipe(&folder);
        let options = TlsOptions::default().with_root_file(&pipe);
        let said = error(&options);
        let end = "nothing was written to this pipe, or it was not closed, within 50ms";
        assert!(said.ends_with(end), "{said}");
        let before = stamps(&options);
        let to = pipe.clone();
        let writer = thread::spawn(move || fs::write(to, "no certificate").unwrap());
        let mut settings = Settings::default();
        settings.patience = Some(Duration::from_secs(60));
        let said = Files::read(&options, &settings).err().unwrap().to_string();
        assert_eq!(
            said,
            format!("{} has no certificate of an issuer (-----BEGIN CERTIFICATE-----)", pipe.display())
        );
        writer.join().unwrap();
        assert!(before == stamps(&options), "it counts as unchanged");
    }
}
