//! Goal: arguments and results are shown as their types say. Method: prototypes and the registers of a call, as written here.

use debuginfo::prototypes::Ellipsis;
use expect_test::{Expect, expect};
use store::control::{ParameterPlace, SecondPlace};

use super::registers::{Registers, SSE_REGISTERS};
use super::scalar::*;
use super::text::{Nothing, write_args};
use super::*;

fn int(bytes: u8, signed: bool) -> ValueKind {
    ValueKind::Int { bytes, signed }
}

fn float(bytes: u8) -> ValueKind {
    ValueKind::Float { bytes }
}

fn param(name: &str, kind: ValueKind, place: ParameterPlace) -> Param {
    Param::in_one_place(name, kind, place)
}

fn function(params: Vec<Param>, params_known: bool) -> FunctionDef {
    FunctionDef {
        params,
        params_known,
        ..FunctionDef::named("f".into(), "f".into())
    }
}

fn check(params: Vec<Param>, int: [u64; 6], sse: [Option<u64>; 8], expect: Expect) {
    let mut text = String::new();
    write_args(
        &mut text,
        Some(&function(params, true)),
        &Registers { int, sse },
        &mut Nothing,
    );
    expect.assert_eq(&text);
}

const NONE: [Option<u64>; 8] = [None; 8];

#[test]
fn a_part_is_not_shown_as_the_whole() {
    let in_two = |name: &str, kind, second| Param {
        second: Some(SecondPlace {
            from: 4,
            place: second,
        }),
        ..param(name, kind, ParameterPlace::Int(0))
    };
    check(
        vec![
            in_two("a", ValueKind::Struct { bytes: 8 }, ParameterPlace::Memory),
            in_two("b", ValueKind::Struct { bytes: 8 }, ParameterPlace::Sse(0)),
            in_two("c", int(16, true), ParameterPlace::Memory),
            in_two("d", int(16, true), ParameterPlace::Int(1)),
        ],
        [1, 0, 0, 0, 0, 0],
        [None; 8],
        expect!["a={0x1, ..}, b={0x1, ..}, c=?, d=1"],
    );
}

#[test]
fn integers_of_every_width_and_sign() {
    let bits = 0xfedc_ba98_8765_8381;
    let widths = [(1, "b"), (2, "w"), (4, "d"), (8, "q")];
    let params = |signed: bool| {
        widths
            .map(|(bytes, name)| param(name, int(bytes, signed), ParameterPlace::Int(bytes / 3)))
            .to_vec()
    };
    check(
        params(true),
        [bits; 6],
        NONE,
        expect!["b=-127, w=-31871, d=-2023390335, q=-81985528930139263"],
    );
    check(
        params(false),
        [bits; 6],
        NONE,
        expect!["b=129, w=33665, d=2271576961, q=18364758544779412353"],
    );
    check(
        vec![
            param("s", int(16, true), ParameterPlace::Int(0)),
            param("u", int(16, false), ParameterPlace::Int(0)),
            param("torn", int(16, true), ParameterPlace::Int(5)),
        ],
        [5, u64::MAX, 0, 0, 0, 9],
        NONE,
        expect!["s=-18446744073709551611, u=340282366920938463444927863358058659845, torn=?"],
    );
}

#[test]
fn bools_chars_pointers_and_structs() {
    check(
        vec![
            param("t", ValueKind::Bool, ParameterPlace::Int(0)),
            param("f", ValueKind::Bool, ParameterPlace::Int(1)),
            param("c", ValueKind::Char, ParameterPlace::Int(2)),
            param("nl", ValueKind::Char, ParameterPlace::Int(3)),
            param("p", ValueKind::Pointer, ParameterPlace::Int(4)),
            param("", ValueKind::Struct { bytes: 16 }, ParameterPlace::Int(4)),
            param("u", ValueKind::Unknown, ParameterPlace::Int(5)),
            param(
                "big",
                ValueKind::Struct { bytes: 40 },
                ParameterPlace::Memory,
            ),
        ],
        [0x101, 0x100, 0x6161, 10, 0x5555_0000_1000, 7],
        NONE,
        expect![[
            r"t=true, f=false, c='a', nl='\n', p=0x555500001000, arg5={0x555500001000, ..}, u=0x7, big=?"
        ]],
    );
}

/// One parameter is known.
struct Pair;

impl Known for Pair {
    fn parameter(&mut self, of: &Parameter<'_>) -> Option<String> {
        (of.param.name == "pair").then(|| "{a = 1, b = 2}".to_owned())
    }

    fn text(&mut self, _: u64, _: Extent) -> Option<String> {
        None
    }

    fn bytes(&mut self, _: u64) -> Option<Vec<u8>> {
        None
    }

    fn ellipsis(&self, _: u32) -> Option<Ellipsis> {
        None
    }
}

#[test]
fn what_the_state_knows_is_shown_in_place_of_registers() {
    let params = vec![
        param("n", int(4, true), ParameterPlace::Int(0)),
        param(
            "pair",
            ValueKind::Struct { bytes: 16 },
            ParameterPlace::Int(1),
        ),
    ];
    let mut text = String::new();
    write_args(
        &mut text,
        Some(&function(params, true)),
        &Registers {
            int: [7; 6],
            sse: NONE,
        },
        &mut Pair,
    );
    assert_eq!(text, "n=7, pair={a = 1, b = 2}");
}

