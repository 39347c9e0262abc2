//! A comparison as text, for people: what differs first, who did it, and how much else differs.

use debuginfo::{short_name, told_apart};
use values::one_line::{escaped, fitted};
use values::quantity::{count, duration, grouped};

use super::held::{Held, HeldKind};
use super::output::Line;
use super::parted::{How, Parting, Sight, SourceLine, kind_text};
use super::report::{CallPair, Comparison, FunctionPair, ThreadPair, UnreadFile};
use super::suspects::Suspect;

use crate::overview::CallLine;

/// Columns of a line, unless the reader has more.
pub const COLUMNS: usize = 120;
/// Functions, threads and suspects that are told in a summary.
const FEW: usize = 5;

/// What a line of a summary is, for those who paint it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The verdict, or what the next lines are about.
    Heading,
    /// What the first recording has.
    A,
    /// What the second recording has.
    B,
    /// What is around the difference, the same or not.
    Context,
    /// Anything else.
    Plain,
}

/// A line of a summary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextLine {
    /// What it is.
    pub role: Role,
    /// Its text, without control characters.
    pub text: String,
}

/// Text that is written line by line.
struct Page {
    lines: Vec<TextLine>,
    columns: usize,
}

impl Page {
    fn line(&mut self, text: &str) {
        self.as_is(Role::Plain, text);
    }

    fn heading(&mut self, text: &str) {
        self.as_is(Role::Heading, text);
    }

    /// Writes a line of the side `A` or `B`.
    fn side(&mut self, name: char, text: &str) {
        let role = match name {
            'A' => Role::A,
            _ => Role::B,
        };
        self.as_is(role, text);
    }

    fn as_is(&mut self, role: Role, text: &str) {
        let text = fitted(&escaped(text), self.columns).into_owned();
        self.lines.push(TextLine { role, text });
    }
}

fn was(number: u64) -> &'static str {
    if number == 1 { "was" } else { "were" }
}

impl Comparison {
    /// Writes it: a summary within a screen, and with `is_full` all calls that it has.
    #[must_use]
    pub fn text(&self, is_full: bool) -> String {
        let lines = self.lines(is_full, COLUMNS).into_iter();
        lines.map(|line| line.text + "\n").collect()
    }

    /// As [`Self::text`], line by line. Lines that are longer than so many columns are cut.
    #[must_use]
    pub fn lines(&self, is_full: bool, columns: usize) -> Vec<TextLine> {
        let mut page = Page {
            lines: Vec::new(),
            columns,
        };
        self.head(&mut page);
        if !self.is_same {
            self.suspects(&mut page, if is_full { usize::MAX } else { 3 });
            self.first_parting(&mut page);
            self.outputs(&mut page);
            self.differing_functions(&mut page, if is_full { usize::MAX } else { FEW });
        }
        self.differing_threads(&mut page, if is_full { usize::MAX } else { FEW });
        self.lone(&mut page, if is_full { usize::MAX } else { FEW });
        if is_full {
            self.all_calls(&mut page);
        }
        page.lines
    }

