//! The machine and the front in simulated worlds: what must hold inside Redlock's assumptions, and that the observer sees what breaks
//! outside of them.

mod assumed;
mod broken;
mod clusters;
mod failovers;
mod fair;
mod front;
mod kept;
mod kinds;
mod secured;
mod shares;
mod stores;
mod tries;
mod wake_ups;
mod worlds;
