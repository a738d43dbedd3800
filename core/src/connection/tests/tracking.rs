//! Whether a waiter's request has the server report changes of its key.

use super::*;

/// A connection in RESP2, to a server that does not know HELLO.
fn ready_in_resp2(settings: ConfigBuilder) -> Alone {
    let replies = String::from_utf8(greeting(RELEASE.sha1_hex)).unwrap();
    let rest = replies.strip_prefix("%1\r\n$4\r\nrole\r\n$6\r\nmaster\r\n").unwrap();
    let mut alone = Alone::greeting(settings);
    alone.hear(format!("-ERR unknown command 'HELLO'\r\n{rest}").as_bytes());
    alone.written();
    alone.hear(rest.replace("_\r\n", "$-1\r\n").as_bytes());
    assert!(alone.connection.is_ready());
    alone
}

#[test]
fn notifications_are_turned_on_for_a_waiter_if_they_are_wanted_and_the_protocol_has_them() {
    let [wanted, unwanted] = [true, false].map(|wanted| move || one().wake_ups(wanted));
    for (mut alone, watch, is_on) in [
        (Alone::ready(wanted()), true, true),
        (Alone::ready(wanted()), false, false),
        (Alone::ready(unwanted()), true, false),
        (ready_in_resp2(wanted()), true, false),
        (ready_in_resp2(unwanted()), true, false),
    ] {
        let dialect = alone.connection.dialect;
        let request = Request { watch, ..request(Action::Acquire, 1) };
        alone.connection.submit(&request, &mut Wording::default(), alone.now, &mut alone.answers);
        assert_eq!(alone.written().contains("TRACKING"), is_on, "{dialect:?}, watch: {watch}");
    }
}
