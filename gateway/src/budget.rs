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

/// How far the caller has read an answer: entries or lines, and characters of the line after them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cursor {
    /// Entries or lines.
    pub entries: usize,
    /// Characters of the next line.
    pub inside: usize,
}

impl From<usize> for Cursor {
    fn from(entries: usize) -> Cursor {
        Cursor { entries, inside: 0 }
    }
}

impl Cursor {
    /// Reads a cursor as answers give it: `12`, or `12+900` inside a line.
    pub fn read(text: &str) -> Option<Cursor> {
        let (entries, inside) = text.split_once('+').unwrap_or((text, "0"));
        Some(Cursor {
            entries: entries.parse().ok()?,
            inside: inside.parse().ok()?,
        })
    }
}

/// Estimates the tokens of a text from above. No tokenizer makes more tokens than a text has bytes; letters, digits and blanks are put
/// together. The figures were compared with o200k on source code, prose, random letters of several kinds, base64 and hexadecimal.
pub fn tokens(text: &str) -> usize {
    let mut count = 0;
    let mut chars = text.chars().peekable();
    while let Some(char) = chars.next() {
        let mut length: usize = 1;
        count += match char {
            'a'..='z' | 'A'..='Z' => {
                // A word begins at a capital letter, as in tokenizers.
                let mut word = Word::begin(char);
                while let Some(next) = chars.next_if(char::is_ascii_lowercase) {
                    word.add(next);
                }
                word.tokens()
            }
            '0'..='9' => {
                while chars.next_if(char::is_ascii_digit).is_some() {
                    length += 1;
                }
                length.div_ceil(3)
            }
            ' ' => {
                while chars.next_if_eq(&' ').is_some() {
                    length += 1;
                }
                // One blank belongs to the word that follows.
                let is_of_word = chars
                    .peek()
                    .is_some_and(|next| next.is_ascii_graphic() && !next.is_ascii_digit());
                match length == 1 && is_of_word {
                    true => 0,
                    false => 1 + length / 16,
                }
            }
            other => other.len_utf8(),
        };
    }
    count
}

/// A word, as far as it has been read, and its cost in quarters of tokens. Four letters of a usual word are a token. What no usual word
/// has costs more: consonants without a vowel beside them, rare letters, three vowels in a row.
struct Word {
    quarters: usize,
    /// The last letter is a vowel; so is the one before it.
    vowels: (bool, bool),
    /// The last letter is a consonant after another one: it costs more if no vowel follows.
    is_alone: bool,
}

impl Word {
    const ALONE: usize = 3;
    const RARE: usize = 3;

    fn begin(letter: char) -> Word {
        let mut word = Word {
            quarters: 0,
            vowels: (false, false),
            is_alone: false,
        };
        word.add(letter);
        word
    }

    fn add(&mut self, letter: char) {
        let letter = letter.to_ascii_lowercase();
        let is_vowel = matches!(letter, 'a' | 'e' | 'i' | 'o' | 'u' | 'y');
        self.quarters += 1;
        if self.is_alone && !is_vowel {
            self.quarters += Self::ALONE;
        }
        self.is_alone = !is_vowel && !self.vowels.0;
        let is_third = is_vowel && self.vowels == (true, true);
        self.quarters += match letter {
            _ if is_third => Self::RARE,
            'j' | 'q' | 'x' | 'z' => Self::RARE,
            'k' | 'v' | 'w' => 1,
            _ => 0,
        };
        self.vowels = (is_vowel, self.vowels.0);
    }

    fn tokens(&self) -> usize {
        let last = if self.is_alone { Self::ALONE } else { 0 };
        (self.quarters + last).div_ceil(4)
    }
}

