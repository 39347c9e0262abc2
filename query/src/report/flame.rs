//! A flame graph as one SVG file that needs nothing else: no script, so that mail programs, code hosts and reviewers show
//! it. Each box has its name and its numbers as a title. Boxes too narrow to be seen are left out.
//!
//! It is less to write this than to depend on the crate inferno, whose licence (CDDL) no other dependency has.

use std::fmt::Write as _;
use std::io::{self, Write};

use values::quantity::count;

use super::{Path, Paths, Report};

const WIDTH: f64 = 1200.0;
const MARGIN: f64 = 10.0;
const ROW: f64 = 18.0;
const HEAD: f64 = 48.0;
/// Narrower boxes are left out.
const NARROWEST: f64 = 0.2;
/// The width of a character, somewhat more than most monospace fonts have at this size.
const CHARACTER: f64 = 7.3;

/// A box.
struct Boxed {
    id: usize,
    depth: usize,
    x: f64,
    width: f64,
}

impl Report {
    /// Writes a flame graph of all threads together, or of each, called `title`.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write_flame_graph(
        &self,
        out: &mut dyn Write,
        title: &str,
        raw: bool,
        by_thread: bool,
    ) -> io::Result<()> {
        let paths = self.shown(by_thread);
        let whole_ns: u64 = paths
            .threads
            .iter()
            .map(|(_, id)| paths.all[*id].times(raw).inclusive_ns)
            .sum();
        let boxes = boxes(&paths, raw, whole_ns);
        let rows = boxes.iter().map(|b| b.depth + 1).max().unwrap_or(1);
        let height = HEAD + rows as f64 * ROW + MARGIN;
        writeln!(
            out,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
             <svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" \
             viewBox=\"0 0 {WIDTH} {height}\">\n\
             <style>text {{ font: 12px monospace; fill: #1a1a1a }} .title {{ font: bold 15px sans-serif }} \
             .note {{ font: 12px sans-serif; fill: #555 }} rect {{ stroke: #fff; stroke-width: 0.5 }} \
             g:hover rect {{ stroke: #000; stroke-width: 1 }}</style>\n\
             <rect x=\"0\" y=\"0\" width=\"{WIDTH}\" height=\"{height}\" fill=\"#fff\"/>\n\
             <text class=\"title\" x=\"{MARGIN}\" y=\"20\">{}</text>\n\
             <text class=\"note\" x=\"{MARGIN}\" y=\"38\">{}</text>",
            xml(title),
            xml(&format!(
                "{} in recorded calls, {}. The width of a box is its time with all that it called.",
                ms(whole_ns),
                if raw {
                    "as measured"
                } else {
                    "without the cost of recording"
                },
            ))
        )?;
        for shown in &boxes {
            let path = &paths.all[shown.id];
            let name = self.path_name(&paths, shown.id);
            write_box(out, shown, path, &name, raw, whole_ns)?;
        }
        writeln!(out, "</svg>")
    }
}

fn boxes(paths: &Paths, raw: bool, whole_ns: u64) -> Vec<Boxed> {
    let children = paths.children(raw);
    let scale = (WIDTH - 2.0 * MARGIN) / whole_ns.max(1) as f64;
    let mut boxes = Vec::new();
    let mut waiting: Vec<(usize, usize, u64)> = Vec::new();
    let mut from_ns = 0;
    for (_, id) in &paths.threads {
        waiting.push((*id, 0, from_ns));
        from_ns += paths.all[*id].times(raw).inclusive_ns;
    }
    while let Some((id, depth, mut from_ns)) = waiting.pop() {
        let width = paths.all[id].times(raw).inclusive_ns as f64 * scale;
        if width < NARROWEST {
            continue;
        }
        boxes.push(Boxed {
            id,
            depth,
            x: MARGIN + from_ns as f64 * scale,
            width,
        });
        for child in &children[id] {
            waiting.push((*child, depth + 1, from_ns));
            from_ns += paths.all[*child].times(raw).inclusive_ns;
        }
    }
    boxes.sort_by(|a, b| a.depth.cmp(&b.depth).then(a.x.total_cmp(&b.x)));
    boxes
}

fn write_box(
    out: &mut dyn Write,
    shown: &Boxed,
    path: &Path,
    name: &str,
    raw: bool,
    whole_ns: u64,
) -> io::Result<()> {
    let times = path.times(raw);
    let share = times.inclusive_ns as f64 * 100.0 / whole_ns.max(1) as f64;
    let calls = match path.parent {
        Some(_) => format!(", {}", count(path.calls, "call")),
        None => String::new(),
    };
    let y = HEAD + shown.depth as f64 * ROW;
    write!(
        out,
        "<g><title>{}\n{} ({share:.2} %), {} of its own{calls}</title>\
         <rect x=\"{:.2}\" y=\"{y}\" width=\"{:.2}\" height=\"{ROW}\" fill=\"{}\" rx=\"2\"/>",
        xml(name),
        ms(times.inclusive_ns),
        ms(times.self_ns),
        shown.x,
        shown.width,
        colour(path, name)
    )?;
    let room = ((shown.width - 6.0) / CHARACTER).max(0.0) as usize;
    if let Some(text) = fitting(name, room) {
        write!(
            out,
            "<text x=\"{:.2}\" y=\"{}\">{}</text>",
            shown.x + 3.0,
            y + 13.0,
            xml(&text)
        )?;
    }
    writeln!(out, "</g>")
}

/// Cuts a name to so many characters; `None` where too little would be left.
fn fitting(name: &str, room: usize) -> Option<String> {
    if name.chars().count() <= room {
        return Some(name.to_owned());
    }
    let kept = room.checked_sub(2).filter(|kept| *kept >= 2)?;
    Some(name.chars().take(kept).collect::<String>() + "..")
}

/// Warm colours, the same for a name everywhere; grey for threads and for what is not told apart.
fn colour(path: &Path, name: &str) -> String {
    if path.function.is_none() {
        return "#d0d0d0".to_owned();
    }
    let hash = name.bytes().fold(0xcbf2_9ce4_u32, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    });
    // From red over orange to yellow, light enough for dark letters.
    let (red, green, blue) = (
        222 + hash % 34,
        110 + (hash >> 8) % 116,
        60 + (hash >> 16) % 48,
    );
    format!("#{red:02x}{green:02x}{blue:02x}")
}

fn ms(ns: u64) -> String {
    format!("{:.3} ms", ns as f64 / 1e6)
}

/// Escapes what has a meaning in XML, and leaves out what it cannot have.
fn xml(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' | '\t' => out.push(c),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => {
                // Writing to a String cannot fail.
                _ = write!(out, "\\u{{{:x}}}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out
}
