//! A command for some threads: `thread apply all bt`.

use super::frames::backtrace;
use super::options::options_len;
use super::{ours, put};

/// `thread apply all bt`, `thread apply 1 2 p x`.
pub fn threads(words: &[String]) -> Option<Vec<String>> {
    let text: Vec<&str> = words.iter().map(String::as_str).collect();
    match text.as_slice() {
        ["apply", "all", "bt" | "backtrace" | "where", ..] => {
            let mut out = backtrace(&words[2..]);
            out[0] = "backtrace".to_owned();
            out.insert(1, "--all".to_owned());
            Some(out)
        }
        ["apply", ..] => Some(applied(&words[1..])),
        _ => None,
    }
}

/// The threads, and a verb with its words.
pub fn applied(words: &[String]) -> Vec<String> {
    let (threads, verb) = words.split_at(applied_at(words));
    let mut out = put("thread-apply", threads);
    out.extend(match verb.first().map(String::as_str) {
        Some("where") => put("backtrace", &verb[1..]),
        _ => ours(verb.to_vec()),
    });
    out
}

/// Returns the index of the verb behind the options and threads of `thread apply`: `all`, or numbers.
pub fn applied_at(words: &[String]) -> usize {
    let is_number = |word: &String| word.bytes().all(|byte| byte.is_ascii_digit());
    let options = options_len(words);
    let threads = words[options..].iter();
    let threads = threads.take_while(|word| *word == "all" || is_number(word));
    options + threads.count()
}
