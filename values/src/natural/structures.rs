//! Structures, classes and unions with their members, and what Rust makes of them: enums, tuples and slices.

use super::{Renderer, SAME};
use crate::render::{RenderOptions, absent, field_name, is_number, render_shortened, unknown};
use debuginfo::location::ValuePlace;
use debuginfo::types::{Language, Role, Type, TypeKind};
use debuginfo::value::{Look, Value, ValueError, ada, inside, variants};
use debuginfo::{Certainty, Unknown};

/// Larger values are not read byte by byte, to find whether one of the bytes is known.
const MOST_BYTES: u64 = 64;

impl<'a> Renderer<'a> {
    /// Returns why a value in memory is unknown, if none of its bytes is known.
    pub(super) fn unknown_throughout(&self, value: &Value) -> Option<Unknown> {
        let why = value.bytes.as_ref().err()?;
        let ValuePlace::Memory(start) = &value.place else {
            return None;
        };
        let size = value.ty.size()?;
        if !(1..=MOST_BYTES).contains(&size) {
            return None;
        }
        let machine = self.alone().machine;
        let is_known = |at: u64| machine.memory(start.wrapping_add(at), &mut [0]).is_ok();
        (!(0..size).any(is_known)).then(|| why.clone())
    }

    pub(super) fn aggregate(&mut self, value: &Value, ty: &Type, depth: usize) {
        if ty.is_declaration() {
            return self.push("<incomplete type>");
        }
        if ty.language() == Language::Rust && ty.kind() != TypeKind::Union {
            return self.rust(value, ty, depth);
        }
        match ada::array(value, &self.look) {
            Some(Ok(array)) => return self.value(&array, depth),
            // A pointer to nothing is known.
            Some(Err(ValueError::Null)) => return self.push("0x0"),
            Some(Err(why)) => return self.push(&unknown(why)),
            None => {}
        }
        if depth == 0 {
            return self.push("{...}");
        }
        self.push("{");
        let mut first = true;
        let (live, why) = match variants::live_members(value, &self.look) {
            Ok(live) => (live, None),
            Err(why) => (Vec::new(), Some(why)),
        };
        for member in ty.members().into_iter().chain(live) {
            if self.is_full() {
                self.push("...");
                break;
            }
            if member.name.is_none() && member.bits.is_some() {
                continue;
            }
            if member.role == Role::Base && is_nothing_of_std(&member.ty) {
                continue;
            }
            let look = match member.role {
                Role::Static => self.alone(),
                _ => self.look,
            };
            let inner = inside::member_value(value, &member, &look);
            if member.role == Role::VirtualBase
                && let Ok(Some(address)) = inner.as_ref().map(Value::address)
            {
                if self.shared.contains(&address) {
                    continue;
                }
                self.shared.push(address);
            }
            self.item(1);
            self.push(if first { "" } else { ", " });
            first = false;
            let named = member.name.as_ref().map(|name| format!(".{name}"));
            let step = match member.role {
                Role::Static => None,
                Role::Base | Role::VirtualBase => SAME,
                _ => named.as_deref().or(SAME),
            };
            match (&member.name, member.role) {
                (_, Role::Base | Role::VirtualBase) => {
                    self.push(&format!("<{}> = ", member.ty.name()));
                }
                (Some(name), Role::Static) => self.push(&format!("static {name} = ")),
                (Some(name), _) => self.push(&format!("{name} = ")),
                (None, _) => {}
            }
            match inner {
                // A static member may be of the class's own type.
                Ok(inner) if member.role == Role::Static => {
                    self.static_member(&inner, depth.min(2) - 1, step);
                }
                Ok(inner) => self.part(&inner, depth - 1, step),
                Err(why) => self.push(&unknown(why)),
            }
        }
        self.end_items();
        if let Some(why) = why {
            let gap = if first { "" } else { ", " };
            self.push(&format!("{gap}<unknown: which variant it is: {why}>"));
        }
        self.push("}");
    }

    /// A static member lies elsewhere: it has an age of its own, which is not the object's.
    fn static_member(&mut self, value: &Value, depth: usize, step: Option<&str>) {
        let options = RenderOptions {
            max_depth: depth,
            ..self.options
        };
        let look = self.alone();
        let alone = render_shortened(value, &options, &look);
        match alone.certainty {
            Certainty::Known => self.part(value, depth, step),
            Certainty::Stale { .. } => self.push(&alone.with_age(value, &look)),
        }
    }

