//! Finds the subqueries of a query, and explains why one of them has no plan.
//!
//! It reads words, not meanings: it decides which rule a query breaks only after planning has failed.

use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer};
use debuginfo::Diagnostic;

use super::aliases;
use super::place::{self, Excerpt};
use super::unknown;

/// The rule for correlated subqueries.
const BY_EQUALITY: &str = "a subquery that compares with the question around it stands in SELECT or WHERE, does so by = alone, and has no LIMIT";
/// The replacement for one that breaks the rule.
const INSTEAD: &str = "for LIMIT 1 write an aggregate: first_value(x order by y); \
     for <, > and others a join: select a.seq, count(*) from A a left join B b on b.x < a.x group by a.seq";
/// Functions of many rows.
const AGGREGATES: [&str; 12] = [
    "array_agg",
    "avg",
    "count",
    "first_value",
    "last_value",
    "max",
    "median",
    "min",
    "stddev",
    "string_agg",
    "sum",
    "var",
];

/// Where an expression stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Clause {
    Select,
    From,
    On,
    Where,
    Group,
    Having,
    Order,
}

impl Clause {
    fn of(word: &str) -> Option<Clause> {
        Some(match word {
            "select" => Clause::Select,
            "from" | "join" => Clause::From,
            "on" => Clause::On,
            "where" => Clause::Where,
            "group" => Clause::Group,
            "having" => Clause::Having,
            "order" => Clause::Order,
            _ => return None,
        })
    }
}

/// What a subquery is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// The whole question.
    Whole,
    /// EXISTS (...), or IN (...).
    Test,
    /// A table in FROM.
    Table,
    /// A value.
    Value,
}

/// A subquery, or the whole question.
#[derive(Debug)]
struct Subquery {
    kind: Kind,
    /// Where it stands in the query around it.
    clause: Clause,
    /// It is an argument of an aggregate.
    is_aggregated: bool,
    /// It has a LIMIT or OFFSET.
    is_limited: bool,
    /// The word that joins its parts: UNION, EXCEPT or INTERSECT.
    joined_by: Option<&'static str>,
    /// The query around it, by its place in the list.
    around: Option<usize>,
    /// Its own tokens, without those of the subqueries in it.
    own: Vec<usize>,
}

/// Parentheses, open at a token.
#[derive(Clone, Copy)]
struct Open {
    subquery: usize,
    clause: Clause,
    is_aggregated: bool,
}

/// The subqueries of a question.
pub struct Subqueries {
    tokens: Vec<TokenWithSpan>,
    all: Vec<Subquery>,
}

impl Subqueries {
    /// Finds them; none if the question is no list of words.
    pub fn of(sql: &str) -> Subqueries {
        let tokens = Tokenizer::new(&GenericDialect {}, sql).tokenize_with_location();
        let mut tokens = tokens.unwrap_or_default();
        tokens.retain(|token| !matches!(token.token, Token::Whitespace(_)));
        let mut found = Subqueries {
            tokens,
            all: Vec::new(),
        };
        found.read();
        found
    }

    fn word(&self, at: usize) -> String {
        match self.tokens.get(at).map(|token| &token.token) {
            Some(Token::Word(word)) => word.value.to_lowercase(),
            _ => String::new(),
        }
    }

    fn read(&mut self) {
        let whole = Open {
            subquery: 0,
            clause: Clause::Select,
            is_aggregated: false,
        };
        self.all = vec![Subquery::new(Kind::Whole, &whole, None)];
        let mut open = vec![whole];
        for at in 0..self.tokens.len() {
            let now = *open.last().unwrap_or(&whole);
            match self.tokens[at].token {
                Token::LParen => {
                    open.push(match self.word(at + 1).as_str() {
                        "select" | "with" => self.entered(at, now),
                        _ => Open {
                            is_aggregated: now.is_aggregated || self.is_aggregate(at),
                            ..now
                        },
                    });
                    continue;
                }
                Token::RParen if open.len() > 1 => drop(open.pop()),
                _ => {
                    let clause = self.one_word(at, now.subquery);
                    if let (Some(now), Some(clause)) = (open.last_mut(), clause) {
                        now.clause = clause;
                    }
                }
            }
            let now = open.last().unwrap_or(&whole);
            self.all[now.subquery].own.push(at);
        }
    }

