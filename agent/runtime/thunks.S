/* The machine code every traced call runs through.
 *
 * Rules of this file: keep every register, the flags and the whole red zone of
 * the interrupted code; call nothing on the fast path; use no memory but the
 * thread's ring, its hs_local and the stack below the return slot; be
 * describable to an unwinder at every instruction.
 *
 * A traced function begins with a jump to its stub (made by the recorder):
 *     push %r11 ; lea probe(%rip), %r11 ; jmp *enter(%rip)
 * The enter code writes a record, keeps the return address in the shadow of
 * its stack slot, and CALLS the displaced function so that the call pushes
 * hs_leave over the slot. Calls and returns stay paired for the processor's
 * return predictor, and the function finds its frame at its usual place.
 *
 * Unwinding (exceptions, backtraces, pthread_cancel) finds hs_leave as a
 * return address. The rules there give it a CFA of its own, one byte above
 * its callee's: with the same CFA, phase 2 of the C++ unwinder would take it
 * for the handler's frame and abort. Its return address is the shadow's.
 */
#include "layout.h"

/* CFA = %rsp + off + 1 where %rsp + off is just above the slot */
#define OWN_CFA(off) .cfi_def_cfa %rsp, (off) + 1
/* %rsp of the caller = CFA - 1: val_expression(reg 7) lit1 minus */
#define OWN_RSP .cfi_escape 0x16, 7, 2, 0x31, 0x1c
/* return address at (CFA - 9) with the shadow bit flipped: expression(reg 16)
 * lit9 minus const8u(1 << 46) xor */
#define RA_IN_SHADOW .cfi_escape 0x10, 16, 12, 0x39, 0x1c, 0x0e, 0, 0, 0, 0, 0, 0x40, 0, 0, 0x27
/* return address at CFA - 9: expression(reg 16) lit9 minus */
#define RA_IN_SLOT .cfi_escape 0x10, 16, 2, 0x39, 0x1c

/* No later event of another thread may get an earlier time, so the time must
 * not be read before the program's last operation is done (a lock it waited
 * for). The wait comes early and the time is read late: the code between
 * overlaps with neither, and this order measured 4 ns a call less than both
 * together. While only one thread has ever recorded, there is no other event
 * to compare with. Loads after a load of hs_many that saw 0 are not ordered
 * after another thread's event: that thread sets hs_many before its first
 * event, and loads are not reordered with loads. A processor that mispredicts
 * the branch discards its speculative results, including the time. */
.macro wait_for_the_program
    cmpl $0, hs_many(%rip)
    je 9f
    lfence
9:
.endm

/* Puts the time into word 0 of the record, with nothing computed from it.
 * Clobbers rax, rdx. */
.macro timestamp record
    rdtsc
    mov %eax, (\record)
    mov %edx, 4(\record)
.endm

#ifndef HS_SELF_CONTAINED
/* %rcx = offset of the thread's hs_local from %fs */
#define LOCAL(field) %fs:field(%rcx)
    .hidden hs_local
.macro local_to_rcx
    mov hs_local@gottpoff(%rip), %rcx
.endm
#else
/* %rcx = the thread's hs_local; of a thread that has none yet, or still has
 * the registers of the one that created it, hs_nobody, which has no room.
 * Clobbers rdx. Reading the base of gs or fs takes 2.6 ns each. Where the C
 * library's thread block has the pointer, the recorder's loader overwrites
 * this, as hs_lookups says, by
 *     mov %fs:hs_slot, %rcx ; test %rcx, %rcx ; jz 5f
 *     mov %fs:HS_BLOCK_TID_GLIBC, %edx ; cmp %edx, HS_LOCAL_TID(%rcx) ; je 6f ; jmp 5f
 * A block that had the pointer of an ended thread may be another one's now. */
#define LOCAL(field) field(%rcx)
.macro local_to_rcx
4:  rdgsbase %rcx
    cmp hs_locals_begin(%rip), %rcx
    jb 5f
    cmp hs_locals_end(%rip), %rcx
    jae 5f
    rdfsbase %rdx
    cmp %rdx, HS_LOCAL_THREAD(%rcx)
    je 6f
5:  lea hs_nobody(%rip), %rcx
6:
    .pushsection hs_lookups, "a"
    .balign 4
    .long 4b - ., 5b - ., 6b - .
    .popsection
.endm
    .hidden hs_locals_begin, hs_locals_end, hs_nobody, hs_local_or_register
#endif

/* Makes what was written visible to the recorder. A signal handler between the
 * load of CUR and the store of BUSY may have written more: check again. */
