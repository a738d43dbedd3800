//! The greeting on a new connection: our login and name, the database, the server's identity, and
//! the scripts that most locks need, in one write.
//!
//! It pipelines `HELLO 3 [AUTH user password] [SETNAME name]`, `SELECT`, `INFO server`, `INFO
//! replication`, `CLIENT SETINFO` with our name and version, a look for the commands
//! that locks need, and `SCRIPT LOAD` for three scripts.
//! The restart guard adds a fourth script, `INFO memory` and, after the replies, a check of the
//! marker, which begins a quarantine as soon as the master is back. Without the guard, a `GET` of
//! the marker looks whether other clients use it. A server that does not know HELLO (before Redis
//! 6) or does not allow it (an ACL, a proxy) gets a second flight with `AUTH` and `CLIENT SETNAME`,
//! and RESP2 from then on.

use std::collections::VecDeque;
use std::time::Duration;

use super::cluster::{self, encode_forget, marker_of};
use super::commands::{self, Lacking};
use super::info::{field, look_for_eviction, uptime};
use super::replies::read_standing;
use super::wording::NativeRelease;
use super::{Warning, tracking};
use crate::endpoint::{Endpoint, Login};
use crate::protocol::{Cause, ClusterFault, Config, Fleet, SentinelFault};
use crate::wire::{
    self, ACQUIRE_GUARDED, ACQUIRE_REPLICATED, ATTEND, ATTEND_REPLICATED, Decimal, Dialect, EXTEND,
    EXTEND_GUARDED, EXTEND_REPLICATED, RELEASE, Reply, Script, ScriptSet, ServerError, UNDO,
};

/// A server's run id: 40 characters, new at every start of the server (`INFO server`).
pub(crate) type RunId = [u8; 40];

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Step {
    Hello,
    Auth,
    SetName,
    Select,
    /// In a cluster: whether the node owns the slot.
    Owner,
    /// The restart guard's marker is deleted, because the slot is being moved.
    Forget,
    InfoServer,
    InfoReplication,
    InfoMemory,
    SetInfo,
    /// Which commands the server knows, and whether it knows EVAL.
    Commands,
    /// Whether the server knows EVALSHA.
    BySha,
    Load(&'static Script),
    Attend(Fleet),
    /// Without the restart guard: whether there is a marker.
    Marker,
}

/// The handshake's progress on one connection.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Handshake {
    awaited: VecDeque<Step>,
    /// The dialect of the next reply.
    pub(super) dialect: Dialect,
    /// HELLO failed, and the replies to the commands pipelined behind it do not count.
    without_hello: bool,
    /// The server's identity, if it reported one.
    pub(super) run_id: Option<RunId>,
    /// The server's uptime, if it reported one.
    pub(super) uptime: Option<Duration>,
    /// The commands that the server does not know.
    pub(super) lacking: Lacking,
    /// The server's own command for releases, according to its version.
    pub(super) native_release: Option<NativeRelease>,
    /// What the operator should know about the server.
    pub(super) warnings: Vec<Warning>,
    /// The scripts that the server has.
    pub(super) loaded: ScriptSet,
    /// How long the master will not vote yet, if it reported so.
    pub(super) quarantine: Option<Duration>,
    /// Whether it reported that not all of its replicas follow.
    pub(super) alone: bool,
    /// The marker has yet to be checked.
    to_attend: Option<Fleet>,
    /// HELLO reported that it is a replica.
    is_replica: bool,
    /// The login.
    login: Option<Login>,
    /// A newer login, to be used when the greeting is over.
    pub(super) newer_login: Option<Login>,
}

/// What follows from a reply.
#[derive(PartialEq, Eq, Debug)]
pub(crate) enum Progress {
    /// More replies are outstanding.
    Pending,
    /// The connection may be used.
    Ready,
    /// The reply names another node of the cluster, which must be asked.
    Elsewhere,
}

impl Handshake {
    /// Writes the first flight.
    pub(crate) fn begin(
        config: &Config,
        endpoint: &Endpoint,
        login: Option<Login>,
        out: &mut Vec<u8>,
    ) -> Self {
        let mut hello: Vec<&[u8]> = vec![b"HELLO", b"3"];
        if let Some(login) = &login {
            let user = login.user().unwrap_or("default");
            hello.extend([b"AUTH".as_slice(), user.as_bytes(), login.password().as_bytes()]);
        }
        if let Some(name) = &config.client_name {
            hello.extend([b"SETNAME".as_slice(), name.as_bytes()]);
        }
        wire::encode(out, &hello);
        let mut handshake = Self {
            awaited: VecDeque::from([Step::Hello]),
            dialect: Dialect::Resp3,
            without_hello: false,
            run_id: None,
            uptime: None,
            lacking: Lacking::default(),
            native_release: None,
            warnings: Vec::new(),
            loaded: ScriptSet::default(),
            quarantine: None,
            alone: false,
            to_attend: None,
            is_replica: false,
            login,
            newer_login: None,
        };
        handshake.ask_the_rest(config, endpoint, out);
        handshake
    }

