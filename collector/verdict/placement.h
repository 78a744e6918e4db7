/* placement.h - on which cpu did the host thread of a late rank run?
 *
 * From the records that agents make of where a thread is. A rank is ill placed where
 * its cpu is of another memory node than its device, or where another rank of its
 * host runs on the same cpu. Of each late collective it is kept whether its last member
 * was ill placed, and how much earlier those that were well placed had come: that is
 * what the placement costs. As records come by another way than events, a
 * call is looked at after a second look.
 */
#pragma once

#include "lateness.h"

#define PLACEMENT_KEEP 64
#define PLACEMENT_OF_PROC 16
#define PLACEMENT_OTHERS 8
#define PLACEMENT_PENDING 128

struct place {
	int64_t at_ns; /* host time */
	int32_t cpu, node, device_node; /* -1 = not said */
};

struct placed_proc { /* of a process */
	struct place v[PLACEMENT_OF_PROC]; /* ring, by time */
	uint64_t n;
	bool bound; /* its affinity is one cpu, or the device's node by itself */
};

struct placed_late { /* a collective whose last member was ill placed */
	int32_t rank;
	bool other_node; /* otherwise it shared a cpu */
	uint32_t step;
	int64_t at_ns;		  /* fleet */
	int64_t cost_ns, error_ns;
};

struct placed_call { /* not yet looked at */
	struct lateness late;
	struct {
		uint32_t proc;
		int64_t enter_ns; /* host time */
	} others[PLACEMENT_OTHERS]; /* a sample of the members that were not last */
	uint32_t n_others, step;
	bool seen; /* by a look */
};

struct placement {
	struct roster *roster;
	struct placed_proc **v; /* by process; NULL */
	uint32_t n;
	bool any;
	uint32_t life;
	struct placed_late late[PLACEMENT_KEEP]; /* ring */
	uint64_t n_late;
	struct placed_call pending[PLACEMENT_PENDING]; /* ring */
	uint64_t n_pending, n_settled;
	/* Of the newest life's late collectives: of members that were not last, how many
	 * were looked at and ill placed; by how much those were late that a well placed one
	 * was last in. */
	uint64_t n_others, n_others_ill;
	int64_t well_late_ns, first_ns, last_ns;
};

void placement_fini(struct placement *s);
/* 0 or -ENOMEM. */
int placement_record(struct placement *s, const struct proc *p, int64_t at_ns, const char *category,
		     const char *fields_json, size_t n_fields);
void placement_call(struct placement *s, const struct match *m, const struct coll *c,
		    const struct lateness *late);
/* A look: what a look before this one has seen is decided. */
void placement_settle(struct placement *s, bool finishing);