.macro publish shared, scratch
    mov LOCAL(HS_LOCAL_SHARED), \shared
7:  mov LOCAL(HS_LOCAL_CUR), \scratch
    mov \scratch, HS_RING_HEAD(\shared)
    movq $0, LOCAL(HS_LOCAL_BUSY)
    cmp LOCAL(HS_LOCAL_CUR), \scratch
    je 8f
    mov %rsp, LOCAL(HS_LOCAL_BUSY)
    jmp 7b
8:
.endm

/* The flags that arithmetic sets, in ax: assembler passes arguments and results
 * in them. rax must have been saved. */
.macro flags_to_rax
    lahf
    seto %al
.endm
.macro flags_from_rax
    add $0x7f, %al                   /* 1 overflows */
    sahf
.endm
/* Where they are on the fast path: in the red zone of this frame. `pushed` is
 * how many bytes were pushed since. */
#define KEPT_FLAGS(pushed) -16 + pushed(%rsp)

    .text
    .globl hs_enter, hs_enter_xmm, hs_enter_texts, hs_leave, hs_leave_xmm, hs_vfork, hs_syscall
    .hidden hs_enter, hs_enter_xmm, hs_enter_texts, hs_leave, hs_leave_xmm, hs_vfork, hs_syscall
    .hidden hs_enter_slow, hs_leave_slow, hs_alive, hs_many, hs_original_vfork
    .hidden hs_record_fork, hs_prctl, hs_mlockall, hs_in_sandbox, hs_original_syscall
    .hidden hs_setrlimit, hs_getrlimit, hs_prlimit

/* The registers and flags as they were at a function's entry. rax = the flags. */
.macro entry_again
    flags_from_rax
    pop %rdx
    .cfi_adjust_cfa_offset -8
    pop %rcx
    .cfi_adjust_cfa_offset -8
    pop %rax
    .cfi_adjust_cfa_offset -8
.endm

/* Stack on entry, from %rsp: r11, return slot. r11 = the hs_probe. */
.macro enter name xmm
    .type \name, @function
\name:
    .cfi_startproc
    .cfi_def_cfa %rsp, 16
    push %rax
    .cfi_adjust_cfa_offset 8
    flags_to_rax
    push %rcx
    .cfi_adjust_cfa_offset 8
    push %rdx
    .cfi_adjust_cfa_offset 8
    mov %rax, KEPT_FLAGS (0)
    local_to_rcx
    wait_for_the_program
    cmpq $0, hs_alive(%rip)          /* wiped in a forked child */
    je .Lslow_\name
    mov %rsp, %rdx
    shr $45, %rdx
    cmp $3, %edx                     /* 0x6000_0000_0000 .. 0x7fff_ffff_ffff */
    jne .Lslow_\name
    cmpq $0, LOCAL(HS_LOCAL_BUSY)
    jne .Lslow_\name
    mov LOCAL(HS_LOCAL_CUR), %rdx
    cmp LOCAL(HS_LOCAL_LIMIT), %rdx
    jae .Lslow_\name                 /* full; or no ring yet, or off: the limit is 0 */
    mov %rsp, LOCAL(HS_LOCAL_BUSY)
.if \xmm
    movzbl HS_PROBE_BYTES(%r11), %edx
.else
    mov $HS_ENTER_BYTES, %edx
.endif
    xadd %rdx, LOCAL(HS_LOCAL_CUR)    /* one instruction: a handler's records go elsewhere */
    lea 32(%rsp), %rax
    shl $17, %rax
    or HS_PROBE_WORD1(%r11), %rax
    mov %rax, 8(%rdx)
    mov %rdi, 24(%rdx)
    mov %rsi, 32(%rdx)
    mov (%rsp), %rax
    mov %rax, 40(%rdx)
    mov 8(%rsp), %rax
    mov %rax, 48(%rdx)
    mov %r8, 56(%rdx)
    mov %r9, 64(%rdx)
.if \xmm
    cmpb $HS_ENTER_BYTES, HS_PROBE_BYTES(%r11)
    je 1f
    movq %xmm0, 72(%rdx)
    movq %xmm1, 80(%rdx)
    cmpb $HS_ENTER_BYTES + 16, HS_PROBE_BYTES(%r11)
    je 1f
    movq %xmm2, 88(%rdx)
    movq %xmm3, 96(%rdx)
    cmpb $HS_ENTER_BYTES + 32, HS_PROBE_BYTES(%r11)
    je 1f
    movq %xmm4, 104(%rdx)
    movq %xmm5, 112(%rdx)
    movq %xmm6, 120(%rdx)
    movq %xmm7, 128(%rdx)
