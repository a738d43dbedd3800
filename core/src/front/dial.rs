//! Which address of a name to connect to, and when to try another one in parallel: a small version
//! of RFC 8305 ("Happy Eyeballs").

use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use crate::protocol::{Cause, Config};

/// The maximum number of addresses that are considered for one name. A DNS answer may carry
/// hundreds; one server has a few.
const MOST_ADDRESSES: usize = 16;

/// The maximum number of concurrent attempts of one opening. More would cost sockets. With fewer, a
/// name with several dead addresses would be reached later, because only the next opening tries the
/// rest.
const MOST_AT_ONCE: usize = 4;

/// The number of attempts in one `connect_timeout`: each starts a quarter of it after the last, so
/// that the fourth address still connects in time. With the default timeout of 250 ms, that is
/// every 62 ms. With fewer attempts, a dead address delays the first lock for longer; with more, a
/// slow link opens connections that are not needed. RFC 8305 (section 5) recommends 250 ms for the
/// web, whose links are slower than those between a client and its masters.
const ATTEMPTS_PER_TIMEOUT: u32 = 4;

/// What is known of the addresses of one master. A transport keeps one value for each master, for
/// as long as it runs; clones share it.
///
/// It keeps only the last address that connected and up to 16 that are avoided.
#[derive(Clone)]
pub struct Addresses {
    pause: Duration,
    memory: Arc<Mutex<Memory>>,
}

#[derive(Default)]
struct Memory {
    /// The address of the last connection.
    connected: Option<SocketAddr>,
    /// Addresses that did not connect in time, or whose connection did not serve; the latest one
    /// last.
    avoided: Vec<SocketAddr>,
}

/// One opening: the attempts that are under way, and the addresses that may follow.
///
/// Dropping it gives the opening up. The addresses of the attempts under way then count as too
/// slow.
pub struct Dial {
    addresses: Addresses,
    waiting: VecDeque<SocketAddr>,
    under_way: Vec<SocketAddr>,
    failure: Cause,
}

impl Addresses {
    /// Nothing is known yet. Attempts start a quarter of `connect_timeout` apart.
    pub fn new(config: &Config) -> Self {
        Self { pause: config.connect_timeout / ATTEMPTS_PER_TIMEOUT, memory: Arc::default() }
    }

    /// Returns a [`Dial`], which opens one connection to the addresses that a name has resolved to.
    /// No attempt has begun yet: [`Dial::race`] makes them, or [`Dial::next_attempt`] one after the
    /// other.
    pub fn dial(&self, resolved: impl IntoIterator<Item = SocketAddr>) -> Dial {
        Dial {
            addresses: self.clone(),
            waiting: self.memory().order(resolved),
            under_way: Vec::new(),
            failure: Cause::UnknownHost,
        }
    }

