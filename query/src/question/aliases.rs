//! The names that a query gives to its tables.

use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer};

/// Resolves `alias` in `FROM table alias`, `JOIN table AS alias` or `(...) alias`: to the table's name, empty
/// for a subquery; `None` if the query has no such name.
pub fn table_of(sql: &str, alias: &str) -> Option<String> {
    let tokens = Tokenizer::new(&GenericDialect {}, sql).tokenize().ok()?;
    let tokens: Vec<Token> = tokens
        .into_iter()
        .filter(|token| !matches!(token, Token::Whitespace(_)))
        .collect();
    table_among(&tokens, alias)
}

/// The same among the tokens of a query, without white space.
pub fn table_among(tokens: &[Token], alias: &str) -> Option<String> {
    let word = |token: &Token| match token {
        Token::Word(word) => Some(word.value.to_lowercase()),
        _ => None,
    };
    (1..tokens.len()).find_map(|at| {
        if word(&tokens[at])? != alias.to_lowercase() {
            return None;
        }
        let named = match word(&tokens[at - 1]).as_deref() {
            Some("as") => at.checked_sub(2)?,
            _ => at - 1,
        };
        match &tokens[named] {
            Token::RParen => Some(String::new()),
            token => {
                let before = named.checked_sub(1)?;
                let is_table = matches!(&tokens[before], Token::Comma)
                    || matches!(word(&tokens[before]).as_deref(), Some("from" | "join"));
                word(token).filter(|_| is_table)
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_found_by_their_aliases() {
        let sql = "select a.x from calls a join events as E on a.seq = e.seq, (select 1) s where exists (select 1 from calls b)";
        assert_eq!(table_of(sql, "a").as_deref(), Some("calls"));
        assert_eq!(table_of(sql, "e").as_deref(), Some("events"));
        assert_eq!(table_of(sql, "s").as_deref(), Some(""));
        assert_eq!(table_of(sql, "b").as_deref(), Some("calls"));
        assert_eq!(table_of(sql, "calls"), None);
        assert_eq!(table_of(sql, "c"), None);
    }
}
