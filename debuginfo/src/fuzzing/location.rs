//! Makes a module with variables at the places that given DWARF expressions compute, and reads them.

use std::sync::Arc;

use super::{CODE_BYTES, CODE_SVMA, MODULE_NAME, Show, elf, variables};
use crate::Module;

/// Expressions are cut to this size, because the unit's length has 32 bits.
const MAX_BYTES: usize = 1 << 16;

/// Reads `data` as two DWARF expressions. The first byte is the length of the first expression. The first one is the
/// frame base of a function; the second one is the location of a local variable, a parameter and a global variable.
/// Reads the values of all of them.
pub fn location(data: &[u8], show: Show<'_>) {
    let Some((length, rest)) = data.split_first() else {
        return;
    };
    let rest = &rest[..rest.len().min(MAX_BYTES)];
    let (frame, place) = rest.split_at(usize::from(*length).min(rest.len()));
    let info = info(frame, place);
    let bytes = elf(&[(".debug_abbrev", ABBREVIATIONS), (".debug_info", &info)]);
    let module = Module::from_bytes(MODULE_NAME, bytes).expect("the file around them is right");
    assert_eq!(module.functions().list.len(), 1, "it is read");
    variables::ask(&Arc::new(module), show);
}

/// A unit, a base type, a variable, a function with a variable and a parameter (DWARF 5, 7.5.3).
const ABBREVIATIONS: &[u8] = &[
    1, 0x11, 1, 0x03, 0x08, 0, 0, // compile_unit: name string
    2, 0x24, 0, 0x03, 0x08, 0x0b, 0x0b, 0x3e, 0x0b, 0,
    0, // base_type: name, byte_size, encoding
    3, 0x34, 0, 0x03, 0x08, 0x49, 0x13, 0x02, 0x18, 0, 0, // variable: name, type, location
    4, 0x2e, 1, 0x03, 0x08, 0x11, 0x01, 0x12, 0x06, 0x40, 0x18, 0,
    0, // subprogram, frame_base
    5, 0x05, 0, 0x03, 0x08, 0x49, 0x13, 0x02, 0x18, 0, 0, // formal_parameter: as variable
    0,
];

fn info(frame: &[u8], place: &[u8]) -> Vec<u8> {
    const VERSION_4: u16 = 4;
    const ADDRESS_BYTES: u8 = 8;
    const SIGNED: u8 = 5;
    // Length, version, offset of the abbreviations, size of an address.
    const HEADER_BYTES: usize = 4 + 2 + 4 + 1;
    let mut unit = b"\x01unit\0".to_vec();
    let ty = ((HEADER_BYTES + unit.len()) as u32).to_le_bytes();
    unit.extend(b"\x02int\0");
    unit.extend([4, SIGNED]);
    let variable = |unit: &mut Vec<u8>, code: u8, name: u8| {
        unit.extend([code, name, 0]);
        unit.extend(ty);
        expression(unit, place);
    };
    variable(&mut unit, 3, b'g');
    unit.extend(b"\x04f\0");
    unit.extend(CODE_SVMA.to_le_bytes());
    unit.extend((CODE_BYTES as u32).to_le_bytes());
    expression(&mut unit, frame);
    variable(&mut unit, 3, b'l');
    variable(&mut unit, 5, b'p');
    unit.extend([0, 0]);
    let length = (HEADER_BYTES - 4 + unit.len()) as u32;
    let mut out = length.to_le_bytes().to_vec();
    out.extend(VERSION_4.to_le_bytes());
    out.extend([0; 4]);
    out.push(ADDRESS_BYTES);
    out.extend(unit);
    out
}

fn expression(out: &mut Vec<u8>, bytes: &[u8]) {
    let mut length = bytes.len();
    while length > 0x7f {
        out.push(length as u8 & 0x7f | 0x80);
        length >>= 7;
    }
    out.push(length as u8);
    out.extend(bytes);
}
