/* spec_internal.h - what the two halves of the parser share: the file's frame
 * (spec.c) and its operations (spec_ops.c). */
#pragma once

#include "spec.h"

#include <jansson.h>

struct parser {
	struct spec *spec;
	char *why;
	size_t n_why;
	bool no_memory;
	const char *text; /* the whole file, which is JSON */
	size_t n_text;
	json_t *groups, *streams, *progs; /* name to number */
	/* Where we are: the program, and the places of nested operations in it. */
	const char *who, *what; /* what: the operation's name; NULL = outside */
	uint32_t path[SPEC_MAX_DEPTH], n_path;
};

/* Writes the sentence, led by the place. Always false. */
bool spec_refuse(struct parser *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Zeroed memory; NULL makes the parser fail for lack of it. n = 0 gives a byte. */
void *spec_alloc(struct parser *p, size_t n, size_t size);

bool spec_get_ranks(struct parser *p, const json_t *v, const char *what, struct spec_ranks *ret);
bool spec_get_name(struct parser *p, const json_t *v, const char *what, size_t max,
		   const char **ret);
bool spec_get_ms(struct parser *p, const json_t *v, const char *what, double *ret);
bool spec_get_real(struct parser *p, const json_t *v, const char *what, double lo, double hi,
		   double *ret);
bool spec_get_whole(struct parser *p, const json_t *v, const char *what, uint64_t lo, uint64_t hi,
		    uint64_t *ret);

bool spec_get_progs(struct parser *p);
bool spec_get_ops(struct parser *p, const json_t *v, struct spec_list *ret);
void spec_free_ops(struct spec_list *list);
