//! Finds out what this user may do on a master, without doing it.
//!
//! `ACL DRYRUN` reports it if the user may call it (Redis 7). If that is denied, a script calls the
//! server's `redis.acl_check_cmd`, which any user that may run scripts may call (Redis 7).
//! Otherwise the commands are queued after MULTI, which checks permissions, and then discarded. A
//! server without ACLs allows every command that it knows; there, commands that only read are sent,
//! to see which ones it knows.

use quorlock_core::{Cause, Discovery, Endpoint, Fleet, QueuePlace, Resource, ServerError};

use crate::asking::{Conversation, Reply, Words, words};

/// What permissions are needed for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    /// Locks of any kind.
    Locks,
    /// Several resources at once.
    Several,
    /// Readers and groups, and writers that wait for them.
    Readers,
    /// Semaphores.
    Permits,
    /// Waiting in one queue with other processes.
    FairWaiting,
    /// Fencing tokens.
    Fencing,
    /// The restart guard.
    RestartGuard,
    /// Notifications of the end of a lock.
    WakeUps,
}

/// A command that a use needs.
#[derive(Debug)]
pub(super) struct Need {
    pub(super) of: Use,
    pub(super) command: Words,
}

/// Whether a command is allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Allowed {
    Yes,
    No,
    /// The server does not know it.
    NoSuchCommand,
}

/// How the permissions were found out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    DryRun,
    Script,
    Queue,
    /// The server has no lists of permissions.
    NoLists,
}

/// The permissions of this user.
#[derive(Debug)]
pub(super) struct Permissions {
    /// The user's name, if the server reports it.
    pub(super) user: Option<String>,
    /// How they were found out; `None` if they were not.
    pub(super) way: Option<Way>,
    /// Needed commands that are denied or unknown.
    pub(super) lacking: Vec<Lack>,
}

/// A needed command that this user cannot send.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Lack {
    of: Use,
    /// False if the server does not know it.
    is_known: bool,
    pub(super) name: String,
    /// The key that it would access, or the subcommand of a command without a key.
    pub(super) on: Option<String>,
}

impl Permissions {
    /// The commands that a use lacks because they are denied, or because the server does not know
    /// them, such as `EXISTS, MGET app:job`. `None` if there are none.
    pub(super) fn lacking_for(&self, of: Use, is_known: bool) -> Option<String> {
        let mut of_keys: Vec<(Option<&str>, Vec<&str>)> = Vec::new();
        for lack in self.lacking.iter().filter(|lack| lack.of == of && lack.is_known == is_known) {
            let on = lack.on.as_deref();
            match of_keys.iter_mut().find(|(known, _)| *known == on) {
                Some((_, names)) => names.push(&lack.name),
                None => of_keys.push((on, vec![&lack.name])),
            }
        }
        let told = |(on, names): &(Option<&str>, Vec<&str>)| {
            let on = on.map(|on| format!(" {on}")).unwrap_or_default();
            format!("{}{on}", names.join(", "))
        };
        let told: Vec<_> = of_keys.iter().map(told).collect();
        (!told.is_empty()).then(|| told.join("; "))
    }
}

