//! Values that a session keeps: the value history (`$1`) and the user's convenience variables (`$name`).
//!
//! A kept value has the bytes of that moment and never changes. What it points to is read on demand. A value larger
//! than [`MAX_BYTES`](debuginfo::value::MAX_BYTES) is never read whole, so only its place is kept.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use debuginfo::location::ValuePlace;
use debuginfo::value::{MAX_BYTES, Value};
use debuginfo::{Diagnostic, Extended, Register, RegisterPart};

/// The most bytes of shown values that are kept. The oldest are forgotten first.
const MOST_BYTES: usize = 64 << 20;
/// The most shown values that are kept.
const MOST_VALUES: usize = 100_000;

/// Names of registers that cannot be read. No variable may hide that.
const UNREAD: [&str; 3] = ["orig_rax", "eip", "ip"];

/// Values that a session keeps. It may be used from any thread.
#[derive(Debug, Default)]
pub struct Kept {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default, Clone)]
struct Inner {
    /// The number of the newest shown value; 0 if there is none.
    newest: u64,
    shown: BTreeMap<u64, Value>,
    bytes: usize,
    named: HashMap<String, Value>,
}

impl Kept {
    /// Returns whether `$name` can be set: it is a name, and no register's.
    #[must_use]
    pub fn can_set(name: &str) -> bool {
        let begins = name.starts_with(|c: char| c.is_alphabetic() || c == '_');
        begins
            && name.chars().all(|c| c.is_alphanumeric() || c == '_')
            && Register::by_name(name).is_none()
            && RegisterPart::by_name(name).is_none()
            && Extended::by_name(name).is_none()
            && !UNREAD.contains(&name)
    }

    /// Keeps a shown value and returns its number.
    pub fn show(&self, value: &Value) -> u64 {
        let value = as_it_is(value);
        let mut inner = self.lock();
        inner.newest += 1;
        inner.bytes += len(&value);
        let number = inner.newest;
        inner.shown.insert(number, value);
        while inner.shown.len() > MOST_VALUES || inner.bytes > MOST_BYTES && inner.shown.len() > 1 {
            let Some((_, oldest)) = inner.shown.pop_first() else {
                break;
            };
            inner.bytes -= len(&oldest);
        }
        number
    }

    /// Sets the variable `name`.
    pub fn set(&self, name: &str, value: &Value) {
        self.lock().named.insert(name.to_owned(), as_it_is(value));
    }

    /// Keeps what `other` keeps, in place of what is kept here.
    pub fn take_over(&self, other: &Kept) {
        let theirs = other.lock().clone();
        *self.lock() = theirs;
    }

