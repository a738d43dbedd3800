//! The binary where nothing else is: in an empty root, with no network but its own loopback.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use super::binary::Binary;
use super::names::{KNOWN, Names};
use super::{VERSION, empty};
use crate::Outcome;
use crate::check::NotRun;
use crate::process::{program, run};

/// The word for what runs inside of the network namespace.
pub(super) const INSIDE: &str = "inside-of-a-network-namespace";

/// How to start a command as root in a network namespace: as root, as a user who may make such a
/// namespace, and with sudo.
const WAYS: [&[&str]; 3] = [
    &["unshare", "--net", "--"],
    &["unshare", "--map-root-user", "--net", "--"],
    &["sudo", "--non-interactive", "unshare", "--net", "--"],
];

/// The port of the master, in a namespace in which nothing else listens.
const PORT: &str = "7001";
/// A name that is only in the file of hosts.
const IN_THE_FILE: &str = "master-of-the-file";
/// A name that is nowhere.
const NOWHERE: &str = "nowhere.quorlock.test";

pub(super) fn check(binary: &Binary) -> Outcome {
    let root = empty("root")?;
    fs::copy(binary.file()?, root.join("quorlock"))?;
    // With sudo, the files in it will belong to root. In a folder of this user they can be removed.
    fs::create_dir(root.join("etc"))?;
    let Some(way) = WAYS.iter().find(|way| works(way)) else {
        let why = "the empty root needs unshare and ip, and root, sudo or user namespaces";
        return Err(NotRun(why.into()).into());
    };
    let myself = std::env::current_exe()?.to_string_lossy().into_owned();
    let words = [way.get(1..).unwrap_or_default(), &[&myself, "dist", INSIDE, &root.to_string_lossy()]];
    run(&mut program(way.first().unwrap_or(&""), &words.concat()))
}

/// Whether it can start a command that sets up the loopback.
fn works(way: &[&str]) -> bool {
    let Some((name, words)) = way.split_first() else { return false };
    let mut command = program(name, words);
    command.args(["ip", "link", "set", "lo", "up"]).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// A process that ends with this value.
struct Served(Child);

impl Drop for Served {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The checks in the network namespace.
pub(super) fn inside(root: &Path) -> Outcome {
    run(&mut program("ip", &["link", "set", "lo", "up"]))?;
    let version = format!("quorlock {VERSION}\n");
    expect(root, &["--version"], 0, &version)?;
    println!("it runs where no other file is");

    let mut serve = Command::new(root.join("quorlock"));
    let _master = Served(serve.args(["master", "-q", "--port", PORT]).spawn()?);
    let with = |host: &str| format!("redis://{host}:{PORT}");
    let run = |master: &str, words: &[&str], code| {
        let command: &[_] = &["job", "--", "/quorlock", "--version"];
        let words = [&["run", "-m", master], words, command].concat();
        expect(root, &words, code, if code == 0 { &version } else { "" })
    };
    run(&with("127.0.0.1"), &["-w", "20s"], 0)?;
    println!("it takes a lock there, and runs a program under it");

    fs::write(root.join("etc/hosts"), format!("127.0.0.1 {IN_THE_FILE}\n"))?;
    run(&with(IN_THE_FILE), &["-n"], 0)?;
    println!("it finds names in /etc/hosts");

    let names = Names::serve()?;
    fs::write(root.join("etc/resolv.conf"), "nameserver 127.0.0.1\n")?;
    run(&with(KNOWN), &["-n"], 0)?;
    let times = names.times_asked();
    if times == 0 {
        return Err("it took the lock without asking the name server".into());
    }
    run(&with(NOWHERE), &["-n"], 69)?;
    println!("it asks the name server of /etc/resolv.conf ({times} questions)");
    Ok(())
}

/// Runs the binary in the root, and compares its exit code and its output.
fn expect(root: &Path, words: &[&str], code: i32, out: &str) -> Outcome {
    let Output { status, stdout, stderr } =
        Command::new("chroot").arg(root).arg("/quorlock").args(words).output()?;
    if status.code() == Some(code) && stdout == out.as_bytes() {
        return Ok(());
    }
    let (stdout, stderr) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    let words = words.join(" ");
    Err(format!("quorlock {words}: {status}, and not {code} with {out:?}\n{stdout}{stderr}").into())
}
