//! Regular expressions of verbs that search for names.

use debuginfo::FullName;
use regex_automata::meta::Regex;

use crate::protocol::Failure;

/// A regular expression, or none, which matches all names.
pub(super) struct Pattern(Option<Regex>);

impl Pattern {
    /// Reads it.
    ///
    /// # Errors
    /// [`crate::protocol::Code::BadRequest`]: it is not a regular expression.
    pub fn read(text: Option<&str>) -> Result<Pattern, Failure> {
        let Some(text) = text.filter(|text| !text.is_empty()) else {
            return Ok(Pattern(None));
        };
        let read = Regex::new(text);
        read.map(|regex| Pattern(Some(regex))).map_err(|error| {
            let why = error.syntax_error().map(ToString::to_string);
            let why = why.unwrap_or_else(|| error.to_string());
            let last = why.lines().last().unwrap_or_default().to_owned();
            Failure::bad_request(format!("\"{text}\" is no regular expression: {last}"))
                .hint("write a part of the name, or ^name$ for the whole of it")
        })
    }

    /// Returns whether a name has a match.
    pub fn fits(&self, name: &str) -> bool {
        self.0.as_ref().is_none_or(|regex| regex.is_match(name))
    }

    /// Returns whether a name has a match, with or without the namespaces around it.
    pub fn fits_name(&self, name: &FullName) -> bool {
        self.fits(&name.whole) || self.fits(&name.own)
    }

    /// Returns whether all names fit.
    pub fn is_none(&self) -> bool {
        self.0.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_name_fits_unless_anchored() {
        let fits = |pattern, name| Pattern::read(Some(pattern)).unwrap().fits(name);
        assert!(fits("arse", "parse_line"));
        assert!(!fits("^arse", "parse_line"));
        assert!(fits("^p.*e$", "parse_line"));
        assert!(Pattern::read(None).unwrap().fits("anything"));
        let within = FullName {
            whole: "shop::Order".to_owned(),
            own: "Order".to_owned(),
        };
        for pattern in ["^Order$", "^shop::", "p::O"] {
            let read = Pattern::read(Some(pattern)).unwrap();
            assert!(read.fits_name(&within), "{pattern}");
        }
        let wrong = Pattern::read(Some("a(")).err().expect("it is open");
        assert!(wrong.message.contains("no regular expression"), "{wrong}");
    }
}
