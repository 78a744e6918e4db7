/* pickle_internal.h - a pickle's machine: its input, its stack, what it remembers. */
#pragma once

#include "pickle.h"

enum box_kind { BOX_LIST, BOX_DICT, BOX_SET, BOX_FIXED };

struct box { /* what is to be known of a container */
	uint64_t unfolded;
	uint32_t depth;
	uint8_t kind;
	bool closed; /* another one holds it: it changes no more, so nothing can hold itself */
};

struct cell {
	json_t *v;    /* NULL = a mark, or nothing */
	uint32_t box; /* index + 1, 0 = no container */
};

struct cells {
	struct cell *v;
	uint32_t n, n_alloc;
};

struct machine {
	const struct pickle_limits *limits;
	bytes_fn read;
	void *arg;
	unsigned char in[65536];
	size_t in_at, n_in;
	uint64_t n_bytes; /* used */
	char *text;	  /* the newest, with a 0 behind it */
	size_t n_text, n_text_alloc;
	struct cells stack, memo;
	struct box *boxes;
	uint32_t n_boxes, n_boxes_alloc;
	uint64_t n_kept_bytes;
	uint32_t n_values;
	bool stopped, unread, no_memory;
	char *why;
	size_t n_why;
};

/* All give false after having said why. */
bool pickle_fail(struct machine *m, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
bool pickle_grow(struct machine *m, void *v, size_t n, size_t *n_alloc, size_t size);
bool pickle_charge(struct machine *m, uint64_t bytes);

/* ---- pickle_text.c: the input ---- */
bool pickle_bytes(struct machine *m, void *out, size_t n); /* a few */
bool pickle_number(struct machine *m, unsigned n_bytes, uint64_t *ret); /* little end first */
bool pickle_text(struct machine *m, uint64_t n); /* into m->text */
bool pickle_line(struct machine *m);
/* What is for people to read of m->text. */
const char *pickle_shown(const char *text, size_t n, char out[80]);

json_t *pickle_string(const char *text, size_t n); /* what is no UTF-8 in it replaced */
json_t *pickle_hex(const char *text, size_t n);
bool pickle_unescape_unicode(struct machine *m); /* m->text */
bool pickle_unescape_quoted(struct machine *m);
json_t *pickle_digits(const char *text, size_t n); /* decimal; NULL = none */
json_t *pickle_long(const unsigned char *bytes, size_t n); /* little end first, n <= 255 */