    fn head(&self, page: &mut Page) {
        let compared: u64 = self
            .threads
            .iter()
            .map(|thread| thread.calls.0.min(thread.calls.1))
            .sum();
        let verdict = match (self.is_same, self.accepted) {
            (true, 0) => "the same".to_owned(),
            (true, known) => format!(
                "the same, but for {} that {} accepted",
                count(known, "difference"),
                was(known)
            ),
            (false, 0) => "different".to_owned(),
            (false, known) => {
                let known_ones = count(known, "difference");
                format!("different; {known_ones} {} accepted", was(known))
            }
        };
        let build = match self.is_same_build {
            true => "the same build",
            false => "different builds",
        };
        page.heading(&format!(
            "A {} and B {}: {verdict}",
            self.a.name, self.b.name
        ));
        page.line(&format!(
            "  {}; {} compared in {}",
            build,
            count(compared, "call"),
            count(self.threads.len() as u64, "thread")
        ));
        if self.a.argv.get(1..) != self.b.argv.get(1..) {
            page.side('A', &format!("  A ran {}", self.a.argv.join(" ")));
            page.side('B', &format!("  B ran {}", self.b.argv.join(" ")));
        }
        if !self.environment.is_empty() {
            page.line(&format!("  {}", environment_line(&self.environment)));
        }
        for note in &self.notes {
            page.line(&format!("  {note}"));
        }
        self.chance(page);
        if self.a.random_keys {
            page.line(
                "  hash tables have random keys: calls of hashing and probing were not compared",
            );
            if self.differing > 0 {
                page.line("  the order in which they give their elements is another in each run, and may be the difference");
            }
        }
        for (side, recorded) in [('A', &self.a), ('B', &self.b)] {
            for file in recorded.unread.iter().take(FEW) {
                page.line(&format!("  {side}'s {}", unread_line(file)));
            }
        }
        // What was accepted may show it.
        if self.is_same && self.accepted == 0 {
            self.silent_changes(page);
        }
    }

    /// Says what else than the program may have made two runs of one build differ: threads that wait, and random addresses. Names
    /// one that the function got with which the difference begins.
    fn chance(&self, page: &mut Page) {
        if !self.is_same_build || self.differing == 0 {
            return;
        }
        if self.threads.len() > 1 {
            page.line(
                "  if threads wait for each other, how often they do is another number in each run",
            );
        }
        let is_random = self.a.random_addresses || self.b.random_addresses;
        if !is_random || self.a.random_keys {
            return;
        }
        let first = self.first_parted().map(|(_, parting)| parting);
        let got = first.and_then(|parting| {
            let address = parting.addresses.first()?;
            Some((short_name(parting.function.as_deref()?), address))
        });
        let who = match &got {
            Some((function, address)) => {
                let (name, a, b) = (&address.name, &address.a, &address.b);
                page.line(&format!(
                    "  {function} got the address {name}: {a} in A, {b} in B"
                ));
                "it"
            }
            None => "the program",
        };
        page.line(&format!("  if {who} hashes or sorts addresses, record it with --no-aslr: they are others in each run"));
    }

    /// Names the functions that were changed and called, where nothing shows it.
    fn silent_changes(&self, page: &mut Page) {
        let is_changed = |function: &&FunctionPair| function.code_differs == Some(true);
        let changed: Vec<&FunctionPair> = self.functions.iter().filter(is_changed).collect();
        if changed.is_empty() {
            return;
        }
        let names = changed.iter().take(FEW);
        let names = names.map(|function| short_name(&function.function));
        let mut names = names.collect::<Vec<_>>().join(", ");
        if let Some(more) = changed.len().checked_sub(FEW).filter(|more| *more > 0) {
            names += &format!(" and {more} more");
        }
        page.line(&format!(
            "  the code of {names} differs, but nothing that is compared shows it"
        ));
    }

    fn suspects(&self, page: &mut Page, most: usize) {
        if self.suspects.is_empty() {
            return;
        }
        page.heading("Look first at");
        for (number, suspect) in self.suspects.iter().take(most).enumerate() {
            page.line(&suspect_line(number + 1, suspect));
            if let Some((a, b)) = &suspect.source {
                page.side('A', &format!("     A {}", source_line(a)));
                page.side('B', &format!("     B {}", source_line(b)));
            }
        }
    }

    /// Returns the thread that differs first, and where.
    fn first_parted(&self) -> Option<(&ThreadPair, &Parting)> {
        let partings = self
            .threads
            .iter()
            .filter_map(|thread| Some((thread, thread.parting.as_ref()?)));
        partings.min_by_key(|(_, parting)| parting.a.seq)
    }