    /// Takes what a word tells about its query. Returns the clause that it begins, if it does.
    fn one_word(&mut self, at: usize, subquery: usize) -> Option<Clause> {
        let word = self.word(at);
        let subquery = &mut self.all[subquery];
        subquery.is_limited |= matches!(word.as_str(), "limit" | "offset" | "fetch");
        let joins = ["UNION", "EXCEPT", "INTERSECT"];
        let joins = joins.iter().find(|known| word.eq_ignore_ascii_case(known));
        subquery.joined_by = subquery.joined_by.or(joins.copied());
        Clause::of(&word)
    }

    /// A subquery begins at a parenthesis.
    fn entered(&mut self, at: usize, around: Open) -> Open {
        let before = at.checked_sub(1).map(|before| self.word(before));
        let kind = match before.as_deref().unwrap_or_default() {
            "exists" | "in" => Kind::Test,
            _ if around.clause == Clause::From => Kind::Table,
            _ => Kind::Value,
        };
        let is_aggregated = around.is_aggregated || self.is_aggregate(at);
        let around = Open {
            is_aggregated,
            ..around
        };
        let subquery = self.all.len();
        self.all
            .push(Subquery::new(kind, &around, Some(around.subquery)));
        Open {
            subquery,
            clause: Clause::Select,
            is_aggregated: false,
        }
    }

    /// Returns whether the arguments of an aggregate begin at a parenthesis.
    fn is_aggregate(&self, at: usize) -> bool {
        let name = at.checked_sub(1).map(|before| self.word(before));
        name.is_some_and(|name| AGGREGATES.contains(&name.as_str()))
    }

    /// Returns whether a query names a table so, itself or by an alias.
    fn names(&self, subquery: usize, name: &str) -> bool {
        let own = &self.all[subquery].own;
        let is_from = |at: usize| match &self.tokens[at].token {
            Token::Comma => true,
            _ => matches!(self.word(at).as_str(), "from" | "join"),
        };
        let is_alone = own
            .windows(2)
            .any(|pair| is_from(pair[0]) && self.word(pair[1]) == name);
        let own: Vec<Token> = own
            .iter()
            .map(|at| self.tokens[*at].token.clone())
            .collect();
        is_alone || aliases::table_among(&own, name).is_some()
    }

    /// How many queries further out the table is that a column's name at a token mentions: 0 for one of the query itself; `None` if no
    /// query names it.
    fn distance(&self, subquery: usize, name: &str) -> Option<usize> {
        let around = std::iter::successors(Some(subquery), |at| self.all[*at].around);
        around.into_iter().position(|at| self.names(at, name))
    }

    /// The places of `name.` in a query's own words, with the names before the point.
    fn qualified(&self, subquery: usize) -> impl Iterator<Item = (usize, String)> {
        let own = self.all[subquery].own.windows(3);
        let is_point = |at: usize| self.tokens[at].token == Token::Period;
        own.filter(move |three| is_point(three[1]))
            .map(|three| (three[2], self.word(three[0])))
    }

    /// Returns whether a subquery compares with the question around it, as far as its words tell.
    fn is_correlated(&self, subquery: usize) -> bool {
        self.qualified(subquery)
            .any(|(_, name)| self.distance(subquery, &name) > Some(0))
    }

