//! All masters at once.

use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use quorlock_core::{Cause, Endpoint, Security};

/// Time for the threads to report their results after the deadline.
const SLACK: Duration = Duration::from_millis(100);

/// Asks all masters at once with `ask`, each on its own thread, and returns their answers in the
/// masters' order. `ask` gets the deadline. A thread that the system blocks for too long, such as
/// in name resolution, is not waited for.
pub(crate) fn all<T: Send + 'static>(
    masters: &[Endpoint],
    security: Option<&Arc<dyn Security>>,
    within: Duration,
    ask: impl Fn(&Endpoint, Option<&dyn Security>, Instant) -> Result<T, Cause> + Send + Sync + 'static,
) -> Vec<Result<T, Cause>> {
    let ends = Instant::now() + within;
    let ask = Arc::new(ask);
    let (tell, told) = mpsc::channel();
    for (place, master) in masters.iter().enumerate() {
        let (ask, tell, master) = (Arc::clone(&ask), tell.clone(), master.clone());
        let security = security.cloned();
        let asking = thread::Builder::new().name("quorlock-ask".into());
        // If the system has no thread left, this master has no answer.
        let _ = asking.spawn(move || {
            // An answer that comes too late is dropped.
            let _ = tell.send((place, ask(&master, security.as_deref(), ends)));
        });
    }
    drop(tell);
    let mut answers: Vec<_> = masters.iter().map(|_| Err(Cause::NoAnswer { waited: within })).collect();
    while let Ok((place, answer)) =
        told.recv_timeout((ends + SLACK).saturating_duration_since(Instant::now()))
    {
        if let Some(place) = answers.get_mut(place) {
            *place = answer;
        }
    }
    answers
}
