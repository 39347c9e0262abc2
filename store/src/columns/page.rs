//! Encodes the values of one page. The first page of a chunk chooses the encoding: the smallest one.

use std::io;

use parquet::basic::Encoding;

use super::compress::{Compressor, is_worth};
use super::dictionary::{Dictionary, MAX_VALUES};
use super::{delta, rle};

/// A page with fewer values per distinct one than this does better without a dictionary.
const VALUES_PER_DISTINCT: usize = 4;
/// Bytes per value from which on encodings that only help the compressor are tried too.
const LONG_VALUE: usize = 2;

/// A page with more values per byte than this is not compressed: the gain is too small.
const COMPRESS_FROM_VALUES_PER_BYTE: usize = 8;

/// The physical type of the column's values in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Physical {
    /// Bits, given as 0 and 1.
    Boolean,
    /// 32 bits; the values given fit.
    Int32,
    /// 64 bits.
    Int64,
}

/// How the pages of a chunk are written, chosen from the first page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    shape: Shape,
    compress: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    Bits,
    Dictionary,
    Delta,
    Plain,
    Split,
}

/// The encoded values of one page; the bytes are in [`Tools`].
#[derive(Debug)]
pub(super) struct Body<'t> {
    pub(super) encoding: Encoding,
    pub(super) bytes: &'t [u8],
    /// Length before compression, in bytes.
    pub(super) plain_len: usize,
    pub(super) compressed: bool,
}

/// The tools for encoding, shared by all columns.
#[derive(Debug)]
pub(super) struct Tools {
    compressor: Compressor,
    numbers: Vec<u32>,
    bytes: Vec<u8>,
}

impl Tools {
    /// Returns tools.
    ///
    /// # Errors
    /// When there is no memory for the compressor.
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self {
            compressor: Compressor::new()?,
            numbers: Vec::new(),
            bytes: Vec::new(),
        })
    }

    /// Returns the page of a chunk's dictionary.
    pub(super) fn dictionary_body(
        &mut self,
        dictionary: &Dictionary,
        physical: Physical,
        compress: bool,
    ) -> io::Result<Body<'_>> {
        self.bytes.clear();
        plain(dictionary.values(), physical, &mut self.bytes);
        let bytes = match compress {
            true => self.compressor.compress(&self.bytes)?,
            false => &self.bytes,
        };
        Ok(Body {
            encoding: Encoding::PLAIN,
            bytes,
            plain_len: self.bytes.len(),
            compressed: compress,
        })
    }

    /// Returns the page with `value` in each of `rows` rows.
    pub(super) fn constant_body(
        &mut self,
        value: i64,
        rows: usize,
        physical: Physical,
        dictionary: &mut Dictionary,
    ) -> Body<'_> {
        self.bytes.clear();
        let encoding = if physical == Physical::Boolean {
            bits(|out| rle::run(value as u32, rows, 1, out), &mut self.bytes);
            Encoding::RLE
        } else if dictionary.number_all(&[value], MAX_VALUES, &mut self.numbers) {
            let width = dictionary.width();
            self.bytes.push(width as u8);
            rle::run(self.numbers[0], rows, width, &mut self.bytes);
            Encoding::RLE_DICTIONARY
        } else {
            delta::encode(&vec![value; rows], &mut self.bytes);
            Encoding::DELTA_BINARY_PACKED
        };
        Body {
            encoding,
            bytes: &self.bytes,
            plain_len: self.bytes.len(),
            compressed: false,
        }
    }

    /// Encodes the values into `self.bytes` to measure them, with `best` as the shortest length so far. Returns the
    /// growth of the dictionary page in bytes; `None` when the shape is impossible or not promising.
    fn try_shape(
        &mut self,
        shape: Shape,
        values: &[i64],
        physical: Physical,
        dictionary: &mut Option<&mut Dictionary>,
        best: usize,
    ) -> Option<usize> {
        if let Shape::Plain | Shape::Split = shape
            && best <= values.len() * LONG_VALUE
        {
            return None;
        }
        if shape != Shape::Dictionary {
            self.shape(shape, values, physical, &mut Dictionary::default());
            return Some(0);
        }
        let dictionary = dictionary.as_deref_mut()?;
        let known = dictionary.values().len();
        self.shape(shape, values, physical, dictionary)?;
        let added = dictionary.values().len() - known;
        dictionary.truncate(known);
        // A dictionary page serves more pages than this one.
        Some(added * 2)
    }

    /// Encodes the values into `self.bytes`. Returns `None` when the dictionary has no room for them.
    fn shape(
        &mut self,
        shape: Shape,
        values: &[i64],
        physical: Physical,
        dictionary: &mut Dictionary,
    ) -> Option<Encoding> {
        self.bytes.clear();
        match shape {
            Shape::Bits => {
                let number = |value: &i64| *value as u32;
                self.numbers.clear();
                self.numbers.extend(values.iter().map(number));
                bits(|out| rle::encode(&self.numbers, 1, out), &mut self.bytes);
                Some(Encoding::RLE)
            }
            Shape::Dictionary => {
                let room = dictionary.values().len() + values.len() / VALUES_PER_DISTINCT + 1;
                if !dictionary.number_all(values, room.min(MAX_VALUES), &mut self.numbers) {
                    return None;
                }
                let width = dictionary.width();
                self.bytes.push(width as u8);
                rle::encode(&self.numbers, width, &mut self.bytes);
                Some(Encoding::RLE_DICTIONARY)
            }
            Shape::Delta => {
                delta::encode(values, &mut self.bytes);
                Some(Encoding::DELTA_BINARY_PACKED)
            }
            Shape::Plain => {
                plain(values, physical, &mut self.bytes);
                Some(Encoding::PLAIN)
            }
            Shape::Split => {
                split(values, &mut self.bytes);
                Some(Encoding::BYTE_STREAM_SPLIT)
            }
        }
    }
}

