//! Texts where numbers are meant: values of variables are texts (`value(seq, 'n')`), and functions of numbers do not take those.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, visit_expressions,
};
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::parser::Parser;

/// Parts of the names of text types.
const TEXT: [&str; 2] = ["Utf8", "String"];
/// Parts of the names of number types.
const NUMBERS: [&str; 5] = ["Decimal", "Float", "Int64", "Integer", "Numeric"];
/// Those among them of which some are integers.
const INTEGERS: [&str; 3] = ["Int64", "Integer", "Numeric"];
/// Columns of names, which are no numbers.
const NAMES: [&str; 8] = [
    "file",
    "function",
    "kind",
    "module",
    "name",
    "run",
    "short_name",
    "thread",
];
/// Stands for the argument if it is not known which one it is.
const ANY: &str = "TEXT";
/// The operators of numbers.
const OPERATORS: [&str; 5] = ["+", "-", "*", "/", "%"];

/// Returns the way to call a function of numbers that a question calls with a text. `call`: its name and the types of its
/// arguments, `sum(Utf8View)`; `ways`: with which types it can be called.
pub fn as_numbers(sql: &str, call: &str, ways: &str) -> Option<String> {
    let (name, types) = call.strip_suffix(')')?.split_once('(')?;
    let is_of_numbers = has(ways, &NUMBERS) && !has(ways, &TEXT);
    if !types.contains("Utf8") || !is_of_numbers {
        return None;
    }
    let kind = match has(ways, &INTEGERS) {
        true => "bigint",
        false => "double",
    };
    let text = text_argument(sql, name, types);
    if text.as_deref().is_some_and(is_name) {
        return None;
    }
    let cast = format!("cast({} AS {kind})", text.as_deref().unwrap_or(ANY));
    Some(match types.contains(',') {
        true => format!("if the text is a number, cast it: {cast}"),
        false => format!("if the text is a number, cast it: {name}({cast})"),
    })
}

fn has(types: &str, any: &[&str]) -> bool {
    any.iter().any(|part| types.contains(part))
}

/// Returns whether an argument is a column of names: `function`, `c.function`.
fn is_name(argument: &str) -> bool {
    let column = argument.rsplit('.').next().unwrap_or(argument);
    NAMES.iter().any(|name| column.eq_ignore_ascii_case(name))
}

/// Returns our words for a calculation with a text, and the right way to write it. `calculation`: the types of its two sides,
/// `Utf8View * Int64`.
pub fn calculated(calculation: &str) -> Option<(String, &'static str)> {
    let sides = |operator: &&str| calculation.split_once(&format!(" {operator} "));
    let operator = OPERATORS
        .into_iter()
        .find(|operator| sides(operator).is_some())?;
    let (left, right) = sides(&operator)?;
    let hint = match (left.contains("Utf8"), right.contains("Utf8")) {
        (false, false) => return None,
        (true, true) if operator == "+" => {
            "write: function || ' ' || file; of texts that are numbers: cast(a AS bigint) + cast(b AS bigint)"
        }
        _ => "if a text is a number, cast it: cast(value(seq, 'n') AS bigint)",
    };
    let what = match operator {
        "+" => "texts cannot be added by +".to_owned(),
        _ => format!("there is no {operator} of texts"),
    };
    Some((what, hint))
}

/// Returns the first argument of the function called `name` that is a text, if all its calls in a question agree on it.
fn text_argument(sql: &str, name: &str, types: &str) -> Option<String> {
    // The type of an earlier argument may have a comma of its own.
    let number = match types.contains('(') {
        true => return None,
        false => types.split(", ").position(|ty| ty.contains("Utf8"))?,
    };
    let statements = Parser::parse_sql(&GenericDialect {}, sql).ok()?;
    let mut found: Vec<Option<String>> = Vec::new();
    let _: ControlFlow<()> = visit_expressions(&statements, |expression| {
        if let Expr::Function(function) = expression
            && function.name.to_string().eq_ignore_ascii_case(name)
        {
            found.push(argument(function, number));
        }
        ControlFlow::Continue(())
    });
    let first = found.first().cloned().flatten();
    first.filter(|_| found.iter().all(|other| *other == found[0]))
}

