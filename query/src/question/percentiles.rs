//! Counts the percentiles of a descending order from the other end. DataFusion does so in floating point, where 1 - 0.9 is less than 0.1.

use std::ops::ControlFlow;

use datafusion::sql::parser::Statement as DfStatement;
use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Value, visit_expressions_mut,
};

/// Makes `percentile_cont(0.9) WITHIN GROUP (ORDER BY x DESC)` `percentile_cont(0.1) WITHIN GROUP (ORDER BY x)`.
pub fn ascending(statement: &mut DfStatement) {
    match statement {
        DfStatement::Statement(statement) => {
            let _: ControlFlow<()> = visit_expressions_mut(statement, |own| {
                if let Expr::Function(function) = own {
                    turn(function);
                }
                ControlFlow::Continue(())
            });
        }
        DfStatement::Explain(explain) => ascending(&mut explain.statement),
        _ => {}
    }
}

fn turn(function: &mut Function) -> Option<()> {
    let name = function.name.to_string().to_lowercase();
    let [order] = function.within_group.as_mut_slice() else {
        return None;
    };
    let is_exact = matches!(name.as_str(), "percentile_cont" | "quantile_cont");
    if !is_exact || order.options.asc != Some(false) {
        return None;
    }
    let FunctionArguments::List(list) = &mut function.args else {
        return None;
    };
    let [FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Value(part)))] = list.args.as_mut_slice()
    else {
        return None;
    };
    let Value::Number(number, _) = &part.value else {
        return None;
    };
    let rest = rest(number)?;
    part.value = Value::Number(rest, false);
    order.options.asc = None;
    order.options.nulls_first = None;
    Some(())
}

/// Returns one minus a number of 0 to 1, digit by digit.
fn rest(number: &str) -> Option<String> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let places = u32::try_from(fraction.len()).ok()?;
    let one = 10_u64.checked_pow(places)?;
    let part: u64 = format!("{whole}{fraction}").parse().ok()?;
    let rest = one.checked_sub(part)?;
    let width = fraction.len();
    Some(match width {
        0 => rest.to_string(),
        _ => format!("{}.{:0width$}", rest / one, rest % one),
    })
}

#[cfg(test)]
mod tests {
    use super::rest;

    #[test]
    fn the_rest_of_one_has_all_its_digits() {
        for (number, expected) in [
            ("0.9", Some("0.1")),
            ("0.95", Some("0.05")),
            (".25", Some("0.75")),
            ("0.0", Some("1.0")),
            ("1", Some("0")),
            ("0", Some("1")),
            ("1.", Some("0")),
            ("1.5", None),
            ("1e-1", None),
        ] {
            assert_eq!(rest(number).as_deref(), expected, "{number}");
        }
    }
}
