//! Types of functions and of pointers to them, as C writes them: `int (*)(int, char *)`.

use debuginfo::types::Type;

/// Nested types of functions, at most.
const DEEPEST: usize = 8;

/// Finds a type by its name.
type Find<'f> = &'f dyn Fn(&str) -> Option<Type>;

/// Returns the type that a text names, if it is one of a function; `find` knows all others.
pub(super) fn function_type(text: &str, find: Find<'_>) -> Option<Type> {
    nested(text, find, DEEPEST)
}

fn nested(text: &str, find: Find<'_>, depth: usize) -> Option<Type> {
    let depth = depth.checked_sub(1)?;
    let inner = text.trim().strip_suffix(')')?;
    let open = opening(inner)?;
    let before = inner[..open].trim_end();
    let (result, pointers) = match before.strip_suffix(')') {
        None => (before, 0),
        Some(grouped) => {
            let (result, stars) = grouped.rsplit_once('(')?;
            let stars = stars.trim();
            let are_stars = !stars.is_empty() && stars.bytes().all(|byte| byte == b'*');
            (result, are_stars.then_some(stars.len())?)
        }
    };
    let mut texts = parameters(&inner[open + 1..]);
    let variadic = texts.last() == Some(&"...");
    if variadic {
        texts.pop();
    }
    let one = |text: &&str| find(text).or_else(|| nested(text, find, depth));
    let parameters: Vec<Type> = texts.iter().map(one).collect::<Option<_>>()?;
    let function = find(result.trim())?.returned_by_function_of(&parameters, variadic);
    Some((0..pointers).fold(function, |ty, _| ty.pointer()))
}

/// Returns where the parenthesis opens that ends after a text.
fn opening(text: &str) -> Option<usize> {
    let mut depth = 0usize;
    for (at, byte) in text.bytes().enumerate().rev() {
        match byte {
            b')' => depth += 1,
            b'(' if depth == 0 => return Some(at),
            b'(' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// Splits parameters at the commas between them.
fn parameters(text: &str) -> Vec<&str> {
    let (mut depth, mut start, mut found) = (0usize, 0, Vec::new());
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'(' | b'<' | b'[' => depth += 1,
            b')' | b'>' | b']' => depth = depth.saturating_sub(1),
            b',' if depth == 0 => {
                found.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    found.push(text[start..].trim());
    match found.as_slice() {
        ["" | "void"] => Vec::new(),
        _ => found,
    }
}

#[cfg(test)]
mod tests {
    use debuginfo::types::builtin;

    use super::*;

    fn named(text: &str) -> Option<String> {
        let find = |text: &str| match text.strip_suffix('*') {
            Some(target) => Some(builtin(target.trim())?.pointer()),
            None => builtin(text),
        };
        Some(function_type(text, &find)?.name())
    }

    #[test]
    fn functions_and_pointers_to_them_are_types() {
        for (text, name) in [
            ("int (*)(int)", "int (*)(int)"),
            ("void(*)(void)", "void (*)(void)"),
            ("char * (*) ( char*, long )", "char *(*)(char *, long)"),
            ("int (**)()", "int (**)(void)"),
            ("int (char *, ...)", "int (char *, ...)"),
            (
                "int (*)(void (*)(int), long)",
                "int (*)(void (*)(int), long)",
            ),
        ] {
            assert_eq!(named(text).as_deref(), Some(name), "{text}");
        }
    }

    #[test]
    fn other_texts_are_none() {
        for text in [
            "int",
            "int (",
            "int (*)",
            "f(n)",
            "int (&)(int)",
            "(int)",
            "int (*)(n)",
            ")",
        ] {
            assert_eq!(named(text), None, "{text}");
        }
        assert_eq!(
            named(&format!("{}{}", "int (".repeat(20), ")".repeat(20))),
            None
        );
    }
}
