//! The path of a recorded program from call to call, for gdb to follow. Since the program does the same every time, a
//! moment is identified by how often a function has been entered since the previous moment, or by a return to an
//! address with a certain rsp.

use std::{
    collections::{BTreeMap, HashMap},
    fmt::Write,
    ops::Range,
    path::Path,
};

use e2e::Scratch;
use replay::{Event, Timeline};

use crate::{
    bench::{Subject, gdb},
    moment::Moment,
};

/// All events of a recording, and when each function was entered.
pub struct Course<'t> {
    timeline: &'t Timeline,
    pub events: Vec<Event>,
    entries: HashMap<u64, Vec<u64>>,
}

impl<'t> Course<'t> {
    pub fn of(timeline: &'t Timeline) -> Course<'t> {
        let events: Vec<Event> = (0..timeline.events())
            .map(|seq| timeline.event(seq).unwrap())
            .collect();
        let mut entries: HashMap<u64, Vec<u64>> = HashMap::new();
        for event in &events {
            if let Event::Enter(call) = event {
                let address = timeline.entry_of(call.function, call.start).unwrap();
                entries.entry(address).or_default().push(call.start);
            }
        }
        Course {
            timeline,
            events,
            entries,
        }
    }

    /// Returns the events at which the program's position is known: entries and returns. A call left in another way
    /// ends in the recording only when that is noticed.
    pub fn moments(&self) -> impl Iterator<Item = u64> {
        self.events
            .iter()
            .filter(|event| is_moment(event))
            .map(Event::seq)
    }

    /// Returns the entries of the functions that are entered, with counts.
    pub fn functions(&self) -> Vec<(u64, usize)> {
        let entries = self.entries.iter();
        entries
            .map(|(address, all)| (*address, all.len()))
            .collect()
    }

    /// Returns the first moment after an event.
    pub fn behind(&self, seq: u64) -> u64 {
        let mut behind = self.events[seq as usize..].iter();
        let found = behind.find(|event| is_moment(event));
        found.expect("the program goes on").seq()
    }

    /// Returns the moments around an event.
    pub fn around(&self, seq: u64) -> Option<(u64, u64)> {
        let is_moment = |event: &&Event| is_moment(event);
        let (before, behind) = self.events.split_at(seq as usize);
        let before = before.iter().rev().find(is_moment)?;
        let behind = behind.iter().find(is_moment)?;
        Some((before.seq(), behind.seq()))
    }

    /// Returns where the program seeds its random numbers (those of Lua): the event, and the seed, a time of day.
    pub fn seeding(&self) -> Option<(u64, u64)> {
        let seeds = |event: &&Event| match event {
            Event::Enter(call) => {
                let function = self.timeline.function(call.function);
                function.is_some_and(|function| function.name == "setseed")
            }
            _ => false,
        };
        let Event::Enter(call) = self.events.iter().find(seeds)? else {
            return None;
        };
        Some((call.start, self.timeline.call(call).unwrap().args[2]))
    }

    /// Returns how often the program reaches `address`, the start of a function, after one event and up to another.
    fn hits(&self, address: u64, behind: Option<u64>, to: u64) -> usize {
        let entries = &self.entries[&address];
        let before = |seq: u64| entries.partition_point(|entry| *entry <= seq);
        before(to) - behind.map_or(0, before)
    }
}

fn is_moment(event: &Event) -> bool {
    match event {
        Event::Enter(_) => true,
        Event::Leave(call) => call.returned(),
        Event::Other(_) => false,
    }
}

/// A query to gdb at a moment.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    /// Registers, frames and variables.
    pub looks: bool,
    /// Numbers that pointers of the callers point to.
    pub fields: bool,
    /// All memory that [`Walk::keeps`] names.
    pub dumps: bool,
    /// A number for `lmathlib.c` to use instead of the time of day.
    pub seed: Option<u64>,
    /// Memory: addresses and lengths.
    pub reads: Vec<(u64, u64)>,
}

/// gdb's answer for a moment.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    pub moment: Moment,
    /// Low halves of vector registers.
    pub vectors: BTreeMap<usize, u64>,
    /// Frame, expression and number.
    pub fields: Vec<(usize, String, u64)>,
    memory: Vec<(u64, Vec<u8>)>,
    /// Bytes of the stack with a value that the program gave them; see `lasting.py`.
    lasting: Vec<(Range<u64>, String)>,
    /// Offset of the dump among all dumps.
    dumped: Option<usize>,
}

