/* losses.h - counts of what a network lost, as processes and hosts report them.
 *
 * A count may be the total so far or what is new since the last word: one that
 * never falls is read as a total. Bounded in number; of each the first and the last
 * value stay.
 */
#pragma once

#include "../align/roster.h"

enum loss_kind { LOSS_RETRANSMITS, LOSS_DROPS, LOSS_PAUSES, LOSS_N_KINDS };

struct loss {
	enum loss_kind kind;
	uint32_t host, proc; /* index; proc: who said it first */
	char of[40];	/* of retransmits the peer, of drops the class, of pauses the card; "" = not said */
	uint32_t n, n_positive;
	int64_t first, last, sum;
	bool fell, of_host; /* of_host: the record named a host, so it is no single rank's */
	int64_t first_at_ns, last_at_ns; /* host */
};

struct losses {
	struct loss *v;
	size_t n, n_alloc;
};

void losses_fini(struct losses *l);
/* -1: none of ours. */
int losses_kind(const char *category);
/* 0 or -ENOMEM. fields: a json_t object; a field host speaks for another host. */
int losses_note(struct losses *l, const struct roster *r, uint32_t proc, int64_t at_ns,
		enum loss_kind kind, const void *fields);
/* How many were lost while the job ran: what a total has grown by, or everything
 * where it was told once or anew each time. */
int64_t loss_grown(const struct loss *l);
