//! CONFIG GET and CONFIG SET for the settings that locks depend on.

use std::collections::BTreeMap;

use super::call::Call;
use super::reply::{Failure, SYNTAX};

/// The configuration of a server.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct Settings {
    pub(super) password: Option<Vec<u8>>,
    /// The passwords of the users beside `default`.
    pub(super) users: BTreeMap<Vec<u8>, Vec<u8>>,
    /// In bytes; 0 for no limit.
    pub(super) max_memory: u64,
    /// Only stored and reported: the model evicts nothing, whatever the policy.
    pub(super) policy: &'static str,
}

impl Default for Settings {
    fn default() -> Self {
        Self { password: None, users: BTreeMap::new(), max_memory: 0, policy: "noeviction" }
    }
}

impl Settings {
    fn value(&self, name: &str) -> Vec<u8> {
        match name {
            "maxmemory" => self.max_memory.to_string().into_bytes(),
            "maxmemory-policy" => self.policy.into(),
            _ => self.password.clone().unwrap_or_default(),
        }
    }

    fn set(&mut self, name: &'static str, value: &[u8]) -> Result<(), Failure> {
        match name {
            "maxmemory" => {
                let amount = memory(value);
                self.max_memory = amount.ok_or_else(|| failed(name, "argument must be a memory value"))?;
            }
            "maxmemory-policy" => {
                let named = POLICIES.iter().find(|policy| policy.as_bytes().eq_ignore_ascii_case(value));
                self.policy = named.ok_or_else(|| {
                    failed(
                        name,
                        &format!("argument(s) must be one of the following: {}", POLICIES.join(", ")),
                    )
                })?;
            }
            _ => self.password = (!value.is_empty()).then(|| value.to_vec()),
        }
        Ok(())
    }
}

/// Accepts exact names, which are returned as they were spelled, and `*`. Real servers accept any
/// pattern.
pub(super) fn get(call: &mut Call<'_>) -> Result<(), Failure> {
    let mut found: Vec<(&str, &[u8])> = Vec::new();
    for word in call.arguments_from(2) {
        for name in NAMES {
            let spelled = if word == b"*" { name.as_bytes() } else { word };
            let is_new = found.iter().all(|(known, _)| *known != name);
            if is_new && spelled.eq_ignore_ascii_case(name.as_bytes()) {
                found.push((name, spelled));
            }
        }
    }
    call.reply.map(found.len());
    for (name, spelled) in found {
        call.reply.bulk(spelled);
        call.reply.bulk(&call.master.settings.value(name));
    }
    Ok(())
}

/// All or nothing: an error changes no setting.
pub(super) fn set(call: &mut Call<'_>) -> Result<(), Failure> {
    let words = call.arguments_from(2);
    if words.len() % 2 != 0 {
        return Err(SYNTAX);
    }
    let mut changed = call.master.settings.clone();
    let mut seen = Vec::new();
    for pair in words.chunks_exact(2) {
        let [word, value] = pair else { continue };
        let named = NAMES.iter().find(|name| name.as_bytes().eq_ignore_ascii_case(word));
        let Some(&name) = named else {
            return Err(Failure::of(&[
                b"ERR Unknown option or number of arguments for CONFIG SET - '",
                word,
                b"'",
            ]));
        };
        if seen.contains(&name) {
            return Err(failed(name, "duplicate parameter"));
        }
        seen.push(name);
        changed.set(name, value)?;
    }
    call.master.settings = changed;
    call.reply.ok();
    Ok(())
}

fn failed(name: &str, why: &str) -> Failure {
    let text = format!("ERR CONFIG SET failed (possibly related to argument '{name}') - {why}");
    Failure::raw(text.into_bytes())
}

/// A number of bytes with a unit, such as `100mb`. As in Redis, no digits are 0, too many are the
/// largest number, and the product with the unit may wrap around.
fn memory(text: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?;
    let unit = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let (digits, unit) = text.split_at_checked(unit)?;
    let factor = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" => 1_000,
        "kb" => 1 << 10,
        "m" => 1_000_000,
        "mb" => 1 << 20,
        "g" => 1_000_000_000,
        "gb" => 1 << 30,
        _ => return None,
    };
    let number = if digits.is_empty() { 0 } else { digits.parse::<u64>().unwrap_or(u64::MAX) };
    Some(number.wrapping_mul(factor))
}

const NAMES: [&str; 3] = ["maxmemory", "maxmemory-policy", "requirepass"];
/// The eviction policies, in the order in which Redis names them.
const POLICIES: [&str; 8] = [
    "volatile-lru",
    "volatile-lfu",
    "volatile-random",
    "volatile-ttl",
    "allkeys-lru",
    "allkeys-lfu",
    "allkeys-random",
    "noeviction",
];
