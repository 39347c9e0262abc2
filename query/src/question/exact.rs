//! Long numbers with a point. DataFusion reads them as floating-point numbers, which hold no more than 15 digits for certain: these are
//! compared with as integers or decimals, and casts to decimals read them as text.

use std::ops::ControlFlow;

use datafusion::sql::parser::Statement as DfStatement;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, CastKind, DataType, ExactNumberInfo, Expr, Statement, UnaryOperator, Value,
    visit_expressions_mut,
};

/// From here on, neighbouring floating-point numbers are one or more apart, and all are whole.
const LARGE: i128 = 1 << 53;
/// Digits that a floating-point number holds for certain.
const CERTAIN_DIGITS: usize = 15;
/// Most digits behind the point of a decimal that any integer of 64 bits can be compared with: both have 38 digits together.
const MOST_FRACTION: usize = 18;
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
            Some(match Number::of(right) {
                Some(number) => number.compared(left, op),
                None => Number::of(left)?.compared(right, &turned),
            })
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
pub fn turned(operator: &BinaryOperator) -> Option<BinaryOperator> {
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
    match Number::of(value) {
        Some(number) => number.compared(column, &operator),
        None => binary(column.clone(), operator, value.clone()),
    }
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
    /// What is before the point.
    whole: i128,
    /// The digits behind the point, up to the last one that counts.
    fraction: String,
}

impl Number {
    fn of(expression: &Expr) -> Option<Number> {
        let text = digits(expression)?;
        let (whole, fraction) = text.split_once('.')?;
        let whole: i128 = whole.parse().ok()?;
        let fits = i64::try_from(whole).is_ok() || u64::try_from(whole).is_ok();
        let is_large = whole.unsigned_abs() >= LARGE.unsigned_abs();
        (is_large && fits).then(|| Number {
            whole,
            fraction: counting(fraction),
        })
    }

    /// Returns the same comparison with an integer, or with a decimal if there is a fraction.
    fn compared(&self, left: &Expr, operator: &BinaryOperator) -> Expr {
        let right = match self.fraction.is_empty() {
            true => integer(self.whole),
            false => self.decimal(),
        };
        binary(left.clone(), operator.clone(), right)
    }

    /// Returns a cast of a text: the engine knows no other way to write all its digits.
    fn decimal(&self) -> Expr {
        let digits = self.whole.unsigned_abs().to_string().len() + self.fraction.len();
        let size = ExactNumberInfo::PrecisionAndScale(digits as u64, self.fraction.len() as i64);
        let text = format!("{}.{}", self.whole, self.fraction);
        Expr::Cast {
            kind: CastKind::Cast,
            expr: Box::new(Expr::Value(Value::SingleQuotedString(text).into())),
            data_type: DataType::Decimal(size),
            array: false,
            format: None,
        }
    }
}

/// Returns the digits of a fraction without zeros at its end. What is behind the last place counts as a one there: no integer lies
/// between.
fn counting(fraction: &str) -> String {
    let digits = fraction.trim_end_matches('0');
    match digits.get(..MOST_FRACTION - 1) {
        Some(first) if digits.len() > MOST_FRACTION => format!("{first}1"),
        _ => digits.to_owned(),
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
    fn long_numbers_with_a_point_are_compared_with_all_their_digits() {
        for (condition, expected) in [
            ("ret = 9223372036854775806.0", "ret = 9223372036854775806"),
            (
                "x > 9223372036854775802.50",
                "x > CAST('9223372036854775802.5' AS DECIMAL(20,1))",
            ),
            (
                "9223372036854775802.5 >= ret",
                "ret <= CAST('9223372036854775802.5' AS DECIMAL(20,1))",
            ),
            (
                "ret <> -9223372036854775802.5",
                "ret <> CAST('-9223372036854775802.5' AS DECIMAL(20,1))",
            ),
            (
                "ret > 9223372036854775802.1234567890123456789",
                "ret > CAST('9223372036854775802.123456789012345671' AS DECIMAL(37,18))",
            ),
            (
                "ret NOT IN (9223372036854775806, 1.5)",
                "NOT (ret = 9223372036854775806 OR ret = 1.5)",
            ),
            (
                "ret BETWEEN 1 AND 9223372036854775802.5",
                "(ret >= 1 AND ret <= CAST('9223372036854775802.5' AS DECIMAL(20,1)))",
            ),
            (
                "CAST(18446744073709551617 AS DECIMAL(38,0)) > 1.5",
                "CAST('18446744073709551617' AS DECIMAL(38,0)) > 1.5",
            ),
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
