//! What a tool returns, before it is made to fit.

use serde_json::{Map, Value};

/// An answer of a tool.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// One object.
    Object(Map<String, Value>),
    /// An object with a list, of which a part may be shown.
    List(List),
    /// Lines of text, of which the first may be shown.
    Text(String),
}

/// A list, and the fields that belong to it as a whole.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct List {
    /// The other fields of the object.
    pub head: Map<String, Value>,
    /// The list's field.
    pub name: &'static str,
    /// The entries, from number `first` on.
    pub items: Vec<Value>,
    /// The number of the first entry: those before it were left out because the caller has seen them.
    pub first: usize,
    /// How many entries there are in all; `items` may be fewer. `None`: there are more than `items`.
    pub total: Option<usize>,
}

impl Answer {
    /// Adds which recording was meant by its name.
    pub fn about(self, meant: String) -> Answer {
        match self {
            Answer::Object(mut fields) => {
                fields.insert("meant".to_owned(), meant.into());
                Answer::Object(fields)
            }
            Answer::List(list) => Answer::List(list.with("meant", meant)),
            Answer::Text(text) => Answer::Text(format!("{meant}\n{text}")),
        }
    }
}

impl List {
    /// Makes a list of all its entries.
    pub fn whole(name: &'static str, items: Vec<Value>) -> List {
        List {
            name,
            total: Some(items.len()),
            items,
            ..List::default()
        }
    }

    /// Adds a field of the object.
    pub fn with(mut self, field: &str, value: impl Into<Value>) -> List {
        self.head.insert(field.to_owned(), value.into());
        self
    }
}

/// Makes an object from its fields; null ones are left out.
pub fn object<const N: usize>(fields: [(&str, Value); N]) -> Map<String, Value> {
    let given = fields.into_iter().filter(|(_, value)| !value.is_null());
    given
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}
