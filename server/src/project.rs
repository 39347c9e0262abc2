//! The file `hindsight.toml` of a project, in its own folder. A missing file is an empty one; a wrong one is an error.
//!
//! ```toml
//! [compare.ignore]
//! functions = ["log_*"]      # their calls are not compared
//! inside = ["table_find"]    # their calls are not, and neither are all calls within them
//! results = ["now"]          # their results are not
//! args = ["open:flags"]      # FUNCTION:ARGUMENT
//! output = ["^took .* ms"]   # regular expressions: lines that are left out
//! kinds = ["exit"]           # output, exit, exceptions, events
//! ```

use std::path::Path;

use serde::Deserialize;

use crate::error::{Error, Result};

/// The file's name.
pub const PROJECT_FILE: &str = "hindsight.toml";

/// Everything in the file.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Project {
    compare: Compare,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Compare {
    ignore: CompareRules,
}

/// What may differ between two recordings of the project.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CompareRules {
    /// Patterns of functions whose calls are left out.
    pub functions: Vec<String>,
    /// Patterns of functions whose calls are left out with all calls within them.
    pub inside: Vec<String>,
    /// Patterns of functions whose results are not compared.
    pub results: Vec<String>,
    /// `FUNCTION:ARGUMENT`: arguments that are not compared.
    pub args: Vec<String>,
    /// Regular expressions: lines of output that are left out.
    pub output: Vec<String>,
    /// Kinds of events that are not compared.
    pub kinds: Vec<String>,
}

/// Returns what the project in `folder` excludes from comparisons.
///
/// # Errors
/// [`Error::Config`] if the file is wrong; it cannot be read.
pub fn compare_rules(folder: &Path) -> Result<CompareRules> {
    let path = folder.join(PROJECT_FILE);
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Ok(CompareRules::default());
        }
        Err(error) => return Err(Error::io(format!("read {}", path.display()))(error)),
    };
    let project: Project =
        toml::from_str(&text).map_err(|error| Error::toml(&path, &text, &error))?;
    Ok(project.compare.ignore)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_file_ignores_nothing_and_a_wrong_one_is_told() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(
            compare_rules(folder.path()).unwrap(),
            CompareRules::default()
        );
        let write = |text: &str| std::fs::write(folder.path().join(PROJECT_FILE), text).unwrap();
        write("[compare.ignore]\nfunctions = [\"log_*\"]\nkinds = [\"exit\"]\n");
        let rules = compare_rules(folder.path()).unwrap();
        assert_eq!(
            (rules.functions, rules.kinds),
            (vec!["log_*".to_owned()], vec!["exit".to_owned()])
        );
        write("[compare.ignore]\nfunction = [\"log_*\"]\n");
        let error = compare_rules(folder.path()).unwrap_err().to_string();
        assert!(
            error.contains("hindsight.toml") && error.contains("function"),
            "{error}"
        );
    }
}
