//! Gives functions of the C library their prototypes from its headers.

use agent::shared::Text;
use debuginfo::prototypes::{Ellipsis, PointedText, Prototype};
use debuginfo::{ParameterPlace, ValueKind};
use store::control::{Param, RetPlace};

use super::choose::{Candidate, place, value_kind};

/// Applies the prototype of its function to `candidate`.
pub fn apply(candidate: &mut Candidate, prototype: Prototype) {
    let param = |param: &debuginfo::prototypes::PrototypeParam| {
        Param::in_one_place(param.name, value_kind(&param.kind), place(param.place))
    };
    let def = &mut candidate.def;
    def.params = prototype.params.iter().map(param).collect();
    def.params_known = true;
    def.ret = value_kind(&prototype.ret);
    def.ret_place = Some(match prototype.ret {
        ValueKind::Void => RetPlace::Nowhere,
        ValueKind::Float { .. } => RetPlace::Xmm0,
        _ => RetPlace::Rax,
    });
    let is_vector = |param: &&debuginfo::prototypes::PrototypeParam| {
        matches!(param.place, ParameterPlace::Sse(_))
    };
    let vectors = match prototype.ellipsis {
        // A format may ask for numbers with a point.
        Some(Ellipsis::Format) => 4,
        _ => prototype.params.iter().filter(is_vector).count(),
    };
    candidate.xmm_args = match vectors {
        0 => 0,
        1..=2 => 2,
        3..=4 => 4,
        _ => 8,
    };
    candidate.ret_xmm = prototype.returns_float;
    candidate.texts = texts(&prototype, false);
    candidate.prototype = Some(prototype);
}

/// Returns where the texts of its integer arguments are; `often`: also those of functions that are called very often.
pub fn texts(prototype: &Prototype, often: bool) -> [u8; 6] {
    let mut texts = [0; 6];
    for param in &prototype.params {
        let ParameterPlace::Int(register) = param.place else {
            continue;
        };
        texts[usize::from(register)] = match param.text {
            Some(PointedText::Seldom) => Text::Terminated.code(),
            Some(PointedText::Often) if often => Text::Terminated.code(),
            Some(PointedText::Data) => Text::Slice.code(),
            _ => 0,
        };
    }
    let named = prototype.params.len().min(texts.len());
    match prototype.ellipsis {
        Some(Ellipsis::Format) if often => texts[named..].fill(Text::Terminated.code()),
        // The name of a thread.
        Some(Ellipsis::Command("prctl")) => texts[1] = Text::Terminated.code(),
        _ => {}
    }
    texts
}

#[cfg(test)]
mod tests {
    use debuginfo::prototypes::prototype;

    use super::*;

    #[test]
    fn texts_are_kept_unless_a_function_is_called_very_often() {
        let texts_of = |name, often| texts(&prototype(name).unwrap(), often);
        let (terminated, slice) = (Text::Terminated.code(), Text::Slice.code());
        assert_eq!(texts_of("open", false), [terminated, 0, 0, 0, 0, 0]);
        assert_eq!(texts_of("write", false), [0, slice, 0, 0, 0, 0]);
        assert_eq!(texts_of("strcmp", false), [0; 6]);
        assert_eq!(texts_of("strcmp", true)[..2], [terminated; 2]);
        assert_eq!(texts_of("printf", false), [0; 6]);
        assert_eq!(texts_of("printf", true), [terminated; 6]);
        assert_eq!(texts_of("prctl", false), [0, terminated, 0, 0, 0, 0]);
    }
}
