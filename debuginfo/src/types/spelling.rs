//! One spelling for types that compilers, demanglers and users write differently: `short int` and `short`, `const T` and
//! `T const`, `4ul` and `4`.

/// Inline namespaces of `std` in libstdc++ and libc++, which no one writes.
pub(crate) const INLINE_NAMESPACES: [&str; 5] = ["__cxx11", "__1", "__2", "__ndk1", "_V2"];

/// Class templates of `std` that are the usual last arguments of others.
const DEFAULTS: [&str; 6] = [
    "std::allocator<",
    "std::char_traits<",
    "std::default_delete<",
    "std::equal_to<",
    "std::hash<",
    "std::less<",
];

/// Normalises a list of types: drops optional spaces, the suffixes of numbers, and the inline namespaces and default arguments of
/// C++'s standard library; moves qualifiers after the type they apply to, and uses one name for each integer type.
pub(crate) fn canonical(list: &str) -> String {
    let mut out = Types::default();
    let mut rest = list;
    while let Some(first) = rest.chars().next() {
        let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$' | '.');
        let len = match is_word(first) {
            true => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
            false if rest.starts_with("::") => 2,
            false => first.len_utf8(),
        };
        let (token, after) = rest.split_at(len);
        out.take(token);
        rest = after;
    }
    out.end();
    let text = out.text;
    if text == "void" {
        return String::new();
    }
    text.replace("std::basic_string<char>", "std::string")
        .replace("std::basic_string_view<char>", "std::string_view")
}

/// Drops the last arguments of a template of `std` that are its defaults: those about its first argument, and the allocator of
/// a map's pairs.
fn without_defaults(arguments: &str) -> &str {
    let mut depth = 0_usize;
    let mut commas = Vec::new();
    for (at, byte) in arguments.bytes().enumerate() {
        match byte {
            b'<' | b'(' => depth += 1,
            b'>' | b')' => depth = depth.saturating_sub(1),
            b',' if depth == 0 => commas.push(at),
            _ => {}
        }
    }
    let Some(&first_end) = commas.first() else {
        return arguments;
    };
    let first = &arguments[..first_end];
    let pair = format!("std::pair<{first} const,");
    let is_default = |argument: &str| {
        let about = DEFAULTS
            .iter()
            .find_map(|name| argument.strip_prefix(name))
            .and_then(|about| about.strip_suffix('>'));
        about.is_some_and(|about| about == first || about.starts_with(&pair))
    };
    let mut kept = arguments;
    while let Some(comma) = commas.pop()
        && is_default(&kept[comma + 1..])
    {
        kept = &kept[..comma];
    }
    kept
}

/// The normalised list under construction.
#[derive(Default)]
struct Types {
    text: String,
    /// The words of the current type.
    words: Vec<String>,
    is_const: bool,
    is_volatile: bool,
    /// The next word continues the last one.
    goes_on: bool,
    /// The enclosing types while template arguments are read: the text before them, and their words.
    outer: Vec<(String, Types)>,
}

impl Types {
    fn take(&mut self, token: &str) {
        match token {
            "const" => self.is_const = true,
            "volatile" => self.is_volatile = true,
            "struct" | "class" | "enum" | "union" | "typename" => {}
            "::" => {
                self.goes_on = true;
                match self.words.last_mut() {
                    Some(last) => {
                        let space = last.strip_prefix("std::");
                        if space.is_some_and(|space| INLINE_NAMESPACES.contains(&space)) {
                            last.truncate("std".len());
                        }
                        last.push_str("::");
                    }
                    None => self.goes_on = false,
                }
            }
            "<" if !self.words.is_empty() => {
                let outer = std::mem::take(&mut self.outer);
                let inner = std::mem::take(self);
                self.outer = outer;
                self.outer.push((String::new(), inner));
            }
            ">" if !self.outer.is_empty() => self.close(),
            word if word.starts_with(|c: char| c.is_alphanumeric() || c == '_') => {
                let word = match word.starts_with(|c: char| c.is_ascii_digit()) {
                    true => word.trim_end_matches(['u', 'U', 'l', 'L']),
                    false => word,
                };
                match (self.goes_on, self.words.last_mut()) {
                    (true, Some(last)) => last.push_str(word),
                    _ => self.words.push(word.to_owned()),
                }
                self.goes_on = false;
            }
            space if space.trim().is_empty() => {}
            other => {
                self.end();
                self.text.push_str(other);
            }
        }
    }

