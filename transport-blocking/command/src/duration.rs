//! Durations as people write them: `10s`, `500ms`, `1.5s`, `1h30m`.

use std::time::Duration;

/// The units, longest first, in nanoseconds.
const UNITS: [(&str, u128); 4] =
    [("h", 3_600_000_000_000), ("m", 60_000_000_000), ("s", 1_000_000_000), ("ms", 1_000_000)];

/// A hundred years. Nothing that a lock does takes longer, and no sum of such durations overflows.
const LONGEST: u128 = 100 * 365 * 24 * 3_600_000_000_000;

/// Reads a duration. The error is the rest of a sentence that begins with the name of the option.
///
/// Larger units come first and each at most once, so that `30m1h`, more likely a slip than a wish, is refused.
/// What is finer than a nanosecond is cut off.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    if text.is_empty() {
        return Err("needs a duration such as 10s, 500ms, 1.5s, 2m or 1h30m".to_owned());
    }
    if text.bytes().all(|byte| byte == b'0') {
        return Ok(Duration::ZERO);
    }
    let mut rest = text;
    let mut total: u128 = 0;
    let mut smaller_than = u128::MAX;
    while !rest.is_empty() {
        let number = leading(rest, |byte| byte.is_ascii_digit() || byte == b'.');
        let after_number = rest.strip_prefix(number).unwrap_or_default();
        let unit = leading(after_number, |byte| byte.is_ascii_alphabetic());
        rest = after_number.strip_prefix(unit).unwrap_or_default();
        if number.is_empty() {
            return Err("is not a duration: write for example 10s, 500ms, 1.5s, 2m or 1h30m".to_owned());
        }
        if unit.is_empty() && rest.is_empty() {
            return Err("needs a unit behind its number: ms, s, m or h, as in 10s".to_owned());
        }
        let Some((_, nanos)) = UNITS.iter().find(|(name, _)| *name == unit) else {
            return Err("has an unknown unit: the units are ms, s, m and h, as in 1h30m or 1.5s".to_owned());
        };
        if *nanos >= smaller_than {
            return Err(
                "has its units out of order: the larger one comes first, each once, as in 1h30m".to_owned()
            );
        }
        smaller_than = *nanos;
        total = total.saturating_add(scaled(number, *nanos)?);
        if total > LONGEST {
            return Err("is too long: a hundred years are the most".to_owned());
        }
    }
    let seconds = u64::try_from(total / 1_000_000_000).unwrap_or(u64::MAX);
    let nanos = u32::try_from(total % 1_000_000_000).unwrap_or_default();
    Ok(Duration::new(seconds, nanos))
}

/// The longest beginning of `text` of which every byte is `wanted`.
fn leading(text: &str, wanted: impl Fn(u8) -> bool) -> &str {
    let end = text.bytes().position(|byte| !wanted(byte)).unwrap_or(text.len());
    text.get(..end).unwrap_or_default()
}

/// `number`, with or without a fraction, times `unit` nanoseconds: exact, in whole numbers.
fn scaled(number: &str, unit: u128) -> Result<u128, String> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    if whole.is_empty() || fraction.is_empty() || fraction.contains('.') {
        return Err("is not a duration: a fraction is written as in 1.5s or 0.5s".to_owned());
    }
    // Digits only, so this fails for one reason: there are more than fit.
    let whole: u128 = whole.parse().unwrap_or(u128::MAX);
    let mut total = whole.saturating_mul(unit);
    let mut place = unit;
    for digit in fraction.bytes() {
        place /= 10;
        total = total.saturating_add(u128::from(digit.saturating_sub(b'0')) * place);
    }
    Ok(total)
}

/// A span as a person says it: `50 ms`, `8.2 s`, `3 min`, `5 h`, `12 d`.
pub(crate) fn spoken(span: Duration) -> String {
    let (millis, minutes) = (span.as_millis(), span.as_secs() / 60);
    match minutes {
        0 if millis < 1_000 => format!("{millis} ms"),
        0..2 => format!("{}.{} s", millis / 1_000, millis % 1_000 / 100),
        2..120 => format!("{minutes} min"),
        120..2_880 => format!("{} h", minutes / 60),
        _ => format!("{} d", minutes / 1_440),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn durations_are_read_exactly() {
        for (text, millis) in [
            ("0", 0),
            ("00", 0),
            ("0s", 0),
            ("10s", 10_000),
            ("500ms", 500),
            ("1.5s", 1_500),
            ("0.25s", 250),
            ("2m", 120_000),
            ("1h", 3_600_000),
            ("1h30m", 5_400_000),
            ("1m0.5s", 60_500),
            ("1h2m3s4ms", 3_723_004),
            ("90m", 5_400_000),
            ("0.1h", 360_000),
            ("007s", 7_000),
        ] {
            assert_eq!(parse(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        assert_eq!(parse("1.0000000019s"), Ok(Duration::new(1, 1)));
        assert_eq!(parse("876000h"), Ok(Duration::from_secs(100 * 365 * 24 * 3600)));
    }

    #[test]
    fn what_is_no_duration_is_refused_with_the_reason() {
        for (text, reason) in [
            ("", "needs a duration"),
            ("10", "unit"),
            ("1.5", "unit"),
            ("1h30", "unit"),
            ("s", "not a duration"),
            ("-1s", "not a duration"),
            ("+1s", "not a duration"),
            (" 1s", "not a duration"),
            ("1s ", "not a duration"),
            ("1 s", "unknown unit"),
            ("1d", "unknown unit"),
            ("1S", "unknown unit"),
            ("1us", "unknown unit"),
            ("1.s", "fraction"),
            (".5s", "fraction"),
            ("1.2.3s", "fraction"),
            ("30m1h", "out of order"),
            ("1s1s", "out of order"),
            ("876001h", "too long"),
            ("99999999999999999999999999999999999999999999999999h", "too long"),
            ("1٣s", "unknown unit"),
        ] {
            let error = parse(text).expect_err(text);
            assert!(error.contains(reason), "{text}: {error}");
        }
    }

    #[test]
    fn spans_are_said_as_people_say_them() {
        for (millis, said) in [
            (0, "0 ms"),
            (999, "999 ms"),
            (8_249, "8.2 s"),
            (119_999, "119.9 s"),
            (120_000, "2 min"),
            (7_200_000, "2 h"),
            (172_800_000, "2 d"),
        ] {
            assert_eq!(spoken(Duration::from_millis(millis)), said);
        }
    }

    proptest! {
        #[test]
        fn nothing_panics(text in ".*") {
            let _ = parse(&text);
        }

        #[test]
        fn nothing_that_looks_like_a_duration_panics(text in "([0-9.]{0,50}(ms|s|m|h|d)?){0,6}") {
            let _ = parse(&text);
        }

        #[test]
        fn whole_milliseconds_come_back(millis in 0u64..4_000_000_000) {
            prop_assert_eq!(parse(&format!("{millis}ms")), Ok(Duration::from_millis(millis)));
        }
    }
}