    /// The machine without the note of how old its bytes are.
    fn alone(&self) -> Look<'a> {
        let machine = self.look.machine.behind().unwrap_or(self.look.machine);
        Look {
            machine,
            ..self.look
        }
    }

    fn rust(&mut self, value: &Value, ty: &Type, depth: usize) {
        let full = ty.plain_name().unwrap_or_default().to_owned();
        if ty.variants().is_some() {
            return match value.variant(&self.look) {
                Ok((name, data)) => {
                    // The parts of a variant have no name that is valid for all variants.
                    self.path = self.path.step(None);
                    self.fields(&data, &data.ty.strip(), &name, depth);
                }
                Err(why) => self.push(&unknown(why)),
            };
        }
        let is_slice = full == "&str" || full == "&mut str" || full.starts_with("&[");
        if is_slice && self.slice(value, &full, depth).is_some() {
            return;
        }
        let name = match full.starts_with('(') {
            true => "",
            false => full.split('<').next().unwrap_or_default(),
        };
        self.fields(value, ty, name, depth);
    }

    /// `&str` and slices: a pointer and a length.
    fn slice(&mut self, value: &Value, name: &str, depth: usize) -> Option<()> {
        let data = value.member("data_ptr", &self.look).ok()?;
        let length = value.member("length", &self.look).ok()?;
        let (Ok(address), Ok(length)) = (data.as_address(), length.as_integer()) else {
            let why = absent(&data).or_else(|| absent(&length));
            self.push(&why.unwrap_or_else(|| "<unknown: it is no slice>".to_owned()));
            return Some(());
        };
        let count = u64::try_from(length).ok()?;
        let element = data.ty.strip().target()?;
        if name.ends_with("str") {
            let shown = count.min(self.options.max_string as u64);
            let text = Value::at(element.array(shown), address, self.look.machine);
            match text.bytes {
                Ok(bytes) => self.quoted(&bytes, 1, shown < count),
                Err(why) => self.push(&unknown(why)),
            }
            return Some(());
        }
        let all = element.array(count);
        let array = Value::at(all.clone(), address, self.look.machine);
        self.array(&array, &all, depth);
        Some(())
    }

    /// `Name { a: 1 }`, `Name(1, 2)`, `(1, 2)` or `Name`.
    fn fields(&mut self, value: &Value, ty: &Type, name: &str, depth: usize) {
        let members = ty.members();
        let plain = |m: &debuginfo::types::Member| m.name.clone().unwrap_or_default();
        let is_tuple = members
            .iter()
            .all(|m| plain(m).strip_prefix("__").is_some_and(is_number));
        self.push(name);
        if members.is_empty() {
            return self.push(if name.is_empty() { "()" } else { "" });
        }
        if depth == 0 {
            return self.push(if name.is_empty() { "{...}" } else { " {...}" });
        }
        self.push(match (is_tuple, name.is_empty()) {
            (true, _) => "(",
            (false, true) => "{ ",
            (false, false) => " { ",
        });
        for (at, member) in members.iter().enumerate() {
            self.item(1);
            self.push(if at > 0 { ", " } else { "" });
            let field = field_name(&plain(member), ty.language());
            if !is_tuple {
                self.push(&format!("{field}: "));
            }
            match inside::member_value(value, member, &self.look) {
                Ok(inner) => self.part(&inner, depth - 1, Some(&format!(".{field}"))),
                Err(why) => self.push(&unknown(why)),
            }
        }
        self.end_items();
        self.push(match (is_tuple, members.len()) {
            (true, 1) if name.is_empty() => ",)",
            (true, _) => ")",
            (false, _) => " }",
        });
    }
}

/// Returns whether a base class is an empty one of the standard library, which users do not know.
fn is_nothing_of_std(ty: &Type) -> bool {
    let ty = ty.strip();
    let is_std = |name: String| name.starts_with("std::") || name.starts_with("__gnu_cxx::");
    ty.members().is_empty() && !ty.is_declaration() && ty.own_name().is_some_and(is_std)
}
