//! The format of time spans in errors: `50 ms`, `4.2 s`, `3 min`, `366 d`, and what to do about a
//! key without an end.

use std::fmt;
use std::time::Duration;

/// What to do about a key of a lock that never expires: a client that set one may have died.
pub(crate) const ENDLESS: &str = "Quorlock sets no key that never expires: if no client holds the lock, delete it with `quorlock force-release`";

/// Prints a span as a person would say it, with one decimal at most.
pub(crate) struct Span(pub(crate) Duration);

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = self.0.as_millis();
        match millis {
            0 if self.0.is_zero() => write!(f, "0 ms"),
            0 => write!(f, "less than 1 ms"),
            1..1_000 => write!(f, "{millis} ms"),
            1_000..120_000 if millis % 1_000 < 100 => write!(f, "{} s", millis / 1_000),
            1_000..120_000 => write!(f, "{}.{} s", millis / 1_000, millis % 1_000 / 100),
            120_000..7_200_000 => write!(f, "{} min", millis / 60_000),
            7_200_000..172_800_000 => write!(f, "{} h", millis / 3_600_000),
            _ => write!(f, "{} d", millis / 86_400_000),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_printed_with_a_readable_unit() {
        let said = |millis| Span(Duration::from_millis(millis)).to_string();
        assert_eq!(said(0), "0 ms");
        assert_eq!(said(50), "50 ms");
        assert_eq!(said(4_200), "4.2 s");
        assert_eq!(said(9_050), "9 s");
        assert_eq!(said(180_000), "3 min");
        assert_eq!(Span(Duration::from_micros(3)).to_string(), "less than 1 ms");
    }

    #[test]
    fn longer_spans_are_printed_in_larger_units() {
        let said = |millis| Span(Duration::from_millis(millis)).to_string();
        let spans = [1, 999, 1_000, 1_099, 1_100, 119_999, 120_000, 7_199_999].map(said);
        assert_eq!(spans, ["1 ms", "999 ms", "1 s", "1 s", "1.1 s", "119.9 s", "2 min", "119 min"]);
        assert_eq!([7_200_000, 172_799_999, 172_800_000].map(said), ["2 h", "47 h", "2 d"]);
    }
}
