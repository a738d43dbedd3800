//! One scripted master: a tiny Redis whose faults a test switches.

use std::collections::BTreeMap;
use std::time::Duration;

use quorlock_core::Instant;

use super::resp;

/// What becomes of an attempt to connect.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reach {
    Accepts,
    Refuses,
    /// Neither accepts nor refuses.
    Ignores,
}

/// What becomes of the commands on connections that stand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Flow {
    Free,
    /// The process is stopped: commands stay in its buffer.
    Stopped,
    /// Commands are executed, and the replies wait for [`World::deliver`](super::World::deliver).
    RepliesHeld,
    /// Whatever is written vanishes.
    BlackHole,
}

#[derive(Clone, Debug)]
pub struct Key {
    pub value: String,
    pub is_list: bool,
    pub expires: Option<Instant>,
}

/// What a connection is, seen from the server.
#[derive(Clone, Debug, Default)]
pub struct Session {
    pub resp3: bool,
    pub authenticated: bool,
}

#[derive(Clone, Debug)]
pub struct Master {
    pub reach: Reach,
    pub flow: Flow,
    /// How long a reply travels.
    pub delay: Duration,
    pub run_id: String,
    pub role: &'static str,
    pub knows_hello: bool,
    pub password: Option<&'static str>,
    /// Errors by command: `SET`, `UNDO`, `INFO`, …
    pub errors: BTreeMap<&'static str, String>,
    pub keys: BTreeMap<String, Key>,
    scripts: BTreeMap<String, &'static str>,
    /// Every command that was executed: when, its name, and the token that it carried.
    pub executed: Vec<(Instant, &'static str, String)>,
}

impl Master {
    pub fn new(place: usize) -> Self {
        Self {
            reach: Reach::Accepts,
            flow: Flow::Free,
            delay: Duration::ZERO,
            run_id: format!("{place:040x}"),
            role: "master",
            knows_hello: true,
            password: None,
            errors: BTreeMap::new(),
            keys: BTreeMap::new(),
            scripts: BTreeMap::new(),
            executed: Vec::new(),
        }
    }

    /// As after SCRIPT FLUSH.
    pub fn forget_scripts(&mut self) {
        self.scripts.clear();
    }

    pub fn hold_by_another(&mut self, key: &str, until: Option<Instant>) {
        let value = "somebody else's token".to_owned();
        self.keys.insert(key.to_owned(), Key { value, is_list: false, expires: until });
    }

    pub fn fails(&mut self, command: &'static str, text: &str) {
        self.errors.insert(command, text.to_owned());
    }

    pub fn mends(&mut self, command: &'static str) {
        self.errors.remove(command);
    }

    pub fn count(&self, command: &str) -> usize {
        self.executed.iter().filter(|(_, name, _)| *name == command).count()
    }

    /// The tokens that came with a command, in the order of their coming.
    pub fn tokens(&self, command: &str) -> Vec<&str> {
        let of = self.executed.iter().filter(|(_, name, _)| *name == command);
        of.map(|(_, _, token)| token.as_str()).collect()
    }

    pub fn value(&self, key: &str, now: Instant) -> Option<&str> {
        self.keys.get(key).filter(|key| key.expires.is_none_or(|at| now < at)).map(|key| key.value.as_str())
    }

