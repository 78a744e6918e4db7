/* standstill.h - which call does the job wait in, and for whom?
 *
 * Of each group whose members are known: the first call that some have entered and
 * others have not. An absent rank that is itself inside a call of another group is
 * waited for there; followed like this, a standstill ends at members who are
 * inside nothing, or in a circle.
 */
#pragma once

#include "rules.h"

#define STANDSTILL_LEAST_NS INT64_C(3000000000) /* shorter waits are nobody's business here */

struct standstill {
	uint32_t group;
	uint64_t call;
	const struct line *line;
	uint32_t absent[RULES_MAX_RANKS]; /* processes, by index */
	uint32_t n_absent;		  /* of all; named are RULES_MAX_RANKS at most */
	uint32_t present;		  /* the process of one that waits */
	uint32_t n_present, n_alive;	  /* alive: of those present */
	int64_t waited_ns;		  /* core time since the first entered */
	bool circle;	    /* whoever is absent waits in another group */
	uint32_t other_group; /* circle: where the first absent one waits */
	uint64_t other_call;
};

/* False when nobody waits. Of several the earliest that is nobody's consequence. */
bool standstill_find(struct rules *r, struct standstill *ret);
/* Everyone entered and nobody has left: the first such call. */
bool standstill_inside(struct rules *r, struct standstill *ret);

/* Watchdog limit of this life, or 0 when nobody has said one. */
int64_t standstill_limit_ns(const struct rules *r);

/* reasons; each tells and returns 1, or 0 when it is not that, or -ENOMEM */
int crashed_tell(struct rules *r, const struct standstill *s);
int stopped_tell(struct rules *r, const struct standstill *s);
int uneven_tell(struct rules *r, const struct standstill *s);
int decision_tell(struct rules *r, const struct standstill *s);
int group_order_tell(struct rules *r, const struct standstill *s);
int localised_tell(struct rules *r, const struct standstill *s);
/* What a told standstill turned out to be, once the ranks have come. */
int peer_busy_look(struct rules *r);
/* An event was taken: the call may be forgotten by the next look, so many may follow. */
void peer_busy_event(struct rules *r);

/* What they have in common: group, call, step, and the absent ranks that `is` picks. */
void standstill_finding(const struct rules *r, const struct standstill *s, struct finding *ret,
			bool (*is)(const struct rules *r, uint32_t proc));
