/* config.h - what differs between the ranks' versions, settings and devices, and what it does.
 *
 * Each rank says once what it runs with. Of every field the values are compared
 * over the ranks of this life; the last word of a process counts, and where more
 * than half agree the others are the odd ones. A difference by itself is a notice:
 * most do no harm. It is a cause where the job does not get off the ground
 * (onset.h) and nothing more direct explains that, or where exactly the odd ranks
 * come last to their collectives (latecomers.h).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rules;

#define CONFIG_MAX_ODD 64
#define CONFIG_LEAST_CALLS 6 /* of a group, before its late members are known */
#define CONFIG_LEAST_CALLS_LIVE 48 /* while it runs: a start-up is no trend */

enum config_what { CONFIG_VERSION, CONFIG_SETTING, CONFIG_DEVICE, CONFIG_N };

struct difference { /* the field that matters most of those that differ */
	char field[64]; /* "" = nothing differs */
	char values[240]; /* "2.19.3 on 3 ranks, 2.20.5 on rank 1" */
	char others[160]; /* further fields that differ, with commas */
	bool may_hold, may_slow; /* can it keep a job from starting, or slow ranks down? */
	bool on_wire; /* ranks speak with each other through it */
	int32_t odd[CONFIG_MAX_ODD];
	uint32_t n_odd; /* of all; 0 = no value has a majority */
	uint32_t n_ranks;
	const char *host; /* all odd ranks are on it, and nobody else; NULL */
};

enum config_told { CONFIG_UNTOLD, CONFIG_NOTICE, CONFIG_SLOW, CONFIG_WRONG, CONFIG_STUCK };

struct config {
	uint32_t n_records; /* looked at */
	uint32_t life, n_procs;
	struct difference v[CONFIG_N];
	enum config_told told[CONFIG_N];
	uint32_t stuck_group; /* CONFIG_STUCK: the call that stood */
	uint64_t stuck_call;
	bool stuck_in_call;
};

/* By their names: is it compared at all, how much does it matter (0 first), what can it do?
 * 255 = not compared. */
struct config_weight {
	uint8_t order;
	bool may_hold, may_slow;
};
struct config_weight config_weigh(enum config_what what, const char *field);
/* Compares when there is news and the job is past its first moments. 0 or -ENOMEM. */
int config_compare(struct rules *r);
/* effect: a sentence. 0 or -ENOMEM. */
int config_tell(struct rules *r, enum config_what what, enum config_told as, const char *effect,
		bool certain, double cost_ratio);
/* Tells it as what keeps the job from starting, or as a notice once it runs. 0 or -ENOMEM. */
int config_hold_look(struct rules *r, enum config_what what);
/* Tells it as what makes the odd ranks late. 0 or -ENOMEM. */
int config_slow_look(struct rules *r, enum config_what what);
