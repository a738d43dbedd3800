//! The cells, the only list of exceptions, and the table as text.

use std::collections::BTreeMap;
use std::fmt;

use super::{Ask, Form, History, Prior, Row, Setting};

/// What was found in one cell.
#[derive(Clone, Copy, Debug)]
pub struct Cell {
    pub counted: bool,
    /// What the rule says. For an answer that was not counted: whether nothing was in its way.
    pub may_count: bool,
    /// Whether two guards were valid at once.
    pub overlaps: bool,
}

impl Cell {
    fn letter(self) -> &'static str {
        match (self.counted, self.may_count) {
            (true, true) => "c",
            (false, false) => "-",
            (false, true) => "s",
            (true, false) => "!",
        }
    }
}

/// One life: the cells of one history in one configuration.
pub struct Life {
    pub history: History,
    pub setting: Setting,
    /// The cells, or why there are none.
    pub cells: Result<BTreeMap<Row, Cell>, String>,
}

impl Life {
    pub(super) fn may_be_late(&self) -> bool {
        let is_late = |(row, cell): (&Row, &Cell)| {
            !cell.counted && cell.may_count && restraint(self.history, self.setting, *row).is_none()
        };
        match &self.cells {
            Ok(cells) => cells.iter().any(is_late),
            Err(why) => why == TOO_SLOW,
        }
    }
}

pub(super) const TOO_SLOW: &str = "the machine was too slow for the locks' TTL";

/// Where more may be counted than the rule allows, and why. There is no other such list.
fn exception(history: History, setting: Setting, row: Row) -> Option<&'static str> {
    use History as H;
    match (setting, history) {
        _ if row.ask == Ask::Inspect => Some("an inspection reports the keys, and nobody rests on it"),
        (
            Setting::Plain,
            H::RestartedEmpty
            | H::RestartedFromAnOlderSnapshot
            | H::Flushed
            | H::KeysPutBackByHand
            | H::RebuiltFromAnother
            | H::PromotedWithoutTheLastWrite
            | H::FormerPrimaryGoesOn,
        ) => Some("without the restart guard, a master must not lose data or have two servers"),
        (Setting::Guard, H::FormerPrimaryOutlivesTheQuarantine) => {
            Some("the guard alone does not cover a former primary that continues: declare its replicas")
        }
        _ => None,
    }
}

/// Where an answer is not counted although nothing is in its way, and why.
fn restraint(history: History, setting: Setting, row: Row) -> Option<&'static str> {
    use History as H;
    match (setting, history) {
        (_, H::BecameAReplica) => Some("a replica has no vote"),
        (_, H::OtherFleetsMarker | H::LaterVersionsMarker) => Some("clients must agree on the guard"),
        (_, H::RebuiltAlone) => Some("a master without its replicas has no vote"),
        (_, H::SlotMovedAway) if row == Row { ask: Ask::Extend, form: Form::Plain, prior: Prior::Ours } => {
            Some("the first request after the move finds the new owner")
        }
        (_, H::SlotMovedAway) if row == Row { ask: Ask::Raise, form: Form::Fenced, prior: Prior::Ours } => {
            Some("the first request after the move finds the new owner")
        }
        (Setting::Guard | Setting::Replicas, _) if matches!(row.ask, Ask::Acquire | Ask::Resume) => {
            Some("a quarantined master does not know what it has voted for")
        }
        (Setting::Guard | Setting::Replicas, H::RestartedEmpty | H::Flushed | H::RebuiltFromAnother)
            if row.prior == Prior::Ours =>
        {
            Some("the key is not there")
        }
        (Setting::Replicas, H::PromotedWithoutTheLastWrite) => {
            Some("the promoted server is quarantined, and its client has no vote of it")
        }
        _ => None,
    }
}

/// All lives, or some of them.
pub struct Table {
    lives: Vec<Life>,
}

impl Table {
    /// All lives.
    pub fn all() -> impl Iterator<Item = (History, Setting)> {
        History::ALL.into_iter().flat_map(|history| Setting::ALL.map(|setting| (history, setting)))
    }

    pub fn new(lives: impl IntoIterator<Item = Life>) -> Self {
        Self { lives: lives.into_iter().collect() }
    }

    fn cells(&self) -> impl Iterator<Item = (History, Setting, Row, Cell)> {
        let cells = |life: &Life| life.cells.clone().into_iter().flatten();
        self.lives.iter().flat_map(move |life| {
            let (history, setting) = (life.history, life.setting);
            cells(life).map(move |(row, cell)| (history, setting, row, cell))
        })
    }

    /// How many cells there are, and how many of them are listed with a reason.
    pub fn size(&self) -> [usize; 3] {
        let differs = |counted| {
            self.cells().filter(move |(.., cell)| cell.counted == counted && cell.may_count != counted)
        };
        [self.cells().count(), differs(true).count(), differs(false).count()]
    }

    /// The cells that differ from the rule and are in neither list.
    pub fn wrong(&self) -> Vec<String> {
        let mut wrong = Vec::new();
        for (history, setting, row, cell) in self.cells() {
            let place =
                format!("{history:?}, {setting:?}, {:?} {:?}, vote: {:?}", row.ask, row.form, row.prior);
            if cell.overlaps && cell.may_count {
                wrong.push(format!("{place}: two guards, and the rule does not see why"));
            }
            if cell.counted && !cell.may_count && exception(history, setting, row).is_none() {
                wrong.push(format!("{place}: counted against the rule"));
            }
            if !cell.counted && cell.may_count && restraint(history, setting, row).is_none() {
                wrong.push(format!("{place}: not counted, and nothing is in the way"));
            }
        }
        wrong
    }
}

/// A line for each life: for each request and each prior vote, what became of its forms.
impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "Of each request: who had the vote before (o: our client, r: the rival), and what became of its forms.\n\
             c: counted. -: refused. s: refused, and nothing was in the way. !: counted against the rule."
        )?;
        for Life { history, setting, cells } in &self.lives {
            write!(f, "{:34} {:8}", format!("{history:?}"), format!("{setting:?}"))?;
            match cells {
                Err(why) => write!(f, " not run: {why}")?,
                Ok(cells) => {
                    let mut before = None;
                    for (row, cell) in cells {
                        if before != Some((row.ask, row.prior)) {
                            let prior = if row.prior == Prior::Ours { "o" } else { "r" };
                            write!(f, " {:?}.{prior}:", row.ask)?;
                        }
                        before = Some((row.ask, row.prior));
                        f.write_str(cell.letter())?;
                    }
                }
            }
            writeln!(f)?;
        }
        let [cells, more, fewer] = self.size();
        write!(
            f,
            "{cells} cells; counted against the rule, with a reason: {more}; refused beyond it: {fewer}"
        )
    }
}
