//! A comparison as one page that needs no other file: the likeliest functions first, then where the two sides diverged,
//! side by side.

use maud::{DOCTYPE, Markup, PreEscaped, html};
use query::compare::{
    Comparison, FunctionPair, Held, HeldKind, Line, Parting, Sight, SourceLine, Values,
};
use query::overview::CallLine;
use values::quantity::{count, duration, grouped};

use super::findings::{counted, differs, upper};

const STYLE: &str = include_str!("style.css");
/// Most functions and calls that are shown.
const MOST: usize = 200;

/// Writes the page.
pub fn page(comparison: &Comparison) -> String {
    let verdict = if comparison.is_same {
        "the same"
    } else {
        "different"
    };
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (comparison.a.name) " and " (comparison.b.name) ": " (verdict) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                h1 { "A " code { (comparison.a.name) } " and B " code { (comparison.b.name) } ": "
                    span class=(if comparison.is_same { "same" } else { "different" }) { (verdict) } }
                (head(comparison))
                (suspects(comparison))
                @for thread in &comparison.threads {
                    @if let Some(parting) = &thread.parting {
                        h2 { "Thread " code { (thread.function) } " parted" }
                        p.note { "A thread " (thread.tids.0) ", B thread " (thread.tids.1) "; "
                            (count(thread.differing, "difference")) " of calls" }
                        (parted(parting))
                    }
                }
                (output(comparison))
                (functions(comparison))
                (calls(comparison))
                (lone(comparison))
            }
        }
    }
    .into_string()
}

fn head(comparison: &Comparison) -> Markup {
    html! {
        table.head {
            tr { th { } th { "A" } th { "B" } }
            tr { th { "program" }
                td { code { (comparison.a.argv.join(" ")) } }
                td { code { (comparison.b.argv.join(" ")) } } }
            tr { th { "calls" } td { (grouped(comparison.a.calls)) } td { (grouped(comparison.b.calls)) } }
            tr { th { "events" } td { (grouped(comparison.a.events)) } td { (grouped(comparison.b.events)) } }
        }
        p.note {
            (if comparison.is_same_build { "Both are of the same build." } else { "They are of different builds." })
            @if comparison.accepted > 0 {
                " " (count(comparison.accepted, "difference")) (if comparison.accepted == 1 { " was" } else { " were" }) " accepted."
            }
            @if !comparison.environment.is_empty() { " Their environments differ: " (comparison.environment.join(", ")) "." }
        }
        @for note in &comparison.notes { p.note { (note) } }
    }
}

fn suspects(comparison: &Comparison) -> Markup {
    html! {
        @if !comparison.suspects.is_empty() {
            h2 { "Look first at" }
            ol {
                @for suspect in &comparison.suspects {
                    li {
                        code { (suspect.function) }
                        @if let Some((file, line)) = &suspect.place { " at " code { (file) ":" (line) } }
                        ": " (suspect.why)
                        @match suspect.code_differs {
                            Some(true) => { " " span.different { "its code differs" } }
                            Some(false) => { " " span.note { "its code is the same" } }
                            None => {}
                        }
                        @if let Some((a, b)) = &suspect.source {
                            div.sides { (changed_line("A", a)) (changed_line("B", b)) }
                        }
                    }
                }
            }
        }
    }
}

fn changed_line(name: &str, line: &SourceLine) -> Markup {
    html! {
        section {
            p.note { (name) " " code { (line.file) ":" (line.line) } }
            pre { (line.text.as_deref().unwrap_or_default()) }
        }
    }
}

fn parted(parting: &Parting) -> Markup {
    html! {
        @if !parting.before.is_empty() {
            p.note { "Before that, equal on both sides:" }
            @for call in &parting.before { div.call { (line_of(call)) } }
        }
        div.sides {
            (sight("A", &parting.a))
            (sight("B", &parting.b))
        }
        (values(&parting.values))
        (known_values(&parting.known()))
    }
}

fn known_values(held: &[&Held]) -> Markup {
    let value = |value: &Option<String>| match value {
        Some(value) => html! { code { (value) } },
        None => html! { span.note { "not known" } },
    };
    html! {
        @if !held.is_empty() {
            table {
                tr { th { "known then" } th { "A" } th { "B" } }
                @for held in held {
                    tr {
                        td {
                            (match held.kind {
                                HeldKind::Local => "local ",
                                HeldKind::Watched => "watched ",
                                HeldKind::Printed => "last line on ",
                            })
                            @if held.differs { code.different { (held.name) } } @else { code { (held.name) } }
                        }
                        td { (value(&held.a)) }
                        td { (value(&held.b)) }
                    }
                }
            }
        }
    }
}

fn sight(name: &str, sight: &Sight) -> Markup {
    html! {
        section {
            h3 { (name) " at event " (sight.seq) }
            @match &sight.call {
                Some(call) => { div.call.mark { (line_of(call)) } }
                None => { div.call.mark { "made no more calls" } }
            }
            @if let Some(at) = &sight.at {
                p.note { "called at " code { (at.file) ":" (at.line) } }
                @match sight.source.is_empty() {
                    true => { @if let Some(text) = &at.text { pre { (text) } } }
                    false => { pre {
                        @for line in &sight.source {
                            @let text = format!("{:>5}  {}\n", line.line, line.text.as_deref().unwrap_or_default());
                            @if line.line == at.line { b { (text) } } @else { (text) }
                        }
                    } }
                }
            }
            @if !sight.after.is_empty() {
                p.note { "then" }
                @for call in &sight.after { div.call { (line_of(call)) } }
            }
            @if !sight.around.is_empty() {
                p.note { "inside" }
                @for call in &sight.around { div.call { (line_of(call)) } }
            }
        }
    }
}

