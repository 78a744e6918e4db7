/* steps.h - where the time of each rank in each step went.
 *
 * Per (rank, step) the loop's own events make intervals on that rank's clock.
 * Exposed communication is the union of the intervals in which the loop was
 * blocked: its blocking collectives, and the tail of a backward from its last
 * bucket's SUBMIT on, when that bucket was reduced within it. The part of it
 * before the last rank arrived is waiting, and only that needs aligned time.
 * self is the rest of the step without evaluation. Phases are told without the
 * exposed communication inside them; of nested phases the outermost counts.
 *
 * A window of steps is open at a time. A step is told when every rank ended it
 * and every thread has passed its end (or a moment has gone by), again when
 * something late changes it, and forgotten in order.
 *
 * Each start of a job (a life; restart_count tells them apart) counts its steps
 * from 0; in the facts they go on, in order of restart_count. Only one life at a
 * time has the end of that line: events of others that lie beyond what their
 * life was given are held by the caller until it is over. A life that was
 * thought over, or that is heard of after a later one, goes on in a span of its
 * own at the end: numbers are never shared and what was told stays true. A step
 * that no rank ended has no number, unless its life may still end it.
 */
#pragma once

#include "../match/match.h"

#define STEPS_MAX_ITEMS 4096 /* phases, calls and buckets of one rank in one step */

enum step_item_kind {
	ITEM_PHASE,
	ITEM_SYNC, /* the loop was blocked in a call */
	ITEM_WORK, /* a host thread was in work that the program names */
	ITEM_CALL, /* on the device only this call was under way */
	ITEM_IDLE, /* nothing was */
};
struct step_item {
	int64_t begin_ns, end_ns; /* host time */
	uint64_t seq;
	uint32_t group; /* ITEM_SYNC, ITEM_CALL: index + 1 */
	uint32_t next;	/* index + 1 */
	uint8_t kind, phase;
};

struct step_bucket {
	int64_t ready_ns, submitted_ns, reduced_ns;
	uint64_t bytes, seq;
	uint32_t group; /* index + 1 */
	uint32_t next;	/* index + 1 */
	uint32_t bucket;
	uint16_t flags;
};

struct rank_step {
	int64_t begin_ns, end_ns; /* FACT_NONE */
	uint32_t proc;		  /* index */
	uint32_t items, buckets;  /* index + 1 of the newest */
	uint32_t n_items, n_events, n_open_buckets;
	uint64_t n_lost;
	/* What ran on its device (device.h). */
	int32_t n_open_work; /* below 0: it is heard of before its launch */
	uint32_t n_idles;
	int64_t device_ns;	/* when the last of it ended; FACT_NONE */
	int64_t compute_ns, more_calls_ns; /* more: of calls that have no item */
	int64_t pause_ns; /* of its host, the longest */
	int64_t from_ns, to_ns; /* as it was told last; FACT_NONE */
};

struct step {
	uint32_t step, life;
	bool used, told, changed, complete;
	uint32_t n_begun, n_ended, n_ranks; /* n_ranks: of the array */
	struct rank_step *ranks;
	struct step_item *items;
	struct step_bucket *buckets;
	uint32_t n_items, n_items_alloc, n_buckets, n_buckets_alloc;
	uint64_t first_chunk;
	int64_t first_end_now_ns, ready_now_ns, told_now_ns; /* core time */
};

struct device;

struct life { /* one start of the job; restart_count tells them apart */
	int32_t restart_count;
};

struct span { /* a life's own steps from own_first on, in the facts from first_step on */
	int32_t restart_count;
	uint32_t own_first, first_step;
	uint64_t begun_chunk; /* the newest chunk when it began */
	uint32_t n_cut;	      /* events of its unfinished last step, when the next one began */
};

/* Of steps_event(): nothing was done with it, give it again after the life got
 * a span; or only the begin of the next step, at the same time, is to be given. */
enum steps_outcome { STEPS_OK, STEPS_HOLD, STEPS_HOLD_NEXT };

/* Called with the facts of one step, by rank, when it is told first; and again
 * (again = true) when it changed. */
typedef int (*steps_told_fn)(void *arg, const struct fact_step *step,
			     const struct fact_rank_step *v, size_t n, bool again);

struct steps {
	struct roster *roster;
	struct match *match;
	struct facts *facts;
	uint32_t n_open_config;
	int64_t late_ns, now_ns;
	uint32_t world_size, n_gone;
	uint32_t n_told_of; /* ranks that there is word of; 0 = the whole world */
	struct step *v; /* by number */
	uint32_t n_slots;
	uint32_t base, next_step; /* everything below base is forgotten */
	uint32_t told_below;
	uint32_t n_seen; /* behind the last step that a rank ended, over restarts of the collector too */
	struct life *lives;
	uint32_t n_lives;
	struct device *devices; /* by process */
	uint32_t n_devices;
	struct span *spans; /* by first_step; the last has no end yet */
	uint32_t n_spans;
	int64_t heard_now_ns, held_now_ns; /* core time: the last span spoke; since when one waits */
	bool finishing; /* nothing more will come */
	steps_told_fn told;
	void *told_arg;
	/* A call ended on a process's device; may be NULL. 0 or negative errno. */
	int (*ended)(void *arg, const struct proc *p, uint32_t group, uint64_t seq,
		     const struct event *ev, const struct device *d);
	void *ended_arg;

	/* scratch */
	struct blocked *blocked;
	size_t n_blocked_alloc;
	struct self_of_rank *selves;
	struct fact_rank_step *rows;
	size_t n_rows_alloc;

	uint64_t n_told, n_late;
	uint64_t n_cut; /* events of a step that was cut although its life went on */
	bool any_complete;
	uint32_t first_complete, last_complete;
};

/* How many ranks end a complete step. */
static inline uint32_t steps_n_expected(const struct steps *s)
{
	return s->n_told_of && s->n_told_of < s->world_size ? s->n_told_of : s->world_size;
}

void steps_init(struct steps *s, struct roster *r, struct match *m, struct facts *f,
		uint32_t n_open, int64_t late_ns);
void steps_fini(struct steps *s);
/* A process's rank is known. Index of its incarnation; negative errno. */
int64_t steps_life(struct steps *s, int32_t restart_count);
/* May that life have the end of the line now? *ret_over: the last one is gone. */
bool steps_may_begin(struct steps *s, int32_t restart_count, bool *ret_over);
/* It has it. over: what the last one left unfinished stays so. 0 or -ENOMEM. */
int steps_begin(struct steps *s, int32_t restart_count, bool over, uint64_t chunk);
int steps_add_span(struct steps *s, const struct span *v);
int steps_world(struct steps *s, uint32_t world_size);

/* One event of a process whose rank is known. enum steps_outcome or negative errno. */
int steps_event(struct steps *s, struct proc *p, struct ring *ring, const struct event *ev,
		uint64_t chunk);
void steps_lost(struct steps *s, struct proc *p, uint64_t n);
int steps_tick(struct steps *s, int64_t now_ns);
int steps_finish(struct steps *s);
uint64_t steps_low_water(const struct steps *s);
