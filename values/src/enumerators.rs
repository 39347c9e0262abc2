//! Numbers by the names of enumerators or flags.

/// What the flags of `open` have as their access mode if it is 0.
const READ_ONLY: &str = "O_RDONLY";
const ACCESS_MODES: i128 = 3;

pub fn write_enumerators(text: &mut String, value: i128, names: &[(i64, String)]) {
    let from = text.len();
    if !write_name(text, value, names) && !write_flags(text, value, names) {
        text.push_str(&value.to_string());
    } else if value != 0 && only_reads(value, names) {
        text.insert(from, '|');
        text.insert_str(from, READ_ONLY);
    }
}

fn only_reads(value: i128, names: &[(i64, String)]) -> bool {
    let is_read_only = |(known, name): &(i64, String)| *known == 0 && name == READ_ONLY;
    value & ACCESS_MODES == 0 && names.iter().any(is_read_only)
}

/// Appends the name of exactly this value, if it has one.
fn write_name(text: &mut String, value: i128, names: &[(i64, String)]) -> bool {
    let is_it = |known: &i64| i128::from(*known) == value || i128::from(*known as u64) == value;
    let found = names.iter().find(|(known, _)| is_it(known));
    if let Some((_, name)) = found {
        text.push_str(name);
    }
    found.is_some()
}

/// Appends the names that form a value: `O_WRONLY|O_CREAT|O_TRUNC`. Returns whether it consists of them: if so, it is a
/// set of flags. As in gdb, at least two are needed.
fn write_flags(text: &mut String, value: i128, names: &[(i64, String)]) -> bool {
    let mut all: Vec<&(i64, String)> = names.iter().filter(|(known, _)| *known > 0).collect();
    let single = |known: &i64| known.count_ones() == 1;
    let bits = all.iter().map(|(known, _)| *known).filter(single);
    let bits = bits.fold(0, |all, bit| all | bit);
    // If a value is a combination of others, or negative, the names are those of numbers.
    let is_flags = |(known, _): &&(i64, String)| single(known) || known & !bits != 0;
    let is_negative = |(known, _): &(i64, String)| *known < 0 && !single(known);
    let are_flags = all.iter().all(is_flags) && !names.iter().any(is_negative);
    let (true, Ok(mut rest)) = (are_flags, i64::try_from(value)) else {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_of_open_have_their_access_mode() {
        let named = |names: &[(i64, &str)], value| {
            let names: Vec<_> = names
                .iter()
                .map(|(n, name)| (*n, (*name).to_owned()))
                .collect();
            let mut text = String::new();
            write_enumerators(&mut text, value, &names);
            text
        };
        let open = [
            (0, "O_RDONLY"),
            (1, "O_WRONLY"),
            (0x400, "O_APPEND"),
            (0x80000, "O_CLOEXEC"),
        ];
        assert_eq!(named(&open, 0), "O_RDONLY");
        assert_eq!(named(&open, 0x80000), "O_RDONLY|O_CLOEXEC");
        assert_eq!(named(&open, 0x80400), "O_RDONLY|O_APPEND|O_CLOEXEC");
        assert_eq!(named(&open, 0x401), "O_WRONLY|O_APPEND");
        assert_eq!(named(&open, 0x10), "16");
        let colours = [(0, "NONE"), (4, "RED"), (8, "BLUE")];
        assert_eq!(named(&colours, 12), "RED|BLUE");
        let codes = [(1, "ONE"), (2, "TWO"), (-7, "FAILED")];
        assert_eq!(named(&codes, 3), "3");
        assert_eq!(named(&codes, -7), "FAILED");
        let high = [(1, "LOW"), (2, "MIDDLE"), (i64::MIN, "HIGH")];
        assert_eq!(named(&high, 3), "LOW|MIDDLE");
    }
}