impl Answer {
    /// Returns the byte at a queried address.
    pub fn byte(&self, address: u64) -> Option<u8> {
        let mut found = self.memory.iter();
        found.find_map(|(start, bytes)| {
            let at = address.checked_sub(*start)?;
            bytes.get(at as usize).copied()
        })
    }

    /// Returns the name of the lasting value at an address of the stack, if any.
    pub fn lasting(&self, address: u64) -> Option<&str> {
        let mut lasting = self.lasting.iter();
        let found = lasting.find(|(range, _)| range.contains(&address));
        found.map(|(_, what)| what.as_str())
    }
}

/// A path through all moments with a query.
pub struct Walk<'c> {
    course: &'c Course<'c>,
    asked: BTreeMap<u64, Asked>,
    keeps: Vec<Range<u64>>,
    is_optimised: bool,
}

/// The input lines for gdb, and the moments of those with a query.
struct Plan {
    text: String,
    lines: usize,
    moments: HashMap<usize, u64>,
    at: Option<u64>,
}

/// The result of a walk.
pub struct Walked {
    /// Process id of gdb's program.
    pub pid: u32,
    pub answers: BTreeMap<u64, Answer>,
    keeps: Vec<Range<u64>>,
    dumped: Vec<u8>,
}

impl<'c> Walk<'c> {
    pub fn new(course: &'c Course<'c>) -> Walk<'c> {
        Walk {
            course,
            asked: BTreeMap::new(),
            keeps: Vec::new(),
            is_optimised: false,
        }
    }

    /// Marks the program as optimised: a variable in its place need not have its value. Only registers are then
    /// compared.
    pub fn is_optimised(&mut self) {
        self.is_optimised = true;
    }

    pub fn at(&mut self, seq: u64) -> &mut Asked {
        self.asked.entry(seq).or_default()
    }

    /// Sets the memory to dump.
    pub fn keeps(&mut self, ranges: Vec<Range<u64>>) {
        self.keeps = ranges;
    }

    /// Returns how to get to a moment from the previous one: address, number of hits, rsp.
    fn go(&self, plan: &mut Plan, seq: u64) -> (u64, usize, Option<u64>) {
        let timeline = self.course.timeline;
        let way = match &self.course.events[seq as usize] {
            _ if plan.at == Some(seq) => (0, 0, None),
            Event::Enter(call) => {
                let address = timeline.entry_of(call.function, seq).unwrap();
                (address, self.course.hits(address, plan.at, seq), None)
            }
            Event::Leave(call) => {
                if plan.at.is_none_or(|at| at < call.start) {
                    let way = self.go(plan, call.start);
                    plan.add(way, "", &[]);
                }
                let behind = plan.at.map_or(0, |at| at + 1) as usize;
                let between = &self.course.events[behind..=seq as usize];
                // A call that ends together with another ends at the other's return.
                let is_same = |event: &Event| matches!(event, Event::Leave(other) if other.slot == call.slot && other.returned());
                let before = behind.checked_sub(1).map(|at| &self.course.events[at]);
                match before.is_some_and(is_same) && between.iter().all(is_same) {
                    true => (0, 0, None),
                    false => {
                        let address = timeline.return_address(call).unwrap();
                        let address = address.expect("a call that returned has a return address");
                        (address, 1, Some(call.slot + 8))
                    }
                }
            }
            Event::Other(_) => panic!("event {seq} is no moment of the program"),
        };
        plan.at = Some(seq);
        way
    }

    fn plan(&self) -> Plan {
        let mut plan = Plan {
            text: String::new(),
            lines: 0,
            moments: HashMap::new(),
            at: None,
        };
        let keeps: Vec<(u64, u64)> = self
            .keeps
            .iter()
            .map(|range| (range.start, range.end - range.start))
            .collect();
        plan.add((0, 0, None), "kept", &keeps);
        if self.is_optimised {
            plan.add((0, 0, None), "optimised", &[]);
        }
        for (seq, asked) in &self.asked {
            let mut way = self.go(&mut plan, *seq);
            let mut add = |asked: &str, ranges: &[(u64, u64)]| {
                plan.moments.insert(plan.lines, *seq);
                plan.add(std::mem::take(&mut way), asked, ranges);
            };
            if let Some(seed) = asked.seed {
                add(&format!("seed {seed:x}"), &[]);
            }
            if asked.dumps {
                add("dump", &[]);
            }
            if asked.fields {
                add("fields", &[]);
            }
            match asked.looks {
                true => add("look", &asked.reads),
                false => add("read", &asked.reads),
            }
        }
        plan
    }

    /// Makes gdb follow the path.
    pub fn go_all(&self, subject: &Subject, scratch: &Scratch) -> Walked {
        let plan = self.plan();
        let plan_file = scratch.join("plan");
        std::fs::write(&plan_file, &plan.text).expect("the folder is writable");
        let output = gdb(subject, scratch, "positions.py", &plan_file);
        let mut pids = output.lines().filter_map(|line| line.strip_prefix("PID\t"));
        let mut walked = Walked {
            pid: pids
                .next()
                .and_then(|pid| pid.parse().ok())
                .expect("gdb says so"),
            answers: BTreeMap::new(),
            keeps: self.keeps.clone(),
            dumped: std::fs::read(dump_file(&plan_file)).expect("gdb wrote it"),
        };
        let size: u64 = self.keeps.iter().map(|range| range.end - range.start).sum();
        let mut dumps = 0;
        for part in output.split("\nAT\t").skip(1) {
            let (number, said) = part.split_once('\n').unwrap_or((part, ""));
            let number: usize = number.parse().expect("a number");
            let Some(seq) = plan.moments.get(&number) else {
                continue;
            };
            let answer = walked.answers.entry(*seq).or_default();
            answer.hear(said);
            if said.starts_with("DUMPED") {
                answer.dumped = Some(dumps * size as usize);
                dumps += 1;
            }
        }
        assert_eq!(
            walked.answers.len(),
            self.asked.len(),
            "gdb gets everywhere"
        );
        walked
    }
}