/// Writes an answer within `budget` tokens. Skips `cursor` entries or lines: the caller has seen them.
pub fn fit(answer: Answer, budget: usize, cursor: impl Into<Cursor>) -> String {
    let cursor = cursor.into();
    let budget = budget.clamp(LEAST, LIMIT);
    match answer {
        Answer::Object(fields) => {
            let way = |size: usize| match size <= LIMIT {
                true => format!("{size} tokens: budget {size} shows it"),
                false => too_long(size),
            };
            shortened(Value::Object(fields), budget, way).to_string()
        }
        Answer::List(list) => fit_list(list, budget, cursor.entries),
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
    let whole_head = tokens(&Value::Object(head.clone()).to_string());
    // These fields get at most half of the room.
    let of_head = |size: usize| with_budget(size, 2 * size, "");
    if let Value::Object(short) = shortened(Value::Object(head.clone()), room / 2, of_head) {
        head = short;
    }
    let mut left = room.saturating_sub(tokens(&Value::Object(head.clone()).to_string()));
    let mut shown = Vec::new();
    for item in items.into_iter().skip(seen) {
        let mut item = item;
        let mut size = tokens(&item.to_string()) + 1;
        if size > left && shown.is_empty() {
            let number = first + seen;
            let way = |size: usize| {
                let room = size + 1 + whole_head.min(size + 1);
                with_budget(size, room, &format!("cursor '{number}' with "))
            };
            item = shortened(item, left, way);
            size = left;
        }
        if size > left {
            break;
        }
        left -= size;
        shown.push(item);
    }
    let next = first + seen + shown.len();
    let is_beyond = shown.is_empty() && cursor > 0;
    head.insert(name.to_owned(), Value::Array(shown));
    // Of a list without a total, there is more than was computed.
    let rest = match total {
        Some(total) => Value::from(total.saturating_sub(next)),
        None => Value::from(format!("more than {}", first + had - next)),
    };
    if rest != 0 {
        head.insert("leftOut".to_owned(), rest);
        head.insert("cursor".to_owned(), Value::from(next.to_string()));
    } else if is_beyond {
        let nothing = format!("nothing is left at cursor {cursor}");
        head.insert("leftOut".to_owned(), Value::from(nothing));
    }
    Value::Object(head).to_string()
}

/// Says which budget shows what has `size` tokens, and needs so much `room` without the cursor.
fn with_budget(size: usize, room: usize, call: &str) -> String {
    match (room + RESERVE).max(LEAST) {
        budget if budget <= LIMIT => format!("{size} tokens: {call}budget {budget} shows it"),
        _ => too_long(size),
    }
}

fn too_long(size: usize) -> String {
    format!("{size} tokens, and no result has more than {LIMIT}: ask for less of it")
}

fn fit_text(text: &str, budget: usize, cursor: Cursor) -> String {
    let mut lines: Vec<&str> = text.lines().skip(cursor.entries).collect();
    if lines.is_empty() && cursor.entries > 0 {
        let all = text.lines().count();
        let beyond = cursor.entries;
        return format!("(nothing is left at cursor \"{beyond}\": the text has {all} lines)\n");
    }
    if let Some(first) = lines.first_mut() {
        *first = &first[at_char(first, cursor.inside)..];
    }
    let room = budget.saturating_sub(RESERVE);
    let mut left = room;
    let mut shown = String::new();
    for (count, line) in lines.iter().enumerate() {
        let size = tokens(line) + 1;
        if size <= left {
            left -= size;
            shown.push_str(line);
            shown.push('\n');
            continue;
        }
        let next = cursor.entries + count;
        let rest = lines.len() - count;
        let end = match count {
            0 => {
                let kept = prefix(line, room);
                shown.push_str(kept);
                let more = line[kept.len()..].chars().count();
                let inside = kept.chars().count() + cursor.inside;
                format!(
                    "\n({more} more characters of this line, {} more lines: call again with cursor \"{next}+{inside}\")\n",
                    rest - 1
                )
            }
            _ => format!("({rest} more lines: call again with cursor \"{next}\")\n"),
        };
        shown.push_str(&end);
        break;
    }
    shown
}

/// Returns the index of a character of a text, or the end of the text.
fn at_char(text: &str, number: usize) -> usize {
    text.char_indices()
        .nth(number)
        .map_or(text.len(), |(at, _)| at)
}

/// Returns the beginning of a text that has at most `room` tokens, and at least one character.
fn prefix(text: &str, room: usize) -> &str {
    let (mut fits, mut exceeds) = (0, text.len() + 1);
    while exceeds - fits > 1 {
        let middle = text.floor_char_boundary(fits.midpoint(exceeds));
        if middle <= fits {
            break;
        }
        match tokens(&text[..middle]) <= room {
            true => fits = middle,
            false => exceeds = middle,
        }
    }
    &text[..fits.max(at_char(text, 1))]
}

/// Cuts the longest texts of a value until it fits. If even its shortest form does not, `way` says how to see it, from the tokens of
/// that form.
fn shortened(mut value: Value, budget: usize, way: impl FnOnce(usize) -> String) -> Value {
    let whole = value.clone();
    let mut longest = 4_000;
    while longest > SHORTEST && tokens(&value.to_string()) > budget {
        // Each time from the whole: the number of characters that are missing is part of a text that was cut.
        value.clone_from(&whole);
        cut_texts(&mut value, longest);
        longest /= 2;
    }
    let size = tokens(&value.to_string());
    if size <= budget {
        return value;
    }
    let mut fields = Map::new();
    fields.insert("leftOut".to_owned(), Value::from(way(size)));
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
    fn a_cursor_after_the_end_says_so() {
        let text = fit(Answer::Text("one\ntwo\n".to_owned()), 500, 99_999_999);
        assert_eq!(
            text,
            "(nothing is left at cursor \"99999999\": the text has 2 lines)\n"
        );
        assert_eq!(fit(Answer::Text(String::new()), 500, 0), "");
        let list: Value = serde_json::from_str(&fit(numbered(3), 500, 7)).unwrap();
        let nothing = "nothing is left at cursor 7";
        assert_eq!(
            list,
            json!({"sessionId": 1, "events": [], "leftOut": nothing})
        );
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
        assert!(tokens(&page) <= 300);
        let page: Value = serde_json::from_str(&page).unwrap();
        let text = page["rows"][0]["text"].as_str().unwrap();
        let (kept, more) = text.rsplit_once("... (").unwrap();
        let more: usize = more
            .strip_suffix(" more characters)")
            .unwrap()
            .parse()
            .unwrap();
        assert_eq!(kept.len() + more, 45_000, "{text}");
    }

    #[test]
    fn an_entry_without_room_says_which_call_shows_it() {
        let wide = |count: usize| -> Value {
            let fields = (0..count).map(|n| (format!("column_{n}"), Value::from(n)));
            Value::Object(fields.collect())
        };
        let list = |count| {
            let items = vec![json!({"n": 1}), wide(count), json!({"n": 3})];
            Answer::List(List::whole("rows", items).with("sessionId", 1))
        };
        let page: Value = serde_json::from_str(&fit(list(200), 300, 1)).unwrap();
        let size = tokens(&wide(200).to_string());
        let note = page["rows"][0]["leftOut"].as_str().unwrap();
        let way = format!("{size} tokens: cursor '1' with budget ");
        let budget = note
            .strip_prefix(&way)
            .and_then(|rest| rest.strip_suffix(" shows it"));
        let budget = budget.unwrap_or_else(|| panic!("{note}")).parse().unwrap();
        // The cursor leads on behind it, and the call that is named shows it.
        assert_eq!(page["cursor"], "2");
        let shown: Value = serde_json::from_str(&fit(list(200), budget, 1)).unwrap();
        assert_eq!(shown["rows"][0], wide(200), "{note}");
        let page = fit(list(20_000), 300, 1);
        assert!(page.contains("ask for less of it"), "{page}");
        let Value::Object(fields) = wide(200) else {
            unreachable!("it is an object");
        };
        let whole = fit(Answer::Object(fields.clone()), 300, 0);
        let note = format!(r#"{{"leftOut":"{size} tokens: budget {size} shows it"}}"#);
        assert_eq!(whole, note);
        let whole = fit(Answer::Object(fields.clone()), size, 0);
        assert_eq!(whole, Value::Object(fields).to_string());
    }

    #[test]
    fn no_result_exceeds_the_limit_whatever_the_budget() {
        let long = "some words of prose\n".repeat(20_000);
        let texts = (0..5_000).map(|n| json!({"text": format!("entry {n} of a list")}));
        let list = List::whole("rows", texts.collect());
        let mut fields = Map::new();
        fields.insert("text".to_owned(), Value::from(long.as_str()));
        for answer in [
            Answer::Text(long),
            Answer::List(list),
            Answer::Object(fields),
        ] {
            let shown = tokens(&fit(answer, 50_000, 0));
            assert!(shown <= LIMIT && shown > 500, "{shown}");
        }
    }

    #[test]
    fn rows_that_were_not_computed_are_said_to_be_there() {
        let items = (0..50).map(|n| json!({"seq": n})).collect();
        let list = List {
            total: None,
            ..List::whole("rows", items)
        };
        let page: Value = serde_json::from_str(&fit(Answer::List(list), 150, 0)).unwrap();
        let shown = page["rows"].as_array().unwrap().len();
        assert_eq!(page["leftOut"], format!("more than {}", 50 - shown));
        assert_eq!(page["cursor"], shown.to_string());
    }

    #[test]
    fn the_cursor_leads_through_a_long_line() {
        let line: String = (0..9_000_u32)
            .filter_map(|n| char::from_u32(0x1f300 + n % 700))
            .collect();
        let text = format!("first\n{line}\nlast\n");
        let (mut cursor, mut seen) = (Cursor::default(), String::new());
        loop {
            let page = fit(Answer::Text(text.clone()), 500, cursor);
            assert!(tokens(&page) <= 500, "{page}");
            let Some((shown, end)) = page.rsplit_once('(') else {
                seen.push_str(&page);
                break;
            };
            let (_, next) = end.split_once("cursor \"").unwrap();
            let is_inside = next.contains('+');
            // The newline before the remark is not the text's if a line was cut.
            seen.push_str(
                shown
                    .strip_suffix('\n')
                    .filter(|_| is_inside)
                    .unwrap_or(shown),
            );
            cursor = Cursor::read(next.trim_end_matches("\")\n")).unwrap();
        }
        assert_eq!(seen, text);
    }

    /// The counts are those of o200k, the tokenizer with the smallest ones among those of today's models.
    #[test]
    fn tokens_are_estimated_from_above() {
        let rows = include_str!("budget.txt").lines().skip(1);
        for row in rows {
            let row = row.strip_suffix('|').and_then(|row| row.split_once('|'));
            let (real, text) = row.expect("a number and a text");
            let real: usize = real.parse().expect("a number");
            assert!(tokens(text) >= real, "{} of {real}: {text}", tokens(text));
        }
    }

    proptest! {
        #[test]
        fn no_text_exceeds_its_budget(text in "(\\PC{0,200}\n){0,60}", budget in LEAST..3_000_usize) {
            let shown = fit(Answer::Text(text), budget, 0);
            prop_assert!(tokens(&shown) <= budget, "{} of {budget}", tokens(&shown));
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