1:
.endif
    mov HS_PROBE_WORD2(%r11), %rax
    or 32(%rsp), %rax
    mov %rax, 16(%rdx)
    mov 32(%rsp), %rax               /* the return address */
    mov HS_PROBE_TRAMPOLINE(%r11), %r11
    mov %r11, -8(%rsp)               /* where to go; in the red zone of this frame */
    lea hs_leave(%rip), %r11
    sub %rax, %r11
    add $hs_leave_xmm - hs_leave, %r11
    cmp $hs_leave_xmm - hs_leave, %r11
    jbe 2f                           /* hooked already: a tail call */
    lea 32(%rsp), %r11
    btc $HS_SHADOW_BIT, %r11
    mov %rax, (%r11)
    mov %rdx, %r11
    timestamp %r11
    publish %r11, %rax
    mov KEPT_FLAGS (0), %rax
    entry_again
.if \xmm
    /* -40+24: the stack is now r11, slot */
    jmp .Lchoose_\name
.else
    pop %r11
    .cfi_adjust_cfa_offset -8
    .cfi_remember_state
    jmp .Lcall
    .cfi_restore_state
    .cfi_adjust_cfa_offset 8
.endif
    .cfi_adjust_cfa_offset 24
2:  /* The slot stays unchanged; only the record differs. */
    xorb $HS_ENTER ^ HS_ENTER_TAIL, 8(%rdx)
    mov %rdx, %r11
    timestamp %r11
    publish %r11, %rax
    mov KEPT_FLAGS (0), %rax
    entry_again
    pop %r11
    .cfi_adjust_cfa_offset -8
    jmp *-40(%rsp)
    .cfi_adjust_cfa_offset 32

.Lslow_\name:
    push %rdi
    .cfi_adjust_cfa_offset 8
    mov KEPT_FLAGS (8), %rdi
    push %rsi
    .cfi_adjust_cfa_offset 8
    push %r8
    .cfi_adjust_cfa_offset 8
    push %r9
    .cfi_adjust_cfa_offset 8
    push %r10
    .cfi_adjust_cfa_offset 8
    push %rbx                        /* the called function preserves these; a capture needs them */
    .cfi_adjust_cfa_offset 8
    push %r12
    .cfi_adjust_cfa_offset 8
    push %r13
    .cfi_adjust_cfa_offset 8
    push %r14
    .cfi_adjust_cfa_offset 8
    push %r15
    .cfi_adjust_cfa_offset 8
    mov %r11, %rsi
    push %rbp
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset %rbp, 0
    mov %rsp, %rbp
    .cfi_def_cfa_register %rbp
    and $-16, %rsp
    push %rdi                        /* twice: the stack stays aligned */
    push %rdi
    mov %rbp, %rdi
    call hs_enter_slow               /* rax = where to go; bit 63: hook the return, bit 62: with xmm */
    pop %rdi
    mov %rbp, %rsp
    .cfi_def_cfa_register %rsp
    pop %rbp
    .cfi_adjust_cfa_offset -8
    .cfi_same_value %rbp
    lea 40(%rsp), %rsp
    .cfi_adjust_cfa_offset -40
    pop %r10
    .cfi_adjust_cfa_offset -8
    pop %r9
    .cfi_adjust_cfa_offset -8
    pop %r8
    .cfi_adjust_cfa_offset -8
    pop %rsi
    .cfi_adjust_cfa_offset -8
    mov %rdi, %rcx
    pop %rdi
    .cfi_adjust_cfa_offset -8
    mov %rax, %rdx
    btr $63, %rax
    btr $62, %rax
    mov %rax, -8(%rsp)               /* = -40(slot) */
    mov %rcx, %rax
    bt $63, %rdx
    jnc 4f
    bt $62, %rdx
    jc 5f
    entry_again
    pop %r11
    .cfi_adjust_cfa_offset -8
    jmp .Lcall
    .cfi_adjust_cfa_offset 32
5:  entry_again
    pop %r11
    .cfi_adjust_cfa_offset -8
    jmp .Lcall_xmm
    .cfi_adjust_cfa_offset 32
4:  entry_again
    pop %r11
    .cfi_adjust_cfa_offset -8
    jmp *-40(%rsp)
    .cfi_endproc
    .size \name, . - \name
.endm

/* Calls the function and is returned to: %rsp = the slot on entry. The
 * recorder, which looks for functions only, finds return addresses by name. */