fn dump_file(plan: &Path) -> std::path::PathBuf {
    let mut name = plan.as_os_str().to_owned();
    name.push(".dump");
    name.into()
}

impl Plan {
    fn add(&mut self, way: (u64, usize, Option<u64>), asked: &str, ranges: &[(u64, u64)]) {
        let (address, hit, sp) = way;
        let sp = sp.map_or(String::new(), |sp| format!("{sp:x}"));
        let ranges: Vec<String> = ranges
            .iter()
            .map(|(start, len)| format!("{start:x}+{len}"))
            .collect();
        let ranges = ranges.join(",");
        writeln!(self.text, "{address:x}\t{hit}\t{sp}\t{asked}\t{ranges}")
            .expect("a String takes all");
        self.lines += 1;
    }
}

impl Answer {
    fn hear(&mut self, said: &str) {
        if let Some(moment) = Moment::all(said).pop() {
            self.moment = moment;
        }
        let number = |text: &str| u64::from_str_radix(text, 16).expect("a number");
        for line in said.lines() {
            let fields: Vec<&str> = line.split('\t').collect();
            match fields[..] {
                ["VECTOR", index, value] => {
                    let index = index.parse().expect("a number");
                    self.vectors.insert(index, number(value));
                }
                ["FIELD", level, expression, value] => {
                    let level = level.parse().expect("a number");
                    let expression = expression.to_owned();
                    self.fields.push((level, expression, number(value)));
                }
                ["MEMORY", address, text] => {
                    let bytes = (0..text.len()).step_by(2);
                    let byte = |at| number(&text[at..at + 2]) as u8;
                    let bytes = bytes.map(byte).collect();
                    self.memory.push((number(address), bytes));
                }
                ["LASTING", address, len, what] => {
                    let len: u64 = len.parse().expect("a number");
                    let start = number(address);
                    self.lasting.push((start..start + len, what.to_owned()));
                }
                _ => {}
            }
        }
    }
}

impl Walked {
    /// Returns the memory dumped at a moment: start address and bytes.
    pub fn dump(&self, seq: u64) -> Vec<(u64, &[u8])> {
        let mut at = self.answers[&seq].dumped.expect("a dump was asked for");
        let mut parts = Vec::new();
        for range in &self.keeps {
            let len = (range.end - range.start) as usize;
            parts.push((range.start, &self.dumped[at..at + len]));
            at += len;
        }
        parts
    }
}
