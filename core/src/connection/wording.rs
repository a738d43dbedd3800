//! A request in the words of its command, once for all masters.

use super::requests::Form;
use crate::protocol::{Fleet, Request};
use crate::wire::Script;

/// A request's script and its command as bytes, found once for all masters that get it in the same
/// form.
#[derive(Clone, Default)]
pub(crate) struct Wording {
    /// For masters of which all clients must agree on this.
    fleet: Option<Fleet>,
    script: Option<Option<&'static Script>>,
    form: Option<Form>,
    bytes: Vec<u8>,
}

impl Wording {
    /// Another request is to be put into words.
    pub(crate) fn clear(&mut self) {
        self.script = None;
    }

    /// The script that carries the request out; see [`Request::script`].
    pub(super) fn script(&mut self, request: &Request, fleet: Option<Fleet>) -> Option<&'static Script> {
        match self.script {
            Some(script) if self.fleet == fleet => script,
            _ => {
                (self.fleet, self.form) = (fleet, None);
                *self.script.insert(request.script(fleet))
            }
        }
    }

    /// The command for a master of which the script was asked last.
    pub(super) fn of(&mut self, request: &Request, form: Form) -> &[u8] {
        if self.form != Some(form) {
            self.bytes.clear();
            request.encode_with(self.script.flatten(), form, self.fleet, &mut self.bytes);
            self.form = Some(form);
        }
        &self.bytes
    }
}
