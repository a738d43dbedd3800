//! Durations as people write them: `10s`, `500ms`, `1.5s`, `1h30m`.

use std::time::Duration;

use humantime::DurationError;

/// A hundred years. Nothing that a lock does takes longer, and no sum of such durations overflows.
const LONGEST: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

const NO_DURATION: &str = "is not a duration: write for example 10s, 500ms, 1.5s, 2m or 1h30m";
const UNITS: &str = "has an unknown unit: the units are ms, s, m, h and d, as in 1h30m or 1.5s";
const TOO_LONG: &str = "is too long: the maximum is a hundred years";
const OUT_OF_RANGE: &str = "is too long or too precise: use a smaller unit in place of a long fraction";

/// Reads a duration. The error is the rest of a sentence that begins with the name of the option;
/// it repeats nothing of `text`.
pub(crate) fn parse(text: &str) -> Result<Duration, &'static str> {
    // `M` would be a month, which no caller means.
    if text.contains('M') {
        return Err(UNITS);
    }
    let duration = humantime::parse_duration(text).map_err(reason)?;
    if duration > LONGEST { Err(TOO_LONG) } else { Ok(duration) }
}

/// The same for a duration that must be longer than zero.
pub(crate) fn parse_positive(text: &str) -> Result<Duration, &'static str> {
    match parse(text)? {
        Duration::ZERO => Err("must be longer than zero"),
        duration => Ok(duration),
    }
}

fn reason(error: DurationError) -> &'static str {
    match error {
        DurationError::Empty => "needs a duration such as 10s, 500ms, 1.5s, 2m or 1h30m",
        DurationError::UnknownUnit { unit, .. } if unit.is_empty() => {
            "needs a unit after its number: ms, s, m, h or d, as in 10s"
        }
        DurationError::UnknownUnit { .. } => UNITS,
        DurationError::NumberOverflow => OUT_OF_RANGE,
        _ => NO_DURATION,
    }
}

/// A span as people write it: `50 ms`, `8.2 s`, `3 min`, `5 h`, `12 d`.
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
            ("1.5h30m", 7_200_000),
            ("0.1d", 8_640_000),
        ] {
            assert_eq!(parse(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        assert_eq!(parse("1.000000001s"), Ok(Duration::new(1, 1)));
        assert_eq!(parse("876000h"), Ok(Duration::from_secs(100 * 365 * 24 * 3600)));
    }

    #[test]
    fn an_invalid_duration_is_refused_with_the_reason() {
        for (text, reason) in [
            ("", "needs a duration"),
            ("10", "unit"),
            ("1.5", "unit"),
            ("1h30", "unit"),
            ("s", "not a duration"),
            ("-1s", "not a duration"),
            ("+1s", "not a duration"),
            ("1M", "unknown unit"),
            ("1S", "unknown unit"),
            ("1x", "unknown unit"),
            ("1.5x", "unknown unit"),
            ("1.s", "not a duration"),
            (".5s", "not a duration"),
            ("1.2.3s", "not a duration"),
            ("1.0000000001s", "too precise"),
            ("876001h", "too long"),
            ("99999999999999999999999999999999999999999999999999h", "too long"),
            ("1٣s", "not a duration"),
        ] {
            let error = parse(text).expect_err(text);
            assert!(error.contains(reason), "{text}: {error}");
        }
    }

    #[test]
    fn a_positive_duration_is_required_where_zero_makes_no_sense() {
        assert!(parse_positive("0").is_err_and(|reason| reason.contains("longer than zero")));
        assert_eq!(parse_positive("1ms"), Ok(Duration::from_millis(1)));
    }

    #[test]
    fn durations_are_printed_in_a_readable_unit() {
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
        fn whole_milliseconds_survive_writing_and_reading(millis in 0u64..4_000_000_000) {
            prop_assert_eq!(parse(&format!("{millis}ms")), Ok(Duration::from_millis(millis)));
        }
    }
}
