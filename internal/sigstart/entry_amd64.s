// SPDX-License-Identifier: Apache-2.0

#include "textflag.h"

#define SYS_rt_sigaction 13
#define SIG_IGN 1

// The entry point of the program, as the kernel enters it: arguments are at SP, DX has what the System V ABI wants to be called
// at the end. It notes which signals are ignored and goes on as if nothing had happened. The other registers mean nothing.
TEXT _smckit_rt0(SB),NOSPLIT|NOFRAME,$0
	MOVQ	DX, R12
	XORL	R13, R13	// signals that are ignored
	MOVQ	$1, BX		// signal
	SUBQ	$32, SP		// struct sigaction
again:
	MOVL	$SYS_rt_sigaction, AX
	MOVQ	BX, DI
	XORL	SI, SI
	MOVQ	SP, DX
	MOVL	$8, R10
	SYSCALL
	TESTQ	AX, AX
	JNE	next
	CMPQ	0(SP), $SIG_IGN
	JNE	next
	LEAQ	-1(BX), CX
	BTSQ	CX, R13
next:
	INCQ	BX
	CMPQ	BX, $64
	JLE	again
	ADDQ	$32, SP
	MOVQ	R13, ·ignored(SB)
	MOVQ	$1, ·known(SB)
	MOVQ	R12, DX
	JMP	_rt0_amd64_linux(SB)
