//! Goal: the documentation of tables and columns, and the words that a prompt completes, are those that SQL knows.
//! Method: compare them with the columns of answers.

mod common;

use common::{Asked, shop};
use query::{TABLES, complete};

#[test]
fn each_column_is_documented_in_its_place() {
    let asked = Asked::new(|path| shop().record(path));
    let mut of_every_instruction = Vec::new();
    for table in TABLES {
        let answer = asked.session.sql(&format!("SELECT * FROM {}", table.name));
        let answer = match answer {
            // Tests of whole programs query these: this recording has only calls.
            Err(error) if error.to_string().contains("every instruction") => {
                of_every_instruction.push(table.name);
                continue;
            }
            answer => answer.unwrap(),
        };
        let fields = answer.schema().fields().iter();
        let found: Vec<_> = fields.map(|field| field.name().as_str()).collect();
        let documented: Vec<_> = table.columns.iter().map(|(name, _)| *name).collect();
        assert_eq!(found, documented, "{}", table.name);
        assert!(
            table.columns.iter().all(|(_, doc)| !doc.is_empty()),
            "{}",
            table.name
        );
    }
    let theirs = ["instructions", "lines", "memory_writes", "memory_reads"];
    assert_eq!(of_every_instruction, theirs);
}

#[test]
fn completion_knows_functions_and_keywords() {
    let asked = Asked::new(|path| shop().record(path));
    assert!(complete::KEYWORDS.is_sorted());
    for name in ["hex", "f64", "sum", "lag", "quantile_cont"] {
        assert!(
            asked
                .session
                .function_names()
                .iter()
                .any(|known| known == name),
            "{name}"
        );
    }
}

#[test]
fn an_error_names_what_is_wrong_and_not_who_said_it() {
    let asked = Asked::new(|path| shop().record(path));
    let sql = "SELECT count(*) FROM calls WHERE function ~ '('";
    let answer = query::finding::rows(&asked.session, sql, 1, |_| ());
    let told = answer.expect_err("no expression").to_string();
    assert!(told.starts_with("regex parse error:"), "{told}");
    assert!(told.ends_with("unclosed group"), "{told}");
}
