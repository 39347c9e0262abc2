//! Collects the differences of two threads: how many of each kind each function has, the first ones as they are, and where
//! the threads parted.

use std::collections::BTreeSet;
use std::slice;

use rustc_hash::FxHashMap;

use super::derived::Derived;
use super::hash;
use super::rows::Row;
use super::walk::Told;

/// Rows before and after a difference that are told with it.
pub const AROUND: usize = 3;
/// Rows after a difference that are looked at for calls that began after it. The others are open around it or were made inside.
const FOLLOWING: usize = 16;
/// Different fingerprints of one comparison that are remembered.
pub const MOST_FINGERPRINTS: usize = 100_000;

/// In which way a call differs. A call may differ in several.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// It was called with other arguments.
    Arguments,
    /// With the same arguments it returned something else, or ended in another way.
    Result,
    /// With the same arguments and the same result it made more or fewer calls.
    Inside,
    /// Only the first recording has it.
    OnlyA,
    /// Only the second recording has it.
    OnlyB,
}

/// A call that differs.
#[derive(Clone, Copy, Debug)]
pub struct Difference {
    /// In which way, first of all.
    pub kind: Kind,
    /// The call in the first recording.
    pub a: Option<Row>,
    /// The call in the second recording.
    pub b: Option<Row>,
    /// The last call before that both have.
    pub last: Option<(Row, Row)>,
    /// Only which blocks or descriptors they are differs.
    pub is_exact: bool,
    /// The same for the same difference, in every run.
    pub fingerprint: u64,
}

impl Difference {
    /// Returns the shared number of its function.
    pub fn function(&self) -> u32 {
        self.a.or(self.b).map_or(0, |row| row.function)
    }
}

/// How many calls of a function differ, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// By [`Kind`].
    pub by_kind: [u64; 5],
    /// The enter events of the first call that differs.
    pub first: (Option<u64>, Option<u64>),
}

/// Where two threads parted.
#[derive(Clone, Debug, Default)]
pub struct Parted {
    /// The last rows before.
    pub before: Vec<(Row, Row)>,
    /// The next row in the first recording.
    pub a: Option<Row>,
    /// The next row in the second recording.
    pub b: Option<Row>,
    /// Up to there, blocks and descriptors have the same numbers.
    pub is_exact: bool,
    /// The next rows of the first and of the second recording.
    pub after: [Vec<Row>; 2],
}

/// The differences of one thread.
pub struct Collected<'k> {
    keys: &'k [u64],
    accepted: &'k BTreeSet<u64>,
    most: usize,
    /// Rows that both have.
    pub same: u64,
    /// Differences that were accepted earlier.
    pub known: u64,
    /// All others.
    pub total: u64,
    /// The first of them.
    pub kept: Vec<Difference>,
    /// Their fingerprints, at most [`MOST_FINGERPRINTS`].
    pub fingerprints: BTreeSet<u64>,
    /// There are more fingerprints.
    pub has_more: bool,
    /// By shared number.
    pub functions: FxHashMap<u32, Counts>,
    /// Where the threads parted.
    pub parted: Option<Parted>,
    /// Knows numbers that are made of addresses, where these are random.
    pub derived: Option<Derived<'k>>,
    near: Near,
}

/// The rows around the place that is compared.
struct Near {
    /// The last pairs before it.
    before: Vec<(Row, Row)>,
    last: Option<(Row, Row)>,
    /// The first rows of a stretch that differs.
    fronts: Option<(Option<Row>, Option<Row>)>,
    is_exact: bool,
}

impl<'k> Collected<'k> {
    /// Begins. `keys` are the stable numbers of the shared functions; at most `most` differences are kept.
    pub fn new(
        keys: &'k [u64],
        accepted: &'k BTreeSet<u64>,
        most: usize,
        derived: Option<Derived<'k>>,
    ) -> Self {
        Self {
            keys,
            accepted,
            most,
            same: 0,
            known: 0,
            total: 0,
            kept: Vec::new(),
            fingerprints: BTreeSet::new(),
            has_more: false,
            functions: FxHashMap::default(),
            parted: None,
            derived,
            near: Near {
                before: Vec::new(),
                last: None,
                fronts: None,
                is_exact: true,
            },
        }
    }

    fn stable(&self, row: &Row) -> u64 {
        hash::of_words(&[
            self.keys[row.function as usize],
            u64::from(row.inside),
            row.args.class,
            row.result.class,
        ])
    }

