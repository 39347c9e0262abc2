//! The text of a report: tables of functions, a function between its callers and callees, and a tree within a number
//! of lines.

use std::io::{self, Write};

use debuginfo::names_function;
use query::Report;
use query::overview::{all_within, within};
use query::report::{CostNote, FunctionTime, Paths};
use serde_json::{Value, json};
use server::quantity::{count, duration, grouped};

use super::Args;
use crate::error::Error;
use crate::render::{Align, Column, Layout, Paint, Table, Terminal, escaped};
use crate::suggest::nearest;

/// Paths with a smaller share of the time are omitted from the tree.
const LEAST_SHARE: f64 = 0.001;
/// The most columns of a name. Those of templates may have hundreds of characters; --json has them whole.
pub(super) const NAME_COLUMNS: usize = 100;
/// Names that a message lists.
const NAMES: usize = 5;

/// Writes the functions with the most time, of all threads together or of each.
///
/// # Errors
/// Those of `out`.
pub fn functions(
    out: &mut dyn Write,
    found: &Report,
    args: &Args,
    terminal: &Terminal,
) -> io::Result<()> {
    if args.threads {
        for thread in &found.threads {
            let own_ns = if args.raw {
                thread.raw_self_ns
            } else {
                thread.self_ns
            };
            let head = format!(
                "{}: {}, {} in recorded calls",
                found.thread_name(thread.tid),
                count(thread.calls, "call"),
                duration(own_ns)
            );
            let head = terminal.stdout_colour.paint(Paint::Heading, escaped(&head));
            writeln!(out, "{head}")?;
            table(out, &found.of_thread(thread.tid), args, terminal)?;
            writeln!(out)?;
        }
    } else if found.functions.is_empty() {
        return writeln!(
            out,
            "no calls were recorded; which functions were left out, and why: SELECT function, reason FROM probes"
        );
    } else {
        table(out, &found.functions, args, terminal)?;
    }
    notes(out, found, args.raw)
}

fn table(
    out: &mut dyn Write,
    functions: &[FunctionTime],
    args: &Args,
    terminal: &Terminal,
) -> io::Result<()> {
    let mut sorted: Vec<&FunctionTime> = functions.iter().collect();
    let own = |f: &FunctionTime| if args.raw { f.raw_self_ns } else { f.self_ns };
    sorted.sort_by_key(|f| (u64::MAX - own(f), f.function_id));
    let whole_ns: u64 = sorted.iter().map(|f| own(f)).sum();
    let names = ["self", "share", "inclusive", "calls", "function"];
    let mut table = Table::new(columns(&names));
    let shown = &sorted[..args.most().min(sorted.len())];
    let names: Vec<&str> = shown.iter().map(|f| f.function.as_str()).collect();
    for (function, name) in shown.iter().zip(all_within(&names, NAME_COLUMNS)) {
        let inclusive_ns = match args.raw {
            true => function.raw_inclusive_ns,
            false => function.inclusive_ns,
        };
        let rough = rough_mark(function, args.raw);
        table.push(vec![
            Some(format!("{rough}{}", duration(own(function)))),
            Some(format!("{rough}{}", share(own(function), whole_ns))),
            Some(duration(inclusive_ns)),
            Some(grouped(function.calls)),
            Some(placed(name, function)),
        ]);
    }
    table.flush(out, layout(terminal), terminal.stdout_colour)?;
    if sorted.len() > args.most() {
        let rest_ns: u64 = sorted[args.most()..].iter().map(|f| own(f)).sum();
        let more = (sorted.len() - args.most()) as u64;
        writeln!(
            out,
            "{} more took {} ({}); --limit {} shows them",
            count(more, "function"),
            duration(rest_ns),
            share(rest_ns, whole_ns),
            sorted.len()
        )?;
    }
    Ok(())
}

/// Marks a time of which little is left without what recording cost, or that may have fewer waits in it than were taken out.
fn rough_mark(function: &FunctionTime, raw: bool) -> &'static str {
    match function.is_rough() && !raw {
        true => "~",
        false => "",
    }
}

/// A function's name, with its place in the source if known, or else its module.
pub(super) fn place(function: &FunctionTime) -> String {
    placed(within(&function.function, NAME_COLUMNS), function)
}