    /// Returns what follows the `$`: the number of a shown value, `$` and a count back from the newest, nothing for
    /// the newest one, or the name of a variable.
    ///
    /// # Errors
    /// Nothing is kept under that name. The text says so, and what to do.
    pub fn find(&self, name: &str) -> Result<Value, Diagnostic> {
        let inner = self.lock();
        let back = match name {
            "" => Some(0),
            "$" => Some(1),
            name => name.strip_prefix('$').and_then(|back| back.parse().ok()),
        };
        let number = match back {
            Some(back) => Some(inner.newest.saturating_sub(back)),
            None => name.parse().ok(),
        };
        let Some(number) = number else {
            let found = inner.named.get(name).cloned();
            return found.ok_or_else(|| unset(name));
        };
        let found = inner.shown.get(&number).cloned();
        found.ok_or_else(|| unshown(name, number, inner.newest))
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Each change is complete before the next thing that could panic.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Variables that gdb sets by itself, and what tells the same here.
const ELSEWHERE: [(&str, &str); 6] = [
    ("_exitcode", "status shows how the program ended"),
    ("_exitsignal", "status shows how the program ended"),
    ("_", "x shows memory and continues where it ended"),
    (
        "__",
        "x shows memory; print *(int *)ADDRESS shows one value",
    ),
    ("_thread", "threads marks the selected thread"),
    ("bpnum", "break list shows the numbers"),
];

fn unset(name: &str) -> Diagnostic {
    if name == "_siginfo" {
        return Diagnostic::new("there is no $_siginfo here").with_hint(
            "where shows the signal that stopped the thread, and the address of a fault",
        );
    }
    if let Some((_, instead)) = ELSEWHERE.iter().find(|(own, _)| *own == name) {
        return Diagnostic::new(format!("${name} is not kept here")).with_hint(*instead);
    }
    if UNREAD.contains(&name) {
        return Diagnostic::new(format!("${name} cannot be read")).with_hint(match name {
            "orig_rax" => "catch syscall stops before a system call, whose number is in $rax",
            _ => "the whole register is $rip",
        });
    }
    Diagnostic::new(format!("${name} is no register, and has not been set"))
        .with_hint(format!("set it: set ${name} = 1"))
}

fn unshown(name: &str, number: u64, newest: u64) -> Diagnostic {
    match (newest, number) {
        (0, _) => Diagnostic::new("no value has been shown yet")
            .with_hint("print shows values and numbers them"),
        (newest, number) if number == 0 || number > newest => {
            let message = format!("there is no value ${name}");
            Diagnostic::new(message).with_hint(format!("the values are $1 to ${newest}"))
        }
        _ => Diagnostic::new(format!("the value ${name} is no longer kept"))
            .with_hint("the newest values are kept, up to 64 MiB of them"),
    }
}

/// Returns a value that stays as it is now.
fn as_it_is(value: &Value) -> Value {
    let is_large = value.ty.size().is_some_and(|size| size > MAX_BYTES);
    let place = match (&value.bytes, &value.place) {
        (Err(_), ValuePlace::Memory(_)) if is_large => return value.clone(),
        (_, ValuePlace::ImplicitPointer { .. } | ValuePlace::OptimizedOut) => return value.clone(),
        (Ok(bytes), _) => ValuePlace::Implicit(bytes.clone()),
        (Err(why), _) => ValuePlace::Unknown(why.clone()),
    };
    Value {
        place,
        ..value.clone()
    }
}

fn len(value: &Value) -> usize {
    2 * value.bytes.as_ref().map_or(0, Vec::len)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::number::{IntKind, Number};

    fn number(value: u128) -> Value {
        let number = Number::integer(IntKind::INT, value);
        crate::eval::number_value(number, debuginfo::Certainty::Known)
    }

    fn found(kept: &Kept, name: &str) -> Result<i128, String> {
        let value = kept.find(name).map_err(|what| what.one_line())?;
        Ok(value.as_integer().expect("a number"))
    }

    #[test]
    fn shown_values_are_found_from_both_ends() {
        let kept = Kept::default();
        assert!(
            found(&kept, "")
                .unwrap_err()
                .contains("no value has been shown yet"),
            "nothing is there"
        );
        for value in 11..=13 {
            kept.show(&number(value));
        }
        for (name, value) in [
            ("1", 11),
            ("3", 13),
            ("", 13),
            ("$", 12),
            ("$0", 13),
            ("$2", 11),
        ] {
            assert_eq!(found(&kept, name), Ok(value), "${name}");
        }
        for wrong in ["0", "4", "$3", "99999999999999999999"] {
            assert!(found(&kept, wrong).is_err(), "${wrong}");
        }
    }

    #[test]
    fn variables_are_set_and_registers_are_none() {
        let kept = Kept::default();
        assert!(
            found(&kept, "x")
                .unwrap_err()
                .contains("set it: set $x = 1")
        );
        kept.set("x", &number(3));
        kept.set("x", &number(4));
        assert_eq!(found(&kept, "x"), Ok(4));
        let other = Kept::default();
        other.take_over(&kept);
        assert_eq!(found(&other, "x"), Ok(4));
        for name in [
            "rip", "sp", "pc", "xmm3", "1", "", "a b", "eax", "ah", "r8d", "cs", "ymm0", "eip",
        ] {
            assert!(!Kept::can_set(name), "{name}");
        }
        assert!(Kept::can_set("x") && Kept::can_set("_1"));
    }

    #[test]
    fn the_oldest_values_are_forgotten_first() {
        let kept = Kept::default();
        let byte = debuginfo::types::builtin("u8").expect("a base type");
        let large = Value::constant(byte.array(MAX_BYTES), vec![1; MAX_BYTES as usize]);
        for _ in 0..40 {
            kept.show(&large);
        }
        assert!(found(&kept, "1").unwrap_err().contains("is no longer kept"));
        assert!(kept.find("40").is_ok());
        assert!(kept.find("9").is_ok());
        assert!(kept.find("8").is_err());
    }
}