/// Returns an argument as it is written.
fn argument(function: &Function, number: usize) -> Option<String> {
    let FunctionArguments::List(list) = &function.args else {
        return None;
    };
    match list.args.get(number)? {
        // What it is ordered by comes first.
        _ if !function.within_group.is_empty() => None,
        FunctionArg::Unnamed(FunctionArgExpr::Expr(argument)) => Some(argument.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OF_SUM: &str = "sum(Decimal)\nsum(UInt64)\nsum(Int64)\nsum(Float64)\nsum(Duration)";

    #[test]
    fn a_function_of_numbers_is_called_with_a_cast() {
        for (sql, call, ways, expected) in [
            (
                "select sum(value(pos,'sq')) from lines",
                "sum(Utf8View)",
                OF_SUM,
                Some("if the text is a number, cast it: sum(cast(value(pos, 'sq') AS bigint))"),
            ),
            (
                "select sum(distinct ret_text) filter (where depth > 3) from calls",
                "sum(Utf8View)",
                OF_SUM,
                Some("if the text is a number, cast it: sum(cast(ret_text AS bigint))"),
            ),
            (
                "select sum(c.function) from calls c",
                "sum(Utf8View)",
                OF_SUM,
                None,
            ),
            (
                "select mean(ret_text) from calls",
                "avg(Utf8View)",
                "avg(Decimal)\navg(Duration)\navg(Float64)",
                Some("if the text is a number, cast it: avg(cast(TEXT AS double))"),
            ),
            (
                "select sum(seq), sum(value(seq, 'n')) from events",
                "sum(Utf8View)",
                OF_SUM,
                Some("if the text is a number, cast it: sum(cast(TEXT AS bigint))"),
            ),
            (
                "select corr(seq, value(seq, 'n')) from events",
                "corr(Int64, Utf8View)",
                "corr(y: Float64, x: Float64)",
                Some("if the text is a number, cast it: cast(value(seq, 'n') AS double)"),
            ),
            (
                "select percentile_cont(0.5) within group (order by kind) from events",
                "percentile_cont(Utf8View, Float64)",
                "percentile_cont(expr: Float, percentile: Float64)",
                Some("if the text is a number, cast it: cast(TEXT AS double)"),
            ),
            (
                "select date_bin(ts_ns, 5) from calls",
                "date_bin(Int64, Int64)",
                "date_bin(Interval(MonthDayNano), Timestamp(ns))",
                None,
            ),
            (
                "select repeat(function, 'x') from calls",
                "repeat(Utf8View, Utf8)",
                "repeat(String, Int64)",
                None,
            ),
        ] {
            assert_eq!(as_numbers(sql, call, ways).as_deref(), expected, "{sql}");
        }
    }

    #[test]
    fn texts_in_calculations_are_cast() {
        let cast = "if a text is a number, cast it: cast(value(seq, 'n') AS bigint)";
        for (calculation, expected) in [
            (
                "Utf8View + Utf8",
                Some((
                    "texts cannot be added by +",
                    "write: function || ' ' || file; of texts that are numbers: cast(a AS bigint) + cast(b AS bigint)",
                )),
            ),
            (
                "Utf8View + Int64",
                Some(("texts cannot be added by +", cast)),
            ),
            ("Utf8View * Int64", Some(("there is no * of texts", cast))),
            (
                "Utf8View - Utf8View",
                Some(("there is no - of texts", cast)),
            ),
            ("Int64 - Boolean", None),
        ] {
            let found = calculated(calculation);
            let found = found.as_ref().map(|(what, hint)| (what.as_str(), *hint));
            assert_eq!(found, expected, "{calculation}");
        }
    }
}
