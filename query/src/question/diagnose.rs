//! Explains an error in a query: what is wrong, where, and which name was probably meant.

use datafusion::common::{Column, DataFusionError, SchemaError, Span};
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::parser::ParserError;
use debuginfo::Diagnostic;

use super::aliases;
use super::dialects::{self, Meant};
use super::joins;
use super::place::{self, Excerpt};
use super::subqueries::{self, Subqueries};
use super::suggest::suggest;
use super::texts;
use super::unknown;
use crate::error::{Error, Result, SqlError};
use crate::tables::TABLES;

/// The names that a query may use.
#[derive(Debug, Default)]
pub struct Names {
    /// Tables.
    pub tables: Vec<String>,
    /// Scalar, aggregate, window and table functions.
    pub functions: Vec<String>,
    /// The table functions among them.
    pub of_tables: Vec<String>,
}

/// An explained error, as far as it can be explained.
struct Finding {
    message: String,
    place: Option<Excerpt>,
    suggestions: Vec<String>,
    hint: Option<String>,
}

/// Returns the user's error for a query that could not be parsed or planned.
pub fn diagnose(sql: &str, error: &DataFusionError, names: &Names) -> Error {
    let finding = find(sql, error, names);
    Error::Sql(Box::new(SqlError {
        message: finding.message,
        position: finding.place.map(|place| (place.line, place.column)),
        excerpt: finding
            .place
            .map(|place| place.excerpt(sql))
            .unwrap_or_default(),
        suggestions: finding.suggestions,
        hint: finding.hint,
    }))
}

fn find(sql: &str, error: &DataFusionError, names: &Names) -> Finding {
    if let DataFusionError::Collection(errors) = error
        && let Some(first) = errors.first()
    {
        return find(sql, first, names);
    }
    if let Some(finding) = of_dialect(sql, error) {
        return finding;
    }
    let spanned = error
        .diagnostic()
        .and_then(|diagnostic| diagnostic.span)
        .and_then(|span| place_of_span(&span));
    match error.find_root() {
        DataFusionError::SQL(parser, _) => of_parser(sql, parser),
        DataFusionError::SchemaError(schema, _) => of_schema(sql, schema, spanned),
        DataFusionError::Plan(message) => match error.diagnostic() {
            Some(diagnostic) if message.starts_with("Column in SELECT must be") => Finding {
                message: plain(&diagnostic.message),
                place: spanned,
                suggestions: Vec::new(),
                hint: None,
            },
            _ => of_plan(sql, message, spanned, names),
        },
        other => {
            let message = other.strip_backtrace();
            let what = ours(other).or_else(|| subqueries::of_message(sql, &message));
            let what = what.unwrap_or_else(|| plain(&message).into());
            Finding {
                place: spanned.or_else(|| quoted(sql, &what.message)),
                message: what.message,
                suggestions: Vec::new(),
                hint: what.hint,
            }
        }
    }
}

/// Explains what other databases have and this SQL has not.
fn of_dialect(sql: &str, error: &DataFusionError) -> Option<Finding> {
    let words: Vec<&str> = sql.split_whitespace().take(3).collect();
    if let [select, top, number] = words.as_slice()
        && select.eq_ignore_ascii_case("select")
        && top.eq_ignore_ascii_case("top")
        && let Ok(number) = number.trim_matches(['(', ')']).parse::<u64>()
    {
        return Some(Finding {
            message: "there is no TOP in this SQL".to_owned(),
            place: place::of_word(sql, top, 0),
            suggestions: Vec::new(),
            hint: Some(format!("end the question with: LIMIT {number}")),
        });
    }
    let message = error.strip_backtrace();
    if let Some((what, hint)) = dialects::of_message(&message) {
        let spanned = error.diagnostic().and_then(|diagnostic| diagnostic.span);
        return Some(Finding {
            message: what,
            place: spanned.and_then(|span| place_of_span(&span)),
            suggestions: Vec::new(),
            hint: Some(hint.to_owned()),
        });
    }
    let (_, node) = message.split_once("nsupported ast node")?;
    let node = node
        .trim_start_matches(" in sqltorel")
        .trim_start_matches([':', ' ']);
    let end = node
        .find(|c: char| !c.is_alphanumeric())
        .unwrap_or(node.len());
    let (what, words, hint) = match &node[..end] {
        "RLike" => (
            "there is no REGEXP or RLIKE in this SQL",
            &["regexp", "rlike"][..],
            "write: function ~ 'PATTERN', or regexp_like(function, 'PATTERN')",
        ),
        "Convert" => (
            "there is no CONVERT in this SQL",
            &["convert"][..],
            "write: cast(start_seq AS text)",
        ),
        other => {
            return Some(Finding {
                message: format!("this SQL has no such expression: {other}"),
                place: None,
                suggestions: Vec::new(),
                hint: None,
            });
        }
    };
    let mut words = words.iter();
    Some(Finding {
        message: what.to_owned(),
        place: words.find_map(|word| place::of_word(sql, word, 0)),
        suggestions: Vec::new(),
        hint: Some(hint.to_owned()),
    })
}

