//! Long numbers with a point. DataFusion reads them as floating-point numbers, which hold no more than 15 digits for certain: these are
//! compared with as integers, and casts to decimals read them as text.

use std::ops::ControlFlow;

use datafusion::sql::parser::Statement as DfStatement;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, DataType, Expr, Statement, UnaryOperator, Value, visit_expressions_mut,
};

use crate::tables::TABLES;

/// From here on, neighbouring floating-point numbers are one or more apart, and all are whole.
const LARGE: i128 = 1 << 53;
/// Digits that a floating-point number holds for certain.
const CERTAIN_DIGITS: usize = 15;
/// A list of IN with more values is left as it is.
const LONGEST_LIST: usize = 64;

/// Rewrites the comparisons with such numbers, and the casts of them.
pub fn make_exact(statement: &mut DfStatement) {
    match statement {
        DfStatement::Statement(statement) => of_statement(statement),
        DfStatement::Explain(explain) => make_exact(&mut explain.statement),
        _ => {}
    }
}

fn of_statement(statement: &mut Statement) {
    let _: ControlFlow<()> = visit_expressions_mut(statement, |expression| {
        if let Some(exact) = exact(expression) {
            *expression = exact;
        }
        ControlFlow::Continue(())
    });
}

fn exact(expression: &mut Expr) -> Option<Expr> {
    match expression {
        Expr::BinaryOp { left, op, right } => {
            let turned = turned(op)?;
            match Number::of(right) {
                Some(number) => number.compared(left, op),
                None => Number::of(left)?.compared(right, &turned),
            }
        }
        Expr::Between {
            expr,
            negated,
            low,
            high,
        } => between(expr, low, high).map(|all| negated_if(*negated, all)),
        Expr::InList {
            expr,
            list,
            negated,
        } => one_of(expr, list).map(|any| negated_if(*negated, any)),
        Expr::Cast {
            expr, data_type, ..
        } => {
            let text = digits(expr).filter(|text| text.len() > CERTAIN_DIGITS)?;
            if is_decimal(data_type) {
                **expr = Expr::Value(Value::SingleQuotedString(text).into());
            }
            None
        }
        _ => None,
    }
}

fn is_decimal(kind: &DataType) -> bool {
    matches!(
        kind,
        DataType::Decimal(_) | DataType::Numeric(_) | DataType::Dec(_)
    )
}

/// Returns the operator for the same comparison with its sides exchanged; `None` if it is no comparison.
fn turned(operator: &BinaryOperator) -> Option<BinaryOperator> {
    Some(match operator {
        BinaryOperator::Gt => BinaryOperator::Lt,
        BinaryOperator::Lt => BinaryOperator::Gt,
        BinaryOperator::GtEq => BinaryOperator::LtEq,
        BinaryOperator::LtEq => BinaryOperator::GtEq,
        BinaryOperator::Eq => BinaryOperator::Eq,
        BinaryOperator::NotEq => BinaryOperator::NotEq,
        _ => return None,
    })
}

fn between(column: &Expr, low: &Expr, high: &Expr) -> Option<Expr> {
    let is_long = Number::of(low).is_some() || Number::of(high).is_some();
    let above = compared(column, BinaryOperator::GtEq, low);
    let below = compared(column, BinaryOperator::LtEq, high);
    (is_long && is_column(column)).then(|| joined(above, BinaryOperator::And, below))
}

fn one_of(column: &Expr, list: &[Expr]) -> Option<Expr> {
    if !is_column(column) || list.len() > LONGEST_LIST || !is_mixed(list) {
        return None;
    }
    let each = list
        .iter()
        .map(|value| compared(column, BinaryOperator::Eq, value));
    each.reduce(|left, right| joined(left, BinaryOperator::Or, right))
}

/// Returns whether a list has a long number and one with a point: that makes all of them floating-point numbers.
fn is_mixed(list: &[Expr]) -> bool {
    let all: Vec<String> = list.iter().filter_map(digits).collect();
    all.iter().any(|text| text.len() > CERTAIN_DIGITS) && all.iter().any(|text| text.contains('.'))
}

fn compared(column: &Expr, operator: BinaryOperator, value: &Expr) -> Expr {
    let exact = Number::of(value).and_then(|number| number.compared(column, &operator));
    exact.unwrap_or_else(|| binary(column.clone(), operator, value.clone()))
}

fn binary(left: Expr, op: BinaryOperator, right: Expr) -> Expr {
    Expr::BinaryOp {
        left: Box::new(left),
        op,
        right: Box::new(right),
    }
}

fn joined(left: Expr, operator: BinaryOperator, right: Expr) -> Expr {
    Expr::Nested(Box::new(binary(left, operator, right)))
}

fn negated_if(negated: bool, expression: Expr) -> Expr {
    match negated {
        true => Expr::UnaryOp {
            op: UnaryOperator::Not,
            expr: Box::new(expression),
        },
        false => expression,
    }
}

fn is_column(expression: &Expr) -> bool {
    matches!(
        expression,
        Expr::Identifier(_) | Expr::CompoundIdentifier(_)
    )
}

