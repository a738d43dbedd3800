//! What an attempt requests: resources, each written or read, or a permit of a semaphore.

use std::fmt;
use std::str::FromStr;

/// One resource or permit that an attempt requests.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Part {
    /// Its name, without spaces, commas and equals signs.
    pub resource: String,
    /// How it is requested.
    pub how: How,
}

/// How a resource is requested.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum How {
    /// Exclusively.
    Write,
    /// Together with other readers.
    Read,
    /// By one permit of the semaphore with its name.
    Permit {
        /// How many there are.
        of: u32,
    },
}

/// Everything that an attempt requests.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Sought(pub Vec<Part>);

impl Sought {
    /// A request for one resource.
    pub fn one(resource: &str, how: How) -> Self {
        Self(vec![Part { resource: resource.to_owned(), how }])
    }

    /// The kind of lock, for figures.
    pub fn kind(&self) -> &'static str {
        let reads = self.0.iter().filter(|part| part.how == How::Read).count();
        match (&*self.0, reads) {
            ([Part { how: How::Permit { .. }, .. }], _) => "permits",
            ([_], 0) => "exclusive",
            (_, 0) => "batches",
            (parts, reads) if reads == parts.len() => "readers",
            _ => "mixed batches",
        }
    }

    /// The names of the held resources, and whether each is only read. Each permit has its own
    /// name.
    pub fn names(&self, permit: Option<u64>) -> impl Iterator<Item = (String, bool)> {
        self.0.iter().filter_map(move |Part { resource, how }| match how {
            How::Write => Some((resource.clone(), false)),
            How::Read => Some((resource.clone(), true)),
            How::Permit { .. } => Some((format!("{resource}.{}", permit?), false)),
        })
    }

    /// The number of permits of the semaphore, if it is a permit.
    pub fn permits(&self) -> Option<u32> {
        self.0.iter().find_map(|part| match part.how {
            How::Permit { of } => Some(of),
            How::Write | How::Read => None,
        })
    }
}

impl fmt::Display for Sought {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, Part { resource, how }) in self.0.iter().enumerate() {
            let comma = if place == 0 { "" } else { "," };
            match how {
                How::Write => write!(f, "{comma}{resource}")?,
                How::Read => write!(f, "{comma}{resource}=read")?,
                How::Permit { of } => write!(f, "{comma}{resource}={of}")?,
            }
        }
        Ok(())
    }
}

impl FromStr for Sought {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let part = |part: &str| {
            let (resource, how) = part.split_once('=').unwrap_or((part, "write"));
            let how = match how {
                "write" => How::Write,
                "read" => How::Read,
                of => How::Permit { of: of.parse().map_err(|_| format!("nothing is sought so: {part}"))? },
            };
            Ok(Part { resource: resource.to_owned(), how })
        };
        text.split(',').map(part).collect::<Result<_, _>>().map(Self)
    }
}
