//! Paths as serde writes them: text if it is UTF-8, bytes otherwise, because the names of files may have any bytes.
//!
//! For fields: `#[serde(with = "store::os_path")]`, or `store::os_path::optional`.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_bytes::ByteBuf;

/// Writes a path.
///
/// # Errors
/// Those of the serializer.
pub fn serialize<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    match path.to_str() {
        Some(text) => serializer.serialize_str(text),
        None => serializer.serialize_bytes(path.as_os_str().as_bytes()),
    }
}

/// Reads a path.
///
/// # Errors
/// Those of the deserializer.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PathBuf, D::Error> {
    let bytes = ByteBuf::deserialize(deserializer)?;
    Ok(OsString::from_vec(bytes.into_vec()).into())
}

/// The same for a path that may be missing.
pub mod optional {
    use super::{Deserialize, Deserializer, Path, PathBuf, Serialize, Serializer};

    #[derive(Serialize)]
    struct Written<'a>(#[serde(with = "super")] &'a Path);

    #[derive(Deserialize)]
    struct Read(#[serde(with = "super")] PathBuf);

    /// Writes a path, or that there is none.
    ///
    /// # Errors
    /// Those of the serializer.
    pub fn serialize<S: Serializer>(
        path: &Option<PathBuf>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        path.as_deref().map(Written).serialize(serializer)
    }

    /// Reads a path, or that there is none.
    ///
    /// # Errors
    /// Those of the deserializer.
    pub fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<PathBuf>, D::Error> {
        let read = Option::<Read>::deserialize(deserializer)?;
        Ok(read.map(|Read(path)| path))
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;

    #[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
    struct Place {
        #[serde(with = "super")]
        path: PathBuf,
        #[serde(with = "super::optional")]
        other: Option<PathBuf>,
    }

    #[test]
    fn every_path_comes_through_as_it_was() {
        for bytes in [&b"/plain"[..], "caf\u{e9}".as_bytes(), b"/bad\xff/\x80"] {
            let path = PathBuf::from(OsStr::from_bytes(bytes));
            for other in [None, Some(path.clone())] {
                let path = path.clone();
                let place = Place { path, other };
                let line = serde_json::to_value(&place).unwrap();
                assert_eq!(serde_json::from_value::<Place>(line).unwrap(), place);
                let line = serde_json::to_string(&place).unwrap();
                assert_eq!(serde_json::from_str::<Place>(&line).unwrap(), place);
                let packed = rmp_serde::to_vec_named(&place).unwrap();
                assert_eq!(rmp_serde::from_slice::<Place>(&packed).unwrap(), place);
            }
        }
    }

    #[test]
    fn text_is_written_as_text() {
        let place = |path: &[u8]| Place {
            path: OsStr::from_bytes(path).into(),
            other: None,
        };
        let written = |path| serde_json::to_string(&place(path)).unwrap();
        assert_eq!(written(b"/a"), r#"{"path":"/a","other":null}"#);
        assert_eq!(written(b"/\xff"), r#"{"path":[47,255],"other":null}"#);
    }
}
