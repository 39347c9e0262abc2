//! "Did you mean": the nearest of some known words, or none if no word is near.

use clap::error::{ContextKind, ContextValue};

/// The least likeness of words that differ by one slip.
const SLIP: f64 = 0.9;

/// Returns the candidate most similar to `word`, ignoring case, if one is similar enough.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_lowercase();
    let likeness = |candidate: &str| {
        let candidate = candidate.to_lowercase();
        let likeness = strsim::jaro_winkler(&word, &candidate);
        // In a short word one slip is much.
        let is_slip =
            word.chars().count() > 2 && strsim::damerau_levenshtein(&word, &candidate) == 1;
        if is_slip {
            likeness.max(SLIP)
        } else {
            likeness
        }
    };
    candidates
        .into_iter()
        .map(|candidate| (likeness(candidate), candidate))
        .filter(|(likeness, _)| *likeness > 0.8)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate)
}

/// How Rust says that a text is no number.
const NO_NUMBER: &str = "invalid digit found in string";

/// Says of a text that is no number what to write.
pub fn asking_for_number(text: &str) -> String {
    text.replace(NO_NUMBER, "write a number")
}

/// Removes from a mistake on the command line the suggestions that only happen to share letters with what was written, and
/// asks for a number where one is wanted.
pub fn without_far(mut error: clap::Error) -> clap::Error {
    let text = error.to_string();
    if let Some(text) = text.strip_prefix("error: ")
        && text.contains(NO_NUMBER)
    {
        return clap::Error::raw(error.kind(), asking_for_number(text));
    }
    for (wrong, suggested) in [
        (ContextKind::InvalidArg, ContextKind::SuggestedArg),
        (
            ContextKind::InvalidSubcommand,
            ContextKind::SuggestedSubcommand,
        ),
        (ContextKind::InvalidValue, ContextKind::SuggestedValue),
    ] {
        let Some(ContextValue::String(wrong)) = error.get(wrong) else {
            continue;
        };
        let is_near = |word: &String| is_near(wrong, word);
        let near = match error.get(suggested) {
            Some(ContextValue::String(word)) => {
                is_near(word).then(|| error.get(suggested).cloned())
            }
            Some(ContextValue::Strings(words)) => {
                let near: Vec<String> =
                    words.iter().filter(|word| is_near(word)).cloned().collect();
                (!near.is_empty()).then_some(Some(ContextValue::Strings(near)))
            }
            _ => continue,
        };
        match near.flatten() {
            Some(near) => drop(error.insert(suggested, near)),
            None => {
                error.remove(suggested);
                if suggested == ContextKind::SuggestedArg {
                    // It has the option that was suggested.
                    error.remove(ContextKind::Usage);
                }
            }
        }
    }
    if matches!(error.get(ContextKind::Suggested), Some(ContextValue::StyledStrs(all)) if all.is_empty())
    {
        error.remove(ContextKind::Suggested);
    }
    error
}

/// Returns whether a word may be meant by another one: it begins with it or has few other letters.
fn is_near(written: &str, meant: &str) -> bool {
    let (written, meant) = (
        written.trim_start_matches('-'),
        meant.trim_start_matches('-'),
    );
    let (written, meant) = (written.to_lowercase(), meant.to_lowercase());
    let longest = written.chars().count().max(meant.chars().count());
    let shortest = written.chars().count().min(meant.chars().count());
    let begins = shortest >= 3 && (meant.starts_with(&written) || written.starts_with(&meant));
    begins || strsim::damerau_levenshtein(&written, &meant) * 3 <= longest
}

/// Returns whether `text` is the single word `word` with a typing error.
pub fn is_slip(text: &str, word: &str) -> bool {
    let text = text.to_lowercase();
    text.chars().all(char::is_alphabetic) && strsim::damerau_levenshtein(&text, word) == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_finds_its_word_and_nonsense_finds_none() {
        let formats = ["table", "csv", "json", "jsonl", "parquet"];
        assert_eq!(nearest("jsn", formats), Some("json"));
        assert_eq!(nearest("Tabel", formats), Some("table"));
        assert_eq!(nearest("parket", formats), Some("parquet"));
        assert_eq!(nearest("aap", ["fib", "app"]), Some("app"));
        assert_eq!(nearest("xml", formats), None);
        assert_eq!(nearest("", formats), None);
    }

    #[test]
    fn only_near_words_are_suggested() {
        for (written, meant) in [
            ("--strngs", "--strings"),
            ("--output-file", "--output"),
            ("rport", "report"),
        ] {
            assert!(is_near(written, meant), "{written} {meant}");
        }
        assert!(!is_near("--nope", "--copies"));
        assert!(!is_near("x", "export"));
        assert!(!is_near("sessions", "s"));
    }

    #[test]
    fn a_number_is_asked_for() {
        let count = clap::Arg::new("count").value_parser(clap::value_parser!(u32));
        let command = clap::Command::new("app").arg(count);
        let error = command.try_get_matches_from(["app", "x"]).unwrap_err();
        let told = without_far(error).to_string();
        assert!(
            told.starts_with("error: invalid value 'x' for '[count]': write a number\n"),
            "{told}"
        );
    }

    #[test]
    fn a_slip_is_one_letter_off() {
        assert!(is_slip("hlep", "help"));
        assert!(is_slip("Hel", "help"));
        assert!(!is_slip("help", "help"));
        assert!(!is_slip("shell", "help"));
        assert!(!is_slip("help 1", "help"));
    }
}
