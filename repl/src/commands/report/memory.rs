//! The text about memory: what was left at the end, the peak, and who allocated it.

use std::io::{self, Write};

use query::memory::{AllocationSite, Frame, Held, MemoryReport};
use server::quantity::{count, duration, grouped};

use super::text::{columns, layout};
use crate::render::{Table, Terminal};

/// Frames of a place that are shown.
const FRAMES: usize = 4;
const HOW: &str = "hindsight record --memory PROGRAM records the calls that allocate and free";

/// Writes the report: totals, and the places that allocated most of what was left.
///
/// # Errors
/// Those of `out`.
pub fn memory(
    out: &mut dyn Write,
    found: &MemoryReport,
    limit: usize,
    terminal: &Terminal,
) -> io::Result<()> {
    if !found.has_makers {
        return writeln!(out, "no call that allocates was recorded; {HOW}");
    }
    freed_twice(out, found)?;
    totals(out, found)?;
    let live: Vec<&AllocationSite> = found.sites.iter().filter(|s| s.live.blocks > 0).collect();
    for (heading, is_pages) in [("left at the end", false), ("mapped at the end", true)] {
        let of = live.iter().filter(|site| site.is_pages == is_pages);
        let sites: Vec<&AllocationSite> = of.copied().collect();
        if sites.is_empty() {
            continue;
        }
        writeln!(out)?;
        let mut table = Table::new(columns(&["bytes", "blocks", "all blocks", heading]));
        for site in sites.iter().take(limit) {
            table.push(vec![
                Some(grouped(site.live.bytes)),
                Some(grouped(site.live.blocks)),
                Some(grouped(site.made.blocks)),
                Some(place(site)),
            ]);
        }
        table.flush(out, layout(terminal), terminal.stdout_colour)?;
        if sites.len() > limit {
            let more = count((sites.len() - limit) as u64, "more place");
            writeln!(out, "{more}; --limit {} shows them", sites.len())?;
        }
    }
    notes(out, found)
}

fn totals(out: &mut dyn Write, found: &MemoryReport) -> io::Result<()> {
    writeln!(out, "left at the end: {}", held(found.live))?;
    if found.live_pages.blocks > 0 {
        let pages = found.live_pages;
        let mappings = count(pages.blocks, "mapping");
        writeln!(out, "mapped at the end: {} in {mappings}", amount(pages))?;
    }
    if let Some(peak) = found.peak {
        let when = duration(u64::try_from(peak.ts_ns).unwrap_or(0));
        let seq = peak.seq;
        writeln!(out, "peak: {} at {when} (seq {seq})", held(peak.held))?;
    }
    let (made, freed) = (held(found.made), held(found.freed));
    writeln!(out, "allocated: {made}; freed: {freed}")
}

fn amount(held: Held) -> String {
    match held.bytes {
        1 => "1 byte".to_owned(),
        bytes => format!("{} bytes", grouped(bytes)),
    }
}

fn held(held: Held) -> String {
    format!("{} in {}", amount(held), count(held.blocks, "block"))
}

/// `malloc in make_order (app.c:17) < load (app.c:30)`
fn place(site: &AllocationSite) -> String {
    let own = Frame::from_own_code(&site.frames);
    let frames: Vec<String> = own.iter().take(FRAMES).map(Frame::short_text).collect();
    let more = if own.len() > FRAMES { " < ..." } else { "" };
    match frames.is_empty() {
        true => site.function.clone(),
        false => format!("{} in {}{more}", site.function, frames.join(" < ")),
    }
}

/// Most blocks freed twice that are written.
const TWICE: usize = 5;

/// `freed twice: 0x55d0 (32 bytes, allocated at seq 7): seq 10 in drop (app.c:2) < main, and again seq 13 in drop (app.c:2) < main`
fn freed_twice(out: &mut dyn Write, found: &MemoryReport) -> io::Result<()> {
    let within = |seq: u64, frames: &[Frame]| {
        let own = Frame::from_own_code(frames).iter();
        let frames: Vec<String> = own.take(FRAMES).map(Frame::short_text).collect();
        match frames.is_empty() {
            true => format!("seq {seq}"),
            false => format!("seq {seq} in {}", frames.join(" < ")),
        }
    };
    for block in found.freed_twice.iter().take(TWICE) {
        let mut facts: Vec<String> = block
            .size
            .map(|size| count(size, "byte"))
            .into_iter()
            .collect();
        facts.extend(block.made_seq.map(|seq| format!("allocated at seq {seq}")));
        let facts = match facts.is_empty() {
            true => String::new(),
            false => format!(" ({})", facts.join(", ")),
        };
        writeln!(
            out,
            "freed twice: {}{facts}: {}, and again {}",
            block.address,
            within(block.freed_seq, &block.freed_in),
            within(block.again_seq, &block.again_in)
        )?;
    }
    let more = found.freed_twice.len().saturating_sub(TWICE) as u64;
    if more > 0 {
        writeln!(out, "{} more freed twice", count(more, "block"))?;
    }
    if !found.freed_twice.is_empty() {
        writeln!(
            out,
            "(or what is not recorded was given the address in between)"
        )?;
    }
    Ok(())
}

fn notes(out: &mut dyn Write, found: &MemoryReport) -> io::Result<()> {
    if found.lost.blocks > 0 {
        writeln!(
            out,
            "{}: freed by no recorded call, but their addresses were allocated again",
            held(found.lost)
        )?;
    }
    if found.freed_unknown_blocks > 0 {
        writeln!(
            out,
            "{} more freed, allocated before the recording, by what was not recorded, or by the C library for itself",
            count(found.freed_unknown_blocks, "block")
        )?;
    }
    if found.unknown_blocks > 0 {
        writeln!(
            out,
            "{} of posix_memalign: their addresses are not known, so they are not counted",
            count(found.unknown_blocks, "block")
        )?;
    }
    Ok(())
}
