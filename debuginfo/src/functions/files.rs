//! Full paths of source files, from a unit's line table header.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use gimli::{Dwarf, Unit};

use crate::dies::{Die, Home, Session};
use crate::dwarf::Slice;

type Known = HashMap<(Home, usize, u64), Option<Arc<str>>>;

/// Resolves file numbers, remembering the answers.
pub(super) struct Files<'s, 't, 'a> {
    session: &'s Session<'t, 'a>,
    known: RefCell<Known>,
}

impl<'s, 't, 'a> Files<'s, 't, 'a> {
    pub(super) fn new(session: &'s Session<'t, 'a>) -> Files<'s, 't, 'a> {
        Files {
            session,
            known: RefCell::default(),
        }
    }

    /// The path of file `number` of the unit that `die` lies in.
    pub(super) fn path(&self, die: &Die<'a>, number: u64) -> Option<Arc<str>> {
        let key = (die.home, die.index, number);
        if let Some(known) = self.known.borrow().get(&key) {
            return known.clone();
        }
        let own = (self.session.dwarf(die), &*die.unit);
        let path = match (die.unit.line_program.is_some(), self.session.skeleton) {
            // A split unit without a line table uses the one of its skeleton.
            (false, Some((dwarf, unit))) => read(dwarf, unit, number),
            _ => read(own.0, own.1, number),
        };
        let path = path.map(Arc::from);
        self.known.borrow_mut().insert(key, path.clone());
        path
    }
}

fn read<'a>(dwarf: &Dwarf<Slice<'a>>, unit: &Unit<Slice<'a>>, number: u64) -> Option<String> {
    let header = unit.line_program.as_ref()?.header();
    let file = header.file(number)?;
    let text = |value| {
        let slice = dwarf.attr_string(unit, value).ok()?;
        Some(slice.to_string_lossy().into_owned())
    };
    let mut path = unit
        .comp_dir
        .map(|d| d.to_string_lossy().into_owned())
        .unwrap_or_default();
    if let Some(directory) = file.directory(header) {
        join(&mut path, &text(directory)?);
    }
    join(&mut path, &text(file.path_name())?);
    Some(path)
}

/// Appends `part` to `path`, or replaces it by an absolute one; leaves out `.` in front of names.
fn join(path: &mut String, part: &str) {
    if part.starts_with('/') {
        path.clear();
    }
    let mut part = part;
    while let Some(rest) = part.strip_prefix("./") {
        part = rest.trim_start_matches('/');
    }
    if part.is_empty() || part == "." {
        return;
    }
    if !path.is_empty() && !path.ends_with('/') {
        path.push('/');
    }
    path.push_str(part);
}
