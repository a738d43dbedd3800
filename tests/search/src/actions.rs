//! The possible next steps.

use quorlock_core::internals::Action as Does;

use super::book::Book;
use super::client::{Client, Stage};
use super::item::Item;
use super::places::{CROWD, Key};
use super::scenario::{Aim, Flaw, Scenario};
use super::state::{Link, MASTERS, Master, Mode, State};

/// One step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Action {
    Begin {
        client: usize,
    },
    Take {
        client: usize,
    },
    Extend {
        client: usize,
        ttl: u8,
    },
    /// The holder downgrades its lock to a shared one.
    Downgrade {
        client: usize,
    },
    Release {
        client: usize,
    },
    Cancel {
        client: usize,
    },
    /// A timer of the client fires, in time or late.
    Wake {
        client: usize,
    },
    /// The master executes the next request of the connection.
    Execute {
        client: usize,
        master: usize,
    },
    /// The master executes the next request of the connection while an absent client has the key.
    Refuse {
        client: usize,
        master: usize,
    },
    /// The network duplicates an acquisition: the second may arrive at any time.
    Copy {
        client: usize,
        master: usize,
    },
    /// Its oldest answer arrives.
    Deliver {
        client: usize,
        master: usize,
    },
    /// The next answer is reported as late, and may still arrive.
    Overdue {
        client: usize,
        master: usize,
    },
    /// The silent connection is abandoned.
    GiveUp {
        client: usize,
        master: usize,
        stale: bool,
    },
    /// The connection ends without a message.
    Close {
        client: usize,
        master: usize,
        stale: bool,
    },
    /// The opening of the next connection takes too long.
    OpeningFails {
        client: usize,
        master: usize,
    },
    /// The next connection is open.
    Connected {
        client: usize,
        master: usize,
    },
    /// The first request that was left behind on a connection is executed.
    Late {
        client: usize,
        master: usize,
        place: usize,
        twice: bool,
    },
    /// A key, or the entry of a sharer, expires within the drift.
    Expire {
        master: usize,
        resource: usize,
        entry: Option<usize>,
    },
    /// A key of a batch is lost.
    Evict {
        master: usize,
        resource: usize,
    },
    /// A reader of the crowd arrives. The key stays while there is one.
    Visit {
        master: usize,
    },
    /// The last reader of the crowd releases, or ends.
    Part {
        master: usize,
    },
    Crash {
        master: usize,
    },
    /// The quarantine of a master that has lost its keys ends within the drift.
    Open {
        master: usize,
    },
    /// Before anything else, a master gives a number to a grant.
    Count {
        master: usize,
        resource: usize,
    },
    Tick,
}

/// Everything that can happen in this state, always in the same order.
pub(super) fn enabled(state: &State, scenario: &Scenario, book: &Book, actions: &mut Vec<Action>) {
    actions.clear();
    for client in 0..state.shape.clients {
        of_client(state, client, scenario, book, actions);
    }
    for master in 0..MASTERS {
        for client in 0..state.shape.clients {
            of_link(state, client, master, scenario, book, actions);
        }
        let stands = state.master(master);
        for resource in 0..state.shape.resources {
            of_place(state, master, resource, scenario, actions);
        }
        if stands.quarantine > 0 && stands.quarantine <= scenario.early {
            actions.push(Action::Open { master });
        }
        if state.budgets.crashes > 0 && matters(state, master) {
            actions.push(Action::Crash { master });
        }
    }
    if !scenario.asynchronous {
        actions.push(Action::Tick);
    }
}

fn of_place(state: &State, master: usize, resource: usize, scenario: &Scenario, actions: &mut Vec<Action>) {
    let stands = state.master(master);
    let place = stands.place(resource);
    let may_end = |life| scenario.asynchronous || life <= scenario.late + scenario.early;
    if !place.is_free() && may_end(place.written().map_or(place.shared, |key| key.life)) {
        actions.push(Action::Expire { master, resource, entry: None });
    }
    for (entry, key) in place.keys().enumerate().filter(|_| place.shared > 0) {
        if key.client != CROWD && may_end(key.life) {
            actions.push(Action::Expire { master, resource, entry: Some(entry) });
        }
    }
    if state.budgets.evictions > 0 && !place.is_free() && is_everywhere(state, scenario) {
        actions.push(Action::Evict { master, resource });
    }
    if scenario.crowd && resource == 0 {
        let is_in = place.keys().any(|key| key.client == CROWD);
        if !is_in && place.written().is_none() {
            actions.push(Action::Visit { master });
        }
        if is_in || scenario.flaw == Some(Flaw::ReadersCounted) && place.shared > 0 {
            actions.push(Action::Part { master });
        }
    }
    let counter = stands.counters.get(resource).copied().unwrap_or(0);
    if counter < scenario.counted && state.clients().iter().all(Client::is_new) {
        actions.push(Action::Count { master, resource });
    }
}

/// Whether one client has all of its targets on all masters, and has not requested an extension.
/// Then a quorum of masters is left if one loses a key.
fn is_everywhere(state: &State, scenario: &Scenario) -> bool {
    (0..state.shape.clients).any(|client| {
        let owns = |key: Key| usize::from(key.client) == client;
        let has = |aim: &Aim, master: &Master| master.place(aim.resource()).keys().any(owns);
        state.client(client).extended == 0
            && state.masters.iter().all(|master| scenario.aims_of(client).iter().all(|aim| has(aim, master)))
    })
}

