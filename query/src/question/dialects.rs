//! What users write in the words of other databases and languages, and how it is written here.

use std::ops::ControlFlow;

use datafusion::sql::parser::Statement as DfStatement;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Spanned, TableFactor, Visit, Visitor, visit_expressions,
};
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::tokenizer::{Span, Token, Tokenizer};

use super::suggest::suggest;
use super::texts;
use crate::tables::TABLES;

/// How to write `text` as a text.
pub fn in_quotes(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// Functions of other databases by their names there, and what does the same.
const FUNCTIONS: [(&[&str], &str); 23] = [
    (
        &["if", "iif", "decode"],
        "write: CASE WHEN ret > 0 THEN 'a' ELSE 'b' END",
    ),
    (&["isnull"], "write: coalesce(ret, 0), or ret IS NULL"),
    (&["len"], "write: length(function)"),
    (
        &["group_concat", "listagg"],
        "write: string_agg(function, ', ')",
    ),
    (
        &["regexp_matches", "regexp_contains", "match", "matches"],
        "write: function ~ 'PATTERN', or regexp_like(function, 'PATTERN')",
    ),
    (
        &["instr", "charindex", "locate"],
        "write: strpos(function, 'TEXT')",
    ),
    (
        &["ucase", "lcase"],
        "write: upper(function), lower(function)",
    ),
    (
        &["strftime", "date_format"],
        "write: to_char(to_timestamp_nanos(ts_ns), '%M:%S'); ts_ns counts from the start of the recording, start_unix_ns of runs is that moment",
    ),
    (
        &["datetime", "date", "time", "julianday", "unixepoch"],
        "write: now() for the time of the question; ts_ns counts from the start of the recording, start_unix_ns of runs is that moment",
    ),
    (
        &["printf", "sprintf", "format"],
        "write: function || ' ' || round(dur_ns / 1e6, 2); lpad(text, 8) makes columns, hex(x) hexadecimal digits",
    ),
    (
        &["total"],
        "write: coalesce(sum(CAST(dur_ns AS DOUBLE)), 0)",
    ),
    (
        &["time_bucket", "datediff"],
        "times here are numbers of nanoseconds: ts_ns / 1000000000 is the second, to_timestamp_nanos(ts_ns) a timestamp",
    ),
    (
        &["max_by", "arg_max", "argmax"],
        "write: first_value(function ORDER BY dur_ns DESC)",
    ),
    (
        &["min_by", "arg_min", "argmin"],
        "write: first_value(function ORDER BY dur_ns)",
    ),
    (&["any_value", "any"], "write: first_value(function)"),
    (
        &["countif", "count_if"],
        "write: count(*) FILTER (WHERE ret < 0)",
    ),
    (&["mod"], "write: start_seq % 10"),
    (
        &["div", "idiv"],
        "write: dur_ns / 1000, which drops the fraction",
    ),
    (
        &["xor", "bitxor"],
        "write: ret ^ 255, the exclusive or of the bits of two integers",
    ),
    (
        &["mode"],
        "write: select ret, count(*) from calls group by ret order by count(*) desc limit 1",
    ),
    (
        &[
            "quantile",
            "approx_quantile",
            "percentile",
            "approx_percentile",
        ],
        "write: percentile_cont(dur_ns, 0.95), or approx_percentile_cont(dur_ns, 0.95), which needs less memory",
    ),
    (
        &["percentile_disc", "quantile_disc"],
        "write: percentile_cont(dur_ns, 0.95), which may lie between two values",
    ),
    (&["list"], "write: array_agg(function)"),
];

/// Returns how to write a function of another database.
pub fn of_function(name: &str) -> Option<&'static str> {
    let name = name.to_lowercase();
    let mut all = FUNCTIONS.iter();
    all.find(|(names, _)| names.contains(&name.as_str()))
        .map(|(_, hint)| *hint)
}

