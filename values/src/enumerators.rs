//! Numbers by the names of enumerators or flags.

pub fn write_enumerators(text: &mut String, value: i128, names: &[(i64, String)]) {
    match names
        .iter()
        .find(|(known, _)| i128::from(*known) == value || i128::from(*known as u64) == value)
    {
        Some((_, name)) => text.push_str(name),
        None if !write_flags(text, value, names) => text.push_str(&value.to_string()),
        None => {}
    }
}

/// Appends the names that form a value: `O_WRONLY|O_CREAT|O_TRUNC`. Returns whether it consists of them: if so, it is a
/// set of flags. As in gdb, at least two are needed.
fn write_flags(text: &mut String, value: i128, names: &[(i64, String)]) -> bool {
    let mut all: Vec<&(i64, String)> = names.iter().filter(|(known, _)| *known > 0).collect();
    let single = |known: &i64| known.count_ones() == 1;
    let bits = all.iter().map(|(known, _)| *known).filter(single);
    let bits = bits.fold(0, |all, bit| all | bit);
    // If a value is a combination of others, the names are those of numbers.
    let is_flags = |(known, _): &&(i64, String)| single(known) || known & !bits != 0;
    let (true, Ok(mut rest)) = (all.iter().all(is_flags), i64::try_from(value)) else {
        return false;
    };
    all.sort_by_key(|(known, _)| std::cmp::Reverse(known.count_ones()));
    let mut parts: Vec<&(i64, String)> = Vec::new();
    for part in all {
        if rest & part.0 == part.0 {
            rest &= !part.0;
            parts.push(part);
        }
    }
    if rest != 0 || parts.len() < 2 {
        return false;
    }
    parts.sort_by_key(|(known, _)| *known);
    let names: Vec<&str> = parts.iter().map(|(_, name)| name.as_str()).collect();
    text.push_str(&names.join("|"));
    true
}
