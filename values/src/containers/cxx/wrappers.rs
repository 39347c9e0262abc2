//! Thin wrappers of C++: `tuple`, `optional`, `variant`, `atomic`, `complex`, durations, adaptors.

use crate::containers::content::{Content, Part};
use crate::containers::cxx::{NODE_VALUE, pointers};
use crate::containers::typed_place::{Reach, TypedPlace, argument, argument_value, path_of, size};
use debuginfo::Unknown;

/// Most elements of a tuple and alternatives of a variant: more are damage.
const MAX_ELEMENTS: u64 = 256;

/// Values between commas and braces, named by their numbers.
pub(super) fn listed(values: Vec<TypedPlace>) -> Content {
    let mut text = vec![Part::words(" = {")];
    for (i, value) in values.iter().enumerate() {
        if i > 0 {
            text.push(Part::words(", "));
        }
        text.push(Part::Value(value.clone()));
    }
    text.push(Part::words("}"));
    let numbered = values.into_iter().enumerate();
    let children = numbered.map(|(i, v)| (format!("[{i}]"), v)).collect();
    Content::Parts { text, children }
}

pub(super) fn tuple(spot: &TypedPlace) -> Result<Content, Unknown> {
    Ok(listed(elements(spot)))
}

/// The elements of a tuple: each level of its bases holds one element and the rest.
pub(super) fn elements(tuple: &TypedPlace) -> Vec<TypedPlace> {
    let (mut found, mut level) = (Vec::new(), Some(tuple.clone()));
    for _ in 0..=MAX_ELEMENTS {
        let Some(spot) = level.take() else { break };
        for base in spot.bases() {
            match path_of(&base.ty).as_str() {
                "std::_Tuple_impl" => level = Some(base),
                // Before the attribute for empty members, an empty element was a base of the base.
                "std::_Head_base" => match base.find("_M_head_impl") {
                    Some(head) => found.push(head),
                    None => found.extend(argument(&base.ty, 1).map(|ty| base.cast(&ty))),
                },
                _ => {}
            }
        }
    }
    found
}

pub(super) fn optional(spot: &TypedPlace, reach: &Reach) -> Result<Content, Unknown> {
    let payload = spot.field("_M_payload")?;
    // In the first releases the flag was next to the value.
    let flag = payload
        .find("_M_engaged")
        .or_else(|| spot.find("_M_engaged"));
    let flag = flag.ok_or_else(|| Unknown::because("it does not say whether it is set"))?;
    match flag.number(reach)? {
        0 if !reach.machine.is_symbolic() => Ok(Content::words(" [no contained value]")),
        0 | 1 => {
            let value = payload
                .find("_M_payload")
                .unwrap_or_else(|| payload.clone());
            let value = value.find("_M_value").unwrap_or(value);
            let value = value.cast(&argument(&spot.ty, 0)?);
            Ok(Content::around(" = {", "value", value, "}"))
        }
        flag => Err(Unknown::corrupt(format!("a flag of {flag}"))),
    }
}

pub(super) fn variant(spot: &TypedPlace, reach: &Reach) -> Result<Content, Unknown> {
    let union = spot.field("_M_u")?;
    let names = ("_M_rest", "_M_first");
    alternative(&spot.field("_M_index")?, union, names, reach, &|first| {
        let ty = argument(&first.ty, 0)?;
        Ok(first.any_field(&NODE_VALUE)?.cast(&ty))
    })
}

/// The value of the alternative with this index. The union holds the first alternative, or one for the rest.
pub(super) fn alternative(
    index: &TypedPlace,
    mut union: TypedPlace,
    (rest, first): (&str, &str),
    reach: &Reach,
    value: &dyn Fn(&TypedPlace) -> Result<TypedPlace, Unknown>,
) -> Result<Content, Unknown> {
    let valueless = u64::MAX >> (64 - 8 * size(&index.ty)?.clamp(1, 8));
    let index = index.number(reach)?;
    if index == valueless {
        return Ok(Content::words(" [no contained value]"));
    }
    let corrupt = || Unknown::corrupt(format!("alternative {index}"));
    if index >= MAX_ELEMENTS {
        return Err(corrupt());
    }
    // The alternatives are one argument each, or one pack.
    for _ in 0..index {
        union = union.find(rest).ok_or_else(corrupt)?;
    }
    let value = value(&union.find(first).ok_or_else(corrupt)?)?;
    let before = format!(" [index {index}] = {{");
    Ok(Content::around(&before, "value", value, "}"))
}

pub(super) fn atomic(spot: &TypedPlace, reach: &Reach) -> Result<Content, Unknown> {
    if let Some(owner) = spot.find("_M_impl") {
        return pointers::atomic(&spot.ty, &owner, reach);
    }
    let base = spot.find("_M_base").or_else(|| spot.find("_M_b"));
    let base = base.unwrap_or_else(|| spot.clone());
    let value = base.any_field(&["_M_i", "_M_p", "_M_fp"])?;
    Ok(Content::around(" = {", "value", value, "}"))
}

/// Two numbers, of which `real` is the first.
pub(super) fn complex(spot: &TypedPlace, real: &str) -> Result<Content, Unknown> {
    let part = argument(&spot.ty, 0)?;
    let real = spot.field(real)?.cast(&part);
    let imaginary = real.inner(&part, size(&part)?);
    Ok(Content::Parts {
        text: vec![
            Part::words(" = "),
            Part::Value(real.clone()),
            Part::words(" + "),
            Part::Value(imaginary.clone()),
            Part::words("i"),
        ],
        children: vec![("real".to_owned(), real), ("imag".to_owned(), imaginary)],
    })
}

/// A duration: a number of periods of a given length in seconds.
pub(super) fn duration(spot: &TypedPlace, count: &str) -> Result<Content, Unknown> {
    let count = spot.field(count)?;
    let period = argument(&spot.ty, 1)?;
    let part = |index| {
        let unknown = || Unknown::because("the unit of time is not known");
        argument_value(&period.strip(), index).ok_or_else(unknown)
    };
    let unit = match (part(0)?, part(1)?) {
        (1, 1) => "s".to_owned(),
        (1, 1_000) => "ms".to_owned(),
        (1, 1_000_000) => "us".to_owned(),
        (1, 1_000_000_000) => "ns".to_owned(),
        (60, 1) => "min".to_owned(),
        (3600, 1) => "h".to_owned(),
        (86400, 1) => "d".to_owned(),
        (seconds, 1) => format!("[{seconds}]s"),
        (seconds, parts) => format!("[{seconds}/{parts}]s"),
    };
    Ok(Content::Parts {
        text: vec![
            Part::words(" = "),
            Part::Value(count.clone()),
            Part::words(unit),
        ],
        children: vec![("count".to_owned(), count)],
    })
}

/// `stack`, `queue` and `priority_queue` are shown as their underlying container.
pub(super) fn adaptor(spot: &TypedPlace) -> Result<Content, Unknown> {
    Ok(Content::around(" of ", "c", spot.field("c")?, ""))
}
