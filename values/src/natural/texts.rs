//! Texts in quotes, of characters of any width.

use super::{REPEATS, Renderer};
use crate::strings;

impl Renderer<'_> {
    pub(super) fn quoted(&mut self, bytes: &[u8], width: usize, more: bool) {
        let limit = self.options.max_string.saturating_mul(width);
        let mut end = bytes.len().min(limit);
        if width == 1 && end < bytes.len() {
            // Not in the middle of a character.
            let back = bytes[..end]
                .iter()
                .rev()
                .take(4)
                .position(|b| b & 0xc0 != 0x80);
            let start = back.map(|back| end - 1 - back);
            if let Some(start) = start.filter(|s| bytes[*s] >= 0xc0 && bytes[end] & 0xc0 == 0x80) {
                end = start;
            }
        }
        let text = strings::to_utf8(&bytes[..end], width);
        self.push(&strings::quoted(&text, '"'));
        if more || end < bytes.len() {
            self.out.push_cut();
        }
    }

    /// Writes characters of one byte. Runs of characters that are not printed are counted, as in gdb.
    pub(super) fn folded(&mut self, bytes: &[u8]) {
        let (mut at, mut shown) = (0, 0);
        let end = bytes.len();
        let is_single = |at: usize| run_at(bytes, at) <= REPEATS as usize;
        while at < end && shown < self.options.max_string {
            self.push(if at > 0 { ", " } else { "" });
            let run = run_at(bytes, at);
            if run > REPEATS as usize {
                let unit = strings::quoted(&bytes[at..=at], '\'');
                self.push(&format!("{unit} <repeats {run} times>"));
                (at, shown) = (at + run, shown + REPEATS as usize);
                continue;
            }
            let most = end.min(at.saturating_add(self.options.max_string - shown));
            let mut next = at;
            while next < most && is_single(next) {
                next += run_at(&bytes[..most], next);
            }
            self.push(&strings::quoted(&bytes[at..next], '"'));
            (at, shown) = (next, shown + (next - at));
        }
        if at < end {
            self.out.push_cut();
        }
    }
}

/// Returns how often the character at `at` is repeated, if it is one that is not printed, and 1 for others.
fn run_at(bytes: &[u8], at: usize) -> usize {
    let first = bytes[at];
    match first.is_ascii_graphic() || first == b' ' || first >= 0x80 {
        true => 1,
        false => bytes[at..]
            .iter()
            .take_while(|byte| **byte == first)
            .count(),
    }
}

/// Returns whether characters that are not printed are repeated so often that they are counted.
pub(super) fn has_runs(bytes: &[u8]) -> bool {
    let mut at = 0;
    while at < bytes.len() {
        let run = run_at(bytes, at);
        if run > REPEATS as usize {
            return true;
        }
        at += run;
    }
    false
}