.macro call_and_leave name xmm
    .type \name, @function
    lea 8(%rsp), %rsp
    .cfi_def_cfa %rsp, 0
    .byte 0xff                       /* call *-48(%rsp), its rules changed inside: */
    OWN_CFA(0)                       /* unwinders look one byte before a return address */
    OWN_RSP
    RA_IN_SHADOW
    .byte 0x54, 0x24, 0xd0
\name:
    lea -8(%rsp), %rsp
    OWN_CFA(8)
    push %rax
    OWN_CFA(16)
    flags_to_rax
    push %rdx
    OWN_CFA(24)
    push %rcx
    OWN_CFA(32)
    mov %rax, KEPT_FLAGS (0)
    local_to_rcx
    wait_for_the_program
    cmpq $0, hs_alive(%rip)
    je 3f
    cmpq $0, LOCAL(HS_LOCAL_BUSY)
    jne 3f
    mov LOCAL(HS_LOCAL_CUR), %rax
    cmp LOCAL(HS_LOCAL_LIMIT), %rax
    jae 3f
    mov %rsp, LOCAL(HS_LOCAL_BUSY)
.if \xmm
    mov $HS_LEAVE_BYTES + 16, %edx
.else
    mov $HS_LEAVE_BYTES, %edx
.endif
    xadd %rdx, LOCAL(HS_LOCAL_CUR)
    lea 24(%rsp), %rax
    shl $17, %rax
.if \xmm
    or $HS_LEAVE + 0x20, %rax
.else
    or $HS_LEAVE, %rax
.endif
    mov %rax, 8(%rdx)
    mov 16(%rsp), %rax
    mov %rax, 16(%rdx)
    mov 8(%rsp), %rax
    mov %rax, 24(%rdx)
.if \xmm
    movq %xmm0, 32(%rdx)
    movq %xmm1, 40(%rdx)
.endif
    push %r11
    OWN_CFA(40)
    mov %rdx, %r11
    timestamp %r11
    pop %r11
    OWN_CFA(32)
    publish %rdx, %rax
2:  lea 24(%rsp), %rax
    btc $HS_SHADOW_BIT, %rax
    mov (%rax), %rax
    mov %rax, 24(%rsp)
    RA_IN_SLOT
    mov KEPT_FLAGS (0), %rax
    flags_from_rax
    pop %rcx
    OWN_CFA(24)
    pop %rdx
    OWN_CFA(16)
    pop %rax
    OWN_CFA(8)
    ret
    RA_IN_SHADOW
    OWN_CFA(32)
3:  push %rsi
    OWN_CFA(40)
    mov KEPT_FLAGS (8), %rsi
    push %rdi
    OWN_CFA(48)
    push %r8
    OWN_CFA(56)
    push %r9
    OWN_CFA(64)
    push %r10
    OWN_CFA(72)
    push %r11
    OWN_CFA(80)
    push %rbx
    OWN_CFA(88)
    push %r12
    OWN_CFA(96)
    push %r13
    OWN_CFA(104)
    push %r14
    OWN_CFA(112)
    push %r15
    OWN_CFA(120)
    push %rbp
    OWN_CFA(128)
    .cfi_escape 0x10, 6, 3, 0x08, 129, 0x1c /* rbp at CFA - 129: const1u 129 minus */
    mov %rsp, %rbp
    .cfi_def_cfa %rbp, 129
    and $-16, %rsp
    push %rsi                        /* twice: the stack stays aligned */
    push %rsi
    mov %rbp, %rdi
    mov $\xmm, %esi
    call hs_leave_slow
    pop %rax
    mov %rbp, %rsp
    OWN_CFA(128)
    pop %rbp
    .cfi_same_value %rbp
    OWN_CFA(120)
    lea 40(%rsp), %rsp
    OWN_CFA(80)
    pop %r11
    OWN_CFA(72)
    pop %r10
    OWN_CFA(64)
    pop %r9
    OWN_CFA(56)
    pop %r8
    OWN_CFA(48)
    pop %rdi
    OWN_CFA(40)
    pop %rsi
    OWN_CFA(32)
    mov %rax, KEPT_FLAGS (0)
    jmp 2b
.endm

    .p2align 6
    enter hs_enter 0
    .p2align 6
    .type hs_enter_xmm, @function
    enter hs_enter_xmm 1

/* Stubs of functions whose texts are captured jump here: only the slow side
 * captures texts. The probe says whether there are vectors. */
    .type hs_enter_texts, @function
hs_enter_texts:
    .cfi_startproc
    .cfi_def_cfa %rsp, 16
    push %rax
    .cfi_adjust_cfa_offset 8
    flags_to_rax
    push %rcx
    .cfi_adjust_cfa_offset 8
    push %rdx
    .cfi_adjust_cfa_offset 8
    mov %rax, KEPT_FLAGS (0)
    jmp .Lslow_hs_enter
    .cfi_endproc
    .size hs_enter_texts, . - hs_enter_texts