    /// Returns the place of `table.column` in a subquery that lies two levels further in than the table.
    pub fn too_far_in(&self, table: &str, column: &str) -> Option<Excerpt> {
        (0..self.all.len()).find_map(|subquery| {
            let mut names = self.qualified(subquery);
            let (at, _) = names.find(|(at, name)| {
                *name == table.to_lowercase()
                    && self.word(*at) == column.to_lowercase()
                    && self.distance(subquery, name) >= Some(2)
            })?;
            Some(place::of_token(&self.tokens[at]))
        })
    }

    /// Those that planning may have failed for: the ones that compare with the question around them, if their words tell.
    fn suspects(&self) -> Vec<&Subquery> {
        let inner = 1..self.all.len();
        let correlated: Vec<_> = inner.clone().filter(|at| self.is_correlated(*at)).collect();
        let suspects = match correlated.is_empty() {
            true => inner.collect(),
            false => correlated,
        };
        suspects.into_iter().map(|at| &self.all[at]).collect()
    }
}

impl Subquery {
    fn new(kind: Kind, at: &Open, around: Option<usize>) -> Subquery {
        Subquery {
            kind,
            clause: at.clause,
            is_aggregated: at.is_aggregated,
            is_limited: false,
            joined_by: None,
            around,
            own: Vec::new(),
        }
    }
}

fn advised(message: impl Into<String>, hint: &str) -> Diagnostic {
    Diagnostic::new(message).with_hint(hint)
}

/// Explains a message about a subquery; `None` if it is about something else.
pub fn of_message(sql: &str, message: &str) -> Option<Diagnostic> {
    // DataFusion's own words are about an = between both questions.
    if message.contains(unknown::NOT_IN) || message.contains("null_aware anti join") {
        return Some(advised(unknown::NOT_IN, unknown::NOT_EXISTS));
    }
    if message.contains("scalar subquery must be aggregated") {
        return Some(joined(sql).unwrap_or_else(|| {
            advised(
                "a subquery that compares with the question around it must have one row, which only an aggregate ensures",
                "write max(x) for x, or a join: select a.start_seq, p.function from calls a left join calls p on p.start_seq = a.parent",
            )
        }));
    }
    if message.contains("GROUP BY clause in a scalar correlated subquery") {
        return Some(advised(
            "a subquery that compares with the question around it has one row: its GROUP BY names only what it compares by =",
            "write a join: select a.seq, b.n from A a left join (select x, count(*) n from B group by x) b on b.x = a.x",
        ));
    }
    if message.contains("scalar subquery can only be used in Projection") {
        return Some(no_plan(sql));
    }
    let (_, what) = message.split_once("Physical plan does not support logical expression ")?;
    let starts = |names: &[&str]| names.iter().any(|name| what.starts_with(name));
    if starts(&["Exists", "InSubquery"]) {
        return Some(no_plan_of_test(sql));
    }
    starts(&["ScalarSubquery", "OuterReferenceColumn"]).then(|| no_plan(sql))
}

/// Says which rule a query breaks whose subquery has no plan.
pub fn no_plan(sql: &str) -> Diagnostic {
    misplaced(sql)
        .or_else(|| joined(sql))
        .unwrap_or_else(|| advised(BY_EQUALITY, INSTEAD))
}

/// The same for EXISTS and IN.
fn no_plan_of_test(sql: &str) -> Diagnostic {
    let found = Subqueries::of(sql);
    let suspects = found.suspects();
    let mut tests = suspects.iter().filter(|own| own.kind == Kind::Test);
    let is_placed = |own: &&&Subquery| matches!(own.clause, Clause::Where | Clause::On);
    if tests.any(|own| !is_placed(&own)) {
        return advised(
            "EXISTS and IN with a subquery stand in WHERE",
            "to have the answer as a column, join with the subquery and ask whether its column is null: \
             select a.seq, b.x is not null from A a left join (select distinct x from B) b on b.x = a.x",
        );
    }
    let mut tests = suspects.iter().filter(|own| own.kind == Kind::Test);
    if tests.any(|own| own.is_limited) {
        return advised(
            "a subquery of EXISTS or IN that compares with the question around it has no LIMIT and no OFFSET",
            "leave it out: EXISTS and IN ask whether there is a row, and stop at the first",
        );
    }
    no_plan(sql)
}

