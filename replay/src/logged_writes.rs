//! Writes that the program made to places whose writes are logged (`record --log-writes`): each is an event that says which
//! instruction wrote what.
//!
//! There may be millions to few places. For each place the bytes of all its writes are kept one after the other.

use std::collections::VecDeque;
use std::ops::Range;

use rustc_hash::FxHashMap;
use store::columns::ReadEvent;

use crate::error::Result;
use crate::event::Kind;
use crate::marks::Mark;
use crate::timeline::Timeline;

/// Events that are read at a time.
const AT_ONCE: usize = 1 << 13;

/// One write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoggedWrite {
    /// Its event.
    pub seq: u64,
    /// The thread that wrote.
    pub tid: Option<u32>,
    /// The place, in the user's words.
    pub target: String,
    /// Its first byte.
    pub address: u64,
    /// Its bytes before; `None`: they are not known, because there was no memory when it began to be logged.
    pub old: Option<Vec<u8>>,
    /// Its bytes since then.
    pub new: Vec<u8>,
    /// The instruction that wrote, if it could be determined.
    pub pc: Option<u64>,
    /// The function of the program's own code that wrote, or that had called the one that did.
    pub function: Option<String>,
    /// Its file.
    pub file: Option<String>,
    /// The line in it.
    pub line: Option<u32>,
    /// The function that wrote, if it is another one.
    pub via: Option<String>,
    /// Other threads wrote there too before the bytes were read.
    pub shared: bool,
}

impl LoggedWrite {
    /// Reads it from its event.
    fn of(event: ReadEvent) -> Option<Self> {
        if Kind::of_name(&event.kind) != Kind::LoggedWrite {
            return None;
        }
        let detail = event.detail.unwrap_or_default();
        let mut texts = detail.split('\t');
        let mut next = || {
            let text = texts.next().filter(|text| !text.is_empty());
            text.map(str::to_owned)
        };
        let (file, line, via, shared) = (next(), next(), next(), next());
        Some(Self {
            seq: event.seq,
            tid: event.tid,
            target: event.text.unwrap_or_default(),
            address: event.addr?,
            old: event.old,
            new: event.bytes.unwrap_or_default(),
            pc: event.value.map(|pc| pc as u64),
            function: event.aux,
            file,
            line: line.and_then(|line| line.parse().ok()),
            via,
            shared: shared.is_some(),
        })
    }
}

/// What all writes to one place of one name wrote.
#[derive(Clone, Debug)]
struct LoggedRange {
    range: Range<u64>,
    /// The number of its name.
    target: usize,
    /// The events, in order.
    seqs: Vec<u64>,
    /// The bytes of each, one after the other.
    bytes: Vec<u8>,
}

/// What all logged writes wrote, by place.
#[derive(Clone, Debug, Default)]
pub(crate) struct LoggedBytes {
    places: Vec<LoggedRange>,
    /// The places by range and name: a variable of a function has many.
    by_range: FxHashMap<(u64, u64, usize), usize>,
    /// All writes in order: event, place, and number among those to the place.
    order: Vec<(u64, u32, u32)>,
    /// The names of the places, as the user wrote them.
    targets: Vec<String>,
    /// The stacks of threads, as far as they are known.
    stacks: Vec<(u32, Range<u64>)>,
}

/// What a logged write wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Written<'b> {
    pub target: &'b str,
    pub address: u64,
    pub bytes: &'b [u8],
}

impl LoggedBytes {
    fn add(&mut self, event: &ReadEvent) {
        let (Some(address), Some(bytes)) = (event.addr, &event.bytes) else {
            return;
        };
        let range = address..address.saturating_add(bytes.len() as u64);
        let name = event.text.as_deref().unwrap_or_default();
        let target = self.targets.iter().position(|target| target == name);
        let target = target.unwrap_or_else(|| {
            self.targets.push(name.to_owned());
            self.targets.len() - 1
        });
        let key = (range.start, range.end, target);
        let known = *self.by_range.entry(key).or_insert(self.places.len());
        if known == self.places.len() {
            self.places.push(LoggedRange {
                range,
                target,
                seqs: Vec::new(),
                bytes: Vec::new(),
            });
        }
        let place = &mut self.places[known];
        let number = place.seqs.len() as u32;
        self.order.push((event.seq, known as u32, number));
        place.seqs.push(event.seq);
        place.bytes.extend_from_slice(bytes);
    }

    /// Returns what the last write to each place in `range` wrote, at or before event `seq`: event, address, bytes.
    pub(crate) fn last_in(
        &self,
        range: &Range<u64>,
        seq: u64,
    ) -> impl Iterator<Item = (u64, u64, &[u8])> {
        let inside = self
            .places
            .iter()
            .filter(|place| place.range.start < range.end && range.start < place.range.end);
        inside.filter_map(move |place| {
            let index = place.seqs.partition_point(|at| *at <= seq).checked_sub(1)?;
            let len = (place.range.end - place.range.start) as usize;
            let bytes = place.bytes.get(index * len..(index + 1) * len)?;
            Some((place.seqs[index], place.range.start, bytes))
        })
    }

