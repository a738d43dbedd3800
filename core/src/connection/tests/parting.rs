//! Releases that are written behind what a silent master has not answered.

use super::*;
use crate::protocol::Targets;

#[test]
fn the_release_behind_a_lock_that_was_downgraded_is_a_readers() {
    let mut alone = Alone::ready(one());
    alone.submit(Action::Acquire, 1);
    let targets = Targets::from(Resource::new("r").unwrap()).downgraded();
    let claim = Claim::new(&targets, Token::from_bytes([1; Token::BYTES]), false, None);
    let reader = |action| Request { action, claim: claim.clone(), ..request(action, 1) };
    let extension = reader(Action::Extend);
    alone.connection.submit(&extension, &mut Wording::default(), alone.now, &mut alone.answers);
    alone.written();
    alone.pass(ms(50));
    let mut expected = BytesMut::new();
    reader(Action::Release).encode(Form::ByText, None, &mut expected);
    assert_eq!(alone.written(), expected.escape_ascii().to_string());
}
