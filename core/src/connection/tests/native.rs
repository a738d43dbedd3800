//! Releases by the server's own command.

use super::*;

/// The same greeting by a server of this version.
fn greeting_by(version: &str) -> Vec<u8> {
    let replies = String::from_utf8(greeting(RELEASE.sha1_hex)).unwrap();
    let info = format!("$6\r\nmaster\r\n${}\r\n{version}\r\n", version.len());
    replies.replacen("$6\r\nmaster\r\n$0\r\n\r\n", &info, 1).into_bytes()
}

#[test]
fn a_release_uses_the_native_compare_and_delete_command_if_the_server_has_it() {
    for (version, command) in [
        (
            "redis_version:7.2.4\r\nvalkey_version:9.0.0\r\n",
            "*3\\r\\n$7\\r\\nDELIFEQ\\r\\n$1\\r\\nr\\r\\n$40\\r\\n",
        ),
        ("valkey_version:10.1.0\r\n", "*3\\r\\n$7\\r\\nDELIFEQ"),
        ("redis_version:8.4.0\r\n", "*4\\r\\n$5\\r\\nDELEX\\r\\n$1\\r\\nr\\r\\n$4\\r\\nIFEQ\\r\\n$40\\r\\n"),
        ("redis_version:10.0.0\r\n", "*4\\r\\n$5\\r\\nDELEX"),
        ("redis_version:8.3.9\r\n", "*5\\r\\n$7\\r\\nEVALSHA"),
        ("redis_version:7.2.4\r\nvalkey_version:8.1.4\r\n", "*5\\r\\n$7\\r\\nEVALSHA"),
        ("redis_version:255.255\r\nvalkey_version:unstable\r\n", "*5\\r\\n$7\\r\\nEVALSHA"),
        ("redis_version:\r\n", "*5\\r\\n$7\\r\\nEVALSHA"),
    ] {
        let mut alone = Alone::greeting(one());
        alone.hear(&greeting_by(version));
        assert!(alone.connection.is_ready());
        alone.submit(Action::Release, 1);
        let written = alone.written();
        assert!(written.starts_with(command), "{version:?}: {written}");
        alone.hear(b":1\r\n");
        assert_eq!(alone.answered(), [Answer::Yes]);
        // A request that reads the holder always uses a script.
        alone.submit(Action::Undo, 1);
        assert!(alone.written().contains("EVALSHA"));
    }
}

#[test]
fn an_unknown_or_denied_native_command_is_replaced_by_the_script() {
    for refusal in ["-ERR unknown command 'DELIFEQ', with args beginning with: \r\n", "-NOPERM no\r\n"] {
        let mut alone = Alone::greeting(one());
        alone.hear(&greeting_by("valkey_version:9.1.0\r\n"));
        alone.submit(Action::Release, 1);
        assert!(alone.written().contains("DELIFEQ"));
        alone.hear(refusal.as_bytes());
        assert!(alone.written().contains("EVAL"), "{refusal}");
        alone.hear(b":1\r\n");
        assert_eq!(alone.answered(), [Answer::Yes]);
        alone.submit(Action::Release, 2);
        assert!(alone.written().contains("EVALSHA"), "{refusal}");
    }
}

#[test]
fn an_error_of_the_native_command_leaves_the_outcome_to_the_script() {
    // A key of another type, as Valkey 9 and Redis 8.4 put it, and errors about writes, which the
    // script meets only if the key is ours.
    for refusal in [
        "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n",
        "-ERR Key should be of string type if conditions are specified\r\n",
        "-READONLY You can't write against a read only replica.\r\n",
        "-MISCONF Errors writing to the AOF file\r\n",
    ] {
        for (reply, outcome) in [(":0\r\n", Answer::No), (":1\r\n", Answer::Yes)] {
            let mut alone = Alone::greeting(one());
            alone.hear(&greeting_by("valkey_version:9.1.0\r\n"));
            alone.submit(Action::Release, 1);
            assert!(alone.written().contains("DELIFEQ"));
            alone.hear(refusal.as_bytes());
            assert_eq!(alone.answered(), [], "{refusal}");
            assert!(alone.written().contains("EVAL"), "{refusal}");
            alone.hear(reply.as_bytes());
            assert_eq!(alone.answered(), [outcome], "{refusal}");
            // The server knows the command, so the next release uses it again.
            alone.submit(Action::Release, 2);
            assert!(alone.written().contains("DELIFEQ"), "{refusal}");
        }
    }
}
