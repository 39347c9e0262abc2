//! Assigns argument registers and stack words to parameters, in declaration order.

use crate::abi::{Passing, RegClass, TypeInfo};
use crate::model::{ParameterPlace, RetPlace, RetReg};

/// The place of one argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Passed {
    pub place: ParameterPlace,
    pub place2: Option<ParameterPlace>,
    /// Offset in the value, in bytes, of the part in `place2`.
    pub second_at: u8,
    pub indirect: bool,
}

impl Passed {
    pub(crate) const UNKNOWN: Passed = Passed::at(ParameterPlace::Unknown);

    pub(crate) const fn at(place: ParameterPlace) -> Passed {
        Passed {
            place,
            place2: None,
            second_at: 8,
            indirect: false,
        }
    }
}

/// The registers and stack words not yet assigned.
struct Left {
    int: u8,
    sse: u8,
    /// Bytes of stack arguments so far.
    stack: u64,
    /// The place of the result or of an earlier parameter is unknown, so the places of all later parameters are too.
    lost: bool,
    /// The compiler is LLVM's: before version 18 it splits `__int128` between the last register and the stack.
    is_llvm: bool,
}

/// Returns the places of the parameters, in order. A result in memory (`result`) takes rdi for its address.
pub(crate) fn assign<'i>(
    params: impl Iterator<Item = &'i TypeInfo>,
    result: RetPlace,
    is_llvm: bool,
) -> Vec<Passed> {
    let mut left = Left {
        is_llvm,
        int: u8::from(result == RetPlace::Hidden),
        sse: 0,
        stack: 0,
        lost: result == RetPlace::Unknown,
    };
    params.map(|param| left.pass(param)).collect()
}

const INTEGER: Option<RegClass> = Some(RegClass::Int);

impl Left {
    fn pass(&mut self, param: &TypeInfo) -> Passed {
        match param.passing {
            Passing::Empty => Passed::at(ParameterPlace::Empty),
            _ if self.lost => Passed::UNKNOWN,
            Passing::Unknown => {
                self.lost = true;
                Passed::UNKNOWN
            }
            Passing::Stack | Passing::X87 => self.on_stack(param.size, param.align),
            Passing::Reference => Passed {
                indirect: true,
                ..Passed::at(self.register_or_word(RegClass::Int))
            },
            Passing::Regs { .. } => self.in_registers(param),
        }
    }

    fn in_registers(&mut self, param: &TypeInfo) -> Passed {
        let Passing::Regs {
            first,
            second,
            second_at,
            together,
        } = param.passing
        else {
            return Passed::UNKNOWN;
        };
        if together && !self.fits(first, second) {
            let is_wide = param.align == 16 && (first, second) == (INTEGER, INTEGER);
            if self.is_llvm && is_wide {
                self.lost = true;
                return Passed::UNKNOWN;
            }
            return self.on_stack(param.size, param.align);
        }
        let mut place = |class: Option<RegClass>| class.map(|c| self.register_or_word(c));
        Passed {
            place: place(first).unwrap_or(ParameterPlace::Empty),
            place2: place(second),
            second_at,
            indirect: false,
        }
    }

    fn fits(&self, first: Option<RegClass>, second: Option<RegClass>) -> bool {
        let wanted = |class| {
            [first, second]
                .iter()
                .filter(|c| **c == Some(class))
                .count()
        };
        usize::from(self.int) + wanted(RegClass::Int) <= 6
            && usize::from(self.sse) + wanted(RegClass::Sse) <= 8
    }

    fn register_or_word(&mut self, class: RegClass) -> ParameterPlace {
        match class {
            RegClass::Int if self.int < 6 => {
                self.int += 1;
                ParameterPlace::Int(self.int - 1)
            }
            RegClass::Sse if self.sse < 8 => {
                self.sse += 1;
                ParameterPlace::Sse(self.sse - 1)
            }
            _ => self.on_stack(8, 8).place,
        }
    }

    fn on_stack(&mut self, size: u64, align: u64) -> Passed {
        // The first stack argument lies just above the return address, at a multiple of 16.
        let start = self.stack.checked_next_multiple_of(align.max(8));
        let end = start.and_then(|s| s.checked_add(size)?.checked_next_multiple_of(8));
        let offset = start.and_then(|s| u32::try_from(s.checked_add(8)?).ok());
        match (offset, end) {
            (Some(offset), Some(end)) => {
                self.stack = end;
                Passed::at(ParameterPlace::Memory { offset })
            }
            _ => {
                self.lost = true;
                Passed::UNKNOWN
            }
        }
    }
}

pub(crate) fn ret_place(info: &TypeInfo) -> RetPlace {
    let Passing::Regs {
        first,
        second,
        second_at,
        ..
    } = info.passing
    else {
        return match info.passing {
            Passing::Empty => RetPlace::None,
            Passing::X87 => RetPlace::X87,
            Passing::Stack | Passing::Reference => RetPlace::Hidden,
            _ => RetPlace::Unknown,
        };
    };
    let (mut int, mut sse) = (0, 0);
    let mut next = |class| {
        let (count, registers) = match class {
            RegClass::Int => (&mut int, [RetReg::Rax, RetReg::Rdx]),
            RegClass::Sse => (&mut sse, [RetReg::Xmm0, RetReg::Xmm1]),
        };
        *count += 1;
        registers[*count - 1]
    };
    match (first.map(&mut next), second.map(&mut next)) {
        (Some(first), second) => RetPlace::Regs(first, second.map(|second| (second, second_at))),
        (None, Some(second)) => RetPlace::Regs(second, None),
        (None, None) => RetPlace::None,
    }
}
