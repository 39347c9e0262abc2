//! Arguments, folders and environments on the wire: text if UTF-8, a list of bytes otherwise, so that the program
//! receives them unchanged.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use serde::{Deserialize, Serialize};

/// A string of the operating system.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum OsText {
    /// UTF-8.
    Text(String),
    /// Anything else.
    Bytes(Vec<u8>),
}

impl From<&OsStr> for OsText {
    fn from(text: &OsStr) -> OsText {
        match text.to_str() {
            Some(text) => OsText::Text(text.to_owned()),
            None => OsText::Bytes(text.as_bytes().to_vec()),
        }
    }
}

impl From<&OsText> for OsString {
    fn from(text: &OsText) -> OsString {
        match text {
            OsText::Text(text) => text.into(),
            OsText::Bytes(bytes) => OsString::from_vec(bytes.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_string_comes_through_as_it_was() {
        for bytes in [&b""[..], b"plain", "caf\u{e9}".as_bytes(), b"\xff\x00\x80"] {
            let original = OsStr::from_bytes(bytes);
            let line = serde_json::to_string(&OsText::from(original)).unwrap();
            let read: OsText = serde_json::from_str(&line).unwrap();
            assert_eq!(OsString::from(&read), original, "{line}");
        }
    }
}
