//! What a statement says about the word that is being typed: an open quote, the tables, whether a table comes next. It
//! looks at words, not at grammar, since incomplete input is not SQL yet.

/// A table that a statement reads: `calls c` after FROM or JOIN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Source<'a> {
    /// The name of the table or of the function that gives it, or `(` for a subquery.
    pub table: &'a str,
    pub alias: Option<&'a str>,
}

/// Returns the start of the quote that is still open at the end of `text`.
pub fn open_quote(text: &str) -> Option<usize> {
    let mut open = None;
    for (at, c) in text.char_indices() {
        if c == '\'' {
            open = if open.is_some() { None } else { Some(at) };
        }
    }
    open
}

/// Returns whether `c` can be a part of a name.
pub fn is_part(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Returns the tables that a statement reads, including those of its subqueries.
pub fn sources(statement: &str) -> Vec<Source<'_>> {
    let tokens = tokens(statement);
    let lists = lists(&tokens).map(|at| list(&tokens[at..]).0);
    lists.flatten().collect()
}

/// Returns whether a table's name comes next, after FROM, JOIN or a comma in a list of tables.
pub fn names_a_table(earlier: &str) -> bool {
    let tokens = tokens(earlier);
    lists(&tokens).any(|at| list(&tokens[at..]).1)
}

/// Returns words, quoted texts and punctuation without white space and comments.
fn tokens(text: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let is_comment = rest.starts_with("--");
        let length = match first {
            _ if is_comment => rest.find('\n').unwrap_or(rest.len()),
            '\'' | '"' => rest[1..].find(first).map_or(rest.len(), |at| at + 2),
            c if is_part(c) => rest.find(|c| !is_part(c)).unwrap_or(rest.len()),
            c => c.len_utf8(),
        };
        let (token, behind) = rest.split_at(length);
        if !is_comment && !first.is_whitespace() {
            tokens.push(token);
        }
        rest = behind;
    }
    tokens
}

fn is_word(token: &str) -> bool {
    token.starts_with(is_part)
}

/// Returns where lists of tables begin.
fn lists<'a>(tokens: &'a [&str]) -> impl Iterator<Item = usize> + 'a {
    let is = move |at: usize, word: &str| tokens[at].eq_ignore_ascii_case(word);
    // `a IS DISTINCT FROM b` compares.
    let is_from = move |at: usize| is(at, "from") && !(at > 0 && is(at - 1, "distinct"));
    (0..tokens.len())
        .filter(move |at| is_from(*at) || is(*at, "join"))
        .map(|at| at + 1)
}

/// Reads a list of tables, and returns them and whether the tokens end where another has to follow.
fn list<'a>(tokens: &[&'a str]) -> (Vec<Source<'a>>, bool) {
    let mut sources = Vec::new();
    let mut at = 0;
    loop {
        let Some(table) = tokens.get(at).copied() else {
            return (sources, true);
        };
        if !is_word(table) && table != "(" {
            return (sources, false);
        }
        at += usize::from(is_word(table));
        at += in_parentheses(&tokens[at..]);
        let is_as = |token: &&str| token.eq_ignore_ascii_case("as");
        at += usize::from(tokens.get(at).is_some_and(is_as));
        let alias = tokens.get(at).copied().filter(|token| is_word(token));
        at += usize::from(alias.is_some());
        sources.push(Source { table, alias });
        if tokens.get(at) != Some(&",") {
            return (sources, false);
        }
        at += 1;
    }
}

/// Returns the number of tokens in the parentheses with which `tokens` begins, including both.
fn in_parentheses(tokens: &[&str]) -> usize {
    let mut depth = 0usize;
    for (at, token) in tokens.iter().enumerate() {
        match *token {
            "(" => depth += 1,
            ")" => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return if at == 0 { 0 } else { at + 1 };
        }
    }
    tokens.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(statement: &str) -> Vec<(&str, Option<&str>)> {
        let sources = sources(statement).into_iter();
        sources.map(|one| (one.table, one.alias)).collect()
    }

    #[test]
    fn tables_are_found_with_their_aliases() {
        assert_eq!(
            read("select 'from x' -- from y\n from calls as c, history('a, b') h join events"),
            [
                ("calls", Some("c")),
                ("history", Some("h")),
                ("events", None)
            ]
        );
        assert_eq!(
            read("select 1 from (select * from calls where (1) = 1) x, events e"),
            [
                ("(", Some("x")),
                ("events", Some("e")),
                ("calls", Some("where"))
            ]
        );
        assert_eq!(read("select a is distinct from b"), []);
    }

    #[test]
    fn a_table_comes_next_after_from_and_in_its_list() {
        for earlier in [
            "select * from ",
            "select * FROM calls c, ",
            "select * from history('x'), ",
            "select * from calls join ",
            "select * from (select seq from calls, ",
            "select * from (select seq from calls) x, ",
        ] {
            assert!(names_a_table(earlier), "{earlier}");
        }
        for earlier in [
            "select a, ",
            "select * from calls ",
            "select * from calls where seq in (1, ",
            "select * from calls order by seq, ",
            "select * from history(",
            "select * from calls where depth is distinct from ",
        ] {
            assert!(!names_a_table(earlier), "{earlier}");
        }
    }
}
