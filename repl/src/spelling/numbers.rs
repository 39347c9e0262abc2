//! Commands about what has a number: `delete 2-4`, `disable breakpoints 2`, `delete display 1`.

use std::ops::RangeInclusive;

use super::{ours, put};

/// Most numbers that a range stands for.
const LONGEST_RANGE: u32 = 1_000;

/// Returns the words of a command that names breakpoints or displays by their numbers; without any, it means all.
pub fn numbered(verb: &str, rest: &[String]) -> Vec<String> {
    let is_delete = matches!(verb, "d" | "del" | "delete");
    let all = ["--all".to_owned()];
    match rest {
        _ if verb == "undisplay" => put(verb, &numbers(rest)),
        [what] if what == "display" && is_delete => put("undisplay", &all),
        [what, which @ ..] if what == "display" && is_delete => put("undisplay", &numbers(which)),
        [what, which @ ..] if what == "breakpoints" => {
            ours([&[verb.to_owned()][..], which].concat())
        }
        [] => put(verb, &all),
        [what] if what == "all" => put(verb, &all),
        _ => put(verb, &numbers(rest)),
    }
}

/// Writes each range as its numbers: `2-4` as `2 3 4`.
fn numbers(words: &[String]) -> Vec<String> {
    let each = words.iter().map(|word| match range(word) {
        Some(range) => range.map(|number| number.to_string()).collect(),
        None => vec![word.clone()],
    });
    each.collect::<Vec<_>>().concat()
}

fn range(word: &str) -> Option<RangeInclusive<u32>> {
    let (first, last) = word.split_once('-')?;
    let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
    let len = last.checked_sub(first)?;
    (len < LONGEST_RANGE).then_some(first..=last)
}
