//! A client's process: it seeks locks, works under them, writes to the store, and writes down all that it sees.

use std::env;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::thread::sleep;
use std::time::{Duration, Instant};

use quorlock_core::front::{Guard, Locker, ReleaseError, Request};
use quorlock_core::{AcquireError, Config, FencingToken, LossCause};

use super::history::{Seeker, What, Writer, now};
use super::store::StoreClient;
use crate::random::Random;
use crate::transport::Transport;

/// What a client's process is told on its command line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Orders {
    /// Its name, without spaces.
    pub name: String,
    /// What it chooses by.
    pub seed: u64,
    /// One of [`Transport::NAMES`].
    pub transport: String,
    /// The file to which it appends.
    pub history: PathBuf,
    /// Where it writes to, with the fencing token of its grant; without a store nothing is fenced.
    pub store: Option<SocketAddr>,
    /// The longest TTL of the fleet in milliseconds, with the restart guard.
    pub restart_guard: Option<u64>,
    /// Its TTLs in milliseconds, from and to.
    pub ttl: (u64, u64),
    /// How long it holds a lock in milliseconds, from and to.
    pub hold: (u64, u64),
    /// Whether it renews, heals and hands over as it likes; else it renews.
    pub varied: bool,
    /// What it contends for.
    pub resources: Vec<String>,
    /// The masters.
    pub masters: Vec<String>,
}

impl Orders {
    /// As arguments of [`Orders::from_arguments`].
    pub fn arguments(&self) -> Vec<String> {
        let optional = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
        vec![
            self.name.clone(),
            self.seed.to_string(),
            self.transport.clone(),
            self.history.display().to_string(),
            optional(self.store.map(|store| store.to_string())),
            optional(self.restart_guard.map(|longest| longest.to_string())),
            format!("{}-{}", self.ttl.0, self.ttl.1),
            format!("{}-{}", self.hold.0, self.hold.1),
            self.varied.to_string(),
            self.resources.join(","),
            self.masters.join(","),
        ]
    }

    /// Reads what [`Orders::arguments`] gave.
    pub fn from_arguments(arguments: impl IntoIterator<Item = String>) -> Option<Self> {
        let mut arguments = arguments.into_iter();
        let mut next = || arguments.next();
        let optional = |text: String| (text != "-").then_some(text);
        let range = |text: String| -> Option<(u64, u64)> {
            let (from, to) = text.split_once('-')?;
            Some((from.parse().ok()?, to.parse().ok()?))
        };
        let list = |text: String| text.split(',').map(str::to_owned).collect();
        Some(Self {
            name: next()?,
            seed: next()?.parse().ok()?,
            transport: next()?,
            history: next()?.into(),
            store: optional(next()?).map(|store| store.parse()).transpose().ok()?,
            restart_guard: optional(next()?).map(|longest| longest.parse()).transpose().ok()?,
            ttl: range(next()?)?,
            hold: range(next()?)?,
            varied: next()?.parse().ok()?,
            resources: list(next()?),
            masters: list(next()?),
        })
    }
}

