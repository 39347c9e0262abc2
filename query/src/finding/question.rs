//! The question in SQL that filters make, and how a page of its rows is asked for.

use store::columns::EventKind;

use super::rows::{Asking, Rows};
use super::{Detail, Filters, LONGEST_TEXT, Order, Refused, ReturnFilter, TextFilter, quoted};
use crate::error::Result;

/// The events, and as events the notes that were added to the recording later.
const EVENTS_AND_NOTES: &str = "(\
    select seq, kind, tid, ts_ns, function, function_id, file, line, module, call, parent, depth, args, ret, ret_f, ret_text, unwound, text, \
    addr, size, value, aux, probe from events \
    union all select seq, 'note', null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, text, \
    null, null, null, null, null from notes where added_unix_ns is not null)";

/// Events of the first part of a recording that is asked for a page of rows, and how much longer each further one is.
const FIRST_PART: u64 = 1 << 16;
const GROWTH: u64 = 32;

/// The question in SQL.
pub(super) struct Question {
    columns: &'static str,
    pub(super) table: &'static str,
    pub(super) conditions: Vec<String>,
    order: &'static str,
}

impl Question {
    pub(super) fn of(filters: &Filters) -> std::result::Result<Question, Refused> {
        if let Some(len) = too_long(filters) {
            return Err(Refused::LongText(len));
        }
        let known: Vec<&str> = EventKind::ALL.iter().map(|kind| kind.name()).collect();
        let is_known = |kind: &str| ["call", "enter"].contains(&kind) || known.contains(&kind);
        if let Some(kind) = filters.kinds.iter().find(|kind| !is_known(kind)) {
            return Err(Refused::UnknownKind(kind.clone()));
        }
        let about_calls = filters.function.is_some()
            || filters.return_value.is_some()
            || filters.args.is_some()
            || filters.source_file.is_some()
            || filters.parent.is_some()
            || filters.min_duration_ns.is_some()
            || filters.order == Order::Duration;
        let is_calls = match filters.kinds.as_slice() {
            [] => about_calls && filters.text.is_none(),
            kinds if kinds.iter().any(|kind| kind == "call") => {
                if kinds.len() > 1 {
                    return Err(Refused::CallsAndEvents);
                }
                true
            }
            _ => false,
        };
        match is_calls {
            true => calls(filters),
            false if is_about_writes(filters) => Ok(writes(filters)),
            false => events(filters),
        }
    }

    /// Asks for a page of rows. Texts of arguments and results take long, and a sorted question would compute them for all rows: so the
    /// rows are chosen first.
    pub(super) fn ask(&self, asking: &Asking<'_>, first: usize, limit: usize) -> Result<Rows> {
        let Some(key) = self.key() else {
            let sql = self.rows(self.columns, first, limit);
            return asking.rows(&sql, limit);
        };
        let chosen = self.chosen(asking, key, first, limit)?;
        let seqs = chosen
            .rows
            .iter()
            .filter_map(|row| row.get("seq")?.as_u64());
        let seqs: Vec<String> = seqs.map(|seq| seq.to_string()).collect();
        if seqs.is_empty() {
            return Ok(chosen);
        }
        let sql = format!(
            "select {} from {} where {key} in ({}) order by {}",
            self.columns,
            self.table,
            seqs.join(", "),
            self.order
        );
        asking.rows(&sql, limit)
    }

    /// Returns the numbers of a page of rows. In the order of events, growing parts of the recording are asked until the page is full:
    /// it mostly lies near that end.
    fn chosen(&self, asking: &Asking<'_>, key: &str, first: usize, limit: usize) -> Result<Rows> {
        let events = asking.session.extent().events;
        let mut len = FIRST_PART;
        loop {
            let part = match self.order == format!("{key} desc") {
                true => format!("{key} >= {}", events.saturating_sub(len)),
                false => format!("{key} < {len}"),
            };
            let is_all = len >= events || !self.order.starts_with(key);
            let conditions = match is_all {
                true => self.conditions.clone(),
                false => [self.conditions.as_slice(), &[part]].concat(),
            };
            let sql = self.page(&format!("{key} as seq"), &conditions, (first, limit));
            let found = asking.rows(&sql, limit)?;
            if is_all || found.rows.len() == limit {
                return Ok(found);
            }
            len = len.saturating_mul(GROWTH);
        }
    }

