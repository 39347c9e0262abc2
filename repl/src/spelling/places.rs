//! Places that a prompt splits at their spaces: functions with their parameters.

/// Verbs whose first words are a place, which may be a function with its parameters.
const WITH_PLACES: [&str; 15] = [
    "advance",
    "b",
    "br",
    "break",
    "breakpoint",
    "hb",
    "hbreak",
    "jump",
    "l",
    "list",
    "tb",
    "tbreak",
    "thbreak",
    "u",
    "until",
];

/// Makes one word of each: `break area(int, int)`, `tbreak Ring<int, 4>::push`.
pub fn with_whole_places(words: Vec<String>) -> Vec<String> {
    if !words
        .first()
        .is_some_and(|verb| WITH_PLACES.contains(&verb.as_str()))
    {
        return words;
    }
    // What follows may compare: `--condition 'n < 3'`.
    let is_condition = |word: &String| word == "if" || word.starts_with("--");
    let end = words.iter().position(is_condition);
    let (places, condition) = words.split_at(end.unwrap_or(words.len()));
    let mut whole: Vec<String> = Vec::new();
    for word in places {
        match whole.last_mut().filter(|last| is_open(last)) {
            Some(last) => *last = format!("{last} {word}"),
            None => whole.push(word.clone()),
        }
    }
    // A bracket that nothing closes is no list.
    match whole.last().is_some_and(|last| is_open(last)) {
        true => words,
        false => [whole.as_slice(), condition].concat(),
    }
}

/// Returns whether a place has a bracket that is not closed yet. Those of operators are none.
fn is_open(place: &str) -> bool {
    let count = |brackets: [char; 2]| place.matches(brackets).count();
    !place.contains("operator") && count(['(', '<']) > count([')', '>'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_with_its_parameters_is_one_word() {
        let of = |line: &str| with_whole_places(line.split(' ').map(str::to_owned).collect());
        assert_eq!(of("break area(int, int)"), ["break", "area(int, int)"]);
        assert_eq!(
            of("tbreak Ring<int, 4>::push(int)"),
            ["tbreak", "Ring<int, 4>::push(int)"]
        );
        assert_eq!(of("until f(a, b)"), ["until", "f(a, b)"]);
        assert_eq!(of("b f g"), ["b", "f", "g"]);
        assert_eq!(
            of("b f(int, int) if a < (b + 1)"),
            ["b", "f(int, int)", "if", "a", "<", "(b", "+", "1)"]
        );
        assert_eq!(of("b operator< x"), ["b", "operator<", "x"]);
        assert_eq!(of("b f(int x"), ["b", "f(int", "x"]);
        let line = "b f --condition a<b --function g>";
        assert_eq!(of(line).join("|"), line.replace(' ', "|"));
    }
}
