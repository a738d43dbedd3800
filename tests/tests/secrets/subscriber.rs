//! A subscriber of `tracing` that prints everything of every level.

use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

struct Printer(AtomicU64);

/// Prints spans and events from now on, in all threads.
pub(crate) fn print_all() {
    tracing::subscriber::set_global_default(Printer(AtomicU64::new(1))).unwrap();
}

/// The fields of one span or event, in one line.
struct Fields(String);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0 += &format!(" {}={value:?}", field.name());
    }
}

impl Subscriber for Printer {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, attributes: &Attributes<'_>) -> Id {
        let mut fields = Fields(attributes.metadata().name().to_owned());
        attributes.record(&mut fields);
        eprintln!("{}", fields.0);
        Id::from_u64(self.0.fetch_add(1, Ordering::Relaxed))
    }

    fn record(&self, _: &Id, values: &Record<'_>) {
        let mut fields = Fields(String::new());
        values.record(&mut fields);
        eprintln!("{}", fields.0);
    }

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields(event.metadata().name().to_owned());
        event.record(&mut fields);
        eprintln!("{}", fields.0);
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}
