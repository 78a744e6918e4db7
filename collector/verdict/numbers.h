/* numbers.h - what ranks said of their numbers: sums of parameters, norms of gradients,
 * loss scales, values that are not finite.
 *
 * Such a record means something beside those of other ranks, for the same step or
 * call. A round holds what the ranks said of one such thing; the step is the
 * record's own, else the last that its process had begun by then, else the
 * how-manieth record of its kind it is. A window of rounds is kept, the oldest goes
 * first. Apart from that: the first values of each process that are not finite, and
 * which parameters it keeps in which bucket.
 */
#pragma once

#include "pulse.h"
#include "../match/match.h"

#define NUMBERS_ROUNDS 1024
#define NUMBERS_NAMED (1u << 31) /* a sub that is a word, of a parameter */

enum number_kind {
	NUMBER_PARAM_SUM,   /* check.param_sum: v; sub = 0, bucket + 1, or a parameter's name */
	NUMBER_GRAD_NORM,   /* check.grad_norm: the same */
	NUMBER_SCALE,	    /* scaler.update: v = scale, w = skip */
	NUMBER_OVERFLOW,    /* scaler.overflow: v = found, w = skip, stage */
	NUMBER_FLAG_READ,   /* memcpy.found_inf_to_host: v = value */
	NUMBER_COLL_INPUT,  /* finite.coll_input: v = how many are not; key = call, sub = group + 1 */
	NUMBER_COLL_OUTPUT, /* finite.coll_output */
	NUMBER_N_KINDS,
};

struct sample {
	uint32_t proc;
	int32_t stage; /* -1 = not said */
	uint32_t step, own; /* as it was said, as the process had it then; EVENT_STEP_UNKNOWN */
	double v, w;   /* NAN = not said */
	int64_t at_ns; /* host */
};

struct round {
	uint8_t kind;
	bool counted; /* key: a number of the record; else a step or a call */
	uint32_t life, sub;
	uint64_t key;
	uint32_t n, n_alloc;
	struct sample *v; /* one a process, in the order of their coming */
	int64_t news_now_ns;
};

enum bad_kind { BAD_INPUT, BAD_OUTPUT, BAD_MODULE, BAD_LOSS };

struct bad { /* a value that is not finite */
	uint8_t kind;
	bool backward; /* module: in that phase */
	uint32_t proc, step; /* step: as its process had it */
	uint32_t group; /* index + 1 */
	uint32_t module; /* word */
	uint64_t call;
	int64_t at_ns; /* host */
	int64_t now_ns; /* core time: when it was heard */
	double n;
};

struct placed { /* a parameter in a bucket */
	uint32_t bucket, param; /* param: word */
};

struct layout {
	struct placed *v; /* in the order of telling */
	size_t n, n_alloc;
	bool over; /* the next one begins a new layout */
	int64_t n_rebuilt; /* + 1: as the last rebuilding said */
};

struct number_proc {
	uint32_t n_said[NUMBER_N_KINDS], n_bad;
	uint64_t n_checks; /* values that were looked at */
	uint64_t n_losses; /* finite ones, and the newest of them: */
	uint32_t loss_step;
	int64_t loss_ns;
	struct layout layout;
};

struct numbers {
	struct round *rounds; /* ring */
	uint64_t n_rounds;
	size_t n_samples;
	struct bad *bads;
	size_t n_bads, n_bads_alloc;
	char **words; /* [0] is for no word */
	uint32_t n_words, n_words_alloc;
	struct idmap word_of;
	struct number_proc *procs;
	uint32_t n_procs;
	uint32_t cached_group; /* the last that was asked for: index + 1 */
	uint64_t n_notes, n_layout_notes;
	int64_t news_now_ns, layout_now_ns; /* core time: the newest; of a layout */
};

void numbers_fini(struct numbers *n);
/* A record of that process, if it is of these. 0 or -ENOMEM. */
int numbers_note(struct numbers *n, const struct pulse *pulse, const struct match *m, uint32_t proc,
		 int64_t at_ns, int64_t now_ns, const char *category, const char *fields_json,
		 size_t n_fields);

/* In the order of their first words; NULL behind the last. */
const struct round *numbers_round(const struct numbers *n, uint64_t i);
/* Of the same life and sub; NULL. */
const struct round *numbers_find(const struct numbers *n, unsigned kind, uint32_t life, uint32_t sub,
				 uint64_t key, bool counted);
const struct sample *numbers_of(const struct round *v, uint32_t proc); /* NULL */
void numbers_forget_bad(struct numbers *n, size_t i); /* another one takes its place */
const char *numbers_word(const struct numbers *n, uint32_t word); /* "" */
