//! Texts within a budget of characters: outer values are written before inner ones, and a mark replaces what does not
//! fit.
//!
//! Among the parts of one level, the shortest come first, so that one long part does not hide its neighbours. Texts and
//! lists of numbers share the remaining room; structures get what they need in order.

use crate::draft::{Draft, Piece, tail};

/// A text that fits.
#[derive(Debug)]
pub(crate) struct Fitted<T> {
    pub text: String,
    /// Something is omitted: from this part, or from the whole.
    pub left_out: Option<Option<T>>,
}

/// Drafts a part one level deep, its own texts cut at a number of characters if one is given.
pub(crate) type DraftPart<'d, T> = &'d mut dyn FnMut(&T, Option<usize>) -> Draft<T>;

/// Writes `whole` with at most `budget` characters, as far as the stub of the whole allows.
pub(crate) fn fit<T: Clone>(
    whole: T,
    stub: String,
    budget: usize,
    draft: DraftPart<'_, T>,
) -> Fitted<T> {
    let mut fitting = Fitting {
        used: chars(&stub),
        nodes: vec![Node {
            part: whole,
            stub,
            inside: None,
        }],
        budget,
        left_out: None,
    };
    let mut level = vec![0];
    while !level.is_empty() {
        level = fitting.open(&level, draft);
    }
    let left_out = fitting.left_out.map(|id| match id {
        0 => None,
        id => Some(fitting.nodes[id].part.clone()),
    });
    Fitted {
        text: fitting.text(),
        left_out,
    }
}

/// A part, written or not.
struct Node<T> {
    part: T,
    stub: String,
    /// Its text.
    inside: Option<Vec<Span>>,
}

/// A piece of the text of a part.
enum Span {
    Text(String),
    Node(usize),
}

struct Fitting<T> {
    nodes: Vec<Node<T>>,
    /// Characters of the current text.
    used: usize,
    budget: usize,
    /// The first part with an omission.
    left_out: Option<usize>,
}

impl<T: Clone> Fitting<T> {
    /// Writes the parts of a level, as far as there is room. Returns the parts inside them.
    fn open(&mut self, level: &[usize], draft: DraftPart<'_, T>) -> Vec<usize> {
        let mut drafts: Vec<(usize, usize, Draft<T>)> = Vec::new();
        for id in level {
            let drafted = draft(&self.nodes[*id].part, None);
            drafts.push((*id, measured(&drafted), drafted));
        }
        // The shortest comes first. Parts of equal length keep their order.
        drafts.sort_by_key(|(id, len, _)| len.saturating_sub(chars(&self.nodes[*id].stub)));
        let mut waiting = drafts.len();
        let mut opened = Vec::new();
        for (id, len, drafted) in drafts {
            let stub = chars(&self.nodes[id].stub);
            let left = self.budget.saturating_sub(self.used);
            let share = if drafted.has_later() {
                left
            } else {
                left / waiting
            };
            waiting -= 1;
            let room = stub + share;
            let fitting = match len <= room {
                true => cut(drafted, room),
                false => self.shortened(id, drafted, room, draft),
            };
            let Some((pieces, len, is_whole)) = fitting else {
                self.note(id);
                continue;
            };
            if !is_whole {
                self.note(id);
            }
            self.used = self.used + len - stub;
            opened.push((id, self.spans(pieces)));
        }
        let mut inside = Vec::new();
        opened.sort_by_key(|(id, _)| *id);
        for (id, spans) in opened {
            let nodes = spans.iter().filter_map(|span| match span {
                Span::Node(id) => Some(*id),
                Span::Text(_) => None,
            });
            inside.extend(nodes);
            self.nodes[id].inside = Some(spans);
        }
        inside
    }

    /// Returns the part with fewer items or shorter texts.
    fn shortened(
        &self,
        id: usize,
        drafted: Draft<T>,
        room: usize,
        draft: DraftPart<'_, T>,
    ) -> Option<Cut<T>> {
        let whole = drafted.has_items().then_some(drafted);
        let mut found = whole.and_then(|whole| cut(whole, room));
        let mut limit = room;
        while found.is_none() {
            let shorter = draft(&self.nodes[id].part, Some(limit));
            let excess = measured(&shorter).saturating_sub(room);
            found = cut(shorter, room);
            if limit == 0 {
                break;
            }
            // Escaped characters need more room than one.
            limit = match excess < limit {
                true => limit - excess,
                false => limit / 2,
            };
        }
        found.map(|(pieces, len, _)| (pieces, len, false))
    }

    fn spans(&mut self, pieces: Vec<Piece<T>>) -> Vec<Span> {
        let mut spans = Vec::new();
        for piece in pieces {
            match piece {
                Piece::Text(text) => spans.push(Span::Text(text)),
                Piece::Later(part, stub) => {
                    spans.push(Span::Node(self.nodes.len()));
                    let inside = None;
                    self.nodes.push(Node { part, stub, inside });
                }
                Piece::Item(_) | Piece::End(_) => {}
            }
        }
        spans
    }

