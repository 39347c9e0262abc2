//! One of the two recordings: its files of calls, what is compared of each function, and its place in the comparison.

use std::cell::LazyCell;
use std::ops::Range;
use std::sync::Arc;

use debuginfo::prototypes::is_c_library;
use debuginfo::scope::function_type;
use debuginfo::value::Meant;
use debuginfo::{AddressSpace, Svma, Type};
use rustc_hash::FxHashSet;
use store::columns::ReadCall;
use store::control::FunctionDef;

use super::Asked;
use super::digest::{self, Pass};
use super::forms::{Form, Formed, Left, Word};
use super::hashing::{Chance, Hashing, has_random_keys, is_meeting};
use super::identity::{Identities, has_same_frames};
use super::inclusive::inclusive_ns;
use super::inlining::{self, Inlining};
use super::interpreters::Interpreters;
use super::moments::Moments;
use super::origins::{self, Does, Origins, Seen};
use super::output::Numbers;
use super::places::{Places, fixed_addresses};
use super::read::{CallFiles, Position};
use super::report::UnreadFile;
use super::rows::RowMaker;
use super::run_texts::RunTexts;
use super::slots;
use super::stop::Stop;
use super::targets::{Captured, Targets};
use super::variables::{self, Variables};
use super::walk::Rows;
use crate::definitions::Definitions;
use crate::error::Result;
use crate::overview::{Source, told};
use crate::session::Session;
use replay::{Role, role_of};

/// What both recordings share.
pub struct Common<'c> {
    /// The functions that both have.
    pub identities: &'c Identities,
    /// What is asked for.
    pub asked: &'c Asked,
    /// What both builds inline.
    pub inlining: Inlining,
    /// The processes and threads of both.
    pub numbers: Arc<FxHashSet<u64>>,
    /// Where programs with fixed addresses and their heaps are.
    pub fixed: Vec<Range<u64>>,
    /// What texts have of both runs.
    pub run_texts: Arc<RunTexts>,
    /// Pointers to the stack are compared: the frames of both are the same.
    pub has_slots: bool,
    /// How many arguments each of the programs got, if these are not as many.
    pub argc: Option<(u64, u64)>,
    /// The variables that both builds of each module have.
    pub variables: Variables,
    /// The interpreters whose own tables differ in each run.
    pub interpreters: Interpreters,
}

impl<'c> Common<'c> {
    /// Takes both recordings.
    ///
    /// # Errors
    /// One cannot be read.
    pub fn new(
        (a, b): (&Session, &Session),
        identities: &'c Identities,
        asked: &'c Asked,
    ) -> Result<Self> {
        let mut numbers = FxHashSet::default();
        let mut fixed = Vec::new();
        let argc = |session: &Session| session.reader().recording().manifest().argv.len() as u64;
        for session in [a, b] {
            let source = Source::new(session)?;
            if let Some(timeline) = source.timeline() {
                let threads = told(timeline.threads())?;
                numbers.extend(threads.iter().map(|thread| u64::from(thread.tid)));
            }
            fixed.extend(fixed_addresses(session));
            let sql = "select value from events where kind = 'fork' and value > 0 limit 100000";
            let children = source.ask(sql)?;
            numbers.extend(children.iter().filter_map(|row| row.count(0)));
            let lineage = session.reader().recording().manifest().lineage;
            let parent = lineage.and_then(|lineage| u64::try_from(lineage.parent_pid).ok());
            numbers.extend(parent);
        }
        Ok(Self {
            inlining: inlining::inlining(a, b, identities)?,
            identities,
            asked,
            numbers: Arc::new(numbers),
            run_texts: Arc::new(RunTexts::of(a, b)),
            has_slots: has_same_frames(a.definitions(), b.definitions()),
            argc: Some((argc(a), argc(b))).filter(|(own, other)| own != other),
            fixed,
            variables: variables::shared(a, b)?,
            interpreters: Interpreters::of(a, b)?,
        })
    }
}