/* %rsp = r11, slot; r11 = scratch. */
    .type hs_choose, @function
hs_choose:
    .cfi_startproc
    .cfi_def_cfa %rsp, 16
.Lchoose_hs_enter_xmm:
    pop %r11
    .cfi_adjust_cfa_offset -8
    jmp .Lcall_xmm
    .cfi_endproc

    .p2align 6
    .type hs_call, @function
hs_call:
    .cfi_startproc
    .cfi_def_cfa %rsp, 8
.Lcall:
    call_and_leave hs_leave 0
    .cfi_endproc
    .size hs_call, . - hs_call

    .p2align 6
    .type hs_call_xmm, @function
hs_call_xmm:
    .cfi_startproc
    .cfi_def_cfa %rsp, 8
.Lcall_xmm:
    call_and_leave hs_leave_xmm 1
    .cfi_endproc
    .size hs_call_xmm, . - hs_call_xmm

#ifdef HS_SELF_CONTAINED
/* A call of Go code, after the function has checked that its stack is large
 * enough. r13 = the hs_probe; r12 and xmm15 are free there (xmm15 is 0), flags
 * too. A goroutine's stack may end right below: nothing is written to it. Its
 * return address stays unchanged, since stacks are moved and read. */
    .globl hs_enter_go
    .hidden hs_enter_go, hs_enter_go_slow
    .p2align 6
    .type hs_enter_go, @function
hs_enter_go:
    .cfi_startproc
    .cfi_def_cfa %rsp, 8
    movq %rdx, %xmm15
    rdgsbase %r12
    cmp hs_locals_begin(%rip), %r12
    jb .Lgo_stranger
    cmp hs_locals_end(%rip), %r12
    jae .Lgo_stranger
    rdfsbase %rdx
    cmp %rdx, HS_LOCAL_THREAD(%r12)
    jne .Lgo_stranger
    wait_for_the_program
    cmpq $0, hs_alive(%rip)
    je .Lgo_slow
    cmpq $0, HS_LOCAL_BUSY(%r12)
    jne .Lgo_slow
    mov HS_LOCAL_CUR(%r12), %rdx
    cmp HS_LOCAL_LIMIT(%r12), %rdx
    jae .Lgo_slow
    mov %rsp, HS_LOCAL_BUSY(%r12)
    mov %rax, HS_LOCAL_KEPT(%r12)
    mov %rcx, HS_LOCAL_KEPT + 8(%r12)
    movq %xmm15, %rax
    mov %rax, HS_LOCAL_KEPT + 16(%r12)
    mov $HS_ENTER_BYTES, %ecx
    xadd %rcx, HS_LOCAL_CUR(%r12)
    mov %rax, 40(%rcx)
    mov HS_LOCAL_KEPT + 8(%r12), %rax
    mov %rax, 48(%rcx)
    mov %rsp, %rax
    shl $17, %rax
    or HS_PROBE_WORD1(%r13), %rax
    mov %rax, 8(%rcx)
    mov HS_PROBE_WORD2(%r13), %rax
    or (%rsp), %rax
    mov %rax, 16(%rcx)
    mov %rdi, 24(%rcx)
    mov %rsi, 32(%rcx)
    mov %r8, 56(%rcx)
    mov %r9, 64(%rcx)
    timestamp %rcx
    mov HS_LOCAL_SHARED(%r12), %rcx
7:  mov HS_LOCAL_CUR(%r12), %rax
    mov %rax, HS_RING_HEAD(%rcx)
    movq $0, HS_LOCAL_BUSY(%r12)
    cmp HS_LOCAL_CUR(%r12), %rax
    je 8f
    mov %rsp, HS_LOCAL_BUSY(%r12)
    jmp 7b
8:  mov HS_LOCAL_KEPT(%r12), %rax
    mov HS_LOCAL_KEPT + 8(%r12), %rcx
    mov HS_LOCAL_KEPT + 16(%r12), %rdx
    pxor %xmm15, %xmm15
    jmp *HS_PROBE_TRAMPOLINE(%r13)
    .cfi_endproc
    .size hs_enter_go, . - hs_enter_go

/* The slow side runs on our stack: the thread's, or, for a thread that has
 * none yet, the one that all such threads take in turn. */
    .type hs_go_slow, @function
hs_go_slow:
    .cfi_startproc
    .cfi_undefined %rip
