//! Function and line of an address, and the event before a position: each looked up once.

use std::collections::HashMap;
use std::sync::Arc;

use debuginfo::disassemble_bytes;
use replay::{Instant, Result, Spaces, Timeline};

/// The place of an instruction in the source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceLocation {
    pub function: Option<Arc<str>>,
    pub file: Option<Arc<str>>,
    pub line: Option<u32>,
}

/// Places of one list of modules.
pub struct Places {
    spaces: Spaces,
    /// Of the modules with this number.
    epoch: usize,
    known: HashMap<u64, SourceLocation>,
    texts: HashMap<u64, (Arc<[u8]>, Arc<str>)>,
}

impl Places {
    pub fn new(spaces: Spaces) -> Places {
        Places {
            spaces,
            epoch: 0,
            known: HashMap::new(),
            texts: HashMap::new(),
        }
    }

    fn turn_to(&mut self, position: u64) {
        let epoch = self.spaces.number(position);
        if epoch != self.epoch {
            self.epoch = epoch;
            self.known.clear();
            self.texts.clear();
        }
    }

    /// Returns function and line.
    pub fn of(&mut self, position: u64, address: u64) -> SourceLocation {
        self.turn_to(position);
        let space = self.spaces.at(position);
        let found = self.known.entry(address).or_insert_with(|| {
            let source = space.line_at(address);
            SourceLocation {
                function: space
                    .function_at(address)
                    .map(|found| Arc::from(found.name)),
                line: source.as_ref().map(|source| source.line),
                file: source.map(|source| source.file),
            }
        });
        found.clone()
    }

    /// Returns an instruction as text, with the name that it refers to.
    pub fn text(&mut self, position: u64, address: u64, code: &Arc<[u8]>) -> Arc<str> {
        self.turn_to(position);
        if let Some((known, text)) = self.texts.get(&address)
            && (Arc::ptr_eq(known, code) || known == code)
        {
            return Arc::clone(text);
        }
        let space = self.spaces.at(position);
        let found = disassemble_bytes(space, address, code).into_iter().next();
        let text: Arc<str> = match found {
            None => Arc::from("(bad)"),
            Some(found) => match &found.target {
                Some(target) => Arc::from(format!("{} <{target}>", found.text)),
                None => Arc::from(found.text),
            },
        };
        self.texts
            .insert(address, (Arc::clone(code), Arc::clone(&text)));
        text
    }
}

/// Events before positions, which are looked up in order.
#[derive(Default)]
pub struct Moments {
    /// The last one, and the position from which on another event is the last.
    last: Option<(u64, u64, u64)>,
}

impl Moments {
    /// Returns the last event at or before a position, and how many instructions are between them.
    pub fn at(&mut self, timeline: &Timeline, position: u64) -> Result<Instant> {
        if let Some((seq, from, until)) = self.last
            && (from..until).contains(&position)
        {
            return Ok(Instant {
                seq,
                steps: position - from,
            });
        }
        let instant = timeline.instant(position)?;
        let from = position - instant.steps;
        let until = match instant.seq < timeline.last() {
            true => timeline.position(instant.seq + 1)?,
            false => u64::MAX,
        };
        self.last = Some((instant.seq, from, until));
        Ok(instant)
    }
}
