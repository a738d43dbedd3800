//! A lock over the masters that the command line names, from smol.
#![allow(clippy::print_stdout)]

use std::time::Duration;

use quorlock_smol::Config;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let masters: Vec<String> = std::env::args().skip(1).collect();
    let locker = quorlock_smol::open(Config::new(masters)?)?;

    smol::block_on(async {
        let guard = locker.lock("invoice:42").ttl(Duration::from_secs(5)).await?;
        println!("held for {:?}", guard.remaining());
        guard.release().await?;
        println!("released");
        Ok(())
    })
}