    /// The column that numbers the rows of the table, each once.
    fn key(&self) -> Option<&'static str> {
        match self.table {
            "calls" => Some("start_seq"),
            "events" => Some("seq"),
            _ => None,
        }
    }

    fn rows(&self, columns: &str, first: usize, limit: usize) -> String {
        self.page(columns, &self.conditions, (first, limit))
    }

    fn page(&self, columns: &str, conditions: &[String], (first, limit): (usize, usize)) -> String {
        let (table, order, conditions) = (self.table, self.order, all(conditions));
        format!(
            "select {columns} from {table} where {conditions} order by {order} limit {limit} offset {first}"
        )
    }

    pub(super) fn count(&self) -> String {
        format!(
            "select count(*) as n from {} where {}",
            self.table,
            all(&self.conditions)
        )
    }
}

/// Returns the length of a filter's text that is too long.
fn too_long(filters: &Filters) -> Option<usize> {
    let Filters {
        function,
        source_file,
        args,
        text,
        ..
    } = filters;
    let texts = [function, source_file, args, text].into_iter().flatten();
    let texts = texts.flat_map(|filter| [&filter.equals, &filter.contains, &filter.matches]);
    let longest = texts.flatten().map(String::len).max();
    longest.filter(|len| *len > LONGEST_TEXT)
}

fn calls(filters: &Filters) -> std::result::Result<Question, Refused> {
    if filters.text.is_some() {
        return Err(Refused::TextOfCalls);
    }
    let mut conditions = common(filters, "start_seq");
    if let Some(least) = filters.min_duration_ns {
        conditions.push(format!("dur_ns >= {least}"));
    }
    let columns = match filters.detail {
        Detail::Summary => r#"start_seq as seq, function, function_id, ret_text as "returnValue""#,
        Detail::Standard => {
            r#"start_seq as seq, tid as "threadId", function, function_id, args, ret_text as "returnValue", nullif(dur_ns, -1) as "durationNs", parent"#
        }
        Detail::Full => {
            r#"start_seq as seq, end_seq as "endSeq", tid as "threadId", function, function_id, file, line, module, args, outs, ret_text as "returnValue", ret, unwound, nullif(dur_ns, -1) as "durationNs", nullif(self_ns, -1) as "selfNs", ts_ns as "timeNs", depth, parent"#
        }
    };
    Ok(Question {
        columns,
        table: "calls",
        conditions,
        order: match filters.order {
            Order::Asc => "start_seq",
            Order::Desc => "start_seq desc",
            Order::Duration => "dur_ns desc, start_seq",
        },
    })
}

/// Whether filters select only writes, by columns of the table of writes.
fn is_about_writes(filters: &Filters) -> bool {
    let is_write = |kind: &String| kind == "write" || kind == "logged_write";
    let has_others = filters.args.is_some()
        || filters.return_value.is_some()
        || filters.parent.is_some()
        || filters.min_duration_ns.is_some()
        || filters.order == Order::Duration;
    !filters.kinds.is_empty() && filters.kinds.iter().all(is_write) && !has_others
}

