//! Problem: an endpoint must serve one request of a user at a time, on however many machines.
//!
//! The handler tries for a lock of the user. It answers 409 while another request is under way, and
//! 503 while too few masters answer.
//!
//! Run: `cargo run -p quorlock-tokio --example axum_handler`, on embedded masters. The example is
//! its own client.
//!
//! Watch: the second request of one user gets 409 at once, that of another user is served
//! meanwhile, and nothing waits. If a client goes away, its lock is released.
#![allow(clippy::print_stdout)]

use std::convert::Infallible;
use std::error::Error;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::post;
use quorlock_embedded::Masters;
use quorlock_tokio::{AcquireError, Locker, RunError};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::sleep;

async fn check_out(
    State(locker): State<Locker>,
    Path(user): Path<String>,
) -> Result<String, (StatusCode, String)> {
    // One attempt: a user who clicks twice is told so, and does not wait. If the client goes away,
    // axum drops this future, and the lock is released.
    let checked_out = locker.try_lock(format!("checkout/{user}")).run(|lock| async move {
        sleep(Duration::from_millis(300)).await;
        Ok(format!("{user} has paid; the lock was good for {:?} more\n", lock.remaining()))
    });
    checked_out.await.map_err(|error| (status(&error), format!("{error}\n")))
}

/// What an error means to a client. In a service of your own, write the text to the log only: it
/// names the masters. A `Retry-After` can be computed from the votes in its ballot
/// (`Vote::HeldByAnother`), unless the holder is in this process.
fn status(error: &RunError<Infallible>) -> StatusCode {
    match error {
        RunError::NotAcquired(AcquireError::HeldByAnother(_)) => StatusCode::CONFLICT,
        // The user's name makes an invalid name of a lock, such as one that is too long.
        RunError::Invalid(_) => StatusCode::BAD_REQUEST,
        // It is unknown who holds the lock, or it was lost half-way: try again later.
        RunError::NotAcquired(_) | RunError::Lost(_) => StatusCode::SERVICE_UNAVAILABLE,
        RunError::Body(never) => match *never {},
    }
}

#[tokio::main]
async fn main() -> Result<ExitCode, Box<dyn Error>> {
    let masters = Masters::start(3)?;
    // One locker for the whole service: its clones share the connections.
    let locker = quorlock_tokio::open(masters.config()?)?;
    let service = Router::new().route("/users/{user}/checkout", post(check_out)).with_state(locker);
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move { axum::serve(listener, service).await });

    let (first, second, other) = tokio::try_join!(
        request(address, "alice", Duration::ZERO),
        request(address, "alice", Duration::from_millis(100)),
        request(address, "bob", Duration::from_millis(100)),
    )?;
    let third = request(address, "alice", Duration::ZERO).await?;
    masters.iter().take(2).for_each(|master| master.stop());
    let without_quorum = request(address, "alice", Duration::ZERO).await?;
    let codes = [first, second, other, third, without_quorum];
    println!("codes: {codes:?}");
    Ok(if codes == [200, 409, 200, 200, 503] { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Sends a request after this pause, and returns the status code.
async fn request(address: SocketAddr, user: &str, after: Duration) -> Result<u16, Box<dyn Error>> {
    sleep(after).await;
    let mut stream = TcpStream::connect(address).await?;
    let request = format!(
        "POST /users/{user}/checkout HTTP/1.1\r\nHost: {address}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await?;
    let mut response = String::new();
    stream.read_to_string(&mut response).await?;
    let (head, body) = response.split_once("\r\n\r\n").ok_or("an answer without a body")?;
    print!("{user}: {}: {body}", head.lines().next().unwrap_or_default());
    Ok(head.split(' ').nth(1).ok_or("an answer without a status")?.parse()?)
}
