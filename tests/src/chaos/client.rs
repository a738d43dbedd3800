//! A client's process: it requests locks, works under them, writes to the store, and records
//! everything that it sees.

use std::env;
use std::io;
use std::thread::sleep;
use std::time::{Duration, Instant};

use quorlock_core::front::{Guard, Locker, Request, Watch};
use quorlock_core::{AcquireError, Config, FencingToken, LossCause, Target};

use super::exchange::{Exchange, HandedOver};
use super::held::Held;
use super::history::{Seeker, What, Writer, now};
pub use super::orders::Orders;
use super::sought::{How, Part, Sought};
use super::store::StoreClient;
use crate::groups::leading;
use crate::random::Random;
use crate::transport::Transport;

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
        exchange: orders.exchange.as_ref().map(|directory| Exchange::open(directory, &orders.name)),
    };
    let mut attempt = 0;
    loop {
        attempt += 1;
        let by = Seeker { client: orders.name.clone(), attempt };
        match client.exchange.as_ref().map_or(Ok(None), Exchange::take)? {
            Some(lock) => client.resume(by, lock)?,
            None => client.seek(by)?,
        }
        sleep(client.random.millis(0..=30));
    }
}

struct Client<'a> {
    orders: &'a Orders,
    locker: Locker,
    history: Writer,
    store: Option<StoreClient>,
    random: Random,
    exchange: Option<Exchange>,
}

/// How long a request may take.
const LIMIT: Duration = Duration::from_secs(2);
/// How long a client that has handed a lock over still looks at it.
const LOOKED_FOR: Duration = Duration::from_millis(100);

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
        Ok(match &*sought.0 {
            [Part { resource, how: How::Permit { of } }] => {
                let semaphore = self.locker.semaphore(resource, *of).map_err(io::Error::other)?;
                manner.of(semaphore.acquire()).timeout(LIMIT).wait().map(Held::Permit)
            }
            [Part { resource, how: How::Write }] => {
                manner.of(self.locker.lock(resource)).timeout(LIMIT).wait().map(Held::Guard)
            }
            [Part { resource, how: How::Read }] => {
                manner.of(self.locker.read(resource)).timeout(LIMIT).wait().map(Held::Reader)
            }
            _ => {
                let request = self.locker.lock_all(targets(sought));
                manner.of(request).timeout(LIMIT).wait().map(Held::Guard)
            }
        })
    }

    fn manner(&mut self) -> Manner {
        let chooses = self.orders.varied || self.exchange.is_some();
        Manner {
            ttl: self.random.millis(self.orders.ttl.0..=self.orders.ttl.1),
            renewed: !chooses || !self.random.one_in(3),
            healed: self.orders.varied && !self.random.one_in(3),
            fenced: self.orders.fenced,
        }
    }

    fn seek(&mut self, by: Seeker) -> io::Result<()> {
        let sought = self.choose();
        let manner = self.manner();
        self.history.note(What::Seeks { by: by.clone(), sought: sought.clone() });
        match self.request(&sought, manner)? {
            Ok(held) => {
                let (ttl, renewed) = (millis(manner.ttl), manner.renewed);
                let (token, permit) = (token_of(&held), held.permit());
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

    /// Resumes a lock that another client has handed over, sometimes late.
    fn resume(&mut self, by: Seeker, lock: HandedOver) -> io::Result<()> {
        let late = if self.random.one_in(4) { self.orders.ttl.1 } else { 50 };
        sleep(self.random.millis(0..=late));
        let sought = Sought::one(&lock.resource, How::Write);
        let manner = self.manner();
        self.history.note(What::Seeks { by: by.clone(), sought: sought.clone() });
        let request = self.locker.lock(&lock.resource).resuming(lock.resumption);
        match manner.of(request).timeout(LIMIT).wait() {
            Ok(guard) => {
                let (ttl, renewed) = (millis(manner.ttl), manner.renewed);
                let (from, token) = (lock.by, token_of(&guard));
                self.history.note(What::Received { by: by.clone(), from, token, ttl, renewed });
                let how = self.hold(&by, &sought, manner, Held::Guard(guard))?;
                self.history.note(What::Ended { by, how });
            }
            Err(error) => {
                // Its keys stay, so another client may be luckier.
                if let (AcquireError::NoQuorum(_) | AcquireError::Quarantined(_), Some(exchange)) =
                    (&error, &self.exchange)
                {
                    exchange.leave(&lock)?;
                }
                self.history.note(What::Refused { by, why: error.to_string() });
            }
        }
        Ok(())
    }

    /// Extends the lock. If that fails, it stays valid for as long as before.
    fn extend(&mut self, by: &Seeker, guard: &Guard) {
        let ttl = self.random.millis(self.orders.ttl.0..=self.orders.ttl.1);
        if guard.extend(ttl).wait().is_ok() {
            self.history.note(What::Extended { by: by.clone(), ttl: millis(ttl) });
        }
    }

    /// Hands the lock over to another client. From then on it must not be valid here, and that is
    /// looked at while the other client resumes it.
    fn hand_over(&self, by: &Seeker, guard: Guard, exchange: &Exchange) -> io::Result<String> {
        let (watch, resource) = (guard.watch(), guard.resource().to_string());
        let resumption = match guard.hand_over() {
            Ok(resumption) => resumption,
            Err(error) => return Ok(format!("lost before it was handed over: {error}")),
        };
        exchange.leave(&HandedOver { by: by.clone(), resource, resumption })?;
        let end = Instant::now() + LOOKED_FOR;
        while Instant::now() < end {
            let _ = self.look(by, &watch);
            sleep(Duration::from_millis(2));
        }
        Ok("handed over".to_owned())
    }

    /// Works under the lock, and records how it ended.
    fn hold(&mut self, by: &Seeker, sought: &Sought, manner: Manner, held: Held) -> io::Result<String> {
        // Some locks are held across a failover.
        let times = if self.exchange.is_some() && self.random.one_in(6) { 6 } else { 1 };
        let end = Instant::now() + times * self.random.millis(self.orders.hold.0..=self.orders.hold.1);
        let mut held = held;
        // Resources that are only read are not written.
        let names = sought.names(held.permit()).filter(|(_, reads)| !reads).map(|(name, _)| name);
        let mut written: Vec<_> = names.collect();
        loop {
            if let Err(cause) = self.look(by, &held.watch()) {
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
            if self.exchange.is_some() && self.random.one_in(8) {
                self.extend(by, &held);
            }
            if let Some(exchange) = &self.exchange {
                if self.random.one_in(20) {
                    match held {
                        Held::Guard(guard) => return self.hand_over(by, guard, exchange),
                        other => held = other,
                    }
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
                    Err(AcquireError::NoQuorum(_) | AcquireError::Quarantined(_)) => {
                        return Ok("not resumed: no quorum".to_owned());
                    }
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
    fn look(&self, by: &Seeker, lock: &Watch) -> Result<(), LossCause> {
        let at = now();
        lock.check()?;
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

fn millis(ttl: Duration) -> u64 {
    u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX)
}

fn token_of(guard: &Guard) -> Option<u64> {
    guard.fencing_token().map(FencingToken::get)
}