    /// Notes that something of a part is omitted.
    fn note(&mut self, id: usize) {
        self.left_out = Some(self.left_out.map_or(id, |first| first.min(id)));
    }

    fn text(&self) -> String {
        let mut out = String::new();
        self.write(0, &mut out);
        out
    }

    fn write(&self, id: usize, out: &mut String) {
        let node = &self.nodes[id];
        let Some(spans) = &node.inside else {
            return out.push_str(&node.stub);
        };
        for span in spans {
            match span {
                Span::Text(text) => out.push_str(text),
                Span::Node(id) => self.write(*id, out),
            }
        }
    }
}

/// Pieces without marks, their number of characters, and whether nothing is omitted.
type Cut<T> = (Vec<Piece<T>>, usize, bool);

/// The positions of a draft's items among its pieces.
struct Items {
    /// Where each begins.
    starts: Vec<usize>,
    /// What each counts as.
    weights: Vec<u64>,
    /// Where the last one ends.
    end: usize,
    /// How many more there are, if known.
    left: Option<u64>,
}

impl Items {
    fn of<T>(pieces: &[Piece<T>]) -> Option<Items> {
        let is_end = |piece: &Piece<T>| matches!(piece, Piece::End(_));
        let end = pieces.iter().position(is_end)?;
        let Piece::End(left) = pieces[end] else {
            return None;
        };
        let (mut starts, mut weights) = (Vec::new(), Vec::new());
        for (at, piece) in pieces[..end].iter().enumerate() {
            if let Piece::Item(weight) = piece {
                starts.push(at);
                weights.push(*weight);
            }
        }
        Some(Items {
            starts,
            weights,
            end,
            left,
        })
    }

    /// Returns how many are omitted if only the first `kept` are shown.
    fn left(&self, kept: usize) -> Option<u64> {
        let dropped: u64 = self.weights[kept..].iter().sum();
        self.left.map(|left| left + dropped)
    }
}

/// Keeps as many items as fit, at least one if there are any, and says how many are omitted. `None`: not even that
/// fits.
fn cut<T>(draft: Draft<T>, room: usize) -> Option<Cut<T>> {
    let mut pieces = draft.into_pieces();
    let all: usize = pieces.iter().map(piece_len).sum();
    let Some(items) = Items::of(&pieces) else {
        return (all <= room).then_some((pieces, all, true));
    };
    let count = items.starts.len();
    let mut without = all;
    let mut end = items.end;
    for kept in (count.min(1)..=count).rev() {
        if kept < count {
            let dropped = &pieces[items.starts[kept]..end];
            without -= dropped.iter().map(piece_len).sum::<usize>();
            end = items.starts[kept];
        }
        let left = items.left(kept);
        let tail = tail(kept > 0, left);
        let len = without + chars(&tail);
        if len <= room {
            let behind = pieces.split_off(items.end);
            pieces.truncate(end);
            pieces.push(Piece::Text(tail));
            pieces.extend(behind);
            return Some((pieces, len, left == Some(0)));
        }
    }
    None
}

/// The characters of a draft with all its items.
fn measured<T>(draft: &Draft<T>) -> usize {
    let pieces = draft.pieces();
    let len: usize = pieces.iter().map(piece_len).sum();
    let items = Items::of(pieces);
    len + items.map_or(0, |items| {
        chars(&tail(!items.starts.is_empty(), items.left))
    })
}

fn piece_len<T>(piece: &Piece<T>) -> usize {
    match piece {
        Piece::Text(text) | Piece::Later(_, text) => chars(text),
        Piece::Item(_) | Piece::End(_) => 0,
    }
}

fn chars(text: &str) -> usize {
    text.chars().count()
}

