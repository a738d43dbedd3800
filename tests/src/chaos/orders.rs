//! The orders of a client's process, as its command line.

use std::net::SocketAddr;
use std::path::PathBuf;

use crate::groups::Routes;

/// The command line of a client's process.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Orders {
    /// Its name, without spaces.
    pub name: String,
    /// The seed of its choices.
    pub seed: u64,
    /// One of [`Transport::NAMES`](crate::transport::Transport::NAMES).
    pub transport: String,
    /// The file to which it appends.
    pub history: PathBuf,
    /// The store to which it writes, with the fencing token of its grant.
    pub store: Option<SocketAddr>,
    /// Whether it asks for fencing tokens.
    pub fenced: bool,
    /// The longest TTL of the fleet in milliseconds, with the restart guard.
    pub restart_guard: Option<u64>,
    /// How many milliseconds a request may take, if not the default.
    pub request_timeout: Option<u64>,
    /// The shortest and the longest of its TTLs, in milliseconds.
    pub ttl: (u64, u64),
    /// The shortest and the longest time for which it holds a lock, in milliseconds.
    pub hold: (u64, u64),
    /// Whether it takes locks of every kind, and renews, heals, downgrades and hands over at
    /// random; otherwise it takes exclusive ones and renews.
    pub varied: bool,
    /// The directory through which it hands locks over to other clients, if it does. It then also
    /// extends locks, does not renew all of them, and holds some of them for long.
    pub exchange: Option<PathBuf>,
    /// The resources for which it contends.
    pub resources: Vec<String>,
    /// The masters.
    pub masters: Vec<String>,
    /// The routes from ports that servers announce to ports that this client uses instead.
    pub routes: Routes,
}

impl Orders {
    /// The orders as arguments for [`Orders::from_arguments`].
    pub fn arguments(&self) -> Vec<String> {
        let optional = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
        vec![
            self.name.clone(),
            self.seed.to_string(),
            self.transport.clone(),
            self.history.display().to_string(),
            optional(self.store.map(|store| store.to_string())),
            self.fenced.to_string(),
            optional(self.restart_guard.map(|longest| longest.to_string())),
            optional(self.request_timeout.map(|limit| limit.to_string())),
            format!("{}-{}", self.ttl.0, self.ttl.1),
            format!("{}-{}", self.hold.0, self.hold.1),
            self.varied.to_string(),
            optional(self.exchange.as_ref().map(|directory| directory.display().to_string())),
            self.resources.join(" "),
            self.masters.join(" "),
            self.routes.iter().map(|(from, to)| format!("{from}-{to}")).collect::<Vec<_>>().join(" "),
        ]
    }

    /// Reads the arguments that [`Orders::arguments`] returned.
    pub fn from_arguments(arguments: impl IntoIterator<Item = String>) -> Option<Self> {
        let mut arguments = arguments.into_iter();
        let mut next = || arguments.next();
        let optional = |text: String| (text != "-").then_some(text);
        let range = |text: String| -> Option<(u64, u64)> {
            let (from, to) = text.split_once('-')?;
            Some((from.parse().ok()?, to.parse().ok()?))
        };
        let routes = |text: &str| -> Option<Routes> {
            let route = |text: &str| {
                let (from, to) = text.split_once('-')?;
                Some((from.parse().ok()?, to.parse().ok()?))
            };
            text.split_whitespace().map(route).collect()
        };
        let list = |text: String| text.split(' ').map(str::to_owned).collect();
        Some(Self {
            name: next()?,
            seed: next()?.parse().ok()?,
            transport: next()?,
            history: next()?.into(),
            store: optional(next()?).map(|store| store.parse()).transpose().ok()?,
            fenced: next()?.parse().ok()?,
            restart_guard: optional(next()?).map(|longest| longest.parse()).transpose().ok()?,
            request_timeout: optional(next()?).map(|limit| limit.parse()).transpose().ok()?,
            ttl: range(next()?)?,
            hold: range(next()?)?,
            varied: next()?.parse().ok()?,
            exchange: optional(next()?).map(PathBuf::from),
            resources: list(next()?),
            masters: list(next()?),
            routes: routes(&next()?)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_survive_a_command_line() {
        let orders = Orders {
            name: "3.1".to_owned(),
            seed: 7,
            transport: "smol".to_owned(),
            history: "/tmp/history".into(),
            store: "127.0.0.1:7".parse().ok(),
            fenced: true,
            restart_guard: Some(1_500),
            request_timeout: Some(400),
            ttl: (400, 1_500),
            hold: (0, 2_000),
            varied: true,
            exchange: Some("/tmp/exchange".into()),
            resources: vec!["a".to_owned(), "b".to_owned()],
            masters: vec![
                "redis://127.0.0.1:7001,127.0.0.1:7002".to_owned(),
                "redis://127.0.0.1:7003".to_owned(),
            ],
            routes: vec![(18_000, 18_001), (18_002, 18_003)],
        };
        assert_eq!(Orders::from_arguments(orders.arguments()), Some(orders.clone()));
        let plain = Orders {
            store: None,
            restart_guard: None,
            request_timeout: None,
            exchange: None,
            routes: Vec::new(),
            ..orders
        };
        assert_eq!(Orders::from_arguments(plain.arguments()), Some(plain.clone()));
        assert_eq!(Orders::from_arguments(plain.arguments().into_iter().skip(1)), None);
    }
}