fn place_of_span(span: &Span) -> Option<Excerpt> {
    let (start, end) = (span.start, span.end);
    (start.line > 0 && start.column > 0).then(|| Excerpt {
        line: start.line as usize,
        column: start.column as usize,
        len: match start.line == end.line {
            true => end.column.saturating_sub(start.column) as usize,
            false => 1,
        },
    })
}

fn of_parser(sql: &str, error: &ParserError) -> Finding {
    let message = match error {
        ParserError::TokenizerError(message) | ParserError::ParserError(message) => message,
        ParserError::RecursionLimitExceeded => "the question is nested too deeply",
    };
    let (text, mut place) = place::of_message(sql, message);
    if place.is_none() && text.contains("EOF") {
        place = Some(place::of_end(sql));
    }
    if let Some((what, hint)) = dialects::of_operator(text) {
        return Finding {
            message: what.to_owned(),
            place,
            suggestions: Vec::new(),
            hint: Some(hint.to_owned()),
        };
    }
    let parts = text.strip_prefix("Expected: ");
    let parts = parts.and_then(|text| text.split_once(", found: "));
    let (suggestions, hint) = match parts {
        Some((expected, found)) => dialects::of_found(sql, expected, found),
        None => (Vec::new(), None),
    };
    let text = text.replace("EOF", "the end").replace("found: ", "found ");
    Finding {
        message: plain(&text.replace("Expected: ", "expected ")),
        place,
        suggestions,
        hint,
    }
}

fn of_schema(sql: &str, error: &SchemaError, spanned: Option<Excerpt>) -> Finding {
    match error {
        SchemaError::FieldNotFound {
            field,
            valid_fields,
        } => match unknown_qualifier(field, valid_fields) {
            Some(table) => of_unknown_table(sql, table, field, valid_fields, spanned),
            None => of_unknown_column(sql, field, valid_fields, spanned),
        },
        SchemaError::AmbiguousReference { field } => Finding {
            message: format!("column \"{}\" is in more than one table", field.name),
            place: spanned.or_else(|| place::of_word(sql, &field.name, 0)),
            suggestions: Vec::new(),
            hint: Some(format!("write TABLE.{}", field.name)),
        },
        other => Finding {
            message: plain(&other.to_string()),
            place: spanned,
            suggestions: Vec::new(),
            hint: None,
        },
    }
}

/// No table that the query asks has this name here.
fn of_unknown_table(
    sql: &str,
    table: &str,
    field: &Column,
    valid_fields: &[Column],
    spanned: Option<Excerpt>,
) -> Finding {
    // A name of the plan's own: no plan exists for the subquery.
    if table.starts_with("__") && !sql.contains(table) {
        return without_plan(sql);
    }
    // A subquery may name a table of the outer query, whose columns are not among these.
    if let Some(known) = aliases::table_of(sql, table) {
        if columns_of(&known).any(|column| column == field.name) {
            return of_another_level(sql, table, field);
        }
        return Finding {
            message: format!("there is no column \"{}\" in {table}", field.name),
            place: spanned.or_else(|| place::of_word(sql, &field.name, 0)),
            suggestions: suggest(&field.name, columns_of(&known)),
            hint: None,
        };
    }
    let known = valid_fields
        .iter()
        .filter_map(|field| field.relation.as_ref());
    Finding {
        message: format!("there is no table \"{table}\" in this question"),
        place: spanned.or_else(|| place::of_word(sql, table, 0)),
        suggestions: suggest(table, known.map(|relation| relation.table())),
        hint: None,
    }
}

