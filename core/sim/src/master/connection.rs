//! Commands that set the state of a connection: protocol, user, database, name.

use super::call::{Call, Role};
use super::cluster::Slot;
use super::info::version;
use super::number::integer;
use super::reply::{Failure, NOT_AN_INTEGER, SYNTAX};
use super::session::Session;

pub(super) fn hello(call: &mut Call<'_>) -> Result<(), Failure> {
    let resp3 = match call.command.argument(1).map(integer) {
        None => call.session.resp3,
        Some(None) => {
            return Err(Failure::new("ERR Protocol version is not an integer or out of range"));
        }
        Some(Some(2)) => false,
        Some(Some(3)) => true,
        Some(Some(_)) => return Err(Failure::new("NOPROTO unsupported protocol version")),
    };
    let mut options = call.arguments_from(2);
    loop {
        options = match options {
            [] => break,
            [word, user, password, rest @ ..] if word.eq_ignore_ascii_case(b"AUTH") => {
                log_in(call, user, password)?;
                rest
            }
            [word, name, rest @ ..] if word.eq_ignore_ascii_case(b"SETNAME") => {
                set_name(call.session, name)?;
                rest
            }
            [word, ..] => {
                return Err(Failure::of(&[b"ERR Syntax error in HELLO option '", word, b"'"]));
            }
        };
    }
    // As in Redis, this requires a password even if none is needed any more.
    if call.session.trusted == Some(false) {
        return Err(Failure::new(
            "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO AUTH <user> \
             <pass> option can be used to authenticate the client and select the RESP protocol version at the same time",
        ));
    }
    call.session.resp3 = resp3;
    call.master.keyspace.tracking.speak(call.session.id, resp3);
    call.reply.resp3 = resp3;
    let id = i64::try_from(call.session.id).unwrap_or(i64::MAX);
    let role = match call.master.conditions.role {
        Role::Master => "master",
        Role::Replica => "replica",
    };
    let mode = match call.master.conditions.slot {
        Slot::Standalone => "standalone",
        _ => "cluster",
    };
    let reply = &mut call.reply;
    reply.map(7);
    for (field, text) in [("server", "redis"), ("version", version(call.master))] {
        reply.bulk(field.as_bytes());
        reply.bulk(text.as_bytes());
    }
    for (field, number) in [("proto", if resp3 { 3 } else { 2 }), ("id", id)] {
        reply.bulk(field.as_bytes());
        reply.integer(number);
    }
    for (field, text) in [("mode", mode), ("role", role)] {
        reply.bulk(field.as_bytes());
        reply.bulk(text.as_bytes());
    }
    reply.bulk(b"modules");
    reply.array(0);
    Ok(())
}

pub(super) fn auth(call: &mut Call<'_>) -> Result<(), Failure> {
    match call.arguments_from(1) {
        [_] if call.master.settings.password.is_none() => {
            return Err(Failure::new(
                "ERR AUTH <password> called without any password configured for the default user. Are you sure \
                 your configuration is correct?",
            ));
        }
        [password] => log_in(call, b"default", password)?,
        [user, password] => log_in(call, user, password)?,
        _ => return Err(SYNTAX),
    }
    call.reply.ok();
    Ok(())
}

/// Without a password, the user `default` accepts any.
fn log_in(call: &mut Call<'_>, user: &[u8], password: &[u8]) -> Result<(), Failure> {
    let settings = &call.master.settings;
    let is_right = match user {
        b"default" => settings.password.as_deref().is_none_or(|wanted| wanted == password),
        other => settings.users.get(other).is_some_and(|wanted| wanted == password),
    };
    if !is_right {
        return Err(Failure::new("WRONGPASS invalid username-password pair or user is disabled."));
    }
    call.session.trusted = Some(true);
    Ok(())
}

pub(super) fn select(call: &mut Call<'_>) -> Result<(), Failure> {
    let number = i32::try_from(integer(call.argument(1)).ok_or(NOT_AN_INTEGER)?).map_err(|_| {
        Failure::new("ERR value is out of range, value must between -2147483648 and 2147483647")
    })?;
    let database = u32::try_from(number).ok().filter(|number| *number < DATABASES);
    call.session.database = database.ok_or(Failure::new("ERR DB index is out of range"))?;
    call.reply.ok();
    Ok(())
}

pub(super) fn ping(call: &mut Call<'_>) -> Result<(), Failure> {
    match call.arguments_from(1) {
        [] => call.reply.simple("PONG"),
        [text] => call.reply.bulk(text),
        _ => return Err(Failure::new("ERR wrong number of arguments for 'ping' command")),
    }
    Ok(())
}

pub(super) fn echo(call: &mut Call<'_>) -> Result<(), Failure> {
    call.reply.bulk(call.argument(1));
    Ok(())
}

pub(super) fn client_setname(call: &mut Call<'_>) -> Result<(), Failure> {
    set_name(call.session, call.argument(2))?;
    call.reply.ok();
    Ok(())
}

fn set_name(session: &mut Session, name: &[u8]) -> Result<(), Failure> {
    if !name.iter().all(u8::is_ascii_graphic) {
        return Err(Failure::new("ERR Client names cannot contain spaces, newlines or special characters."));
    }
    session.name = name.to_vec();
    Ok(())
}

pub(super) fn client_getname(call: &mut Call<'_>) -> Result<(), Failure> {
    if call.session.name.is_empty() {
        call.reply.null();
    } else {
        call.reply.bulk(&call.session.name);
    }
    Ok(())
}

pub(super) fn client_id(call: &mut Call<'_>) -> Result<(), Failure> {
    call.reply.integer(i64::try_from(call.session.id).unwrap_or(i64::MAX));
    Ok(())
}

pub(super) fn client_info(call: &mut Call<'_>) -> Result<(), Failure> {
    let Session { id, database, resp3, name, .. } = &*call.session;
    let (name, resp) = (String::from_utf8_lossy(name), if *resp3 { 3 } else { 2 });
    call.reply.verbatim(&format!("id={id} name={name} db={database} user=default resp={resp}\n"));
    Ok(())
}

/// Knows only the option that locks use. As in Redis, enabling it in RESP 2 is not an error, but
/// has no effect.
pub(super) fn client_tracking(call: &mut Call<'_>) -> Result<(), Failure> {
    let options = call.arguments_from(3);
    if !options.iter().all(|option| option.eq_ignore_ascii_case(b"NOLOOP")) {
        return Err(SYNTAX);
    }
    let Session { id, resp3, .. } = *call.session;
    if on_or_off(call)? {
        call.master.keyspace.tracking.listen(id, !options.is_empty(), resp3);
    } else {
        call.master.keyspace.tracking.pause(id);
    }
    Ok(())
}

/// Accepted without an effect: connections are never evicted here.
pub(super) fn client_no_evict(call: &mut Call<'_>) -> Result<(), Failure> {
    on_or_off(call).map(|_| ())
}

fn on_or_off(call: &mut Call<'_>) -> Result<bool, Failure> {
    let word = call.argument(2);
    let is_on = word.eq_ignore_ascii_case(b"ON");
    if !is_on && !word.eq_ignore_ascii_case(b"OFF") {
        return Err(SYNTAX);
    }
    call.reply.ok();
    Ok(is_on)
}

/// The default number of databases of a server.
const DATABASES: u32 = 16;
