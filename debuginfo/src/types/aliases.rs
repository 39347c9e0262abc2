//! Types without aliases: what typedefs stand for, with all qualifiers.

use std::sync::Arc;

use super::node::{Link, Node, Qualifier, Shape};
use super::{MAX_STEPS, Type};

impl Type {
    /// Replaces the typedefs on the way to the innermost type: behind qualifiers, pointers, references, arrays and results of
    /// functions, but not in parameters and members. Qualifiers stay, each once.
    #[must_use]
    pub fn without_aliases(&self) -> Type {
        unaliased(self, MAX_STEPS)
    }

    fn shaped(&self, shape: Shape) -> Type {
        let node = Node {
            shape,
            ..Node::clone(self.node())
        };
        Type::new(self.module().cloned(), Arc::new(node))
    }
}

fn unaliased(ty: &Type, steps: usize) -> Type {
    let Some(steps) = steps.checked_sub(1) else {
        return ty.clone();
    };
    let (bare, qualifiers) = unqualified(ty);
    let bare = parts_unaliased(&bare, steps);
    let qualify = |ty: Type, qualifier| {
        let shape = Shape::Qualified(qualifier, Link::Made(Box::new(ty.clone())));
        ty.made(shape, None)
    };
    qualifiers.into_iter().rev().fold(bare, qualify)
}

/// Takes typedefs and qualifiers off, and returns the qualifiers too.
fn unqualified(ty: &Type) -> (Type, Vec<Qualifier>) {
    let (mut ty, mut found) = (ty.clone(), Vec::new());
    for _ in 0..MAX_STEPS {
        let next = match &ty.node().shape {
            Shape::Typedef(link) => link,
            Shape::Qualified(qualifier, link) => {
                if !found.contains(qualifier) {
                    found.push(*qualifier);
                }
                link
            }
            _ => break,
        };
        ty = Type::linked(ty.module(), next);
    }
    (ty.definition(), found)
}

fn parts_unaliased(ty: &Type, steps: usize) -> Type {
    let part = |link: &Link| {
        let part = Type::linked(ty.module(), link);
        Link::Made(Box::new(unaliased(&part, steps)))
    };
    ty.shaped(match &ty.node().shape {
        // Some languages name their pointers.
        Shape::Pointer(target) if ty.node().name.is_none() => Shape::Pointer(part(target)),
        Shape::Reference { target, rvalue } if ty.node().name.is_none() => Shape::Reference {
            target: part(target),
            rvalue: *rvalue,
        },
        Shape::Array {
            element,
            dimensions,
            form,
        } => Shape::Array {
            element: part(element),
            dimensions: dimensions.clone(),
            form: *form,
        },
        Shape::Function {
            result,
            parameters,
            variadic,
        } => Shape::Function {
            result: part(result),
            parameters: parameters.clone(),
            variadic: *variadic,
        },
        _ => return ty.clone(),
    })
}
