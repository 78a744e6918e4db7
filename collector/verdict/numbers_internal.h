/* numbers_internal.h - how numbers_note.c puts away what it has read. All 0 or -ENOMEM; what is too
 * much is let go. */
#pragma once

#include "numbers.h"

struct number_proc *numbers_proc(struct numbers *n, uint32_t proc); /* NULL without memory */
int numbers_word_of(struct numbers *n, const char *text, uint32_t *ret); /* 0: no word */
int numbers_add_sample(struct numbers *n, const struct round *like, const struct sample *s,
		       int64_t now_ns);
int numbers_add_bad(struct numbers *n, struct number_proc *p, const struct bad *b);
int numbers_add_placed(struct layout *l, const struct placed *v);
