//! What is gathered for a subscriber, depending on its level.

use super::*;
use crate::machine::Output;
use crate::protocol::{EntropyFailed, ExtendError, ExtensionId, LockId, Resource};

const LEVELS: [LevelFilter; 6] = [
    LevelFilter::OFF,
    LevelFilter::ERROR,
    LevelFilter::WARN,
    LevelFilter::INFO,
    LevelFilter::DEBUG,
    LevelFilter::TRACE,
];

fn for_level(level: LevelFilter) -> Notices {
    Notices { notices: Vec::new(), level }
}

#[test]
fn an_event_is_gathered_if_the_subscriber_wants_its_level() {
    let lock = LockId { index: 0, generation: 0 };
    let until = Instant::ORIGIN + Duration::from_secs(9);
    let extended = |result| Event::Extended { lock, extension: ExtensionId(1), result };
    let subject = Subject::of(&Resource::new("job").unwrap().into());
    for (event, wanted) in [
        (Event::Lost { lock, cause: LossCause::Expired }, Some(Level::WARN)),
        (Event::WaitsForOwn { lock }, Some(Level::INFO)),
        (Event::Renewed { lock, valid_until: until }, Some(Level::DEBUG)),
        (extended(Ok(until)), Some(Level::DEBUG)),
        (extended(Err(ExtendError::TooManyExtensions)), Some(Level::DEBUG)),
        (Event::Released { lock, outcome: ReleaseOutcome::StillOurs }, Some(Level::DEBUG)),
        (Event::Granted { lock, valid_until: until }, None),
        (Event::NotAcquired { lock, error: AcquireError::NoEntropy }, None),
    ] {
        for level in LEVELS {
            let mut notices = for_level(level);
            notices.event(&subject, &event);
            let is_wanted = wanted.is_some_and(|wanted| level >= wanted);
            assert_eq!(notices.notices.len(), usize::from(is_wanted), "{event:?} for {level}");
            notices.event(&Subject::none(), &event);
            assert_eq!(notices.notices.len(), usize::from(is_wanted), "a command that is not reported");
        }
    }
}

struct Zeros;

impl Entropy for Zeros {
    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), EntropyFailed> {
        bytes.fill(0);
        Ok(())
    }
}

#[test]
fn the_state_of_a_master_is_gathered_for_warnings() {
    let mut machine = Machine::new(Arc::new(Config::new(["redis://a"]).unwrap()), Zeros, Instant::ORIGIN);
    let (master, generation) = loop {
        match machine.poll_output() {
            Output::Connect { master, generation, .. } => break (master, generation),
            Output::Wake(_) => panic!("no connection is asked for"),
            _ => {}
        }
    };
    machine.closed(master, generation, Cause::Closed, Instant::ORIGIN);
    for level in LEVELS {
        let mut notices = for_level(level);
        notices.masters(&machine, &mut Told::nothing());
        assert_eq!(notices.notices.len(), usize::from(level >= Level::WARN), "{level}");
    }
}

#[test]
fn a_quarantine_is_news_if_it_ends_more_than_a_second_after_the_one_that_was_reported() {
    let at = |millis| Instant::ORIGIN + Duration::from_millis(millis);
    for (told, until, is_news) in [
        (None, 30_000, true),
        (Some(30_000), 29_000, false),
        (Some(30_000), 30_000, false),
        (Some(30_000), 30_999, false),
        (Some(30_000), 31_000, false),
        (Some(30_000), 31_001, true),
        (Some(30_000), 60_000, true),
    ] {
        assert_eq!(is_another_quarantine(told.map(at), at(until)), is_news, "{told:?} {until}");
    }
}
