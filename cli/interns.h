/* interns.h - texts to numbers from 1 on, the same text the same number. */
#pragma once

#include "../collector/idmap.h"

#include <stdbool.h>

struct interns {
	struct idmap by_hash;
	char **v; /* owned; number - 1 */
	uint32_t *same_hash; /* the next number of that hash, 0 = none */
	uint32_t n, n_alloc, max;
};

/* max: how many are kept; of more the number is 0. */
void interns_init(struct interns *s, uint32_t max);
void interns_fini(struct interns *s); /* zeroed is fine */
/* 0 = full, or no memory. *ret_new: nobody had asked for it. */
uint32_t interns_number(struct interns *s, const char *text, bool *ret_new);
