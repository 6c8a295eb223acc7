// SPDX-License-Identifier: Apache-2.0
#include "settings.h"
#include "line.h"

static struct settings settings;
static int state;
enum { UNREAD, READING, READ };

/* Finds the value of a variable, or NULL. */
static const char *variable(const char *name)
{
	char **p;
	size_t i;

	for (p = environ; p && *p; p++) {
		for (i = 0; name[i] && (*p)[i] == name[i]; i++)
			;
		if (!name[i] && (*p)[i] == '=')
			return *p + i + 1;
	}
	return NULL;
}

static bool is_on(const char *name)
{
	const char *value = variable(name);

	return value && *value && *value != '0';
}

static void complain(const char *name, const char *value, const char *consequence)
{
	struct line l;

	if (settings.quiet)
		return;
	line_begin(&l);
	line_text(&l, name);
	line_text(&l, "=");
	line_text(&l, value);
	line_text(&l, " is invalid: ");
	line_text(&l, consequence);
	line_end(&l);
}

/* Reads a number of bytes, which may end in k or m, such as "512k". */
static int size(const char *name)
{
	const char *value = variable(name), *s = value;
	uint64_t n = 0;

	if (!s || !*s)
		return 0;
	for (; *s >= '0' && *s <= '9' && n <= INT32_MAX; s++)
		n = n * 10 + (uint64_t)(*s - '0');
	if (s != value && (*s | 0x20) == 'k')
		n <<= 10, s++;
	else if (s != value && (*s | 0x20) == 'm')
		n <<= 20, s++;
	if (*s || n > INT32_MAX) {
		complain(name, value, "the buffers stay as they are");
		return 0;
	}
	return (int)n;
}

static void read_list(const char *name, struct list *l, bool (*add)(struct list *, const char *))
{
	const char *value = variable(name);

	if (!value || !*value || add(l, value))
		return;
	settings.off = true;
	complain(name, value, settings.require ? "all sockets are refused" : "all sockets stay TCP");
}

static void read_settings(void)
{
	const char *debug = variable("SMC_DEBUG");

	/* As with smc-tools, an empty value means on. */
	settings.debug = debug && *debug != '0';
	settings.quiet = is_on("SMC_QUIET");
	settings.require = is_on("SMC_REQUIRE");
	settings.sndbuf = size("SMC_SNDBUF");
	settings.rcvbuf = size("SMC_RCVBUF");
	read_list("SMC_PORT", &settings.rules.only, rules_add_ports);
	read_list("SMC_TO", &settings.rules.only, rules_add_networks);
	read_list("SMC_NOT", &settings.rules.not, rules_add_either);
}

/*
 * settings_get() - the settings of the environment at the start of the program
 *
 * The first call reads the environment. That is before main(), when few programs have threads. If another thread or a
 * signal handler calls while it is being read, it gets NULL and does not change its socket: it cannot wait for code that
 * it may have interrupted.
 */
const struct settings *settings_get(void)
{
	int expected = UNREAD;

	if (__atomic_load_n(&state, __ATOMIC_ACQUIRE) == READ)
		return &settings;
	if (!__atomic_compare_exchange_n(&state, &expected, READING, false, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE))
		return expected == READ ? &settings : NULL;
	read_settings();
	__atomic_store_n(&state, READ, __ATOMIC_RELEASE);
	return &settings;
}
