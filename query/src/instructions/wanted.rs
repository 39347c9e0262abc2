//! The part of a run that the filters of a query select: bounds of positions, threads, addresses and code. It may include
//! more than the filters select, which are applied to the rows in any case, but never less.

use std::fmt;

use datafusion::common::ScalarValue;
use datafusion::logical_expr::{BinaryExpr, Expr, Operator};

use crate::functions::arithmetic::summands;

/// Bounds of a number, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    pub low: i64,
    pub high: i64,
}

/// The selected part.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    pub position: Span,
    pub seq: Span,
    pub tid: Span,
    /// Of the table's own column `addr`.
    pub addr: Span,
    /// Of `addr + size`.
    pub end: Span,
    /// Of `pc`.
    pub pc: Span,
    pub line: Span,
    pub function: Option<Vec<String>>,
    pub file: Option<Vec<String>>,
}

impl Default for Span {
    fn default() -> Span {
        Span {
            low: i64::MIN,
            high: i64::MAX,
        }
    }
}

impl Span {
    /// Returns whether it bounds anything.
    pub fn is_bounded(self) -> bool {
        self != Span::default()
    }

    /// The only number within the bounds, if there is just one.
    pub fn only(self) -> Option<i64> {
        (self.low == self.high).then_some(self.low)
    }

    /// Returns whether a number is within the bounds.
    pub fn holds(self, number: i64) -> bool {
        (self.low..=self.high).contains(&number)
    }

    fn bound(&mut self, operator: Operator, number: i64) -> bool {
        match operator {
            Operator::Eq => {
                self.low = self.low.max(number);
                self.high = self.high.min(number);
            }
            Operator::Gt => self.low = self.low.max(number.saturating_add(1)),
            Operator::GtEq => self.low = self.low.max(number),
            Operator::Lt => self.high = self.high.min(number.saturating_sub(1)),
            Operator::LtEq => self.high = self.high.min(number),
            _ => return false,
        }
        true
    }
}

impl Wanted {
    /// Applies a filter. Returns whether it bounds anything.
    pub fn take(&mut self, filter: &Expr) -> bool {
        match filter {
            Expr::BinaryExpr(BinaryExpr {
                left,
                op: Operator::And,
                right,
            }) => {
                let both = [self.take(left), self.take(right)];
                both.contains(&true)
            }
            Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
                if let Some(swapped) = op.swap()
                    && matches!(**left, Expr::Literal(..))
                {
                    return self.compared(right, swapped, left);
                }
                self.compared(left, *op, right)
            }
            Expr::Between(between) if !between.negated => {
                let low = self.compared(&between.expr, Operator::GtEq, &between.low);
                let high = self.compared(&between.expr, Operator::LtEq, &between.high);
                low || high
            }
            Expr::InList(list) if !list.negated => self.one_of(&list.expr, &list.list),
            _ => false,
        }
    }

    fn compared(&mut self, what: &Expr, operator: Operator, with: &Expr) -> bool {
        if let (Some(span), Some(number)) = (self.span(what), number(with)) {
            return span.bound(operator, number);
        }
        match (self.texts(what), text(with)) {
            (Some(texts), Some(text)) if operator == Operator::Eq => {
                narrow(texts, vec![text.to_owned()]);
                true
            }
            _ => false,
        }
    }

    fn one_of(&mut self, what: &Expr, list: &[Expr]) -> bool {
        let numbers: Option<Vec<i64>> = list.iter().map(number).collect();
        if let (Some(span), Some(numbers)) = (self.span(what), numbers) {
            let (low, high) = (numbers.iter().min(), numbers.iter().max());
            return match (low, high) {
                (Some(low), Some(high)) => {
                    span.bound(Operator::GtEq, *low) && span.bound(Operator::LtEq, *high)
                }
                _ => false,
            };
        }
        let all: Option<Vec<String>> = list
            .iter()
            .map(|one| text(one).map(str::to_owned))
            .collect();
        match (self.texts(what), all) {
            (Some(texts), Some(all)) => {
                narrow(texts, all);
                true
            }
            _ => false,
        }
    }

    fn span(&mut self, what: &Expr) -> Option<&mut Span> {
        if let Some([left, right]) = summands(what) {
            let names = [column(left)?, column(right)?];
            return matches!(names, ["addr", "size"] | ["size", "addr"]).then_some(&mut self.end);
        }
        Some(match column(what)? {
            "position" => &mut self.position,
            "seq" => &mut self.seq,
            "tid" => &mut self.tid,
            "addr" => &mut self.addr,
            "pc" => &mut self.pc,
            "line" => &mut self.line,
            _ => return None,
        })
    }

    fn texts(&mut self, what: &Expr) -> Option<&mut Option<Vec<String>>> {
        match column(what)? {
            "function" => Some(&mut self.function),
            "file" => Some(&mut self.file),
            _ => None,
        }
    }
}

