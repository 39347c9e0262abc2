//! What an ellipsis holds: the number of its arguments and their types follow from the arguments before it.

/// What tells the arguments of a function's ellipsis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ellipsis {
    /// Flags: the permissions of a file follow if they make one.
    Mode,
    /// A command of this system call, which has the same arguments.
    Command(&'static str),
    /// The number of a system call.
    SystemCall,
    /// A format, as of printf.
    Format,
}

impl Ellipsis {
    /// Returns that of a function of the C library with an ellipsis, by its name and that of its last named parameter.
    #[must_use]
    pub fn of(function: &str, last: &str) -> Option<Ellipsis> {
        Some(match (function, last) {
            ("open" | "open64" | "openat" | "openat64" | "mq_open" | "sem_open", _) => {
                Ellipsis::Mode
            }
            ("fcntl" | "fcntl64", _) => Ellipsis::Command("fcntl"),
            ("ioctl", _) => Ellipsis::Command("ioctl"),
            ("prctl", _) => Ellipsis::Command("prctl"),
            ("syscall", _) => Ellipsis::SystemCall,
            // Formats of wide characters, or with other conversions.
            _ if ["wprintf", "scanf", "fmon"]
                .iter()
                .any(|other| function.contains(other)) =>
            {
                return None;
            }
            (_, "format" | "fmt") => Ellipsis::Format,
            _ => return None,
        })
    }

    /// Returns whether flags of open make a file.
    #[must_use]
    pub fn makes_file(flags: u64) -> bool {
        const O_CREAT: u64 = 0x40;
        const O_TMPFILE: u64 = 0x41_0000;
        flags & O_CREAT != 0 || flags & O_TMPFILE == O_TMPFILE
    }
}

/// An argument that a format asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Formatted {
    /// A number of so many bytes.
    Int {
        /// 1, 2, 4 or 8.
        bytes: u8,
        /// Whether it is signed.
        signed: bool,
    },
    /// A character.
    Char,
    /// A pointer.
    Pointer,
    /// Text up to a NUL.
    Text,
    /// At most as much text as this, which need not end with a NUL.
    TextOf(u64),
    /// At most as much text as the argument before states.
    TextOfPrevious,
    /// A double.
    Double,
    /// A long double, which is on the stack.
    LongDouble,
}

/// Returns the arguments of a format in order, and whether these are all: the rest of a format may not be understood.
#[must_use]
pub fn formatted(format: &[u8]) -> (Vec<Formatted>, bool) {
    let mut all = Vec::new();
    let mut rest = format;
    while let Some(at) = rest.iter().position(|byte| *byte == b'%') {
        rest = &rest[at + 1..];
        match conversion(&mut all, rest) {
            Some(len) => rest = &rest[len..],
            None => return (all, false),
        }
    }
    (all, true)
}