    /// Returns what event `seq` wrote, and where, if it is a logged write.
    pub(crate) fn at(&self, seq: u64) -> Option<Written<'_>> {
        let found = self.order.binary_search_by_key(&seq, |(seq, ..)| *seq);
        let (_, place, index) = self.order[found.ok()?];
        let (place, index) = (&self.places[place as usize], index as usize);
        let len = (place.range.end - place.range.start) as usize;
        Some(Written {
            target: &self.targets[place.target],
            address: place.range.start,
            bytes: place.bytes.get(index * len..(index + 1) * len)?,
        })
    }

    /// Returns the names of all places, as the user wrote them.
    pub(crate) fn targets(&self) -> &[String] {
        &self.targets
    }

    /// Returns the thread whose stack has an address, if it is known.
    pub(crate) fn owner(&self, address: u64) -> Option<u32> {
        let mut stacks = self.stacks.iter().rev();
        let found = stacks.find(|(_, stack)| stack.contains(&address));
        found.map(|(tid, _)| *tid)
    }

    /// Returns the last write at or before event `seq` to exactly this place.
    pub(crate) fn last_to(&self, range: &Range<u64>, seq: u64) -> Option<u64> {
        let places = self.places.iter().filter(|place| place.range == *range);
        let last = places.filter_map(|place| {
            let index = place.seqs.partition_point(|at| *at <= seq).checked_sub(1)?;
            Some(place.seqs[index])
        });
        last.max()
    }

    /// Returns whether there are writes to a part of `range`.
    fn has_some_in(&self, range: &Range<u64>) -> bool {
        let mut places = self.places.iter();
        places.any(|place| place.range.start < range.end && range.start < place.range.end)
    }

    /// Returns how many later writes there are to exactly this place, and the last of them.
    fn after(&self, range: &Range<u64>, seq: u64) -> (usize, Option<u64>) {
        let places = self.places.iter().filter(|place| place.range == *range);
        // One place may be logged under several names.
        let mut later: Vec<u64> = places
            .flat_map(|place| &place.seqs[place.seqs.partition_point(|at| *at <= seq)..])
            .copied()
            .collect();
        later.sort_unstable();
        later.dedup();
        (later.len(), later.last().copied())
    }
}

impl Timeline {
    /// Returns the logged write that event `seq` is; `None`: it is none.
    ///
    /// # Errors
    /// The files cannot be read.
    pub fn logged_write(&self, seq: u64) -> Result<Option<LoggedWrite>> {
        if self.marks.between(Kind::LoggedWrite, seq, seq).is_empty() {
            return Ok(None);
        }
        Ok(self.others.event(seq)?.and_then(LoggedWrite::of))
    }

    /// Returns those of the events `seqs` (ascending) that are logged writes, by event.
    ///
    /// # Errors
    /// The files cannot be read.
    pub fn logged_writes_at(&self, seqs: &[u64]) -> Result<FxHashMap<u64, LoggedWrite>> {
        let mut found = FxHashMap::default();
        let marks = self.marks.all(Kind::LoggedWrite);
        let wanted = marks
            .iter()
            .filter(|mark| seqs.binary_search(&mark.seq).is_ok());
        let wanted: Vec<Mark> = wanted.copied().collect();
        for marks in wanted.chunks(AT_ONCE) {
            let writes = self.others.events(marks)?.into_iter();
            found.extend(
                writes
                    .filter_map(LoggedWrite::of)
                    .map(|write| (write.seq, write)),
            );
        }
        Ok(found)
    }

    /// Returns the last logged write at or before event `seq` to exactly these bytes.
    ///
    /// # Errors
    /// The files cannot be read.
    pub fn last_logged_to(&self, range: &Range<u64>, seq: u64) -> Result<Option<LoggedWrite>> {
        match self.logged_bytes()?.last_to(range, seq) {
            Some(seq) => self.logged_write(seq),
            None => Ok(None),
        }
    }

    /// Returns whether some logged write is to a part of these bytes.
    ///
    /// # Errors
    /// The files cannot be read.
    pub fn has_logged_in(&self, range: &Range<u64>) -> Result<bool> {
        Ok(self.logged_bytes()?.has_some_in(range))
    }

    /// Returns how many logged writes to exactly these bytes follow event `seq`, and the last one.
    ///
    /// # Errors
    /// The files cannot be read.
    pub fn logged_after(
        &self,
        range: &Range<u64>,
        seq: u64,
    ) -> Result<(usize, Option<LoggedWrite>)> {
        let (count, last) = self.logged_bytes()?.after(range, seq);
        let last = last.map(|seq| self.logged_write(seq)).transpose()?;
        Ok((count, last.flatten()))
    }