.Lgo_slow:
    mov %rsp, %rdx
    mov HS_LOCAL_STACK(%r12), %rsp
    jmp 3f
.Lgo_stranger:
    mov $1, %r12d
1:  xchg %r12, go_turn(%rip)
    test %r12, %r12
    jz 2f
    pause
    jmp 1b
2:  mov %rsp, %rdx
    lea go_stack_end(%rip), %rsp
3:  push %rdx
    push %r12
    push %r13
    push %rax
    push %rcx
    movq %xmm15, %rax
    push %rax
    push %rdi
    push %rsi
    push %r8
    push %r9
    push %r10
    push %r11
    mov %rsp, %rdi
    call hs_enter_go_slow
    pop %r11
    pop %r10
    pop %r9
    pop %r8
    pop %rsi
    pop %rdi
    pop %rdx
    pop %rcx
    pop %rax
    pop %r13
    pop %r12
    mov (%rsp), %rsp
    test %r12, %r12
    jnz 4f
    movq $0, go_turn(%rip)
4:  pxor %xmm15, %xmm15
    jmp *HS_PROBE_TRAMPOLINE(%r13)
    .cfi_endproc
    .size hs_go_slow, . - hs_go_slow

    .local go_turn
    .comm go_turn, 8, 8
    .bss
    .balign 16
    .space HS_GO_STACK_BYTES
go_stack_end:
    .text
#endif

/* vfork: the child runs on this thread's stack and thread-local storage until
 * it execs or exits, so the thread records nothing until the parent continues.
 * Then it records the child, as a fork. */
    .type hs_vfork, @function
hs_vfork:
    .cfi_startproc
#ifdef HS_SELF_CONTAINED
    sub $8, %rsp                     /* the child is not to register */
    .cfi_adjust_cfa_offset 8
    call hs_local_or_register
    add $8, %rsp
    .cfi_adjust_cfa_offset -8
#endif
    pop %rdi
    .cfi_adjust_cfa_offset -8
    .cfi_register %rip, %rdi
    local_to_rcx
    mov LOCAL(HS_LOCAL_LIMIT), %rdx
    mov %rdx, LOCAL(HS_LOCAL_SAVED)
    movq $0, LOCAL(HS_LOCAL_LIMIT)
    movl $1, LOCAL(HS_LOCAL_VFORK)
    mov $58, %eax                    /* vfork */
    syscall
    push %rdi
    .cfi_adjust_cfa_offset 8
    .cfi_offset %rip, -8
    test %eax, %eax
    jz 1f
    local_to_rcx
    mov LOCAL(HS_LOCAL_SAVED), %rdx
    mov %rdx, LOCAL(HS_LOCAL_LIMIT)
    movl $0, LOCAL(HS_LOCAL_VFORK)
    cmp $-4095, %rax
    jae 2f
    push %rax
    .cfi_adjust_cfa_offset 8
    mov %eax, %edi
    call hs_record_fork
    pop %rax
    .cfi_adjust_cfa_offset -8
1:  ret
2:  jmp *hs_original_vfork(%rip)     /* fails again, and sets errno */
    .cfi_endproc
    .size hs_vfork, . - hs_vfork

/* Right before and right after a `syscall` instruction. r11 = where the
 * program continues; a return address into its function is on top of the
 * stack, right below the red zone: unwinders find the function's own rules.
 * rcx and r11 are the kernel's there. */
.macro around_syscall name by
    .globl \name
    .hidden \name, \by
    .type \name, @function
    .p2align 6
\name:
    .cfi_startproc
    .cfi_def_cfa %rsp, 136
    .cfi_offset %rip, -136
    pushfq
    .cfi_adjust_cfa_offset 8
    push %rax
    .cfi_adjust_cfa_offset 8
    pushq (%r11)
    .cfi_adjust_cfa_offset 8
    push %rdi
    .cfi_adjust_cfa_offset 8
    push %rsi
    .cfi_adjust_cfa_offset 8
    push %rdx
    .cfi_adjust_cfa_offset 8
    push %r10
    .cfi_adjust_cfa_offset 8
    push %r8
    .cfi_adjust_cfa_offset 8
    push %r9
    .cfi_adjust_cfa_offset 8
    push %rbp
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset %rbp, 0
    cld
    mov %rsp, %rdi
    mov %rsp, %rbp
    .cfi_def_cfa_register %rbp
    and $-16, %rsp
    call \by
    mov %rbp, %rsp
    .cfi_def_cfa_register %rsp
    pop %rbp
    .cfi_adjust_cfa_offset -8
    .cfi_same_value %rbp
    pop %r9
    .cfi_adjust_cfa_offset -8
    pop %r8
    .cfi_adjust_cfa_offset -8
    pop %r10
    .cfi_adjust_cfa_offset -8
    pop %rdx
    .cfi_adjust_cfa_offset -8
    pop %rsi
    .cfi_adjust_cfa_offset -8
    pop %rdi
    .cfi_adjust_cfa_offset -8
    pop %r11
    .cfi_adjust_cfa_offset -8
    pop %rax
    .cfi_adjust_cfa_offset -8
    popfq
    .cfi_adjust_cfa_offset -8
    lea 136(%rsp), %rsp
    .cfi_adjust_cfa_offset -136
    jmp *%r11
    .cfi_endproc
    .size \name, . - \name
