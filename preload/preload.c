// SPDX-License-Identifier: Apache-2.0
/*
 * libsmc-preload.so.1, for LD_PRELOAD: a program that asks for a TCP socket gets an AF_SMC one, which the kernel turns
 * into TCP if the peer does not use SMC. The library changes nothing else, so later calls of the program on its sockets
 * reach the kernel unchanged.
 *
 * Many threads and signal handlers may call these functions at the same time. So there are no locks and no allocations,
 * errno changes only as the wrapped function changes it, and calls go to the next library that has the function, which
 * may be another preloaded one.
 */
#include "line.h"
#include "settings.h"

typedef int (*socket_fn)(int domain, int type, int protocol);
typedef int (*connect_fn)(int fd, const void *addr, unsigned int len);
typedef int (*listen_fn)(int fd, int backlog);

/* The first caller looks each function up. Threads may do so at the same time: all find the same. */
static struct {
	void *socket, *connect, *listen;
} next;

static void *find(void **cache, const char *name)
{
	void *fn = __atomic_load_n(cache, __ATOMIC_RELAXED);

	if (!fn && dlsym) {
		fn = dlsym(RTLD_NEXT, name);
		__atomic_store_n(cache, fn, __ATOMIC_RELAXED);
	}
	return fn;
}

/* Some C libraries have dlsym() in a separate library, which the program may not have loaded: then call the kernel. */
static int next_socket(int domain, int type, int protocol)
{
	socket_fn fn = (socket_fn)find(&next.socket, "socket");

	return fn ? fn(domain, type, protocol) : (int)syscall(__NR_socket, domain, type, protocol);
}

static int next_connect(int fd, const void *addr, unsigned int len)
{
	connect_fn fn = (connect_fn)find(&next.connect, "connect");

	return fn ? fn(fd, addr, len) : (int)syscall(__NR_connect, fd, addr, len);
}

static int next_listen(int fd, int backlog)
{
	listen_fn fn = (listen_fn)find(&next.listen, "listen");

	return fn ? fn(fd, backlog) : (int)syscall(__NR_listen, fd, backlog);
}

static bool is_tcp(int domain, int type, int protocol)
{
	return (domain == AF_INET || domain == AF_INET6) && (type & SOCK_TYPE_MASK) == SOCK_STREAM &&
	       (protocol == 0 || protocol == IPPROTO_TCP);
}

static void begin(struct line *l, int fd)
{
	line_begin(l);
	line_text(l, "socket ");
	line_number(l, fd);
}

static void say_made(int fd)
{
	struct line l;

	begin(&l, fd);
	line_text(&l, " is AF_SMC");
	line_end(&l);
}

/* Prints once per program that it has no AF_SMC sockets; with SMC_DEBUG, for each socket. */
static void say_unavailable(const struct settings *s, int error)
{
	static bool said;
	struct line l;

	if (error == EMFILE || error == ENFILE)
		return; /* TCP is not available either */
	if (!s->debug && (s->quiet || __atomic_exchange_n(&said, true, __ATOMIC_RELAXED)))
		return;
	line_begin(&l);
	line_text(&l, "AF_SMC is not available (errno ");
	line_number(&l, error);
	line_text(&l, "): ");
	line_text(&l, s->debug ? "the socket is " : "sockets are ");
	line_text(&l, s->require ? "refused" : "TCP");
	line_text(&l, "; run 'modprobe smc' as root to see why");
	line_end(&l);
}

/* A privileged program may exceed net.core.*mem_max; others get what that allows. */
static void set_buffer(int fd, int force, int name, int bytes)
{
	if (bytes && setsockopt(fd, SOL_SOCKET, force, &bytes, sizeof(bytes)))
		setsockopt(fd, SOL_SOCKET, name, &bytes, sizeof(bytes));
}

EXPORT int socket(int domain, int type, int protocol)
{
	const struct settings *s;
	int saved, error, fd;

	if (!is_tcp(domain, type, protocol) || !__errno_location || !setsockopt)
		return next_socket(domain, type, protocol);
	s = settings_get();
	if (s && s->off && s->require) {
		*__errno_location() = EINVAL;
		return -1;
	}
	if (!s || s->off)
		return next_socket(domain, type, protocol);

	saved = *__errno_location();
	fd = next_socket(AF_SMC, type, domain == AF_INET6 ? SMCPROTO_SMC6 : SMCPROTO_SMC);
	if (fd >= 0) {
		set_buffer(fd, SO_SNDBUFFORCE, SO_SNDBUF, s->sndbuf);
		set_buffer(fd, SO_RCVBUFFORCE, SO_RCVBUF, s->rcvbuf);
		*__errno_location() = saved;
		if (s->debug)
			say_made(fd);
		return fd;
	}
	error = *__errno_location();
	if (s->require) {
		say_unavailable(s, error);
		return -1;
	}
	/* Whatever the error was, the program now gets what it asked for. */
	*__errno_location() = saved;
	fd = next_socket(domain, type, protocol);
	if (fd >= 0)
		say_unavailable(s, error);
	return fd;
}