    /// Returns the last `most` logged writes to a place, as the user named it, in order; and how many there are in all.
    ///
    /// # Errors
    /// The files cannot be read.
    pub fn logged_writes(&self, target: &str, most: usize) -> Result<(Vec<LoggedWrite>, u64)> {
        let (mut last, mut count) = (VecDeque::new(), 0);
        for marks in self.marks.all(Kind::LoggedWrite).chunks(AT_ONCE) {
            for event in self.others.events(marks)? {
                if event.text.as_deref() != Some(target) {
                    continue;
                }
                count += 1;
                last.push_back(event);
                if last.len() > most {
                    last.pop_front();
                }
            }
        }
        let last = last.into_iter().filter_map(LoggedWrite::of);
        Ok((last.collect(), count))
    }

    /// Returns what all logged writes wrote.
    pub(crate) fn logged_bytes(&self) -> Result<&LoggedBytes> {
        if let Some(known) = self.on_demand.logged_bytes.get() {
            return Ok(known);
        }
        let mut found = LoggedBytes::default();
        for marks in self.marks.all(Kind::LoggedWrite).chunks(AT_ONCE) {
            for event in self.others.events(marks)? {
                found.add(&event);
            }
        }
        if !found.places.is_empty() {
            for event in self.others.events(self.marks.all(Kind::ThreadStart))? {
                if let (Some(tid), Some(low), Some(size)) = (event.tid, event.addr, event.size) {
                    found.stacks.push((tid, low..low.saturating_add(size)));
                }
            }
        }
        Ok(self.on_demand.logged_bytes.get_or_init(|| found))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(seq: u64, addr: u64, bytes: &[u8]) -> ReadEvent {
        ReadEvent {
            seq,
            ts_ns: 0,
            tid: Some(7),
            kind: "logged_write".to_owned(),
            text: Some("total".to_owned()),
            bytes: Some(bytes.to_vec()),
            addr: Some(addr),
            size: Some(bytes.len() as u64),
            value: Some(0x40_1136),
            aux: Some("add".to_owned()),
            probe: Some(1),
            detail: Some("/src/a.c\t12\tmemcpy\t".to_owned()),
            old: Some(vec![0; bytes.len()]),
        }
    }

    #[test]
    fn a_write_says_who_made_it() {
        let write = LoggedWrite::of(event(3, 0x10, &[1, 0])).unwrap();
        assert_eq!(
            (write.file.as_deref(), write.line),
            (Some("/src/a.c"), Some(12))
        );
        assert_eq!(write.function.as_deref(), Some("add"));
        assert_eq!(
            (write.via.as_deref(), write.shared),
            (Some("memcpy"), false)
        );
        assert_eq!(write.pc, Some(0x40_1136));
        let mut other = event(3, 0x10, &[1]);
        other.detail = Some("\t\t\tshared".to_owned());
        let write = LoggedWrite::of(other.clone()).unwrap();
        assert_eq!((write.file, write.line, write.via), (None, None, None));
        assert!(write.shared);
        other.kind = "write".to_owned();
        assert_eq!(LoggedWrite::of(other), None);
    }

    #[test]
    fn of_each_place_the_last_write_counts() {
        let mut all = LoggedBytes::default();
        for (seq, addr, bytes) in [(2, 0x10, [1, 1]), (4, 0x20, [9, 9]), (5, 0x10, [2, 2])] {
            all.add(&event(seq, addr, &bytes));
        }
        let last = |range: Range<u64>, seq| -> Vec<(u64, u64, Vec<u8>)> {
            let found = all.last_in(&range, seq);
            found
                .map(|(seq, at, bytes)| (seq, at, bytes.to_vec()))
                .collect()
        };
        assert_eq!(last(0x11..0x12, 4), [(2, 0x10, vec![1, 1])]);
        assert_eq!(last(0x11..0x12, 5), [(5, 0x10, vec![2, 2])]);
        assert_eq!(last(0x0..0x40, 9).len(), 2);
        assert_eq!(last(0x12..0x20, 9), []);
        assert_eq!(last(0x10..0x12, 1), []);
        assert!(all.has_some_in(&(0x11..0x14)) && !all.has_some_in(&(0x12..0x20)));
        assert_eq!(all.last_to(&(0x10..0x12), 9), Some(5));
        let written = all.at(4).unwrap();
        assert_eq!((written.address, written.bytes), (0x20, &[9, 9][..]));
        assert_eq!(written.target, "total");
        assert_eq!(all.at(3), None);
        assert_eq!(all.last_to(&(0x10..0x11), 9), None);
    }
}
