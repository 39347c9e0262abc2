//! The parameters and the result of one function: their types, and their places at entry and on return.
//!
//! The calling convention states where each argument should be. An optimiser may change a function that only its own
//! unit calls. In that case, only what the location lists state for the first instruction is used; the rest is unknown.
//! LLVM's passes for dead arguments (DeadArgumentElimination, ArgumentPromotion) say so only by what they leave out: a parameter
//! that is constant or unused has no location, its callers do not pass it, and the others may have moved up.
//! In Rust, what is described as a pointer to a function may be a function item, which is not passed.
//! Without a prototype, what is described as a `float` is passed as a `double`.

use std::collections::HashMap;
use std::rc::Rc;

use gimli::constants as dw;

use super::prototyped::lacks_prototype;
use crate::abi::args::{self, Found, Locations, Passed, Spills};
use crate::abi::items::{self, Called, Key, Told};
use crate::abi::{Abi, TypeInfo, Types};
use crate::code::Code;
use crate::dies::{Die, DieReader};
use crate::model::{Param, ParameterPlace, RetPlace, RetReg, UsedXmm, ValueKind};

/// Bytes of a function searched for the stores of its arguments.
const PROLOGUE_BYTES: usize = 512;

/// Parameters read of one function, at most. If there are more, `params_known` is false.
const MAX_PARAMS: usize = 1024;

/// How much of the declared signature the machine code still follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trust {
    All,
    /// The result is as declared, but parameters may have changed.
    Result,
    /// Parameters may have changed, and the result is as declared if a caller reads it.
    Read,
    Nothing,
}

pub(super) struct Signature {
    pub params: Vec<Param>,
    pub params_known: bool,
    pub ret: ValueKind,
    pub ret_place: RetPlace,
    /// The result is only known if a caller reads it.
    pub is_result_doubted: bool,
    pub xmm: UsedXmm,
}

pub(super) struct Signatures<'x, 's, 't, 'a> {
    pub session: &'x DieReader<'t, 'a>,
    pub types: &'x Types<'s, 't, 'a>,
    pub code: &'x Code,
    pub abi: Abi,
    /// The unit describes types. If not, no signature is known.
    pub described: bool,
    /// The compiler is LLVM's: parameters without a location are not passed.
    pub is_llvm: bool,
    /// The compiler may have changed functions that only their own unit calls, without saying so.
    pub may_change: bool,
    /// The function is a closure or a coroutine of Rust.
    pub is_closure: bool,
}

/// A parameter: its DIEs from the concrete one to the declaration, and whether the concrete one exists.
struct Formal<'a> {
    chain: Vec<Die<'a>>,
    concrete: bool,
}