/// No table that the query asks has this column.
fn of_unknown_column(
    sql: &str,
    field: &Column,
    valid_fields: &[Column],
    spanned: Option<Excerpt>,
) -> Finding {
    let known = valid_fields.iter().map(|field| field.name.as_str());
    // The unknown column is our own, not the query's: no plan exists for the subquery that names the latter.
    if spanned.is_none() && place::of_word(sql, &field.name, 0).is_none() {
        return without_plan(sql);
    }
    // Most languages write a text in double quotes.
    let quoted = format!("\"{}\"", field.name);
    let text = dialects::in_quotes(&field.name);
    let meant = dialects::meant(sql, &field.name);
    let hint = || format!("text is written in single quotes: {text}");
    if field.name == crate::runs::COLUMN.0 {
        return Finding {
            message: format!("there is no column {quoted}: one recording is asked"),
            place: spanned.or_else(|| place::of_word(sql, &field.name, 0)),
            suggestions: Vec::new(),
            hint: Some(
                "name several recordings, a folder of them, or a pattern like 'app*'".to_owned(),
            ),
        };
    }
    if field.relation.is_none() && dialects::is_alias(sql, &field.name) {
        return Finding {
            message: format!(
                "{quoted} is a name that SELECT gives: WHERE, ON and the rest of SELECT do not know it"
            ),
            place: spanned.or_else(|| place::of_word(sql, &field.name, 0)),
            suggestions: Vec::new(),
            hint: Some(dialects::instead_of_alias(&field.name)),
        };
    }
    let mut suggestions = match meant {
        Meant::Text => Vec::new(),
        Meant::PerhapsText | Meant::Name => suggest(&field.name, known),
    };
    if meant == Meant::PerhapsText && !suggestions.is_empty() {
        suggestions.push(text.clone());
    }
    let is_text = meant != Meant::Name || sql.contains(&quoted);
    Finding {
        message: format!("there is no column {quoted}"),
        place: spanned.or_else(|| place::of_word(sql, &field.name, 0)),
        suggestions,
        hint: is_text.then(hint),
    }
}

/// A subquery of the query has no plan.
fn without_plan(sql: &str) -> Finding {
    let what = subqueries::no_plan(sql);
    Finding {
        message: what.message,
        place: None,
        suggestions: Vec::new(),
        hint: what.hint,
    }
}

/// A subquery mentions a column of a table that is further out.
fn of_another_level(sql: &str, table: &str, field: &Column) -> Finding {
    match Subqueries::of(sql).too_far_in(table, &field.name) {
        Some(place) => Finding {
            message: format!("{table}.{} {TOO_FAR_OUT}", field.name),
            place: Some(place),
            suggestions: Vec::new(),
            hint: Some("write the inner subquery as a join".to_owned()),
        },
        None => without_plan(sql),
    }
}

/// The columns of one of the recording's tables; none for an alias.
fn columns_of(table: &str) -> impl Iterator<Item = &'static str> {
    let table = TABLES.iter().find(|known| known.name == table);
    table
        .into_iter()
        .flat_map(|known| known.columns.iter().map(|(name, _)| *name))
}

/// Returns the table that qualifies a column's name if the query has no such table.
fn unknown_qualifier<'a>(field: &'a Column, valid_fields: &[Column]) -> Option<&'a str> {
    let table = field.relation.as_ref()?.table();
    let is_it = |known: &Column| {
        known
            .relation
            .as_ref()
            .is_some_and(|known| known.table() == table)
    };
    let any_named = valid_fields.iter().any(|known| known.relation.is_some());
    (any_named && !valid_fields.iter().any(is_it)).then_some(table)
}