    fn first_parting(&self, page: &mut Page) {
        let Some((thread, parting)) = self.first_parted() else {
            return;
        };
        let whose = match self.threads.len() {
            1 => String::new(),
            _ => format!(
                " in thread {} (A {}, B {})",
                thread.function, thread.tids.0, thread.tids.1
            ),
        };
        page.heading(&format!("The first difference{whose}: {}", said(parting)));
        for call in &parting.before {
            page.as_is(Role::Context, &format!("    {}", call_text(call)));
        }
        side(page, 'A', &parting.a, None);
        side(page, 'B', &parting.b, Some(&parting.a));
        for values in &parting.values {
            page.line(&format!(
                "    {}: A {}, B {}",
                values.name, values.a, values.b
            ));
        }
        known_values(page, &parting.known());
        for (name, sight) in [('A', &parting.a), ('B', &parting.b)] {
            for call in &sight.after {
                page.side(name, &format!("  {name} then {}", call_text(call)));
            }
        }
        if let Some(call) = parting.a.around.first() {
            page.as_is(Role::Context, &format!("    inside {}", call_text(call)));
        }
    }

    fn outputs(&self, page: &mut Page) {
        for difference in &self.output {
            let why = difference.why.map(|why| format!(": {why}"));
            let why = why.unwrap_or_default();
            page.heading(&format!("{} differs{why}", difference.stream));
            let place = |line: &Option<Line>| match line {
                Some(line) => format!("line {} (seq {}): ", line.line, line.seq),
                None => "no such line".to_owned(),
            };
            let places = [place(&difference.a), place(&difference.b)];
            let used = places.iter().map(|place| place.len() + 4).max();
            let room = page.columns.saturating_sub(used.unwrap_or(0));
            let texts = difference.texts(room).map(Option::unwrap_or_default);
            for (name, (place, text)) in ['A', 'B'].into_iter().zip(places.iter().zip(&texts)) {
                page.side(name, &format!("  {name} {place}{text}"));
            }
        }
        for difference in &self.events {
            let event = |event: &Option<(String, u64)>| match event {
                Some((text, seq)) => format!("{text} (seq {seq})"),
                None => "nothing of the kind there".to_owned(),
            };
            let (a, b) = (event(&difference.a), event(&difference.b));
            page.heading(&format!("{} differs: A {a}, B {b}", difference.kind));
        }
    }

    fn differing_functions(&self, page: &mut Page, most: usize) {
        let differing: Vec<&FunctionPair> = self
            .functions
            .iter()
            .filter(|pair| is_differing(pair))
            .collect();
        if differing.is_empty() {
            return;
        }
        let (in_a, in_b) = differing
            .iter()
            .map(|pair| pair.differing())
            .fold((0, 0), |sum, (a, b)| (sum.0 + a, sum.1 + b));
        page.heading(&format!(
            "Differences: {} of A and {} of B, in {}",
            count(in_a, "call"),
            count(in_b, "call"),
            count(differing.len() as u64, "function")
        ));
        let shown = &differing[..most.min(differing.len())];
        let full: Vec<&str> = shown.iter().map(|pair| pair.function.as_str()).collect();
        let names = full.iter().map(|name| short_name(name)).collect();
        for (pair, name) in shown.iter().zip(told_apart(&full, names)) {
            page.line(&function_line(pair, &name));
        }
        if differing.len() > most {
            page.line(&format!("  and {} more", differing.len() - most));
        }
    }

    fn differing_threads(&self, page: &mut Page, most: usize) {
        let differing = || {
            self.threads
                .iter()
                .filter(|thread| thread.differing > 0 || thread.is_untold)
        };
        if self.threads.len() > 1 && differing().count() > 0 {
            page.heading(&format!(
                "{} of {} differ",
                differing().count(),
                count(self.threads.len() as u64, "thread")
            ));
            for thread in differing().take(most) {
                let how = match &thread.parting {
                    Some(parting) => said(parting),
                    None => "where was not looked for: too many threads differ".to_owned(),
                };
                page.line(&format!("  {} {}: {how}", thread.function, thread.number));
            }
        }
        for thread in self.lone.threads.iter().take(most) {
            let side = thread.side.to_ascii_uppercase();
            page.line(&format!(
                "Only {side} has the thread {} of {}",
                thread.tid, thread.function
            ));
        }
    }

