//! Folded stacks: a line per path, its functions from the outermost on, and its own time in ns. flamegraph.pl, inferno,
//! speedscope and others read it.

use std::io::{self, Write};

use super::Report;

impl Report {
    /// Writes folded stacks; with `by_thread` each begins with its thread.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write_folded(&self, out: &mut dyn Write, raw: bool, by_thread: bool) -> io::Result<()> {
        let paths = self.shown(by_thread);
        let children = paths.children(raw);
        let mut words: Vec<String> = Vec::new();
        let roots = paths.threads.iter().rev().map(|(_, id)| (*id, 0));
        let mut waiting: Vec<(usize, usize)> = roots.collect();
        while let Some((id, depth)) = waiting.pop() {
            words.truncate(depth);
            let is_named = by_thread || paths.all[id].parent.is_some();
            words.extend(is_named.then(|| one_word(&self.path_name(&paths, id))));
            let own_ns = paths.all[id].times(raw).self_ns;
            if own_ns > 0 {
                writeln!(out, "{} {own_ns}", words.join(";"))?;
            }
            let inner = children[id].iter().rev();
            waiting.extend(inner.map(|child| (*child, words.len())));
        }
        Ok(())
    }
}

/// A semicolon would end the name, and the end of the line everything.
fn one_word(name: &str) -> String {
    name.replace(';', ":").replace(['\n', '\r'], " ")
}
