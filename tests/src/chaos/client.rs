//! A client's process: it requests locks, works under them, writes to the store, and records
//! everything that it sees.

use std::env;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::thread::sleep;
use std::time::{Duration, Instant};

use quorlock_core::front::{Guard, Locker, Request};
use quorlock_core::{AcquireError, Config, FencingToken, LossCause, Target};

use super::held::Held;
use super::history::{Seeker, What, Writer, now};
use super::sought::{How, Part, Sought};
use super::store::StoreClient;
use crate::groups::{Routes, leading};
use crate::random::Random;
use crate::transport::Transport;

/// The command line of a client's process.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Orders {
    /// Its name, without spaces.
    pub name: String,
    /// The seed of its choices.
    pub seed: u64,
    /// One of [`Transport::NAMES`].
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
            resources: list(next()?),
            masters: list(next()?),
            routes: routes(&next()?)?,
        })
    }
}

/// The main function of a client's process, which ends when it is killed. For a binary that is
/// started with [`Orders::arguments`].
pub fn main(arguments: impl IntoIterator<Item = String>) -> ! {
    let orders = Orders::from_arguments(arguments).expect("the arguments are orders");
    let Err(error) = work(&orders);
    panic!("{} ended: {error}", orders.name);
}

/// As [`main`], with the arguments of this process.
pub fn main_of_process() -> ! {
    main(env::args().skip(1))
}

enum Never {}

fn work(orders: &Orders) -> io::Result<Never> {
    let transport = Transport::named(&orders.transport);
    let mut config = Config::builder(&orders.masters).client_name(&orders.name);
    // A master that was down must vote again soon.
    config = config.reconnect_delay(Duration::from_millis(10)..=Duration::from_millis(300));
    if let Some(longest) = orders.restart_guard {
        config = config.restart_guard(Duration::from_millis(longest)).ttl(Duration::from_millis(longest));
    }
    if !orders.routes.is_empty() {
        config = config.address_map(leading(orders.routes.clone()));
    }
    if let Some(limit) = orders.request_timeout {
        config = config.request_timeout(Duration::from_millis(limit));
    }
    let locker = transport.open(config.build().map_err(io::Error::other)?);
    let mut client = Client {
        orders,
        locker,
        history: Writer::open(&orders.history)?,
        store: orders.store.map(StoreClient::connect).transpose()?,
        random: Random::new(orders.seed),
    };
    let mut attempt = 0;
    loop {
        attempt += 1;
        client.seek(Seeker { client: orders.name.clone(), attempt })?;
        sleep(client.random.millis(0..=30));
    }
}

struct Client<'a> {
    orders: &'a Orders,
    locker: Locker,
    history: Writer,
    store: Option<StoreClient>,
    random: Random,
}

/// How a lock is requested, the first time and when it is resumed.
#[derive(Clone, Copy)]
struct Manner {
    ttl: Duration,
    renewed: bool,
    healed: bool,
    fenced: bool,
}

impl Manner {
    fn of<G>(self, mut request: Request<G>) -> Request<G> {
        request = request.ttl(self.ttl);
        if self.renewed {
            request = request.renew();
        }
        if self.healed {
            request = request.heal();
        }
        if self.fenced { request.fenced() } else { request }
    }
}

