//! Functions of C that are defined without a prototype, as before 1989: callers pass each `float` as a `double`, and the
//! function makes a `float` of it. Debug information describes only the latter.

use gimli::{UnitOffset, constants as dw};

use crate::dies::{Die, DieReader};
use crate::types::{Language, language_of};

/// Returns whether a function has parameters that its callers do not know. `chain`: its DIE and those that declare it.
pub(crate) fn lacks_prototype<'a>(session: &DieReader<'_, 'a>, chain: &[Die<'a>]) -> bool {
    let is_prototyped = |die: &Die<'a>| session.flag(die, dw::DW_AT_prototyped);
    let declared = chain.last().filter(|_| !chain.iter().any(is_prototyped));
    declared.is_some_and(|die| language_of(session, die) == Language::C && marks(session, die))
}

/// Returns whether the compiler of a unit marks functions with a prototype. All releases of clang do where they name C89 or C99 as the
/// language, which older ones do for later versions, too; some do not where they name C11 or C17, and neither do compilers of other
/// languages that call theirs C.
fn marks<'a>(session: &DieReader<'_, 'a>, die: &Die<'a>) -> bool {
    let root = die.sibling(UnitOffset(die.unit.header.size_of_header()));
    let producer = session.string(&root, dw::DW_AT_producer);
    let producer = producer.map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    match producer.contains("clang") {
        true => {
            let language = session.language(die);
            matches!(language, Some(dw::DW_LANG_C89 | dw::DW_LANG_C99)) || has_marks(die)
        }
        false => producer.starts_with("GNU C"),
    }
}

/// Returns whether anything in a unit is marked.
fn has_marks(die: &Die<'_>) -> bool {
    let abbreviations = &die.unit.abbreviations;
    let mut all = (1..).map_while(|code| abbreviations.get(code));
    all.any(|abbreviation| {
        let mut attributes = abbreviation.attributes().iter();
        attributes.any(|attribute| attribute.name() == dw::DW_AT_prototyped)
    })
}
