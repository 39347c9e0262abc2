//! Members of C++ classes by name: a class's own ones, then those of its base classes ([class.member.lookup] of the C++
//! standard).

use std::fmt;

use super::members::{Member, MemberOffset, Role};
use super::text::{key, name_fit, split_scope};
use super::{MAX_STEPS, Type};

/// Classes searched for one name, at most.
const MAX_CLASSES: usize = 4096;

/// A member of a class or of one of its base classes.
#[derive(Debug, Clone)]
pub struct FoundMember {
    /// The base classes and unnamed members that lead to it, the outermost first.
    pub path: Vec<Member>,
    /// The member, or the base class that the name means.
    pub member: Member,
    /// The class that declares the member.
    pub class: Type,
}

/// Members of several base classes that a name may equally mean.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AmbiguousMember {
    /// The name.
    pub name: String,
    /// Two of the members, each qualified with a class.
    pub ways: [String; 2],
}

impl fmt::Display for AmbiguousMember {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [first, second] = &self.ways;
        write!(f, "{} is ambiguous: {first} or {second}", self.name)
    }
}

/// Finds the member of a C++ class that `name` means: `x`, `Base::x`, or the name of a base class. A static member is found
/// too.
///
/// # Errors
/// Several base classes have it, and none of them hides the others.
pub fn find_member(class: &Type, name: &str) -> Result<Option<FoundMember>, AmbiguousMember> {
    let class = class.strip();
    let Some((qualifier, last)) = split_scope(name) else {
        return Search::run(&class, name, Wanted::Any);
    };
    if let Some((mut path, base)) = base_called(&class, qualifier, MAX_STEPS)?
        && let Some(found) = Search::run(&base, last, Wanted::Any)?
    {
        path.extend(found.path);
        let (member, class) = (found.member, found.class);
        return Ok(Some(FoundMember {
            path,
            member,
            class,
        }));
    }
    // The name of a base class may have namespaces.
    Search::run(&class, name, Wanted::Base)
}

/// Splits the name of a member function that is qualified with the class or a base class, `Base::f`. Returns the base
/// classes that lead to that class, the outermost first, and the rest, `f`. Returns `None` for other names.
///
/// # Errors
/// Several base classes have the name, and none of them hides the others.
pub fn find_qualifier<'n>(
    class: &Type,
    name: &'n str,
) -> Result<Option<(Vec<Member>, &'n str)>, AmbiguousMember> {
    let Some((qualifier, last)) = split_scope(name) else {
        return Ok(None);
    };
    let found = base_called(&class.strip(), qualifier, MAX_STEPS)?;
    Ok(found.map(|(path, _)| (path, last)))
}

/// Finds the class itself or a base class by its name, with what leads to it. The name may have several steps: `Mid::Base`.
fn base_called(
    class: &Type,
    name: &str,
    steps: usize,
) -> Result<Option<(Vec<Member>, Type)>, AmbiguousMember> {
    let Some(steps) = steps.checked_sub(1).filter(|_| !name.is_empty()) else {
        return Ok(None);
    };
    if is_called(class, name) {
        return Ok(Some((Vec::new(), class.clone())));
    }
    if let Some(found) = Search::run(class, name, Wanted::Base)? {
        let base = found.member.ty.strip();
        let mut path = found.path;
        path.push(found.member);
        return Ok(Some((path, base)));
    }
    let Some((outer, inner)) = split_scope(name) else {
        return Ok(None);
    };
    let Some((mut path, base)) = base_called(class, outer, steps)? else {
        return Ok(None);
    };
    let Some((rest, base)) = base_called(&base, inner, steps)? else {
        return Ok(None);
    };
    path.extend(rest);
    Ok(Some((path, base)))
}

/// Returns whether `name` names the class. Namespaces and template arguments may be left out.
fn is_called(class: &Type, name: &str) -> bool {
    // Full names take long to compute.
    let may_be = class
        .plain_name()
        .is_some_and(|plain| key(plain) == key(name));
    may_be
        && class
            .own_name()
            .is_some_and(|full| name_fit(name, &full).is_some())
}

fn is_base(member: &Member) -> bool {
    matches!(member.role, Role::Base | Role::VirtualBase)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    /// A member or a base class.
    Any,
    Base,
}

/// A search for all members with a name that nothing nearer hides.
struct Search<'n> {
    name: &'n str,
    wanted: Wanted,
    classes: usize,
    path: Vec<Member>,
    found: Vec<FoundMember>,
}

