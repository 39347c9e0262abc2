//! The text of an unfinished value: words, parts that are written later if there is room, and where it may end early.

/// Words and parts, in order.
#[derive(Debug, Clone)]
pub struct Draft<T> {
    pieces: Vec<Piece<T>>,
}

/// A piece of a text.
#[derive(Debug, Clone)]
pub(crate) enum Piece<T> {
    /// Words.
    Text(String),
    /// A part that is written later; until then, this text replaces it.
    Later(T, String),
    /// One of several items begins here, its separator included. It counts as this many.
    Item(u64),
    /// The items end; this many more are omitted, or an unknown number.
    End(Option<u64>),
}

impl<T> Default for Draft<T> {
    fn default() -> Draft<T> {
        Draft { pieces: Vec::new() }
    }
}

impl<T> From<String> for Draft<T> {
    fn from(text: String) -> Draft<T> {
        Draft {
            pieces: vec![Piece::Text(text)],
        }
    }
}

impl<T> Draft<T> {
    /// Appends words.
    pub(crate) fn push(&mut self, words: &str) {
        match self.pieces.last_mut() {
            Some(Piece::Text(text)) => text.push_str(words),
            _ => self.pieces.push(Piece::Text(words.to_owned())),
        }
    }

    /// Appends a part that is written later.
    pub(crate) fn push_later(&mut self, part: T, stub: String) {
        self.pieces.push(Piece::Later(part, stub));
    }

    /// Begins an item that counts as `count`.
    pub(crate) fn begin_item(&mut self, count: u64) {
        self.pieces.push(Piece::Item(count));
    }

    /// Ends the items. `left` more are omitted; `None`: an unknown number.
    pub(crate) fn end_items(&mut self, left: Option<u64>) {
        self.pieces.push(Piece::End(left));
    }

    /// Appends `...`, as after truncated text.
    pub(crate) fn push_cut(&mut self) {
        self.end_items(None);
    }

    /// Appends another draft.
    pub(crate) fn append(&mut self, more: Draft<T>) {
        for piece in more.pieces {
            match piece {
                Piece::Text(text) => self.push(&text),
                piece => self.pieces.push(piece),
            }
        }
    }

    /// Returns the number of bytes of its words.
    pub(crate) fn len(&self) -> usize {
        let len = |piece: &Piece<T>| match piece {
            Piece::Text(text) | Piece::Later(_, text) => text.len(),
            Piece::Item(_) | Piece::End(_) => 0,
        };
        self.pieces.iter().map(len).sum()
    }

    /// Returns its words if it has only words.
    pub(crate) fn words(&self) -> Option<&str> {
        match &self.pieces[..] {
            [] => Some(""),
            [Piece::Text(text)] => Some(text),
            _ => None,
        }
    }

    /// Returns whether it begins with these words.
    pub(crate) fn starts_with(&self, words: &str) -> bool {
        matches!(self.pieces.first(), Some(Piece::Text(text)) if text.starts_with(words))
    }

    /// Returns whether it has parts that are written later.
    pub(crate) fn has_later(&self) -> bool {
        let is_later = |piece: &Piece<T>| matches!(piece, Piece::Later(..));
        self.pieces.iter().any(is_later)
    }

    /// Returns whether it has items, which can be omitted one by one.
    pub(crate) fn has_items(&self) -> bool {
        let is_item = |piece: &Piece<T>| matches!(piece, Piece::Item(_));
        self.pieces.iter().any(is_item)
    }

    pub(crate) fn pieces(&self) -> &[Piece<T>] {
        &self.pieces
    }

    pub(crate) fn into_pieces(self) -> Vec<Piece<T>> {
        self.pieces
    }

    /// Returns it as text, with the stubs of parts that are not written.
    pub(crate) fn into_text(self) -> String {
        let mut out = String::new();
        let mut has_items = false;
        for piece in self.pieces {
            match piece {
                Piece::Text(text) | Piece::Later(_, text) => out.push_str(&text),
                Piece::Item(_) => has_items = true,
                Piece::End(left) => out.push_str(&tail(has_items, left)),
            }
        }
        out
    }
}

/// The mark for omitted items.
pub(crate) fn tail(is_behind_items: bool, left: Option<u64>) -> String {
    let gap = if is_behind_items { ", " } else { "" };
    match left {
        Some(0) => String::new(),
        Some(left) => format!("{gap}... {left} more"),
        None => format!("{gap}..."),
    }
}
