//! The user's aliases for verbs. Aliases made at a prompt are saved in `~/.config/hindsight/aliases`, one per line:
//! `NAME = VERB ...`. Aliases made by a script end with it.

use std::collections::BTreeMap;
use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use super::is_verb;
use super::line::is_sql;
use crate::error::Error;

/// All aliases.
#[derive(Debug, Default)]
pub struct Aliases {
    known: BTreeMap<String, String>,
    /// The file of the aliases, if the user has a configuration folder.
    file: Option<PathBuf>,
}

impl Aliases {
    /// Reads the saved aliases.
    ///
    /// # Errors
    /// The file cannot be read, or one of its lines is wrong.
    pub fn load() -> Result<Aliases, Error> {
        let folders = directories::ProjectDirs::from("", "", "hindsight");
        match folders {
            Some(folders) => Aliases::load_from(&folders.config_dir().join("aliases")),
            None => Ok(Aliases::default()),
        }
    }

    fn load_from(file: &Path) -> Result<Aliases, Error> {
        let text = match fs::read_to_string(file) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
            Err(source) => return Err(Error::io(format!("read {}", file.display()), source)),
        };
        let mut aliases = Aliases {
            known: BTreeMap::new(),
            file: Some(file.to_owned()),
        };
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let wrong = |message: String| {
                let place = format!("{}:{number}", file.display());
                Error::usage(
                    format!("{place}: {message}"),
                    Some("correct the line or remove it".to_owned()),
                )
            };
            let Some((name, meaning)) = line.split_once('=') else {
                return Err(wrong(format!("\"{line}\" is not NAME = VERB ...")));
            };
            let (name, meaning) = (name.trim(), meaning.trim());
            check(name, meaning).map_err(|error| wrong(error.to_string()))?;
            aliases.known.insert(name.to_owned(), meaning.to_owned());
        }
        Ok(aliases)
    }

    /// Returns the meaning of an alias.
    pub fn meaning(&self, name: &str) -> Option<&str> {
        self.known.get(name).map(String::as_str)
    }

    /// Returns all names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.known.keys().map(String::as_str)
    }

    /// Lists the aliases, one per line, or only `name` if given.
    ///
    /// # Errors
    /// There is no such alias.
    pub fn list(&self, name: Option<&str>) -> Result<String, Error> {
        let line = |(name, meaning): (&String, &String)| format!("{name} = {meaning}\n");
        match name {
            None => Ok(self.known.iter().map(line).collect()),
            Some(name) => match self.known.get_key_value(name) {
                Some(found) => Ok(line(found)),
                None => Err(self.unknown(name)),
            },
        }
    }

    /// Defines an alias whose meaning begins with a verb; `keeps` saves it.
    ///
    /// # Errors
    /// The name is a verb's or not a word, or the file cannot be written.
    pub fn set(&mut self, name: &str, meaning: &str, keeps: bool) -> Result<(), Error> {
        check(name, meaning)?;
        self.known.insert(name.to_owned(), meaning.to_owned());
        self.keep(keeps)
    }

    /// Removes an alias.
    ///
    /// # Errors
    /// There is no such alias, or the file cannot be written.
    pub fn remove(&mut self, name: &str, keeps: bool) -> Result<(), Error> {
        match self.known.remove(name) {
            Some(_) => self.keep(keeps),
            None => Err(self.unknown(name)),
        }
    }

    fn unknown(&self, name: &str) -> Error {
        let help = match self.known.is_empty() {
            true => "make one: alias NAME = VERB ...".to_owned(),
            false => format!("aliases: {}", self.names().collect::<Vec<_>>().join(", ")),
        };
        Error::usage(format!("there is no alias \"{name}\""), Some(help))
    }

    /// Replaces the file atomically.
    fn keep(&self, keeps: bool) -> Result<(), Error> {
        let Some(file) = self.file.as_ref().filter(|_| keeps) else {
            return Ok(());
        };
        let failed = |source| Error::io(format!("write {}", file.display()), source);
        let folder = file.parent().expect("the file lies in a folder");
        fs::create_dir_all(folder).map_err(failed)?;
        let mut draft = tempfile::NamedTempFile::new_in(folder).map_err(failed)?;
        let text = self.list(None)?;
        draft.write_all(text.as_bytes()).map_err(failed)?;
        draft.persist(file).map_err(|error| failed(error.error))?;
        Ok(())
    }
}

fn check(name: &str, meaning: &str) -> Result<(), Error> {
    let is_word = |c: char| c.is_alphanumeric() || c == '-' || c == '_';
    if name.is_empty() || !name.chars().all(is_word) {
        return Err(Error::usage(
            format!("\"{name}\" cannot be an alias"),
            Some("a name is letters, digits, - and _".to_owned()),
        ));
    }
    if is_verb(name) {
        return Err(Error::usage(
            format!("\"{name}\" is a verb and cannot be an alias"),
            Some("choose another name".to_owned()),
        ));
    }
    let first = meaning.split_whitespace().next().unwrap_or_default();
    match is_verb(first) || is_sql(first) {
        true => Ok(()),
        false => Err(Error::usage(
            format!("an alias stands for a verb, and \"{first}\" is not one"),
            Some("write: alias NAME = VERB ...; help lists the verbs".to_owned()),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kept_aliases_are_there_the_next_time() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("deep/aliases");
        let mut first = Aliases::load_from(&file).unwrap();
        first.set("g", "goto", true).unwrap();
        first.set("px", "print --format hex", true).unwrap();
        first.set("here", "print 1", false).unwrap();
        first.remove("g", true).unwrap();
        let second = Aliases::load_from(&file).unwrap();
        assert_eq!(second.meaning("px"), Some("print --format hex"));
        assert_eq!(second.meaning("g"), None);
    }

    #[test]
    fn what_cannot_be_an_alias_is_refused() {
        let mut aliases = Aliases::default();
        for (name, meaning, expected) in [
            ("goto", "print", "\"goto\" is a verb and cannot be an alias"),
            ("a b", "print", "\"a b\" cannot be an alias"),
            (
                "y",
                "frob",
                "an alias stands for a verb, and \"frob\" is not one",
            ),
            ("y", "", "an alias stands for a verb, and \"\" is not one"),
        ] {
            let error = aliases.set(name, meaning, false).unwrap_err();
            assert_eq!(error.to_string(), expected);
        }
        let error = aliases.remove("none", false).unwrap_err();
        assert_eq!(error.to_string(), "there is no alias \"none\"");
    }

    #[test]
    fn a_wrong_line_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("aliases");
        fs::write(&file, "# mine\ng = goto\nwhat\n").unwrap();
        let error = Aliases::load_from(&file).unwrap_err().to_string();
        assert!(
            error.ends_with("aliases:3: \"what\" is not NAME = VERB ..."),
            "{error}"
        );
    }
}
