//! Which frames gdb's words mean: `bt -5`, `where full`, `frame function main`.

use super::put;

/// `bt 5`, `bt -5`, `bt full`, `bt full 5`.
pub fn backtrace(words: &[String]) -> Vec<String> {
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let word = |word: &String| match (word.as_str(), word.strip_prefix('-')) {
        ("full" | "-full", _) => vec!["--locals".to_owned()],
        (_, Some(number)) if !number.is_empty() && is_number(number) => {
            vec!["--outermost".to_owned(), number.to_owned()]
        }
        (number, _) if is_number(number) => vec!["--limit".to_owned(), number.to_owned()],
        _ => vec![word.clone()],
    };
    let follows_option = |at: usize| words[at].starts_with("--") && words[at] != "--all";
    let mut out = vec![words[0].clone()];
    for (at, text) in words.iter().enumerate().skip(1) {
        match follows_option(at - 1) {
            true => out.push(text.clone()),
            false => out.extend(word(text)),
        }
    }
    out
}

/// Says whether a word after `where` is one of gdb's, which is a backtrace: `5`, `-5`, `full`.
pub fn is_of_backtrace(word: &str) -> bool {
    let digits = word.strip_prefix('-').unwrap_or(word);
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number || digits == "full"
}

/// What names a frame: `level 1`, `function main`, `1`.
pub fn a_frame(words: &[String]) -> Vec<String> {
    match words {
        [level, rest @ ..] if level == "level" && !rest.is_empty() => rest.to_vec(),
        [function, rest @ ..] if function == "function" && !rest.is_empty() => {
            put("--function", rest)
        }
        _ => words.to_vec(),
    }
}