fn of_plan(sql: &str, message: &str, spanned: Option<Excerpt>, names: &Names) -> Finding {
    if let Some(table) = between(message, "table '", "' not found") {
        let table = table.rsplit('.').next().unwrap_or(table);
        if names.of_tables.iter().any(|name| name == table) {
            let words = if table == "backtrace" { "seq" } else { "..." };
            return Finding {
                message: format!("{table} is a function that gives a table"),
                place: spanned.or_else(|| place::of_word(sql, table, 0)),
                suggestions: Vec::new(),
                hint: Some(format!("write: select * from {table}({words})")),
            };
        }
        return unknown(sql, "table", table, &names.tables, spanned);
    }
    if let Some(function) = between(message, "Invalid function '", "'")
        .or_else(|| between(message, "table function '", "' not found"))
    {
        if names.of_tables.iter().any(|name| name == function) {
            return Finding {
                message: format!("{function} gives a table"),
                place: spanned.or_else(|| place::of_word(sql, function, 0)),
                suggestions: Vec::new(),
                hint: Some(format!("write: select * from {function}(...)")),
            };
        }
        return unknown(sql, "function", function, &names.functions, spanned);
    }
    let short = wrong_arguments(sql, message)
        .or_else(|| same_names(message))
        .or_else(|| subqueries::of_message(sql, message));
    let what = short.unwrap_or_else(|| plain(message).into());
    Finding {
        place: spanned.or_else(|| quoted(sql, message)),
        message: what.message,
        suggestions: Vec::new(),
        hint: what.hint,
    }
}

/// Follows the name of a column that only the query two levels out has.
const TOO_FAR_OUT: &str =
    "is of the question two levels out: a subquery can compare only with the one right around it";

/// Returns the place of the first name or text that a message quotes.
fn quoted(sql: &str, message: &str) -> Option<Excerpt> {
    between(message, "'", "'").and_then(|name| place::of_word(sql, name, 0))
}

/// Names the columns of an answer that share a name.
fn same_names(message: &str) -> Option<Diagnostic> {
    let (_, rest) = message.split_once(" require unique expression names")?;
    let name = between(rest, "expression \"", "\" at")?;
    let what = Diagnostic::new(format!("two columns are called \"{name}\""));
    Some(what.with_hint("name one of them with AS"))
}

/// Ways to call a function that a message names.
const MOST_WAYS: usize = 6;

/// Shortens DataFusion's message that a function does not take such arguments.
fn wrong_arguments(sql: &str, message: &str) -> Option<Diagnostic> {
    let call = between(message, "argument types '", "'")?;
    let own = between(message, "coercion failed with: ", " No function matches");
    if let Some(own) = own {
        return Some(Diagnostic::new(plain(own.trim_end_matches('.'))));
    }
    let (_, candidates) = message.split_once("Candidate functions:")?;
    let mut ways: Vec<String> = Vec::new();
    for line in candidates.lines().map(str::trim) {
        let way = in_words(line);
        if !line.is_empty() && !ways.contains(&way) {
            ways.push(way);
        }
    }
    let more = match ways.len() > MOST_WAYS {
        true => format!(" and {} more", ways.len() - MOST_WAYS),
        false => String::new(),
    };
    ways.truncate(MOST_WAYS);
    let what = format!(
        "there is no {}, only {}{more}",
        in_words(call),
        ways.join(", ")
    );
    let what = Diagnostic::new(what);
    if call.starts_with("date_") {
        return Some(what.with_hint(
            "times here are numbers of nanoseconds: ts_ns / 1000000000 is the second, to_timestamp_nanos(ts_ns) a timestamp",
        ));
    }
    Some(match texts::as_numbers(sql, call, candidates) {
        Some(hint) => what.with_hint(hint),
        None => what,
    })
}