    /// Resumes the type that the arguments belong to.
    fn close(&mut self) {
        self.end();
        let arguments = std::mem::take(&mut self.text);
        let mut outer = std::mem::take(&mut self.outer);
        if let Some((_, inner)) = outer.pop() {
            *self = inner;
            self.outer = outer;
            if let Some(last) = self.words.last_mut() {
                let arguments = match last.starts_with("std::") {
                    true => without_defaults(&arguments),
                    false => &arguments,
                };
                *last += &format!("<{arguments}>");
            }
        }
    }

    fn end(&mut self) {
        let words = std::mem::take(&mut self.words);
        self.text.push_str(&named(&words));
        for (is_so, word) in [
            (std::mem::take(&mut self.is_const), " const"),
            (std::mem::take(&mut self.is_volatile), " volatile"),
        ] {
            if is_so {
                self.text.push_str(word);
            }
        }
        self.goes_on = false;
    }
}

/// Returns one name for each integer type: `long unsigned int` is `unsigned long`.
fn named(words: &[String]) -> String {
    let count = |word: &str| words.iter().filter(|w| *w == word).count();
    let is_integer = |word: &String| {
        matches!(
            &**word,
            "int" | "long" | "short" | "unsigned" | "signed" | "char"
        )
    };
    if words.is_empty() || !words.iter().all(is_integer) {
        return words.join(" ");
    }
    let sign = if count("unsigned") > 0 {
        "unsigned "
    } else {
        ""
    };
    let base = match (count("char"), count("short"), count("long")) {
        (1.., ..) if count("signed") > 0 => return "signed char".to_owned(),
        (1.., ..) => "char",
        (_, 1.., _) => "short",
        (.., 0) => "int",
        (.., 1) => "long",
        _ => "long long",
    };
    format!("{sign}{base}")
}

#[cfg(test)]
mod tests {
    use super::canonical;

    #[test]
    fn spellings_of_one_type_are_the_same() {
        for (a, b) in [
            ("shop::Ring<short, 4>", "shop::Ring<short int,4>"),
            ("Map<unsigned, long>", "Map<unsigned int, long int>"),
            ("Buf<4ul>", "Buf<4>"),
            ("Box<const char*>", "Box<char const *>"),
            ("A<B<unsigned long>>", "A<B<long unsigned int> >"),
            (
                "A<std::string>",
                "A<std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> > >",
            ),
            (
                "const std::string&",
                "std::__1::basic_string<char, std::__1::char_traits<char>, std::__1::allocator<char> > const&",
            ),
            (
                "std::map<int, std::vector<std::string>>",
                "std::map<int, std::vector<std::__cxx11::string, std::allocator<std::__cxx11::string> >, std::less<int>, \
                 std::allocator<std::pair<int const, std::vector<std::string, std::allocator<std::string> > > > >",
            ),
            (
                "std::string_view",
                "std::basic_string_view<char, std::char_traits<char> >",
            ),
            (
                "std::unique_ptr<T>",
                "std::unique_ptr<T, std::default_delete<T> >",
            ),
        ] {
            assert_eq!(canonical(a), canonical(b), "{a} and {b}");
        }
        for (a, b) in [
            ("A<char>", "A<signed char>"),
            ("A<unsigned char>", "A<char>"),
            ("A<long>", "A<long long>"),
            ("A<4>", "A<5>"),
            ("A<int*>", "A<int>"),
            ("std::set<int>", "std::set<int, std::less<void>>"),
            ("std::vector<int>", "std::vector<int, Pool<int>>"),
            ("A<int>", "A<int, std::allocator<int>>"),
        ] {
            assert_ne!(canonical(a), canonical(b), "{a} and {b}");
        }
    }
}