/// Returns whether an expression is a column of a recording: no such column has decimals.
fn is_of_recording(expression: &Expr) -> bool {
    let name = match expression {
        Expr::Identifier(name) => name,
        Expr::CompoundIdentifier(names) => match names.last() {
            Some(name) => name,
            None => return false,
        },
        _ => return false,
    };
    let mut columns = TABLES.iter().flat_map(|table| table.columns.iter());
    columns.any(|(column, _)| column.eq_ignore_ascii_case(&name.value))
}

/// Returns the digits of a number as they are written, with its sign; `None` if it is something else or has an exponent.
fn digits(expression: &Expr) -> Option<String> {
    match expression {
        Expr::Value(value) => match &value.value {
            Value::Number(number, _) => {
                let text = number.to_string();
                let is_plain = |char: char| char.is_ascii_digit() || char == '.';
                text.chars().all(is_plain).then_some(text)
            }
            _ => None,
        },
        Expr::UnaryOp {
            op: UnaryOperator::Minus,
            expr,
        } => {
            let text = digits(expr).filter(|text| !text.starts_with('-'))?;
            Some(format!("-{text}"))
        }
        Expr::Nested(inner) => digits(inner),
        _ => None,
    }
}

/// A number with a point that is too large for floating-point numbers to have its fraction.
struct Number {
    /// The largest integer that is not above it.
    floor: i128,
    /// Whether that is it.
    is_whole: bool,
}

impl Number {
    fn of(expression: &Expr) -> Option<Number> {
        let text = digits(expression)?;
        let (whole, fraction) = text.split_once('.')?;
        let whole_number: i128 = whole.parse().ok()?;
        let is_whole = fraction.chars().all(|digit| digit == '0');
        let is_below = !is_whole && whole.starts_with('-');
        let floor = whole_number.checked_sub(i128::from(is_below))?;
        let fits = i64::try_from(floor).is_ok() || u64::try_from(floor.checked_add(1)?).is_ok();
        let is_large = whole_number.unsigned_abs() >= LARGE.unsigned_abs();
        (is_large && fits).then_some(Number { floor, is_whole })
    }

    /// Returns the same comparison with integers; `None` for what may have a fraction itself.
    fn compared(&self, left: &Expr, operator: &BinaryOperator) -> Option<Expr> {
        let with = |op: BinaryOperator, number| binary(left.clone(), op, integer(number));
        if self.is_whole {
            return Some(with(operator.clone(), self.floor));
        }
        if !is_of_recording(left) {
            return None;
        }
        let (floor, ceiling) = (self.floor, self.floor + 1);
        Some(match operator {
            BinaryOperator::Gt | BinaryOperator::LtEq => with(operator.clone(), floor),
            BinaryOperator::GtEq | BinaryOperator::Lt => with(operator.clone(), ceiling),
            BinaryOperator::Eq => joined(
                with(BinaryOperator::Gt, floor),
                BinaryOperator::And,
                with(BinaryOperator::Lt, ceiling),
            ),
            BinaryOperator::NotEq => joined(
                with(BinaryOperator::LtEq, floor),
                BinaryOperator::Or,
                with(BinaryOperator::GtEq, ceiling),
            ),
            _ => return None,
        })
    }
}

fn integer(number: i128) -> Expr {
    let value = Value::Number(number.unsigned_abs().to_string(), false);
    let value = Expr::Value(value.into());
    match number < 0 {
        true => Expr::UnaryOp {
            op: UnaryOperator::Minus,
            expr: Box::new(value),
        },
        false => value,
    }
}

#[cfg(test)]
mod tests {
    use datafusion::sql::parser::DFParserBuilder;

    use super::*;

    #[test]
    fn long_numbers_with_a_point_are_compared_as_integers() {
        for (condition, expected) in [
            ("ret = 9223372036854775806.0", "ret = 9223372036854775806"),
            ("ret > 9223372036854775802.5", "ret > 9223372036854775802"),
            ("9223372036854775802.5 >= ret", "ret <= 9223372036854775802"),
            ("ret > -9223372036854775802.5", "ret > -9223372036854775803"),
            (
                "ret <> 9223372036854775802.5",
                "(ret <= 9223372036854775802 OR ret >= 9223372036854775803)",
            ),
            (
                "ret NOT IN (9223372036854775806, 1.5)",
                "NOT (ret = 9223372036854775806 OR ret = 1.5)",
            ),
            (
                "ret BETWEEN 1 AND 9223372036854775802.5",
                "(ret >= 1 AND ret <= 9223372036854775802)",
            ),
            (
                "CAST(18446744073709551617 AS DECIMAL(38,0)) > 1.5",
                "CAST('18446744073709551617' AS DECIMAL(38,0)) > 1.5",
            ),
            ("x > 9223372036854775802.5", "x > 9223372036854775802.5"),
            ("ret > 1.5", "ret > 1.5"),
        ] {
            let sql = format!("SELECT 1 FROM t WHERE {condition}");
            let mut parser = DFParserBuilder::new(sql.as_str()).build().unwrap();
            let mut statement = parser.parse_statements().unwrap().pop_front().unwrap();
            make_exact(&mut statement);
            let expected = format!("SELECT 1 FROM t WHERE {expected}");
            assert_eq!(statement.to_string(), expected, "{sql}");
        }
    }
}