/// Names types in the user's words: `Utf8View` is text, `Timestamp(ns, "+TZ")` a timestamp.
fn in_words(types: &str) -> String {
    const KINDS: [(&str, &str); 5] = [
        ("Interval(", "interval"),
        ("Timestamp(", "timestamp"),
        ("Time64(", "time"),
        ("Time32(", "time"),
        ("Duration(", "duration"),
    ];
    let mut text = types
        .replace("Utf8View", "text")
        .replace("LargeUtf8", "text")
        .replace("Utf8", "text");
    for (kind, word) in KINDS {
        while let Some(at) = text.find(kind) {
            let end = text[at..].find(')').map_or(text.len(), |len| at + len + 1);
            text.replace_range(at..end, word);
        }
    }
    text
}

fn unknown(
    sql: &str,
    what: &str,
    name: &str,
    known: &[String],
    spanned: Option<Excerpt>,
) -> Finding {
    let hint = dialects::of_function(name).filter(|_| what == "function");
    Finding {
        message: format!("there is no {what} \"{name}\""),
        place: spanned.or_else(|| place::of_word(sql, name, 0)),
        suggestions: match hint {
            Some(_) => Vec::new(),
            None => suggest(name, known.iter().map(String::as_str)),
        },
        hint: hint.map(str::to_owned),
    }
}

fn between<'a>(text: &'a str, before: &str, after: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(before)?;
    Some(rest.split_once(after)?.0)
}

/// Returns the error for a second query after the first.
pub fn second_question(sql: &str) -> Error {
    let place = place::of_second_statement(sql);
    Error::Sql(Box::new(SqlError {
        message: "one question at a time: there is a second one".into(),
        position: place.map(|place| (place.line, place.column)),
        excerpt: place.map(|place| place.excerpt(sql)).unwrap_or_default(),
        suggestions: Vec::new(),
        hint: None,
    }))
}

/// Refuses a question that would be answered otherwise than it is meant.
///
/// # Errors
/// [`Error::Sql`] with the right way to write it.
pub fn check_words(statement: &Statement, sql: &str) -> Result<()> {
    let refused = dialects::refused(statement, sql)
        .or_else(|| joins::refused(statement))
        .or_else(|| unknown::refused(statement));
    if let Some(refused) = refused {
        let place = place::of_word(sql, refused.word, 0);
        return Err(wrong(refused.message, place, sql, refused.hint));
    }
    let Some(span) = dialects::wide_distinct_from(statement) else {
        return Ok(());
    };
    let span = Span::try_from_sqlparser_span(span);
    Err(wrong(
        "the right side of IS DISTINCT FROM would be all of this",
        span.and_then(|span| place_of_span(&span)),
        sql,
        "write: (a IS DISTINCT FROM b) AND c",
    ))
}

/// Returns the error for a question whose answer would have no column.
pub fn no_columns(sql: &str) -> Error {
    let place = place::of_word(sql, "select", 0);
    wrong(
        "SELECT names no column",
        place,
        sql,
        "write: select * from calls",
    )
}

/// Returns the error for a question that has a plan only if unknown counts as false.
pub fn no_unknown(sql: &str) -> Error {
    let message = "IN, ANY and ALL have no plan here that tells unknown from false: their subquery compares with the question \
                   around it, or they compare an aggregate, or they stand in ON";
    wrong(message, None, sql, unknown::EXISTS)
}

fn wrong(message: &str, place: Option<Excerpt>, sql: &str, hint: &str) -> Error {
    Error::Sql(Box::new(SqlError {
        message: message.to_owned(),
        position: place.map(|place| (place.line, place.column)),
        excerpt: place.map(|place| place.excerpt(sql)).unwrap_or_default(),
        suggestions: Vec::new(),
        hint: Some(hint.to_owned()),
    }))
}

