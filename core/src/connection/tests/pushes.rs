//! Messages that answer no command: those that requests have asked for, and too many others.

use super::*;

const STRANGE: [&str; 5] = [
    ">2\r\n+moving\r\n+elsewhere\r\n",
    ">3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$5\r\nhello\r\n",
    ">2\r\n$10\r\ninvalidate\r\n*1\r\n$7\r\nnot-our\r\n",
    ">2\r\n$10\r\ninvalidate\r\n_\r\n",
    ">2\r\n$10\r\ninvalidate\r\n*0\r\n",
];

fn is_down(alone: &Alone) -> bool {
    alone.connection.fault() == Some(Cause::UnaskedMessages)
}

#[test]
fn more_than_a_few_messages_that_nobody_asked_for_end_the_connection() {
    for message in STRANGE {
        for begin in [Alone::greeting, Alone::ready] {
            let mut alone = begin(one());
            alone.hear(message.repeat(64).as_bytes());
            assert_eq!(alone.connection.fault(), None, "{message}: a few are ignored");
            alone.hear(message.as_bytes());
            assert!(is_down(&alone), "{message}");
            assert!(matches!(alone.connection.state, State::Resting { until } if until > alone.now));
        }
    }
    let mut alone = Alone::ready(one());
    let keys = "$1\r\nk\r\n".repeat(65);
    alone.hear(format!(">2\r\n$10\r\ninvalidate\r\n*65\r\n{keys}").as_bytes());
    assert!(is_down(&alone), "many keys in one message");
}

#[test]
fn a_message_of_an_unknown_kind_says_nothing_about_keys() {
    for message in [">2\r\n+moving\r\n*1\r\n$1\r\nr\r\n", ">2\r\n+moving\r\n_\r\n"] {
        let mut alone = Alone::ready(one());
        alone.hear(message.as_bytes());
        assert!(alone.answers.next().is_none(), "{message}");
    }
}

#[test]
fn a_few_messages_that_nobody_asked_for_are_ignored_again_in_each_second() {
    let mut alone = Alone::ready(one());
    for _ in 0..100 {
        alone.hear(STRANGE[3].repeat(64).as_bytes());
        alone.pass(ms(1_000));
    }
    assert!(alone.connection.is_ready());
    alone.hear(STRANGE[3].repeat(64).as_bytes());
    alone.pass(ms(999));
    alone.hear(STRANGE[3].as_bytes());
    assert!(is_down(&alone));
}

#[test]
fn notifications_of_all_keys_that_requests_have_read_are_never_too_many() {
    const WAITERS: usize = 2_000;
    let mut alone = Alone::ready(one().max_in_flight_requests(WAITERS + 1));
    for number in 0..WAITERS {
        let resource = Resource::new(number.to_string()).unwrap();
        let token = Token::from_bytes([1; Token::BYTES]);
        let claim = Claim::new(&resource.into(), token, false, None);
        let request = Request { watch: true, claim, ..request(Action::Acquire, 1) };
        let Alone { connection, answers, now } = &mut alone;
        connection.submit(&request, &mut Wording::default(), *now, answers);
    }
    alone.hear(b"+OK\r\n");
    alone.hear(&b":1\r\n".repeat(WAITERS));
    assert_eq!(alone.answered(), [Answer::Yes; WAITERS]);
    for number in 0..WAITERS {
        let key = number.to_string();
        alone.hear(format!(">2\r\n$10\r\ninvalidate\r\n*1\r\n${}\r\n{key}\r\n", key.len()).as_bytes());
    }
    assert!(alone.connection.is_ready(), "{:?}", alone.connection.fault());
    // What has been asked for is used up at some time.
    let flood = STRANGE[2].repeat(1_000);
    let heard = (0..1_000).take_while(|_| {
        alone.hear(flood.as_bytes());
        alone.connection.is_ready()
    });
    assert!(heard.count() < 1_000);
    assert!(is_down(&alone));
}