    /// Takes one reply; the second flight goes to `out`.
    pub(crate) fn reply(
        &mut self,
        reply: &Reply<'_>,
        config: &Config,
        endpoint: &Endpoint,
        out: &mut Vec<u8>,
    ) -> Result<Progress, Cause> {
        let step = self.awaited.pop_front().ok_or(Cause::UnexpectedReply)?;
        match (step, reply) {
            (_, _) if self.without_hello && self.dialect == Dialect::Resp3 => {}
            (Step::Hello, Reply::Error(text)) => {
                self.refused_hello(ServerError::classify(text), config, endpoint)?;
            }
            (Step::Hello, hello) => self.read_hello(hello, endpoint)?,
            (Step::Auth, Reply::Error(text)) => {
                // Redis 5 answers a wrong password with a plain ERR.
                return Err(match ServerError::classify(text) {
                    ServerError::Other(_) => config.refused_login(endpoint, ServerError::WrongPass),
                    error => refused(error, config, endpoint),
                });
            }
            // `CLIENT SETINFO` is optional: servers before 7.2 do not know it.
            (Step::Auth | Step::SetInfo | Step::Forget, _) => {}
            (Step::Owner, Reply::Error(text)) => {
                let error = ServerError::classify(text);
                match cluster::fault(error) {
                    Some(ClusterFault::Moved) => return Ok(Progress::Elsewhere),
                    // The node is the owner, and has no key with the tag's name.
                    Some(ClusterFault::SlotIsMoving) if self.to_attend.is_some() => {
                        encode_forget(endpoint, out);
                        self.awaited.push_back(Step::Forget);
                    }
                    Some(ClusterFault::SlotIsMoving) => {}
                    // A key with that name exists, and the node owns it.
                    None if error == ServerError::WrongType => {}
                    None if error == ServerError::UnknownCommand => {
                        return Err(self.lacking.cause_of(text, None));
                    }
                    fault => return Err(fault.map_or(Cause::Server(error), Cause::Cluster)),
                }
            }
            (Step::Owner, _) if self.is_replica => return Err(Cause::Replica),
            (Step::Owner, _) => {}
            (Step::SetName, Reply::Error(_)) => self.warnings.push(Warning::ClientDenied),
            (Step::SetName, _) => {}
            (Step::Select, Reply::Error(text)) => {
                return Err(Cause::Server(ServerError::classify(text)));
            }
            (Step::Select, _) => {}
            (Step::InfoServer | Step::InfoReplication | Step::InfoMemory, Reply::Error(text)) => {
                self.denied(ServerError::classify(text), Warning::InfoDenied)?;
            }
            (Step::InfoServer, Reply::Bulk(info)) => {
                self.run_id = field(info, b"run_id").and_then(|id| id.try_into().ok());
                self.uptime = uptime(info);
                let redis = field(info, b"redis_version");
                self.native_release = NativeRelease::of(redis, field(info, b"valkey_version"));
                self.warnings.extend(tracking::echoes(redis));
            }
            (Step::InfoReplication, Reply::Bulk(info)) => {
                if field(info, b"role").is_some_and(|role| role != b"master") {
                    return Err(Cause::Replica);
                }
                let has_replicas = field(info, b"connected_slaves").is_some_and(|replicas| replicas != b"0");
                if config.fleet.is_some() && has_replicas && endpoint.replicas().is_none() {
                    self.warnings.push(Warning::UndeclaredReplicas);
                }
            }
            (Step::BySha, reply) => commands::check_script_command("EVALSHA", reply)?,
            (Step::Commands, reply) => {
                commands::check_script_command("EVAL", reply)?;
                self.lacking = Lacking::read(reply);
                if let Some(name) = self.lacking.for_plain_lock() {
                    return Err(Cause::LacksCommand(name));
                }
            }
            (Step::InfoMemory, Reply::Bulk(info)) => look_for_eviction(info, config)?,
            (Step::Load(_), Reply::Error(text)) => {
                self.denied(ServerError::classify(text), Warning::ScriptLoadDenied)?;
            }
            (Step::Load(script), loaded) if loaded.as_bytes() == Some(script.sha1_hex.as_bytes()) => {
                self.loaded.insert(script);
            }
            // Loading is optional: the script's first use sends its text.
            (Step::Load(_), _) => {}
            (Step::Attend(_), Reply::Error(text)) => {
                let error = ServerError::classify(text);
                // The marker has moved to another node. Without the marker nothing is granted here.
                match cluster::tag_of(endpoint).and_then(|_| cluster::fault(error)) {
                    Some(ClusterFault::SlotIsMoving) => {}
                    Some(ClusterFault::Moved) => return Ok(Progress::Elsewhere),
                    None if error == ServerError::UnknownCommand => {
                        return Err(self.lacking.cause_of(text, Some(&ATTEND)));
                    }
                    fault => return Err(fault.map_or(Cause::Server(error), Cause::Cluster)),
                }
            }
            (Step::Attend(_), Reply::Integer(1)) => {}
            (Step::Marker, Reply::Bulk(_)) => self.warnings.push(Warning::NoRestartGuard),
            // Without the permission, locks work as well: there is only no warning.
            (Step::Marker, Reply::Null | Reply::Error(_)) => {}
            (Step::Attend(fleet), Reply::Array(fields)) => match read_standing(fields, fleet) {
                Some(Cause::Quarantined { remaining }) => self.quarantine = Some(remaining),
                Some(Cause::Alone { .. }) => self.alone = true,
                cause => return Err(cause.unwrap_or(Cause::UnexpectedReply)),
            },
            (
                Step::InfoServer | Step::InfoReplication | Step::InfoMemory | Step::Attend(_) | Step::Marker,
                _,
            ) => return Err(Cause::UnexpectedReply),
        }
        if !self.awaited.is_empty() {
            return Ok(Progress::Pending);
        }
        if self.without_hello && self.dialect == Dialect::Resp3 {
            self.dialect = Dialect::Resp2;
            self.second_flight(config, endpoint, out);
            return Ok(Progress::Pending);
        }
        if let Some(fleet) = self.to_attend.take() {
            self.attend(fleet, endpoint, out);
            return Ok(Progress::Pending);
        }
        Ok(Progress::Ready)
    }

