//! Options around what gdb spells otherwise: `list --session 1 10, 12`, `set var x = 3 --json`.

use server::verbs::{Form, Word, find};

/// Commands with another verb in them, to which the options behind it belong.
const WITH_VERBS: [&str; 4] = ["taas", "thr", "thread", "thread-apply"];

/// A command without the options that stand around its own words.
pub struct Apart {
    /// Those between its first word and the next.
    pub before: Vec<Vec<String>>,
    /// Its words.
    pub plain: Vec<String>,
    /// The options at its end.
    pub behind: Vec<String>,
}

impl Apart {
    /// Takes the words of a command apart. `verb` is our name of it.
    pub fn of(words: &[String], verb: &str) -> Apart {
        let own = find(verb).and_then(|verb| verb.words).unwrap_or_default();
        let first = 1.min(words.len());
        let mut begin = first;
        let mut before = Vec::new();
        while let Some(len) = words.get(begin).and_then(|word| option_len(word, own))
            && begin + len <= words.len()
        {
            before.push(words[begin..begin + len].to_vec());
            begin += len;
        }
        let mut end = words.len();
        // What follows `--` is no option.
        let is_end_free = !words.iter().any(|word| word == "--")
            && !words
                .first()
                .is_some_and(|verb| WITH_VERBS.contains(&verb.as_str()));
        let last_len = |end: usize| {
            let ends_with = |len: usize| {
                let at = end.checked_sub(len).filter(|at| *at >= begin);
                at.is_some_and(|at| option_len(&words[at], own) == Some(len))
            };
            [1, 2].into_iter().find(|len| ends_with(*len))
        };
        while let Some(len) = last_len(end).filter(|_| is_end_free) {
            end -= len;
        }
        Apart {
            before,
            plain: [&words[..first], &words[begin..end]].concat(),
            behind: words[end..].to_vec(),
        }
    }

    /// Puts the options around other words for the same. An option that is among these is not written twice.
    pub fn around(self, words: Vec<String>) -> Vec<String> {
        let is_new = |option: &&Vec<String>| !words.contains(&option[0]);
        let before: Vec<String> = self
            .before
            .iter()
            .filter(is_new)
            .flatten()
            .cloned()
            .collect();
        let (verb, rest) = words.split_at(1.min(words.len()));
        [verb, before.as_slice(), rest, self.behind.as_slice()].concat()
    }
}

/// Returns how many words options take at the beginning.
pub fn options_len(words: &[String]) -> usize {
    let mut len = 0;
    while let Some(word) = words.get(len).filter(|word| word.starts_with("--")) {
        let takes_value = matches!(word.as_str(), "--session" | "--program" | "--color");
        len += 1 + usize::from(takes_value);
    }
    len.min(words.len())
}

/// Returns how many words an option takes; `None` for what is none of the command's.
fn option_len(word: &str, own: &[Word]) -> Option<usize> {
    let name = word.strip_prefix("--")?;
    let (name, is_whole) = match name.split_once('=') {
        Some((name, _)) => (name, true),
        None => (name, false),
    };
    let takes_value = match name {
        "session" | "program" | "color" => true,
        "json" | "help" => false,
        name => {
            let mut options = own.iter().filter(|word| is_option(word));
            let option = options.find(|option| option.long() == name)?;
            !matches!(option.form, Form::Flag(_))
        }
    };
    Some(1 + usize::from(takes_value && !is_whole))
}

fn is_option(word: &Word) -> bool {
    matches!(
        word.form,
        Form::NumberOption
            | Form::SecondsOption
            | Form::TextOption(_)
            | Form::Choice(_)
            | Form::Flag(_)
    )
}
