//! Compares the model of a master's queue with the model of a whole master, which another test
//! compares with real servers. Both carry out the same random requests of three clients.

use std::time::Duration;

use quorlock_core::internals::{ACQUIRE_READING, ENTER, LEAVE, RELEASE, Script, UNDO};
use quorlock_core::{QueuePlace, Resource, Token};
use quorlock_sim::{Command, Master as Server, Session};

use super::Fair;
use super::item::{Does, Item, LEFT, Said, TURN};
use super::state::{Master, Shape, State};
use crate::fair::state::Budgets;

/// The time on the server's clock, which stops.
const NOW: Duration = Duration::from_secs(1_750_000_000);

/// Repeatable random numbers (Knuth's MMIX).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u8 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        u8::try_from((self.0 >> 33) % bound).unwrap()
    }
}

/// Tokens and places, whose bytes have the same order as in the model.
fn digits(client: u8, number: u8) -> [u8; 40] {
    Token::from_bytes([client << 4 | number; Token::BYTES]).to_hex()
}

fn call(server: &mut Server, client: u8, item: Item) -> String {
    let resource = Resource::new("r").unwrap();
    let place = QueuePlace::from_bytes([client << 4 | item.place; QueuePlace::BYTES]);
    let (key, own, queue) = (resource.key().to_vec(), resource.place_key(place), resource.queue_key());
    let (token, named) = (digits(client, item.token).to_vec(), place.to_hex().to_vec());
    let number = item.number.to_string().into_bytes();
    let has_place = item.place > 0;
    let grants: &[u8] = if item.is_exact { b"x" } else { b"-" };
    let stays: &[u8] = if item.is_exact { b"sx" } else { b"s" };
    let leaving = vec![token.clone(), b"2000".to_vec(), named];
    let [lease, turn] = [LEFT, TURN].map(|span| span.to_string().into_bytes());
    let entering = |flags: &[u8]| [leaving.clone(), vec![lease, turn, number, flags.to_vec()]].concat();
    let lock = vec![key.clone()];
    let queued = vec![key, own, queue];
    let (script, keys, values): (&Script, _, _) = match item.does {
        Does::Enter if has_place => (&ENTER, queued, entering(grants)),
        Does::Stay => (&ENTER, queued, entering(stays)),
        Does::Enter => (&ACQUIRE_READING, lock, vec![token, b"2000".to_vec()]),
        Does::Undo => (&UNDO, lock, vec![token]),
        Does::Release if has_place => (&LEAVE, queued, leaving),
        Does::Release => (&RELEASE, lock, vec![token]),
    };
    let count = keys.len().to_string().into_bytes();
    let head = vec![b"EVAL".to_vec(), script.text.as_bytes().to_vec(), count];
    let command = Command::new(head.into_iter().chain(keys).chain(values));
    let mut reply = Vec::new();
    let _ = server.execute(&mut Session::new(), &command, NOW, &mut reply);
    String::from_utf8(reply).unwrap()
}

/// The server's reply that means the same, without the digests of other clients' tokens.
fn wording(said: Said) -> String {
    let queued = |left: u16, number: u8, first: u8| format!(":{left} :{number} :{first}");
    match said {
        Said::Yes => ":1".to_owned(),
        Said::No => ":0".to_owned(),
        Said::Held { left } => format!(":{left}"),
        Said::Behind { number, left } => queued(left, number, 0),
        Said::First { number, left } => queued(left, number, 1),
        Said::Free { number } => queued(0, number, 1),
    }
}

#[test]
fn the_model_of_queues_behaves_like_the_scripts() {
    let mut random = Random(1);
    let mut met = [0; 6];
    for _ in 0..300 {
        let shape = Shape { masters: 1, waiters: 3 };
        let budgets = Budgets { deaths: 0, cancels: 0, losses: 0, forgets: 0 };
        let mut master: Master = *State::new(shape, budgets).master(0);
        let mut server = Server::new(1);
        for _ in 0..40 {
            let client = random.below(3);
            let does = [Does::Enter, Does::Enter, Does::Stay, Does::Undo, Does::Release];
            let does = does[usize::from(random.below(5))];
            let place =
                if does == Does::Undo { 0 } else { random.below(3).max(u8::from(does == Does::Stay)) };
            let number = if random.below(2) == 0 { 0 } else { random.below(15) };
            let is_exact = place > 0 && random.below(2) == 0;
            let item = Item { does, token: random.below(2), place, number, is_exact, ..Item::default() };
            let said = master.execute(client, item, Some(0), &Fair::PAIR);
            met[match said {
                Said::Yes => 0,
                Said::No => 1,
                Said::Held { .. } => 2,
                Said::Behind { .. } => 3,
                Said::First { .. } => 4,
                Said::Free { .. } => 5,
            }] += 1;
            let reply = call(&mut server, client, item);
            let numbers: Vec<_> = reply.lines().filter(|line| line.starts_with(':')).collect();
            assert_eq!(numbers.join(" "), wording(said), "{item:?} of {client}: {reply:?}");
            if master.counter > 12 {
                break;
            }
        }
    }
    assert!(met.iter().all(|count| *count > 100), "{met:?}");
}
