/* Calls with every register known, and functions that see every register.
 * struct state (registers.c): 16 general registers in the order of their
 * numbers, 16 words of stack, 8 masks, 32 vectors of 64 bytes, the flags. */

#define GPR 0
#define STACK 128
#define MASK 256
#define VECTOR 320
#define FLAGS 2368

.macro each_gpr op:vararg
    \op rax, 0
    \op rcx, 1
    \op rdx, 2
    \op rbx, 3
    \op rbp, 5
    \op rsi, 6
    \op rdi, 7
    \op r8, 8
    \op r9, 9
    \op r10, 10
    \op r11, 11
    \op r12, 12
    \op r13, 13
    \op r14, 14
    \op r15, 15
.endm

.macro save_one name reg n
    mov %\reg, \name + GPR + 8 * \n(%rip)
.endm
.macro load_one name reg n
    mov \name + GPR + 8 * \n(%rip), %\reg
.endm

.macro vectors_of name kind
    cmpl $1, vector_width(%rip)
    je 1f
    jg 2f
    .irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15
    .ifc \kind, save
    movups %xmm\n, \name + VECTOR + 64 * \n(%rip)
    .else
    movups \name + VECTOR + 64 * \n(%rip), %xmm\n
    .endif
    .endr
    jmp 3f
1:  .irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15
    .ifc \kind, save
    vmovups %ymm\n, \name + VECTOR + 64 * \n(%rip)
    .else
    vmovups \name + VECTOR + 64 * \n(%rip), %ymm\n
    .endif
    .endr
    jmp 3f
2:  .irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
    .ifc \kind, save
    vmovups %zmm\n, \name + VECTOR + 64 * \n(%rip)
    .else
    vmovups \name + VECTOR + 64 * \n(%rip), %zmm\n
    .endif
    .endr
    .irp n, 0,1,2,3,4,5,6,7
    .ifc \kind, save
    kmovq %k\n, \name + MASK + 8 * \n(%rip)
    .else
    kmovq \name + MASK + 8 * \n(%rip), %k\n
    .endif
    .endr
3:
.endm

.macro save_all name
    pushfq
    popq \name + FLAGS(%rip)
    each_gpr save_one \name
    mov %rsp, \name + GPR + 32(%rip)
    vectors_of \name, save
.endm
.macro load_all name
    vectors_of \name, load
    pushq \name + FLAGS(%rip)
    popfq
    each_gpr load_one \name
.endm

    .text
/* Calls invoke_target with the registers and the stack of `put`; afterwards
 * they are in `got`. The stack pointer of the call goes to `put`. */
    .globl invoke, invoke_returns
invoke:
    push %rbx
    push %rbp
    push %r12
    push %r13
    push %r14
    push %r15
    sub $8, %rsp
    .irp n, 15,14,13,12,11,10,9,8,7,6,5,4,3,2,1,0
    pushq put + STACK + 8 * \n(%rip)
    .endr
    mov %rsp, put + GPR + 32(%rip)
    load_all put
    call *invoke_target(%rip)
invoke_returns:
    save_all got
    .irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15
    popq got + STACK + 8 * \n(%rip)
    .endr
    add $8, %rsp
    pop %r15
    pop %r14
    pop %r13
    pop %r12
    pop %rbp
    pop %rbx
    ret

/* Puts what it finds into `seen` and returns with the registers of `give`. */
    .globl capture
capture:
    save_all seen
    .irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15
    pushq 8 + 8 * \n(%rsp)
    popq seen + STACK + 8 * \n(%rip)
    .endr
    load_all give
    ret

    .globl shim, shim_returns
shim:
    .cfi_startproc
    mov 8(%rsp), %rax
    sub $8, %rsp
    .cfi_adjust_cfa_offset 8
    call *%rax
shim_returns:
    add $8, %rsp
    .cfi_adjust_cfa_offset -8
    ret
    .cfi_endproc

    .globl step_shim, step_returns, step_shim_end
step_shim:
    .cfi_startproc
    mov 8(%rsp), %rax
    sub $8, %rsp
    .cfi_adjust_cfa_offset 8
    pushf
    .cfi_adjust_cfa_offset 8
    orq $0x100, (%rsp)
    popf
    .cfi_adjust_cfa_offset -8
    call *%rax
step_returns:
    pushf
    .cfi_adjust_cfa_offset 8
    andq $~0x100, (%rsp)
    popf
    .cfi_adjust_cfa_offset -8
    add $8, %rsp
    .cfi_adjust_cfa_offset -8
    ret
    .cfi_endproc
step_shim_end:

    .globl other_stack_shim, other_returns
other_stack_shim:
    mov 8(%rsp), %rax
    push %rbp
    mov %rsp, %rbp
    mov 24(%rsp), %rsp
    call *%rax
other_returns:
    mov %rbp, %rsp
    pop %rbp
    ret

/* A leaf that keeps 16 words below the stack pointer while a signal arrives;
 * returns how many have changed. */
    .globl red_zone_leaf
red_zone_leaf:
    .cfi_startproc
    .irp n, 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16
    movq $0x1111 * \n, -8 * \n(%rsp)
    .endr
    int3
    xor %eax, %eax
    .irp n, 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16
    xor %ecx, %ecx
    cmpq $0x1111 * \n, -8 * \n(%rsp)
    setne %cl
    add %ecx, %eax
    .endr
    ret
    .cfi_endproc

/* Tail calls; the arguments stay. */
    .globl jump_on, jump_on_twice
jump_on:
    .cfi_startproc
    jmp *jump_target(%rip)
    .cfi_endproc
jump_on_twice:
    .cfi_startproc
    jmp *second_jump_target(%rip)
    .cfi_endproc

    .section .note.GNU-stack, "", @progbits
