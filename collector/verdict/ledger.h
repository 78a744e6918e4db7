/* ledger.h - who called what: the calls of each communicator compared over its members.
 *
 * match/ keeps when ranks came; this keeps what they asked for. A call is known
 * from two sides: SUBMIT, the host's word (operation, type, root, tensor name), and
 * BEGIN, when it is under way (size too). A device that is stuck still lets the
 * host submit, so a rank's later calls are known although they never began.
 *
 * Of each call one shape is kept, and apart from it those of the ranks that asked
 * for something else ("odd"). Odd ones are kept for a few calls behind the first
 * of a group: what comes later follows from it. Memory is bounded by a window of
 * calls a group and a trail of launches a process.
 */
#pragma once

#include "messages.h"
#include "../match/match.h"

#define LEDGER_TRAIL 128

struct shape {
	uint64_t bytes;
	uint32_t name; /* the roster's text + 1 of the tensor; 0 = not said */
	int32_t root;  /* -1 = none or not said */
	uint8_t op, dtype;
	bool sized;
};

struct line { /* one call */
	uint64_t seq;
	bool used;
	struct shape shape;
	uint32_t n_entered, n_left, n_odd;
	uint32_t step;
	int64_t at_ns;	      /* fleet: the first word of it */
	int64_t entered_now_ns, last_now_ns; /* core time: the first entered, the last */
};

struct odd {
	uint64_t seq;
	uint32_t member;
	struct shape shape;
};

struct seat { /* a member; numbered as in match's group */
	bool seen;
	int32_t rank;
	uint32_t proc;
	uint64_t first;	  /* the first call heard of */
	uint64_t n_submitted, n_entered, n_left; /* behind the last one */
};

struct page { /* a group; numbered as in match */
	struct line *v;
	uint32_t n_slots;
	bool any;
	uint64_t first, next;
	struct seat *seats;
	uint32_t n_seats;
	struct odd *odds;
	size_t n_odds, n_odds_alloc;
	uint64_t first_odd; /* UINT64_MAX = none */
	int64_t news_now_ns;
	bool told; /* its first fault */
};

struct step_mark { /* on a rank's trail: a launch by name, or a call */
	uint32_t name, group; /* group: index + 1 */
	uint64_t seq;
};

struct ledger_proc {
	struct step_mark *trail; /* ring */
	uint64_t n_trail;
	uint32_t launch, launch_name; /* the last LAUNCH */
	uint32_t work_name, n_work;   /* what the host is in, how deep */
	uint32_t kernel_name, n_kernels; /* the newest on the device, how many run */
	int64_t work_now_ns, news_now_ns;
	uint64_t n_steps;  /* begun */
	bool lost, spoke; /* spoke: it has called something */
};

struct ledger {
	struct roster *roster;
	struct match *match;
	struct page *pages;
	uint32_t n_pages;
	struct ledger_proc *procs;
	uint32_t n_procs;
	struct messages messages;
	int64_t now_ns;
	bool replayed; /* the past is known in part: who is silent says nothing */
};

void ledger_fini(struct ledger *l);
/* One event that the analysis took, in its order. 0 or -ENOMEM. */
int ledger_event(struct ledger *l, struct proc *p, const struct event *ev, uint32_t restart_count);
/* Events of it are gone: its silence proves nothing. 0 or -ENOMEM. */
int ledger_lost(struct ledger *l, const struct proc *p);

/* NULL when it is not remembered. */
struct line *ledger_line(const struct page *p, uint64_t seq);
/* What this member asked for; false when it has not, or is not remembered. The
 * size is known only where it entered. */
bool ledger_shape(const struct page *p, uint32_t member, uint64_t seq, struct shape *ret);
/* Can both be the same call? What is not known does not speak against it. */
bool ledger_same(const struct shape *a, const struct shape *b);
/* NULL when nothing is known of it. */
struct ledger_proc *ledger_proc(const struct ledger *l, uint32_t proc);
const char *ledger_text(const struct ledger *l, uint32_t text); /* "" for 0 */