/// Names the operator that requested more memory than the limit.
pub fn memory_message(message: &str) -> String {
    const JOIN: &str = "a join holds one of its two sides in memory, and it is too large";
    const CONSUMERS: [(&str, &str); 12] = [
        ("HashJoinInput", JOIN),
        ("NestedLoopJoin", JOIN),
        ("CrossJoin", JOIN),
        ("PiecewiseMergeJoin", JOIN),
        ("SMJStream", "a join has too many rows with one key"),
        ("HashAggregate", "there are too many groups"),
        ("AggregateStream", "an aggregate holds too much"),
        ("TopK", "there are too many first rows to keep"),
        ("ExternalSorter", "there is too much to sort"),
        ("SortPreservingMerge", "there is too much to sort"),
        (
            "RepartitionExec",
            "too many rows wait for another part of the answer",
        ),
        ("Failed to allocate", "a part of it does not fit"),
    ];
    // The message first names the failed operator, then the largest ones.
    let first = message.lines().next().unwrap_or_default();
    let asked = first.split(" with top memory consumers").next();
    let asked = asked.unwrap_or_default();
    let known = CONSUMERS.iter().find(|(name, _)| asked.contains(name));
    known.map_or_else(|| plain(asked), |(_, words)| (*words).to_owned())
}

/// Returns DataFusion's message in our style.
pub fn message_of(error: &DataFusionError) -> String {
    if let Some(what) = ours(error) {
        return what.message;
    }
    let message = error.find_root().strip_backtrace();
    plain(innermost(&message).unwrap_or(&message))
}

/// Returns the next step of one of our own errors that DataFusion wraps.
pub fn hint_of(error: &DataFusionError) -> Option<String> {
    ours(error)?.hint
}

/// Returns the message of one of our own functions, or of our store about a damaged file, that DataFusion and Parquet
/// wrap.
fn ours(error: &DataFusionError) -> Option<Diagnostic> {
    match within::<store::Error>(error) {
        Some(error) => Some(Diagnostic {
            message: error.to_string(),
            hint: error.hint().map(str::to_owned),
        }),
        None => within::<Diagnostic>(error)
            .cloned()
            .or_else(|| printed(&error.find_root().strip_backtrace())),
    }
}

/// Returns one of our own messages that Parquet has printed into its own: it does so where it filters rows while it reads.
fn printed(message: &str) -> Option<Diagnostic> {
    let (_, rest) = message.split_once("Diagnostic { message: \"")?;
    let (message, rest) = quoted_text(rest)?;
    let hint = rest.strip_prefix(", hint: Some(\"").and_then(quoted_text);
    Some(Diagnostic {
        message,
        hint: hint.map(|(hint, _)| hint),
    })
}

/// Returns a printed text up to its closing quotation mark, and what follows that.
fn quoted_text(printed: &str) -> Option<(String, &str)> {
    let mut text = String::new();
    let mut chars = printed.char_indices();
    while let Some((at, char)) = chars.next() {
        match char {
            '"' => return Some((text, &printed[at + 1..])),
            '\\' => match chars.next()?.1 {
                'n' => text.push('\n'),
                other => text.push(other),
            },
            char => text.push(char),
        }
    }
    None
}

fn within<T: std::error::Error + 'static>(error: &DataFusionError) -> Option<&T> {
    let first: &(dyn std::error::Error + 'static) = error;
    std::iter::successors(Some(first), |error| error.source())
        .find_map(|error| error.downcast_ref())
}

/// Returns the text of an Arrow error that a Parquet error carries in its debug form.
fn innermost(message: &str) -> Option<&str> {
    let (_, error) = message.split_once("ArrowError(")?;
    let (_, text) = error.split_once("(\"")?;
    Some(text.split_once("\")")?.0)
}

/// Makes a message begin with a lower-case letter and removes its prefix.
fn plain(message: &str) -> String {
    let mut text = message.trim();
    for prefix in [
        "Error during planning: ",
        "Optimizer rule 'simplify_expressions' failed",
        "Execution error: ",
        "External error: ",
        "Arrow error: ",
        "Cast error: ",
        "SQL error: ",
        "sql parser error: ",
        "This feature is not implemented: ",
    ] {
        text = text.strip_prefix(prefix).unwrap_or(text);
    }
    let mut chars = text.chars();
    let second = text.chars().nth(1);
    match chars.next() {
        Some(first) if !second.is_some_and(char::is_uppercase) => {
            first.to_lowercase().chain(chars).collect()
        }
        _ => text.to_owned(),
    }
}
