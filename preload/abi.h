/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Everything that the library uses from outside: the kernel's headers, a few numbers that those leave to the C library, and
 * functions that every C library has. The library includes no header of a C library and needs none to be loaded, because
 * one file is for all of them. All functions are weak: the library works without those that are missing.
 */
#ifndef SMCKIT_PRELOAD_ABI_H
#define SMCKIT_PRELOAD_ABI_H

#include <asm/socket.h>
#include <asm/unistd.h>
#include <linux/errno.h>
#include <linux/in.h>
#include <linux/in6.h>
#include <linux/stat.h>
#include <linux/tcp.h>
#include <linux/uio.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__mips__) || defined(__sparc__) || defined(__alpha__) || defined(__hppa__)
#error "this architecture numbers socket types in its own way"
#endif

#define AF_INET 2
#define AF_INET6 10
#define AF_SMC 43
#define SMCPROTO_SMC 0
#define SMCPROTO_SMC6 1
#define SOCK_STREAM 1
/* The type argument of socket(2) without its flags. */
#define SOCK_TYPE_MASK 0xf
#define AT_EMPTY_PATH 0x1000
#define STDERR 2
#define RTLD_NEXT ((void *)-1)

/* An address of either family, as bind(2) and connect(2) take it. */
union address {
	unsigned short family;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

#define WEAK __attribute__((weak))
#define EXPORT __attribute__((visibility("default")))
#pragma GCC visibility push(default)
extern char **environ WEAK;
extern char *program_invocation_short_name WEAK;
extern int *__errno_location(void) WEAK;
extern void *dlsym(void *handle, const char *name) WEAK;
extern long syscall(long number, ...) WEAK;
extern int getpid(void) WEAK;
extern long write(int fd, const void *data, size_t size) WEAK;
extern int getsockopt(int fd, int level, int name, void *value, unsigned int *size) WEAK;
extern int setsockopt(int fd, int level, int name, const void *value, unsigned int size) WEAK;
extern int getsockname(int fd, void *addr, unsigned int *size) WEAK;
#pragma GCC visibility pop

#endif
