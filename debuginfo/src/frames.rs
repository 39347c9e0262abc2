//! The start and end of code, according to the unwind tables.

use gimli::{BaseAddresses, CieOrFde, LittleEndian, UnwindSection};

use crate::elf::Elf;
use crate::files::Files;
use crate::model::{CodeRange, Svma};

/// Returns the ranges of the FDEs of `.eh_frame`, or of `.debug_frame` if there is none, sorted and without empty ones.
pub(crate) fn read(files: &Files) -> Vec<CodeRange> {
    let main = &files.main;
    let mut ranges = eh_frame(main);
    if ranges.is_empty() {
        ranges = debug_frame(main);
    }
    if let (true, Some(debug)) = (ranges.is_empty(), &files.debug) {
        ranges = debug_frame(debug);
    }
    ranges.retain(|r| !r.is_empty() && main.is_code(r.start.0));
    ranges.sort_unstable();
    ranges.dedup();
    ranges
}

fn eh_frame(elf: &Elf) -> Vec<CodeRange> {
    let Some(section) = elf.section(".eh_frame") else {
        return Vec::new();
    };
    let address = |name| elf.section(name).map_or(0, |s| s.addr);
    let bases = BaseAddresses::default()
        .set_eh_frame(section.addr)
        .set_text(address(".text"))
        .set_got(address(".got"));
    let mut frames = gimli::EhFrame::new(elf.section_bytes(section), LittleEndian);
    frames.set_address_size(8);
    collect(&frames, &bases)
}

fn debug_frame(elf: &Elf) -> Vec<CodeRange> {
    let Some(Ok(bytes)) = elf.contents(".debug_frame") else {
        return Vec::new();
    };
    let mut frames = gimli::DebugFrame::new(&bytes, LittleEndian);
    frames.set_address_size(8);
    collect(&frames, &BaseAddresses::default())
}

fn collect<'a, S>(section: &S, bases: &BaseAddresses) -> Vec<CodeRange>
where
    S: UnwindSection<gimli::EndianSlice<'a, LittleEndian>>,
{
    let mut ranges = Vec::new();
    // Many FDEs share one CIE, so the last one parsed is kept.
    let mut last_cie = None;
    let mut entries = section.entries(bases);
    while let Ok(Some(entry)) = entries.next() {
        let CieOrFde::Fde(partial) = entry else {
            continue;
        };
        let parsed = partial.parse(|section, bases, offset| match &last_cie {
            Some((at, cie)) if *at == offset => Ok(Clone::clone(cie)),
            _ => {
                let cie = section.cie_from_offset(bases, offset)?;
                last_cie = Some((offset, cie.clone()));
                Ok(cie)
            }
        });
        if let Ok(fde) = parsed {
            let start = fde.initial_address();
            ranges.push(CodeRange {
                start: Svma(start),
                end: Svma(start.saturating_add(fde.len())),
            });
        }
    }
    ranges
}

/// Returns the range that contains `svma`, the innermost if several do.
pub(crate) fn find(ranges: &[CodeRange], svma: Svma) -> Option<CodeRange> {
    let after = ranges.partition_point(|r| r.start <= svma);
    let candidates = ranges[..after].iter().rev().take(8);
    candidates.copied().find(|r| r.contains(svma))
}
