//! Letters behind a slash, which are an option here: `x/4xw &a`, `p /x n`.

/// Takes the letters after a slash from the words: `x/4xw`, `p /x`.
pub fn without_format(mut words: Vec<String>) -> (Vec<String>, Option<String>) {
    let is_one = |verb: &str| {
        matches!(
            verb,
            "x" | "p"
                | "print"
                | "inspect"
                | "output"
                | "call"
                | "display"
                | "disassemble"
                | "disas"
                | "ptype"
                | "whatis"
        )
    };
    let is_format = |verb: &str, text: &str| {
        // Only `x` has a negative count: what lies before the address.
        let letters = text.strip_prefix('-').filter(|_| verb == "x");
        let letters = letters.unwrap_or(text);
        !letters.is_empty() && letters.bytes().all(|byte| byte.is_ascii_alphanumeric())
    };
    let Some(first) = words.first() else {
        return (words, None);
    };
    if let Some((verb, format)) = first.split_once('/')
        && is_one(verb)
        && is_format(verb, format)
    {
        let (verb, format) = (verb.to_owned(), format.to_owned());
        words[0] = verb;
        return (words, Some(format));
    }
    let second = words.get(1).and_then(|word| word.strip_prefix('/'));
    let Some(format) = second.filter(|format| is_one(first) && is_format(first, format)) else {
        return (words, None);
    };
    let format = format.to_owned();
    words.remove(1);
    (words, Some(format))
}

/// Returns the words of a command that had a format.
pub fn formatted(words: &[String], format: &str) -> Vec<String> {
    let verb = match words[0].as_str() {
        "output" | "inspect" | "p" => "print",
        "call" => "eval",
        "disas" => "disassemble",
        verb => verb,
    };
    let slashed = format!("/{format}");
    // Alone it would look like an option.
    let negative = format!("--format={format}");
    let options: Vec<&str> = match verb {
        // Its format is shown with its value at each stop.
        "display" => vec![&slashed],
        "disassemble" if format.contains(['s', 'm']) => vec!["--source"],
        "disassemble" => vec![],
        "ptype" if format.contains('o') => vec!["--offsets"],
        "ptype" | "whatis" => vec![],
        "x" if format.starts_with('-') => vec![&negative],
        "x" => vec!["--format", format],
        // Values without a format here are shown according to their type, as in gdb.
        _ if format == "s" => vec!["--format", "natural"],
        _ => vec!["--format", format],
    };
    // gdb shows the last value again.
    let last = (verb == "print" && words.len() == 1).then_some("$");
    let options = options.into_iter().chain(last).map(str::to_owned);
    let first = std::iter::once(verb.to_owned());
    first
        .chain(options)
        .chain(words[1..].iter().cloned())
        .collect()
}
