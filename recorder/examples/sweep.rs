//! Measures how long the branch sweep takes, and how long its saved result takes to load: `sweep FILE...`. Also prints
//! how many branches lead past a start, and how many bytes are saved.

use std::time::Instant;

use debuginfo::Module;
use recorder::{arm::sweeps::Sweep, displace::sweep};

fn main() {
    for path in std::env::args().skip(1) {
        let elf = Module::open(&path).expect("an ELF file");
        let began = Instant::now();
        let (starts, parts) = (elf.code_starts(), elf.starts_of_parts());
        let ranges = elf.code_ranges();
        println!(
            "{path}: {} starts of code, read in {:?}",
            starts.len(),
            began.elapsed()
        );
        let code: Vec<(u64, &[u8])> = ranges
            .iter()
            .filter_map(|range| Some((range.start.0, elf.code(range.start, range.len())?)))
            .collect();
        let bytes: usize = code.iter().map(|(_, bytes)| bytes.len()).sum();
        let began = Instant::now();
        let swept = sweep(&code, starts, &parts);
        println!(
            "  swept {bytes} bytes in {:?}: {} branches behind starts, {} of {} parts called",
            began.elapsed(),
            swept.inside.len(),
            swept.called.len(),
            parts.len()
        );
        Sweep::of(&elf, &[]);
        let began = Instant::now();
        let kept = Sweep::of(&elf, &[]);
        println!(
            "  taken from the cache in {:?}: {} branches",
            began.elapsed(),
            kept.inside(0).len()
        );
    }
}
