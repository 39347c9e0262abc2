//! One of the two recordings: its files of calls, what is compared of each function, and its place in the comparison.

use debuginfo::AddressSpace;
use std::sync::Arc;

use store::columns::ReadCall;

use super::Asked;
use super::digest::{self, Pass};
use super::forms::{Form, Left, Word};
use super::identity::Identities;
use super::places::Places;
use super::read::{CallFiles, Position};
use super::rows::RowMaker;
use super::stop::Stop;
use super::walk::Rows;
use crate::error::Result;
use crate::overview::Source;
use crate::session::Session;

/// One of the two recordings.
pub struct Side<'s> {
    /// It answers questions about single calls.
    pub source: Source<'s>,
    /// Its files of calls.
    pub files: CallFiles,
    /// Stops the comparison.
    pub stop: Stop,
    /// By function id: the shared number.
    pub numbers: Vec<Option<u32>>,
    forms: Vec<Form>,
    places: Places,
}

impl<'s> Side<'s> {
    /// Prepares a recording. `is_a` says which of the identities are its own.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn new(
        session: &'s Session,
        other: &Session,
        identities: &Identities,
        asked: &Asked,
        is_a: bool,
    ) -> Result<Self> {
        let rules = &asked.rules;
        let definitions = session.definitions();
        let mut numbers = match is_a {
            true => identities.of_a.clone(),
            false => identities.of_b.clone(),
        };
        let mut forms = Vec::with_capacity(numbers.len());
        for (id, number) in numbers.iter_mut().enumerate() {
            let function = definitions.function(id);
            if function.is_some_and(|function| rules.ignores_function(&function.name)) {
                *number = None;
            }
            // Without the parameters of both, those of one say nothing.
            let twin =
                number.map(|number| identities.shared[number as usize].ids[usize::from(is_a)]);
            let twin = twin.and_then(|id| other.definitions().function(id as usize));
            let has_twin = twin.is_some_and(|twin| {
                function.is_some_and(|own| {
                    own.params.len() == twin.params.len() && own.params_known == twin.params_known
                })
            });
            let form = |function| {
                let left = Left {
                    args: !has_twin,
                    result: false,
                };
                rules.form(function, left)
            };
            forms.push(function.map(form).unwrap_or_default());
        }
        let compared = forms
            .iter()
            .zip(&numbers)
            .filter(|(_, number)| number.is_some());
        let words = Form::words(compared.map(|(form, _)| form));
        let source = Source::new(session)?;
        let mut process = rustc_hash::FxHashSet::default();
        let mut space = Arc::new(AddressSpace::default());
        if let Some(timeline) = source.timeline() {
            space = timeline.modules().space(timeline.last());
        }
        for session in [session, other] {
            if let Some(timeline) = Source::new(session)?.timeline() {
                let threads = crate::overview::told(timeline.threads())?;
                process.extend(threads.iter().map(|thread| u64::from(thread.tid)));
            }
        }
        Ok(Self {
            files: CallFiles::open(session.reader(), words, &asked.stop)?,
            places: Places::new(definitions, other.definitions(), space, process),
            source,
            stop: asked.stop.clone(),
            numbers,
            forms,
        })
    }

    fn maker(&self) -> RowMaker<'_> {
        RowMaker {
            numbers: &self.numbers,
            forms: &self.forms,
            places: &self.places,
        }
    }

    /// Reads the recording once.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn pass(&mut self) -> Result<Pass> {
        digest::pass(&self.files, &self.maker())
    }

    /// Reads the rows of a thread.
    pub fn rows(&self, tid: u32, from: Position) -> Rows<'_> {
        Rows::new(&self.files, self.maker(), tid, from)
    }

    /// Returns the shared number of a function and what is compared of its calls.
    pub fn compared(&self, id: u32) -> Option<(u32, &Form)> {
        let number = self.numbers.get(id as usize).copied().flatten()?;
        Some((number, &self.forms[id as usize]))
    }

    /// Returns what addresses point into.
    pub fn places(&self) -> &Places {
        &self.places
    }

    /// Hashes the arguments of a call as its row has them.
    pub fn args_hash(&self, call: &ReadCall) -> u64 {
        match self.compared(call.function_id) {
            Some((_, form)) => form.args_hash(|word| word_of(call, word), &self.places),
            None => 0,
        }
    }
}

/// Returns a word of a call.
pub fn word_of(call: &ReadCall, word: Word) -> Option<u64> {
    match word {
        Word::Int(at) => call.args.get(usize::from(at)).copied(),
        Word::Sse(at) => call.xmm.get(usize::from(at)).copied().flatten(),
        Word::Rax => call.rax,
        Word::Rdx => call.rdx,
        Word::RetSse(at) => call.ret_xmm.get(usize::from(at)).copied().flatten(),
    }
}