impl Plan {
    /// Returns the plan that makes this page smallest, with a dictionary only if one is given. Compression must
    /// pay for its time.
    ///
    /// # Errors
    /// When the compressor fails.
    pub(super) fn choose(
        values: &[i64],
        physical: Physical,
        mut dictionary: Option<&mut Dictionary>,
        tools: &mut Tools,
    ) -> io::Result<Self> {
        let shapes: &[Shape] = match physical {
            Physical::Boolean => return Ok(Self::new(Shape::Bits, false)),
            Physical::Int32 => &[Shape::Delta, Shape::Dictionary, Shape::Plain],
            Physical::Int64 => &[Shape::Delta, Shape::Dictionary, Shape::Plain, Shape::Split],
        };
        let mut raw = (usize::MAX, Self::new(Shape::Delta, false));
        let mut packed = (usize::MAX, raw.1);
        for shape in shapes {
            let Some(extra) = tools.try_shape(*shape, values, physical, &mut dictionary, raw.0)
            else {
                continue;
            };
            let len = extra + tools.bytes.len();
            if len < raw.0 {
                raw = (len, Self::new(*shape, false));
            }
            if tools.bytes.len() * COMPRESS_FROM_VALUES_PER_BYTE >= values.len() {
                let len = extra + tools.compressor.compress(&tools.bytes)?.len();
                if len < packed.0 {
                    packed = (len, Self::new(*shape, true));
                }
            }
        }
        Ok(if is_worth(packed.0, raw.0) {
            packed.1
        } else {
            raw.1
        })
    }

    fn new(shape: Shape, compress: bool) -> Self {
        Self { shape, compress }
    }

    /// Encodes a page into `tools`, or returns `None` when the dictionary has no room for its values.
    pub(super) fn encode(
        self,
        values: &[i64],
        physical: Physical,
        dictionary: &mut Dictionary,
        tools: &mut Tools,
    ) -> Option<Encoding> {
        tools.shape(self.shape, values, physical, dictionary)
    }

    /// Returns the page that was encoded into `tools`.
    pub(super) fn body(self, encoding: Encoding, tools: &mut Tools) -> io::Result<Body<'_>> {
        let packed = match self.compress {
            true => tools.compressor.compress_if_worth(&tools.bytes)?,
            false => None,
        };
        Ok(Body {
            encoding,
            compressed: packed.is_some(),
            bytes: packed.unwrap_or(&tools.bytes),
            plain_len: tools.bytes.len(),
        })
    }
}

/// Appends the output of `write`, preceded by its length, as Parquet does for booleans.
fn bits(write: impl FnOnce(&mut Vec<u8>), out: &mut Vec<u8>) {
    out.extend([0; 4]);
    write(out);
    let len = (out.len() - 4) as u32;
    out[..4].copy_from_slice(&len.to_le_bytes());
}

/// Appends values one after another.
fn plain(values: &[i64], physical: Physical, out: &mut Vec<u8>) {
    if physical == Physical::Int32 {
        out.extend(values.iter().flat_map(|v| (*v as i32).to_le_bytes()));
    } else {
        out.extend(values.iter().flat_map(|v| v.to_le_bytes()));
    }
}

/// Appends all first bytes, then all second bytes, and so on. `out` is empty.
fn split(values: &[i64], out: &mut Vec<u8>) {
    for i in 0..8 {
        out.extend(values.iter().map(|value| (value >> (8 * i)) as u8));
    }
}