/// Returns names that were perhaps meant and the right way to write it, where the parser expected something and found something else.
pub fn of_found(sql: &str, expected: &str, found: &str) -> (Vec<String>, Option<String>) {
    const STATEMENTS: [&str; 6] = ["select", "with", "show", "describe", "explain", "values"];
    const CLAUSES: [&str; 9] = [
        "from", "where", "group", "order", "having", "limit", "join", "union", "offset",
    ];
    let word = found.to_lowercase();
    let begins = first_word(sql);
    let is_over = expected == "end of statement";
    let hint = match word.as_str() {
        _ if word.starts_with(['\u{2018}', '\u{2019}', '\u{201c}', '\u{201d}']) => {
            "text is written in plain single quotes: 'tax'"
        }
        _ if begins == "pragma" => "write: DESCRIBE calls, or SHOW TABLES",
        _ if begins == "describe" || begins == "desc" => "write: DESCRIBE calls",
        "#" => "a comment begins with --",
        "where" if is_over && has_words(sql, ["group", "by"]) => {
            "WHERE comes before GROUP BY; a condition on groups follows it: HAVING count(*) > 1"
        }
        "glob" | "contains" | "startswith" | "starts_with" | "endswith" | "match" | "matches"
            if is_over =>
        {
            "write: function LIKE '%TEXT%', or function ~ 'PATTERN'"
        }
        "order" | "group" if is_over => "write: ORDER BY start_seq, GROUP BY function",
        table if is_over && is_table(table) => {
            let hint = format!("a table follows FROM or JOIN: from {table}");
            return (Vec::new(), Some(hint));
        }
        _ => {
            let known = match expected {
                "an SQL statement" => &STATEMENTS[..],
                "end of statement" => &CLAUSES,
                _ => &[],
            };
            let others = known.iter().filter(|other| **other != word);
            return (suggest(&word, others.copied()), None);
        }
    };
    (Vec::new(), Some(hint.to_owned()))
}

fn is_table(word: &str) -> bool {
    TABLES.iter().any(|table| table.name == word)
}

fn first_word(sql: &str) -> String {
    let first = sql.split_whitespace().next();
    first.unwrap_or_default().to_lowercase()
}

/// Returns our words for a message of the engine, and the right way to write it.
pub fn of_message(message: &str) -> Option<(String, &'static str)> {
    if message.contains("Consider using HAVING") {
        let hint = "a condition on groups follows GROUP BY: select function, count(*) from calls group by function having count(*) > 1";
        return Some((
            "an aggregate stands in SELECT or HAVING, not in WHERE".to_owned(),
            hint,
        ));
    }
    if message.contains("The subquery should only return one column") {
        let what = "a subquery of IN, or in place of a value, has one column".to_owned();
        let hint = "to compare several, write: select a.* from A a where exists (select 1 from B b where b.x = a.x and b.y = a.y)";
        return Some((what, hint));
    }
    if message.contains("unary operator BitwiseNot") {
        let what = "there is no ~ for the bits of a number in this SQL".to_owned();
        return Some((what, "write: ret ^ -1"));
    }
    if message.contains("FETCH clause") {
        let what = "there is no FETCH in this SQL".to_owned();
        return Some((what, "end the question with: LIMIT 10"));
    }
    let (_, sum) = message.split_once("annot coerce arithmetic expression ")?;
    texts::calculated(sum.split(" to valid types").next()?)
}

/// Returns our words for the parser's message that something is no operator, and the right way to write it.
pub fn of_operator(message: &str) -> Option<(&'static str, &'static str)> {
    let token = message.strip_prefix("No infix parser for token ")?;
    if token == "Sharp" {
        let hint = "write: ret ^ 255 for the exclusive or of bits; a comment begins with --";
        return Some(("there is no operator # in this SQL", hint));
    }
    token.ends_with("keyword: DIV })").then_some((
        "there is no DIV in this SQL",
        "write: dur_ns / 1000, which drops the fraction",
    ))
}

/// What a name stands for in a question, by how it is written there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meant {
    /// A text, which was written in double quotes.
    Text,
    /// Perhaps a text, which was written without quotes.
    PerhapsText,
    /// A name.
    Name,
}

/// Columns that are often compared with a text.
const TEXTS: [&str; 10] = [
    "function",
    "name",
    "short_name",
    "file",
    "module",
    "kind",
    "stream",
    "text",
    "args",
    "type",
];

/// Returns what a name without a column stands for: what something is compared with may be a text.
pub fn meant(sql: &str, name: &str) -> Meant {
    let tokens = tokens(sql);
    let is_it =
        |token: &Token| matches!(token, Token::Word(word) if word.value.eq_ignore_ascii_case(name));
    let found = tokens.iter().position(is_it);
    let Some((at, Token::Word(word))) = found.map(|at| (at, &tokens[at])) else {
        return Meant::Name;
    };
    let before = |back: usize| at.checked_sub(back).map(|at| &tokens[at]);
    let is_compared = match before(1) {
        Some(Token::Eq | Token::DoubleEq | Token::Neq) => true,
        Some(word) => is_word(word, "like") || is_word(word, "ilike"),
        None => false,
    };
    let is_with_text = before(2).is_some_and(|left| TEXTS.iter().any(|name| is_word(left, name)));
    // The first one of a list: `in ("a", "b")`.
    let is_listed =
        before(1) == Some(&Token::LParen) && before(2).is_some_and(|word| is_word(word, "in"));
    match word.quote_style {
        Some('"') if is_compared || is_listed => Meant::Text,
        None if is_compared && is_with_text => Meant::PerhapsText,
        _ => Meant::Name,
    }
}