    /// Whether the server has answered nothing yet.
    pub(super) fn is_unanswered(&self) -> bool {
        self.awaited.front() == Some(&Step::Hello)
    }

    fn second_flight(&mut self, config: &Config, endpoint: &Endpoint, out: &mut Vec<u8>) {
        if let Some(login) = &self.login {
            encode_auth(login, self.dialect, out);
            self.awaited.push_back(Step::Auth);
        }
        if let Some(name) = &config.client_name {
            wire::encode(out, &[b"CLIENT", b"SETNAME", name.as_bytes()]);
            self.awaited.push_back(Step::SetName);
        }
        self.ask_the_rest(config, endpoint, out);
    }

    fn ask_the_rest(&mut self, config: &Config, endpoint: &Endpoint, out: &mut Vec<u8>) {
        if cluster::tag_of(endpoint).is_some() {
            wire::encode(out, &[b"GET", &endpoint.key_of(b"")]);
            self.awaited.push_back(Step::Owner);
        }
        if endpoint.database() != 0 {
            wire::encode(out, &[b"SELECT", endpoint.database().to_string().as_bytes()]);
            self.awaited.push_back(Step::Select);
        }
        wire::encode(out, &[b"INFO", b"server"]);
        wire::encode(out, &[b"INFO", b"replication"]);
        wire::encode(out, &[b"CLIENT", b"SETINFO", b"LIB-NAME", b"quorlock"]);
        wire::encode(out, &[b"CLIENT", b"SETINFO", b"LIB-VER", env!("CARGO_PKG_VERSION").as_bytes()]);
        self.awaited.extend([Step::InfoServer, Step::InfoReplication, Step::SetInfo, Step::SetInfo]);
        commands::ask(out);
        self.awaited.extend([Step::Commands, Step::BySha]);
        let fleet = config.fleet_at(endpoint);
        let are_declared = fleet.is_some_and(|fleet| fleet.replicas.is_some());
        let (acquire, extend) = if are_declared {
            (&ACQUIRE_REPLICATED, &EXTEND_REPLICATED)
        } else {
            (&ACQUIRE_GUARDED, if fleet.is_some() { &EXTEND_GUARDED } else { &EXTEND })
        };
        for script in [&RELEASE, extend, &UNDO] {
            self.load(script, out);
        }
        if let Some(fleet) = fleet {
            self.load(acquire, out);
            wire::encode(out, &[b"INFO", b"memory"]);
            self.awaited.push_back(Step::InfoMemory);
            self.to_attend = Some(fleet);
        } else {
            wire::encode(out, &[b"GET", &marker_of(endpoint)]);
            self.awaited.push_back(Step::Marker);
        }
    }