/// The whole of a client's process, which ends when it is killed. For a binary that is started with [`Orders::arguments`].
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
    // A master that was down is to vote again soon.
    config = config.reconnect_delay(Duration::from_millis(10)..=Duration::from_millis(300));
    if let Some(longest) = orders.restart_guard {
        config = config.restart_guard(Duration::from_millis(longest)).ttl(Duration::from_millis(longest));
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

/// How a lock is asked for, the first time and when it is resumed.
#[derive(Clone, Copy)]
struct Manner {
    ttl: Duration,
    renewed: bool,
    healed: bool,
    fenced: bool,
}

impl Manner {
    fn of(self, mut request: Request) -> Request {
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
    fn seek(&mut self, by: Seeker) -> io::Result<()> {
        let resources: Vec<_> = self.orders.resources.iter().map(String::as_str).collect();
        let resource = self.random.of(&resources);
        let manner = Manner {
            ttl: self.random.millis(self.orders.ttl.0..=self.orders.ttl.1),
            renewed: !self.orders.varied || !self.random.one_in(3),
            healed: self.orders.varied && !self.random.one_in(3),
            fenced: self.store.is_some(),
        };
        self.history.note(What::Seeks { by: by.clone(), resource: resource.to_owned() });
        match manner.of(self.locker.lock(resource)).timeout(Duration::from_secs(2)).wait() {
            Ok(guard) => {
                let ttl = u64::try_from(manner.ttl.as_millis()).unwrap_or(u64::MAX);
                let token = token_of(&guard);
                self.history.note(What::Granted { by: by.clone(), token, ttl, renewed: manner.renewed });
                let how = self.hold(&by, resource, manner, guard)?;
                self.history.note(What::Ended { by, how });
            }
            Err(error) => self.history.note(What::Refused { by, why: error.to_string() }),
        }
        Ok(())
    }

    /// Works under the lock, and tells how it ended.
    fn hold(&mut self, by: &Seeker, resource: &str, manner: Manner, guard: Guard) -> io::Result<String> {
        let end = Instant::now() + self.random.millis(self.orders.hold.0..=self.orders.hold.1);
        let mut guard = guard;
        loop {
            if let Err(cause) = self.look(by, &guard) {
                return Ok(format!("lost: {cause}"));
            }
            if Instant::now() >= end {
                break;
            }
            // Between the look and the write lies the work, in which the process may be stopped: no look can help against that.
            sleep(self.random.millis(1..=40));
            if let (Some(store), Some(token)) = (&mut self.store, token_of(&guard)) {
                store.write(by, resource, token)?;
            }
            if self.orders.varied && self.random.one_in(40) {
                let resumption = match guard.hand_over() {
                    Ok(resumption) => resumption,
                    Err(cause) => return Ok(format!("lost before it was handed over: {cause}")),
                };
                sleep(self.random.millis(0..=100));
                match manner.of(self.locker.resume(resource, resumption)).wait() {
                    Ok(resumed) => guard = resumed,
                    // In every case nobody renews it any more, and it runs out.
                    Err(AcquireError::NotHeld(_)) => return Ok("not resumed: gone".to_owned()),
                    Err(AcquireError::TooLate(_)) => return Ok("not resumed: too late".to_owned()),
                    Err(AcquireError::NoQuorum(_)) => return Ok("not resumed: no quorum".to_owned()),
                    Err(error) => return Ok(format!("not resumed: {error}")),
                }
                self.history.note(What::Resumed { by: by.clone(), token: token_of(&guard) });
            }
        }
        if self.orders.varied && self.random.one_in(3) {
            drop(guard);
            return Ok("dropped".to_owned());
        }
        Ok(match guard.release().wait() {
            Ok(_) => "released".to_owned(),
            Err(ReleaseError::NotOurs(_)) => "released, and not ours".to_owned(),
            Err(_) => "released, nobody knows".to_owned(),
        })
    }

    /// The clock is read before the guard: what it says is true of that instant too.
    fn look(&self, by: &Seeker, guard: &Guard) -> Result<(), LossCause> {
        let at = now();
        guard.check()?;
        self.history.add(at, What::Valid { by: by.clone() });
        Ok(())
    }
}

fn token_of(guard: &Guard) -> Option<u64> {
    guard.fencing_token().map(FencingToken::get)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_go_through_a_command_line() {
        let orders = Orders {
            name: "3.1".to_owned(),
            seed: 7,
            transport: "smol".to_owned(),
            history: "/tmp/history".into(),
            store: "127.0.0.1:7".parse().ok(),
            restart_guard: Some(1_500),
            ttl: (400, 1_500),
            hold: (0, 2_000),
            varied: true,
            resources: vec!["a".to_owned(), "b".to_owned()],
            masters: vec!["redis://127.0.0.1:7001".to_owned()],
        };
        assert_eq!(Orders::from_arguments(orders.arguments()), Some(orders.clone()));
        let plain = Orders { store: None, restart_guard: None, ..orders };
        assert_eq!(Orders::from_arguments(plain.arguments()), Some(plain.clone()));
        assert_eq!(Orders::from_arguments(plain.arguments().into_iter().skip(1)), None);
    }
}
