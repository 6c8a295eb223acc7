// SPDX-License-Identifier: Apache-2.0
/* Intended differences from TCP. A check that is listed and passes is reported as a failure. */
#include "harness.h"

#include <string.h>

static const struct {
	const char *check;
	const char *domains;	/* separated by blanks */
	const char *reason;
} differences[] = {
	{ "", "", "" },
};

static bool contains(const char *words, const char *word)
{
	size_t len = strlen(word);

	for (const char *at = words; (at = strstr(at, word)); at += len)
		if ((at == words || at[-1] == ' ') && (at[len] == ' ' || !at[len]))
			return true;
	return false;
}

const char *harness_expected(const char *check, const char *domain)
{
	for (size_t i = 0; i < sizeof(differences) / sizeof(differences[0]); i++)
		if (!strcmp(differences[i].check, check) &&
		    contains(differences[i].domains, domain))
			return differences[i].reason;
	return NULL;
}