    /// Keeps the first rows of each side after the difference.
    fn follow(&mut self, a: &[Row], b: &[Row]) {
        let Some(parted) = &mut self.parted else {
            return;
        };
        for (kept, rows) in parted.after.iter_mut().zip([a, b]) {
            let missing = FOLLOWING.saturating_sub(kept.len());
            kept.extend(rows.iter().take(missing));
        }
    }

    fn differs(&mut self, kind: Kind, a: Option<&Row>, b: Option<&Row>) {
        let of = |row: Option<&Row>| row.map_or(0, |row| self.stable(row));
        let is_exact = a.zip(b).is_some_and(|(a, b)| a.is_same(b, false));
        let fingerprint = match (is_exact, a, b) {
            (true, Some(own), Some(other)) => {
                let exact = [own.args, other.args, own.result, other.result];
                let exact = hash::of_words(&exact.map(|form| form.exact));
                hash::of_words(&[kind as u64, of(a), exact])
            }
            _ => hash::of_words(&[kind as u64, of(a), of(b)]),
        };
        let fronts = self.near.fronts.take();
        if self.accepted.contains(&fingerprint) {
            self.near.last = a.copied().zip(b.copied()).or(self.near.last);
            self.known += 1;
            return;
        }
        self.total += 1;
        let (a, b) = (a.copied(), b.copied());
        let last = self.near.last;
        self.near.last = a.zip(b).or(last);
        if self.parted.is_none() {
            let (front_a, front_b) = fronts.unwrap_or((a, b));
            self.parted = Some(Parted {
                before: std::mem::take(&mut self.near.before),
                a: front_a,
                b: front_b,
                is_exact: self.near.is_exact,
                after: Default::default(),
            });
        }
        if self.fingerprints.len() < MOST_FINGERPRINTS {
            self.fingerprints.insert(fingerprint);
        } else if !self.fingerprints.contains(&fingerprint) {
            self.has_more = true;
        }
        let difference = Difference {
            kind,
            a,
            b,
            last,
            is_exact,
            fingerprint,
        };
        let counts = self
            .functions
            .entry(difference.function())
            .or_insert(Counts {
                first: (a.map(|row| row.start), b.map(|row| row.start)),
                ..Counts::default()
            });
        counts.by_kind[kind as usize] += 1;
        if self.kept.len() < self.most {
            self.kept.push(difference);
        }
    }
}

impl Told for Collected<'_> {
    fn same(&mut self, a: &[Row], b: &[Row]) {
        self.same += a.len() as u64;
        self.near.fronts = None;
        self.near.last = a.last().copied().zip(b.last().copied()).or(self.near.last);
        if self.parted.is_some() {
            self.follow(a, b);
            return;
        }
        let first = a.len().saturating_sub(AROUND);
        let pairs = a[first..].iter().copied().zip(b[first..].iter().copied());
        self.near.before.extend(pairs);
        let excess = self.near.before.len().saturating_sub(AROUND);
        self.near.before.drain(..excess);
    }

    fn differ(&mut self, a: Option<&Row>, b: Option<&Row>, is_exact: bool) {
        self.near.fronts = Some((a.copied(), b.copied()));
        self.near.is_exact = is_exact;
    }

    fn is_chance(&mut self, a: &Row, b: &Row, is_exact: bool) -> bool {
        let derived = self.derived.as_mut();
        derived.is_some_and(|derived| derived.explains(a, b, is_exact))
    }

    fn changed(&mut self, a: &Row, b: &Row) {
        if self.is_chance(a, b, false) {
            self.same(slice::from_ref(a), slice::from_ref(b));
            return;
        }
        let kind = match () {
            () if a.args.class != b.args.class => Kind::Arguments,
            () if a.result.class != b.result.class => Kind::Result,
            () if a.inside != b.inside => Kind::Inside,
            () if a.args != b.args => Kind::Arguments,
            () => Kind::Result,
        };
        self.differs(kind, Some(a), Some(b));
        self.follow(slice::from_ref(a), slice::from_ref(b));
    }

    fn only(&mut self, row: &Row, is_a: bool) {
        match is_a {
            true => self.differs(Kind::OnlyA, Some(row), None),
            false => self.differs(Kind::OnlyB, None, Some(row)),
        }
        match is_a {
            true => self.follow(slice::from_ref(row), &[]),
            false => self.follow(&[], slice::from_ref(row)),
        }
    }
}
