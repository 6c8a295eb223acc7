// SPDX-License-Identifier: Apache-2.0
/*
 * Rules as text: "6379,8000-8100" are ports, "10.0.0.0/8,fd00::1" networks and addresses. smc_run parses the same
 * grammar; a test checks that both agree.
 */
#include "rules.h"

/* The prefix of IPv4-mapped IPv6 addresses. */
static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static int hex(char c)
{
	if (is_digit(c))
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Reads a decimal number of at most max, without a sign or leading zeros. */
static bool number(const char **p, unsigned int max, unsigned int *out)
{
	const char *s = *p;
	unsigned int n = 0;

	if (!is_digit(*s) || (*s == '0' && is_digit(s[1])))
		return false;
	for (; is_digit(*s); s++) {
		n = n * 10 + (unsigned int)(*s - '0');
		if (n > max)
			return false;
	}
	*p = s;
	*out = n;
	return true;
}

static bool at_end(char c)
{
	return c == '\0' || c == ',';
}

static bool parse_ports(const char **p, struct ports *out)
{
	unsigned int first, last;

	if (!number(p, 65535, &first))
		return false;
	last = first;
	if (**p == '-') {
		++*p;
		if (!number(p, 65535, &last))
			return false;
	}
	if (!first || last < first)
		return false;
	out->first = (uint16_t)first;
	out->last = (uint16_t)last;
	return true;
}

static bool parse_v4(const char **p, uint8_t *out)
{
	unsigned int i, n;

	for (i = 0; i < 4; i++) {
		if (i && *(*p)++ != '.')
			return false;
		if (!number(p, 255, &n))
			return false;
		out[i] = (uint8_t)n;
	}
	return true;
}

/* Reads one group of hexadecimal digits. */
static bool parse_group(const char **p, uint8_t *out)
{
	unsigned int digits = 0, n = 0;

	while (hex(**p) >= 0) {
		n = n << 4 | (unsigned int)hex(*(*p)++);
		if (++digits > 4)
			return false;
	}
	out[0] = (uint8_t)(n >> 8);
	out[1] = (uint8_t)n;
	return digits > 0;
}

/* Is the rest an IPv4 address, as at the end of an IPv6 address? */
static bool dotted(const char *s)
{
	while (is_digit(*s))
		s++;
	return *s == '.';
}

static bool parse_v6(const char **p, uint8_t *out)
{
	uint8_t a[16];
	int gap = -1, n = 0, i;

	if (**p == ':' && (*p)[1] != ':')
		return false;
	while (n < 16) {
		if ((*p)[0] == ':' && (*p)[1] == ':') {
			if (gap >= 0)
				return false;
			gap = n;
			*p += 2;
			if (hex(**p) < 0)
				break;
		} else if (n) {
			if (*(*p)++ != ':')
				return false;
		}
		if (dotted(*p)) {
			if (n > 12 || !parse_v4(p, a + n))
				return false;
			n += 4;
			break;
		}
		if (!parse_group(p, a + n))
			return false;
		n += 2;
		if (**p != ':')
			break;
	}
	if (gap < 0 && n < 16)
		return false;
	if (gap >= 0 && n > 14)
		return false;
	if (gap < 0)
		gap = n;
	for (i = 0; i < 16; i++)
		out[i] = i < gap ? a[i] : i < 16 - (n - gap) ? 0 : a[i - (16 - n)];
	return true;
}

static bool is_v4(const uint8_t *addr)
{
	unsigned int i;

	for (i = 0; i < sizeof(mapped); i++)
		if (addr[i] != mapped[i])
			return false;
	return true;
}

static bool parse_network(const char **p, struct network *out)
{
	unsigned int i, bits, most;

	if (dotted(*p)) {
		for (i = 0; i < sizeof(mapped); i++)
			out->addr[i] = mapped[i];
		if (!parse_v4(p, out->addr + 12))
			return false;
		most = 32;
	} else {
		if (!parse_v6(p, out->addr))
			return false;
		most = 128;
	}
	bits = most;
	if (**p == '/') {
		++*p;
		if (!number(p, most, &bits))
			return false;
	}
	out->bits = (uint8_t)(bits + 128 - most);
	out->v4 = is_v4(out->addr) && out->bits >= 96;
	return true;
}

static bool add_ports(struct list *l, const char **p)
{
	return l->nr_ports < RULES_MOST && parse_ports(p, &l->ports[l->nr_ports++]);
}

static bool add_network(struct list *l, const char **p)
{
	return l->nr_networks < RULES_MOST && parse_network(p, &l->networks[l->nr_networks++]);
}

/* Networks contain a point or a colon, ports contain neither. */
static bool add_either(struct list *l, const char **p)
{
	const char *s = *p;

	while (!at_end(*s) && *s != '.' && *s != ':')
		s++;
	return at_end(*s) ? add_ports(l, p) : add_network(l, p);
}

/* Adds the entries of a list separated by commas. */
static bool add(struct list *l, const char *text, bool (*one)(struct list *, const char **))
{
	for (;; text++) {
		if (!one(l, &text) || !at_end(*text))
			return false;
		if (!*text)
			return true;
	}
}

bool rules_add_ports(struct list *l, const char *text)
{
	return add(l, text, add_ports);
}

bool rules_add_networks(struct list *l, const char *text)
{
	return add(l, text, add_network);
}

bool rules_add_either(struct list *l, const char *text)
{
	return add(l, text, add_either);
}

/* Is there any rule? */
bool rules_any(const struct rules *r)
{
	return r->only.nr_ports || r->only.nr_networks || r->not.nr_ports || r->not.nr_networks;
}

static bool has_port(const struct list *l, unsigned int port)
{
	unsigned int i;

	for (i = 0; i < l->nr_ports; i++)
		if (port >= l->ports[i].first && port <= l->ports[i].last)
			return true;
	return false;
}

static bool in_network(const struct network *n, const uint8_t *addr)
{
	unsigned int i, bits;

	if (n->v4 != is_v4(addr))
		return false;
	for (i = 0, bits = n->bits; bits >= 8; i++, bits -= 8)
		if (n->addr[i] != addr[i])
			return false;
	return !bits || !((n->addr[i] ^ addr[i]) >> (8 - bits));
}

static bool has_address(const struct list *l, const uint8_t *addr)
{
	unsigned int i;

	for (i = 0; i < l->nr_networks; i++)
		if (in_network(&l->networks[i], addr))
			return true;
	return false;
}

static bool is_zero(const uint8_t *bytes, unsigned int n)
{
	while (n)
		if (bytes[--n])
			return false;
	return true;
}

/*
 * May connections to this address, or those that are accepted there, use SMC? A listener on all addresses matches every
 * network in `only` and none in `not`, so its port decides.
 */
bool rules_match(const struct rules *r, const union address *a)
{
	uint8_t addr[16];
	unsigned int i, port = __builtin_bswap16(a->v4.sin_port);
	bool everywhere;

	if (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__)
		port = a->v4.sin_port;
	for (i = 0; i < 16; i++) {
		if (a->family == AF_INET6)
			addr[i] = a->v6.sin6_addr.s6_addr[i];
		else
			addr[i] = i < 12 ? mapped[i] : ((const uint8_t *)&a->v4.sin_addr)[i - 12];
	}
	everywhere = is_zero(addr, 16) || (is_v4(addr) && is_zero(addr + 12, 4));
	if (r->only.nr_ports && !has_port(&r->only, port))
		return false;
	if (r->only.nr_networks && !everywhere && !has_address(&r->only, addr))
		return false;
	return !has_port(&r->not, port) && (everywhere || !has_address(&r->not, addr));
}
