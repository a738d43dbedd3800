//! `quorlock demo`: workers contend for a lock on embedded masters while a script causes faults,
//! and the output shows which promises hold.

mod event;
mod masters;
mod picture;
mod show;
mod stage;
mod worker;

use std::fs;
use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use quorlock_blocking::{Config, Locker};
use quorlock_embedded::Masters;
use signal_hook::consts::{SIGINT, SIGTSTP};

use self::event::{Change, Event};
use self::masters::Cast;
use self::show::Show;
use self::stage::{Scene, Stage};
use crate::arguments::DemoArguments;
use crate::duration::spoken;
use crate::ending::{BROKEN, Finish, SYSTEM, UNWRITTEN};
use crate::output::{Level, Output, Verbosity};
use crate::signals::{self, Happening, Signals};
use crate::terminal::{self, Terminal};

const RESOURCE: &str = "counter";
const MASTERS: usize = 5;
const WORKERS: usize = 4;
/// The TTL of the lock, which is also the time of a quarantine.
const TTL: Duration = Duration::from_secs(2);
/// How long a holder pauses: until another worker has written, but no shorter than `PAUSE` and no
/// longer than `LONGEST_PAUSE`.
const PAUSE: Duration = Duration::from_millis(3_300);
const LONGEST_PAUSE: Duration = Duration::from_secs(7);

/// What happens to masters, and when.
const SCRIPT: [(Duration, usize, Change); 4] = [
    (Duration::from_millis(2_000), 1, Change::Hangs),
    (Duration::from_millis(3_500), 3, Change::Dies),
    (Duration::from_millis(5_000), 1, Change::GoesOn),
    (Duration::from_millis(5_500), 3, Change::ReturnsEmpty),
];
/// The time after which the next holder pauses.
const STOPS_AT: Duration = Duration::from_millis(8_500);
/// How long the demonstration continues after the late write.
const EPILOGUE: Duration = Duration::from_millis(1_200);
/// The longest time that the script takes.
const LONGEST: Duration = Duration::from_secs(18);
/// How long to wait for workers that end.
const CLOSING: Duration = Duration::from_secs(1);

/// How often the masters are checked and a frame is drawn.
const LOOK: Duration = Duration::from_millis(25);
const FRAME: Duration = Duration::from_millis(100);

/// Runs the demonstration.
pub(crate) fn demo(arguments: &DemoArguments, signals: &Signals<()>) -> Finish {
    let output = Output::new(Verbosity::Normal(0), false);
    let failed = |error: &dyn std::fmt::Display| {
        output.message(Level::Error, &format!("the demonstration cannot be set up: {error}"));
        Finish::Code(SYSTEM)
    };
    let masters = match Masters::start(MASTERS) {
        Ok(masters) => masters,
        Err(error) => return failed(&error),
    };
    let stage = Arc::new(Stage::new(WORKERS));
    let workers = match hire(&masters, &stage) {
        Ok(workers) => workers,
        Err(error) => return failed(&error),
    };
    let mut cast = Cast::new(masters);
    let mut show = Show::open();
    match play(&stage, &mut cast, &mut show, signals, &workers) {
        Ok(None) => show.rest(),
        Ok(Some(finish)) => return finish,
        // The reader of the output has ended, so the demonstration ends too.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Finish::Code(0),
        Err(error) => return failed(&error),
    }
    let until = stage.now();
    let scene = stage.scene();
    let mut text = summary(&scene, until);
    let mut code = if scene.violations() == 0 && scene.store.refused > 0 { 0 } else { BROKEN };
    if let Some(file) = arguments.svg() {
        let svg = picture::svg(&scene, MASTERS, cast.all_kept(&stage), until);
        match fs::write(file, svg) {
            Ok(()) => text.push_str(&format!("the timeline is drawn in {}\n", file.display())),
            Err(error) => {
                output.message(Level::Error, &format!("{} cannot be written: {error}", file.display()));
                code = UNWRITTEN;
            }
        }
    }
    // The reader of the pipe has gone, so the demonstration ends.
    let _ = show.say(&text);
    Finish::Code(code)
}