    /// Puts the address of the last connection behind the others. Call it before a new opening if
    /// that connection [has not served](super::Port::has_served): a replica or a stopped server
    /// connects, too.
    pub fn avoid_last(&self) {
        let mut memory = self.memory();
        if let Some(address) = memory.connected.take() {
            memory.avoid(address);
        }
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        // Nothing that runs under this mutex panics.
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Memory {
    /// The order of attempts: first the last address that connected, then unknown addresses,
    /// alternating between IPv4 and IPv6, then those that are avoided.
    fn order(&self, resolved: impl IntoIterator<Item = SocketAddr>) -> VecDeque<SocketAddr> {
        let mut rest: Vec<SocketAddr> = Vec::new();
        for address in resolved {
            if rest.len() < MOST_ADDRESSES && !rest.contains(&address) {
                rest.push(address);
            }
        }
        let mut take = |wanted: &SocketAddr| {
            let place = rest.iter().position(|address| address == wanted);
            place.map(|place| rest.remove(place))
        };
        let mut ordered: VecDeque<SocketAddr> =
            self.connected.as_ref().and_then(&mut take).into_iter().collect();
        let avoided: Vec<SocketAddr> = self.avoided.iter().filter_map(take).collect();
        while !rest.is_empty() {
            let before = ordered.back().map(SocketAddr::is_ipv6);
            let other_family = rest.iter().position(|address| Some(address.is_ipv6()) != before);
            ordered.push_back(rest.remove(other_family.unwrap_or(0)));
        }
        ordered.extend(avoided);
        ordered
    }

    fn avoid(&mut self, address: SocketAddr) {
        self.avoided.retain(|other| *other != address);
        if self.avoided.len() == MOST_ADDRESSES {
            self.avoided.remove(0);
        }
        self.avoided.push(address);
    }
}

impl Dial {
    /// Starts an attempt: the address to connect to, or `None` if none may start now. Call it
    /// first, then whenever an attempt has failed, and when the [pause](Self::pause) since the last
    /// call is over.
    pub fn next_attempt(&mut self) -> Option<SocketAddr> {
        if self.under_way.len() >= MOST_AT_ONCE {
            return None;
        }
        let address = self.waiting.pop_front()?;
        self.under_way.push(address);
        Some(address)
    }

    /// How long after the last start the next attempt starts in parallel; `None` if none may follow
    /// before one has failed.
    pub fn pause(&self) -> Option<Duration> {
        (!self.waiting.is_empty() && self.under_way.len() < MOST_AT_ONCE).then_some(self.addresses.pause)
    }

    /// This attempt has connected. It is the first one, so close the others.
    pub fn connected(&mut self, address: SocketAddr) {
        self.under_way.retain(|other| *other != address);
        let mut memory = self.addresses.memory();
        memory.avoided.retain(|other| *other != address);
        memory.connected = Some(address);
    }

    /// This attempt has failed. The next one starts at once.
    pub fn failed(&mut self, address: SocketAddr, cause: Cause) {
        self.under_way.retain(|other| *other != address);
        self.failure = cause;
    }

    /// Why the opening has failed, once no attempt is under way and none may follow.
    pub fn failure(&self) -> Option<Cause> {
        (self.under_way.is_empty() && self.waiting.is_empty()).then_some(self.failure)
    }

    /// Runs the opening with futures: `connect` opens one address, `sleep` is a timer. The first to
    /// connect wins, and the others are dropped.
    ///
    /// # Errors
    ///
    /// The last failure, once every attempt has failed; [`Cause::UnknownHost`] if there was no
    /// address.
    ///
    /// *Cancel safety*: dropping the future gives the opening up.
    pub async fn race<S, C, T>(
        mut self,
        mut connect: impl FnMut(SocketAddr) -> C,
        mut sleep: impl FnMut(Duration) -> T,
    ) -> Result<S, Cause>
    where
        C: Future<Output = io::Result<S>>,
        T: Future,
    {
        let mut attempts: Vec<(SocketAddr, Pin<Box<C>>)> = Vec::new();
        let mut timer: Option<Pin<Box<T>>> = None;
        let mut may_start = true;
        poll_fn(|cx| {
            loop {
                if std::mem::take(&mut may_start) {
                    attempts.extend(self.next_attempt().map(|address| (address, Box::pin(connect(address)))));
                    timer = self.pause().map(|pause| Box::pin(sleep(pause)));
                }
                let mut winner = None;
                attempts.retain_mut(|(address, attempt)| match attempt.as_mut().poll(cx) {
                    Poll::Pending => true,
                    Poll::Ready(Ok(socket)) => {
                        // If two connect at the same time, the one that started first wins.
                        winner.get_or_insert((*address, socket));
                        false
                    }
                    Poll::Ready(Err(error)) => {
                        self.failed(*address, Cause::from(&error));
                        may_start = true;
                        false
                    }
                });
                if let Some((address, socket)) = winner {
                    self.connected(address);
                    return Poll::Ready(Ok(socket));
                }
                if let Some(cause) = self.failure() {
                    return Poll::Ready(Err(cause));
                }
                may_start |= timer.as_mut().is_some_and(|timer| timer.as_mut().poll(cx).is_ready());
                if !may_start {
                    return Poll::Pending;
                }
            }
        })
        .await
    }
}

impl Drop for Dial {
    /// Whatever is still under way has lost to another address, or has taken too long.
    fn drop(&mut self) {
        let mut memory = self.addresses.memory();
        for address in self.under_way.drain(..) {
            memory.connected.take_if(|connected| *connected == address);
            memory.avoid(address);
        }
    }
}

impl fmt::Debug for Addresses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let memory = self.memory();
        f.debug_struct("Addresses")
            .field("connected", &memory.connected)
            .field("avoided", &memory.avoided)
            .finish()
    }
}

impl fmt::Debug for Dial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dial")
            .field("waiting", &self.waiting)
            .field("under_way", &self.under_way)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "dial_tests.rs"]
mod tests;
