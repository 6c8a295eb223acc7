// SPDX-License-Identifier: Apache-2.0
/*
 * Prints the closing table of the module as Promela, so that the model runs the table that the
 * module runs: names of states and events, properties of states, and step(), which runs an event.
 */
#include <stdio.h>

#include "close_table.h"

static void meaning(const char *name, size_t offset)
{
	const char *m = (const char *)smc_close_meanings + offset;
	int s;

	printf("#define %s(s) (", name);
	for (s = 0; s < SMC_CLOSE_STATES; s++)
		if (*(const bool *)(m + sizeof(smc_close_meanings[0]) * (size_t)s))
			printf("s == %d || ", s);
	printf("false)\n");
}

static void step(int s, int e)
{
	static const struct {
		int action;
		const char *does;
	} all[] = {
		{ SMC_CLOSE_SEND_D, "send_flag(i, FLAG_D)" },
		{ SMC_CLOSE_SEND_C, "send_flag(i, FLAG_C)" },
		{ SMC_CLOSE_SEND_A, "send_flag(i, FLAG_A)" },
		{ SMC_CLOSE_ERR_RESET, "err[i] = true" },
		{ SMC_CLOSE_ERR_ABORTED, "err[i] = true" },
		{ SMC_CLOSE_ERR_PIPE, "err[i] = true" },
		{ SMC_CLOSE_WAKE, "wake_all(i)" },
		{ SMC_CLOSE_TIMER, "start(i)" },
		{ SMC_CLOSE_END, "free_buf(i)" },
	};
	const struct smc_close_step *st = &smc_close_table[s][e];
	size_t a;

	if (!st->valid)
		return;
	printf("\t:: st[i] == %d && e == %d -> st[i] = %d", s, e, st->next);
	for (a = 0; a < sizeof(all) / sizeof(all[0]); a++)
		if (st->actions & all[a].action)
			printf("; %s", all[a].does);
	printf("\n");
}

int main(void)
{
	int s, e;

	printf("#define EV_SHUT %d\n#define EV_CLOSE %d\n#define EV_ABORT %d\n#define EV_LOST %d\n",
	       SMC_CLOSE_SHUT, SMC_CLOSE_CLOSE, SMC_CLOSE_ABORT, SMC_CLOSE_LOST);
	printf("#define EV_PEER_D %d\n#define EV_PEER_C %d\n#define EV_PEER_A %d\n",
	       SMC_CLOSE_PEER_D, SMC_CLOSE_PEER_C, SMC_CLOSE_PEER_A);
	printf("#define EV_RESET %d\n#define EV_TIMEOUT %d\n", SMC_CLOSE_RESET, SMC_CLOSE_TIMEOUT);
	meaning("IS_EOF", offsetof(struct smc_close_meaning, eof));
	meaning("IS_SHUT", offsetof(struct smc_close_meaning, shut));
	meaning("IS_DEAF", offsetof(struct smc_close_meaning, deaf));
	meaning("IS_OVER", offsetof(struct smc_close_meaning, over));
	printf("inline step(i, e)\n{\n\td_step {\n\tif\n");
	for (s = 0; s < SMC_CLOSE_STATES; s++)
		for (e = 0; e < SMC_CLOSE_EVENTS; e++)
			step(s, e);
	printf("\t:: else\n\tfi }\n}\n");
	return 0;
}
