//! Tests which entries may be patched, which are refused and why, and what the displaced copy looks like. Functions are
//! given as bytes at 0x10000; copies are read back as instructions.

use iced_x86::{Decoder, DecoderOptions, Formatter, IntelFormatter};
use recorder::displace::{
    Branches, Displacement, Limits, MAX_TRAMPOLINE_BYTES, PATCH_BYTES, Refusal, patch_bytes, plan,
};

const ENTRY: u64 = 0x10000;
const NEAR: u64 = 0x20000;
const FAR: u64 = 0x7000_0000_0000;

fn bytes(hex: &str) -> Vec<u8> {
    let parse = |byte: &str| u8::from_str_radix(byte, 16).expect("two hexadecimal digits");
    hex.split_whitespace().map(parse).collect()
}

/// Plans a function that is all of `hex`, directly followed by the next function.
fn plan_whole(hex: &str) -> Result<Displacement, Refusal> {
    let code = bytes(hex);
    let size = code.len() as u64;
    plan(&code, ENTRY, size, Limits::up_to(ENTRY + size))
}

/// Plans a function of `size` bytes. The next function follows all of `hex`.
fn plan_padded(hex: &str, size: u64) -> Result<Displacement, Refusal> {
    let code = bytes(hex);
    let next_code = ENTRY + code.len() as u64;
    plan(&code, ENTRY, size, Limits::up_to(next_code))
}

fn refusal(planned: Result<Displacement, Refusal>) -> Refusal {
    planned.expect_err("must be refused")
}

/// Returns the copy at `at` as text, one instruction per line. Bytes after the last jump are shown as an address.
fn copy(hex: &str, at: u64) -> String {
    listing(&plan_whole(hex).expect("must be planned"), at)
}

fn listing(displacement: &Displacement, at: u64) -> String {
    let trampoline = displacement.encode(at).expect("must be encoded");
    assert!(trampoline.bytes.len() <= MAX_TRAMPOLINE_BYTES);
    let mut formatter = IntelFormatter::new();
    formatter
        .options_mut()
        .set_space_after_operand_separator(true);
    formatter.options_mut().set_rip_relative_addresses(false);
    let mut decoder = Decoder::with_ip(64, &trampoline.bytes, at, DecoderOptions::NONE);
    let mut lines = Vec::new();
    let mut data: Vec<u64> = Vec::new();
    while decoder.can_decode() {
        let here = at + decoder.position() as u64;
        if data.contains(&here) {
            let start = decoder.position();
            let word = trampoline.bytes[start..start + 8]
                .try_into()
                .expect("eight bytes");
            lines.push(format!("{:x}: .quad {:#x}", here, u64::from_le_bytes(word)));
            decoder.set_position(start + 8).expect("inside");
            decoder.set_ip(here + 8);
            continue;
        }
        let instruction = decoder.decode();
        if instruction.is_ip_rel_memory_operand() {
            data.push(instruction.ip_rel_memory_address());
        }
        let mut text = String::new();
        formatter.format(&instruction, &mut text);
        lines.push(format!("{here:x}: {text}"));
    }
    lines.join("\n")
}

