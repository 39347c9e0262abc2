//! What short names omit of standard libraries: their paths, and default arguments.

use super::Segment;
use crate::types::INLINE_NAMESPACES;

/// The path without that of a standard library.
pub(super) fn shortened(mut segments: Vec<Segment>) -> Vec<Segment> {
    let is_cpp =
        segments.len() > 1 && (segments[0].is_plain("std") || segments[0].is_plain("__gnu_cxx"));
    if let Some(from) = rust_path_end(&segments) {
        without_rust_defaults(&mut segments[from]);
        segments.drain(..from);
    } else if is_cpp {
        // libstdc++'s containers are in `__cxx1998` if its debug mode has others in front of them.
        let is_hidden = |name: &str| INLINE_NAMESPACES.contains(&name) || name == "__cxx1998";
        let is_inline = |segment: &Segment| segment.arguments.is_none() && is_hidden(&segment.name);
        let mut at = 0;
        segments.retain(|segment| {
            at += 1;
            at == 1 || !is_inline(segment)
        });
        for segment in &mut segments {
            without_cpp_defaults(segment);
        }
    }
    segments
}

/// Modules of Rust's `core` and `alloc`.
const CORE_MODULES: [&str; 52] = [
    "alloc",
    "any",
    "array",
    "ascii",
    "async_iter",
    "bool",
    "borrow",
    "boxed",
    "bstr",
    "cell",
    "char",
    "clone",
    "cmp",
    "collections",
    "convert",
    "core_arch",
    "core_simd",
    "default",
    "error",
    "escape",
    "f32",
    "f64",
    "ffi",
    "fmt",
    "future",
    "hash",
    "hint",
    "intrinsics",
    "io",
    "iter",
    "marker",
    "mem",
    "net",
    "num",
    "ops",
    "option",
    "panic",
    "panicking",
    "pin",
    "ptr",
    "range",
    "raw_vec",
    "rc",
    "result",
    "slice",
    "str",
    "string",
    "sync",
    "task",
    "time",
    "unicode",
    "vec",
];

/// Modules of Rust's `std` whose names are not namespaces, classes or functions of C++'s.
const STD_MODULES: [&str; 24] = [
    "alloc",
    "backtrace",
    "collections",
    "env",
    "error",
    "f32",
    "f64",
    "ffi",
    "fs",
    "io",
    "net",
    "os",
    "panic",
    "panicking",
    "path",
    "process",
    "rt",
    "sync",
    "sys",
    "sys_common",
    "thread_local",
    "time",
    "backtrace_rs",
    "ascii",
];

/// Functions and modules of Rust's `std::thread`, a class in C++.
const THREAD_PARTS: [&str; 13] = [
    "available_parallelism",
    "current",
    "lifecycle",
    "local",
    "main_thread",
    "panicking",
    "park",
    "scope",
    "scoped",
    "sleep",
    "spawn",
    "spawnhook",
    "yield_now",
];

/// Returns the first segment to keep of a path of Rust's standard library: that of the type, or the module of a
/// function. `None`: it is not such a path.
fn rust_path_end(segments: &[Segment]) -> Option<usize> {
    let [first, second, rest @ ..] = segments else {
        return None;
    };
    if first.arguments.is_some() || second.arguments.is_some() {
        return None;
    }
    let module = &*second.name;
    let is_type = |segment: &Segment| segment.name.starts_with(|c: char| c.is_ascii_uppercase());
    let is_rust = match &*first.name {
        "core" | "alloc" => CORE_MODULES.contains(&module) && !rest.is_empty(),
        "std" => match module {
            // In C++ one is a class and the other a template.
            "thread" | "hash" => {
                let is_function = |third: &Segment| THREAD_PARTS.contains(&&*third.name);
                rest.iter().any(is_type) || rest.first().is_some_and(is_function)
            }
            module => STD_MODULES.contains(&module) && !rest.is_empty(),
        },
        _ => false,
    };
    if !is_rust {
        return None;
    }
    if let Some(at) = segments.iter().position(is_type) {
        return Some(at);
    }
    // A closure, or an impl of which only the number is known: `lifecycle::{impl#2}::drop::{closure_env#0}`.
    let is_named = |segment: &Segment| !segment.name.starts_with('{');
    let last = segments.iter().rposition(is_named)?;
    Some(segments[..last].iter().rposition(is_named).unwrap_or(last))
}

/// How many arguments of a type of Rust have no default.
fn without_rust_defaults(segment: &mut Segment) {
    let needed = match &*segment.name {
        "HashMap" | "BTreeMap" => 2,
        "Vec" | "VecDeque" | "Box" | "Rc" | "Arc" | "Weak" | "BTreeSet" | "HashSet"
        | "LinkedList" | "BinaryHeap" | "RawVec" | "IntoIter" | "Drain" => 1,
        _ => return,
    };
    let Some(arguments) = &mut segment.arguments else {
        return;
    };
    while arguments.len() > needed
        && arguments
            .last()
            .is_some_and(|last| matches!(&**last, "Global" | "RandomState"))
    {
        arguments.pop();
    }
}

/// Drops arguments of a class template that are its defaults, and uses the name that it has with these.
fn without_cpp_defaults(segment: &mut Segment) {
    let needed = match &*segment.name {
        "map" | "multimap" | "unordered_map" | "unordered_multimap" => 2,
        "stack" | "queue" | "vector" | "deque" | "list" | "forward_list" | "set" | "multiset"
        | "unordered_set" | "unordered_multiset" | "unique_ptr" | "priority_queue"
        | "_Vector_base" | "_List_base" | "_Deque_base" | "_Fwd_list_base" => 1,
        name if name.starts_with("basic_") => 1,
        // Of functions that take containers these are the containers' arguments.
        name if name.starts_with("operator") || name == "getline" => 1,
        _ => return,
    };
    let Some(arguments) = &mut segment.arguments else {
        return;
    };
    let Some(first) = arguments.first().cloned() else {
        return;
    };
    // A constructor that is a template for its allocator's sake alone.
    if first.starts_with("std::allocator<") && segment.name.starts_with("basic_") {
        segment.arguments = None;
        return;
    }
    let inner = segment.name.clone();
    let is_adaptor = matches!(&*inner, "stack" | "queue" | "priority_queue");
    let is_default = |argument: &String| {
        let of_first = ["less", "hash", "equal_to", "char_traits", "default_delete"];
        let container = if inner == "priority_queue" {
            "vector"
        } else {
            "deque"
        };
        argument.starts_with("std::allocator<")
            || is_adaptor && *argument == format!("std::{container}<{first}>")
            || of_first
                .iter()
                .any(|name| *argument == format!("std::{name}<{first}>"))
    };
    while arguments.len() > needed && arguments.last().is_some_and(is_default) {
        arguments.pop();
    }
    if let ([only], Some(name)) = (&arguments[..], segment.name.strip_prefix("basic_")) {
        let prefix = match &**only {
            "char" => "",
            "wchar_t" => "w",
            "char8_t" if name.starts_with("string") => "u8",
            "char16_t" if name.starts_with("string") => "u16",
            "char32_t" if name.starts_with("string") => "u32",
            _ => return,
        };
        segment.name = format!("{prefix}{name}");
        segment.arguments = None;
    }
}
