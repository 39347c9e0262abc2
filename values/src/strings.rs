//! Text: C strings in memory, quotes and escapes.

use debuginfo::types::Type;
use debuginfo::{Certainty, Machine, Unknown};

/// Bytes that are read at once in the search for the end of a text.
const CHUNK: usize = 64;

/// Text read from memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text {
    /// The bytes before the end, up to the requested number.
    pub bytes: Vec<u8>,
    /// The string continues after them.
    pub more: bool,
    /// How far it may be trusted.
    pub certainty: Certainty,
}

/// Reads the text at `address` up to its end: a zero of `width` bytes (1, 2 or 4), at most `limit` characters.
///
/// # Errors
/// Not even the first character is known.
pub fn text_at(
    machine: &dyn Machine,
    address: u64,
    width: usize,
    limit: usize,
) -> Result<Text, Unknown> {
    let width = width.clamp(1, 4);
    let mut text = Text {
        bytes: Vec::new(),
        more: true,
        certainty: Certainty::Known,
    };
    let most = limit.saturating_mul(width);
    while text.bytes.len() < most {
        let at = address.wrapping_add(text.bytes.len() as u64);
        // Never across a multiple of the chunk's size: memory after the end may be unmapped.
        let room = CHUNK - (at % CHUNK as u64) as usize;
        let mut chunk = vec![0; room.min(most - text.bytes.len()).max(width)];
        let read = machine.memory(at, &mut chunk);
        if read != Ok(Certainty::Known) {
            // Memory after the end of the text may be older, or unknown.
            if read.is_ok() {
                machine.disregarded();
            }
            chunk.truncate(width);
            match machine.memory(at, &mut chunk) {
                Ok(certainty) => text.certainty = text.certainty.and(certainty),
                Err(why) if text.bytes.is_empty() => return Err(why),
                Err(_) => return Ok(text),
            }
        }
        let whole = chunk.len() / width * width;
        for unit in chunk[..whole].chunks(width) {
            if unit.iter().all(|byte| *byte == 0) {
                text.more = false;
                return Ok(text);
            }
            text.bytes.extend_from_slice(unit);
        }
    }
    // The text may end right at the limit.
    let mut next = [0; 4];
    let at = address.wrapping_add(text.bytes.len() as u64);
    if machine.memory(at, &mut next[..width]).is_ok() {
        text.more = next[..width].iter().any(|byte| *byte != 0);
    }
    Ok(text)
}

/// Returns text in quotes: UTF-8 as it is, control characters and other bytes escaped.
#[must_use]
pub fn quoted(bytes: &[u8], quote: char) -> String {
    let mut out = String::new();
    out.push(quote);
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            push(&mut out, c, quote);
        }
        for byte in chunk.invalid() {
            out.push_str(&format!("\\{byte:03o}"));
        }
    }
    out.push(quote);
    out
}

fn push(out: &mut String, c: char, quote: char) {
    match c {
        '\n' => out.push_str("\\n"),
        '\t' => out.push_str("\\t"),
        '\r' => out.push_str("\\r"),
        '\u{7}' => out.push_str("\\a"),
        '\u{8}' => out.push_str("\\b"),
        '\u{b}' => out.push_str("\\v"),
        '\u{c}' => out.push_str("\\f"),
        '\u{1b}' => out.push_str("\\033"),
        '\\' => out.push_str("\\\\"),
        c if c == quote => {
            out.push('\\');
            out.push(c);
        }
        c if c.is_control() => {
            let mut buffer = [0; 4];
            for byte in c.encode_utf8(&mut buffer).bytes() {
                out.push_str(&format!("\\{byte:03o}"));
            }
        }
        c => out.push(c),
    }
}

/// Returns the prefix of literals of a type of wide characters (C++20, 5.13.5).
pub(super) fn literal_prefix(character: &Type) -> Option<&'static str> {
    let of = |character: &Type| {
        Some(match character.unqualified().name().as_str() {
            "wchar_t" => "L",
            "char8_t" => "u8",
            "char16_t" => "u",
            "char32_t" => "U",
            _ => return None,
        })
    };
    of(character).or_else(|| of(&character.strip()))
}

/// Characters of 1, 2 or 4 bytes as UTF-8; invalid ones are replaced.
pub(super) fn to_utf8(bytes: &[u8], width: usize) -> Vec<u8> {
    match width {
        2 => {
            let units = bytes
                .chunks_exact(2)
                .map(|u| u16::from_le_bytes([u[0], u[1]]));
            let text: String = char::decode_utf16(units)
                .map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER))
                .collect();
            text.into_bytes()
        }
        4 => {
            let units = bytes.chunks_exact(4);
            let text: String = units
                .map(|u| u32::from_le_bytes([u[0], u[1], u[2], u[3]]))
                .map(|u| char::from_u32(u).unwrap_or(char::REPLACEMENT_CHARACTER))
                .collect();
            text.into_bytes()
        }
        _ => bytes.to_vec(),
    }
}
