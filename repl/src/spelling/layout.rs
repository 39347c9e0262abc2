//! Options of gdb's `print` that have no meaning here: how a value is laid out, and how much of it is shown.

/// Those that are on or off.
const LAYOUT: [&str; 11] = [
    "-address",
    "-array",
    "-array-indexes",
    "-null-stop",
    "-object",
    "-pretty",
    "-raw-values",
    "-static-members",
    "-symbol",
    "-union",
    "-vtbl",
];
/// Those that take a number.
const LIMITS: [&str; 4] = ["-characters", "-elements", "-max-depth", "-repeats"];

/// Takes them away: `p -pretty -- x` becomes `p x`.
pub fn without_layout(mut words: Vec<String>) -> Vec<String> {
    let is_print = words.first().is_some_and(|verb| {
        matches!(
            verb.split('/').next(),
            Some("p" | "print" | "inspect" | "call")
        )
    });
    let mut at = 1;
    while let Some(word) = words.get(at).filter(|_| is_print) {
        let next = words.get(at + 1).map(String::as_str);
        at += match word.as_str() {
            word if LIMITS.contains(&word) => 2,
            word if LAYOUT.contains(&word) => 1 + usize::from(matches!(next, Some("on" | "off"))),
            _ => break,
        };
    }
    if at > 1 && words.get(at).is_some_and(|word| word == "--") {
        at += 1;
    }
    // A last word is an expression: `p -array`.
    if at < words.len() {
        words.drain(1..at);
    }
    words
}
