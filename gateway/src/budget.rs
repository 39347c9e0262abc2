//! Makes answers fit a model's window: what does not fit is counted, and the answer says how to get it.
//!
//! Tokens are estimated from above, without a tokenizer: each model has its own, and their vocabularies are megabytes.

use serde_json::{Map, Value};

use crate::answer::{Answer, List};

/// The default budget of an answer, in tokens.
pub const DEFAULT: usize = 2_000;
/// No answer has more tokens.
pub const LIMIT: usize = 10_000;
/// The tokens of an error.
pub const OF_FAILURES: usize = 500;
/// No budget is smaller: an answer must have room to say what was left out.
pub const LEAST: usize = 100;
/// The tokens for the cursor and the count of omitted entries.
const RESERVE: usize = 40;
/// Texts of this many characters or fewer are never cut.
const SHORTEST: usize = 60;

/// Estimates the tokens of a text from above.
pub fn tokens(text: &str) -> usize {
    let mut count = 0;
    let mut chars = text.chars().peekable();
    while let Some(char) = chars.next() {
        let mut length: usize = 1;
        let mut run = |belongs: fn(&char) -> bool| {
            while chars.next_if(belongs).is_some() {
                length += 1;
            }
            length
        };
        count += match char {
            'a'..='z' | 'A'..='Z' => {
                // A word begins at a capital letter, as in tokenizers.
                run(char::is_ascii_lowercase).div_ceil(4)
            }
            '0'..='9' => run(char::is_ascii_digit).div_ceil(3),
            // One blank belongs to the word that follows.
            ' ' => usize::from(run(|char| *char == ' ') > 1),
            '\n' => 1,
            _ if char.is_ascii() => 1,
            _ => 2,
        };
    }
    count
}

/// Writes an answer within `budget` tokens. Skips `cursor` entries or lines: the caller has seen them.
pub fn fit(answer: Answer, budget: usize, cursor: usize) -> String {
    let budget = budget.clamp(LEAST, LIMIT);
    match answer {
        Answer::Object(fields) => shortened(Value::Object(fields), budget).to_string(),
        Answer::List(list) => fit_list(list, budget, cursor),
        Answer::Text(text) => fit_text(&text, budget, cursor),
    }
}

fn fit_list(list: List, budget: usize, cursor: usize) -> String {
    let List {
        mut head,
        name,
        items,
        first,
        total,
    } = list;
    let seen = cursor.saturating_sub(first).min(items.len());
    let had = items.len();
    let room = budget.saturating_sub(RESERVE);
    let mut left = room.saturating_sub(tokens(&Value::Object(head.clone()).to_string()));
    let mut shown = Vec::new();
    for item in items.into_iter().skip(seen) {
        let mut item = item;
        let mut size = tokens(&item.to_string()) + 1;
        if size > left && shown.is_empty() {
            item = shortened(item, left);
            size = left;
        }
        if size > left {
            break;
        }
        left -= size;
        shown.push(item);
    }
    let next = first + seen + shown.len();
    let rest = match total {
        Some(total) => Some(total.saturating_sub(next)),
        None if next < first + had => None,
        None => Some(0),
    };
    head.insert(name.to_owned(), Value::Array(shown));
    if rest != Some(0) {
        let rest = rest.map_or_else(|| Value::from("not counted"), Value::from);
        head.insert("leftOut".to_owned(), rest);
        head.insert("cursor".to_owned(), Value::from(next.to_string()));
    }
    Value::Object(head).to_string()
}

fn fit_text(text: &str, budget: usize, cursor: usize) -> String {
    let lines: Vec<&str> = text.lines().skip(cursor).collect();
    let room = budget.saturating_sub(RESERVE);
    let mut left = room;
    let mut shown = String::new();
    let mut count = 0;
    for line in &lines {
        let size = tokens(line) + 1;
        if size > left {
            if count == 0 {
                shown = cut(line, room * 2);
                count = 1;
            }
            break;
        }
        left -= size;
        shown.push_str(line);
        shown.push('\n');
        count += 1;
    }
    let rest = lines.len() - count;
    if rest > 0 {
        let next = cursor + count;
        let end = format!("({rest} more lines: call again with cursor \"{next}\")\n");
        shown.push_str(&end);
    }
    shown
}

