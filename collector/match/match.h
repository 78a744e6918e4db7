/* match.h - one collective, seen from all its ranks.
 *
 * A collective is (group, incarnation, sequence): every member's BEGIN and END
 * with that number belong together. A rank's events may come in any delay
 * behind the others'; a group remembers a window of sequences and forgets the
 * oldest first. Members are those that a record declares, otherwise those seen
 * so far.
 *
 * Facts are told in the order of the sequence, a group at a time: what is below
 * group.told_below is final, so one number a group says where a restarted core
 * must go on.
 */
#pragma once

#include "../align/roster.h"
#include "../facts.h"

#define MATCH_MAX_MEMBERS FACT_MAX_RANKS
#define MATCH_COMMON_CALLS 3 /* that begin together in a row, before a group is read so (split.h) */

struct arrival {
	int64_t enter_ns, exit_ns; /* host time; FACT_NONE */
	int64_t ready_ns; /* its work before ended on this thread or stream; FACT_NONE */
	uint32_t proc;		   /* index */
};

/* Who came last, kept after the arrivals are gone: the ranks that waited ask. */
struct coll_last {
	bool all_here; /* every expected member entered */
	bool decided;
	int32_t rank;
	uint32_t proc;	       /* index; its host's clock */
	int64_t host_ns;
	uint32_t next_proc;    /* who came before it, as far as can be told; UINT32_MAX = nobody */
	int64_t next_host_ns;
};

struct coll {
	uint64_t seq;
	bool used, told, changed, closed, mismatch, has_call, last_valid;
	uint8_t op, dtype;
	uint32_t step;
	uint32_t n_entered, n_done, n_alloc; /* done: entered and left */
	bool uneven; /* sizes differ where they honestly may */
	uint64_t bytes, first_chunk;
	int64_t first_now_ns, done_now_ns; /* core time */
	struct arrival *arrivals;	   /* by member; NULL once closed */
	struct coll_last last;
};

struct group {
	char *name;
	uint32_t life;
	uint32_t sibling; /* index + 1 of the next one of this name and life */
	bool known, changed; /* changed: not told since */
	uint32_t n_members, n_members_alloc, n_expected;
	int32_t *ranks;	  /* by member, in order of appearance */
	uint32_t *order;  /* members by rank */
	bool order_valid;
	struct idmap member_of;
	struct coll *v; /* by sequence */
	uint32_t n_slots;
	uint64_t told_below; /* everything below is final */
	uint64_t next_seq;   /* largest seen + 1 */
	bool started;
	uint8_t n_common; /* calls in a row that began together, up to MATCH_COMMON_CALLS */
	uint64_t common_seq; /* the newest of them */
};

struct match {
	struct roster *roster;
	struct facts *facts;
	uint32_t max_open; /* a group; power of two */
	uint32_t world_size; /* 0 = unknown */
	int64_t late_ns, now_ns;
	struct group *groups;
	uint32_t n_groups, n_groups_alloc;
	struct {
		uint32_t *slots;
		uint32_t n_slots;
	} index;
	/* freed blocks of arrivals by size: 4 << k */
	union arrival_block *spare[16];
	struct match_point *points; /* scratch */
	size_t n_points;
	struct host_gap *host_gaps; /* scratch, by host */
	uint32_t n_host_gaps;
	bool finishing;
	/* Each collective once, when it is final, before it is told for the last time and
	 * while its arrivals are there; may be NULL. 0 or negative errno. */
	int (*closed)(void *arg, const struct match *m, uint32_t group, const struct coll *c);
	void *closed_arg;
	struct evidence *evidence; /* of the hosts' clocks; NULL where all share one */
	struct ties *ties; /* of hosts that no probe ties; NULL = nobody's */
	uint64_t n_told, n_late, n_evicted;
};

void match_init(struct match *m, struct roster *r, struct facts *f, uint32_t max_open,
		int64_t late_ns);
void match_fini(struct match *m);

/* Several communicators may have one name: those whose declared members are all
 * others. Which of them does the rank mean? Index, made if new; negative errno. */
int64_t match_group(struct match *m, const char *name, uint32_t life, int32_t rank);
/* These are the members of a group of that name. Index; negative errno. */
int64_t match_declare(struct match *m, const char *name, uint32_t life, const int32_t *ranks,
		      size_t n);
/* The rank's place in the group; joins it if new. Negative errno. */
int64_t match_member(struct match *m, uint32_t group, int32_t rank);

struct match_call {
	uint32_t group, member, proc; /* indices */
	uint32_t seq_low;	      /* low 32 bits */
	uint8_t op, dtype;
	uint64_t bytes;
	uint32_t step;
	int64_t at_ns; /* host */
	int64_t ready_ns; /* host; of a begin, FACT_NONE = not known */
	uint64_t chunk;
};
/* ret_seq: the whole number. 0, 1 when the call is too old to be known (counted),
 * or negative errno. */
int match_begin(struct match *m, const struct match_call *c, uint64_t *ret_seq);
int match_end(struct match *m, const struct match_call *c);
/* The number nearest to what the group has reached. */
static inline uint64_t match_seq(const struct match *m, uint32_t group, uint32_t seq_low)
{
	const struct group *g = &m->groups[group];
	uint64_t seq = (g->next_seq & ~(uint64_t)UINT32_MAX) | seq_low;

	if (!g->started)
		return seq_low;
	if (seq > g->next_seq && seq - g->next_seq > UINT32_MAX / 2 && seq > UINT32_MAX)
		return seq - (UINT64_C(1) << 32);
	if (seq < g->next_seq && g->next_seq - seq > UINT32_MAX / 2)
		return seq + (UINT64_C(1) << 32);
	return seq;
}

/* Who was last in it, or NULL when nothing is known (any more). */
const struct coll_last *match_last(struct match *m, uint32_t group, uint64_t seq);
/* Of its input, as the first rank had it; 0 when it is not remembered. */
uint64_t match_bytes(const struct match *m, uint32_t group, uint64_t seq);
/* The chunk of its first event, UINT64_MAX when not remembered. */
uint64_t match_first_chunk(const struct match *m, uint32_t group, uint64_t seq);

/* A group as a saved core knew it; n_known 0 = membership unknown. In the order
 * of their numbers, before anything else. ranks: n int32_t, unaligned. */
int match_restore(struct match *m, const char *name, uint32_t life, uint32_t n_known,
		  uint64_t told_below, const void *ranks, uint32_t n);

int match_tick(struct match *m, int64_t now_ns);
int match_finish(struct match *m);
uint64_t match_low_water(const struct match *m);