/// The commands that each kind of lock sends about this resource, each once.
pub(super) fn needs(master: &Endpoint, resource: &Resource) -> Vec<Need> {
    let [key, marker] = [resource.key(), Fleet::MARKER.as_bytes()].map(|key| master.key_of(key).into_owned());
    let names = [resource.counter_key(), resource.want_key(), resource.seat_key(0)];
    let [fence, want, seat] = names.map(|key| master.key_of(&key).into_owned());
    let key = key.as_slice();
    let mut needs = Vec::new();
    let mut need = |of: Use, name: &str, key: &[u8], more: &[&str]| {
        let mut command = words(&[name]);
        command.push(key.to_vec());
        command.extend(words(more));
        needs.push(Need { of, command });
    };
    for (name, more) in [("SET", &["x", "NX", "PX", "1"][..]), ("PEXPIRE", &["1"])] {
        need(Use::Locks, name, key, more);
        need(Use::Permits, name, &seat, more);
    }
    for name in ["GET", "DEL", "PTTL"] {
        need(Use::Locks, name, key, &[]);
        need(Use::Permits, name, &seat, &[]);
    }
    for name in ["EXISTS", "MGET"] {
        need(Use::Several, name, key, &[]);
        need(Use::Readers, name, key, &[]);
        need(Use::Permits, name, &seat, &[]);
    }
    need(Use::Readers, "APPEND", key, &["x"]);
    need(Use::Readers, "SETRANGE", key, &["1", "x"]);
    need(Use::Readers, "SET", &want, &["x", "PX", "1"]);
    let place = resource.place_key(QueuePlace::from_bytes([0; QueuePlace::BYTES]));
    let [queue, place] = [resource.queue_key(), place].map(|key| master.key_of(&key).into_owned());
    for (name, more) in [
        ("ZADD", &["1", "x"][..]),
        ("ZRANGE", &["0", "0"]),
        ("ZREM", &["x"]),
        ("PEXPIRE", &["1"]),
        ("DEL", &[]),
    ] {
        need(Use::FairWaiting, name, &queue, more);
    }
    for (name, more) in
        [("SET", &["x", "PX", "1"][..]), ("GET", &[]), ("DEL", &[]), ("PTTL", &[]), ("PEXPIRE", &["1"])]
    {
        need(Use::FairWaiting, name, &place, more);
    }
    for (of, key) in [(Use::Fencing, &fence[..]), (Use::RestartGuard, &marker[..])] {
        need(of, "GET", key, &[]);
        need(of, "SET", key, &["x"]);
    }
    if matches!(master.discovery(), Some(Discovery::Cluster { .. })) {
        need(Use::Locks, "GET", &master.key_of(b""), &[]);
        need(Use::RestartGuard, "DEL", &marker, &[]);
    }
    if master.replicas().is_some_and(|replicas| replicas > 0) {
        needs.push(Need { of: Use::Locks, command: words(&["WAIT", "0", "1"]) });
    }
    let script = "return 1";
    let digest = "e0e1f9fabfc9d4800c877a703b823ac0578ff8db";
    for (of, command) in [
        (Use::Locks, &["EVAL", script, "0"][..]),
        (Use::Locks, &["EVALSHA", digest, "0"]),
        (Use::Readers, &["TIME"]),
        (Use::RestartGuard, &["TIME"]),
        (Use::RestartGuard, &["INFO", "replication"]),
        (Use::WakeUps, &["CLIENT", "TRACKING", "ON", "NOLOOP"]),
    ] {
        needs.push(Need { of, command: words(command) });
    }
    needs
}

/// Finds out which of `needs` this user may not send, and changes nothing.
pub(super) fn look(master: &mut Conversation, needs: &[Need]) -> Result<Permissions, Cause> {
    let (user, way, allowed) = match master.ask(words(&["ACL", "WHOAMI"]))? {
        Reply::Error(ServerError::UnknownCommand) => (None, Some(Way::NoLists), sent(master, needs)?),
        answer => {
            let user = answer.text();
            let (way, allowed) = match find_out(master, user.as_deref(), needs)? {
                Some((way, allowed)) => (Some(way), allowed),
                None => (None, Vec::new()),
            };
            (user, way, allowed)
        }
    };
    let lacking = needs.iter().zip(allowed).filter_map(|(need, allowed)| lack(need, allowed)).collect();
    Ok(Permissions { user, way, lacking })
}

fn lack(need: &Need, allowed: Allowed) -> Option<Lack> {
    let word = |place: usize| need.command.get(place).map(|word| String::from_utf8_lossy(word).into_owned());
    let name = word(0)?;
    let has_no_key = ["EVAL", "EVALSHA", "TIME"].contains(&name.as_str());
    let on = word(1).filter(|_| !has_no_key);
    let is_known = allowed != Allowed::NoSuchCommand;
    (allowed != Allowed::Yes).then_some(Lack { of: need.of, is_known, name, on })
}

fn find_out(
    master: &mut Conversation,
    user: Option<&str>,
    needs: &[Need],
) -> Result<Option<(Way, Vec<Allowed>)>, Cause> {
    let mut may_know_checks = true;
    if let Some(user) = user {
        match dry_run(master, user, needs)? {
            DryRun::Told(allowed) => return Ok(Some((Way::DryRun, allowed))),
            DryRun::Unknown => may_know_checks = false,
            DryRun::Denied => {}
        }
    }
    if may_know_checks {
        if let Some(allowed) = by_script(master, needs)? {
            return Ok(Some((Way::Script, allowed)));
        }
    }
    Ok(queued(master, needs)?.map(|allowed| (Way::Queue, allowed)))
}

