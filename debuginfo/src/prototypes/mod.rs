//! Prototypes of the C library's exported functions, from its headers. Few machines have its debug information, which also lacks
//! the names of constants.
//!
//! `generate.py` writes the table, `libc.txt`; its head explains the lines.

mod ellipsis;
mod spelled;

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

pub use ellipsis::{Ellipsis, Formatted, formatted};
pub use spelled::in_sources;

use crate::model::{ParameterPlace, ValueKind};

/// The libraries that define the functions.
const LIBRARIES: [&str; 5] = ["libc", "libm", "libpthread", "libdl", "librt"];

/// Returns whether a file is the C library or a part of it, by its name: `libc.so.6`, or `libc-2.31.so` before glibc 2.34.
#[must_use]
pub fn is_c_library(name: &str) -> bool {
    let mut rests = LIBRARIES
        .iter()
        .filter_map(|library| name.strip_prefix(library));
    rests.any(|rest| rest.starts_with(".so") || rest.starts_with("-2."))
}

const TABLE: &str = include_str!("libc.txt");

/// A function's declaration in a header.
#[derive(Debug, Clone, PartialEq)]
pub struct Prototype {
    /// Its parameters except those of an ellipsis.
    pub params: Vec<PrototypeParam>,
    /// What it returns.
    pub ret: ValueKind,
    /// Whether it returns in xmm0.
    pub returns_float: bool,
    /// What its ellipsis holds, if that is known.
    pub ellipsis: Option<Ellipsis>,
}

/// A parameter.
#[derive(Debug, Clone, PartialEq)]
pub struct PrototypeParam {
    /// Its name in the header, without underscores.
    pub name: &'static str,
    /// The kind of its value.
    pub kind: ValueKind,
    /// Where it is at entry.
    pub place: ParameterPlace,
    /// The text that it points to, if any.
    pub text: Option<PointedText>,
}

/// The text that a parameter points to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PointedText {
    /// Up to a NUL, for functions that are not called for each character.
    Seldom,
    /// Up to a NUL, for functions that only read texts or copy them.
    Often,
    /// As long as the next parameter states.
    Data,
}

/// Names of values by the set they belong to.
type Sets = HashMap<&'static str, Arc<[(i64, String)]>>;

struct Table {
    lines: HashMap<&'static str, &'static str>,
    sets: Sets,
}

fn table() -> &'static Table {
    static READ: OnceLock<Table> = OnceLock::new();
    READ.get_or_init(|| {
        let mut read = Table {
            lines: HashMap::new(),
            sets: HashMap::new(),
        };
        for line in TABLE.lines() {
            let Some((name, rest)) = line.split_once(' ') else {
                continue;
            };
            match name.strip_prefix('=') {
                None => {
                    read.lines.insert(name, rest);
                }
                Some(set) => {
                    let values = rest.split(' ').filter_map(|value| {
                        let (name, value) = value.split_once('=')?;
                        Some((value.parse().ok()?, name.to_owned()))
                    });
                    read.sets.insert(set, values.collect());
                }
            }
        }
        read
    })
}

/// Returns the prototype of the exported function `name` of the C library; `None` if the headers have none, or one with
/// structures or `long double` in it.
#[must_use]
pub fn prototype(name: &str) -> Option<Prototype> {
    let table = table();
    let declared = || table.lines.get(spelled::declared(name)?);
    let line = table.lines.get(name).or_else(declared)?;
    let mut words = line.split(' ');
    let ret = words.next()?;
    let (mut general, mut vector) = (0, 0);
    let mut params = Vec::new();
    for word in words.filter(|word| *word != "...") {
        let (name, code) = word.split_once(':')?;
        let kind = kind(code, &table.sets)?;
        let place = match kind {
            ValueKind::Float { .. } => {
                vector += 1;
                in_register(ParameterPlace::Sse, vector - 1, 8)
            }
            _ => {
                general += 1;
                in_register(ParameterPlace::Int, general - 1, 6)
            }
        };
        params.push(PrototypeParam {
            name,
            kind,
            place,
            text: match code {
                "t" => Some(PointedText::Seldom),
                "c" => Some(PointedText::Often),
                "d" => Some(PointedText::Data),
                _ => None,
            },
        });
    }
    let ret = kind(ret, &table.sets)?;
    let last = params.last().map_or("", |param| param.name);
    let has_ellipsis = line.ends_with(" ...");
    Some(Prototype {
        ellipsis: Ellipsis::of(name, last).filter(|_| has_ellipsis),
        params,
        returns_float: matches!(ret, ValueKind::Float { .. }),
        ret,
    })
}