impl Client<'_> {
    /// Locks of every kind on the same names. A semaphore is independent of a lock of the same
    /// name, so all clients use the same one, and do not always agree on its permits.
    fn choose(&mut self) -> Sought {
        let resources: Vec<_> = self.orders.resources.iter().map(String::as_str).collect();
        let resource = self.random.of(&resources);
        let part = |resource: &str, how| Part { resource: resource.to_owned(), how };
        match self.random.below(10) {
            _ if !self.orders.varied => Sought::one(resource, How::Write),
            0..=2 => Sought::one(resource, How::Write),
            3..=5 => Sought::one(resource, How::Read),
            6..=7 => {
                let others: Vec<_> = resources.iter().copied().filter(|other| *other != resource).collect();
                let how = if self.random.one_in(2) { How::Read } else { How::Write };
                let Some(other) = others.get(self.random.below(others.len().max(1))) else {
                    return Sought::one(resource, How::Write);
                };
                Sought(vec![part(resource, How::Write), part(other, how)])
            }
            _ => {
                let of = if self.random.one_in(4) { 1 } else { 2 };
                Sought::one(resources.first().copied().unwrap_or(resource), How::Permit { of })
            }
        }
    }

    fn request(&self, sought: &Sought, manner: Manner) -> io::Result<Result<Held, AcquireError>> {
        let limit = Duration::from_secs(2);
        Ok(match &*sought.0 {
            [Part { resource, how: How::Permit { of } }] => {
                let semaphore = self.locker.semaphore(resource, *of).map_err(io::Error::other)?;
                manner.of(semaphore.acquire()).timeout(limit).wait().map(Held::Permit)
            }
            [Part { resource, how: How::Write }] => {
                manner.of(self.locker.lock(resource)).timeout(limit).wait().map(Held::Guard)
            }
            [Part { resource, how: How::Read }] => {
                manner.of(self.locker.read(resource)).timeout(limit).wait().map(Held::Reader)
            }
            _ => {
                let request = self.locker.lock_all(targets(sought));
                manner.of(request).timeout(limit).wait().map(Held::Guard)
            }
        })
    }

    fn seek(&mut self, by: Seeker) -> io::Result<()> {
        let sought = self.choose();
        let manner = Manner {
            ttl: self.random.millis(self.orders.ttl.0..=self.orders.ttl.1),
            renewed: !self.orders.varied || !self.random.one_in(3),
            healed: self.orders.varied && !self.random.one_in(3),
            fenced: self.orders.fenced,
        };
        self.history.note(What::Seeks { by: by.clone(), sought: sought.clone() });
        match self.request(&sought, manner)? {
            Ok(held) => {
                let ttl = u64::try_from(manner.ttl.as_millis()).unwrap_or(u64::MAX);
                let (token, renewed, permit) = (token_of(&held), manner.renewed, held.permit());
                self.history.note(What::Granted { by: by.clone(), token, ttl, renewed, permit });
                let how = self.hold(&by, &sought, manner, held)?;
                self.history.note(What::Ended { by, how });
            }
            Err(error) => {
                self.history.note(What::Refused { by, why: format!("{}: {error}", error.kind()) });
            }
        }
        Ok(())
    }

    /// Works under the lock, and records how it ended.
    fn hold(&mut self, by: &Seeker, sought: &Sought, manner: Manner, held: Held) -> io::Result<String> {
        let end = Instant::now() + self.random.millis(self.orders.hold.0..=self.orders.hold.1);
        let mut held = held;
        // Resources that are only read are not written.
        let names = sought.names(held.permit()).filter(|(_, reads)| !reads).map(|(name, _)| name);
        let mut written: Vec<_> = names.collect();
        loop {
            if let Err(cause) = self.look(by, &held) {
                return Ok(format!("lost: {cause}"));
            }
            if Instant::now() >= end {
                break;
            }
            // The work is between the check and the write, and the process may be stopped in it: no
            // check can prevent that.
            sleep(self.random.millis(1..=40));
            if let (Some(store), Some(token)) = (&mut self.store, token_of(&held)) {
                for name in &written {
                    store.write(by, name, token)?;
                }
            }
            if self.orders.varied && self.random.one_in(20) {
                let was_writer = matches!(held, Held::Guard(_));
                held = held.downgrade();
                if was_writer && matches!(held, Held::Reader(_)) {
                    self.history.note(What::Downgraded { by: by.clone() });
                    written.clear();
                }
            }
            let is_handed = self.orders.varied && self.random.one_in(40);
            if is_handed && matches!(held, Held::Guard(_)) {
                let Held::Guard(guard) = held else { continue };
                let resumption = match guard.hand_over() {
                    Ok(resumption) => resumption,
                    Err(cause) => return Ok(format!("lost before it was handed over: {cause}")),
                };
                sleep(self.random.millis(0..=100));
                let request = self.locker.lock_all(targets(sought)).resuming(resumption);
                match manner.of(request).wait() {
                    Ok(resumed) => held = Held::Guard(resumed),
                    // In any case the lock is not renewed any more, and runs out.
                    Err(AcquireError::NotHeld(_)) => return Ok("not resumed: gone".to_owned()),
                    Err(AcquireError::TooLate(_)) => return Ok("not resumed: too late".to_owned()),
                    Err(AcquireError::NoQuorum(_)) => return Ok("not resumed: no quorum".to_owned()),
                    Err(error) => return Ok(format!("not resumed: {error}")),
                }
                self.history.note(What::Resumed { by: by.clone(), token: token_of(&held) });
            }
        }
        if self.orders.varied && self.random.one_in(3) {
            drop(held);
            return Ok("dropped".to_owned());
        }
        Ok(held.release())
    }

    /// The clock is read before the guard is checked, so a guard that is valid was valid at that
    /// instant too.
    fn look(&self, by: &Seeker, guard: &Guard) -> Result<(), LossCause> {
        let at = now();
        guard.check()?;
        self.history.add(at, What::Valid { by: by.clone() });
        Ok(())
    }
}

/// All but permits.
fn targets(sought: &Sought) -> Vec<Target> {
    let target = |Part { resource, how }: &Part| match how {
        How::Read => Target::read(resource),
        How::Write | How::Permit { .. } => Target::write(resource),
    };
    sought.0.iter().map(target).collect()
}

fn token_of(guard: &Guard) -> Option<u64> {
    guard.fencing_token().map(FencingToken::get)
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
            resources: vec!["a".to_owned(), "b".to_owned()],
            masters: vec![
                "redis://127.0.0.1:7001,127.0.0.1:7002".to_owned(),
                "redis://127.0.0.1:7003".to_owned(),
            ],
            routes: vec![(18_000, 18_001), (18_002, 18_003)],
        };
        assert_eq!(Orders::from_arguments(orders.arguments()), Some(orders.clone()));
        let plain =
            Orders { store: None, restart_guard: None, request_timeout: None, routes: Vec::new(), ..orders };
        assert_eq!(Orders::from_arguments(plain.arguments()), Some(plain.clone()));
        assert_eq!(Orders::from_arguments(plain.arguments().into_iter().skip(1)), None);
    }
}