/// Appends the arguments of one conversion, and returns its length.
fn conversion(all: &mut Vec<Formatted>, text: &[u8]) -> Option<usize> {
    const INT: Formatted = Formatted::Int {
        bytes: 4,
        signed: true,
    };
    let count = |from: usize, of: &[u8]| {
        let is_of = |byte: &&u8| of.contains(*byte);
        from + text
            .get(from..)
            .unwrap_or_default()
            .iter()
            .take_while(is_of)
            .count()
    };
    let mut at = count(0, b"#0- +'I");
    let mut number = |at: usize| match text.get(at) {
        Some(b'*') => {
            all.push(INT);
            (at + 1, None)
        }
        _ => {
            let end = count(at, b"0123456789");
            let digits = std::str::from_utf8(&text[at.min(end)..end]).unwrap_or_default();
            (end, Some(digits.parse().unwrap_or(0)))
        }
    };
    at = number(at).0;
    let mut limit = None;
    if text.get(at) == Some(&b'.') {
        let (end, digits) = number(at + 1);
        limit = Some(digits);
        at = end;
    }
    let end = count(at, b"hlLqjzt");
    let bytes = match &text[at..end] {
        b"hh" => 1,
        b"h" => 2,
        b"" => 4,
        _ => 8,
    };
    let is_long = matches!(&text[at..end], b"L" | b"ll" | b"q");
    let is_wide = text[at..end].contains(&b'l');
    let int = |signed| Formatted::Int { bytes, signed };
    all.push(match text.get(end)? {
        b'%' | b'm' => return Some(end + 1),
        b'd' | b'i' => int(true),
        b'u' | b'x' | b'X' | b'o' | b'b' | b'B' => int(false),
        b'c' if !is_wide => Formatted::Char,
        b'c' | b'C' => INT,
        b's' if is_wide => Formatted::Pointer,
        b's' => match limit {
            None => Formatted::Text,
            Some(Some(most)) => Formatted::TextOf(most),
            Some(None) => Formatted::TextOfPrevious,
        },
        b'p' | b'n' | b'S' => Formatted::Pointer,
        b'e' | b'E' | b'f' | b'F' | b'g' | b'G' | b'a' | b'A' if is_long => Formatted::LongDouble,
        b'e' | b'E' | b'f' | b'F' | b'g' | b'G' | b'a' | b'A' => Formatted::Double,
        // Arguments with a number, and what other libraries have registered.
        _ => return None,
    });
    Some(end + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_have_what_their_arguments_tell() {
        assert_eq!(Ellipsis::of("openat", "flags"), Some(Ellipsis::Mode));
        assert_eq!(
            Ellipsis::of("fcntl64", "cmd"),
            Some(Ellipsis::Command("fcntl"))
        );
        assert_eq!(
            Ellipsis::of("__printf_chk", "format"),
            Some(Ellipsis::Format)
        );
        assert_eq!(Ellipsis::of("syslog", "fmt"), Some(Ellipsis::Format));
        assert_eq!(Ellipsis::of("sscanf", "format"), None);
        assert_eq!(Ellipsis::of("strfmon", "format"), None);
        assert_eq!(Ellipsis::of("__swprintf_chk", "format"), None);
        assert_eq!(Ellipsis::of("execl", "arg"), None);
    }

    #[test]
    fn only_flags_that_make_a_file_have_permissions() {
        assert!(Ellipsis::makes_file(0o101) && Ellipsis::makes_file(0o20_200_002));
        // O_DIRECTORY alone is a part of O_TMPFILE.
        assert!(!Ellipsis::makes_file(0o200_000) && !Ellipsis::makes_file(0));
    }

    #[test]
    fn each_conversion_has_its_arguments() {
        use Formatted::{Char, Double, LongDouble, Pointer, Text, TextOf, TextOfPrevious};
        let int = |bytes, signed| Formatted::Int { bytes, signed };
        let check = |format: &str, expected: &[Formatted]| {
            assert_eq!(
                formatted(format.as_bytes()),
                (expected.to_vec(), true),
                "{format}"
            );
        };
        check("100 %% of %s\n", &[Text]);
        check(
            "%d %+5i %-08.3u",
            &[int(4, true), int(4, true), int(4, false)],
        );
        check(
            "%hhx %hd %ld %llu",
            &[int(1, false), int(2, true), int(8, true), int(8, false)],
        );
        check(
            "%zu %jd %td %#lX",
            &[int(8, false), int(8, true), int(8, true), int(8, false)],
        );
        check(
            "%c %p %n %5.2f %g",
            &[Char, Pointer, Pointer, Double, Double],
        );
        check("%Lf %m", &[LongDouble]);
        check("%*d", &[int(4, true), int(4, true)]);
        check("%.3s %.*s", &[TextOf(3), int(4, true), TextOfPrevious]);
        check("%ls", &[Pointer]);
    }

    #[test]
    fn what_is_not_understood_ends_the_arguments() {
        assert_eq!(formatted(b"%s %2$d %s"), (vec![Formatted::Text], false));
        assert_eq!(formatted(b"%"), (vec![], false));
        assert_eq!(formatted(b"%."), (vec![], false));
        assert_eq!(formatted(b"%5"), (vec![], false));
    }
}
