//! Output formats. The writers belong to `query`, except for tables.

use std::path::Path;

use clap::ValueEnum;
use query::output::Format as Writer;

/// A form of output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Aligned columns, for people
    Table,
    /// Comma-separated values (RFC 4180) with a heading
    Csv,
    /// One JSON array of objects
    Json,
    /// One JSON object per line
    Jsonl,
    /// A Parquet file
    Parquet,
}

impl Format {
    /// The names, as the user types them.
    pub const NAMES: [&str; 5] = ["table", "csv", "json", "jsonl", "parquet"];

    /// Returns the format for a file name, by its extension.
    pub fn of_file(path: &Path) -> Option<Format> {
        let extension = path.extension()?.to_str()?;
        match extension {
            "ndjson" => Some(Format::Jsonl),
            "txt" => Some(Format::Table),
            _ => Format::from_str(extension, true).ok(),
        }
    }

    /// Returns the writer of this format to a screen or a pipe. Tables have none, and Parquet needs a file.
    pub fn writer(self) -> Option<Writer> {
        match self {
            Format::Parquet => None,
            other => other.file_writer(),
        }
    }

    /// Returns the writer of this format to a file; tables have none.
    pub fn file_writer(self) -> Option<Writer> {
        match self {
            Format::Table => None,
            Format::Csv => Some(Writer::Csv),
            Format::Json => Some(Writer::Json),
            Format::Jsonl => Some(Writer::JsonLines),
            Format::Parquet => Some(Writer::Parquet),
        }
    }

    /// Returns the name the user types.
    pub fn name(self) -> &'static str {
        match self {
            Format::Table => "table",
            Format::Csv => "csv",
            Format::Json => "json",
            Format::Jsonl => "jsonl",
            Format::Parquet => "parquet",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_are_those_of_the_command_line() {
        let names: Vec<&str> = Format::value_variants()
            .iter()
            .map(|format| format.name())
            .collect();
        assert_eq!(names, Format::NAMES);
        for format in Format::value_variants() {
            assert_eq!(Format::from_str(format.name(), false), Ok(*format));
        }
    }

    #[test]
    fn a_file_name_tells_its_form() {
        assert_eq!(
            Format::of_file(Path::new("slow.parquet")),
            Some(Format::Parquet)
        );
        assert_eq!(
            Format::of_file(Path::new("slow.ndjson")),
            Some(Format::Jsonl)
        );
        assert_eq!(Format::of_file(Path::new("slow.dat")), None);
        assert_eq!(Format::of_file(Path::new("slow")), None);
    }
}
