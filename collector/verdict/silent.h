/* silent.h - what the rules on silent divergence share: which groups reduce gradients
 * in which steps, and whether the members of a group still have the same numbers.
 *
 * A reduction of more than a few numbers is counted, by step. Members of a group that
 * reduces are replicas as far as their numbers say so: they agreed before, or most
 * of them agree now. Members of a tensor-parallel group reduce too and never had the
 * same sums: of them nothing is said.
 */
#pragma once

#include "numbers.h"

#define SILENT_STEPS 64

struct rules;

struct silent_group { /* numbered as in match */
	uint64_t n;	    /* reductions of more than a few numbers */
	uint32_t n_steps;   /* in so many steps */
	uint32_t steps[SILENT_STEPS]; /* ring: the newest of them */
	bool stepless;
};

struct silent {
	struct silent_group *groups;
	uint32_t n_groups;
	uint32_t *proc_of, n_ranks; /* while siblings are compared: by rank */
	uint32_t life;		/* what follows is of this one */
	uint32_t told_group;	/* of the rule that told: index + 1 */
	uint8_t no_sync, without_sync; /* 1 + how sure: told */
	int64_t siblings_ns;	/* core time: groups were compared */
	int64_t compared_ns, outside_ns; /* core time: the last look at values */
	uint64_t layouts;	/* notes of buckets that were looked at */
	bool told;		/* something from which ranks drift apart */
	bool layout, outside, desync, scaler, source, overflow, healthy;
};

/* What members of a group said of one kind of number, over the rounds. */
struct compared {
	uint32_t n_equal, n_apart;
	const struct round *first; /* in which they are apart; NULL */
	const struct round *last_equal, *newest;
	bool equal_before; /* all of them, in an earlier round */
	bool apart_last;   /* in the newest round too */
	int32_t ranks[2];  /* of the lowest and the highest */
	double values[2];
};

void silent_fini(struct silent *s);
/* The events behind the ledger's, every collective that is final, every record. 0 or -ENOMEM. */
int silent_event(struct rules *r, const struct proc *p, const struct event *ev);
int silent_call(struct rules *r, const struct match *m, uint32_t group, const struct coll *c);
int silent_record(struct rules *r, const struct proc *p, int64_t at_ns, const char *category,
		  const char *fields_json, size_t n_fields);
void silent_life(struct rules *r); /* forgets what was told of an earlier start of the job */

uint32_t silent_restart_count(const struct rules *r); /* of this life; as groups have it */
bool silent_apart(double a, double b); /* by more than rounding */
bool silent_is_member(const struct rules *r, uint32_t proc, uint32_t group);
/* How many of the steps in which this group reduced lie behind that step. */
uint32_t silent_steps_behind(const struct silent_group *g, int64_t step);
/* sub: UINT32_MAX = any; only those that also have this bucket or parameter. */
void silent_compare(const struct rules *r, uint32_t group, unsigned kind, uint32_t sub,
		    struct compared *ret);
/* Are its members apart in that round? Then it becomes the first. */
bool silent_range(const struct rules *r, uint32_t group, const struct round *v, struct compared *ret);
/* "rank 0: 1.0031, rank 1: 1.00287" */
void silent_words(const struct compared *c, char *out, size_t n_out);
/* A list of evidence: the call of that group (UINT64_MAX: all of them), and what two ranks said
 * where they are apart. */
void silent_evidence(const struct compared *c, const char *group, uint64_t call, char *out,
		     size_t n_out);

int no_sync_look(struct rules *r);
int without_sync_look(struct rules *r);
int bucket_layout_look(struct rules *r);
int outside_sync_look(struct rules *r);
int scaler_look(struct rules *r);
int replica_desync_look(struct rules *r);
int nan_source_look(struct rules *r);
int scaling_look(struct rules *r);