/*
 * Keeps a socket from SMC, before it connects or listens. An AF_SMC socket cannot be distinguished from a TCP socket, because its
 * domain and protocol may be TCP's. It need not: the function sets an option, which makes every module give the socket to
 * TCP, to the value that it has. A socket that is already connecting refuses the option.
 */
static void keep_tcp(int fd)
{
	int value;
	unsigned int size = sizeof(value);

	if (!getsockopt(fd, IPPROTO_TCP, TCP_FASTOPEN_NO_COOKIE, &value, &size))
		setsockopt(fd, IPPROTO_TCP, TCP_FASTOPEN_NO_COOKIE, &value, sizeof(value));
}

static bool is_stream(int fd)
{
	unsigned int size = sizeof(int);
	int type;

	return !getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) && type == SOCK_STREAM;
}

/* The kernel also accepts an IPv6 address without a scope. */
static bool is_internet(const union address *a, unsigned int len)
{
	return (len >= sizeof(a->v4) && a->family == AF_INET) ||
	       (len >= offsetof(struct sockaddr_in6, sin6_scope_id) && a->family == AF_INET6);
}

/*
 * Reads the address that a program points to. The kernel copies it, so that a bad pointer makes the next call fail with
 * EFAULT, as without rules, and does not kill the program. If a sandbox forbids that, read the memory directly.
 */
static bool read_address(union address *a, const void *addr, unsigned int len)
{
	struct iovec to = {a, len < sizeof(*a) ? len : sizeof(*a)}, from = {(void *)addr, to.iov_len};
	unsigned int i;
	long n;

	n = syscall(__NR_process_vm_readv, getpid(), &to, 1L, &from, 1L, 0L);
	if (n < 0 && *__errno_location() != EFAULT) {
		for (i = 0; i < to.iov_len; i++)
			((volatile char *)a)[i] = ((const char *)addr)[i];
		n = to.iov_len;
	}
	return n == (long)to.iov_len && is_internet(a, len);
}

/* Applies the rules to a socket that connects to, or listens at, an address. */
static void apply_rules(const struct settings *s, int fd, const union address *a, const char *does)
{
	bool match = rules_match(&s->rules, a);
	int saved = *__errno_location();
	struct line l;

	if (!match)
		keep_tcp(fd);
	*__errno_location() = saved;
	if (!s->debug)
		return;
	begin(&l, fd);
	line_text(&l, does);
	line_address(&l, a);
	line_text(&l, match ? " is within the rules" : " is outside of the rules: TCP");
	line_end(&l);
}

/* Returns the settings if they have rules. */
static const struct settings *ruled(void)
{
	const struct settings *s;

	if (!__errno_location || !getsockopt || !setsockopt || !getsockname || !getpid || !syscall)
		return NULL;
	s = settings_get();
	return s && !s->off && rules_any(&s->rules) ? s : NULL;
}

EXPORT int connect(int fd, const void *addr, unsigned int len)
{
	const struct settings *s = ruled();
	union address a;
	int saved;

	if (s) {
		saved = *__errno_location();
		if (is_stream(fd) && read_address(&a, addr, len))
			apply_rules(s, fd, &a, ": ");
		*__errno_location() = saved;
	}
	return next_connect(fd, addr, len);
}

EXPORT int listen(int fd, int backlog)
{
	const struct settings *s = ruled();
	union address a;
	unsigned int len = sizeof(a);
	int saved;

	if (s) {
		saved = *__errno_location();
		if (!getsockname(fd, &a, &len) && is_internet(&a, len) && is_stream(fd))
			apply_rules(s, fd, &a, ": listening at ");
		*__errno_location() = saved;
	}
	return next_listen(fd, backlog);
}

/* At this time standard error is set up, and most programs have made no socket yet. */
__attribute__((constructor)) static void begin_program(void)
{
	line_remember_stderr();
	if (!environ || !__errno_location)
		return;
	settings_get();
	find(&next.socket, "socket");
	find(&next.connect, "connect");
	find(&next.listen, "listen");
}
