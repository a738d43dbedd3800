//! Masters whose server can change: how it is discovered, and what its URL says about failovers.

use std::borrow::Cow;

use super::{Address, Endpoint, EndpointError, Login};

/// How the server that is currently the master is discovered.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Discovery {
    /// Sentinels are asked for the primary of a group that they watch (Redis documentation,
    /// "High availability with Redis Sentinel").
    Sentinel {
        /// The group's name, as in `sentinel monitor NAME`.
        group: String,
        /// The login for the sentinels; `None` if they require no password.
        login: Option<Login>,
    },
    /// The nodes of a Redis Cluster say which of them owns the slot of a tag (Redis documentation,
    /// "Redis cluster specification").
    Cluster {
        /// The tag. All keys of the master begin with it, in braces.
        tag: String,
    },
}

/// How a master's changing server is discovered.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct Route {
    discovery: Discovery,
    /// The addresses to ask besides the first one.
    others: Vec<Address>,
}

/// What a failover of a master may do to its locks, unless `replicas=` prevents it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Failover {
    /// The application accepts that a failover loses locks, so that two clients may hold one lock
    /// (`failover=may-lose-locks`). Fencing is not available: a failover loses counters, too.
    MayLoseLocks,
    /// The service acknowledges a write only once it is in a log that every later primary has read
    /// (`failover=durable`). Quorlock relies on the service for that and cannot check it.
    Durable,
}

impl Endpoint {
    /// The maximum number of addresses to ask for a master's address: those of the URL and learned
    /// ones together.
    pub(crate) const MAX_PLACES: usize = 32;

    /// Creates an endpoint for the primary of a group that these sentinels watch. `sentinels` are
    /// their hosts and ports.
    ///
    /// Its user, password, database, TLS options and replicas are set as for any other master.
    ///
    /// # Errors
    ///
    /// [`EndpointError::MissingGroup`], [`EndpointError::TooManyPlaces`], and those of
    /// [`Endpoint::tcp`].
    pub fn sentinel(group: &str, sentinels: &[(&str, u16)]) -> Result<Self, EndpointError> {
        if group.is_empty() || group.chars().any(char::is_control) {
            return Err(EndpointError::MissingGroup);
        }
        Self::found_by(Discovery::Sentinel { group: group.to_owned(), login: None }, sentinels)
    }

    /// Creates an endpoint for the owner of a tag's slot in a Redis Cluster. `nodes` are hosts and
    /// ports of its nodes; some of the nodes are enough.
    ///
    /// # Errors
    ///
    /// [`EndpointError::BadTag`] unless the tag is of 1 to 64 letters, digits, `-`, `_` and `.`,
    /// [`EndpointError::TooManyPlaces`], and those of [`Endpoint::tcp`].
    pub fn cluster(tag: &str, nodes: &[(&str, u16)]) -> Result<Self, EndpointError> {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        if tag.is_empty() || tag.len() > 64 || !tag.bytes().all(is_plain) {
            return Err(EndpointError::BadTag);
        }
        Self::found_by(Discovery::Cluster { tag: tag.to_owned() }, nodes)
    }

    fn found_by(discovery: Discovery, places: &[(&str, u16)]) -> Result<Self, EndpointError> {
        if places.len() > Self::MAX_PLACES {
            return Err(EndpointError::TooManyPlaces);
        }
        let addresses = places.iter().map(|(host, port)| Address::tcp(host, *port));
        let mut addresses = addresses.collect::<Result<Vec<_>, _>>()?.into_iter();
        let first = addresses.next().ok_or(EndpointError::EmptyHost)?;
        let route = Box::new(Route { discovery, others: addresses.collect() });
        Ok(Self { route: Some(route), ..Self::at(first) })
    }

    /// Returns this endpoint with a login for the sentinels, which is separate from the master's.
    /// An endpoint without sentinels is unchanged.
    #[must_use]
    pub fn with_sentinel_login(mut self, new: Login) -> Self {
        if let Some(Discovery::Sentinel { login, .. }) = self.route.as_mut().map(|route| &mut route.discovery)
        {
            *login = Some(new);
        }
        self
    }

    /// Returns this endpoint with a setting for what a failover may do to its locks. See
    /// [`guide::failover`](crate::guide::failover).
    #[must_use]
    pub fn with_failover(self, failover: Failover) -> Self {
        Self { failover: Some(failover), ..self }
    }

    /// Returns how the master's server is discovered; `None` if the URL gives its address.
    pub fn discovery(&self) -> Option<&Discovery> {
        self.route.as_ref().map(|route| &route.discovery)
    }

    /// Returns the addresses to ask for the master's address: [`address`](Self::address) first. If
    /// the URL gives the server's own address, that is the only one.
    pub fn places(&self) -> impl Iterator<Item = &Address> {
        std::iter::once(&self.address).chain(self.route.iter().flat_map(|route| &route.others))
    }

    /// Returns the name that a key has on the server: in a cluster it begins with the tag in
    /// braces, as in `{q0}job`, so that all keys are in one slot.
    pub fn key_of<'a>(&self, name: &'a [u8]) -> Cow<'a, [u8]> {
        match self.discovery() {
            Some(Discovery::Cluster { tag }) => [b"{", tag.as_bytes(), b"}", name].concat().into(),
            Some(Discovery::Sentinel { .. }) | None => name.into(),
        }
    }

    /// Returns what the endpoint says about failovers.
    pub fn failover(&self) -> Option<Failover> {
        self.failover
    }
}