fn placed(name: String, function: &FunctionTime) -> String {
    let file = function
        .file
        .as_deref()
        .and_then(|file| file.rsplit('/').next());
    match (file, function.line, &function.module) {
        (Some(file), Some(line), _) => format!("{name} ({file}:{line})"),
        (_, _, Some(module)) => format!("{name} [{module}]"),
        _ => name,
    }
}

pub(super) fn columns(names: &[&str]) -> Vec<Column> {
    let last = names.len() - 1;
    let column = |(at, name): (usize, &&str)| Column {
        name: (*name).to_owned(),
        align: if at == last {
            Align::Left
        } else {
            Align::Right
        },
    };
    names.iter().enumerate().map(column).collect()
}

pub(super) fn layout(terminal: &Terminal) -> Layout {
    match terminal.stdout {
        true => Layout::Fit(Terminal::size().0),
        false => Layout::Whole,
    }
}

fn share(part: u64, whole: u64) -> String {
    format!("{:.1} %", part as f64 * 100.0 / whole.max(1) as f64)
}

fn notes(out: &mut dyn Write, found: &Report, raw: bool) -> io::Result<()> {
    let cost = &found.cost;
    if cost.folded_calls > 0 {
        writeln!(
            out,
            "{} are on paths too many to tell apart: the tree folds them into \"(more paths)\"",
            count(cost.folded_calls, "call")
        )?;
    }
    if raw {
        return writeln!(out, "times are as measured, with what recording cost");
    }
    let waited_ns = cost.held_ns + cost.processor_wait_ns;
    if cost.inside_ns != 0.0 || cost.outside_ns != 0.0 || waited_ns != 0 {
        subtracted(out, cost)?;
    }
    unknown_waits(out, found)?;
    mostly_waits(out, found)?;
    rough(out, found)
}

fn mostly_waits(out: &mut dyn Write, found: &Report) -> io::Result<()> {
    match found.mostly_waited() {
        true => writeln!(
            out,
            "threads waited for a processor for longer than they ran: shares are rough; record when the machine is less busy"
        ),
        false => Ok(()),
    }
}

fn subtracted(out: &mut dyn Write, cost: &CostNote) -> io::Result<()> {
    write!(
        out,
        "subtracted as the cost of recording: {:.0} ns within each call, {:.0} ns in its caller",
        cost.inside_ns, cost.outside_ns
    )?;
    if cost.held_ns > 0 {
        write!(
            out,
            "; {} in which threads were stopped or waited for the recorder",
            duration(cost.held_ns)
        )?;
    }
    if cost.processor_wait_ns > 0 {
        write!(
            out,
            "; {} in which threads waited for a processor",
            duration(cost.processor_wait_ns)
        )?;
    }
    writeln!(out, " (--raw has all of it)")
}

/// Names the threads whose times are with their waits for a processor.
fn unknown_waits(out: &mut dyn Write, found: &Report) -> io::Result<()> {
    let unknown: Vec<_> = found.with_unknown_waits().collect();
    if unknown.is_empty() {
        return Ok(());
    }
    let names = unknown.iter().take(NAMES);
    let mut names: Vec<String> = names.map(|thread| found.thread_name(thread.tid)).collect();
    if unknown.len() > NAMES {
        names.push(format!("{} more", unknown.len() - NAMES));
    }
    let names = names.join(", ");
    writeln!(
        out,
        "not subtracted, because they are not known: waits for a processor of {}",
        escaped(&names)
    )
}

fn rough(out: &mut dyn Write, found: &Report) -> io::Result<()> {
    let rough = found.rough();
    if !rough.is_empty() {
        let all = || rough.iter().take(NAMES);
        let name = |f: &FunctionTime| within(&f.function, NAME_COLUMNS);
        let most = all().map(|f| format!("{} at most {}", name(f), duration(f.self_most_ns)));
        let names = all().map(|f| format!("-x '{}'", name(f)));
        writeln!(
            out,
            "~ is rough: recording cost more than these functions themselves took ({}); record without them: {}",
            most.collect::<Vec<_>>().join(", "),
            names.collect::<Vec<_>>().join(" ")
        )?;
    }
    Ok(())
}

