//! Errors of the operating system.

use std::fmt;
use std::io;

/// An error of the operating system, without a text of its own that may contain a secret.
///
/// It displays as the system's text for its code, such as `Too many open files (os error 24)`, or
/// without a code as its kind.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct IoFault {
    kind: io::ErrorKind,
    code: Option<i32>,
}

impl IoFault {
    /// Creates an error of this kind, without a code.
    pub const fn new(kind: io::ErrorKind) -> Self {
        Self { kind, code: None }
    }

    /// Returns its kind.
    pub fn kind(self) -> io::ErrorKind {
        self.kind
    }

    /// Returns the system's code, such as `errno`; `None` for an error of a connector that is not
    /// the system's.
    pub fn code(self) -> Option<i32> {
        self.code
    }
}

impl From<&io::Error> for IoFault {
    fn from(error: &io::Error) -> Self {
        Self { kind: error.kind(), code: error.raw_os_error() }
    }
}

impl fmt::Display for IoFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.code {
            Some(code) => write!(f, "{}", io::Error::from_raw_os_error(code)),
            None => write!(f, "{}", self.kind),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_is_that_of_the_system() {
        for (error, code) in [
            (io::Error::from_raw_os_error(24), Some(24)),
            (io::Error::from(io::ErrorKind::TimedOut), None),
            (io::Error::other("hunter2"), None),
        ] {
            let fault = IoFault::from(&error);
            assert_eq!((fault.code(), fault.kind()), (code, error.kind()));
            assert!(!fault.to_string().contains("hunter2"));
        }
    }
}