/// Writes, with their values and places.
fn writes(filters: &Filters) -> Question {
    let mut conditions = common(filters, "seq");
    let has = |kind: &str| filters.kinds.iter().any(|known| known == kind);
    if !has("write") {
        conditions.push("by = 'program'".to_owned());
    }
    if !has("logged_write") {
        conditions.push("by <> 'program'".to_owned());
    }
    if let Some(text) = &filters.text {
        text.add("target", &mut conditions);
    }
    let columns = match filters.detail {
        Detail::Summary => "seq, target, old, new",
        Detail::Standard => {
            r#"seq, tid as "threadId", target, old, new, function, line, nullif(by, 'program') as by"#
        }
        Detail::Full => {
            r#"seq, tid as "threadId", ts_ns as "timeNs", target, hex(addr) as address, register, old, new, by, hex(pc) as pc, function, file, line, via, shared"#
        }
    };
    Question {
        columns,
        table: "writes",
        conditions,
        order: match filters.order {
            Order::Desc => "seq desc",
            Order::Asc | Order::Duration => "seq",
        },
    }
}

fn events(filters: &Filters) -> std::result::Result<Question, Refused> {
    if filters.min_duration_ns.is_some() || filters.order == Order::Duration {
        return Err(Refused::DurationOfEvents);
    }
    let mut conditions = common(filters, "seq");
    if !filters.kinds.is_empty() {
        let kinds: Vec<String> = filters.kinds.iter().map(|kind| quoted(kind)).collect();
        conditions.push(format!("kind in ({})", kinds.join(", ")));
    }
    let about_notes = match filters.kinds.as_slice() {
        [] => filters.text.is_some(),
        kinds => kinds.iter().any(|kind| kind == "note"),
    };
    if let Some(text) = &filters.text {
        text.add("text", &mut conditions);
    }
    let columns = match filters.detail {
        Detail::Summary => "seq, kind, coalesce(function, text) as what, function_id",
        Detail::Standard => {
            r#"seq, kind, tid as "threadId", function, function_id, args, ret_text as "returnValue", text"#
        }
        Detail::Full => {
            r#"seq, kind, tid as "threadId", ts_ns as "timeNs", function, function_id, file, line, module, call, parent, depth, args, ret, ret_text as "returnValue", unwound, text, hex(addr) as address, size, value, aux, probe"#
        }
    };
    Ok(Question {
        columns,
        table: match about_notes {
            true => EVENTS_AND_NOTES,
            false => "events",
        },
        conditions,
        order: match filters.order {
            Order::Desc => "seq desc",
            Order::Asc | Order::Duration => "seq",
        },
    })
}

/// The filters that calls and events share.
fn common(filters: &Filters, seq: &str) -> Vec<String> {
    let mut conditions = Vec::new();
    let texts = [("file", &filters.source_file), ("args", &filters.args)];
    for (column, filter) in texts {
        if let Some(filter) = filter {
            filter.add(column, &mut conditions);
        }
    }
    let numbers = [
        ("tid", "=", filters.thread_id.map(i128::from)),
        ("ts_ns", ">=", filters.times.0.map(i128::from)),
        ("ts_ns", "<=", filters.times.1.map(i128::from)),
        (seq, ">=", filters.seqs.0.map(i128::from)),
        (seq, "<=", filters.seqs.1.map(i128::from)),
        ("parent", "=", filters.parent.map(i128::from)),
    ];
    for (column, sign, number) in numbers {
        conditions.extend(number.map(|number| format!("{column} {sign} {number}")));
    }
    conditions
}

fn all(conditions: &[String]) -> String {
    match conditions.is_empty() {
        true => "true".to_owned(),
        false => conditions.join(" and "),
    }
}

/// Returns a regular expression for the functions that a name means if it lacks template arguments, and, if it has a scope, the
/// scopes around that, as `-f` does.
fn lacking_parts(name: &str) -> Option<String> {
    let is_plain = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    let parts: Vec<&str> = name.split("::").collect();
    let are_words = name.chars().all(is_plain) && !parts.contains(&"");
    let begins = if parts.len() > 1 { "(^|::)" } else { "^" };
    are_words.then(|| format!("{begins}{}(<.*>)?$", parts.join("(<.*>)?::")))
}

