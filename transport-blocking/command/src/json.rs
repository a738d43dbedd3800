//! Values as JSON, for programs that read what `quorlock` found out.

use std::fmt;

use crate::output::push_json_string;

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Json {
    Null,
    Flag(bool),
    Number(u128),
    Text(String),
    List(Vec<Self>),
    Object(Vec<(&'static str, Self)>),
}

impl Json {
    /// A text, or null.
    pub(crate) fn text(text: Option<impl Into<String>>) -> Self {
        text.map_or(Self::Null, |text| Self::Text(text.into()))
    }

    /// A whole number, or null.
    pub(crate) fn number(number: Option<impl Into<u128>>) -> Self {
        number.map_or(Self::Null, |number| Self::Number(number.into()))
    }

    /// A number of things.
    pub(crate) fn count(number: usize) -> Self {
        // No platform has wider numbers.
        Self::Number(number.try_into().unwrap_or(u128::MAX))
    }
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let quoted = |text: &str| {
            let mut quoted = String::new();
            push_json_string(&mut quoted, text);
            quoted
        };
        match self {
            Self::Null => f.write_str("null"),
            Self::Flag(flag) => write!(f, "{flag}"),
            Self::Number(number) => write!(f, "{number}"),
            Self::Text(text) => f.write_str(&quoted(text)),
            Self::List(values) => {
                f.write_str("[")?;
                for (place, value) in values.iter().enumerate() {
                    write!(f, "{}{value}", if place == 0 { "" } else { "," })?;
                }
                f.write_str("]")
            }
            Self::Object(fields) => {
                f.write_str("{")?;
                for (place, (name, value)) in fields.iter().enumerate() {
                    write!(f, "{}{}:{value}", if place == 0 { "" } else { "," }, quoted(name))?;
                }
                f.write_str("}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_written_as_json_has_them() {
        let value = Json::Object(vec![
            ("name", Json::text(Some("a \"b\"\n"))),
            ("none", Json::text(None::<String>)),
            ("many", Json::List(vec![Json::number(Some(7u64)), Json::Flag(true), Json::List(Vec::new())])),
            ("empty", Json::Object(Vec::new())),
        ]);
        assert_eq!(value.to_string(), r#"{"name":"a \"b\"\n","none":null,"many":[7,true,[]],"empty":{}}"#);
    }
}
