// SPDX-License-Identifier: Apache-2.0
/*
 * A program for i386 without any library, so that a compiler for x86-64 can make it: ask32 PORT
 * WAY. It connects to 127.0.0.1 by direct system calls (WAY is d) or by socketcall() (s), sends
 * data, and compares the echo. The exit status is the number of the step that has failed, or 0.
 */

enum { SYS_exit = 1, SYS_read = 3, SYS_write = 4, SYS_socketcall = 102, SYS_socket = 359, SYS_connect = 362 };
enum { CALL_SOCKET = 1, CALL_CONNECT = 3 };
enum { AF_INET = 2, SOCK_STREAM = 1 };

static long syscall3(long nr, long a, long b, long c)
{
	long result;

	__asm__ volatile("int $0x80" : "=a"(result) : "a"(nr), "b"(a), "c"(b), "d"(c) : "memory");
	return result;
}

static long call(char way, long direct, long indirect, long a, long b, long c)
{
	long args[] = { a, b, c };

	if (way == 's')
		return syscall3(SYS_socketcall, indirect, (long)args, 0);
	return syscall3(direct, a, b, c);
}

static int ask(int port, char way)
{
	struct {
		unsigned short family;
		unsigned char port[2];
		unsigned char addr[4];
		unsigned char zero[8];
	} peer = { AF_INET, { port >> 8, port }, { 127, 0, 0, 1 }, { 0 } };
	char sent[] = "abcdefgh", got[sizeof(sent)];
	long fd, n = 0;

	fd = call(way, SYS_socket, CALL_SOCKET, AF_INET, SOCK_STREAM, 0);
	if (fd < 0)
		return 2;
	if (call(way, SYS_connect, CALL_CONNECT, fd, (long)&peer, sizeof(peer)))
		return 3;
	if (syscall3(SYS_write, fd, (long)sent, sizeof(sent)) != sizeof(sent))
		return 4;
	while (n < (long)sizeof(sent)) {
		long more = syscall3(SYS_read, fd, (long)got + n, sizeof(sent) - n);

		if (more <= 0)
			return 5;
		n += more;
	}
	for (n = 0; n < (long)sizeof(sent); n++)
		if (sent[n] != got[n])
			return 6;
	return 0;
}

__attribute__((used)) static void start(long *stack)
{
	char **argv = (char **)(stack + 1);
	int port = 0;

	if (stack[0] != 3)
		syscall3(SYS_exit, 1, 0, 0);
	for (const char *p = argv[1]; *p; p++)
		port = 10 * port + *p - '0';
	syscall3(SYS_exit, ask(port, argv[2][0]), 0, 0);
}

/* The stack begins with the number of arguments, and must be aligned for a function call. */
__asm__(".globl _start\n_start:\n\tmov %esp, %eax\n\tand $-16, %esp\n\tsub $12, %esp\n\tpush %eax\n\tcall start\n");
