//! Problem: you want to see the contract of the bare machine, before you write a transport.
//!
//! One lock over the masters that the command line names, driven by hand on blocking sockets of the
//! standard library. Real drivers never wait for one socket; this one shows the contract and
//! nothing else.
//!
//! Run: `cargo run -p quorlock-core --example by_hand redis://127.0.0.1:6379`
//!
//! Watch: the order of each turn. Drain the outputs until `Wake`, carry them out, hand in what has
//! arrived, and only then tell the time: otherwise replies that wait in a buffer count as silence.
#![allow(clippy::print_stdout)]

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant as Clock};

use quorlock_core::{
    Acquire, Address, Cause, Config, Entropy, EntropyFailed, Event, Instant, Machine, MasterId, Output,
    Resource,
};

/// The operating system's generator, asked anew for every token.
struct Urandom(File);

impl Entropy for Urandom {
    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), EntropyFailed> {
        self.0.read_exact(bytes).map_err(|_| EntropyFailed)
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let config = Config::new(std::env::args().skip(1))?;
    let (ttl, origin) = (config.ttl(), Clock::now());
    let now = || Instant::ORIGIN + origin.elapsed();
    let mut machine = Machine::new(config, Urandom(File::open("/dev/urandom")?), now());
    let mut sockets: BTreeMap<MasterId, (u32, TcpStream)> = BTreeMap::new();

    let timeout = Some(Duration::from_secs(2));
    let wanted = Acquire { timeout, ..Acquire::new(Resource::new("by-hand")?, ttl) };
    let lock = machine.acquire(&wanted, now())?;

    loop {
        // Drain the outputs until the machine says when it wants to be woken.
        let mut connects = Vec::new();
        let mut events = Vec::new();
        let wake = loop {
            match machine.poll_output() {
                Output::Connect { master, generation, address } => {
                    connects.push((master, generation, address));
                }
                Output::Write { master, generation, bytes } => {
                    if let Some((_, socket)) = sockets.get_mut(&master).filter(|(own, _)| *own == generation)
                    {
                        socket.write_all(bytes)?;
                    }
                }
                Output::Close { master, .. } => drop(sockets.remove(&master)),
                Output::Event(event) => events.push(event),
                Output::Wake(wake) => break wake,
            }
        };

        for event in events {
            match event {
                Event::Granted { .. } => match machine.take(lock, now()) {
                    Some(valid_until) => {
                        println!("held for {:?}", valid_until.since(now()));
                        machine.release(lock, now());
                    }
                    None => println!("granted too late, sought further"),
                },
                Event::NotAcquired { error, .. } => return Err(error.into()),
                Event::Released { outcome, .. } => {
                    println!("released: {outcome:?}");
                    return Ok(());
                }
                other => println!("{other:?}"),
            }
        }

        for (master, generation, address) in connects {
            let Address::Tcp { host, port } = address else { continue };
            match TcpStream::connect((host.as_str(), port)) {
                Ok(socket) => {
                    socket.set_read_timeout(Some(Duration::from_millis(1)))?;
                    sockets.insert(master, (generation, socket));
                    machine.connected(master, generation, now());
                }
                Err(error) => machine.closed(master, generation, Cause::from(&error), now()),
            }
        }

        // Hand in what has arrived, and only then the time.
        let mut buffer = [0; 4096];
        for (master, (generation, socket)) in &mut sockets {
            match socket.read(&mut buffer) {
                Ok(0) => machine.closed(*master, *generation, Cause::Closed, now()),
                Ok(length) => {
                    machine.received(*master, *generation, buffer.get(..length).unwrap_or_default(), now());
                }
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                Err(error) => machine.closed(*master, *generation, Cause::from(&error), now()),
            }
        }
        if sockets.is_empty() {
            let pause = wake.map_or(Duration::ZERO, |wake| wake.at.since(now()));
            std::thread::sleep(pause.min(Duration::from_millis(100)));
        }
        machine.time_passed(now());
    }
}
