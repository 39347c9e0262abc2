//! Conditions in JavaScript at random, of what is compiled and of what is not.

/// Numbers that are the same in every run.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        mixed(self.0)
    }

    pub fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    pub fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len())]
    }
}

pub fn mixed(number: u64) -> u64 {
    let number = (number ^ number >> 31).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (number ^ number >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) ^ number >> 32
}

/// What conditions are made of.
pub struct Grammar {
    pub numbers: &'static [&'static str],
    pub bools: &'static [&'static str],
    pub texts: &'static [&'static str],
    pub characters: &'static [&'static str],
    pub enumerators: &'static [&'static str],
    /// What may be null, or is an object.
    pub others: &'static [&'static str],
}

const LITERALS: &[&str] = &[
    "0",
    "1",
    "7",
    "-1",
    "5",
    "100",
    "1.5",
    "0.1",
    "0xffffffff",
    "2147483647",
    "4294967296",
    "9007199254740991",
    "1e3",
    "-2.5",
    "NaN",
    "Infinity",
    "Math.PI",
    "-0",
    "args[0]",
    "$rdi",
];
const TEXTS: &[&str] = &[
    "'a'",
    "\"req\"",
    "'req-'",
    "'r'",
    "''",
    "'ab'",
    "'e5'",
    "'x\\u00e9'",
    "'\\0'",
    "'b'",
    "'ther'",
    "'RED'",
    "'BLUE'",
];

impl Grammar {
    fn number(&self, random: &mut Random, depth: usize) -> String {
        let deeper = depth.saturating_sub(1);
        match random.below(if depth == 0 { 6 } else { 16 }) {
            0..4 if !self.numbers.is_empty() => random.one(self.numbers).to_owned(),
            4 if !self.enumerators.is_empty() => {
                format!("{}.value", random.one(self.enumerators))
            }
            0..6 => random.one(LITERALS).to_owned(),
            6 => {
                let op = random.one(&["-", "+", "~", "Math.abs", "Math.floor", "Math.ceil"]);
                format!("({op}({}))", self.number(random, deeper))
            }
            7 => {
                let op = random.one(&[
                    "Math.round",
                    "Math.trunc",
                    "Math.sqrt",
                    "Math.sign",
                    "Number",
                    "parseInt",
                    "Math.fround",
                ]);
                format!("{op}({})", self.number(random, deeper))
            }
            8 => {
                let op = random.one(&["Math.max", "Math.min"]);
                let (a, b) = (self.number(random, deeper), self.number(random, deeper));
                format!("{op}({a}, {b})")
            }
            9 => format!(
                "({} ? {} : {})",
                self.condition(random, deeper),
                self.number(random, 0),
                self.number(random, deeper)
            ),
            10 => match random.below(3) {
                0 => format!(
                    "(({}) ** {})",
                    self.number(random, 0),
                    random.one(&["1", "2", "3", "5"])
                ),
                1 => format!("[1, 5, 7, 0].indexOf({})", self.number(random, deeper)),
                _ => format!(
                    "({} || {})",
                    self.number(random, 0),
                    self.number(random, deeper)
                ),
            },
            11 if !self.texts.is_empty() => match random.below(3) {
                0 => format!("{}.length", random.one(self.texts)),
                1 => format!("{}.charCodeAt({})", random.one(self.texts), random.below(3)),
                _ => format!("({}?.length ?? 3)", random.one(self.texts)),
            },
            12 => format!("+({})", self.condition(random, deeper)),
            _ => format!(
                "({} {} {})",
                self.number(random, deeper),
                random.one(&[
                    "+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>", ">>>", "+", "-", "%"
                ]),
                self.number(random, deeper)
            ),
        }
    }

