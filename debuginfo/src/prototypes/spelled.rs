//! Headers put other functions in the place of those that a source names: with `_FORTIFY_SOURCE`, `printf` is a call of
//! `__printf_chk`.

/// What comes before the name in functions that behave as a standard says.
const STANDARDS: [&str; 3] = ["__isoc99_", "__isoc23_", "__xpg_"];
/// Functions of older headers and their names in sources.
const OLDER: [(&str, &str); 10] = [
    ("__xstat", "stat"),
    ("__fxstat", "fstat"),
    ("__lxstat", "lstat"),
    ("__fxstatat", "fstatat"),
    ("__xstat64", "stat64"),
    ("__fxstat64", "fstat64"),
    ("__lxstat64", "lstat64"),
    ("__fxstatat64", "fstatat64"),
    ("_IO_getc", "getc"),
    ("_IO_putc", "putc"),
];
/// Ends the names of functions with 64-bit offsets. All offsets have 64 bits here.
const LARGE: &str = "64";

/// Returns the names that sources have for a call of this exported function of the C library, if they have others.
pub fn in_sources(exported: &str) -> impl Iterator<Item = &str> {
    let name = checked(exported)
        .or_else(|| standard(exported))
        .or_else(|| older(exported));
    let plain = name.and_then(|name| name.strip_suffix(LARGE));
    name.into_iter().chain(plain)
}

/// Returns the function that has the same parameters, in the same order, and is in the headers.
pub(super) fn declared(exported: &str) -> Option<&str> {
    let opened = || exported.strip_prefix("__")?.strip_suffix("_2");
    let standard = standard(exported).filter(|_| !exported.starts_with("__xpg_"));
    standard.or_else(opened)
}

fn checked(exported: &str) -> Option<&str> {
    exported.strip_prefix("__")?.strip_suffix("_chk")
}

fn standard(exported: &str) -> Option<&str> {
    let mut standards = STANDARDS.iter();
    standards.find_map(|standard| exported.strip_prefix(standard))
}

fn older(exported: &str) -> Option<&'static str> {
    let found = OLDER.iter().find(|(known, _)| *known == exported)?;
    Some(found.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_have_the_names_of_sources() {
        let names = |exported| in_sources(exported).collect::<Vec<_>>();
        assert_eq!(names("__printf_chk"), ["printf"]);
        assert_eq!(names("__pread64_chk"), ["pread64", "pread"]);
        assert_eq!(names("__isoc99_sscanf"), ["sscanf"]);
        assert_eq!(names("__isoc23_strtol"), ["strtol"]);
        assert_eq!(names("__xstat64"), ["stat64", "stat"]);
        for own in ["printf", "open64", "__stack_chk_fail", "__open_2", ""] {
            assert!(names(own).is_empty(), "{own}");
        }
    }

    #[test]
    fn only_functions_with_the_same_parameters_share_a_declaration() {
        assert_eq!(declared("__isoc99_sscanf"), Some("sscanf"));
        assert_eq!(declared("__openat64_2"), Some("openat64"));
        for other in ["__printf_chk", "__xpg_strerror_r", "re_match_2", "open"] {
            assert_eq!(declared(other), None, "{other}");
        }
    }
}