impl fmt::Display for Wanted {
    /// Writes what was pushed down, for EXPLAIN.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let spans = [
            ("position", self.position),
            ("seq", self.seq),
            ("tid", self.tid),
            ("addr", self.addr),
            ("addr + size", self.end),
            ("pc", self.pc),
            ("line", self.line),
        ];
        let mut all: Vec<String> = Vec::new();
        for (name, span) in spans.into_iter().filter(|(_, span)| span.is_bounded()) {
            all.push(match (span.only(), span.low, span.high) {
                (Some(only), ..) => format!("{name} = {only}"),
                (None, i64::MIN, high) => format!("{name} <= {high}"),
                (None, low, i64::MAX) => format!("{name} >= {low}"),
                (None, low, high) => format!("{name} in {low}..={high}"),
            });
        }
        for (name, texts) in [("function", &self.function), ("file", &self.file)] {
            all.extend(texts.iter().map(|texts| format!("{name} in {texts:?}")));
        }
        match all.is_empty() {
            true => f.write_str("nothing"),
            false => f.write_str(&all.join(", ")),
        }
    }
}

fn narrow(texts: &mut Option<Vec<String>>, to: Vec<String>) {
    match texts {
        Some(texts) => texts.retain(|text| to.contains(text)),
        None => *texts = Some(to),
    }
}

fn column(what: &Expr) -> Option<&str> {
    match what {
        Expr::Column(column) => Some(&column.name),
        Expr::Cast(cast) => column(&cast.expr),
        _ => None,
    }
}

fn number(value: &Expr) -> Option<i64> {
    let Expr::Literal(value, _) = value else {
        return None;
    };
    match value {
        ScalarValue::Int8(number) => number.map(i64::from),
        ScalarValue::Int16(number) => number.map(i64::from),
        ScalarValue::Int32(number) => number.map(i64::from),
        ScalarValue::Int64(number) => *number,
        ScalarValue::UInt8(number) => number.map(i64::from),
        ScalarValue::UInt16(number) => number.map(i64::from),
        ScalarValue::UInt32(number) => number.map(i64::from),
        ScalarValue::UInt64(number) => i64::try_from((*number)?).ok(),
        _ => None,
    }
}

fn text(value: &Expr) -> Option<&str> {
    value.as_literal()?.try_as_str()?
}

#[cfg(test)]
mod tests {
    use datafusion::logical_expr::{col, lit};

    use super::*;

    fn wanted(filters: &[Expr]) -> (Wanted, Vec<bool>) {
        let mut wanted = Wanted::default();
        let taken = filters.iter().map(|filter| wanted.take(filter)).collect();
        (wanted, taken)
    }

    #[test]
    fn bounds_of_numbers_are_taken() {
        let (all, taken) = wanted(&[
            col("position")
                .gt_eq(lit(10i64))
                .and(col("position").lt(lit(20i64))),
            lit(7i64).eq(col("tid")),
            col("addr").between(lit(0x1000i64), lit(0x1007i64)),
            col("line").in_list(vec![lit(9i64), lit(4i64)], false),
            (col("addr") + col("size")).gt(lit(0x1000i64)),
        ]);
        assert_eq!(taken, [true; 5]);
        assert_eq!((all.position.low, all.position.high), (10, 19));
        assert_eq!(all.tid.only(), Some(7));
        assert_eq!((all.line.low, all.line.high), (4, 9));
        assert_eq!(all.end.low, 0x1001);
        assert!(!all.seq.is_bounded());
        assert_eq!(
            all.to_string(),
            "position in 10..=19, tid = 7, addr in 4096..=4103, addr + size >= 4097, line in 4..=9"
        );
    }

    #[test]
    fn what_is_not_understood_leaves_everything() {
        let (all, taken) = wanted(&[
            col("position").eq(lit(1i64)).or(col("tid").eq(lit(2i64))),
            col("function").not_eq(lit("f")),
            col("line").in_list(vec![lit(9i64)], true),
            col("text").eq(lit("ret")),
        ]);
        assert_eq!(taken, [false; 4]);
        assert_eq!(all, Wanted::default());
        assert_eq!(all.to_string(), "nothing");
    }

    #[test]
    fn names_are_narrowed() {
        let (all, _) = wanted(&[
            col("function").in_list(vec![lit("f"), lit("g")], false),
            col("function").eq(lit("g")),
            col("file").eq(lit("a.c")),
        ]);
        assert_eq!(all.function, Some(vec!["g".to_owned()]));
        assert_eq!(all.file, Some(vec!["a.c".to_owned()]));
    }
}