    /// Is only sent when the database is known to be selected: the script may write the marker.
    fn attend(&mut self, fleet: Fleet, endpoint: &Endpoint, out: &mut Vec<u8>) {
        let [longest, marked] = [fleet.longest_ttl.as_millis(), fleet.marked()].map(Decimal::new);
        let script = if fleet.replicas.is_some() { &ATTEND_REPLICATED } else { &ATTEND };
        let (text, marker) = (script.text.as_bytes(), marker_of(endpoint));
        wire::encode(out, &[b"EVAL", text, b"1", &marker, longest.as_bytes(), marked.as_bytes()]);
        self.awaited.push_back(Step::Attend(fleet));
    }

    fn load(&mut self, script: &'static Script, out: &mut Vec<u8>) {
        wire::encode(out, &[b"SCRIPT", b"LOAD", script.text.as_bytes()]);
        self.awaited.push_back(Step::Load(script));
    }

    fn read_hello(&mut self, hello: &Reply<'_>, endpoint: &Endpoint) -> Result<(), Cause> {
        let has_tag = cluster::tag_of(endpoint).is_some();
        match hello.field("mode").and_then(|mode| mode.as_bytes()) {
            Some(b"sentinel") => return Err(Cause::Sentinel(SentinelFault::IsSentinel)),
            Some(b"cluster") if !has_tag => return Err(Cause::Cluster(ClusterFault::IsNode)),
            // A server that reports no mode, or does not know HELLO, is trusted to be what the URL
            // says.
            Some(mode) if has_tag && mode != b"cluster" => {
                return Err(Cause::Cluster(ClusterFault::IsNoNode));
            }
            _ => {}
        }
        let role = hello.field("role").ok_or(Cause::UnexpectedReply)?;
        self.is_replica = role.as_bytes() != Some(b"master");
        // In a cluster, a replica is first asked which node is the primary.
        if self.is_replica && !has_tag { Err(Cause::Replica) } else { Ok(()) }
    }

    fn refused_hello(
        &mut self,
        error: ServerError,
        config: &Config,
        endpoint: &Endpoint,
    ) -> Result<(), Cause> {
        match error {
            // NOPROTO, and any other answer of a proxy to a command that it does not know.
            ServerError::UnknownCommand | ServerError::Other(_) => {}
            // The server requires the password before it checks whether it knows the command.
            ServerError::NoAuth if self.login.is_some() => {}
            ServerError::NoPerm => self.warnings.push(Warning::HelloDenied),
            error => return Err(refused(error, config, endpoint)),
        }
        self.without_hello = true;
        Ok(())
    }

    /// A refused command is a warning, whatever words a proxy has for that; an error that says
    /// something about the server (LOADING, NOAUTH, …) ends the handshake.
    fn denied(&mut self, error: ServerError, warning: Warning) -> Result<(), Cause> {
        match error {
            ServerError::NoPerm | ServerError::UnknownCommand | ServerError::Other(_) => {
                if !self.warnings.contains(&warning) {
                    self.warnings.push(warning);
                }
                Ok(())
            }
            error => Err(Cause::Server(error)),
        }
    }
}

/// `AUTH` in this dialect. Redis 5 has no users, and accepts no second argument.
pub(super) fn encode_auth(login: &Login, dialect: Dialect, out: &mut Vec<u8>) {
    let password = login.password().as_bytes();
    match (login.user(), dialect) {
        (Some(user), _) => wire::encode(out, &[b"AUTH", user.as_bytes(), password]),
        (None, Dialect::Resp3) => wire::encode(out, &[b"AUTH", b"default", password]),
        (None, Dialect::Resp2) => wire::encode(out, &[b"AUTH", password]),
    }
}

/// Why the greeting failed: because of its login, or something else.
fn refused(error: ServerError, config: &Config, endpoint: &Endpoint) -> Cause {
    match error {
        ServerError::WrongPass | ServerError::NoAuth | ServerError::PasswordNotSet => {
            config.refused_login(endpoint, error)
        }
        error => Cause::Server(error),
    }
}