/// Returns whether SELECT gives a column this name, which WHERE does not know.
pub fn is_alias(sql: &str, name: &str) -> bool {
    const CLAUSES: [&str; 9] = [
        "select", "with", "from", "join", "on", "where", "group", "having", "order",
    ];
    let tokens = tokens(sql);
    let clause = |before: &[Token]| {
        let words = before.iter().rev();
        let mut clauses =
            words.filter_map(|token| CLAUSES.iter().find(|word| is_word(token, word)));
        clauses.next().copied()
    };
    let is_named = |at: usize| {
        matches!(&tokens[at], Token::Word(word) if word.value.eq_ignore_ascii_case(name))
            && is_word(&tokens[at - 1], "as")
    };
    let mut places = (1..tokens.len()).filter(|at| is_named(*at));
    places.any(|at| clause(&tokens[..at]) == Some("select"))
}

/// Returns how to compare with a column by the name that SELECT gives it.
pub fn instead_of_alias(name: &str) -> String {
    format!(
        "write the expression again, or: select * from (select dur_ns / 1000 as {name} from calls) where {name} > 5"
    )
}

/// What is accepted and means something else, and how to write it.
pub struct Refused {
    /// Its first word.
    pub word: &'static str,
    /// What is wrong.
    pub message: &'static str,
    /// What to write.
    pub hint: &'static str,
}

/// Pairs of words that are refused.
static REFUSED: [([&str; 2], Refused); 3] = [
    (
        ["similar", "to"],
        Refused {
            word: "similar",
            message: "there is no SIMILAR TO in this SQL",
            hint: "write: function LIKE '%TEXT%', or function ~ 'PATTERN'",
        },
    ),
    (
        ["except", "all"],
        Refused {
            word: "except",
            message: "there is no EXCEPT ALL in this SQL, only EXCEPT, whose rows differ from each other",
            hint: "number equal rows on both sides: select tid, row_number() over (partition by tid) n from calls \
                   except select tid, row_number() over (partition by tid) from events",
        },
    ),
    (
        ["intersect", "all"],
        Refused {
            word: "intersect",
            message: "there is no INTERSECT ALL in this SQL, only INTERSECT, whose rows differ from each other",
            hint: "number equal rows on both sides: select tid, row_number() over (partition by tid) n from calls \
                   intersect select tid, row_number() over (partition by tid) from events",
        },
    ),
];

/// A part of a table, which DataFusion reads whole.
static SAMPLE: Refused = Refused {
    word: "tablesample",
    message: "there is no TABLESAMPLE in this SQL",
    hint: "write: where random() < 0.1",
};

/// Returns what would not be answered as it is meant.
pub fn refused(statement: &DfStatement, sql: &str) -> Option<&'static Refused> {
    let mut known = REFUSED.iter();
    let found = known.find(|(words, _)| has_words(sql, *words));
    let found = found.map(|(_, refused)| refused);
    found.or_else(|| has_sample(statement).then_some(&SAMPLE))
}

fn has_sample(statement: &DfStatement) -> bool {
    match statement {
        DfStatement::Statement(statement) => statement.visit(&mut Samples).is_break(),
        DfStatement::Explain(explain) => has_sample(&explain.statement),
        _ => false,
    }
}

/// Stops at a table of which only a part is asked.
struct Samples;

impl Visitor for Samples {
    type Break = ();