.endm

    around_syscall hs_before_syscall hs_call_begins
    around_syscall hs_after_syscall hs_call_ends

/* Right before the unwinder or longjmp resumes the program at another frame.
 * r11 is as above; a return address is on top of the stack, then the program's
 * r11, then the red zone, which nobody reads any more. The other registers are
 * already those of that frame, but rdi is the jmp_buf in musl. `load` puts the
 * new stack pointer into rdi: the unwinder takes one more word from its own. */
.macro leaving name load:vararg
    .globl \name
    .hidden \name, hs_frames_left
    .type \name, @function
    .p2align 6
\name:
    .cfi_startproc
    .cfi_def_cfa %rsp, 144
    .cfi_offset %rip, -144
    pushfq
    .cfi_adjust_cfa_offset 8
    push %rax
    .cfi_adjust_cfa_offset 8
    pushq (%r11)
    .cfi_adjust_cfa_offset 8
    push %rdi
    .cfi_adjust_cfa_offset 8
    push %rsi
    .cfi_adjust_cfa_offset 8
    push %rdx
    .cfi_adjust_cfa_offset 8
    push %rcx
    .cfi_adjust_cfa_offset 8
    push %r8
    .cfi_adjust_cfa_offset 8
    push %r9
    .cfi_adjust_cfa_offset 8
    push %r10
    .cfi_adjust_cfa_offset 8
    push %rbp
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset %rbp, 0
    cld
    \load
    mov %rsp, %rbp
    .cfi_def_cfa_register %rbp
    and $-16, %rsp
    call hs_frames_left
    mov %rbp, %rsp
    .cfi_def_cfa_register %rsp
    pop %rbp
    .cfi_adjust_cfa_offset -8
    .cfi_same_value %rbp
    pop %r10
    .cfi_adjust_cfa_offset -8
    pop %r9
    .cfi_adjust_cfa_offset -8
    pop %r8
    .cfi_adjust_cfa_offset -8
    pop %rcx
    .cfi_adjust_cfa_offset -8
    pop %rdx
    .cfi_adjust_cfa_offset -8
    pop %rsi
    .cfi_adjust_cfa_offset -8
    pop %rdi
    .cfi_adjust_cfa_offset -8
    pop %r11
    .cfi_adjust_cfa_offset -8
    pop %rax
    .cfi_adjust_cfa_offset -8
    popfq
    .cfi_adjust_cfa_offset -8
    mov %r11, 128(%rsp)
    mov 8(%rsp), %r11
    lea 144(%rsp), %rsp
    .cfi_adjust_cfa_offset -144
    jmp *-16(%rsp)
    .cfi_endproc
    .size \name, . - \name
.endm

    leaving hs_unwinder_leaves lea 8(%rcx), %rdi
    leaving hs_longjmp_leaves mov %r8, %rdi
    leaving hs_longjmp_of_musl_leaves mov 0x30(%rdi), %rdi

/* Calls `function` with the arguments in rdi and rsi, and keeps the six registers
 * that carry arguments. rsp is as at the entry of a function. */
.macro keeping_arguments function first second
    push %rdi
    .cfi_adjust_cfa_offset 8
    push %rsi
    .cfi_adjust_cfa_offset 8
    push %rdx
    .cfi_adjust_cfa_offset 8
    push %rcx
    .cfi_adjust_cfa_offset 8
    push %r8
    .cfi_adjust_cfa_offset 8
    push %r9
    .cfi_adjust_cfa_offset 8
    sub $8, %rsp
    .cfi_adjust_cfa_offset 8
    mov \second, %rsi
    lea \first, %rdi
    call \function
    add $8, %rsp
    .cfi_adjust_cfa_offset -8
    pop %r9
    .cfi_adjust_cfa_offset -8
    pop %r8
    .cfi_adjust_cfa_offset -8
    pop %rcx
    .cfi_adjust_cfa_offset -8
    pop %rdx
    .cfi_adjust_cfa_offset -8
    pop %rsi
    .cfi_adjust_cfa_offset -8
    pop %rdi
    .cfi_adjust_cfa_offset -8