/// Returns the functions of a name: all of exactly that name, or else those whose name lacks no more than scopes or template
/// arguments of it, or else the only one with that part.
///
/// # Errors
/// There is none, or there are several.
pub fn chosen<'r>(found: &'r Report, wanted: &str) -> Result<Vec<&'r FunctionTime>, Error> {
    let all = || found.functions.iter();
    let exact: Vec<_> = all().filter(|f| f.function == wanted).collect();
    if !exact.is_empty() {
        return Ok(exact);
    }
    let shown: Vec<_> = all().filter(|f| is_shown_as(f, wanted)).collect();
    if !shown.is_empty() {
        return Ok(shown);
    }
    let named: Vec<_> = all()
        .filter(|f| names_function(wanted, &f.function))
        .collect();
    if !named.is_empty() {
        return Ok(named);
    }
    let part: Vec<_> = all().filter(|f| f.function.contains(wanted)).collect();
    match part.as_slice() {
        [_] => Ok(part),
        [] => Err(Error::usage(
            format!("no recorded call is of a function called {wanted}"),
            Some(match nearest(wanted, all().map(|f| f.function.as_str())) {
                Some(near) => format!("did you mean {}?", within(near, NAME_COLUMNS)),
                None => "hindsight report RECORDING lists those that were called; the table probes says which are not recorded".to_owned(),
            }),
        )),
        several => {
            let names = several.iter().take(NAMES);
            let names = names.map(|f| within(&f.function, NAME_COLUMNS));
            let mut names = names.collect::<Vec<_>>().join(", ");
            if several.len() > NAMES {
                names += &format!(" and {} more", several.len() - NAMES);
            }
            Err(Error::usage(
                format!("{wanted} is a part of {} names", several.len()),
                Some(format!("name one of {names}")),
            ))
        }
    }
}

/// Returns whether a function has this name in the tables, which use short names.
fn is_shown_as(function: &FunctionTime, wanted: &str) -> bool {
    within(&function.function, NAME_COLUMNS) == wanted
}

/// Writes functions, each between its callers and callees.
///
/// # Errors
/// Those of `out`.
pub fn around(
    out: &mut dyn Write,
    found: &Report,
    functions: &[&FunctionTime],
    args: &Args,
    terminal: &Terminal,
) -> io::Result<()> {
    let whole: Vec<&FunctionTime> = found.functions.iter().collect();
    let whole_ns: u64 = whole
        .iter()
        .map(|f| if args.raw { f.raw_self_ns } else { f.self_ns })
        .sum();
    for function in functions {
        let (own_ns, inclusive_ns) = match args.raw {
            true => (function.raw_self_ns, function.raw_inclusive_ns),
            false => (function.self_ns, function.inclusive_ns),
        };
        let rough = rough_mark(function, args.raw);
        let head = place(function);
        let head = terminal.stdout_colour.paint(Paint::Heading, escaped(&head));
        writeln!(
            out,
            "{head}: {}, self {rough}{} ({rough}{}), inclusive {} ({})",
            count(function.calls, "call"),
            duration(own_ns),
            share(own_ns, whole_ns),
            duration(inclusive_ns),
            share(inclusive_ns, whole_ns),
        )?;
        let callers: Vec<_> = found.callers(function.function_id).collect();
        let callees = found.callees(function.function_id);
        let callees: Vec<_> = callees.map(|(of, edge)| (Some(of), edge)).collect();
        for (heading, edges) in [("callers", callers), ("callees", callees)] {
            writeln!(out)?;
            if edges.is_empty() {
                writeln!(out, " no {heading} were recorded")?;
                continue;
            }
            let mut table = Table::new(columns(&["inclusive", "calls", heading]));
            for (other, edge) in edges.iter().take(args.most()) {
                let ns = if args.raw {
                    edge.raw_inclusive_ns
                } else {
                    edge.inclusive_ns
                };
                table.push(vec![
                    Some(duration(ns)),
                    Some(grouped(edge.calls)),
                    Some(other.map_or_else(|| "(not recorded)".to_owned(), place)),
                ]);
            }
            table.flush(out, layout(terminal), terminal.stdout_colour)?;
            if edges.len() > args.most() {
                writeln!(out, "{} more {heading}", edges.len() - args.most())?;
            }
        }
        writeln!(out)?;
    }
    notes(out, found, args.raw)
}

