//! The names of a lock in messages and in JSON.

use crate::output::JsonValue;

/// The names of a lock in messages and in JSON.
#[derive(Debug)]
pub(crate) struct Subject {
    /// For people.
    pub(crate) name: String,
    /// RESOURCE.
    pub(crate) resource: String,
    /// The others of `--also`.
    pub(crate) also: Vec<String>,
    pub(crate) is_shared: bool,
    pub(crate) permits: Option<u32>,
}

impl Subject {
    /// The fields of an event about this lock, followed by `more`.
    pub(crate) fn fields<'a>(
        &'a self,
        more: impl IntoIterator<Item = (&'static str, JsonValue<'a>)>,
    ) -> Vec<(&'static str, JsonValue<'a>)> {
        let also = (!self.also.is_empty()).then_some(("also", JsonValue::Texts(&self.also)));
        let shared = self.is_shared.then_some(("shared", JsonValue::Flag(true)));
        let permits = self.permits.map(|permits| ("permits", JsonValue::Number(permits.into())));
        let mut fields = vec![("resource", JsonValue::Text(&self.resource))];
        fields.extend(also.into_iter().chain(shared).chain(permits).chain(more));
        fields
    }
}