impl TextFilter {
    /// The name, if nothing else is wanted.
    pub(super) fn only_name(&self) -> Option<&str> {
        let is_alone = self.contains.is_none() && self.matches.is_none();
        self.equals.as_deref().filter(|_| is_alone)
    }

    /// The condition on the table of functions: the name is the full one or the short one, or lacks parts of them.
    pub(super) fn of_functions(&self) -> String {
        let of = |column| {
            let mut conditions = Vec::new();
            self.add(column, &mut conditions);
            all(&conditions)
        };
        let mut ways = vec![of("name"), of("short_name")];
        if let Some(pattern) = self.equals.as_deref().and_then(lacking_parts) {
            let same = TextFilter {
                equals: None,
                matches: self.matches.clone(),
                contains: self.contains.clone(),
            };
            let mut conditions = vec![format!("name ~ {}", quoted(&pattern))];
            same.add("name", &mut conditions);
            ways.push(all(&conditions));
        }
        format!("(({}))", ways.join(") or ("))
    }

    fn add(&self, column: &str, conditions: &mut Vec<String>) {
        if let Some(text) = &self.equals {
            conditions.push(format!("{column} = {}", quoted(text)));
        }
        if let Some(text) = &self.contains {
            conditions.push(match text.contains(['%', '_', '\\']) {
                // These mean something else in a pattern.
                true => format!("strpos({column}, {}) > 0", quoted(text)),
                false => format!("{column} like {}", quoted(&format!("%{text}%"))),
            });
        }
        if let Some(pattern) = &self.matches {
            conditions.push(format!("{column} ~ {}", quoted(pattern)));
        }
    }
}

impl ReturnFilter {
    /// Adds the conditions on a table of calls or events. `as_text`: the functions whose numbers only a text may tell.
    pub(super) fn add(&self, as_text: &[u32], conditions: &mut Vec<String>) {
        match self.is_null {
            Some(true) => conditions.push(format!("not ({IS_KNOWN})")),
            Some(false) => conditions.push(IS_KNOWN.to_owned()),
            None => {}
        }
        let bounds = [
            ("=", self.equals),
            ("<", self.less_than),
            (">", self.greater_than),
        ];
        for (sign, number) in bounds {
            conditions.extend(number.map(|number| returned(sign, number, as_text)));
        }
    }
}

/// The condition that it is known what a call returned. A text takes long: only what no register holds is asked for it.
const IS_KNOWN: &str = "case when ret is not null then true when ret_f is not null then true \
    when ret_text is not null then true else false end";

