//! Finds the place in a query that a message refers to, and marks it with a caret.

use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer};

/// Some neighbouring characters of one line of a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Excerpt {
    /// The line, from 1.
    pub line: usize,
    /// The first character, from 1.
    pub column: usize,
    /// How many characters.
    pub len: usize,
}

impl Excerpt {
    /// Returns the line of `sql` with a caret below each character of the place.
    pub fn excerpt(self, sql: &str) -> String {
        let line = sql.lines().nth(self.line - 1).unwrap_or("");
        let line: String = line
            .chars()
            .map(|c| if c.is_control() { ' ' } else { c })
            .collect();
        let number = self.line.to_string();
        let margin = " ".repeat(number.len());
        let indent = " ".repeat(self.column - 1);
        let carets = "^".repeat(self.len.max(1));
        format!("{number} | {line}\n{margin} | {indent}{carets}")
    }
}

/// Returns the place of the `occurrence`th name or text `name` in `sql`, counting from 0; quotes and case do not
/// matter.
pub fn of_word(sql: &str, name: &str, occurrence: usize) -> Option<Excerpt> {
    let named = |token: &TokenWithSpan| match &token.token {
        Token::Word(word) => word.value.eq_ignore_ascii_case(name),
        Token::SingleQuotedString(text) => text == name,
        _ => false,
    };
    let tokens = tokens(sql)?.into_iter();
    tokens
        .filter(named)
        .nth(occurrence)
        .map(|token| of_token(&token))
}

/// Returns the place where a second statement begins.
pub fn of_second_statement(sql: &str) -> Option<Excerpt> {
    let tokens = tokens(sql)?.into_iter();
    tokens
        .skip_while(|token| token.token != Token::SemiColon)
        .find(|token| !matches!(token.token, Token::SemiColon | Token::Whitespace(_)))
        .map(|token| of_token(&token))
}

fn tokens(sql: &str) -> Option<Vec<TokenWithSpan>> {
    Tokenizer::new(&GenericDialect {}, sql)
        .tokenize_with_location()
        .ok()
}

/// Returns the place of a token.
pub fn of_token(token: &TokenWithSpan) -> Excerpt {
    let (start, end) = (token.span.start, token.span.end);
    Excerpt {
        line: start.line as usize,
        column: start.column as usize,
        len: end.column.saturating_sub(start.column) as usize,
    }
}

/// Splits off the place at the end of a parser's message, `at Line: 1, Column: 8`.
pub fn of_message<'a>(sql: &str, message: &'a str) -> (&'a str, Option<Excerpt>) {
    let Some((text, place)) = message.rsplit_once(" at Line: ") else {
        return (message, None);
    };
    let numbers = place
        .split_once(", Column: ")
        .and_then(|(line, column)| Some((line.parse().ok()?, column.trim().parse().ok()?)));
    match numbers {
        Some((line, column)) if line > 0 && column > 0 => {
            let len = word_len(sql, line, column);
            (text, Some(Excerpt { line, column, len }))
        }
        _ => (text, None),
    }
}

/// Returns the place just after the end of `sql`, where something is missing.
pub fn of_end(sql: &str) -> Excerpt {
    let trimmed = sql.trim_end();
    let line = trimmed.lines().count().max(1);
    let column = trimmed.lines().last().map_or(0, |l| l.chars().count()) + 1;
    Excerpt {
        line,
        column,
        len: 1,
    }
}

fn word_len(sql: &str, line: usize, column: usize) -> usize {
    let rest = sql.lines().nth(line - 1).unwrap_or("");
    let word = |c: &char| c.is_alphanumeric() || *c == '_';
    rest.chars()
        .skip(column - 1)
        .take_while(word)
        .count()
        .max(1)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn words_are_found_where_they_stand() {
        let sql = "SELECT 'foo', bar\n  FROM \"Foo\" -- foo\n WHERE foo > 1";
        let place = |line, column, len| Some(Excerpt { line, column, len });
        assert_eq!(of_word(sql, "foo", 0), place(1, 8, 5));
        assert_eq!(of_word(sql, "Foo", 1), place(3, 8, 3));
        assert_eq!(of_word(sql, "Foo", 2), None);
    }

    #[test]
    fn a_second_statement_is_found() {
        let second = of_second_statement("select ';';\n ; select 2").unwrap();
        assert_eq!((second.line, second.column, second.len), (2, 4, 6));
        assert_eq!(of_second_statement("select 1; -- end\n;"), None);
    }

    #[test]
    fn carets_stand_below_the_place() {
        let place = Excerpt {
            line: 2,
            column: 3,
            len: 4,
        };
        expect![[r"
            2 |   from x
              |   ^^^^"]]
        .assert_eq(&place.excerpt("select 1\n\tfrom x".replace('\t', "  ").as_str()));
    }

    #[test]
    fn a_message_without_a_place_stays_whole() {
        assert_eq!(of_message("", "no place"), ("no place", None));
        let (text, place) =
            of_message("selec x", "Expected: x, found: selec at Line: 1, Column: 1");
        assert_eq!(text, "Expected: x, found: selec");
        assert_eq!(place.map(|p| p.len), Some(5));
    }

    #[test]
    fn the_end_is_behind_the_last_character() {
        let end = of_end("select\n 1  \n");
        assert_eq!((end.line, end.column), (2, 3));
    }
}
