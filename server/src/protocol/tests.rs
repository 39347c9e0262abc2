//! Goal: the messages on the wire stay as documented. Method: compare texts byte by byte.

use expect_test::expect;
use serde_json::json;

use super::*;

fn line(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap()
}

#[test]
fn a_request_needs_only_its_id_and_command() {
    let request: Request = serde_json::from_str(r#"{"id":1,"command":"status"}"#).unwrap();
    assert_eq!(request.args, Value::Null);
    assert_eq!(request.session, None);
    expect![[r#"{"id":1,"command":"status"}"#]].assert_eq(&line(&request));
}

#[test]
fn a_misspelt_field_of_a_request_is_refused() {
    let wrong = r#"{"id":1,"command":"status","arg":{}}"#;
    let error = serde_json::from_str::<Request>(wrong).unwrap_err();
    assert!(error.to_string().contains("unknown field `arg`"), "{error}");
}

#[test]
fn a_success_has_no_error_and_a_failure_no_result() {
    expect![[r#"{"id":7,"success":true,"result":{"a":1}}"#]]
        .assert_eq(&line(&Response::of(7, Ok(json!({"a": 1})))));
    let mut failure = Failure::new(Code::InvalidLine, "no code at a.c:3").hint("use line 4");
    failure.details.valid_lines = vec![1, 4];
    expect![[r#"{"id":7,"success":false,"error":{"code":"INVALID_LINE","message":"no code at a.c:3","hint":"use line 4","details":{"valid_lines":[1,4]}}}"#]]
        .assert_eq(&line(&Response::of(7, Err(failure))));
}

#[test]
fn a_notice_is_no_answer() {
    let notice = Notice::new(NoticeKind::Progress, "reading".to_owned());
    let text = line(&Response::notice(7, notice));
    expect![[r#"{"id":7,"notice":{"kind":"progress","text":"reading"}}"#]].assert_eq(&text);
    let read: Response = serde_json::from_str(&text).unwrap();
    assert_eq!(read.success, None);
}

#[test]
fn a_warning_has_its_next_step_apart() {
    let warning = Diagnostic::new("the disk is full").with_hint("delete files");
    let notice = Notice::warning(warning);
    assert_eq!(notice.one_line(), "the disk is full; delete files");
    let text = line(&Response::notice(7, notice));
    expect![[
        r#"{"id":7,"notice":{"kind":"warning","text":"the disk is full","hint":"delete files"}}"#
    ]]
    .assert_eq(&text);
}

#[test]
fn codes_are_the_documented_words() {
    // A code's word is the variant's name in capitals, with an underscore at each word boundary.
    let source = include_str!("../protocol.rs");
    let (_, body) = source.split_once("pub enum Code {").unwrap();
    let (body, _) = body.split_once('}').unwrap();
    let page = include_str!("../../../docs/live.md");
    let names = body
        .lines()
        .filter_map(|line| line.trim().strip_suffix(','));
    let names: Vec<&str> = names.filter(|name| !name.starts_with('/')).collect();
    assert!(names.len() >= 24, "{names:?}");
    for name in names {
        let mut word = String::new();
        for (at, letter) in name.char_indices() {
            if at > 0 && letter.is_uppercase() {
                word.push('_');
            }
            word.push(letter.to_ascii_uppercase());
        }
        let code: Code = serde_json::from_value(json!(word)).unwrap();
        assert_eq!(format!("{code:?}"), name);
        assert_eq!(line(&code), format!("\"{word}\""));
        assert!(
            page.contains(&format!("`{word}`")),
            "{word} is not in docs/live.md"
        );
    }
}