/// One of the two recordings.
pub struct Side<'s> {
    /// It answers questions about single calls.
    pub source: Source<'s>,
    /// Its files of calls.
    pub files: CallFiles,
    /// Stops the comparison.
    pub stop: Stop,
    /// By function id: the shared number, if calls of the function are compared.
    pub numbers: Vec<Option<u32>>,
    /// The same, also of functions whose calls are not compared because of what the compilers have inlined.
    known: Vec<Option<u32>>,
    /// Both programs have hash tables with random keys: their work is not compared.
    pub has_random_keys: bool,
    /// The processes and threads of both.
    processes: Arc<FxHashSet<u64>>,
    fixed: Vec<Range<u64>>,
    run_texts: Arc<RunTexts>,
    hashing: Hashing,
    forms: Vec<Form>,
    pointers: Vec<Word>,
    places: Places,
    targets: Targets<'s>,
}

impl<'s> Side<'s> {
    /// Prepares a recording. `is_a` says which of the identities are its own.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn new(
        session: &'s Session,
        other: &Session,
        common: &Common<'_>,
        is_a: bool,
    ) -> Result<Self> {
        let asked = common.asked;
        let definitions = session.definitions();
        let chance = Chance {
            has_random_keys: has_random_keys(definitions) && has_random_keys(other.definitions()),
            has_random_addresses: has_random_addresses(session) && has_random_addresses(other),
        };
        let source = Source::new(session)?;
        let space = last_space(&source);
        let other_space = last_space(&Source::new(other)?);
        let mut targets = Targets::new(
            source.timeline(),
            Captured::by_both(session, other),
            &common.numbers,
            &common.run_texts,
        );
        let pair = Pair {
            common,
            own: (definitions, &space),
            other: (other.definitions(), &other_space),
            is_a,
            chance,
        };
        let chosen = pair.choose(&mut targets);
        let mut places = Places::new(
            (definitions, space),
            (other.definitions(), &other_space),
            &common.variables,
            Arc::clone(&common.numbers),
            Moments::of(session, other),
        );
        if common.has_slots {
            places.set_tops(slots::tops(&source)?);
            // No other query reads all calls, and the pages of a long recording take much memory.
            session.report_source().forget_pages();
        }
        let (words, pointers) = chosen.words(common.has_slots);
        Ok(Self {
            hashing: hashing_of(session, chance, common)?,
            files: CallFiles::open(session.reader(), words, &asked.stop)?,
            places,
            source,
            processes: Arc::clone(&common.numbers),
            fixed: common.fixed.clone(),
            run_texts: Arc::clone(&common.run_texts),
            stop: asked.stop.clone(),
            numbers: chosen.numbers,
            known: chosen.known,
            has_random_keys: chance.has_random_keys,
            forms: chosen.forms,
            pointers,
            targets,
        })
    }

    /// Returns the shared number of a function, whether or not its calls are compared.
    pub fn number_of(&self, id: u32) -> Option<u32> {
        self.known.get(id as usize).copied().flatten()
    }

    /// Returns the id of the function with a shared number.
    pub fn id_of(&self, number: u32) -> Option<u32> {
        let id = self.known.iter().position(|own| *own == Some(number))?;
        Some(id as u32)
    }

    /// Returns the numbers that differ in each run.
    pub fn numbers_of_runs(&self) -> Numbers<'_> {
        Numbers {
            processes: &self.processes,
            fixed: &self.fixed,
            texts: &self.run_texts,
            clock: self.run_texts.clock(),
        }
    }

    /// Tells whether pointers to blocks of the heap were compared, and no call that allocates was recorded.
    pub fn has_untold_blocks(&self) -> bool {
        self.places.saw_untold_blocks()
    }

    /// Tells whether a function returns a hash which may be one of an address.
    pub fn hashes(&self, id: u32) -> bool {
        self.hashing.returning.contains(&id)
    }

    fn maker(&self) -> RowMaker<'_> {
        RowMaker {
            numbers: &self.numbers,
            forms: &self.forms,
            pointers: &self.pointers,
            places: &self.places,
            targets: &self.targets,
            has_slots: self.has_slots(),
            hashing: &self.hashing,
        }
    }

    /// Finds the blocks and descriptors of the recording; `None` if there are too many.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn read_origins(&mut self) -> Result<Option<Origins>> {
        let definitions = self.source.session().definitions();
        // A call that is not compared has no number that both recordings know.
        let does = |(id, number): (usize, &Option<u32>)| {
            let function = definitions.function(id).filter(|_| number.is_some())?;
            let is_library = is_of_library(function, definitions);
            let does = Does::of(function, is_library || function.file.is_none())?;
            // The order in which hash tables with random keys give back what they hold is chance.
            let is_chance = self.has_random_keys && matches!(does, Does::Memory(_));
            (!is_chance).then_some(does)
        };
        let does: Vec<Option<Does>> = self.numbers.iter().enumerate().map(does).collect();
        let first = match self.source.timeline() {
            Some(timeline) => told(timeline.threads())?.first().map(|thread| thread.tid),
            None => None,
        };
        let reader = self.source.session().reader();
        let files = CallFiles::open(reader, origins::words(&does), &self.stop)?.words_alone();
        origins::read(&files, &does, first.unwrap_or(0), &self.hashing)
    }

    /// Takes the blocks and descriptors of the recording.
    pub fn set_origins(&mut self, origins: Arc<Origins>) {
        self.places.set_origins(origins);
    }

    /// Tells whether pointers to the stack are compared.
    pub fn has_slots(&self) -> bool {
        self.places.has_tops()
    }

    /// Reads the recording once.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn pass(&mut self) -> Result<Pass> {
        let mut pass = digest::pass(&self.files, &self.maker())?;
        let session = self.source.session();
        let totals_ns = inclusive_ns(session, pass.tallies.len(), &self.stop)?;
        for (tally, total_ns) in pass.tallies.iter_mut().zip(totals_ns) {
            tally.total_ns = total_ns;
        }
        Ok(pass)
    }

    /// Reads the rows of a thread.
    pub fn rows(&self, tid: u32, from: Position) -> Rows<'_> {
        Rows::new(self, self.maker(), tid, from)
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

    /// Returns the numbers of the parameters of a call with targets that are compared, and the hashes of these.
    pub fn targets(&self, call: &ReadCall) -> Vec<(usize, u64)> {
        let word = |word| word_of(call, word);
        self.targets
            .of_call(call.function_id, word, call.start_seq, &self.places)
    }

    /// Returns the files of recorded modules that cannot be read any more.
    pub fn unread(&self) -> Vec<UnreadFile> {
        let Some(timeline) = self.source.timeline() else {
            return Vec::new();
        };
        let absent = timeline.modules().absent(timeline.last()).into_iter();
        let unread = absent.map(|absent| UnreadFile {
            is_replaced: debuginfo::build_id_of(&absent.path).is_some(),
            path: absent.path.to_string_lossy().into_owned(),
            why: absent.why,
        });
        unread.collect()
    }

    /// Hashes the arguments of a call as its row has them, but for where on the stack they point to.
    pub fn args_hash(&self, call: &ReadCall) -> Formed {
        match self.compared(call.function_id) {
            Some((_, form)) => {
                let word = |word| word_of(call, word);
                let args = form.args_hash(word, entry_of(call), &self.places);
                let id = call.function_id as usize;
                self.targets
                    .with(args, id, word, call.start_seq, &self.places)
            }
            None => Formed::default(),
        }
    }
}

