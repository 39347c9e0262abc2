//! Words that are not names of variables.

/// Words that form an expression of their own.
const KEYWORDS: [&str; 6] = ["sizeof", "true", "false", "null", "nullptr", "NULL"];

/// C words that form a type together.
const C_WORDS: [&str; 14] = [
    "int",
    "char",
    "long",
    "short",
    "signed",
    "unsigned",
    "float",
    "double",
    "void",
    "bool",
    "_Bool",
    "_Complex",
    "__int128",
    "__signed__",
];

/// One-word types that are never names of variables.
const TYPES: [&str; 35] = [
    "i8",
    "i16",
    "i32",
    "i64",
    "i128",
    "isize",
    "u8",
    "u16",
    "u32",
    "u64",
    "u128",
    "usize",
    "f32",
    "f64",
    "str",
    "int8_t",
    "int16_t",
    "int32_t",
    "int64_t",
    "uint8_t",
    "uint16_t",
    "uint32_t",
    "uint64_t",
    "intptr_t",
    "uintptr_t",
    "size_t",
    "ssize_t",
    "ptrdiff_t",
    "wchar_t",
    "char8_t",
    "char16_t",
    "char32_t",
    "__int128_t",
    "__uint128_t",
    "nullptr_t",
];

/// Returns whether a name needs a prefix `r#` to be parsed as a name everywhere.
pub(crate) fn is_special(name: &str) -> bool {
    is_keyword(name)
        || is_builtin_type(name)
        || is_tag(name)
        || is_qualifier(name)
        || ["mut", "dyn", "fn", "as"].contains(&name)
}

pub(super) fn is_keyword(name: &str) -> bool {
    KEYWORDS.contains(&name)
}

pub(super) fn is_c_word(word: &str) -> bool {
    C_WORDS.contains(&word)
}

pub(super) fn is_builtin_type(word: &str) -> bool {
    TYPES.contains(&word) || is_c_word(word)
}

pub(super) fn is_tag(word: &str) -> bool {
    ["struct", "class", "union", "enum"].contains(&word)
}

pub(super) fn is_qualifier(word: &str) -> bool {
    [
        "const",
        "volatile",
        "restrict",
        "__restrict",
        "__restrict__",
        "_Atomic",
    ]
    .contains(&word)
}
