/* Code that breakpoints have little room in: instructions of one byte, loops of two instructions and of one, a loop whose
   second instruction is jumped to, functions of one instruction. */
	.text

	/* An argument, through instructions of one byte only. */
	.globl	single
	.type	single, @function
single:
	.cfi_startproc
	push	%rdi
	.cfi_adjust_cfa_offset 8
	nop
	push	%rbx
	.cfi_adjust_cfa_offset 8
	pop	%rax
	.cfi_adjust_cfa_offset -8
	stc
	cmc
	pushfq
	.cfi_adjust_cfa_offset 8
	pop	%rdx
	.cfi_adjust_cfa_offset -8
	pop	%rax
	.cfi_adjust_cfa_offset -8
	cwtl
	cltd
	nop
	ret
	.cfi_endproc
	.size	single, .-single

	/* Nothing but a return, and right behind it the next function. */
	.globl	nothing
	.type	nothing, @function
nothing:
	.cfi_startproc
	ret
	.cfi_endproc
	.size	nothing, .-nothing

	/* The flags of the program: those that tracing uses are not among them. */
	.globl	flags
	.type	flags, @function
flags:
	.cfi_startproc
	cmp	%edi, %edi
	pushfq
	.cfi_adjust_cfa_offset 8
	pop	%rax
	.cfi_adjust_cfa_offset -8
	ret
	.cfi_endproc
	.size	flags, .-flags

	/* Counts down in a loop of two instructions, then in one that jumps to itself. */
	.globl	down
	.type	down, @function
down:
	.cfi_startproc
	mov	%edi, %ecx
1:	dec	%ecx
	jnz	1b
	mov	%edi, %ecx
2:	loop	2b
	lea	(%rdi,%rcx), %eax
	ret
	.cfi_endproc
	.size	down, .-down

	/* A loop that is entered at its second instruction, and goes on at its first or its second. */
	.globl	second
	.type	second, @function
second:
	.cfi_startproc
	xor	%eax, %eax
	jmp	2f
1:	nop
2:	inc	%eax
	dec	%edi
	jz	3f
	test	$1, %dil
	jnz	2b
	jmp	1b
3:	ret
	.cfi_endproc
	.size	second, .-second

	/* The same instruction from its beginning and from behind its prefix. */
	.globl	inside
	.type	inside, @function
inside:
	.cfi_startproc
	lea	-8(%rsp), %rdx
	movl	%edi, (%rdx)
	test	$1, %dil
	jnz	1f+1
1:	lock addl $3, (%rdx)
	mov	(%rdx), %eax
	ret
	.cfi_endproc
	.size	inside, .-inside

	.globl	main
	.type	main, @function
main:
	.cfi_startproc
	push	%rbx
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset rbx, 0
	push	%r12
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset r12, 0
	push	%r13
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset r13, 0
	xor	%r12d, %r12d
	xor	%r13d, %r13d
	mov	$12, %ebx
1:	mov	%ebx, %edi
	call	single
	add	%rax, %r12
	add	%rdx, %r13
	call	nothing
	mov	%ebx, %edi
	call	flags
	add	%rax, %r13
	mov	%ebx, %edi
	call	down
	add	%rax, %r12
	mov	%ebx, %edi
	call	second
	add	%rax, %r12
	mov	%ebx, %edi
	call	inside
	add	%rax, %r12
	dec	%ebx
	jnz	1b
	lea	format(%rip), %rdi
	mov	%r12, %rsi
	mov	%r13, %rdx
	xor	%eax, %eax
	call	printf@PLT
	mov	$6, %eax
	pop	%r13
	.cfi_adjust_cfa_offset -8
	pop	%r12
	.cfi_adjust_cfa_offset -8
	pop	%rbx
	.cfi_adjust_cfa_offset -8
	ret
	.cfi_endproc
	.size	main, .-main

	.section .rodata
format:	.asciz	"%ld, flags %ld\n"
	.section .note.GNU-stack,"",@progbits