/// Cuts the longest texts of a value until it fits.
fn shortened(mut value: Value, budget: usize) -> Value {
    let mut longest = 4_000;
    while longest > SHORTEST && tokens(&value.to_string()) > budget {
        cut_texts(&mut value, longest);
        longest /= 2;
    }
    if tokens(&value.to_string()) <= budget {
        return value;
    }
    let mut fields = Map::new();
    let note = "this does not fit the budget: ask for less, or with a larger budget";
    fields.insert("leftOut".to_owned(), Value::from(note));
    Value::Object(fields)
}

fn cut_texts(value: &mut Value, longest: usize) {
    match value {
        Value::String(text) if text.len() > longest => *text = cut(text, longest),
        Value::Array(items) => items.iter_mut().for_each(|item| cut_texts(item, longest)),
        Value::Object(fields) => fields
            .values_mut()
            .for_each(|field| cut_texts(field, longest)),
        _ => {}
    }
}

/// Cuts a text to about `longest` bytes, and says how much that was.
fn cut(text: &str, longest: usize) -> String {
    let kept = text.floor_char_boundary(longest);
    let rest = text[kept..].chars().count();
    match rest {
        0 => text.to_owned(),
        _ => format!("{}... ({rest} more characters)", &text[..kept]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn numbered(count: usize) -> Answer {
        let items = (0..count).map(|n| json!({"seq": n, "function": "cache::get"}));
        Answer::List(List::whole("events", items.collect()).with("sessionId", 1))
    }

    #[test]
    fn a_short_list_is_whole() {
        assert_eq!(
            fit(numbered(2), 200, 0),
            r#"{"events":[{"function":"cache::get","seq":0},{"function":"cache::get","seq":1}],"sessionId":1}"#
        );
    }

    #[test]
    fn the_cursor_leads_through_a_long_list() {
        let (mut cursor, mut seen) = (0, Vec::new());
        for _ in 0..100 {
            let page = fit(numbered(100), 150, cursor);
            assert!(tokens(&page) <= 150, "{page}");
            let page: Value = serde_json::from_str(&page).unwrap();
            let events = page["events"].as_array().unwrap();
            seen.extend(events.iter().map(|event| event["seq"].as_u64().unwrap()));
            let Some(next) = page["cursor"].as_str() else {
                break;
            };
            assert_eq!(page["leftOut"], 100 - seen.len());
            cursor = next.parse().unwrap();
        }
        assert_eq!(seen, (0..100).collect::<Vec<u64>>());
    }

    #[test]
    fn an_entry_that_is_too_long_is_cut_and_not_left_out() {
        let list = List::whole("rows", vec![json!({"text": "word ".repeat(9_000)})]);
        let page = fit(Answer::List(list), 300, 0);
        assert!(page.contains("more characters"), "{page}");
        assert!(tokens(&page) <= 300);
    }

    proptest! {
        #[test]
        fn no_text_exceeds_its_budget(text in "(\\PC{0,200}\n){0,60}", budget in LEAST..3_000_usize) {
            let shown = fit(Answer::Text(text), budget, 0);
            prop_assert!(tokens(&shown) <= budget * 2, "{} of {budget}", tokens(&shown));
        }

        #[test]
        fn no_list_exceeds_its_budget(
            texts in proptest::collection::vec("\\PC{0,300}", 0..60),
            budget in LEAST..3_000_usize,
        ) {
            let list = List::whole("rows", texts.into_iter().map(Value::from).collect());
            let shown = fit(Answer::List(list), budget, 0);
            prop_assert!(tokens(&shown) <= budget, "{} of {budget}", tokens(&shown));
        }
    }
}
