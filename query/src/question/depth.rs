//! Refuses questions whose operators would nest too deeply: `a or b or c` is a tree of that height, and whoever walks
//! it needs stack for each level. Parentheses are limited by the parser.

use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer};

use crate::error::{Error, Result, SqlError};

/// Most operators in a row. [`STACK_BYTES`] suffices for several times as many.
const MOST: usize = 1000;
/// Stack of a thread that plans and runs questions: a level takes 5 kB to copy.
pub const STACK_BYTES: usize = 32 << 20;

/// Operators that are words.
const OPERATORS: [&str; 20] = [
    "AND", "OR", "XOR", "NOT", "IS", "ISNULL", "NOTNULL", "IN", "LIKE", "ILIKE", "SIMILAR",
    "BETWEEN", "DIV", "COLLATE", "AT", "OVERLAPS", "JOIN", "REGEXP", "RLIKE", "ESCAPE",
];
/// Words that an expression ends at, as it does at a comma.
const ENDS: [&str; 4] = ["SELECT", "WHEN", "THEN", "ELSE"];
/// Words that put two questions together.
const SETS: [&str; 4] = ["UNION", "EXCEPT", "INTERSECT", "MINUS"];

/// Operators of an expression, and of the parentheses in it.
#[derive(Clone, Copy, Default)]
struct Level {
    comparisons: usize,
    others: usize,
    inner: usize,
    /// The most of an expression before it.
    most: usize,
}

impl Level {
    fn end(&mut self) -> usize {
        let own = self.comparisons.max(self.others) + self.inner;
        *self = Level {
            most: self.most.max(own),
            ..Level::default()
        };
        self.most
    }
}

/// Accepts a question that the stack suffices for.
///
/// # Errors
/// [`Error::Sql`].
pub fn check(sql: &str) -> Result<()> {
    if height(sql) <= MOST {
        return Ok(());
    }
    Err(Error::Sql(Box::new(SqlError {
        message: "the question is nested too deeply".to_owned(),
        position: None,
        excerpt: String::new(),
        suggestions: Vec::new(),
        hint: Some(format!(
            "at most {MOST} operators in a row; for many values: column IN (1, 2, 3)"
        )),
    })))
}

/// The most operators in a row; comparisons and others are counted apart, because people alternate them.
fn height(sql: &str) -> usize {
    let tokens = Tokenizer::new(&GenericDialect {}, sql).tokenize();
    let mut outer: Vec<Level> = Vec::new();
    let mut level = Level::default();
    let mut sets = 0;
    for token in tokens.unwrap_or_default() {
        match token {
            Token::LParen | Token::LBracket => outer.push(std::mem::take(&mut level)),
            Token::RParen | Token::RBracket => {
                let inner = level.end();
                level = outer.pop().unwrap_or_default();
                level.inner = level.inner.max(inner);
            }
            Token::Comma | Token::SemiColon => {
                level.end();
            }
            Token::Word(word) if word.quote_style.is_none() => {
                let is_in =
                    |words: &[&str]| words.iter().any(|own| word.value.eq_ignore_ascii_case(own));
                level.others += usize::from(is_in(&OPERATORS));
                sets += usize::from(is_in(&SETS));
                if is_in(&ENDS) {
                    level.end();
                }
            }
            Token::Eq
            | Token::DoubleEq
            | Token::Neq
            | Token::Lt
            | Token::Gt
            | Token::LtEq
            | Token::GtEq => level.comparisons += 1,
            Token::Word(_)
            | Token::Number(..)
            | Token::SingleQuotedString(_)
            | Token::Period
            | Token::Whitespace(_)
            | Token::EOF => {}
            _ => level.others += 1,
        }
    }
    let mut most = level.end();
    while let Some(mut level) = outer.pop() {
        level.inner = level.inner.max(most);
        most = level.end();
    }
    most.max(sets)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_row_of_operators_counts() {
        assert_eq!(height("select 1"), 0);
        assert_eq!(height("select a from t where a = 1 or a = 2 or a = 3"), 3);
        assert_eq!(height("select a + 1, b + 1 + 1"), 2);
        assert_eq!(height("select (a + 1 + 1) * 2 - (b + 1)"), 4);
        assert_eq!(height("select a[(1 + 1"), 1);
        assert_eq!(height("select a in (-1, -2, -3)"), 2);
        assert_eq!(height("select 1 union select 1 union all select 2"), 2);
        assert_eq!(height("select 'a or b or c', \"or\" -- or or or"), 0);
        assert_eq!(
            height("select case when a = 1 then 1 when a = 2 then 2 end"),
            1
        );
    }

    #[test]
    fn a_long_question_is_refused() {
        let chain = |count| vec!["seq = 1"; count].join(" or ");
        assert!(check(&chain(MOST)).is_ok());
        assert!(check(&chain(MOST + 2)).is_err());
    }
}
