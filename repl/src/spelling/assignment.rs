//! gdb's `set`, which assigns: `set var x = 3`.

/// `set var x = 3`, `set x = 3`, `set x += 3`, `set var x++`; `None` for `set x 3`.
pub fn assignment(words: &[String]) -> Option<Vec<String>> {
    let is_variable = matches!(words.first()?.as_str(), "var" | "variable");
    let words = if is_variable { &words[1..] } else { words };
    let text = words.join(" ");
    // They are no assignments here. The evaluator says what to write.
    let is_step = text.ends_with("++") || text.ends_with("--");
    if is_step && (is_variable || words.len() == 1) {
        return Some(vec!["eval".to_owned(), text]);
    }
    let (name, operator, value) = assigned(&text)?;
    // The value of `set x 'a = b'` is one word.
    let is_apart = is_variable
        || words[0].contains('=')
        || words.get(1).is_some_and(|word| word.starts_with(operator));
    if is_apart && operator == "=" && is_kept(name) {
        return Some(vec!["set".to_owned(), name.to_owned(), value.to_owned()]);
    }
    is_apart.then(|| vec!["eval".to_owned(), text])
}

/// `set print pretty on`: what follows the target is one value.
pub fn with_one_value(words: &[String]) -> Option<Vec<String>> {
    let has_options = words.iter().any(|word| word.starts_with("--"));
    let (target, value) = words.split_first()?;
    (value.len() > 1 && !has_options)
        .then(|| vec!["set".to_owned(), target.clone(), value.join(" ")])
}

/// Splits an assignment into its target, its operator and its value.
fn assigned(text: &str) -> Option<(&str, &str, &str)> {
    const COMPOUND: [&str; 10] = ["<<", ">>", "+", "-", "*", "/", "%", "&", "|", "^"];
    let at = text.find('=')?;
    let (before, value) = (&text[..at], &text[at + 1..]);
    let name = COMPOUND.iter().find_map(|sign| before.strip_suffix(sign));
    let name = name.unwrap_or(before);
    let operator = &text[name.len()..=at];
    let is_compared = value.starts_with('=') || name.trim_end().ends_with(['=', '!', '<', '>']);
    let is_assignment = !is_compared && !name.trim().is_empty();
    is_assignment.then(|| (name.trim(), operator, value.trim()))
}

/// Returns whether a target is a convenience variable, which needs no program.
fn is_kept(target: &str) -> bool {
    server::inspect::kept_name(target).is_some()
}
