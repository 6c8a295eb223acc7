// SPDX-License-Identifier: Apache-2.0
/*
 * Prints the closing table of the module as numbers, so that the tests use the same table as the
 * module:
 *
 *   sizes STATES EVENTS
 *   state NUMBER CODE EOF SHUT DEAF OVER
 *   step STATE EVENT VALID NEXT ACTIONS
 */
#include <stdio.h>

#include "close_table.h"

int main(void)
{
	int s, e;

	printf("sizes %d %d\n", SMC_CLOSE_STATES, SMC_CLOSE_EVENTS);
	for (s = 0; s < SMC_CLOSE_STATES; s++) {
		const struct smc_close_meaning *m = &smc_close_meanings[s];

		printf("state %d %d %d %d %d %d\n", s, m->code, m->eof, m->shut, m->deaf, m->over);
		for (e = 0; e < SMC_CLOSE_EVENTS; e++) {
			const struct smc_close_step *step = &smc_close_table[s][e];

			printf("step %d %d %d %d %d\n", s, e, step->valid, step->next, step->actions);
		}
	}
	return 0;
}