    fn lone(&self, page: &mut Page, most: usize) {
        for lone in self.lone.functions.iter().take(most) {
            let side = lone.side.to_ascii_uppercase();
            page.line(&format!(
                "Only {side} has {} ({}; not compared): {}",
                lone.function,
                count(lone.calls, "call"),
                lone.why
            ));
        }
        if self.lone.functions.len() > most {
            page.line(&format!(
                "  and {} more such functions",
                self.lone.functions.len() - most
            ));
        }
        for (what, names) in [
            (
                "Inlined at other places in one build, so their calls are not compared",
                &self.lone.uneven,
            ),
            ("Variables that begin with other values", &self.lone.values),
        ] {
            if !names.is_empty() {
                let shown = names.iter().take(most.min(FEW));
                let mut told: Vec<String> = shown.map(|name| short_name(name)).collect();
                let more = names.len() - told.len();
                if more > 0 {
                    told.push(format!("{more} more"));
                }
                page.line(&format!("{what}: {}", told.join(", ")));
            }
        }
    }

    fn all_calls(&self, page: &mut Page) {
        if self.calls.is_empty() {
            return;
        }
        page.heading("All calls that differ");
        for pair in &self.calls {
            pair_lines(page, pair);
        }
        let missing = self.differing.saturating_sub(self.calls.len() as u64);
        if missing > 0 {
            page.line(&format!("  and {} more", grouped(missing)));
        }
    }
}

fn unread_line(file: &UnreadFile) -> String {
    let why = match file.is_replaced {
        true => "was replaced since (its build id differs)",
        false => "cannot be read any more",
    };
    format!(
        "file {} {why}: strings that pointers lead to were not compared",
        fitted(file_name(&file.path), 40)
    )
}

fn environment_line(names: &[String]) -> String {
    let told: Vec<&str> = names.iter().take(FEW).map(String::as_str).collect();
    let more = match names.len().saturating_sub(FEW) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("their environments differ: {}{more}", told.join(", "))
}

fn is_differing(pair: &FunctionPair) -> bool {
    pair.differing() != (0, 0)
}

fn suspect_line(number: usize, suspect: &Suspect) -> String {
    let place = suspect
        .place
        .as_ref()
        .map(|(file, line)| format!(" at {}:{line}", file_name(file)));
    let code = match suspect.code_differs {
        Some(true) if !suspect.why.contains("code") => "; its code differs",
        Some(false) => "; its code is the same",
        _ => "",
    };
    let place = place.unwrap_or_default();
    format!(
        "  {number}. {}{place}: {}{code}",
        suspect.function, suspect.why
    )
}