#[test]
fn permissions_are_octal() {
    let mode = || param("mode", int(4, false), ParameterPlace::Int(1));
    let params = || {
        vec![
            param("path", ValueKind::Pointer, ParameterPlace::Int(0)),
            mode(),
        ]
    };
    let text = |name: &str, mode: u64| {
        let function = FunctionDef {
            name: name.to_owned(),
            ..function(params(), true)
        };
        let registers = Registers {
            int: [0x10, mode, 0, 0, 0, 0],
            sse: [None; SSE_REGISTERS],
        };
        let mut text = String::new();
        write_args(&mut text, Some(&function), &registers, &mut Nothing);
        text
    };
    assert_eq!(text("mkdir@plt", 0o700), "path=0x10, mode=0700");
    assert_eq!(text("chmod", 0o4755), "path=0x10, mode=04755");
    assert_eq!(text("chmod", 0), "path=0x10, mode=0");
    assert_eq!(text("paint", 0o700), "path=0x10, mode=448");
}

#[test]
fn enums_are_named_where_a_name_is_known() {
    let kind = |bytes, signed| ValueKind::Enum {
        bytes,
        signed,
        names: vec![(-1, "none".into()), (2, "two".into())],
    };
    check(
        vec![
            param("a", kind(4, true), ParameterPlace::Int(0)),
            param("b", kind(4, true), ParameterPlace::Int(1)),
            param("c", kind(4, true), ParameterPlace::Int(2)),
            param("d", kind(8, false), ParameterPlace::Int(3)),
        ],
        [0xffff_ffff, 2, 3, u64::MAX, 0, 0],
        NONE,
        expect!["a=none, b=two, c=3, d=none"],
    );
}

#[test]
fn floats_come_from_the_sse_registers() {
    let mut sse = NONE;
    sse[0] = Some(2.5f64.to_bits());
    sse[1] = Some(u64::from(1.0f32.to_bits()) | 0xdead << 32);
    check(
        vec![
            param("d", float(8), ParameterPlace::Sse(0)),
            param("f", float(4), ParameterPlace::Sse(1)),
            param("lost", float(8), ParameterPlace::Sse(2)),
            param("ld", float(16), ParameterPlace::Memory),
        ],
        [0; 6],
        sse,
        expect!["d=2.5, f=1.0, lost=?, ld=?"],
    );
}

/// Bit patterns of every length, the same in every run.
fn patterns() -> impl Iterator<Item = u64> {
    let mut seed = 7u64;
    let mixed = (0..2_000).map(move |at| {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(at);
        seed >> (at % 64)
    });
    mixed.chain([0, 1, 9, 10, 0xff, 1 << 31, 1 << 63, u64::MAX])
}

#[test]
fn numbers_are_written_as_the_standard_library_writes_them() {
    for bits in patterns() {
        let mut text = String::new();
        write_hex(&mut text, bits);
        assert_eq!(text, format!("{bits:#x}"));
        for (bytes, signed) in [1, 2, 4, 8]
            .map(|bytes| [(bytes, true), (bytes, false)])
            .concat()
        {
            text.clear();
            write_number(&mut text, bits, bytes, signed);
            assert_eq!(text, narrow(bits, bytes, signed).to_string(), "{bits:#x}");
        }
    }
}

#[test]
fn registers_that_are_not_needed_change_nothing() {
    let kinds = || {
        [
            int(4, true),
            int(16, false),
            float(8),
            ValueKind::Struct { bytes: 16 },
        ]
    };
    let places = [
        ParameterPlace::Int(0),
        ParameterPlace::Int(4),
        ParameterPlace::Int(5),
        ParameterPlace::Sse(0),
        ParameterPlace::Sse(7),
        ParameterPlace::Memory,
    ];
    let bits: Vec<u64> = patterns().collect();
    let mut bits = bits.iter().copied().cycle();
    let mut next = || bits.next().expect("a cycle has no end");
    for (kind, place) in kinds()
        .iter()
        .flat_map(|kind| places.map(|place| (kind, place)))
    {
        for second in [
            None,
            Some(ParameterPlace::Int(1)),
            Some(ParameterPlace::Sse(1)),
        ] {
            let param = Param {
                second: second.map(|place| SecondPlace { from: 8, place }),
                ..param("p", kind.clone(), place)
            };
            for params_known in [true, false] {
                let function = function(vec![param.clone()], params_known);
                let needed = Needed::of(Some(&function));
                let all = Registers {
                    int: std::array::from_fn(|_| next()),
                    sse: std::array::from_fn(|_| Some(next())),
                };
                let some = Registers {
                    int: std::array::from_fn(|at| if needed.has(at) { all.int[at] } else { 0 }),
                    sse: std::array::from_fn(|at| all.sse[at].filter(|_| needed.has(6 + at))),
                };
                let text = |registers: &Registers| {
                    let mut text = String::new();
                    write_args(&mut text, Some(&function), registers, &mut Nothing);
                    text
                };
                assert_eq!(text(&all), text(&some), "{function:?}");
            }
        }
    }
}

#[test]
fn without_debug_information_registers_are_shown_as_they_are() {
    let registers = Registers {
        int: [1, 2, 3, 4, 5, 0xff],
        sse: NONE,
    };
    let raw = expect!["rdi=0x1, rsi=0x2, rdx=0x3, rcx=0x4, r8=0x5, r9=0xff"];
    for function in [None, Some(function(vec![], false))] {
        let mut text = String::new();
        write_args(&mut text, function.as_ref(), &registers, &mut Nothing);
        raw.assert_eq(&text);
    }
}