/// Other parameters are on the stack, at an offset that no caller needs.
fn in_register(place: fn(u8) -> ParameterPlace, index: u8, registers: u8) -> ParameterPlace {
    match index < registers {
        true => place(index),
        false => ParameterPlace::Unknown,
    }
}

fn kind(code: &str, sets: &Sets) -> Option<ValueKind> {
    let (code, set) = match code.split_once('=') {
        Some((code, set)) => (code, Some(sets.get(set)?)),
        None => (code, None),
    };
    let bytes = code.get(1..).unwrap_or_default().parse().ok();
    Some(match (code.get(..1)?, bytes, set) {
        ("v", None, None) => ValueKind::Void,
        ("p" | "t" | "c" | "d", None, None) => ValueKind::Pointer,
        ("f", Some(bytes), None) => ValueKind::Float { bytes },
        (sign @ ("i" | "u"), Some(bytes), None) => ValueKind::Int {
            bytes,
            signed: sign == "i",
        },
        (sign @ ("i" | "u"), Some(bytes), Some(names)) => ValueKind::Enum {
            bytes,
            signed: sign == "i",
            names: Arc::clone(names),
        },
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const INT: ValueKind = ValueKind::Int {
        bytes: 4,
        signed: true,
    };

    #[test]
    fn only_the_c_library_is_taken_for_it() {
        assert!(is_c_library("libc.so.6") && is_c_library("libm.so.6"));
        assert!(is_c_library("libc-2.31.so") && is_c_library("librt-2.17.so"));
        assert!(!is_c_library("libcurl.so.4") && !is_c_library("libz.so.1"));
    }

    #[test]
    fn every_line_of_the_table_is_understood() {
        assert!(table().lines.len() > 1500);
        for name in table().lines.keys() {
            assert!(prototype(name).is_some(), "{name}");
        }
    }

    #[test]
    fn parameters_have_names_kinds_and_places() {
        let open = prototype("open").unwrap();
        assert_eq!((open.ret, open.params.len()), (INT, 2));
        assert_eq!(open.ellipsis, Some(Ellipsis::Mode));
        assert_eq!(prototype("vprintf").unwrap().ellipsis, None);
        let [path, flags] = &open.params[..] else {
            unreachable!()
        };
        assert_eq!((path.name, path.text), ("path", Some(PointedText::Seldom)));
        assert_eq!(flags.place, ParameterPlace::Int(1));
        let ValueKind::Enum { names, .. } = &flags.kind else {
            panic!("{:?}", flags.kind);
        };
        assert!(names.contains(&(0o2_000_000, "O_CLOEXEC".into())));
        let write = prototype("write").unwrap();
        assert_eq!(write.params[1].text, Some(PointedText::Data));
        let ldexp = prototype("ldexp").unwrap();
        assert!(ldexp.returns_float);
        assert_eq!(ldexp.params[0].place, ParameterPlace::Sse(0));
        assert_eq!(ldexp.params[1].place, ParameterPlace::Int(0));
        let scan = prototype("__isoc99_sscanf").unwrap();
        assert_eq!(scan.params, prototype("sscanf").unwrap().params);
        let checked = prototype("__open_2").unwrap();
        assert_eq!((checked.params, checked.ellipsis), (open.params, None));
        assert_eq!(prototype("no_such_function"), None);
        assert_eq!(prototype("strtold"), None, "it returns a long double");
    }
}
