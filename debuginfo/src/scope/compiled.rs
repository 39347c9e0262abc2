//! What a compiler states about the unit that it has compiled.

use gimli::DwLang;
use gimli::constants as dw;

use crate::dies::{DieReader, Home};
use crate::model::Svma;
use crate::module::Module;

/// How a unit was compiled, as far as its debug information says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompiledAs {
    /// The folder in which the compiler ran.
    pub directory: Option<String>,
    /// The compiler, often with its version and options.
    pub producer: Option<String>,
    /// The language, without the year of its standard: `C++`.
    pub language: Option<String>,
    /// The version of DWARF.
    pub dwarf_version: u16,
}

/// Returns how the unit was compiled whose code contains `svma`.
#[must_use]
pub fn compiled_as(module: &Module, svma: Svma) -> Option<CompiledAs> {
    let index = module.units().find(svma.0)?.index;
    let entries = module.entries();
    let session = entries.units()?.session();
    let mut found = entries.in_whole_unit(&session, index, stated).flatten()?;
    if found.directory.is_none() {
        // A split unit leaves the folder to its skeleton.
        let skeleton = session.unit(Home::Info, index).ok()?;
        let directory = skeleton.comp_dir;
        found.directory = directory.map(|text| text.to_string_lossy().into_owned());
    }
    Some(found)
}

fn stated(session: &DieReader<'_, '_>, index: usize) -> Option<CompiledAs> {
    let root = session.root(Home::Info, index).ok()?;
    session.begin(&root.unit);
    let text = |name| {
        let text = session.string(&root, name)?;
        Some(text.to_string_lossy().into_owned())
    };
    Some(CompiledAs {
        directory: text(dw::DW_AT_comp_dir),
        producer: text(dw::DW_AT_producer),
        language: session.language(&root).and_then(language_name),
        dwarf_version: root.unit.header.version(),
    })
}

fn language_name(language: DwLang) -> Option<String> {
    let name = match language {
        dw::DW_LANG_Mips_Assembler => "assembler",
        dw::DW_LANG_Modula2 => "Modula-2",
        dw::DW_LANG_Modula3 => "Modula-3",
        _ => {
            let name = language.static_string()?.strip_prefix("DW_LANG_")?;
            name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '_')
        }
    };
    Some(name.replace("_plus_plus", "++").replace('_', " "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn languages_have_their_usual_names() {
        for (language, name) in [
            (dw::DW_LANG_C11, "C"),
            (dw::DW_LANG_C_plus_plus, "C++"),
            (dw::DW_LANG_C_plus_plus_14, "C++"),
            (dw::DW_LANG_ObjC_plus_plus, "ObjC++"),
            (dw::DW_LANG_Rust, "Rust"),
            (dw::DW_LANG_Fortran08, "Fortran"),
            (dw::DW_LANG_Ada95, "Ada"),
            (dw::DW_LANG_Modula2, "Modula-2"),
            (dw::DW_LANG_Mips_Assembler, "assembler"),
        ] {
            assert_eq!(language_name(language).as_deref(), Some(name));
        }
        assert_eq!(language_name(DwLang(0xfff0)), None);
    }
}