/// The functions of both recordings, seen from one of them.
struct Pair<'p> {
    common: &'p Common<'p>,
    own: (&'p Definitions, &'p AddressSpace),
    other: (&'p Definitions, &'p AddressSpace),
    is_a: bool,
    chance: Chance,
}

/// What is compared of each function, by function id: see [`Side`].
struct Chosen {
    numbers: Vec<Option<u32>>,
    known: Vec<Option<u32>>,
    forms: Vec<Form>,
}

impl<'p> Pair<'p> {
    /// Chooses what is compared, also of the targets of pointers.
    fn choose(&self, targets: &mut Targets<'_>) -> Chosen {
        let mut numbers = match self.is_a {
            true => self.common.identities.of_a.clone(),
            false => self.common.identities.of_b.clone(),
        };
        let mut forms = Vec::with_capacity(numbers.len());
        let mut known = numbers.clone();
        for (id, number) in numbers.iter_mut().enumerate() {
            let function = self.own.0.function(id);
            if function.is_some_and(|function| self.leaves_out(function)) {
                known[id] = None;
                *number = None;
            }
            if number.is_some_and(|number| self.common.inlining.uneven.contains(&number)) {
                *number = None;
            }
            let twin = number.and_then(|number| self.twin(number));
            let form = function.map(|function| self.form(function, twin));
            let form = form.unwrap_or_default();
            match function.zip(twin) {
                Some((function, twin)) => {
                    targets.add(&form, (function, self.own.1), (twin, self.other.1));
                }
                None => targets.add_none(),
            }
            forms.push(form);
        }
        Chosen {
            numbers,
            known,
            forms,
        }
    }