/// The condition that what a call returned is less than a number, the same or greater. What does not fit in `ret` and `ret_f`, as an
/// unsigned number of 2^63 or more, is known as text, which takes long: only those of some functions are made.
fn returned(sign: &str, number: i128, as_text: &[u32]) -> String {
    let ids: Vec<String> = as_text.iter().map(u32::to_string).collect();
    let has_none = match ids.is_empty() {
        true => "true".to_owned(),
        false => format!("function_id not in ({})", ids.join(", ")),
    };
    format!(
        "case when ret is not null then ret {sign} {number} \
         when ret_f is not null then ret_f {sign} {number} \
         when {has_none} then false \
         when ret_text ~ '^-?[0-9]+$' then try_cast(ret_text as decimal(38,0)) {sign} {number} \
         else try_cast(ret_text as double) {sign} {number} end"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sql(filters: &Filters) -> std::result::Result<String, Refused> {
        Question::of(filters).map(|question| question.rows(question.columns, 0, 50))
    }

    fn kinds(names: &[&str]) -> Filters {
        Filters {
            kinds: names.iter().map(|name| (*name).to_owned()).collect(),
            ..Filters::default()
        }
    }

    #[test]
    fn quotes_and_patterns_cannot_leave_their_text() {
        let asked = sql(&Filters {
            args: Some(TextFilter {
                equals: Some("it's".to_owned()),
                contains: Some("50%".to_owned()),
                matches: None,
            }),
            detail: Detail::Summary,
            ..Filters::default()
        });
        assert_eq!(
            asked.unwrap(),
            "select start_seq as seq, function, function_id, ret_text as \"returnValue\" from calls \
             where args = 'it''s' and strpos(args, '50%') > 0 \
             order by start_seq limit 50 offset 0"
        );
    }

    #[test]
    fn numbers_that_do_not_fit_in_ret_are_compared() {
        let returned = |filter: ReturnFilter, as_text: &[u32]| {
            let mut conditions = Vec::new();
            filter.add(as_text, &mut conditions);
            all(&conditions)
        };
        let top = ReturnFilter {
            equals: Some(i128::from(u64::MAX - 1)),
            ..ReturnFilter::default()
        };
        let asked = returned(top.clone(), &[3, 7]);
        for part in [
            "ret = 18446744073709551614",
            "ret_f = 18446744073709551614",
            "when function_id not in (3, 7) then false when ret_text",
            "try_cast(ret_text as decimal(38,0)) = 18446744073709551614",
        ] {
            assert!(asked.contains(part), "{asked}");
        }
        // No text is made if none may be a number.
        let asked = returned(top, &[]);
        assert!(
            asked.contains("when true then false when ret_text"),
            "{asked}"
        );
        let unknown = ReturnFilter {
            is_null: Some(true),
            ..ReturnFilter::default()
        };
        let asked = returned(unknown, &[]);
        assert!(asked.starts_with("not (case when ret is not"), "{asked}");
    }

    #[test]
    fn calls_and_events_are_chosen_before_their_texts_are_made() {
        for asked in [kinds(&["call"]), kinds(&[])] {
            let asked = Filters {
                order: Order::Desc,
                ..asked
            };
            let question = Question::of(&asked).unwrap();
            let key = question.key().expect("rows have a number");
            let chosen = question.rows(key, 0, 1);
            assert!(
                !chosen.contains("ret_text") && chosen.contains("desc"),
                "{chosen}"
            );
        }
    }

    #[test]
    fn names_lack_template_arguments_and_outer_scopes() {
        let expected = Some("(^|::)Cache(<.*>)?::get(<.*>)?$".to_owned());
        assert_eq!(lacking_parts("Cache::get"), expected);
        assert_eq!(lacking_parts("get"), Some("^get(<.*>)?$".to_owned()));
        for whole in ["Cache<int>::get", "operator()", "::get", "", "a b"] {
            assert_eq!(lacking_parts(whole), None, "{whole}");
        }
    }

    #[test]
    fn writes_are_told_with_their_bytes_and_lines() {
        let asked = sql(&Filters {
            thread_id: Some(7),
            ..kinds(&["logged_write"])
        });
        assert_eq!(
            asked.unwrap(),
            "select seq, tid as \"threadId\", target, old, new, function, line, nullif(by, 'program') as by from writes \
             where tid = 7 and by = 'program' order by seq limit 50 offset 0"
        );
    }

    #[test]
    fn filters_that_do_not_fit_are_refused() {
        for (asked, expected) in [
            (kinds(&["call", "stdout"]), Refused::CallsAndEvents),
            (
                Filters {
                    min_duration_ns: Some(1),
                    ..kinds(&["stdout"])
                },
                Refused::DurationOfEvents,
            ),
            (
                Filters {
                    text: Some(TextFilter::default()),
                    ..kinds(&["call"])
                },
                Refused::TextOfCalls,
            ),
            (
                kinds(&["colour"]),
                Refused::UnknownKind("colour".to_owned()),
            ),
            (
                Filters {
                    function: Some(TextFilter {
                        equals: Some("x".repeat(LONGEST_TEXT + 1)),
                        ..TextFilter::default()
                    }),
                    ..Filters::default()
                },
                Refused::LongText(LONGEST_TEXT + 1),
            ),
        ] {
            assert_eq!(sql(&asked), Err(expected));
        }
    }
}
