//! Splits text into SQL statements at each `;` outside quotes and comments. It knows nothing else about SQL.

/// A text split into statements.
#[derive(Debug, PartialEq, Eq)]
pub struct Split<'a> {
    /// The statements that end with `;`, without it. Each comes with its offset in the text.
    pub complete: Vec<(usize, &'a str)>,
    /// The offset after the last `;` that ends a statement, or 0.
    pub end: usize,
    /// The text after the last `;`, if it is more than white space and comments.
    pub rest: Option<(usize, &'a str)>,
    /// The text ends inside quotes or a comment.
    pub open: bool,
}

/// The context of the current character.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Within {
    Code,
    Quotes(char),
    LineComment,
    BlockComment,
}

/// Splits `text` into statements.
pub fn split(text: &str) -> Split<'_> {
    let mut within = Within::Code;
    let mut begin = 0;
    let mut end = 0;
    let mut has_code = false;
    let mut complete = Vec::new();
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let next = chars.peek().map(|(_, c)| *c);
        match within {
            Within::Code => match c {
                ';' => {
                    if has_code {
                        complete.push(trimmed(text, begin, at));
                        end = at + 1;
                    }
                    begin = at + 1;
                    has_code = false;
                }
                '-' if next == Some('-') => within = Within::LineComment,
                '/' if next == Some('*') => {
                    within = Within::BlockComment;
                    chars.next();
                }
                _ => {
                    has_code |= !c.is_whitespace();
                    if matches!(c, '\'' | '"') {
                        within = Within::Quotes(c);
                    }
                }
            },
            // A doubled quote closes and opens again, which has the same effect here.
            Within::Quotes(quote) if c == quote => within = Within::Code,
            Within::LineComment if c == '\n' => within = Within::Code,
            Within::BlockComment if c == '*' && next == Some('/') => {
                chars.next();
                within = Within::Code;
            }
            _ => {}
        }
    }
    Split {
        complete,
        end,
        rest: has_code.then(|| trimmed(text, begin, text.len())),
        open: matches!(within, Within::Quotes(_) | Within::BlockComment),
    }
}

/// Returns `text[begin..end]` without surrounding white space, and where it begins.
fn trimmed(text: &str, begin: usize, end: usize) -> (usize, &str) {
    let part = &text[begin..end];
    let skipped = part.len() - part.trim_start().len();
    (begin + skipped, part.trim())
}

/// Returns all statements of `text`; the last one needs no `;`.
pub fn statements(text: &str) -> Vec<(usize, &str)> {
    let split = split(text);
    split.complete.into_iter().chain(split.rest).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<&str> {
        statements(text)
            .into_iter()
            .map(|(_, statement)| statement)
            .collect()
    }

    #[test]
    fn semicolons_in_quotes_and_comments_do_not_end_a_statement() {
        assert_eq!(
            texts("select ';', \";\" -- ;\n from t; select /* ; */ 2"),
            ["select ';', \";\" -- ;\n from t", "select /* ; */ 2"]
        );
        assert_eq!(
            texts("select 'it''s;' ; select 1;"),
            ["select 'it''s;'", "select 1"]
        );
    }

    #[test]
    fn only_comments_are_no_statement() {
        assert_eq!(
            texts(" ;; -- nothing\n ; /* nothing */ "),
            Vec::<&str>::new()
        );
    }

    #[test]
    fn an_open_quote_or_comment_is_told() {
        assert!(split("select 'a;").open);
        assert!(split("select /* a;").open);
        assert!(!split("select 1 -- a").open);
        assert_eq!(split("select 'a;").complete, []);
    }

    #[test]
    fn offsets_point_at_the_statement() {
        let text = "select 1;\n  select 2";
        assert_eq!(statements(text), [(0, "select 1"), (12, "select 2")]);
        assert_eq!(&text[12..], "select 2");
    }
}
