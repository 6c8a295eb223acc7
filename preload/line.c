// SPDX-License-Identifier: Apache-2.0
#include "line.h"

/* The identity of standard error when the program started. */
static struct {
	bool known;
	uint32_t major, minor;
	uint64_t inode;
} began;

static bool look(struct statx *st)
{
	/* Not every C library has statx(), and the layout of stat()'s result differs between them. */
	return syscall && !syscall(__NR_statx, STDERR, "", AT_EMPTY_PATH, STATX_INO, st);
}

void line_remember_stderr(void)
{
	struct statx st;

	began.known = look(&st);
	began.major = st.stx_dev_major;
	began.minor = st.stx_dev_minor;
	began.inode = st.stx_ino;
}

/* A program may have closed standard error and have a connection or a database under its number. */
static bool same_stderr(void)
{
	struct statx st;

	return began.known && look(&st) && st.stx_ino == began.inode && st.stx_dev_major == began.major &&
	       st.stx_dev_minor == began.minor;
}

static void put(struct line *l, char c)
{
	/* Keep the last byte for the newline. */
	if (l->len < sizeof(l->text) - 1)
		l->text[l->len++] = c;
}

void line_text(struct line *l, const char *s)
{
	while (*s)
		put(l, *s++);
}

static void put_number(struct line *l, unsigned int n, unsigned int base)
{
	char digits[12];
	unsigned int i = 0;

	do {
		digits[i++] = "0123456789abcdef"[n % base];
		n /= base;
	} while (n);
	while (i)
		put(l, digits[--i]);
}

void line_number(struct line *l, int n)
{
	put_number(l, (unsigned int)n, 10);
}

static void put_v4(struct line *l, const uint8_t *a)
{
	unsigned int i;

	for (i = 0; i < 4; i++) {
		if (i)
			put(l, '.');
		put_number(l, a[i], 10);
	}
}

static void put_v6(struct line *l, const uint8_t *a)
{
	unsigned int i, j, gap = 8, longest = 1;

	for (i = 0; i < 8; i++) {
		for (j = i; j < 8 && !a[2 * j] && !a[2 * j + 1]; j++)
			;
		if (j - i > longest) {
			gap = i;
			longest = j - i;
		}
	}
	for (i = 0; i < 8; i++) {
		if (i == gap) {
			line_text(l, "::");
			i += longest - 1;
			continue;
		}
		if (i && i != gap + longest)
			put(l, ':');
		put_number(l, (unsigned int)a[2 * i] << 8 | a[2 * i + 1], 16);
	}
}

void line_address(struct line *l, const union address *a)
{
	const uint8_t *port = (const uint8_t *)&a->v4.sin_port;

	if (a->family == AF_INET6) {
		put(l, '[');
		put_v6(l, a->v6.sin6_addr.s6_addr);
		put(l, ']');
	} else {
		put_v4(l, (const uint8_t *)&a->v4.sin_addr);
	}
	put(l, ':');
	put_number(l, (unsigned int)port[0] << 8 | port[1], 10);
}

void line_begin(struct line *l)
{
	l->len = 0;
	line_text(l, "libsmc-preload: ");
	if (&program_invocation_short_name && program_invocation_short_name)
		line_text(l, program_invocation_short_name);
	if (getpid) {
		put(l, '[');
		line_number(l, getpid());
		line_text(l, "]");
	}
	line_text(l, ": ");
}

/* Writes the line, and ignores errors: the program could do nothing about them. */
void line_end(struct line *l)
{
	int saved;

	if (!write || !__errno_location)
		return;
	saved = *__errno_location();
	l->text[l->len++] = '\n';
	if (same_stderr() && write(STDERR, l->text, l->len) < 0)
		l->len = 0;
	*__errno_location() = saved;
}