    fn text_condition(&self, random: &mut Random) -> String {
        let text = random.one(self.texts);
        let other = random.one(TEXTS);
        match random.below(9) {
            0 => format!(
                "({text} {} {other})",
                random.one(&["===", "!==", "==", "!="])
            ),
            1 => format!("{text}.startsWith({other})"),
            2 => format!("{text}.endsWith({other})"),
            3 => format!("{text}?.includes({other})"),
            4 => format!("[{other}, {}].includes({text})", random.one(TEXTS)),
            5 => format!("({text}[{}] === {other})", random.below(3)),
            6 => format!(
                "{}.test({text})",
                random.one(&["/req/", "/^a/", "/5$/", "/^req-01$/"])
            ),
            7 => format!("({text}?.at({}) === {other})", random.below(2)),
            _ => text.to_owned(),
        }
    }

    /// A condition of so many operators above each other.
    pub fn condition(&self, random: &mut Random, depth: usize) -> String {
        let deeper = depth.saturating_sub(1);
        match random.below(if depth == 0 { 9 } else { 14 }) {
            0 if !self.bools.is_empty() => random.one(self.bools).to_owned(),
            1 | 2 if !self.texts.is_empty() => self.text_condition(random),
            3 if !self.characters.is_empty() => {
                let c = random.one(self.characters);
                match random.below(4) {
                    0 => format!("({c} {} 'a')", random.one(&["===", "!==", "<", ">=", "=="])),
                    1 => format!("'qab5'.includes({c})"),
                    2 => format!("['a', 'qq'].includes({c})"),
                    _ => format!("({c}.charCodeAt(0) > 100)"),
                }
            }
            4 if !self.enumerators.is_empty() => {
                let (a, b) = (random.one(self.enumerators), random.one(self.enumerators));
                match random.below(6) {
                    0 => format!("({a} === {b})"),
                    1 => format!(
                        "({a}.name {} {})",
                        random.one(&["===", "!=="]),
                        random.one(TEXTS)
                    ),
                    2 => format!("({a} == {})", random.one(&["'BLUE'", "'RED'", "5", "1"])),
                    3 => format!("[{b}].includes({a})"),
                    4 => format!("(({a}.name ?? 5) {} 5)", random.one(&["===", "!=="])),
                    _ => format!(
                        "({a} {} {})",
                        random.one(&[">", "<=", "&", "!=="]),
                        self.number(random, 0)
                    ),
                }
            }
            5 if !self.others.is_empty() => {
                let of = random.one(self.others);
                match random.below(3) {
                    0 => format!("({of} {} null)", random.one(&["===", "!==", "==", "!="])),
                    1 => format!("({of} !== undefined)"),
                    _ => of.to_owned(),
                }
            }
            6 => format!(
                "(typeof {} {} {})",
                self.number(random, 0),
                random.one(&["===", "!=="]),
                random.one(&["'number'", "'string'", "'bigint'"])
            ),
            7 => format!(
                "[{}, 5, -1].includes({})",
                random.one(LITERALS),
                self.number(random, 0)
            ),
            8 => {
                let of = self.number(random, deeper);
                format!(
                    "{}({of})",
                    random.one(&["isNaN", "isFinite", "Boolean", "Number.isInteger"])
                )
            }
            9 | 10 => format!(
                "({} {} {})",
                self.condition(random, deeper),
                random.one(&["&&", "||", "===", "&&", "||"]),
                self.condition(random, deeper)
            ),
            11 => format!("!{}", self.condition(random, deeper)),
            12 => match random.below(3) {
                0 if !self.texts.is_empty() => format!(
                    "(({} ?? {}) {} {})",
                    random.one(self.texts),
                    random.one(LITERALS),
                    random.one(&["===", "!=="]),
                    random.one(TEXTS)
                ),
                1 => format!(
                    "({} === ({} ? {} : 'a'))",
                    random.one(TEXTS),
                    self.condition(random, deeper),
                    self.number(random, 0)
                ),
                _ => format!("({})", self.number(random, deeper)),
            },
            _ => format!(
                "({} {} {})",
                self.number(random, deeper),
                random.one(&["===", "!==", "==", "!=", "<", "<=", ">", ">="]),
                self.number(random, deeper)
            ),
        }
    }
}
