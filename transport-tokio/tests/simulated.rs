//! Locks in a simulated network and in simulated time: clients, drivers and masters run inside
//! `turmoil`.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::rc::Rc;
use std::time::Duration;

use quorlock_core::{Cause, Vote};
use quorlock_sim::{Flow, Master, Session};
use quorlock_tokio::{AcquireError, Address, Config, Locker, LossCause};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::runtime::Handle;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::time::sleep;
use turmoil::net::{TcpListener, TcpStream};
use turmoil::{Builder, Result, Sim};

const MASTERS: [&str; 3] = ["master0", "master1", "master2"];
const CLIENT: &str = "client";
const SECOND: Duration = Duration::from_secs(1);

/// A master on a simulated host, and the senders of its connections.
struct Server {
    master: Master,
    pushes: HashMap<u64, UnboundedSender<Vec<u8>>>,
}

/// Serves a model of a master.
async fn serve(identity: u64) -> Result {
    let listener = TcpListener::bind("0.0.0.0:6379").await?;
    let server = Rc::new(RefCell::new(Server { master: Master::new(identity), pushes: HashMap::new() }));
    loop {
        let (stream, _) = listener.accept().await?;
        let server = Rc::clone(&server);
        tokio::task::spawn_local(async move {
            let session = server.borrow_mut().master.accept();
            let id = session.id();
            // An error is the end of this connection.
            let _ = answer(stream, session, &server).await;
            server.borrow_mut().pushes.remove(&id);
        });
    }
}

async fn answer(mut stream: TcpStream, mut session: Session, server: &RefCell<Server>) -> io::Result<()> {
    let (sender, mut pushes) = unbounded_channel();
    server.borrow_mut().pushes.insert(session.id(), sender);
    let mut buffer = [0; 4096];
    loop {
        let mut flow = Flow::Open;
        let replies = tokio::select! {
            push = pushes.recv() => push.unwrap(),
            read = stream.read(&mut buffer) => {
                let (mut replies, bytes) = (Vec::new(), &buffer[..read?]);
                if bytes.is_empty() {
                    return Ok(());
                }
                let server = &mut *server.borrow_mut();
                let now = turmoil::since_epoch().unwrap();
                flow = server.master.serve(&mut session, bytes, now, &mut replies);
                for push in server.master.take_pushes() {
                    // A closed connection gets no push.
                    let _ = server.pushes[&push.session].send(push.bytes);
                }
                replies
            }
        };
        stream.write_all(&replies).await?;
        if flow == Flow::Close {
            return Ok(());
        }
    }
}

async fn connect(address: Address) -> io::Result<TcpStream> {
    match address {
        Address::Tcp { host, port } => TcpStream::connect((host, port)).await,
        Address::Unix(_) => Err(io::ErrorKind::Unsupported.into()),
    }
}

/// A locker of the host that calls it.
fn open() -> Locker {
    let config = Config::new(MASTERS.map(|name| format!("redis://{name}"))).unwrap();
    quorlock_tokio::through(connect).time_of(&Handle::current()).open(config).unwrap()
}

/// Three masters in a network of some milliseconds.
fn network() -> Sim<'static> {
    let mut builder = Builder::new();
    builder.simulation_duration(3600 * SECOND).max_message_latency(Duration::from_millis(5)).rng_seed(1);
    let mut sim = builder.build();
    for (identity, name) in (0..).zip(MASTERS) {
        sim.host(name, move || serve(identity));
    }
    sim
}

/// Takes the lock and releases it.
async fn lock(locker: &Locker) -> std::result::Result<(), AcquireError> {
    let guard = locker.lock("job").timeout(5 * SECOND).await?;
    guard.release().await.unwrap();
    Ok(())
}

#[test]
fn locks_need_a_quorum_of_the_masters_that_the_network_reaches() -> Result {
    let mut sim = network();
    sim.client(CLIENT, async {
        let locker = open();
        lock(&locker).await?;

        turmoil::partition(CLIENT, MASTERS[0]);
        lock(&locker).await?;
        turmoil::repair(CLIENT, MASTERS[0]);

        turmoil::hold(CLIENT, MASTERS[1]);
        lock(&locker).await?;

        turmoil::partition(CLIENT, MASTERS[0]);
        let since = turmoil::elapsed();
        let Err(AcquireError::NoQuorum(ballot)) = lock(&locker).await else { panic!("there is no quorum") };
        assert!(turmoil::elapsed() - since >= 5 * SECOND, "it was waited for in simulated time");
        let votes: Vec<Vote> = ballot.votes().map(|(_, vote)| vote).collect();
        let is_silent = |vote: &Vote| {
            matches!(
                vote,
                Vote::Failed(Cause::NoAnswer { .. } | Cause::NoConnection { .. } | Cause::Connect(_))
            )
        };
        assert!(is_silent(&votes[0]) && is_silent(&votes[1]) && !is_silent(&votes[2]), "{votes:?}");

        turmoil::repair(CLIENT, MASTERS[0]);
        turmoil::release(CLIENT, MASTERS[1]);
        lock(&locker).await?;
        Ok(())
    });
    sim.run()
}

#[test]
fn locks_end_and_are_renewed_in_simulated_time() -> Result {
    let mut sim = network();
    sim.client(CLIENT, async {
        let locker = open();
        let guard = locker.lock("brief").ttl(10 * SECOND).await?;
        let renewed = locker.lock("long").ttl(10 * SECOND).renew().await?;
        sleep(9 * SECOND).await;
        assert!(guard.is_valid());
        sleep(SECOND).await;
        assert!(!guard.is_valid());
        assert_eq!(guard.lost().await, LossCause::Expired);
        sleep(60 * SECOND).await;
        assert!(renewed.is_valid());
        // Its driver ends with the locker.
        renewed.release().await?;
        Ok(())
    });
    sim.run()
}

#[test]
fn a_client_on_another_host_waits_and_is_notified_of_the_release() -> Result {
    let mut sim = network();
    sim.client(CLIENT, async {
        let guard = open().lock("job").ttl(60 * SECOND).await?;
        sleep(3 * SECOND).await;
        guard.release().await?;
        // The process continues.
        sleep(SECOND).await;
        Ok(())
    });
    sim.client("other", async {
        sleep(SECOND).await;
        let locker = open();
        let since = turmoil::elapsed();
        locker.lock("job").ttl(60 * SECOND).await?.release().await?;
        let waited = turmoil::elapsed() - since;
        assert!(waited > SECOND && waited < 3 * SECOND, "{waited:?}");
        Ok(())
    });
    sim.run()
}
