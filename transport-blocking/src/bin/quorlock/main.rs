//! The command `quorlock`: runs a program under a lock that a quorum of Redis or Valkey masters granted; and serves embedded masters to
//! try that on.

mod arguments;
mod child;
mod duration;
mod lock;
mod master;
mod output;
mod run;
mod signals;
mod terminal;

use std::io::{self, Write};
use std::process::ExitCode;

use crate::arguments::{MASTERS_VARIABLE, Request, RunArguments};
use crate::output::{Level, Output, Verbosity};
use crate::run::Finish;
use crate::signals::Signals;
use crate::terminal::Terminal;

const HELP: &str = include_str!("help.txt");
const MASTER_HELP: &str = include_str!("help-master.txt");
/// Exit code: the system does not give what is needed. `EX_OSERR` of sysexits.h.
const SYSTEM: u8 = 71;

fn main() -> ExitCode {
    match arguments::parse(std::env::args_os(), std::env::var_os(MASTERS_VARIABLE)) {
        Ok(Request::Help) => print(HELP),
        Ok(Request::Version) => print(concat!("quorlock ", env!("CARGO_PKG_VERSION"), "\n")),
        Ok(Request::Run(arguments)) => {
            let output = Output::new(arguments.verbosity, arguments.json);
            match run_command(&arguments, &output) {
                Ok(Finish::Code(code)) => ExitCode::from(code),
                Ok(Finish::Interrupted { group }) => {
                    terminal::die_of_interrupt(group);
                    // Not reached unless the system refuses; 130 is how a shell would show it.
                    ExitCode::from(130)
                }
                Err(error) => no_signals(&error, &output),
            }
        }
        Ok(Request::MasterHelp) => print(MASTER_HELP),
        Ok(Request::Master(arguments)) => {
            let output = arguments.output();
            match Signals::install() {
                Ok(signals) => ExitCode::from(master::serve(&arguments, &signals, &output)),
                Err(error) => no_signals(&error, &output),
            }
        }
        Err(sentence) => {
            Output::new(Verbosity::Normal(0), false).message(Level::Error, &sentence);
            ExitCode::from(run::USAGE)
        }
    }
}

fn run_command(arguments: &RunArguments, output: &Output) -> io::Result<Finish> {
    let signals = Signals::install()?;
    let terminal = Terminal::open();
    Ok(match lock::begin(arguments, signals.notifier()) {
        Ok(lock) => run::run(arguments, lock, &signals, terminal, output),
        Err(refusal) => run::refuse(arguments, &refusal, output),
    })
}

fn no_signals(error: &io::Error, output: &Output) -> ExitCode {
    output.message(Level::Error, &format!("signals cannot be received: {error}"));
    ExitCode::from(SYSTEM)
}

/// Prints `text`. That nobody reads it, as in `quorlock --help | head -1`, is no failure.
fn print(text: &str) -> ExitCode {
    match io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => ExitCode::FAILURE,
        _ => ExitCode::SUCCESS,
    }
}