/// A subquery that compares stands where it cannot.
fn misplaced(sql: &str) -> Option<Diagnostic> {
    let found = Subqueries::of(sql);
    let suspects = found.suspects();
    let mut values = suspects.into_iter().filter(|own| own.kind != Kind::Table);
    let (clause, hint) = values.find_map(|own| match own.clause {
        _ if own.is_aggregated => Some((
            "an aggregate",
            "first name it: select sum(s.n) from (select (select count(*) from B b where b.x = a.x) n from A a) s",
        )),
        Clause::Order => Some((
            "ORDER BY",
            "to sort by it, name it in SELECT and write that name: \
             select a.seq, (select count(*) from B b where b.x = a.x) n from A a order by n",
        )),
        Clause::On => Some((
            "ON",
            "ask for it in WHERE: from A a join C c on c.y = a.y where c.x = (select min(b.x) from B b where b.y = c.y)",
        )),
        Clause::Group | Clause::Having => Some((
            "GROUP BY or HAVING",
            "first name it: select s.n, count(*) from (select (select count(*) from B b where b.x = a.x) n from A a) s group by s.n",
        )),
        Clause::Select | Clause::From | Clause::Where => None,
    })?;
    let what = "a subquery that compares with the question around it stands in SELECT or WHERE";
    Some(advised(format!("{what}, not in {clause}"), hint))
}

/// A subquery that compares has several parts.
fn joined(sql: &str) -> Option<Diagnostic> {
    let found = Subqueries::of(sql);
    let suspects = found.suspects();
    let (by, kind) = suspects
        .into_iter()
        .find_map(|own| Some((own.joined_by?, own.kind)))?;
    let hint = match (kind, by) {
        (Kind::Test, "UNION") => "write two subqueries, with OR between them",
        (Kind::Test, "EXCEPT") => "write two subqueries, with AND NOT between them",
        (Kind::Test, _) => "write two subqueries, with AND between them",
        _ => {
            "write two subqueries, and choose or add their values: coalesce(a, b), greatest(a, b), a + b"
        }
    };
    let what = "a subquery that compares with the question around it has no";
    Some(advised(format!("{what} {by}"), hint))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subqueries_are_told_by_where_they_stand() {
        let sql = "select sum((select 1 from b where b.x = a.x)), coalesce((select 2), 0) from t a join u on u.y in (select 3) \
                   where exists (select 4 from v, w as z where z.q = v.r limit 1) order by (select 5 union select a.y)";
        let found = Subqueries::of(sql);
        let told: Vec<_> = found.all[1..]
            .iter()
            .map(|own| (own.kind, own.clause, own.is_aggregated))
            .collect();
        let expected = [
            (Kind::Value, Clause::Select, true),
            (Kind::Value, Clause::Select, false),
            (Kind::Test, Clause::On, false),
            (Kind::Test, Clause::Where, false),
            (Kind::Value, Clause::Order, false),
        ];
        assert_eq!(told, expected);
        let correlated: Vec<bool> = (1..6).map(|at| found.is_correlated(at)).collect();
        assert_eq!(correlated, [true, false, false, false, true]);
        assert!(found.all[4].is_limited && !found.all[1].is_limited);
        assert_eq!(found.all[5].joined_by, Some("UNION"));
    }

    #[test]
    fn a_table_two_levels_out_is_too_far() {
        let sql = "select a.x from t a where exists (select 1 from b where b.x = a.x and exists \
                   (select 1 from c where c.x = a.x))";
        let found = Subqueries::of(sql);
        assert_eq!(found.too_far_in("b", "x"), None);
        let place = found.too_far_in("a", "x").map(|place| place.column);
        assert_eq!(place, sql.rfind("x))").map(|at| at + 1));
    }
}