    fn pre_visit_table_factor(&mut self, table: &TableFactor) -> ControlFlow<()> {
        match table {
            TableFactor::Table {
                sample: Some(_), ..
            }
            | TableFactor::Derived {
                sample: Some(_), ..
            } => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    }
}

/// Returns where an AND or OR without parentheses is the right side of an IS DISTINCT FROM: the parser gives it all that follows, where
/// the standard ends it before these words.
pub fn wide_distinct_from(statement: &DfStatement) -> Option<Span> {
    let statement = match statement {
        DfStatement::Statement(statement) => &**statement,
        DfStatement::Explain(explain) => return wide_distinct_from(&explain.statement),
        _ => return None,
    };
    let found = visit_expressions(statement, |expression| {
        match right_of_distinct(expression) {
            Some(right) if joins_conditions(right) => ControlFlow::Break(right.span()),
            _ => ControlFlow::Continue(()),
        }
    });
    match found {
        ControlFlow::Break(span) => Some(span),
        ControlFlow::Continue(()) => None,
    }
}

fn right_of_distinct(expression: &Expr) -> Option<&Expr> {
    match expression {
        Expr::IsDistinctFrom(_, right) | Expr::IsNotDistinctFrom(_, right) => Some(right.as_ref()),
        _ => None,
    }
}

fn joins_conditions(expression: &Expr) -> bool {
    let Expr::BinaryOp { op, .. } = expression else {
        return false;
    };
    matches!(op, BinaryOperator::And | BinaryOperator::Or)
}

/// Returns notes about conditions that hold for no row, whatever is in it.
pub fn notes(sql: &str) -> Vec<String> {
    let tokens = tokens(sql);
    let mut notes: Vec<String> = Vec::new();
    for two in tokens.windows(2) {
        let (compared, right) = match &two[0] {
            Token::Eq | Token::DoubleEq => ("=", "IS NULL"),
            Token::Neq => ("<>", "IS NOT NULL"),
            _ => continue,
        };
        let note = format!("{compared} NULL holds for no row: write {right}");
        if is_word(&two[1], "null") && !notes.contains(&note) {
            notes.push(note);
        }
    }
    notes
}

/// Returns whether two words follow each other, outside of texts and quoted names.
fn has_words(sql: &str, words: [&str; 2]) -> bool {
    let tokens = tokens(sql);
    let mut two = tokens.windows(2);
    two.any(|two| is_word(&two[0], words[0]) && is_word(&two[1], words[1]))
}

fn is_word(token: &Token, name: &str) -> bool {
    matches!(token, Token::Word(word) if word.quote_style.is_none() && word.value.eq_ignore_ascii_case(name))
}

/// The parts of a question, without white space and comments; none if it cannot be read.
fn tokens(sql: &str) -> Vec<Token> {
    let tokens = Tokenizer::new(&GenericDialect {}, sql).tokenize();
    let mut tokens = tokens.unwrap_or_default();
    tokens.retain(|token| !matches!(token, Token::Whitespace(_)));
    tokens
}

#[cfg(test)]
mod tests {
    use datafusion::sql::parser::DFParserBuilder;

    use super::*;

    #[test]
    fn names_that_are_compared_may_be_texts() {
        for (sql, expected) in [
            ("select * from calls where function = \"tax\"", Meant::Text),
            (
                "select * from calls where function in (\"tax\")",
                Meant::Text,
            ),
            (
                "select * from calls where function like \"tax\"",
                Meant::Text,
            ),
            (
                "select * from calls where function == tax",
                Meant::PerhapsText,
            ),
            ("select \"tax\" from calls", Meant::Name),
            ("select tax from calls", Meant::Name),
            ("select 'tax' from calls", Meant::Name),
        ] {
            assert_eq!(meant(sql, "tax"), expected, "{sql}");
        }
    }

    #[test]
    fn conditions_that_never_hold_are_noted() {
        for (sql, expected) in [
            (
                "select 1 where ret = null",
                "= NULL holds for no row: write IS NULL",
            ),
            (
                "select 1 where ret != NULL and a <> null",
                "<> NULL holds for no row: write IS NOT NULL",
            ),
            ("select 1 where ret is null and function = 'null'", ""),
        ] {
            assert_eq!(notes(sql).join("; "), expected, "{sql}");
        }
    }

    #[test]
    fn only_names_of_columns_are_aliases() {
        for (sql, expected) in [
            ("select dur_ns / 1000 AS Us from calls where us > 5", true),
            ("select count(*) as us, tid from calls where us > 5", true),
            ("select tid from calls as us where us > 5", false),
            (
                "with us as (select 1) select tid from calls where us > 5",
                false,
            ),
            ("select tid from calls where us > 5", false),
        ] {
            assert_eq!(is_alias(sql, "us"), expected, "{sql}");
        }
    }

    #[test]
    fn what_means_something_else_is_refused() {
        for (sql, expected) in [
            ("select 1 where function Similar  To 't%'", Some("similar")),
            ("select 'similar to' from similar t", None),
            ("select 1 except all select 2", Some("except")),
            ("select 1 intersect all select 2", Some("intersect")),
            ("select 1 union all select 2", None),
            ("select 1 from t tablesample (10)", Some("tablesample")),
            ("select tablesample from t", None),
        ] {
            let mut parser = DFParserBuilder::new(sql).build().unwrap();
            let statement = parser.parse_statements().unwrap().pop_front().unwrap();
            let found = refused(&statement, sql).map(|refused| refused.word);
            assert_eq!(found, expected, "{sql}");
        }
    }
}
