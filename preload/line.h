/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One line of text for standard error, built without the C library.
 */
#ifndef SMCKIT_PRELOAD_LINE_H
#define SMCKIT_PRELOAD_LINE_H

#include "abi.h"

struct line {
	unsigned int len;
	char text[256];
};

void line_begin(struct line *l);
void line_text(struct line *l, const char *s);
void line_number(struct line *l, int n);
void line_address(struct line *l, const union address *a);
void line_end(struct line *l);
void line_remember_stderr(void);

#endif
