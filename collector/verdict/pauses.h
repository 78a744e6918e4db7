/* pauses.h - which pauses of a host made a collective late?
 *
 * A pause is a scope of host work that the program names, the outermost one, or the
 * time that a record of saving gives. It is before a call when it ends between the
 * rank's call before and this one. A call was late for pauses when its last members
 * had one, as long as the last one's or not much shorter: by so much as the latest that had
 * none was earlier, beyond the clocks' error. That is what the pauses cost the job; each that is long enough for a good part of
 * its rank's lateness is charged its share, once. A pause that more than half of the members make
 * in the same step, or before the same call, holds nobody up (but saving does: everyone waits for its slowest).
 *
 * The events of a host and its device, and records, come by different ways: a late call
 * is looked at after a second look, when both are there. Kept are the last few pauses
 * of a process and the last PAUSES_KEEP that were charged.
 */
#pragma once

#include "lateness.h"

#define PAUSES_KEEP 64
#define PAUSES_OF_PROC 64
#define PAUSES_CALLS 32
#define PAUSES_SAVES 8
#define PAUSES_PENDING 128

struct pause {
	int64_t begin_ns, end_ns; /* host time */
	uint32_t name;		  /* the roster's text + 1; 0 = none */
	uint32_t step;		  /* the host's; EVENT_STEP_UNKNOWN */
	bool charged, saves;
};

struct pauses_proc {
	struct pause v[PAUSES_OF_PROC]; /* ring, of what has ended */
	uint64_t n;
	uint32_t depth, step;
	struct pause open;
	int64_t calls[PAUSES_CALLS]; /* ring: when it entered them */
	uint64_t n_calls;
	int64_t first_call_ns;
	struct {
		int64_t at_ns, ms;
	} saves[PAUSES_SAVES]; /* ring: records of saving */
	uint64_t n_saves;
	int64_t saved_ns; /* in all */
};

struct late_pause {
	int32_t rank;
	uint32_t step, name;
	int64_t at_ns;		  /* fleet */
	int64_t pause_ns, cost_ns; /* its share of what the call was late */
	int64_t margin_ns, error_ns; /* how late its own rank was */
	bool saves, by_duration;
};

struct late_call { /* not yet looked at */
	struct lateness late;
	int64_t from_ns[LATENESS_MEMBERS]; /* host time: each one's call before */
	uint32_t step;
	bool seen; /* by a look */
};

struct pauses {
	struct roster *roster;
	struct pauses_proc **v; /* by process; NULL until it does something */
	uint32_t n;
	bool any; /* a pause or a record */
	uint32_t life;
	struct late_pause late[PAUSES_KEEP]; /* ring; of the newest life */
	uint64_t n_late;
	struct late_call pending[PAUSES_PENDING]; /* ring */
	uint64_t n_pending, n_settled;
	int64_t first_ns, last_ns; /* fleet: of the newest life's calls */
	uint32_t told_n; /* savings, when they were told last */
};

void pauses_fini(struct pauses *s);
/* 0 or -ENOMEM. */
int pauses_event(struct pauses *s, const struct proc *p, const struct event *ev);
int pauses_record(struct pauses *s, const struct proc *p, int64_t at_ns, const char *category,
		  const char *fields_json, size_t n_fields);
void pauses_call(struct pauses *s, const struct match *m, const struct coll *c,
		 const struct lateness *late);
/* A look: what a look before this one has seen is decided. */
void pauses_settle(struct pauses *s, bool finishing);
/* The i-th charged one that is kept, oldest first; NULL behind the last. */
const struct late_pause *pauses_late(const struct pauses *s, uint32_t i);
/* The time over which the kept ones came, from one mean distance before the first to the
 * last call; 0 unknown. */
int64_t pauses_span_ns(const struct pauses *s);