    pub fn execute(&mut self, session: &mut Session, command: &[Vec<u8>], now: Instant) -> Vec<u8> {
        let words: Vec<String> =
            command.iter().map(|word| String::from_utf8_lossy(word).into_owned()).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let name = self.name_of(&words);
        let token = match (name, words.as_slice()) {
            ("SET", words) => words[2],
            ("EXTEND" | "RELEASE" | "UNDO", words) => words[4],
            _ => "",
        };
        self.executed.push((now, name, token.to_owned()));
        if let Some(text) = self.errors.get(name) {
            return resp::error(text);
        }
        let greets = matches!(name, "HELLO" | "AUTH");
        if self.password.is_some() && !session.authenticated && !greets {
            return resp::error("NOAUTH Authentication required.");
        }
        self.keys.retain(|_, key| key.expires.is_none_or(|at| now < at));
        match (name, words.as_slice()) {
            ("HELLO", words) => self.hello(session, words),
            ("AUTH", words) => self.authenticate(session, words.last().unwrap()),
            ("SET", [_, key, token, "NX", "PX", ttl]) => {
                if self.keys.contains_key(*key) {
                    return resp::null(session.resp3);
                }
                let expires = Some(now + Duration::from_millis(ttl.parse().unwrap()));
                let entry = Key { value: (*token).to_owned(), is_list: false, expires };
                self.keys.insert((*key).to_owned(), entry);
                resp::ok()
            }
            ("CLIENT" | "SELECT", _) => resp::ok(),
            ("INFO", [_, "server"]) => resp::bulk(&format!("# Server\r\nrun_id:{}\r\n", self.run_id)),
            ("INFO", _) => resp::bulk(&format!("# Replication\r\nrole:{}\r\n", self.role)),
            ("SCRIPT", [_, "LOAD", text]) => resp::bulk(&self.load(text)),
            ("NOSCRIPT", _) => resp::error("NOSCRIPT No matching script. Please use EVAL."),
            (_, words) => self.script(name, words, now),
        }
    }

    /// A script goes by what it does, everything else by the command's name.
    fn name_of(&mut self, words: &[&str]) -> &'static str {
        match words[0] {
            "EVALSHA" => self.scripts.get(words[1]).copied().unwrap_or("NOSCRIPT"),
            "EVAL" => {
                self.load(words[1]);
                kind_of(words[1])
            }
            other => ["HELLO", "AUTH", "SET", "CLIENT", "SELECT", "INFO", "SCRIPT"]
                .into_iter()
                .find(|name| *name == other)
                .unwrap_or_else(|| panic!("a command that nobody expects: {other}")),
        }
    }

    fn load(&mut self, text: &str) -> String {
        let sha = sha1_smol::Sha1::from(text).digest().to_string();
        self.scripts.insert(sha.clone(), kind_of(text));
        sha
    }

    fn hello(&mut self, session: &mut Session, words: &[&str]) -> Vec<u8> {
        if !self.knows_hello {
            return resp::error("ERR unknown command `HELLO`, with args beginning with: `3`");
        }
        if let Some(place) = words.iter().position(|word| *word == "AUTH") {
            let refused = self.authenticate(session, words[place + 2]);
            if refused.starts_with(b"-") {
                return refused;
            }
        } else if self.password.is_some() {
            return resp::error("NOAUTH HELLO must be called with the client already authenticated");
        }
        session.resp3 = true;
        format!(
            "%2\r\n$5\r\nproto\r\n:3\r\n$4\r\nrole\r\n{}",
            String::from_utf8(resp::bulk(self.role)).unwrap()
        )
        .into_bytes()
    }

    fn authenticate(&mut self, session: &mut Session, password: &str) -> Vec<u8> {
        if self.password.is_some_and(|wanted| wanted != password) {
            return resp::error("WRONGPASS invalid username-password pair or user is disabled.");
        }
        session.authenticated = true;
        resp::ok()
    }

    fn script(&mut self, name: &str, words: &[&str], now: Instant) -> Vec<u8> {
        let (key, token) = (words[3], words[4]);
        let Some(held) = self.keys.get_mut(key) else { return resp::integer(0) };
        if held.is_list {
            let wrong_type = "WRONGTYPE Operation against a key holding the wrong kind of value";
            return if name == "UNDO" { resp::error(wrong_type) } else { resp::integer(0) };
        }
        if held.value == token {
            if name == "EXTEND" {
                let end = now + Duration::from_millis(words[5].parse().unwrap());
                held.expires = held.expires.map(|at| at.max(end));
            } else {
                self.keys.remove(key);
            }
            return resp::integer(1);
        }
        if name != "UNDO" {
            return resp::integer(0);
        }
        let pttl = held.expires.map_or(-1, |at| i64::try_from(at.since(now).as_millis()).unwrap());
        let sha = sha1_smol::Sha1::from(&held.value).digest().to_string();
        [b"*2\r\n".to_vec(), resp::bulk(&sha), resp::integer(pttl)].concat()
    }
}

fn kind_of(text: &str) -> &'static str {
    if text.contains("PEXPIRE") {
        "EXTEND"
    } else if text.contains("sha1hex") {
        "UNDO"
    } else {
        "RELEASE"
    }
}
