//! The writes to a place, found by running the program again.

use std::{io, ops::Range, path::Path};

use exact::{Access, Batch, Replay, Seek};
use store::control::{ByteBuf, Control, LoggedWrite};

use super::probing::{Probing, Sending};
use crate::live::{
    LoggedPlace,
    probes::{
        logged_place::{Found, Globals, LoggedRange, Unplaced, find},
        writer::Writer,
    },
};

/// Instructions after which a variable that has no memory yet is looked for again: then twice as many, and so on.
const AGAIN: u64 = 1 << 12;
/// Bytes of a write that are looked at: system calls may write more.
const MOST_WRITTEN: usize = 1 << 24;

/// Memory whose writes are looked for.
struct Watched {
    place: LoggedRange,
    /// It leads to the target, which is another one once it is written.
    is_pointer: bool,
    /// The bytes there; `None`: no memory.
    bytes: Option<Vec<u8>>,
}

/// What a search for writes has come to.
struct Search<'s> {
    watched: Vec<Watched>,
    /// The search ends there: a pointer was written.
    until: u64,
    /// Writes whose bytes are not known, and of which memory.
    unread: Vec<(Access, usize)>,
    event: &'s dyn Fn(&Access, Option<u64>, Change<'_>) -> Control,
    send: Sending<'s>,
}

/// What a write does to memory.
struct Change<'c> {
    of: &'c Watched,
    new: &'c [u8],
}

/// Reports all writes to a place in the program in `folder`, up to `end`. Returns why it has none, if it never existed.
pub(super) fn log(
    probing: &Probing,
    (probe, place): (u32, &LoggedPlace),
    (folder, end): (&Path, u64),
    send: Sending<'_>,
) -> exact::Result<Option<String>> {
    let mut replay = Replay::open(folder)?;
    let target = place.to_string();
    let event = |access: &Access, pc: Option<u64>, change: Change<'_>| {
        let (space, _) = probing.modules_at(access.position);
        let writer = pc.map(|pc| Writer::at(space, pc)).unwrap_or_default();
        Control::LoggedWrite(Box::new(LoggedWrite {
            ticks: access.position,
            tid: access.tid.cast_unsigned(),
            probe,
            target: match change.of.is_pointer {
                true => format!("pointer of {target}"),
                false => target.clone(),
            },
            addr: change.of.place.address,
            old: ByteBuf::from(change.of.bytes.clone().unwrap_or_default()),
            new: ByteBuf::from(change.new.to_vec()),
            pc,
            function: writer.function,
            file: writer.file,
            line: writer.line,
            via: writer.via,
            shared: false,
            passed: None,
        }))
    };
    let mut missing = None;
    let (mut at, mut again) = (0, AGAIN);
    while at < end {
        replay.goto(at)?;
        let (space, change) = probing.modules_at(at);
        let change = change.unwrap_or(end).min(end);
        let found = placed(place, space, &replay);
        let watched = match found {
            Ok(watched) => watched,
            Err(why) => {
                missing.get_or_insert(Some(why));
                (at, again) = match at + again < change {
                    true => (at + again, again.saturating_mul(2)),
                    false => (change, AGAIN),
                };
                continue;
            }
        };
        // It exists: nothing is missing any more.
        missing = Some(None);
        let mut search = Search {
            watched,
            until: change,
            unread: Vec::new(),
            event: &event,
            send: &mut *send,
        };
        if !search.run(&mut replay, at)? {
            break;
        }
        at = search.until;
    }
    Ok(missing.flatten())
}