    fn leaves_out(&self, function: &FunctionDef) -> bool {
        let rules = &self.common.asked.rules;
        rules.ignores_function(&function.name)
            || rules.ignores_inside(&function.name)
            || self.chance.leaves_out(&function.name)
            || is_meeting(&function.name)
            || self.common.interpreters.leaves_out(function, self.own.0)
            || gets_pages(function) && is_of_library(function, self.own.0)
    }

    /// Returns the function of the other recording with a shared number.
    fn twin(&self, number: u32) -> Option<&'p FunctionDef> {
        let shared = &self.common.identities.shared[number as usize];
        let id = shared.ids[usize::from(self.is_a)];
        self.other.0.function(id as usize)
    }

    fn form(&self, own: &FunctionDef, twin: Option<&FunctionDef>) -> Form {
        let rules = &self.common.asked.rules;
        // Without the parameters of both, those of one say nothing.
        let has_twin = twin.is_some_and(|twin| {
            own.params.len() == twin.params.len() && own.params_known == twin.params_known
        });
        let left = Left {
            args: !has_twin,
            result: false,
        };
        let mut form = rules.form(own, left);
        if let Some(twin) = twin {
            form.match_other(&rules.form(twin, left));
        }
        if let Some(counts) = self.common.argc {
            let is_of_any = |is_count: fn(&FunctionDef, usize) -> bool, number| {
                let mut both = [Some(own), twin].into_iter().flatten();
                both.any(|function| is_count(function, number))
            };
            form.args.retain(|(number, _)| !is_of_any(is_argc, *number));
            let args = form.args.iter_mut();
            for (_, atom) in args.filter(|(number, _)| is_of_any(may_be_argc, *number)) {
                atom.compare_as_argc(counts);
            }
        }
        let others = twin.map(|twin| (twin, self.other.1));
        limit(&mut form, (own, self.own.1), others);
        form
    }
}

impl Chosen {
    /// Returns the words of calls that the comparison reads, and those of them that are pointers.
    fn words(&self, has_slots: bool) -> (Vec<Word>, Vec<Word>) {
        let compared = self.forms.iter().zip(&self.numbers);
        let compared = compared.filter(|(_, number)| number.is_some());
        let compared: Vec<&Form> = compared.map(|(form, _)| form).collect();
        let mut words = Form::words(compared.iter().copied());
        let pointers = Form::pointers(compared.into_iter());
        if has_slots && !pointers.is_empty() {
            words.push(Word::Sp);
        }
        (words, pointers)
    }
}

/// Tells whether a parameter is the number of the program's arguments.
fn is_argc(function: &FunctionDef, number: usize) -> bool {
    let is_start = function.name.starts_with("std::rt::lang_start");
    number == 0 && function.name == "main" || is_start && may_be_argc(function, number)
}

/// Tells whether a parameter has the name of that number. Functions of SQLite, say, call the number of their own arguments so.
fn may_be_argc(function: &FunctionDef, number: usize) -> bool {
    let param = function.params.get(number);
    param.is_some_and(|param| param.name == "argc")
}