fn source_line(line: &SourceLine) -> String {
    let text = line.text.as_deref().unwrap_or_default();
    let told = format!("{}:{}  {text}", file_name(&line.file), line.line);
    told.trim_end().to_owned()
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Says in a line how two threads parted.
fn said(parting: &Parting) -> String {
    let function = parting.function.as_deref().map(short_name);
    let function = function.unwrap_or_else(|| "the thread".to_owned());
    let callee = |sight: &Sight| match &sight.call {
        Some(call) => short_name(&call.function),
        None => "nothing more".to_owned(),
    };
    match parting.how {
        How::Result => format!("{function} ended differently, {}", parting.alike()),
        How::Arguments => format!(
            "{function} called {} with other arguments",
            callee(&parting.a)
        ),
        How::Call => format!(
            "{function} called {} in A, {} in B",
            callee(&parting.a),
            callee(&parting.b)
        ),
        How::Nesting => format!("{function} made other calls itself"),
        How::Start => match (callee(&parting.a), callee(&parting.b)) {
            (a, b) if a == b => format!("{a} began with other arguments"),
            (a, b) => format!("it began with {a} in A, with {b} in B"),
        },
    }
}

fn call_text(call: &CallLine) -> String {
    let result = match (&call.result, call.end_seq) {
        (_, None) if call.only_entered => ", its end not recorded".to_owned(),
        (_, None) => " had not ended".to_owned(),
        _ if call.open_at_end => " had not returned".to_owned(),
        _ if call.unwound => " was left by an exception or longjmp".to_owned(),
        (Some(result), _) => format!(" returned {}", fitted(&escaped(result), 40)),
        (None, _) => " returned".to_owned(),
    };
    let args = fitted(&escaped(&call.args), 50).into_owned();
    format!(
        "{}({args}){result}, seq {}",
        short_name(&call.function),
        call.seq
    )
}

/// Writes variables and watched expressions.
fn known_values(page: &mut Page, held: &[&Held]) {
    for held in held.iter().take(FEW) {
        let what = match held.kind {
            HeldKind::Local => "local",
            HeldKind::Watched => "watched",
            HeldKind::Printed => "last line on",
        };
        let value = |value: &Option<String>| match value {
            Some(value) => fitted(&escaped(value), 40).into_owned(),
            None => "not known".to_owned(),
        };
        let (a, b) = (value(&held.a), value(&held.b));
        let line = match a == b {
            true => format!("    {what} {}: {a} on both sides", held.name),
            false => format!("    {what} {}: A {a}, B {b}", held.name),
        };
        page.as_is(Role::Context, &line);
    }
    if held.len() > FEW {
        let more = format!("    and {} more values that are known", held.len() - FEW);
        page.as_is(Role::Context, &more);
    }
}

/// Writes what a side shows; lines of source that the other one has shown are not repeated.
fn side(page: &mut Page, name: char, sight: &Sight, shown: Option<&Sight>) {
    let call = match &sight.call {
        Some(call) => call_text(call),
        None => "made no more calls".to_owned(),
    };
    page.side(name, &format!("  {name} {call}"));
    let texts = |sight: &Sight| {
        let texts = sight.source.iter().map(|line| line.text.clone());
        texts.collect::<Vec<_>>()
    };
    match (&sight.at, &sight.begins) {
        (Some(at), _) if sight.source.is_empty() => {
            page.as_is(
                Role::Context,
                &format!("      called at {}", source_line(at)),
            );
        }
        (Some(at), _) => {
            let place = format!("      called at {}:{}", file_name(&at.file), at.line);
            if shown.is_some_and(|shown| texts(shown) == texts(sight)) {
                page.as_is(Role::Context, &format!("{place}, the same lines"));
                return;
            }
            page.as_is(Role::Context, &place);
            for line in &sight.source {
                let (mark, role) = match line.line == at.line {
                    true => ('>', Role::Plain),
                    false => (' ', Role::Context),
                };
                let text = line.text.as_deref().unwrap_or_default();
                page.as_is(
                    role,
                    format!("      {mark} {:>5}  {text}", line.line).trim_end(),
                );
            }
        }
        (None, Some(begins)) => {
            page.as_is(Role::Context, &format!("      {}", source_line(begins)));
        }
        (None, None) => {}
    }
}

fn function_line(pair: &FunctionPair, name: &str) -> String {
    let mut parts = Vec::new();
    let mut part = |number: u64, what: &str| {
        if number > 0 {
            parts.push(format!("{} {what}", grouped(number)));
        }
    };
    part(pair.arguments, "with other arguments");
    part(pair.results, "with another result");
    part(pair.inside, "with other calls inside");
    part(pair.only.0, "only in A");
    part(pair.only.1, "only in B");
    let time = match pair.total_ns {
        (Some(a), Some(b)) if (a, b) != (0, 0) => {
            format!(", {} and {}", duration(a), duration(b))
        }
        _ => String::new(),
    };
    format!(
        "  {name}: {}; {} in A, {} in B{time}",
        parts.join(", "),
        count(pair.calls.0, "call"),
        grouped(pair.calls.1)
    )
}

fn pair_lines(page: &mut Page, pair: &CallPair) {
    page.line(&format!("  {}: {}", pair.function, kind_text(pair.kind)));
    for (name, call) in [('A', &pair.a), ('B', &pair.b)] {
        if let Some(call) = call {
            page.side(name, &format!("    {name} {}", call_text(call)));
        }
    }
}