fn of_client(state: &State, client: usize, scenario: &Scenario, book: &Book, actions: &mut Vec<Action>) {
    let it = state.client(client);
    match it.stage {
        Stage::Waiting => return actions.push(Action::Begin { client }),
        Stage::Ended | Stage::Absent => return,
        Stage::Alive => {}
    }
    let is_held = book.is_held(it.lock);
    // In an asynchronous scenario, a timer may fire whenever the lock is not held.
    let comes = |deadline| if scenario.asynchronous { !is_held } else { deadline <= it.now };
    if book.deadline(it.lock).is_some_and(comes) {
        actions.push(Action::Wake { client });
    }
    if is_held {
        if it.guard == 0 {
            actions.push(Action::Take { client });
        } else {
            if it.extended < scenario.extensions_of(client) {
                let ttls = scenario.extension_ttls.iter();
                actions.extend(ttls.map(|&ttl| Action::Extend { client, ttl }));
            }
            if !it.shares && !scenario.form_of(client, true).is_empty() {
                actions.push(Action::Downgrade { client });
            }
            if scenario.releases {
                actions.push(Action::Release { client });
            }
        }
    }
    if scenario.cancels {
        actions.push(Action::Cancel { client });
    }
}

fn of_link(
    state: &State,
    client: usize,
    master: usize,
    scenario: &Scenario,
    book: &Book,
    actions: &mut Vec<Action>,
) {
    let link = state.link(client, master);
    if state.client(client).is_absent() {
        return;
    }
    match link.mode {
        Mode::Ready => {
            let answered = executed(link);
            if let Some(&item) = link.flight.as_slice().get(answered) {
                actions.push(Action::Execute { client, master });
                if scenario.asynchronous && state.budgets.duplicates > 0 && item.action() == Does::Acquire {
                    actions.push(Action::Copy { client, master });
                }
                let by_another = scenario.asynchronous && item.action().creates();
                if may_be_refused(state, client, master, item, scenario) || by_another {
                    actions.push(Action::Refuse { client, master });
                }
            }
            if answered > 0 {
                actions.push(Action::Deliver { client, master });
            }
            if scenario.overdue && usize::from(link.reported) < link.flight.len() {
                actions.push(Action::Overdue { client, master });
            }
            // A connection that will never be used again need not end.
            let is_unused = is_done(state, client, book) || scenario.losses.is_none();
            let matters = !link.flight.is_empty() || !is_unused;
            if state.budgets.losses > 0 && matters {
                let ages = if scenario.stale { &[false, true][..] } else { &[false] };
                for &stale in ages {
                    if scenario.gives_up && !link.flight.is_empty() {
                        actions.push(Action::GiveUp { client, master, stale });
                    }
                    if scenario.closes && (!stale || !link.flight.is_empty()) {
                        actions.push(Action::Close { client, master, stale });
                    }
                }
            }
        }
        Mode::Opening => {
            if !link.queued.is_empty() {
                actions.push(Action::OpeningFails { client, master });
            }
            if scenario.losses.is_some() || !link.is_idle() {
                actions.push(Action::Connected { client, master });
            }
        }
    }
    for (place, item) in link.behind.iter().enumerate() {
        if item.is_first() {
            actions.push(Action::Late { client, master, place, twice: false });
            if state.budgets.duplicates > 0 && !item.is_again() {
                actions.push(Action::Late { client, master, place, twice: true });
            }
        }
    }
}

/// How many requests of the flight the master has executed: they come first.
pub(super) fn executed(link: &Link) -> usize {
    link.flight.iter().take_while(|item| item.said().is_some()).count()
}

/// Whether a client has sent everything that it will ever send, except owed releases.
pub(super) fn is_done(state: &State, client: usize, book: &Book) -> bool {
    let it = state.client(client);
    it.stage == Stage::Ended || (it.is_alive() && book.is_parting(it.lock))
}

/// Whether an absent client may have this master's key when the request is executed, so that the
/// result differs.
fn may_be_refused(state: &State, client: usize, master: usize, item: Item, scenario: &Scenario) -> bool {
    // With three clients, none is examined separately.
    let other = client ^ 1;
    let owns = |key: Key| usize::from(key.client) == client;
    let is_kept = |aim: &Aim| {
        scenario.is_contested(*aim, other) && state.master(master).place(aim.resource()).keys().any(owns)
    };
    matches!(item.action(), Does::Acquire | Does::Heal | Does::Undo)
        && state.clients().get(other).is_some_and(Client::is_absent)
        && !state.link(other, master).behind.is_empty()
        && !scenario.aims_of(client).iter().any(is_kept)
}

/// Whether a crash of this master changes anything.
fn matters(state: &State, master: usize) -> bool {
    let master = state.master(master);
    let is_used = |link: &Link| !link.is_idle() || !link.behind.is_empty();
    master.places.iter().any(|place| !place.is_free())
        || master.links.iter().any(is_used)
        || state.clients().iter().any(|client| matches!(client.stage, Stage::Waiting | Stage::Alive))
}

/// Whether an item may still put its token there.
pub(super) fn creates(item: Item, attempt: u8) -> bool {
    item.action().creates() && item.attempt() == attempt && item.said().is_none()
}
