// SPDX-License-Identifier: Apache-2.0

// Package litmus checks the memory barriers of the module. Each file in kernel/ is a litmus test in the C dialect of the kernel
// (tools/memory-model in Linux): what two or three processors do, and an outcome that there must not be. The file says which functions
// of the module it stands for. Accesses are marked there, even where those of the module are plain, so races are not looked for.
//
// herd7 with linux-kernel.cfg is meant to read these files. Since distributions do not have it, the checker here decides with the same
// rules: those of the Linux kernel memory model for marked accesses, fences, dependencies, atomics and spinlocks, without RCU.
package litmus