/// The result of a dry run.
enum DryRun {
    Told(Vec<Allowed>),
    /// The server does not know it: it is older than 7.0, and has no check for scripts either.
    Unknown,
    /// This user may not call it.
    Denied,
}

/// Checks the commands with ACL DRYRUN.
fn dry_run(master: &mut Conversation, user: &str, needs: &[Need]) -> Result<DryRun, Cause> {
    let try_out = |need: &Need| [words(&["ACL", "DRYRUN", user]), need.command.clone()].concat();
    let answers = master.ask_all(&needs.iter().map(try_out).collect::<Vec<_>>())?;
    let mut allowed = Vec::new();
    for answer in answers {
        allowed.push(match answer {
            Reply::Text(text) if text == b"OK" => Allowed::Yes,
            Reply::Text(_) => Allowed::No,
            Reply::Error(ServerError::UnknownCommand) => return Ok(DryRun::Unknown),
            // A user with the permission gets a plain ERR for commands that do not exist.
            Reply::Error(ServerError::Other(_)) => Allowed::NoSuchCommand,
            _ => return Ok(DryRun::Denied),
        });
    }
    Ok(DryRun::Told(allowed))
}

/// Checks the commands in a script, which executes none of them.
fn by_script(master: &mut Conversation, needs: &[Need]) -> Result<Option<Vec<Allowed>>, Cause> {
    const SCRIPT: &str = "\
if not redis.acl_check_cmd then return false end
local told, at = {}, 1
while ARGV[at] do
  local last = at + tonumber(ARGV[at])
  local known, allowed = pcall(redis.acl_check_cmd, unpack(ARGV, at + 1, last))
  told[#told + 1] = not known and -1 or allowed and 1 or 0
  at = last + 1
end
return told";
    let mut command = words(&["EVAL", SCRIPT, "0"]);
    for need in needs {
        command.push(need.command.len().to_string().into_bytes());
        command.extend(need.command.iter().cloned());
    }
    let answer = master.ask(command)?;
    Ok(answer.elements().map(|told| {
        let read = |told: &Reply| match told {
            Reply::Integer(1) => Allowed::Yes,
            Reply::Integer(-1) => Allowed::NoSuchCommand,
            _ => Allowed::No,
        };
        told.iter().map(read).collect()
    }))
}

/// Sends the commands that change nothing.
fn sent(master: &mut Conversation, needs: &[Need]) -> Result<Vec<Allowed>, Cause> {
    const HARMLESS: [&[u8]; 9] =
        [b"GET", b"PTTL", b"EXISTS", b"MGET", b"ZRANGE", b"EVAL", b"EVALSHA", b"TIME", b"INFO"];
    let is_harmless = |need: &&Need| need.command.first().is_some_and(|name| HARMLESS.contains(&&name[..]));
    let commands: Vec<_> = needs.iter().filter(is_harmless).map(|need| need.command.clone()).collect();
    let mut answers = master.ask_all(&commands)?.into_iter();
    let read = |need: &Need| match Some(need).filter(is_harmless).and_then(|_| answers.next()) {
        Some(Reply::Error(ServerError::UnknownCommand)) => Allowed::NoSuchCommand,
        _ => Allowed::Yes,
    };
    Ok(needs.iter().map(read).collect())
}

/// Queues the commands and discards the queue. A denied command is not queued.
fn queued(master: &mut Conversation, needs: &[Need]) -> Result<Option<Vec<Allowed>>, Cause> {
    if let Reply::Error(_) = master.ask(words(&["MULTI"]))? {
        return Ok(None);
    }
    // A proxy may accept MULTI and still execute the commands after it, so a script that does
    // nothing is sent first.
    if master.ask(words(&["EVAL", "return 1", "0"]))? != Reply::Text(b"QUEUED".to_vec()) {
        return Ok(None);
    }
    let mut commands: Vec<_> = needs.iter().map(|need| need.command.clone()).collect();
    commands.push(words(&["DISCARD"]));
    let mut answers = master.ask_all(&commands)?;
    answers.truncate(needs.len());
    let read = |answer: &Reply| match answer {
        Reply::Error(ServerError::UnknownCommand) => Allowed::NoSuchCommand,
        Reply::Error(_) => Allowed::No,
        _ => Allowed::Yes,
    };
    Ok(Some(answers.iter().map(read).collect()))
}