impl Search<'_> {
    /// Looks from a position on; returns whether more is wanted.
    fn run(&mut self, replay: &mut Replay, from: u64) -> exact::Result<bool> {
        let memory = self.watched.iter().map(|watched| range(watched.place));
        let seek = Seek {
            writes: true,
            memory: Some(memory.collect()),
            value_bytes: MOST_WRITTEN,
            ..Seek::default()
        };
        let mut goes_on = true;
        replay.seek(from..self.until, &seek, &mut |batch| {
            for access in &batch.accesses {
                if access.position >= self.until {
                    return false;
                }
                goes_on &= self.wrote(batch, access);
                if !goes_on {
                    return false;
                }
            }
            true
        })?;
        for (access, index) in std::mem::take(&mut self.unread) {
            replay.goto(access.position + 1)?;
            let of = &self.watched[index];
            let new = &bytes_at(replay, of.place).unwrap_or_default();
            let event = (self.event)(&access, None, Change { of, new });
            goes_on &= (self.send)(event);
        }
        Ok(goes_on)
    }

    /// Some of the bytes were written; returns whether more is wanted.
    fn wrote(&mut self, batch: &Batch, access: &Access) -> bool {
        let end = access.address.saturating_add(access.size);
        let pc = access.instruction.and_then(|number| {
            let instruction = batch.instructions.get(number as usize)?;
            Some(instruction.address)
        });
        let touched = self.watched.iter_mut().enumerate();
        let touched = touched.filter(|(_, watched)| {
            let range = range(watched.place);
            range.start < end && access.address < range.end
        });
        for (index, watched) in touched {
            if watched.is_pointer {
                self.until = self.until.min(access.position + 1);
            }
            let Some(new) = after(watched, access, batch.value(access)) else {
                // Memory is read again from there on.
                self.unread.push((*access, index));
                self.until = access.position + 1;
                continue;
            };
            let change = Change {
                of: watched,
                new: &new,
            };
            if !(self.send)((self.event)(access, pc, change)) {
                return false;
            }
            watched.bytes = Some(new);
        }
        true
    }
}

/// The bytes of a place after a write; `None`: not all are known.
fn after(watched: &Watched, access: &Access, value: &[u8]) -> Option<Vec<u8>> {
    let place = watched.place;
    let start = place.address.max(access.address);
    let end = range(place).end.min(access.address + access.size);
    let written = value.get((start - access.address) as usize..(end - access.address) as usize)?;
    let mut new = watched.bytes.clone().unwrap_or_default();
    // Where there was no memory, a part of it says nothing of the rest.
    let here = (start - place.address) as usize..(end - place.address) as usize;
    match new.get_mut(here) {
        Some(part) => part.copy_from_slice(written),
        None if written.len() as u64 == place.len => new = written.to_vec(),
        None => return None,
    }
    Some(new)
}

/// Finds a place at the present moment.
fn placed(
    place: &LoggedPlace,
    space: &debuginfo::AddressSpace,
    replay: &Replay,
) -> Result<Vec<Watched>, String> {
    let read = |address, bytes: &mut [u8]| match replay.read(address, bytes) == bytes.len() {
        true => Ok(()),
        false => Err(io::ErrorKind::NotFound.into()),
    };
    let (pointers, target) = match find(place, space, &Globals(read)) {
        Ok(Found::Fixed(place)) => (Vec::new(), Some(place)),
        Ok(Found::Followed { pointers, target }) => (pointers, target),
        Ok(Found::InCalls { function, .. }) => {
            return Err(format!(
                "{function} has it only while it runs, and its calls are not followed; see the writes of one call: history {place}"
            ));
        }
        Err(Unplaced::Missing(what) | Unplaced::Refused(what) | Unplaced::Unreachable(what)) => {
            return Err(what.one_line());
        }
        Err(Unplaced::InCalls { function, .. }) => {
            return Err(format!("{function} has it only while it runs"));
        }
    };
    let watched = |place, is_pointer| Watched {
        place,
        is_pointer,
        bytes: bytes_at(replay, place),
    };
    let pointers = pointers.into_iter().map(|place| watched(place, true));
    let target = target.map(|place| watched(place, false));
    Ok(pointers.chain(target).collect())
}

fn bytes_at(replay: &Replay, place: LoggedRange) -> Option<Vec<u8>> {
    let mut bytes = vec![0; place.len as usize];
    (replay.read(place.address, &mut bytes) == bytes.len()).then_some(bytes)
}

fn range(place: LoggedRange) -> Range<u64> {
    place.address..place.address.saturating_add(place.len)
}