impl<'a> Signatures<'_, '_, '_, 'a> {
    /// Reads a signature. `chain` is the function's; `own` holds the parameters below its concrete DIE.
    pub(super) fn read(
        &self,
        chain: &[Die<'a>],
        own: Vec<Die<'a>>,
        svma: u64,
        trust: Trust,
    ) -> Signature {
        let result = self.result(chain);
        let passed_back = args::ret_place(&result);
        let mut ret_place = passed_back;
        let mut formals = self.formals(chain, own);
        let complete = formals.len() < MAX_PARAMS;
        formals.truncate(MAX_PARAMS);
        let locations = Locations::new(self.session, &chain[0], svma);
        let told = self.told(&formals, &locations, svma);
        let passed = |formal: &Formal<'a>| self.passed(&formal.chain, chain, &told);
        let infos: Vec<Rc<TypeInfo>> = formals.iter().map(passed).collect();
        let declared = args::assign(infos.iter().map(|i| &**i), passed_back, self.is_llvm);
        let removed = self.removed(&formals, &declared, &locations);
        let is_marked = trust == Trust::Read;
        let trust = match trust {
            Trust::All | Trust::Result if self.is_changeable(chain, svma, &removed) => Trust::Read,
            Trust::All if removed.contains(&true) => Trust::Result,
            trust => trust,
        };
        let stated = self.stated(&locations, &formals, &infos, &declared, svma, trust);
        let is_as_declared =
            trust == Trust::Read && all_passed(&formals, &declared, &stated, &locations);
        let mut places = match is_as_declared {
            true => declared.clone(),
            false => settle(&declared, &stated, trust),
        };
        if self.is_llvm {
            let parts = declared.iter().zip(&stated);
            for (place, (declared, stated)) in places.iter_mut().zip(parts) {
                if stated.is_some_and(|stated| has_unused_half(declared, stated)) {
                    *place = Passed::at(ParameterPlace::Removed);
                }
            }
        }
        // Others whose locations begin later are made in the function, too, as constants are.
        if removed.contains(&true) {
            for (place, removed) in places.iter_mut().zip(&removed) {
                if *removed || is_unknown(place) {
                    *place = Passed::at(ParameterPlace::Removed);
                }
            }
        }
        // Where a hidden parameter was when others were removed is not stated.
        let is_moved = is_marked && ret_place == RetPlace::Hidden;
        let mut ret = result.kind.clone();
        let may_be_item = |ty| self.called(ty, &told, chain) != Called::Pointer;
        let may_be_item = self.function_type(chain, &result).is_some_and(may_be_item);
        if (trust == Trust::Nothing || is_moved || may_be_item) && ret != ValueKind::Void {
            (ret, ret_place) = (ValueKind::Unknown, RetPlace::Unknown);
        }
        let xmm_args = places
            .iter()
            .chain(&declared)
            .map(last_xmm)
            .max()
            .unwrap_or(0);
        let known = !places.iter().any(is_unknown);
        let named = self.names(&formals).into_iter().zip(&infos);
        let param = |((name, info), passed): ((String, &Rc<TypeInfo>), &Passed)| Param {
            name,
            kind: info.kind.clone(),
            place: passed.place,
            place2: passed.place2,
            second_at: passed.second_at,
            indirect: passed.indirect,
        };
        Signature {
            params: named.zip(&places).map(param).collect(),
            params_known: known && complete && self.described && self.abi != Abi::Other,
            ret,
            ret_place,
            is_result_doubted: trust == Trust::Read,
            xmm: UsedXmm {
                args: xmm_args,
                ret: uses_xmm(passed_back),
            },
        }
    }

    fn result(&self, chain: &[Die<'a>]) -> TypeInfo {
        let of = chain
            .iter()
            .find_map(|d| self.session.follow(d, dw::DW_AT_type));
        match of {
            Some(of) => (*self.types.info(&of, self.abi)).clone(),
            None if self.described => TypeInfo::void(),
            None => TypeInfo::unknown(),
        }
    }

    /// Returns all parameters in source order, including those that the concrete DIE reorders or omits.
    fn formals(&self, chain: &[Die<'a>], own: Vec<Die<'a>>) -> Vec<Formal<'a>> {
        let own = own.iter().take(MAX_PARAMS);
        let own: Vec<Vec<Die<'a>>> = own.map(|d| self.session.chain(d)).collect();
        let is_instance = self
            .session
            .attr(&chain[0], dw::DW_AT_abstract_origin)
            .is_some();
        let declared = match is_instance {
            true => self.declared(&chain[1..]),
            false => Vec::new(),
        };
        let matching = |declared: &Die<'a>| {
            own.iter()
                .position(|o| o[1..].iter().any(|d| d.key() == declared.key()))
        };
        let matched: Vec<Option<usize>> = declared.iter().map(matching).collect();
        if matched.iter().flatten().count() < own.len() || declared.is_empty() {
            let concrete = |chain| Formal {
                chain,
                concrete: true,
            };
            return own.into_iter().map(concrete).collect();
        }
        let formal = |(declared, matched): (Die<'a>, Option<usize>)| match matched {
            Some(index) => Some(Formal {
                chain: own[index].clone(),
                concrete: true,
            }),
            // Constructors are declared with hidden parameters that only some of their instances have.
            None if self.session.flag(&declared, dw::DW_AT_artificial) => None,
            None => Some(Formal {
                chain: self.session.chain(&declared),
                concrete: false,
            }),
        };
        declared
            .into_iter()
            .zip(matched)
            .filter_map(formal)
            .collect()
    }

    /// Returns the parameters of the nearest declaration that lists any.
    fn declared(&self, chain: &[Die<'a>]) -> Vec<Die<'a>> {
        for die in chain {
            let mut found = Vec::new();
            self.session.each_child(die, |tag, offset| {
                if tag == dw::DW_TAG_formal_parameter {
                    found.push(die.sibling(offset));
                } else if tag == dw::DW_TAG_GNU_formal_parameter_pack {
                    let pack = die.sibling(offset);
                    let parts = [dw::DW_TAG_formal_parameter];
                    found.extend(self.session.children(&pack, &parts));
                }
                // Parameters come before variables and blocks.
                let behind = matches!(tag, dw::DW_TAG_variable | dw::DW_TAG_lexical_block);
                !behind && found.len() < MAX_PARAMS
            });
            if !found.is_empty() {
                return found;
            }
        }
        Vec::new()
    }

    /// Returns for each parameter whether the optimiser removed it.
    fn removed(
        &self,
        formals: &[Formal<'a>],
        declared: &[Passed],
        locations: &Locations<'_, '_, '_, 'a>,
    ) -> Vec<bool> {
        let is_nowhere = |formal: &Formal<'a>| {
            let die = formal.chain.first().filter(|_| formal.concrete);
            die.is_none_or(|die| locations.is_nowhere(die))
        };
        let is_removed = |(formal, declared): (&Formal<'a>, &Passed)| {
            self.is_llvm && declared.place != ParameterPlace::Empty && is_nowhere(formal)
        };
        formals.iter().zip(declared).map(is_removed).collect()
    }

    /// Returns whether the optimiser may have removed parameters or the result: it does that only to functions that other units
    /// cannot call. Link-time optimisation makes such functions of others.
    fn is_changeable(&self, chain: &[Die<'a>], svma: u64, removed: &[bool]) -> bool {
        let is_external = |die: &Die<'a>| self.session.flag(die, dw::DW_AT_external);
        let is_own = || !chain.iter().any(is_external) || self.code.is_local(svma);
        (self.may_change || removed.contains(&true)) && is_own()
    }

    fn type_of(&self, chain: &[Die<'a>]) -> Rc<TypeInfo> {
        let of = chain
            .iter()
            .find_map(|d| self.session.follow(d, dw::DW_AT_type));
        match of {
            Some(of) => self.types.info(&of, self.abi),
            None => Rc::new(TypeInfo::unknown()),
        }
    }

    /// Returns the type of a parameter of the function `of`, as it is passed.
    fn passed(&self, chain: &[Die<'a>], of: &[Die<'a>], told: &Told) -> Rc<TypeInfo> {
        let described = self.type_of(chain);
        if described.kind == (ValueKind::Float { bytes: 4 }) && lacks_prototype(self.session, of) {
            return Rc::new(TypeInfo {
                kind: ValueKind::Float { bytes: 8 },
                size: 8,
                align: 8,
                passing: described.passing,
            });
        }
        match self.function_type(chain, &described) {
            Some(ty) => self.called(ty, told, of).passed(described),
            None => described,
        }
    }

    /// Returns the type of a parameter or a result if it is described as a pointer to a function and may be an item.
    fn function_type(&self, chain: &[Die<'a>], info: &TypeInfo) -> Option<Key> {
        if self.abi != Abi::Rust || info.kind != ValueKind::Pointer {
            return None;
        }
        let of = chain
            .iter()
            .find_map(|d| self.session.follow(d, dw::DW_AT_type))?;
        items::is_function(self.session, &of).then(|| of.key())
    }

    /// Returns what the parameters' places tell about types that are described as pointers to functions.
    fn told(
        &self,
        formals: &[Formal<'a>],
        locations: &Locations<'_, '_, '_, 'a>,
        svma: u64,
    ) -> Told {
        let mut told = Told::default();
        let mut spills: Option<Spills> = None;
        for formal in formals.iter().filter(|formal| formal.concrete) {
            let described = self.type_of(&formal.chain);
            let Some(ty) = self.function_type(&formal.chain, &described) else {
                continue;
            };
            let called = items::told_by(locations.of(&formal.chain[0]), |home| {
                let spills = spills.get_or_insert_with(|| self.trace(svma));
                spills.came(home, items::POINTER).is_some()
            });
            told.add(ty, called);
        }
        told
    }

    /// Returns what values of such a type are. Only generic functions, and closures in them, receive items.
    fn called(&self, ty: Key, told: &Told, chain: &[Die<'a>]) -> Called {
        match told.of(ty) {
            Called::Unclear if !self.is_closure && !self.is_generic(chain) => Called::Pointer,
            called => called,
        }
    }

    fn is_generic(&self, chain: &[Die<'a>]) -> bool {
        let has_arguments = |die: &Die<'a>| {
            let mut found = false;
            self.session.each_child(die, |tag, _| {
                found = tag == dw::DW_TAG_template_type_parameter;
                !found
            });
            found
        };
        chain.iter().any(has_arguments)
    }

    fn trace(&self, svma: u64) -> Spills {
        args::trace(self.code.bytes(svma, PROLOGUE_BYTES))
    }

    /// Returns the names of parameters: empty if one has none, and each only once.
    fn names(&self, formals: &[Formal<'a>]) -> Vec<String> {
        let mut seen: HashMap<String, usize> = HashMap::new();
        let name = |formal: &Formal<'a>| {
            let name = self.name_of(&formal.chain);
            if name.is_empty() {
                return name;
            }
            let before = seen.entry(name.clone()).or_default();
            *before += 1;
            args::numbered(&name, *before - 1)
        };
        formals.iter().map(name).collect()
    }

    fn name_of(&self, chain: &[Die<'a>]) -> String {
        let name = chain
            .iter()
            .find_map(|d| self.session.string(d, dw::DW_AT_name));
        name.map(|n| n.to_string_lossy().into_owned())
            .unwrap_or_default()
    }

    /// Returns what the function's own locations and first instructions state about each parameter.
    fn stated(
        &self,
        locations: &Locations<'_, '_, '_, 'a>,
        formals: &[Formal<'a>],
        infos: &[Rc<TypeInfo>],
        declared: &[Passed],
        svma: u64,
        trust: Trust,
    ) -> Vec<Option<Passed>> {
        // The C convention is certain, so only a contradiction at the entry itself overrides it.
        let certain = matches!(self.abi, Abi::SysV { .. }) && trust == Trust::All;
        let mut spills: Option<Spills> = None;
        let mut of = |formal: &Formal<'a>, info: &TypeInfo, declared: &Passed| {
            let certain = certain && declared.place != ParameterPlace::Unknown;
            let die = formal.chain.first().filter(|_| formal.concrete)?;
            match locations.of(die) {
                Found::AtEntry(passed) => Some(passed),
                Found::Always(passed) if !certain => Some(passed),
                Found::Home(home) if !certain => {
                    let spills = spills.get_or_insert_with(|| self.trace(svma));
                    let came = spills.came(home, info.size);
                    // LLVM states homes in optimised code as if the prologue had run, which may come later.
                    came.filter(|came| trust != Trust::Read || !is_on_stack(came))
                }
                _ => None,
            }
        };
        formals
            .iter()
            .zip(infos)
            .zip(declared)
            .map(|((formal, info), declared)| of(formal, info, declared))
            .collect()
    }
}

/// Returns whether the code states that each parameter arrives in its registers as declared, and for those on the stack that
/// they are there at all.
fn all_passed<'a>(
    formals: &[Formal<'a>],
    declared: &[Passed],
    stated: &[Option<Passed>],
    locations: &Locations<'_, '_, '_, 'a>,
) -> bool {
    let is_passed =
        |((formal, declared), stated): ((&Formal<'a>, &Passed), &Option<Passed>)| match declared
            .place
        {
            ParameterPlace::Empty => true,
            _ if is_on_stack(declared) => formal.concrete && locations.has_home(&formal.chain[0]),
            _ => stated.as_ref() == Some(declared),
        };
    formals.iter().zip(declared).zip(stated).all(is_passed)
}

/// Of a parameter in two registers, LLVM states no place for a half that the function does not use: callers that know this
/// leave anything in its register.
fn has_unused_half(declared: &Passed, stated: Passed) -> bool {
    let is_open = |place| matches!(place, ParameterPlace::Unknown | ParameterPlace::Empty);
    let halves = (
        declared.place,
        declared.place2.unwrap_or(ParameterPlace::Empty),
    );
    if is_open(halves.0) || is_open(halves.1) || stated.indirect {
        return false;
    }
    match stated.place2 {
        None => stated.place == halves.0,
        Some(second) => is_open(stated.place) != is_open(second),
    }
}

/// Combines the places that the convention prescribes with those that the code states.
fn settle(declared: &[Passed], stated: &[Option<Passed>], trust: Trust) -> Vec<Passed> {
    let conflicts = || {
        declared
            .iter()
            .zip(stated)
            .filter_map(|(d, s)| conflict(d, (*s)?))
    };
    let certainty = match conflicts().max() {
        _ if trust != Trust::All => Certainty::Nothing,
        Some(Conflict::Register) => Certainty::Nothing,
        Some(Conflict::Stack) => Certainty::Registers,
        None => Certainty::All,
    };
    let join = |(declared, stated): (&Passed, &Option<Passed>)| {
        let on_stack = is_on_stack(declared);
        match (declared.place, stated) {
            (ParameterPlace::Empty, _) if declared.place2.is_none() => *declared,
            (ParameterPlace::Unknown, stated) => stated.unwrap_or(Passed::UNKNOWN),
            _ if certainty == Certainty::All => *declared,
            _ if certainty == Certainty::Registers && !on_stack => *declared,
            (_, stated) => stated.unwrap_or(Passed::UNKNOWN),
        }
    };
    declared.iter().zip(stated).map(join).collect()
}

/// How many of the declared places are trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Certainty {
    All,
    /// Only those in registers: something on the stack does not have the expected alignment.
    Registers,
    Nothing,
}

/// The kind of place in which declared and stated places differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Conflict {
    Stack,
    Register,
}

/// Returns how the places differ, if both are known.
fn conflict(declared: &Passed, stated: Passed) -> Option<Conflict> {
    let open =
        |place: ParameterPlace| matches!(place, ParameterPlace::Unknown | ParameterPlace::Empty);
    let on_stack = |place: ParameterPlace| matches!(place, ParameterPlace::Memory { .. });
    let differ = |a: ParameterPlace, b: ParameterPlace| match a == b || open(a) || open(b) {
        true => None,
        false if on_stack(a) && on_stack(b) => Some(Conflict::Stack),
        false => Some(Conflict::Register),
    };
    let seconds = declared.place2.zip(stated.place2);
    let seconds = seconds.filter(|_| declared.second_at == stated.second_at);
    differ(declared.place, stated.place).max(seconds.and_then(|(a, b)| differ(a, b)))
}

fn is_on_stack(passed: &Passed) -> bool {
    matches!(passed.place, ParameterPlace::Memory { .. })
}

fn is_unknown(passed: &Passed) -> bool {
    passed.place == ParameterPlace::Unknown || passed.place2 == Some(ParameterPlace::Unknown)
}

/// Returns one more than the highest vector register used.
fn last_xmm(passed: &Passed) -> u8 {
    let xmm = |place| match place {
        ParameterPlace::Sse(index) => index + 1,
        _ => 0,
    };
    xmm(passed.place).max(passed.place2.map_or(0, xmm))
}

fn uses_xmm(place: RetPlace) -> bool {
    let xmm = |register| matches!(register, RetReg::Xmm0 | RetReg::Xmm1);
    match place {
        RetPlace::Regs(first, second) => {
            xmm(first) || second.is_some_and(|(second, _)| xmm(second))
        }
        _ => false,
    }
}
