//! The content of a container, independent of its language.

use crate::containers::items::Items;
use crate::containers::text::Text;
use crate::containers::typed_place::TypedPlace;

/// The content to show.
pub(crate) enum Content {
    /// A string.
    Text(Text),
    /// Indexed elements.
    Sequence(Items),
    /// Elements that are their own keys.
    Set(Items),
    /// Elements by key.
    Map(Items),
    /// Single bits, written as one number, the last bit first.
    Bits(Items),
    /// Words and values in between; and parts that can be accessed by name.
    Parts {
        text: Vec<Part>,
        children: Vec<(String, TypedPlace)>,
    },
}

/// A piece of a line.
#[derive(Debug, Clone)]
pub(crate) enum Part {
    Words(String),
    Value(TypedPlace),
}

impl Part {
    pub(crate) fn words(words: impl Into<String>) -> Part {
        Part::Words(words.into())
    }
}

impl Content {
    /// One value between words.
    pub(crate) fn around(before: &str, name: &str, value: TypedPlace, after: &str) -> Content {
        Content::Parts {
            text: vec![
                Part::words(before),
                Part::Value(value.clone()),
                Part::words(after),
            ],
            children: vec![(name.to_owned(), value)],
        }
    }

    /// Words alone.
    pub(crate) fn words(words: impl Into<String>) -> Content {
        Content::Parts {
            text: vec![Part::words(words)],
            children: Vec::new(),
        }
    }
}
