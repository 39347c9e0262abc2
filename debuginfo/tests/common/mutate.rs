//! Changes files at random, from a fixed seed.

/// A random number generator with the same sequence on every run (xorshift64*).
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed.max(1))
    }

    /// Returns a number below `bound`, which is at least 1.
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let number = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32;
        number as usize % bound
    }
}

/// Returns the parts of an input to change: the header, the section headers and each section of an ELF file that begins
/// at `start`, or else all of the input.
pub fn targets(input: &[u8], start: usize) -> Vec<(usize, usize)> {
    let word = |at: usize, len: usize| {
        let bytes = input.get(start + at..start + at + len)?;
        let value = bytes.iter().rev().fold(0, |v, b| v << 8 | usize::from(*b));
        Some(value)
    };
    let mut targets = vec![(start, start + 64)];
    if let (Some(table), Some(count)) = (word(0x28, 8), word(0x3c, 2)) {
        targets.push((start + table, start + table + 64 * count));
        for header in (0..count).map(|index| table + 64 * index) {
            if let (Some(offset), Some(size)) = (word(header + 24, 8), word(header + 32, 8)) {
                targets.push((start + offset, start + offset + size));
            }
        }
    }
    let inside = |(from, to): &(usize, usize)| from < to && *to <= input.len();
    let elf = input[start..].starts_with(b"\x7fELF");
    targets.retain(|target| elf && inside(target));
    if targets.is_empty() {
        targets.push((start, input.len()));
    }
    targets
}

/// Changes, cuts, doubles or moves a few bytes, mostly in one of `targets`.
pub fn mutate(bytes: &mut Vec<u8>, targets: &[(usize, usize)], random: &mut Random) {
    for _ in 0..1 + random.below(5) {
        let (from, to) = targets[random.below(targets.len())];
        let to = to.min(bytes.len());
        if from >= to {
            continue;
        }
        let at = from + random.below(to - from);
        let end = at + random.below((bytes.len() - at).min(64) + 1);
        match random.below(12) {
            0..=3 => bytes[at] ^= 1 << random.below(8),
            4 | 5 => bytes[at] = random.below(256) as u8,
            6 | 7 => bytes[at] = [0, 1, 0x7f, 0x80, 0xff][random.below(5)],
            8 => bytes[at..end].fill(0xff),
            9 => bytes[at..end].rotate_left((end - at) / 2),
            // The rest moves, so headers no longer point to their sections. This is rarer, because most of the file
            // becomes nonsense.
            10 if random.below(4) == 0 => drop(bytes.drain(at..end)),
            11 if random.below(4) == 0 => bytes.truncate(at),
            _ => bytes[at..end].fill(0),
        }
    }
}
