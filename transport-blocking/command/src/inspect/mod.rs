//! Asking masters themselves: what each has of a lock, and having it deleted.

mod conversation;
mod deletion;
mod survey;
mod verdict;

use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use quorlock_core::{Cause, Endpoint};

use self::conversation::{ANSWER_WITHIN, CONNECT_WITHIN};
pub(crate) use self::deletion::{Deletion, delete};
pub(crate) use self::survey::{Key, Said, Standing, Survey, survey};
pub(crate) use self::verdict::{State, Verdict};

/// For threads to say what they have found out when time is over.
const SLACK: Duration = Duration::from_millis(100);

/// What one master said, or why it said nothing.
pub(crate) type Answer<T> = Result<T, Cause>;

/// Asks all masters at once, each in a thread of its own, and gives their answers in the masters' order.
///
/// It takes no longer than a connection and an answer may take together. What the system keeps for longer, such as the resolver of names,
/// is left behind.
fn each<T: Send + 'static>(
    masters: &[Endpoint],
    ask: impl Fn(&Endpoint) -> Answer<T> + Send + Sync + 'static,
) -> Vec<Answer<T>> {
    let most = CONNECT_WITHIN + ANSWER_WITHIN;
    let until = Instant::now() + most + SLACK;
    let ask = Arc::new(ask);
    let (tell, told) = mpsc::channel();
    for (place, master) in masters.iter().enumerate() {
        let (ask, tell, master) = (Arc::clone(&ask), tell.clone(), master.clone());
        let asking = thread::Builder::new().name("quorlock-ask".into());
        // Where the system has no thread left, this master says nothing.
        let _ = asking.spawn(move || tell.send((place, ask(&master))));
    }
    drop(tell);
    let mut answers: Vec<_> = masters.iter().map(|_| Err(Cause::NoAnswer { waited: most })).collect();
    while let Ok((place, answer)) = told.recv_timeout(until.saturating_duration_since(Instant::now())) {
        if let Some(place) = answers.get_mut(place) {
            *place = answer;
        }
    }
    answers
}
