//! Goal: IN, ANY and ALL know true, false and unknown; joins that would lose a shared column are refused; percentiles are exact from both
//! ends. Method: questions about a few written rows.

mod common;

use common::{Asked, shop};

const ROWS: &str = "WITH t(x, k) AS (VALUES (1, 1), (2, 1), (NULL, 2)), s(y, k) AS (VALUES (2, 1), (NULL, 2)), \
                    n(x) AS (VALUES (1), (2), (3)), e(y) AS (SELECT y FROM s WHERE y = 5)";

/// Asks each question about the rows, and compares its lines.
fn answers(questions: &[(&str, &[&str])]) {
    let asked = Asked::new(|path| shop().record(path));
    for (question, expected) in questions {
        let found = asked.ask(&format!("{ROWS} {question}"));
        let found: Vec<_> = found.lines().collect();
        assert_eq!(&found, expected, "{question}");
    }
}

/// Asks each question about the rows, and compares the message and the hint.
fn refusals(questions: &[(&str, &str, &str)]) {
    let asked = Asked::new(|path| shop().record(path));
    for (question, message, hint) in questions {
        let sql = format!("{ROWS} {question}");
        let error = asked.session.sql(&sql).map(drop).unwrap_err();
        let found = error.to_string();
        assert!(found.starts_with(message), "{question}: {found}");
        assert_eq!(error.hint().as_deref(), Some(*hint), "{question}");
    }
}

#[test]
fn in_is_unknown_where_a_null_may_be_the_value() {
    answers(&[
        (
            "SELECT x FROM t WHERE x = 99 OR x NOT IN (SELECT y FROM s)",
            &[],
        ),
        (
            "SELECT x FROM t WHERE x = 99 OR NOT (x IN (SELECT y FROM s))",
            &[],
        ),
        (
            "SELECT x FROM t WHERE NOT (x = 99 OR x IN (SELECT y FROM s))",
            &[],
        ),
        (
            "SELECT x FROM t WHERE x = 99 OR x IN (SELECT y FROM s)",
            &["2"],
        ),
        (
            "SELECT x FROM t WHERE (x IN (SELECT y FROM s)) IS NULL ORDER BY x",
            &["1", "NULL"],
        ),
        (
            "SELECT x FROM t WHERE (x IN (SELECT y FROM s)) IS NOT FALSE ORDER BY x",
            &["1", "2", "NULL"],
        ),
        (
            "SELECT x FROM t WHERE coalesce(x IN (SELECT y FROM s WHERE y = 2), true) ORDER BY x",
            &["2", "NULL"],
        ),
        (
            "SELECT x FROM t WHERE CASE WHEN x NOT IN (SELECT y FROM s) THEN false ELSE true END ORDER BY x",
            &["1", "2", "NULL"],
        ),
        (
            "SELECT x FROM t WHERE (x IN (SELECT y FROM e)) IS FALSE ORDER BY x",
            &["1", "2", "NULL"],
        ),
        ("SELECT x FROM t WHERE x NOT IN (SELECT y FROM s)", &[]),
        (
            "SELECT x FROM t WHERE x NOT IN (SELECT y FROM s WHERE y = 2)",
            &["1"],
        ),
        (
            "SELECT x FROM t GROUP BY x HAVING x = 1 OR x NOT IN (SELECT y FROM s)",
            &["1"],
        ),
    ]);
}

#[test]
fn any_and_all_compare_with_the_rows_of_the_subquery() {
    answers(&[
        ("SELECT x FROM n WHERE x >= ALL (SELECT x FROM n)", &["3"]),
        (
            "SELECT n.x FROM n WHERE n.x >= ALL (SELECT x FROM n)",
            &["3"],
        ),
        (
            "SELECT x FROM n WHERE x > ANY (SELECT x FROM n) ORDER BY x",
            &["2", "3"],
        ),
        (
            "SELECT x FROM n WHERE x < SOME (SELECT x FROM n) ORDER BY x",
            &["1", "2"],
        ),
        ("SELECT x FROM n WHERE x = ANY (SELECT y FROM s)", &["2"]),
        ("SELECT x FROM n WHERE x <> ALL (SELECT y FROM s)", &[]),
        ("SELECT x FROM n WHERE x > ALL (SELECT y FROM s)", &[]),
        (
            "SELECT x FROM n WHERE x > ALL (SELECT y FROM e) ORDER BY x",
            &["1", "2", "3"],
        ),
        (
            "SELECT x FROM n WHERE (x > ANY (SELECT y FROM s)) IS NULL ORDER BY x",
            &["1", "2"],
        ),
        (
            "SELECT x FROM n WHERE (x > ALL (SELECT y FROM s)) IS NULL",
            &["3"],
        ),
        (
            "SELECT x FROM n WHERE NOT (x > ALL (SELECT y FROM s)) ORDER BY x",
            &["1", "2"],
        ),
        ("SELECT x FROM n WHERE NOT (x = ANY (SELECT y FROM s))", &[]),
    ]);
}