#[test]
fn plain_prologue_is_copied_and_jumps_back() {
    expect_test::expect![[r#"
        20000: push rbp
        20001: mov rbp, rsp
        20004: sub rsp, 10h
        20008: jmp 0000000000010008h"#]]
    .assert_eq(&copy("55 48 89 e5 48 83 ec 10 31 c0 c9 c3", NEAR));
}

#[test]
fn jump_back_that_does_not_reach_goes_through_memory() {
    expect_test::expect![[r#"
        700000000000: push rbp
        700000000001: mov rbp, rsp
        700000000004: sub rsp, 10h
        700000000008: jmp qword ptr [70000000000Eh]
        70000000000e: .quad 0x10008"#]]
    .assert_eq(&copy("55 48 89 e5 48 83 ec 10 31 c0 c9 c3", FAR));
}

#[test]
fn endbr64_is_kept() {
    expect_test::expect![[r#"
        20000: endbr64
        20004: push rbx
        20005: jmp 0000000000010005h"#]]
    .assert_eq(&copy("f3 0f 1e fa 53 31 c0 5b c3", NEAR));
}

#[test]
fn rip_relative_operands_keep_their_target() {
    // cmp byte [rip+0x1000], 0 has its displacement before an immediate
    expect_test::expect![[r#"
        20000: cmp byte ptr [11007h], 0
        20007: jmp 0000000000010007h"#]]
    .assert_eq(&copy("80 3d 00 10 00 00 00 c3", NEAR));
    // vmovdqu ymm0, [rip+0x1000]
    expect_test::expect![[r#"
        20000: vmovdqu ymm0, [11008h]
        20008: jmp 0000000000010008h"#]]
    .assert_eq(&copy("c5 fe 6f 05 00 10 00 00 c3", NEAR));
}

#[test]
fn rip_relative_operand_out_of_reach_is_refused_when_encoding() {
    let planned = plan_whole("48 8b 05 00 10 00 00 c3").unwrap();
    let refused = planned.encode(FAR).unwrap_err();
    assert_eq!(
        refused,
        Refusal::OutOfReach {
            from: FAR + 7,
            target: 0x11007
        }
    );
}

#[test]
fn eip_relative_operand_is_refused() {
    // lea eax, [eip+0x1000]
    assert_eq!(
        refusal(plan_whole("67 8d 05 00 10 00 00 c3")),
        Refusal::EipRelative { at: ENTRY }
    );
}

#[test]
fn conditional_jumps_become_long() {
    let test_and_je = "48 85 ff 74 03 31 c0 c3 b0 01 c3";
    expect_test::expect![[r#"
        20000: test rdi, rdi
        20003: je 0000000000010008h
        20009: jmp 0000000000010005h"#]]
    .assert_eq(&copy(test_and_je, NEAR));
    expect_test::expect![[r#"
        700000000000: test rdi, rdi
        700000000003: jne short 0000700000000013h
        700000000005: jmp qword ptr [70000000000Bh]
        70000000000b: .quad 0x10008
        700000000013: jmp qword ptr [700000000019h]
        700000000019: .quad 0x10005"#]]
    .assert_eq(&copy(test_and_je, FAR));
}

#[test]
fn long_conditional_jump_keeps_its_condition() {
    expect_test::expect![[r#"
        20000: jg 0000000000010106h
        20006: jmp 0000000000010006h"#]]
    .assert_eq(&copy("0f 8f 00 01 00 00 c3", NEAR));
}

#[test]
fn loop_and_jrcxz_jump_over_a_jump() {
    expect_test::expect![[r#"
        20000: jrcxz 0000000000020004h
        20002: jmp short 0000000000020009h
        20004: jmp 0000000000010008h
        20009: xor eax, eax
        2000b: dec edi
        2000d: jmp 0000000000010006h"#]]
    .assert_eq(&copy("e3 06 31 c0 ff cf 90 90 c3", NEAR));
    // jecxz keeps its prefix
    expect_test::expect![[r#"
        20000: xor eax, eax
        20002: jecxz 0000000000020007h
        20005: jmp short 000000000002000Ch
        20007: jmp 0000000000010006h
        2000c: jmp 0000000000010005h"#]]
    .assert_eq(&copy("31 c0 67 e3 01 90 c3", NEAR));
}

#[test]
fn branch_to_a_displaced_instruction_leads_to_its_copy() {
    // dec rdi; jne entry; ret: the whole loop is displaced
    expect_test::expect![[r#"
        20000: dec rdi
        20003: jne 0000000000020000h
        20009: jmp 0000000000010005h"#]]
    .assert_eq(&copy("48 ff cf 75 fb c3", NEAR));
    // je +2; xor eax, eax; inc edi: forward, inside the patch
    expect_test::expect![[r#"
        20000: je 0000000000020008h
        20006: xor eax, eax
        20008: inc edi
        2000a: jmp 0000000000010006h"#]]
    .assert_eq(&copy("74 02 31 c0 ff c7 c3", NEAR));
}

#[test]
fn branch_into_the_middle_of_a_displaced_instruction_is_refused() {
    // jmp -1 leads into its own second byte
    let refused = refusal(plan_whole("eb ff c0 90 90 c3"));
    assert!(matches!(refused, Refusal::HiddenCode { .. }), "{refused}");
    // je to the second byte of a nop
    assert_eq!(
        refusal(plan_whole("74 01 66 90 90 c3")),
        Refusal::BranchIntoPatch {
            from: ENTRY,
            to: ENTRY + 3
        }
    );
}

#[test]
fn branch_from_the_rest_of_the_function_into_the_patch_is_refused() {
    // xor eax, eax; L: dec rdi; jne L; ret
    assert_eq!(
        refusal(plan_whole("31 c0 48 ff cf 75 fb c3")),
        Refusal::BranchIntoPatch {
            from: ENTRY + 5,
            to: ENTRY + 2
        }
    );
}

#[test]
fn branch_behind_the_patch_into_a_displaced_instruction_is_allowed() {
    // mov rax, imm64 is ten bytes long, and 0x90 is a nop at its offset 5. That byte stays unchanged.
    let planned = plan_whole("48 b8 00 00 00 90 90 90 90 c3 eb f9 c3").unwrap();
    assert_eq!(planned.len_bytes(), 10);
}

#[test]
fn branch_to_the_entry_itself_is_reported() {
    // cmp [rdi], 0; lea rdi, [rdi+1]; jne entry; ret
    let planned = plan_whole("80 3f 00 48 8d 7f 01 75 f7 c3").unwrap();
    assert!(planned.jumps_back_to_entry());
    let recursive = plan_whole("55 48 89 e5 90 e8 f6 ff ff ff 5d c3").unwrap();
    assert!(!recursive.jumps_back_to_entry(), "a call is no jump");
}

#[test]
fn branch_from_another_function_into_the_patch_is_refused_when_known() {
    let function = bytes("55 48 89 e5 31 c0 5d c3");
    // The cold part: jmp entry+4
    let section = [function.clone(), bytes("cc cc eb f8")].concat();
    let branches = Branches::of(&section, ENTRY);
    let limits = Limits::up_to(ENTRY + 8);
    assert!(plan(&section, ENTRY, 8, limits).is_ok());
    assert_eq!(
        plan(&section, ENTRY, 8, limits.with_branches(&branches)).unwrap_err(),
        Refusal::BranchIntoPatch {
            from: ENTRY + 10,
            to: ENTRY + 4
        }
    );
}

#[test]
fn patch_named_as_data_is_refused() {
    // push rbp; mov rbp, rsp; lea rax, [entry+1]
    assert_eq!(
        refusal(plan_whole("55 48 89 e5 48 8d 05 f6 ff ff ff c3")),
        Refusal::PatchUsedAsData {
            from: ENTRY + 4,
            to: ENTRY + 1
        }
    );
}

#[test]
fn call_pushes_the_original_return_address() {
    // sub rsp, 8; call 0x10100
    expect_test::expect![[r#"
        20000: sub rsp, 8
        20004: push qword ptr [2000Fh]
        2000a: jmp 0000000000010109h
        2000f: .quad 0x10009"#]]
    .assert_eq(&copy("48 83 ec 08 e8 00 01 00 00 c3", NEAR));
    expect_test::expect![[r#"
        700000000000: sub rsp, 8
        700000000004: push qword ptr [700000000018h]
        70000000000a: jmp qword ptr [700000000010h]
        700000000010: .quad 0x10109
        700000000018: .quad 0x10009"#]]
    .assert_eq(&copy("48 83 ec 08 e8 00 01 00 00 c3", FAR));
}

#[test]
fn call_of_the_entry_goes_through_the_patch() {
    expect_test::expect![[r#"
        20000: push qword ptr [2000Bh]
        20006: jmp 0000000000010000h
        2000b: .quad 0x10005"#]]
    .assert_eq(&copy("e8 fb ff ff ff c3", NEAR));
}

#[test]
fn indirect_calls_become_indirect_jumps() {
    // push rax; call [rip+0x1000]
    expect_test::expect![[r#"
        20000: push rax
        20001: push qword ptr [2000Dh]
        20007: jmp qword ptr [11007h]
        2000d: .quad 0x10007"#]]
    .assert_eq(&copy("50 ff 15 00 10 00 00 58 c3", NEAR));
    // mov rax, [rdi]; call r13
    expect_test::expect![[r#"
        20000: mov rax, [rdi]
        20003: push qword ptr [2000Ch]
        20009: jmp r13
        2000c: .quad 0x10006"#]]
    .assert_eq(&copy("48 8b 07 41 ff d5 c3", NEAR));
    // mov rdi, rbx; call fs:[rax+rcx*8+0x10]
    expect_test::expect![[r#"
        20000: mov rdi, rbx
        20003: push qword ptr [2000Eh]
        20009: jmp qword ptr fs:[rax+rcx*8+10h]
        2000e: .quad 0x10008"#]]
    .assert_eq(&copy("48 89 df 64 ff 54 c8 10 c3", NEAR));
}

#[test]
fn call_through_the_stack_finds_its_slot_again() {
    // mov rdi, rbx; call [rsp]; and [rsp+0x7c], whose displacement outgrows a byte
    expect_test::expect![[r#"
        20000: mov rdi, rbx
        20003: push qword ptr [20010h]
        20009: jmp qword ptr [rsp+8]
        20010: .quad 0x10006"#]]
    .assert_eq(&copy("48 89 df ff 14 24 c3", NEAR));
    expect_test::expect![[r#"
        20000: mov rdi, rbx
        20003: push qword ptr [20010h]
        20009: jmp qword ptr [rsp+84h]
        20010: .quad 0x10007"#]]
    .assert_eq(&copy("48 89 df ff 54 24 7c c3", NEAR));
}

#[test]
fn call_through_a_slot_that_the_push_overwrites_is_refused() {
    for call in [
        "ff 54 24 f8",
        "ff 54 24 f1",
        "ff 54 24 ff",
        "ff d4 90",
        "67 ff 14 24",
        "ff 14 cc",
    ] {
        let refused = refusal(plan_whole(&format!("48 89 df {call} c3")));
        assert_eq!(
            refused,
            Refusal::CallThroughStack { call: ENTRY + 3 },
            "{call}"
        );
    }
    assert!(
        plan_whole("48 89 df ff 54 24 f0 c3").is_ok(),
        "[rsp-16] is not touched"
    );
}

#[test]
fn call_that_returns_into_the_patch_is_refused() {
    // push rax; call rax
    assert_eq!(
        refusal(plan_whole("50 ff d0 58 90 90 c3")),
        Refusal::ReturnIntoPatch {
            call: ENTRY + 1,
            to: ENTRY + 3
        }
    );
    // call rel32 returns to the next instruction
    assert!(plan_whole("e8 00 01 00 00 c3").is_ok());
}

#[test]
fn jumps_need_no_jump_back() {
    expect_test::expect!["20000: jmp qword ptr [11006h]"].assert_eq(&copy(
        "ff 25 00 10 00 00 68 00 00 00 00 e9 00 00 00 00",
        NEAR,
    ));
    expect_test::expect![[r#"
        20000: endbr64
        20004: jmp qword ptr [1100Ah]"#]]
    .assert_eq(&copy(
        "f3 0f 1e fa ff 25 00 10 00 00 66 0f 1f 44 00 00",
        NEAR,
    ));
    expect_test::expect![[r#"
        20000: endbr64
        20004: bnd jmp qword ptr [1100Bh]"#]]
    .assert_eq(&copy(
        "f3 0f 1e fa f2 ff 25 00 10 00 00 0f 1f 44 00 00",
        NEAR,
    ));
    expect_test::expect!["20000: jmp 0000000000010105h"].assert_eq(&copy("e9 00 01 00 00", NEAR));
}

#[test]
fn lazy_plt_entry_works() {
    // endbr64; push 3; bnd jmp plt0
    expect_test::expect![[r#"
        20000: endbr64
        20004: push 3
        20009: jmp 0000000000010009h"#]]
    .assert_eq(&copy(
        "f3 0f 1e fa 68 03 00 00 00 f2 e9 e1 ff ff ff 90",
        NEAR,
    ));
}

#[test]
fn short_function_is_patched_over_padding() {
    for padding in [
        "0f 1f 40 00",
        "66 90 66 90",
        "cc cc cc cc",
        "00 00 00 00",
        "90 cc 00 90",
    ] {
        let planned = plan_padded(&format!("c3 {padding}"), 1).unwrap();
        assert_eq!(planned.len_bytes(), PATCH_BYTES, "{padding}");
        assert_eq!(planned.instruction_count(), 1);
        assert_eq!(listing(&planned, NEAR), "20000: ret");
    }
    // nop dword cs:[rax+rax] reaches beyond the patch
    let planned = plan_padded("31 c0 c3 66 2e 0f 1f 84 00 00 00 00 00", 3).unwrap();
    assert_eq!(planned.len_bytes(), 13);
}

#[test]
fn short_function_without_room_is_refused() {
    assert_eq!(
        refusal(plan_whole("31 c0 c3")),
        Refusal::TooShort { room: 3 }
    );
    assert_eq!(
        refusal(plan_padded("31 c0 c3 90", 3)),
        Refusal::TooShort { room: 4 }
    );
    assert_eq!(
        refusal(plan_padded("31 c0 c3 55 53", 3)),
        Refusal::HiddenCode { at: ENTRY + 3 }
    );
}

#[test]
fn function_that_falls_into_what_follows_displaces_only_nops() {
    let planned = plan_padded("31 c0 0f 1f 40 00 53", 2).unwrap();
    assert_eq!(
        listing(&planned, NEAR),
        "20000: xor eax, eax\n20002: nop [rax]\n20006: jmp 0000000000010006h"
    );
    assert_eq!(
        refusal(plan_padded("31 c0 53 48 89 fb", 2)),
        Refusal::TooShort { room: 2 }
    );
}

#[test]
fn next_code_bounds_even_a_function_that_claims_to_be_longer() {
    let code = bytes("31 c0 ff c0 ff c1 c3");
    let refused = plan(&code, ENTRY, 7, Limits::up_to(ENTRY + 4)).unwrap_err();
    assert_eq!(refused, Refusal::TooShort { room: 4 });
    // The third instruction extends beyond the limit.
    let refused = plan(&code, ENTRY, 7, Limits::up_to(ENTRY + 5)).unwrap_err();
    assert_eq!(refused, Refusal::TooShort { room: 5 });
}

#[test]
fn function_of_unknown_size_extends_to_the_next_code() {
    let code = bytes("31 c0 48 ff cf 75 fb c3 90 90");
    assert_eq!(
        plan(&code, ENTRY, 0, Limits::up_to(ENTRY + 10)).unwrap_err(),
        Refusal::BranchIntoPatch {
            from: ENTRY + 5,
            to: ENTRY + 2
        }
    );
    assert!(plan(&code, ENTRY, 0, Limits::up_to(ENTRY + 5)).is_ok());
}

#[test]
fn code_behind_a_jump_inside_the_patch_is_refused() {
    // jmp rax; xor eax, eax; ret: the target of a computed jump, or a landing pad
    assert_eq!(
        refusal(plan_whole("ff e0 31 c0 c3 90")),
        Refusal::HiddenCode { at: ENTRY + 2 }
    );
    // jmp +1; int3; xor eax, eax: reached by the jump, over padding
    expect_test::expect![[r#"
        20000: jmp 0000000000020005h
        20005: xor eax, eax
        20007: jmp 0000000000010005h"#]]
    .assert_eq(&copy("eb 01 cc 31 c0 c3", NEAR));
}

#[test]
fn instructions_that_cannot_be_displaced_are_refused() {
    let at = ENTRY;
    for (hex, expected) in [
        ("f4 90 90 90 90", Refusal::Privileged { at }),
        ("fa 90 90 90 90", Refusal::Privileged { at }),
        ("cc 90 90 90 90", Refusal::Trap { at }),
        ("cd 80 90 90 90", Refusal::Trap { at }),
        ("0f 0b 90 90 90", Refusal::Trap { at }),
        ("c7 f8 00 00 00 00", Refusal::Transaction { at }),
        ("cb 90 90 90 90", Refusal::FarBranch { at }),
        ("48 cf 90 90 90", Refusal::FarBranch { at }),
        ("ff 2f 90 90 90", Refusal::FarBranch { at }),
        ("ff 1f 90 90 90", Refusal::FarBranch { at }),
        ("66 e9 00 00 00 00", Refusal::OddBranch { at }),
        ("66 0f 84 00 00 00 00", Refusal::OddBranch { at }),
        ("0f 34 90 90 90", Refusal::OddSystemCall { at }),
        ("06 90 90 90 90", Refusal::Undecodable { at }),
    ] {
        assert_eq!(refusal(plan_whole(hex)), expected, "{hex}");
    }
}

#[test]
fn signal_return_trampoline_is_refused() {
    assert_eq!(
        refusal(plan_whole(
            "48 c7 c0 0f 00 00 00 0f 05 0f 1f 80 00 00 00 00"
        )),
        Refusal::SignalReturn
    );
}

#[test]
fn displaced_system_call_moves_the_address_behind_it_too() {
    // xor eax, eax; syscall; cmp rax, imm32
    let planned = plan_whole("31 c0 0f 05 48 3d 00 f0 ff ff c3").unwrap();
    let copy = planned.encode(NEAR).unwrap();
    assert_eq!(copy.moved(ENTRY + 4), Some(NEAR + 4));
    // add edx, ecx; inc eax... then a system call that ends the displaced bytes
    let planned = plan_whole("83 c0 01 0f 05 c3").unwrap();
    let copy = planned.encode(NEAR).unwrap();
    assert_eq!(copy.moved(ENTRY + 5), Some(NEAR + 5));
    assert_eq!(copy.bytes[3..5], [0x0f, 0x05]);
}

#[test]
fn each_displaced_instruction_has_a_new_address() {
    let planned = plan_whole("74 02 31 c0 ff c7 c3").unwrap();
    let copy = planned.encode(NEAR).unwrap();
    assert_eq!(copy.moved(ENTRY), Some(NEAR));
    assert_eq!(copy.moved(ENTRY + 2), Some(NEAR + 6));
    assert_eq!(copy.moved(ENTRY + 4), Some(NEAR + 8));
    assert_eq!(copy.moved(ENTRY + 1), None);
    assert_eq!(copy.moved(ENTRY + 6), None);
    assert_eq!(copy.original(NEAR + 3), Some(ENTRY));
    assert_eq!(copy.original(NEAR + 8), Some(ENTRY + 4));
    assert_eq!(copy.original(NEAR + 100), None);
    assert_eq!(copy.original(NEAR - 1), None);
}

#[test]
fn missing_code_is_refused() {
    let refused = plan(&bytes("55 48 89 e5"), ENTRY, 40, Limits::up_to(ENTRY + 64)).unwrap_err();
    assert_eq!(refused, Refusal::CodeMissing { given: 4, size: 40 });
    let refused = plan(&[], ENTRY, 0, Limits::up_to(ENTRY + 64)).unwrap_err();
    assert_eq!(refused, Refusal::TooShort { room: 0 });
    let refused = plan(&[0x90; 9], ENTRY, 0, Limits::up_to(0)).unwrap_err();
    assert_eq!(refused, Refusal::TooShort { room: 0 });
}

#[test]
fn patch_is_a_jump_to_the_stub() {
    assert_eq!(patch_bytes(ENTRY, NEAR), Ok([0xe9, 0xfb, 0xff, 0x00, 0x00]));
    assert_eq!(patch_bytes(NEAR, ENTRY), Ok([0xe9, 0xfb, 0xff, 0xfe, 0xff]));
    assert_eq!(
        patch_bytes(ENTRY, FAR),
        Err(Refusal::OutOfReach {
            from: ENTRY + 5,
            target: FAR
        })
    );
}