#[cfg(test)]
mod tests {
    //! Made-up values: numbers, texts, structures and lists, inside each other.

    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, Debug)]
    enum Tree {
        Number(u32),
        Text(String),
        Struct(Vec<Tree>),
        List { shown: Vec<Tree>, more: u64 },
    }

    fn drafted(tree: &Tree, limit: Option<usize>) -> Draft<Tree> {
        let mut out = Draft::default();
        let part = |out: &mut Draft<Tree>, tree: &Tree| match tree {
            Tree::Number(number) => out.push(&number.to_string()),
            tree => out.push_later(tree.clone(), "{...}".to_owned()),
        };
        match tree {
            Tree::Number(number) => out.push(&number.to_string()),
            Tree::Text(text) => {
                let limit = limit.unwrap_or(usize::MAX);
                let cut: String = text.chars().take(limit).collect();
                out.push(&format!("\"{cut}\""));
                if cut.len() < text.len() {
                    out.push_cut();
                }
            }
            Tree::Struct(members) => {
                out.push("{");
                for (at, member) in members.iter().enumerate() {
                    out.begin_item(1);
                    out.push(if at > 0 { ", " } else { "" });
                    out.push(&format!("m{at} = "));
                    part(&mut out, member);
                }
                out.end_items(Some(0));
                out.push("}");
            }
            Tree::List { shown, more } => {
                out.push("[");
                for (at, element) in shown.iter().enumerate() {
                    out.begin_item(1);
                    out.push(if at > 0 { ", " } else { "" });
                    part(&mut out, element);
                }
                out.end_items(Some(*more));
                out.push("]");
            }
        }
        out
    }

    fn fitted(tree: &Tree, budget: usize) -> Fitted<Tree> {
        fit(tree.clone(), "{...}".to_owned(), budget, &mut drafted)
    }

    fn whole(tree: &Tree) -> String {
        fitted(tree, usize::MAX / 2).text
    }

    fn trees() -> impl Strategy<Value = Tree> {
        let leaf = prop_oneof![
            any::<u32>().prop_map(Tree::Number),
            "[a-z\u{e9}]{0,80}".prop_map(Tree::Text),
        ];
        leaf.prop_recursive(6, 200, 12, |inner| {
            let many = prop::collection::vec(inner, 0..12);
            prop_oneof![
                many.clone().prop_map(Tree::Struct),
                (many, 0..2000u64).prop_map(|(shown, more)| Tree::List { shown, more }),
            ]
        })
    }

    /// Brackets and quotes match, ignoring the contents of texts.
    fn is_balanced(text: &str) -> bool {
        let mut open = Vec::new();
        for c in text.chars() {
            let expected = match c {
                '[' | '{' => {
                    open.push(c);
                    continue;
                }
                ']' => '[',
                '}' => '{',
                '"' if open.last() == Some(&'"') => '"',
                '"' => {
                    open.push('"');
                    continue;
                }
                _ => continue,
            };
            if open.pop() != Some(expected) {
                return false;
            }
        }
        open.is_empty()
    }

    proptest! {
        #[test]
        fn a_text_never_exceeds_its_budget(tree in trees(), budget in 5..600usize) {
            let found = fitted(&tree, budget);
            let len = chars(&found.text);
            // A number that is not part of another value has no shorter form.
            if !matches!(tree, Tree::Number(_)) {
                prop_assert!(len <= budget, "{} of {budget}: {}", len, found.text);
            }
            prop_assert!(is_balanced(&found.text), "{}", found.text);
            if found.left_out.is_none() {
                prop_assert_eq!(&found.text, &whole(&tree));
            }
            prop_assert_eq!(found.left_out.is_some(), found.text.contains("..."));
        }
    }

    #[test]
    fn what_is_outside_comes_before_what_is_inside() {
        let inner = Tree::Struct((0..10).map(Tree::Number).collect());
        let tree = Tree::Struct(vec![
            Tree::Number(1),
            Tree::Struct(vec![inner.clone(), Tree::Number(2)]),
            Tree::Number(3),
        ]);
        assert_eq!(fitted(&tree, 40).text, "{m0 = 1, m1 = {...}, m2 = 3}");
        assert_eq!(
            fitted(&tree, 50).text,
            "{m0 = 1, m1 = {m0 = {...}, m1 = 2}, m2 = 3}"
        );
        let found = fitted(&tree, 60);
        assert_eq!(
            found.text,
            "{m0 = 1, m1 = {m0 = {m0 = 0, ... 9 more}, m1 = 2}, m2 = 3}"
        );
        assert!(matches!(found.left_out, Some(Some(Tree::Struct(members))) if members.len() == 10));
    }

    #[test]
    fn parts_share_what_is_left() {
        let text = |len| Tree::Text("x".repeat(len));
        let tree = Tree::Struct(vec![text(100), text(3), text(100)]);
        let cut = |len| format!("\"{}\"...", "x".repeat(len));
        let expected = format!("{{m0 = {}, m1 = \"xxx\", m2 = {}}}", cut(17), cut(17));
        assert_eq!(fitted(&tree, 70).text, expected);
    }

    #[test]
    fn of_equal_structures_the_first_are_shown() {
        let text = || Tree::Text("x".repeat(50));
        let one = || Tree::Struct(vec![text(), text()]);
        let tree = Tree::Struct((0..4).map(|_| one()).collect());
        let shown = "{m0 = \"x\"..., m1 = \"x\"...}";
        let expected = format!("{{m0 = {shown}, m1 = {shown}, m2 = {{...}}, m3 = {{...}}}}");
        assert_eq!(fitted(&tree, 90).text, expected);
    }

    #[test]
    fn elements_that_are_left_out_are_counted() {
        let shown: Vec<Tree> = (0..10).map(Tree::Number).collect();
        let tree = Tree::List { shown, more: 990 };
        assert_eq!(
            fitted(&tree, 400).text,
            "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, ... 990 more]"
        );
        assert_eq!(fitted(&tree, 30).text, "[0, 1, 2, 3, 4, ... 995 more]");
        assert_eq!(fitted(&tree, 10).text, "{...}");
    }
}
