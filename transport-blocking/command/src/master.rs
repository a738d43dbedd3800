//! `quorlock master`: embedded masters in the foreground, for tests and demonstrations.

use std::io;
use std::net::SocketAddr;

use quorlock_embedded::Master;
use signal_hook::consts::SIGTSTP;

use crate::arguments::MasterArguments;
use crate::ending::SYSTEM;
use crate::output::{JsonValue, Level, Output};
use crate::signals::{self, Happening, Signals};
use crate::terminal::{self, Terminal};

/// Serves until a signal ends it. Returns the exit code.
pub(crate) fn serve(arguments: &MasterArguments, signals: &Signals<()>, output: &Output) -> u8 {
    let mut masters = Vec::new();
    for port in &arguments.ports {
        match start(SocketAddr::new(arguments.bind, *port)) {
            Ok(master) => {
                master.model(|model| model.set_dialect(arguments.like));
                masters.push(master);
            }
            Err(error) => {
                output.message(Level::Error, &error);
                return SYSTEM;
            }
        }
    }
    let urls: Vec<_> = masters.iter().map(Master::url).collect();
    for url in &urls {
        let text = format!("a master for tests and demonstrations listens at {url}");
        output.record(Level::Info, "listening", &text, &[("url", JsonValue::Text(url))]);
    }
    let all = urls.join(",");
    let fields = [("masters", JsonValue::Text(all.as_str()))];
    output.record(Level::Info, "ready", &format!("QUORLOCK_MASTERS={all}"), &fields);
    let terminal = Terminal::open();
    loop {
        match signals.next(None) {
            // The terminal's stop key: all masters hang.
            Some(Happening::Signal(SIGTSTP)) if terminal.has_job_control() => terminal::stop_self(),
            Some(Happening::Signal(signal)) if signals::asks_to_end(signal) => {
                output.record(
                    Level::Info,
                    "ended",
                    &format!("{} ends the masters", signals::name(signal)),
                    &[],
                );
                return 0;
            }
            _ => {}
        }
    }
}

fn start(address: SocketAddr) -> Result<Master, String> {
    Master::bind(address).map_err(|error| match error.kind() {
        io::ErrorKind::AddrInUse => {
            format!("{address} is in use: choose another --port, or 0 for one that is free")
        }
        io::ErrorKind::PermissionDenied => format!("{address} may not be used: choose a --port above 1023"),
        io::ErrorKind::AddrNotAvailable => format!("{} is not an address of this machine", address.ip()),
        _ => format!("no master can be started at {address}: {error}"),
    })
}