/// Leaves out the padding of a function's structures, as far as the file of its module tells, or else that of the other recording.
fn limit(
    form: &mut Form,
    (function, space): (&FunctionDef, &AddressSpace),
    others: Option<(&FunctionDef, &AddressSpace)>,
) {
    let ty = LazyCell::new(|| {
        let own = type_of(function, space);
        own.or_else(|| others.and_then(|(function, space)| type_of(function, space)))
    });
    form.limit(
        function,
        |number| {
            let params = ty.as_ref()?.parameters();
            let is_known = params.len() == function.params.len();
            Meant::of(params.get(number).filter(|_| is_known)?)
        },
        || Meant::of(&ty.as_ref()?.target()?),
    );
}

/// Returns the type of a function, if the file of its module is there.
pub fn type_of(function: &FunctionDef, space: &AddressSpace) -> Option<Type> {
    let mut modules = space.modules().iter();
    let mapped = modules.find(|mapped| mapped.number == function.module)?;
    function_type(&mapped.module, Svma(function.svma))
}

/// Tells whether a function is one of the C library. One of the program may have the same name.
fn is_of_library(function: &FunctionDef, definitions: &Definitions) -> bool {
    let module = definitions.module(function.module);
    function.name.ends_with("@plt") || module.is_some_and(|module| is_c_library(module.name()))
}

/// Tells whether a function of the C library gets pages or gives them back. When an allocator does that depends on the
/// addresses that it was given: CPython loses a part of each mapping that is not aligned as it needs it.
fn gets_pages(function: &FunctionDef) -> bool {
    let name = function.name.strip_suffix("@plt");
    let name = name.unwrap_or(&function.name);
    let role = role_of(name, &function.linkage);
    role.is_some_and(Role::is_of_pages) || matches!(name, "brk" | "sbrk" | "madvise")
}

/// Tells whether the kernel chose the addresses of a program.
pub fn has_random_addresses(session: &Session) -> bool {
    let settings = &session.reader().recording().manifest().settings;
    !settings.no_aslr
}

/// Finds where the threads of a recording worked on hash tables that differ in each run, and on what is like them: waiting for a
/// lock, and what the user names.
fn hashing_of(session: &Session, chance: Chance, common: &Common<'_>) -> Result<Hashing> {
    let definitions = session.definitions();
    let asked = common.asked;
    let is_one = |id: usize| {
        let function = definitions.function(id);
        function.is_some_and(|function| {
            chance.decides(&function.name)
                || is_meeting(&function.name)
                || asked.rules.ignores_inside(&function.name)
                || common.interpreters.decides(function, definitions)
        })
    };
    let ids: Vec<bool> = (0..definitions.id_limit()).map(is_one).collect();
    let mut found = Hashing::default();
    if ids.contains(&true) {
        let files = CallFiles::open(session.reader(), Vec::new(), &asked.stop)?;
        found = Hashing::of(&files, &ids)?;
    }
    found.returning = hashes_of(definitions, &common.interpreters);
    Ok(found)
}

/// Returns the functions of interpreters that hash addresses.
fn hashes_of(definitions: &Definitions, interpreters: &Interpreters) -> FxHashSet<u32> {
    let functions = definitions.functions();
    let hashes = functions.filter(|function| interpreters.hashes(function, definitions));
    hashes.map(|function| function.id).collect()
}

/// Returns the modules at the end of a recording whose files can be read.
pub fn last_space(source: &Source<'_>) -> Arc<AddressSpace> {
    match source.timeline() {
        Some(timeline) => timeline.modules().space(timeline.last()),
        None => Arc::default(),
    }
}

/// Returns where the arguments of a call were seen.
pub fn entry_of(call: &ReadCall) -> Seen {
    Seen {
        tid: call.tid.unwrap_or(0),
        start: call.start_seq,
        at: call.start_seq,
        sp: 0,
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
        Word::Sp => Some(call.sp),
    }
}