fn time(ns: Option<u64>) -> String {
    ns.map_or_else(|| "not recorded".to_owned(), duration)
}

fn line_of(call: &CallLine) -> Markup {
    html! {
        span.name { (call.function) } "(" (call.args) ")"
        @match (&call.result, call.end_seq) {
            (_, None) if call.only_entered => { span.note { ", its end not recorded" } }
            (_, None) => { span.note { " had not ended" } }
            _ if call.open_at_end => { span.note { " had not returned" } }
            _ if call.unwound => { span.note { " was left by an exception or longjmp" } }
            (Some(result), _) => { " = " b { (result) } }
            (None, _) => {}
        }
        span.note { " seq " (call.seq) }
        @if let (Some(file), Some(line)) = (&call.file, call.line) { span.note { " " (file) ":" (line) } }
    }
}

fn values(values: &[Values]) -> Markup {
    html! {
        @if !values.is_empty() {
            table {
                tr { th { "value" } th { "A" } th { "B" } }
                @for value in values {
                    tr { td { code { (value.name) } } td { code { (value.a) } } td { code { (value.b) } } }
                }
            }
        }
    }
}

fn output(comparison: &Comparison) -> Markup {
    let line = |line: &Option<Line>| match line {
        Some(line) => {
            html! { code { (line.text) } span.note { " line " (line.line) ", seq " (line.seq) } }
        }
        None => html! { span.note { "no such line" } },
    };
    let event = |event: &Option<(String, u64)>| match event {
        Some((text, seq)) => html! { code { (text) } span.note { " seq " (seq) } },
        None => html! { span.note { "nothing of the kind there" } },
    };
    html! {
        @if comparison.output.len() + comparison.events.len() > 0 {
            h2 { "Output and other events" }
            table {
                tr { th { } th { "A" } th { "B" } }
                @for difference in &comparison.output {
                    tr { th { (difference.stream) @if let Some(why) = difference.why { ": " (why) } } td { (line(&difference.a)) } td { (line(&difference.b)) } }
                }
                @for difference in &comparison.events {
                    tr { th { (difference.kind) } td { (event(&difference.a)) } td { (event(&difference.b)) } }
                }
            }
        }
    }
}

fn functions(comparison: &Comparison) -> Markup {
    let differing: Vec<&FunctionPair> = comparison
        .functions
        .iter()
        .filter(|pair| differs(pair))
        .collect();
    html! {
        @if !differing.is_empty() {
            h2 { "Functions that differ" }
            table {
                tr { th { "function" } th { "calls that differ" } th { "time in A" } th { "time in B" } }
                @for pair in differing.iter().take(MOST) {
                    tr {
                        td { code { (pair.function) } }
                        td { (counted(pair)) }
                        td { (time(pair.total_ns.0)) }
                        td { (time(pair.total_ns.1)) }
                    }
                }
            }
            @if differing.len() > MOST { p.note { (differing.len() - MOST) " more functions: see --json" } }
        }
    }
}

fn calls(comparison: &Comparison) -> Markup {
    let shown = comparison.calls.len().min(MOST) as u64;
    html! {
        @if shown > 0 {
            h2 { "Calls that differ" }
            @for pair in comparison.calls.iter().take(MOST) {
                details {
                    summary { code { (pair.function) } " "
                        span.note { (values_text(&pair.values)) } }
                    div.sides {
                        section { h3 { "A" } @if let Some(call) = &pair.a { div.call { (line_of(call)) } } }
                        section { h3 { "B" } @if let Some(call) = &pair.b { div.call { (line_of(call)) } } }
                    }
                    (values(&pair.values))
                }
            }
            @if comparison.differing > shown { p.note { (grouped(comparison.differing - shown)) " more calls: see --json --full" } }
        }
    }
}

fn values_text(values: &[Values]) -> String {
    let told: Vec<String> = values
        .iter()
        .map(|v| format!("{}: {} and {}", v.name, v.a, v.b))
        .collect();
    told.join("; ")
}

fn lone(comparison: &Comparison) -> Markup {
    html! {
        @if comparison.lone.functions.len() + comparison.lone.threads.len() > 0 {
            h2 { "Only one side has" }
            ul {
                @for thread in &comparison.lone.threads {
                    li { (upper(thread.side)) ": the thread " (thread.tid) ", which ran " code { (thread.function) } " first" }
                }
                @for lone in comparison.lone.functions.iter().take(MOST) {
                    li { (upper(lone.side)) ": " code { (lone.function) } ", " (grouped(lone.calls)) " calls: " (lone.why) }
                }
            }
            @if comparison.lone.functions.len() > MOST {
                p.note { (comparison.lone.functions.len() - MOST) " more functions: see --json" }
            }
        }
        @if !comparison.lone.uneven.is_empty() {
            p.note {
                "Inlined at other places in one build, so their calls are not compared: "
                (comparison.lone.uneven.join(", "))
            }
        }
        @if !comparison.lone.values.is_empty() {
            p.note { "Variables that begin with other values: " (comparison.lone.values.join(", ")) }
        }
    }
}
