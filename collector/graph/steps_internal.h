/* steps_internal.h - what the files of steps share. */
#pragma once

#include "device.h"
#include "steps.h"
#include "../match/between.h"

/* A rank of which nothing is known in a step yet. */
#define STEPS_NO_RANK ((struct rank_step){ .begin_ns = FACT_NONE, .end_ns = FACT_NONE, \
					   .device_ns = FACT_NONE, .from_ns = FACT_NONE, \
					   .to_ns = FACT_NONE })

struct blocked {
	int64_t begin_ns, end_ns;
	uint32_t group; /* index + 1 */
	uint64_t seq;
};

struct self_of_rank {
	int64_t self_ns;
	uint32_t row;
};

/* steps.c */
static inline struct step *steps_at(const struct steps *s, uint32_t step)
{
	struct step *st = s->v ? &s->v[step & (s->n_slots - 1)] : NULL;

	return st && st->used && st->step == step ? st : NULL;
}
struct number {
	uint32_t step, end;  /* end: behind the last number of this span */
	uint64_t next_chunk; /* the next span begins behind it */
};

/* The fact's number of a life's own step; false when no span has it. */
bool steps_number(struct steps *s, int32_t restart_count, uint32_t own, struct number *ret);
/* The step's slot, made if it is new; *ret NULL when it is too old. */
int steps_open(struct steps *s, uint32_t step, uint32_t life, uint64_t chunk,
	       struct step **ret);

/* events.c */
/* Both; *ret_rs NULL when the step is too old. step is the fact's number. */
int steps_open_both(struct steps *s, uint32_t step, const struct proc *p, uint64_t chunk,
		    struct step **ret_st, struct rank_step **ret_rs);
int steps_add_item(struct step *st, struct rank_step *rs, const struct step_item *item);
/* events.c: which group does this name mean in this process, and which of its members
 * is the process? 1 when it has no name; negative errno. */
int steps_find_group(struct steps *s, struct proc *p, uint32_t name, uint32_t *ret_group,
		     uint32_t *ret_member);

/* breakdown.c */
struct instant steps_place(struct steps *s, uint32_t proc, int64_t host_ns);
/* The fact of one rank; -ENOMEM. */
int steps_break_down(struct steps *s, const struct step *st, int32_t rank,
		     const struct rank_step *rs, struct fact_rank_step *f);
int steps_tell_buckets(struct steps *s, const struct step *st, int32_t rank,
		       const struct rank_step *rs);

/* breakdown_device.c: the same where a device tells what ran. -ENOMEM. */
int steps_break_down_device(struct steps *s, const struct step *st, const struct rank_step *rs,
			    struct fact_rank_step *f);
/* To what the step is on this rank. */
void steps_clip(int64_t *begin, int64_t *end, const struct rank_step *rs);
/* How much of [begin, end) on that process's clock passed before the last rank
 * had arrived in the call. */
void steps_add_wait(struct steps *s, uint32_t proc, const struct blocked *b, int64_t begin,
		    int64_t end, struct fact_rank_step *f);

/* tell.c */
int steps_tell(struct steps *s, struct step *st);