/// Starts the workers. Each has its own connections, like a separate process.
fn hire(masters: &Masters, stage: &Arc<Stage>) -> Result<Vec<JoinHandle<()>>, Box<dyn std::error::Error>> {
    let open = |name: String| -> Result<Locker, Box<dyn std::error::Error>> {
        let config = Config::builder(masters.urls()).ttl(TTL).restart_guard(TTL).client_name(name);
        Ok(quorlock_blocking::open(config.build()?)?)
    };
    // The masters are new: nothing can be locked there yet.
    open("director".into())?.bootstrap().wait()?;
    let hire = |worker| {
        let (locker, stage) = (open(event::worker_name(worker))?, Arc::clone(stage));
        let thread = thread::Builder::new().name(event::worker_name(worker));
        Ok(thread.spawn(move || worker::work(&stage, worker, &locker))?)
    };
    (0..WORKERS).map(hire).collect()
}

/// Runs the script to its end, or until the user ends it.
fn play(
    stage: &Stage,
    cast: &mut Cast,
    show: &mut Show,
    signals: &Signals<()>,
    workers: &[JoinHandle<()>],
) -> io::Result<Option<Finish>> {
    let terminal = Terminal::open();
    let mut script = SCRIPT.iter().peekable();
    let (mut told, mut next_frame, mut end) = (0, Duration::ZERO, LONGEST);
    let mut closed = None;
    let mut stops = Some(STOPS_AT);
    loop {
        let now = stage.now();
        while let Some((_, master, change)) = script.next_if(|(at, ..)| *at <= now) {
            cast.change(stage, *master, *change)?;
        }
        if stops.take_if(|at| *at <= now).is_some() {
            stage.scene().stops_next = true;
        }
        cast.look(stage);
        {
            let scene = stage.scene();
            let new = scene.events.get(told..).unwrap_or_default();
            if new.iter().any(|(_, event)| matches!(event, Event::Refused { .. })) {
                end = end.min(now + EPILOGUE);
            }
            show.events(new)?;
            told = scene.events.len();
            if now >= next_frame {
                show.frame(now, &scene, &cast.views)?;
                next_frame = now + FRAME;
            }
        }
        // Workers finish their current step. One that cannot finish ends with the process.
        if now >= end && closed.is_none() {
            stage.scene().is_closing = true;
            closed = Some(now + CLOSING);
        }
        if closed.is_some_and(|closed| now >= closed || workers.iter().all(JoinHandle::is_finished)) {
            let scene = stage.scene();
            show.events(scene.events.get(told..).unwrap_or_default())?;
            show.frame(now, &scene, &cast.views)?;
            return Ok(None);
        }
        match signals.next(Some(Instant::now() + LOOK)) {
            Some(Happening::Signal(SIGTSTP)) if terminal.has_job_control() => {
                show.rest();
                terminal::stop_self();
            }
            Some(Happening::Signal(SIGINT)) if terminal.is_ours() => {
                return Ok(Some(Finish::Interrupted { group: false }));
            }
            Some(Happening::Signal(signal)) if signals::asks_to_end(signal) => {
                return Ok(Some(Finish::Code(u8::try_from(128 + signal).unwrap_or(u8::MAX))));
            }
            _ => {}
        }
    }
}

fn summary(scene: &Scene, ran: Duration) -> String {
    let writes = scene.events.iter().filter(|(_, event)| matches!(event, Event::Writes { .. })).count();
    let largest = scene.fences.iter().max().copied();
    let largest =
        largest.map(|fence| format!(" (#{} is {fence})", scene.number_of(fence))).unwrap_or_default();
    format!(
        "\n{} grants in {}, longest wait {}, {} faults\n\
         late writes refused: {}, violations: {}\n\
         the store holds {} after {writes} writes{largest}\n",
        scene.fences.len(),
        spoken(ran),
        spoken(scene.longest_wait),
        scene.faults(),
        scene.store.refused,
        scene.violations(),
        scene.store.value,
    )
}