impl Search<'_> {
    fn run(
        class: &Type,
        name: &str,
        wanted: Wanted,
    ) -> Result<Option<FoundMember>, AmbiguousMember> {
        let mut search = Search {
            name,
            wanted,
            classes: 0,
            path: Vec::new(),
            found: Vec::new(),
        };
        search.class(class);
        only(search.found, name)
    }

    fn class(&mut self, class: &Type) {
        self.classes += 1;
        if self.classes > MAX_CLASSES || self.path.len() >= MAX_STEPS {
            return;
        }
        let members = class.members();
        if self.wanted == Wanted::Any && self.own(class, &members) {
            return;
        }
        for base in members.iter().filter(|member| is_base(member)) {
            let class = base.ty.strip();
            match is_called(&class, self.name) {
                true => self.add(base, &class),
                false => self.inside(base, &class),
            }
        }
    }

    /// Looks among the class's own members, and those of its unnamed ones. Returns whether it has one: it hides those of the
    /// bases.
    fn own(&mut self, class: &Type, members: &[Member]) -> bool {
        let is_it =
            |member: &&Member| !is_base(member) && member.name.as_deref() == Some(self.name);
        if let Some(own) = members.iter().find(is_it) {
            self.add(own, class);
            return true;
        }
        let before = self.found.len();
        let is_unnamed = |member: &&Member| member.name.is_none() && member.role == Role::Member;
        for unnamed in members.iter().filter(is_unnamed) {
            self.inside(unnamed, &unnamed.ty.strip());
        }
        self.found.len() > before
    }

    fn inside(&mut self, member: &Member, class: &Type) {
        self.path.push(member.clone());
        self.class(class);
        self.path.pop();
    }

    fn add(&mut self, member: &Member, class: &Type) {
        self.found.push(FoundMember {
            path: self.path.clone(),
            member: member.clone(),
            class: class.clone(),
        });
    }
}

/// Returns the one member that the found ones are, if any.
fn only(found: Vec<FoundMember>, name: &str) -> Result<Option<FoundMember>, AmbiguousMember> {
    if found.len() <= 1 {
        return Ok(found.into_iter().next());
    }
    let is_hidden = |one: &FoundMember| found.iter().any(|other| other.hides(one));
    let visible: Vec<&FoundMember> = found.iter().filter(|one| !is_hidden(one)).collect();
    let Some((first, others)) = visible.split_first() else {
        return Ok(None);
    };
    match others.iter().find(|other| !other.is_same(first)) {
        None => Ok(Some((*first).clone())),
        Some(second) => Err(AmbiguousMember {
            name: name.to_owned(),
            ways: ways(first, second, name),
        }),
    }
}

/// Writes two members with the classes that tell them apart.
fn ways(first: &FoundMember, second: &FoundMember, name: &str) -> [String; 2] {
    let written = |class: Option<String>| match class {
        Some(class) => format!("{class}::{name}"),
        None => name.to_owned(),
    };
    let by_class = [first, second].map(|one| written(one.class.own_name()));
    if by_class[0] != by_class[1] && !is_base(&first.member) {
        return by_class;
    }
    let outermost =
        |one: &FoundMember| one.path.first().and_then(|base| base.ty.strip().own_name());
    [first, second].map(|one| written(outermost(one)))
}

impl FoundMember {
    fn is_static(&self) -> bool {
        matches!(self.member.offset, MemberOffset::Static(_))
    }

    /// Returns the base classes and unnamed members down to the part of the object that is, or has, the member.
    fn parts(&self) -> Vec<&Member> {
        let own = Some(&self.member).filter(|member| is_base(member));
        self.path.iter().chain(own).collect()
    }

    /// Identifies the part of the object: an object has one part for each virtual base class, however many ways lead to it.
    fn part(&self) -> (bool, Vec<String>) {
        let parts = self.parts();
        let is_shared = |member: &&Member| member.role == Role::VirtualBase;
        let shared = parts.iter().rposition(is_shared);
        let named = |member: &&Member| match member.ty.strip().own_name() {
            Some(name) => name,
            None => format!("{:?}", member.offset),
        };
        let names = parts[shared.unwrap_or(0)..].iter().map(named).collect();
        (shared.is_some(), names)
    }

    /// Returns whether both are one member.
    fn is_same(&self, other: &FoundMember) -> bool {
        let are_static = self.is_static() && other.is_static();
        are_static && self.class.own_name() == other.class.own_name() || self.part() == other.part()
    }

    /// Returns whether its class is derived from the virtual base class that has `other`, which it then hides on all ways.
    fn hides(&self, other: &FoundMember) -> bool {
        let parts = other.parts();
        let mut shared = parts.iter().rev();
        let shared = shared.find(|member| member.role == Role::VirtualBase);
        let name = shared.and_then(|member| member.ty.strip().own_name());
        name.is_some_and(|name| has_virtual_base(&self.class, &name, MAX_STEPS))
    }
}

fn has_virtual_base(class: &Type, name: &str, steps: usize) -> bool {
    let Some(steps) = steps.checked_sub(1) else {
        return false;
    };
    let members = class.members();
    members.iter().filter(|member| is_base(member)).any(|base| {
        let ty = base.ty.strip();
        let is_it = base.role == Role::VirtualBase && ty.own_name().as_deref() == Some(name);
        is_it || has_virtual_base(&ty, name, steps)
    })
}
