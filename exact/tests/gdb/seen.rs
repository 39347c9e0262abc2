//! What the script has written, as values.

use std::collections::BTreeMap;
use std::rc::Rc;

pub const PAGE: usize = 4096;

/// The order of the general registers.
pub const GENERAL: [&str; 19] = [
    "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "rbp", "rsp", "r8", "r9", "r10", "r11", "r12", "r13",
    "r14", "r15", "rip", "eflags", "fs_base",
];

/// Vector registers, in as many bytes as the processor has.
#[derive(Default)]
pub struct Vectors {
    pub mxcsr: u32,
    pub registers: Vec<Vec<u8>>,
    pub masks: Vec<u64>,
}

#[derive(Default)]
pub struct X87 {
    pub control: u16,
    pub status: u16,
    pub tags: u16,
    pub opcode: u16,
    /// Addresses of the last instruction and of its operand, 32 bits and those above.
    pub addresses: [u32; 4],
    pub stack: Vec<Vec<u8>>,
}

pub type Pages = BTreeMap<u64, Rc<[u8]>>;

/// Memory that the program can write: its ranges and what they hold.
pub struct Memory {
    pub ranges: Vec<(u64, u64)>,
    pub pages: Pages,
}

/// All that gdb sees at a position.
pub struct Position {
    pub at: u64,
    pub general: [u64; 19],
    pub vectors: Rc<Vectors>,
    pub x87: Rc<X87>,
    pub memory: Option<Memory>,
}

pub struct Moments {
    pub pid: u64,
    pub positions: Vec<Position>,
}

struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn take(&mut self, count: usize) -> &'a [u8] {
        let (first, rest) = self.0.split_at(count);
        self.0 = rest;
        first
    }

    fn u16(&mut self) -> u16 {
        u16::from_le_bytes(self.take(2).try_into().unwrap())
    }

    fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.take(4).try_into().unwrap())
    }

    fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.take(8).try_into().unwrap())
    }
}

fn vectors(mut bytes: Bytes) -> Vectors {
    let (mxcsr, count, words) = (bytes.u32(), bytes.u32(), bytes.u32() as usize);
    let registers = (0..count).map(|_| bytes.take(words * 8).to_vec()).collect();
    let masks = (0..bytes.u32()).map(|_| bytes.u64()).collect();
    Vectors {
        mxcsr,
        registers,
        masks,
    }
}

fn x87(mut bytes: Bytes) -> X87 {
    X87 {
        control: bytes.u16(),
        status: bytes.u16(),
        tags: bytes.u16(),
        opcode: bytes.u16(),
        addresses: std::array::from_fn(|_| bytes.u32()),
        stack: (0..8).map(|_| bytes.take(10).to_vec()).collect(),
    }
}

pub fn moments(bytes: &[u8]) -> Moments {
    let mut bytes = Bytes(bytes);
    let mut found = Moments {
        pid: 0,
        positions: Vec::new(),
    };
    let mut pages = Pages::new();
    let (mut last_vectors, mut last_x87) = (Rc::default(), Rc::default());
    while !bytes.0.is_empty() {
        let kind = bytes.take(1)[0];
        let length = bytes.u32() as usize;
        let mut content = Bytes(bytes.take(length));
        match kind {
            b'I' => found.pid = content.u64(),
            b'P' => {
                let address = content.u64();
                pages.insert(address, content.0.into());
            }
            b'R' => found.positions.push(Position {
                at: content.u64(),
                general: std::array::from_fn(|_| content.u64()),
                vectors: Rc::clone(&last_vectors),
                x87: Rc::clone(&last_x87),
                memory: None,
            }),
            _ => {
                let position = found.positions.last_mut().expect("a position comes first");
                match kind {
                    b'V' => {
                        last_vectors = Rc::new(vectors(content));
                        position.vectors = Rc::clone(&last_vectors);
                    }
                    b'X' => {
                        last_x87 = Rc::new(x87(content));
                        position.x87 = Rc::clone(&last_x87);
                    }
                    b'M' => {
                        let ranges = (0..length / 16)
                            .map(|_| (content.u64(), content.u64()))
                            .collect();
                        let pages = pages.clone();
                        position.memory = Some(Memory { ranges, pages });
                    }
                    _ => panic!("there is no kind {kind}"),
                }
            }
        }
    }
    found
}
