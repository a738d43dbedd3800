//! A foreign client, and one in a separate process, which reads commands line by line.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

/// The longest wait for an answer.
const PATIENCE: Duration = Duration::from_secs(20);

/// A client with one lock. An outer error means that the experiment has failed.
pub(crate) trait Foreign {
    /// Its name and version, and those of its main dependency.
    fn name(&self) -> &str;

    /// Requests the lock. Returns its token, or why the client does not hold the lock.
    fn lock(&mut self, resource: &str, ttl: Duration) -> Result<Result<String, String>, String>;

    /// Releases the lock. Returns whether the client reports success.
    fn unlock(&mut self) -> Result<bool, String>;
}

/// A client in a separate process, which ends when this is dropped.
pub(crate) struct Client {
    name: String,
    process: Child,
    commands: ChildStdin,
    answers: Receiver<String>,
}

impl Client {
    pub(crate) fn start(command: &mut Command) -> Result<Self, String> {
        let mut process = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("{command:?}: {error}"))?;
        let (Some(commands), Some(output)) = (process.stdin.take(), process.stdout.take()) else {
            return Err("a process without pipes".into());
        };
        let (tell, answers) = mpsc::channel();
        thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if tell.send(line).is_err() {
                    return;
                }
            }
        });
        let mut client = Self { name: String::new(), process, commands, answers };
        client.name = client.answer()?;
        Ok(client)
    }

    fn ask(&mut self, command: &str) -> Result<Result<String, String>, String> {
        writeln!(self.commands, "{command}").map_err(|error| format!("{}: {error}", self.name))?;
        let answer = self.answer()?;
        let (word, rest) = answer.split_once(' ').unwrap_or((&answer, ""));
        Ok(if word == "refused" { Err(rest.to_owned()) } else { Ok(rest.to_owned()) })
    }

    fn answer(&self) -> Result<String, String> {
        self.answers.recv_timeout(PATIENCE).map_err(|error| format!("{}: no answer: {error}", self.name))
    }
}

impl Foreign for Client {
    fn name(&self) -> &str {
        &self.name
    }

    fn lock(&mut self, resource: &str, ttl: Duration) -> Result<Result<String, String>, String> {
        self.ask(&format!("lock {resource} {}", ttl.as_millis()))
    }

    fn unlock(&mut self) -> Result<bool, String> {
        self.ask("unlock").map(|answer| answer.is_ok())
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // This fails only if the process has ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