/// A line of the tree.
struct Line {
    id: usize,
    depth: usize,
}

/// Chooses the lines of the tree: the paths with the most time, down to the requested depth, each after its parent.
fn lines(paths: &Paths, args: &Args) -> (Vec<Line>, u64) {
    let mut depth = vec![0; paths.all.len()];
    let mut whole_ns = 0;
    for (id, path) in paths.all.iter().enumerate() {
        match path.parent {
            Some(parent) => depth[id] = depth[parent] + 1,
            None => whole_ns += path.times(args.raw).inclusive_ns,
        }
    }
    let is_small = |ns: u64| ns == 0 || (ns as f64) < whole_ns as f64 * LEAST_SHARE;
    let first = if args.threads { 0 } else { 1 };
    let ns = |id: usize| paths.all[id].times(args.raw).inclusive_ns;
    let mut kept: Vec<usize> = (0..paths.all.len())
        .filter(|id| (first..first + args.depth).contains(&depth[*id]) && !is_small(ns(*id)))
        .collect();
    kept.sort_by_key(|id| (u64::MAX - ns(*id), *id));
    kept.truncate(args.most());
    let mut is_kept = vec![false; paths.all.len()];
    for id in kept {
        is_kept[id] = true;
    }
    let children = paths.children(args.raw);
    let mut lines = Vec::new();
    let mut roots: Vec<usize> = paths.threads.iter().map(|(_, id)| *id).collect();
    roots.sort_by_key(|id| ns(*id));
    while let Some(id) = roots.pop() {
        if is_kept[id] {
            lines.push(Line {
                id,
                depth: depth[id] - first,
            });
        }
        if is_kept[id] || depth[id] < first {
            roots.extend(children[id].iter().rev());
        }
    }
    (lines, whole_ns)
}

/// Writes the tree of calls.
///
/// # Errors
/// Those of `out`.
pub fn tree(
    out: &mut dyn Write,
    found: &Report,
    args: &Args,
    terminal: &Terminal,
) -> io::Result<()> {
    let paths = found.shown(args.threads);
    let (lines, whole_ns) = lines(&paths, args);
    let mut table = Table::new(columns(&[
        "inclusive",
        "share",
        "self",
        "calls",
        "function",
    ]));
    for line in &lines {
        let path = &paths.all[line.id];
        let times = path.times(args.raw);
        let is_thread = path.parent.is_none();
        table.push(vec![
            Some(duration(times.inclusive_ns)),
            Some(share(times.inclusive_ns, whole_ns)),
            Some(duration(times.self_ns)),
            (!is_thread)
                .then(|| grouped(path.calls))
                .or(Some(String::new())),
            Some(format!(
                "{}{}",
                "  ".repeat(line.depth),
                within(&found.path_name(&paths, line.id), NAME_COLUMNS)
            )),
        ]);
    }
    table.flush(out, layout(terminal), terminal.stdout_colour)?;
    let all = paths
        .all
        .iter()
        .filter(|path| path.parent.is_some())
        .count();
    let shown = lines
        .iter()
        .filter(|line| paths.all[line.id].parent.is_some());
    let shown = shown.count();
    if all > shown {
        writeln!(
            out,
            "{} of {} shown: the longest, at most {} deep; --limit and --depth show more",
            grouped(shown as u64),
            count(all as u64, "path"),
            args.depth
        )?;
    }
    notes(out, found, args.raw)
}

/// Returns the same lines as JSON, each with the number of its parent among them.
pub fn tree_json(found: &Report, args: &Args) -> Value {
    let paths = found.shown(args.threads);
    let (lines, _) = lines(&paths, args);
    let mut number = vec![None; paths.all.len()];
    let mut all = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        number[line.id] = Some(at);
        let path = &paths.all[line.id];
        all.push(json!({
            "parent": path.parent.and_then(|parent| number[parent]),
            "depth": line.depth,
            "function": found.path_name(&paths, line.id),
            "function_id": path.function,
            "calls": path.calls,
            "self_ns": path.times.self_ns,
            "inclusive_ns": path.times.inclusive_ns,
            "raw_self_ns": path.raw.self_ns,
            "raw_inclusive_ns": path.raw.inclusive_ns,
        }));
    }
    Value::Array(all)
}
