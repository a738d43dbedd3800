//! A lock over the masters that the command line names, from tokio.
#![allow(clippy::print_stdout)]

use std::time::Duration;

use quorlock_tokio::Config;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let masters: Vec<String> = std::env::args().skip(1).collect();
    let locker = quorlock_tokio::open(Config::new(masters)?)?;

    let guard = locker.lock("invoice:42").ttl(Duration::from_secs(5)).await?;
    println!("held for {:?}", guard.remaining());
    guard.release().await?;
    println!("released");
    Ok(())
}