#[test]
fn what_would_lose_the_unknown_is_refused() {
    const NOT_EXISTS: &str =
        "write: where not exists (select 1 from B b where b.k = a.k and (b.x = a.x) is not false)";
    const NOT_IN: &str = "NOT IN has no subquery that compares with the question around it, for a null in it would decide about all rows";
    const EXISTS: &str = "write it with EXISTS: exists (select 1 from B b where b.k = a.k and a.x > b.x); \
         for NOT IN: not exists (select 1 from B b where b.k = a.k and (b.x = a.x) is not false)";
    const NO_PLAN: &str = "IN, ANY and ALL have no plan here that tells unknown from false";
    const COLUMN: &str = "to have the answer as a column, compare with an aggregate: select a.x >= (select max(b.x) from B b) from A a";
    refusals(&[
        (
            "SELECT x FROM t WHERE x NOT IN (SELECT y FROM s WHERE s.k < t.k)",
            NOT_IN,
            NOT_EXISTS,
        ),
        (
            "SELECT x FROM t WHERE x NOT IN (SELECT y FROM s WHERE s.k = t.k)",
            NOT_IN,
            NOT_EXISTS,
        ),
        (
            "SELECT t.x FROM t JOIN s ON x = 1 OR x NOT IN (SELECT y FROM s)",
            NO_PLAN,
            EXISTS,
        ),
        (
            "SELECT x FROM t WHERE x > ANY (SELECT y FROM s WHERE s.k = t.k)",
            NO_PLAN,
            EXISTS,
        ),
        (
            "SELECT max(x) FROM n HAVING max(x) >= ALL (SELECT x FROM n)",
            NO_PLAN,
            EXISTS,
        ),
        (
            "SELECT x > ANY (SELECT y FROM s) AS v FROM t",
            "ANY and ALL with a subquery stand in WHERE or HAVING",
            COLUMN,
        ),
        (
            "SELECT x = ANY (SELECT 2) AS v FROM t",
            "ANY and ALL with a subquery stand in WHERE or HAVING",
            COLUMN,
        ),
    ]);
    // What the hint says.
    answers(&[(
        "SELECT x FROM t WHERE NOT EXISTS (SELECT 1 FROM s WHERE s.k = t.k AND (s.y = t.x) IS NOT FALSE)",
        &["1"],
    )]);
}

#[test]
fn joins_that_would_lose_a_shared_column_are_refused() {
    const NO_USING: &str = "RIGHT and FULL JOIN have no USING and no NATURAL in this SQL";
    const ON: &str = "write: select coalesce(a.k, b.k) k from A a full join B b on a.k = b.k";
    const NO_STAR: &str = "SELECT * has no LEFT JOIN with USING or NATURAL in this SQL";
    const NAMES: &str = "name the columns: select a.*, b.x from A a left join B b using (k)";
    refusals(&[
        ("SELECT k FROM t RIGHT JOIN s USING (k)", NO_USING, ON),
        ("SELECT k FROM t FULL OUTER JOIN s USING (k)", NO_USING, ON),
        ("SELECT k FROM t NATURAL FULL JOIN s", NO_USING, ON),
        (
            "SELECT 1 FROM n JOIN (t RIGHT JOIN s USING (k)) ON true",
            NO_USING,
            ON,
        ),
        ("SELECT * FROM t LEFT JOIN s USING (k)", NO_STAR, NAMES),
        ("SELECT * FROM t NATURAL LEFT JOIN s", NO_STAR, NAMES),
    ]);
    answers(&[
        (
            "SELECT t.*, y FROM t LEFT JOIN s USING (k) ORDER BY x",
            &["1 | 1 | 2", "2 | 1 | 2", "NULL | 2 | NULL"],
        ),
        (
            "SELECT coalesce(n.x, t.k) FROM n FULL JOIN t ON n.x = t.k AND t.x = 1 WHERE t.k = 2",
            &["2"],
        ),
        (
            "SELECT x, k, y FROM t JOIN s USING (k) WHERE x = 1",
            &["1 | 1 | 2"],
        ),
    ]);
}

#[test]
fn percentiles_are_exact_from_both_ends() {
    answers(&[
        (
            "SELECT percentile_cont(0.9) WITHIN GROUP (ORDER BY v DESC) AS a, quantile_cont(0.9) WITHIN GROUP (ORDER BY v DESC) AS b, \
             percentile_cont(0.1) WITHIN GROUP (ORDER BY v) AS c \
             FROM (VALUES (1.0), (1.1), (2.0), (2.0), (5.0), (7.3)) AS p(v)",
            &["1.05 | 1.05 | 1.05"],
        ),
        (
            "SELECT percentile_cont(1) WITHIN GROUP (ORDER BY v DESC), percentile_cont(0) WITHIN GROUP (ORDER BY v DESC) \
             FROM (VALUES (1.0), (3.0)) AS p(v)",
            &["1.0 | 3.0"],
        ),
    ]);
}