.endm

/* swapcontext and setcontext continue on another stack. `context` is the one
 * that they resume. They keep or load the registers that carry arguments. */
.macro switching name original context
    .globl \name
    .hidden \name, hs_stack_switch, \original
    .type \name, @function
    .p2align 4
\name:
    .cfi_startproc
    keeping_arguments hs_stack_switch, 56(%rsp), \context
    jmp *\original(%rip)
    .cfi_endproc
    .size \name, . - \name
.endm

    switching hs_swapcontext, hs_original_swapcontext, %rsi
    switching hs_setcontext, hs_original_setcontext, %rdi

/* clone(2) of the C library. A child with the thread's memory and its
 * thread-local storage records into the thread's ring, unless the thread waits
 * for it meanwhile. A child that is a process is recorded as a fork. */
    .globl hs_clone
    .hidden hs_clone, hs_ring_is_shared, hs_record_clone, hs_original_clone
    .type hs_clone, @function
    .p2align 4
hs_clone:
    .cfi_startproc
    test $0x10000, %edx              /* CLONE_THREAD */
    jnz 2f
    test $0x100, %edx                /* CLONE_VM */
    jz 1f
    test $0x84000, %edx              /* CLONE_SETTLS, CLONE_VFORK */
    jnz 1f
    keeping_arguments hs_ring_is_shared, (%rsp), %rdx
1:  push 8(%rsp)                     /* the seventh argument */
    .cfi_adjust_cfa_offset 8
    call *hs_original_clone(%rip)    /* the child does not return */
    mov %rax, (%rsp)
    test %eax, %eax
    js 3f
    mov %eax, %edi
    call hs_record_clone
3:  pop %rax
    .cfi_adjust_cfa_offset -8
    ret
2:  test $0x84000, %edx              /* CLONE_SETTLS, CLONE_VFORK */
    jnz 4f
    keeping_arguments hs_ring_is_shared, (%rsp), %rdx
4:  jmp *hs_original_clone(%rip)
    .cfi_endproc
    .size hs_clone, . - hs_clone

/* syscall(2) by number: some of them matter to us. All others pass straight
 * through, regardless of their effect on the stack. */
    .type hs_syscall, @function
    .hidden hs_syscall_fork, hs_clones_process
hs_syscall:
    .cfi_startproc
    cmp $317, %rdi                   /* seccomp */
    je 1f
    cmp $157, %rdi                   /* prctl */
    je 2f
    cmp $151, %rdi                   /* mlockall */
    je 3f
    lea hs_setrlimit(%rip), %rax
    cmp $160, %rdi
    je 4f
    lea hs_getrlimit(%rip), %rax
    cmp $97, %rdi
    je 4f
    lea hs_prlimit(%rip), %rax
    cmp $302, %rdi
    je 4f
    cmp $57, %rdi                    /* fork */
    je 6f
    cmp $56, %rdi                    /* clone */
    je 7f
    cmp $435, %rdi                   /* clone3 */
    je 8f
0:  jmp *hs_original_syscall(%rip)
7:  test $0x100, %esi                /* CLONE_VM: the child must not find our frame */
    jnz 0b
    test %rdx, %rdx                  /* nor miss it, on a stack of its own */
    jnz 0b
6:  jmp hs_syscall_fork
8:  keeping_arguments hs_clones_process, (%rdx), %rsi
    test %eax, %eax
    jnz 6b
    jmp 0b
1:  mov %rdx, %rax                   /* strict mode has neither flags nor arguments */
    or %rcx, %rax
    or %rsi, %rax
    jz 5f
    movl $1, hs_in_sandbox(%rip)
    jmp 0b
5:  mov $22, %esi                    /* PR_SET_SECCOMP */
    mov $1, %edx                     /* SECCOMP_MODE_STRICT */
2:  lea hs_prctl(%rip), %rax
    jmp 4f
3:  lea hs_mlockall(%rip), %rax
4:  mov %rsi, %rdi
    mov %rdx, %rsi
    mov %rcx, %rdx
    mov %r8, %rcx
    mov %r9, %r8
    push %rax
    .cfi_adjust_cfa_offset 8
    call *(%rsp)
    lea 8(%rsp), %rsp
    .cfi_adjust_cfa_offset -8
    cltq
    ret
    .cfi_endproc
    .size hs_syscall, . - hs_syscall

    .section .note.GNU-stack, "", @progbits
