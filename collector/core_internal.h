/* core_internal.h - what the files of the core share. */
#pragma once

#include "core.h"
#include "graph/arrivals.h"
#include "graph/graph.h"
#include "heat.h"
#include "match/evidence.h"
#include "match/ties.h"
#include "verdict/clock_contradiction.h"
#include "verdict/clock_offset.h"
#include "verdict/pace_why.h"
#include "verdict/rules.h"
#include "verdict/slow_fixed_rank.h"

struct core {
	struct facts *facts;
	struct roster roster;
	struct match match;
	struct steps steps;
	struct graph graph;
	struct heat *heat;
	struct slow_fixed_rank *slow;
	struct clock_offset *offset;
	struct evidence *evidence; /* NULL while all hosts share one clock */
	struct ties ties;
	struct rules rules;
	struct arrivals *arrivals;
	FACT_ARRAY(struct fact_rank_step) restored; /* of one step, not yet seen by rules */
	bool no_paths, no_heat, expects;
	uint32_t expect_first, expect_last;
	uint64_t n_events, n_unknown_kind, n_lost, n_bad, n_late;
	uint64_t n_held;	      /* events of lives that wait */
	uint64_t last_chunk, replay_below; /* a replay is not late */
};

/* core.c */
/* The events of a process whose life has the end of the line. 0 or negative errno. */
int core_feed(struct core *c, struct proc *p, uint32_t ring, uint64_t chunk, const struct event *ev,
	      size_t n);
void core_note_step(struct core *c, uint32_t step, uint32_t n_ranks);

/* core_hosts.c: two hosts that do not both have the collector's clock are told apart
 * by what they do together, too. 0 or -ENOMEM. */
int core_make_evidence(struct core *c);

/* core_lives.c: each 0 or negative errno. */
int32_t core_restart_count(const struct core *c, const struct proc *p);
/* Now, or kept until its rank is known and its life has its turn. */
int core_admit(struct core *c, struct proc *p, uint32_t ring, uint64_t chunk, const struct event *ev,
	       size_t n);
int core_hold(struct core *c, struct proc *p, uint32_t ring, uint64_t chunk, const struct event *ev,
	      size_t n);
/* Whose turn has come. all: nobody is waited for any longer. */
int core_let_in(struct core *c, bool all);

/* core_save.c: the rule wants a step as a whole, the store may give a row at a time. */
int core_flush_restored(struct core *c);
