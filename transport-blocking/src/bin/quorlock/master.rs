//! `quorlock master`: embedded masters in the foreground, for tests and demonstrations.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use lexopt::{Arg, Parser};
use quorlock_blocking::embedded::Master;
use signal_hook::consts::SIGTSTP;

use crate::SYSTEM;
use crate::arguments::{Request, option_name, sentence, text, verbosity};
use crate::output::{JsonValue, Level, Output, Verbosity};
use crate::signals::{self, Happening, Signals};
use crate::terminal::{self, Terminal};

/// Everything that `quorlock master` was told.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct MasterArguments {
    address: IpAddr,
    /// Never empty.
    ports: Vec<u16>,
    verbosity: Verbosity,
    json: bool,
}

impl MasterArguments {
    /// What is information elsewhere is what this command was started for.
    pub(crate) fn output(&self) -> Output {
        let verbosity = match self.verbosity {
            Verbosity::Quiet => Verbosity::Quiet,
            Verbosity::Normal(more) => Verbosity::Normal(more.saturating_add(1)),
        };
        Output::new(verbosity, self.json)
    }
}

/// Reads what stands behind `master`. The error is a whole sentence.
pub(crate) fn parse(mut parser: Parser) -> Result<Request, String> {
    let mut address = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let (mut ports, mut quiet, mut more, mut json) = (Vec::new(), false, 0_u8, false);
    while let Some(argument) = parser.next().map_err(|error| sentence(&error))? {
        match argument {
            Arg::Short('h') | Arg::Long("help") => return Ok(Request::MasterHelp),
            Arg::Short('V') | Arg::Long("version") => return Ok(Request::Version),
            Arg::Long("port") => ports.push(port(&mut parser)?),
            Arg::Long("bind") => address = loopback(&mut parser)?,
            Arg::Short('q') | Arg::Long("quiet") => quiet = true,
            Arg::Short('v') | Arg::Long("verbose") => more = more.saturating_add(1),
            Arg::Long("json") => json = true,
            Arg::Value(_) => {
                return Err("master takes options only: write quorlock master --port PORT.".to_owned());
            }
            other => {
                let name = option_name(&other);
                return Err(format!(
                    "There is no option {name}; quorlock master --help lists what there is."
                ));
            }
        }
    }
    if ports.is_empty() {
        return Err(
            "No port: name one for each master with --port PORT; 0 takes one that is free.".to_owned()
        );
    }
    let verbosity = verbosity(quiet, more)?;
    Ok(Request::Master(MasterArguments { address, ports, verbosity, json }))
}

fn port(parser: &mut Parser) -> Result<u16, String> {
    let port = text("--port", parser)?.and_then(|text| text.parse().ok());
    port.ok_or_else(|| "--port needs a number from 0 to 65535.".to_owned())
}

fn loopback(parser: &mut Parser) -> Result<IpAddr, String> {
    let address = text("--bind", parser)?.and_then(|text| text.parse::<IpAddr>().ok());
    address.filter(IpAddr::is_loopback).ok_or_else(|| {
        "--bind needs an address of the loopback, such as 127.0.0.1 or ::1: these masters are for tests and \
         demonstrations on this machine, and others are not to depend on them."
            .to_owned()
    })
}

/// Serves until a signal asks for the end. The exit code.
pub(crate) fn serve(arguments: &MasterArguments, signals: &Signals<()>, output: &Output) -> u8 {
    let mut masters = Vec::new();
    for port in &arguments.ports {
        match start(SocketAddr::new(arguments.address, *port)) {
            Ok(master) => masters.push(master),
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
            // The terminal's stop key: all of them hang.
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
        io::ErrorKind::AddrNotAvailable => format!("{} is no address of this machine", address.ip()),
        _ => format!("no master can be started at {address}: {error}"),
    })
}
