/* pairs_internal.h - what the files of pairs share.
 *
 * Everything is kept against a node's base: a line through its host time that
 * follows the rates which the probes tell and is never revised. e = theta - base
 * is what is left; |de/dt| is within the told bound of the rate, and growth_ps is
 * the integral of that bound. So a bound of e_a - e_b that held when the growth
 * of both was g holds at any other time opened by |growth - g|, before and after.
 */
#pragma once

#include "pairs.h"

#include <stddef.h>

#define N_KNOTS 64
#define N_MARKS 64    /* seconds of corrections kept */
#define N_EPOCHS 32   /* seconds of exits kept */
#define N_OPEN 16     /* calls of one second that are looked at */
#define N_OWN 32      /* durations of a member that was last */
#define MAX_CLASSES 8 /* a communicator; the longest unused goes */
#define TICK_NS INT64_C(1000000000)
#define ABSENT INT32_MIN

struct knot {
	int64_t host_ns, base_ns, growth_ps;
	double fraction; /* of base_ns, [0, 1) */
	double rate, rate_bound;
};

/* The correction that was known for one second: theta = base + c. */
struct mark {
	int64_t t_ns;
	float sd; /* INFINITY: no collective says anything */
	double c;
};

struct node {
	struct knot knots[N_KNOTS];
	uint64_t n_knots;
	bool told; /* by probes, since the last step */
	/* e by the probes, when growth was probe_growth_ps */
	int64_t probe_lo_ns, probe_hi_ns, probe_growth_ps;
	double probe_e, probe_sd;
	struct mark marks[N_MARKS];
	uint64_t n_marks;
	double x, sum, weight, centre_weight; /* scratch of the solver */
	double c, sd;			      /* newest */
	uint32_t part;			      /* root of those that collectives connect */
};

/* e_a - e_b <= v where the growth of both was growth_ps. */
struct bound {
	int64_t v_ns, growth_ps;
	uint64_t from; /* groups: bit index % 64 */
};

/* Exits of one kind and size class in one communicator. Arrays are by member,
 * rings of arrays one behind the other. */
struct exits {
	bool used, queued; /* queued: entries say nothing of durations */
	uint32_t kind, size;
	int64_t last_ns;
	int64_t open_ns; /* the open second; PAIRS_NONE */
	int64_t sum_ns;	 /* of its calls, since then */
	uint32_t n_open;
	uint64_t n_epochs;
	int64_t epoch_ns[N_EPOCHS];
	int32_t *open;		      /* [N_OPEN]: exit against the call's, ABSENT */
	int32_t *epoch;		      /* [N_EPOCHS]: their median */
	uint8_t *count;		      /* [N_EPOCHS]: of so many */
	int32_t *fit;		      /* newest: makes calls with absent members comparable */
	double noise;		      /* deviation of one exit, ns */
	uint64_t n_noise;	      /* words that it was learned from */
	double rate_var, rate_excess; /* of the rates against what probes told, (ns/s)^2 */

	/* how long the last to enter stayed, against the level of all */
	int32_t recent[N_OWN];
	uint32_t n_recent;
	float level_sd;
	int32_t *own; /* [N_OWN] */
	struct usual {
		uint32_t n_own, n_blocks;
		float early, early_sd; /* the low end, over blocks of N_OWN */
		float bias, sd;	       /* of the exit, from it */
	} * usual;

	double *f, *w; /* scratch of the solver: the fit and its weight */
};

struct group {
	uint32_t n_members;
	uint32_t *nodes;
	bool quarantined;
	uint64_t n_violations, n_doubtful;
	struct pairs_proof proof; /* that it is quarantined for */
	struct exits classes[MAX_CLASSES];
};

/* A call on the base: by node for the bounds, by member for the exits. */
struct visit {
	int64_t enter_ns, exit_ns;		 /* fleet by base; PAIRS_NONE */
	int64_t enter_growth_ps, exit_growth_ps; /* of the node then */
	int64_t now_growth_ps;
	uint32_t node;
};

struct pairs {
	struct pairs_config cfg;
	struct node *nodes;
	struct group *groups;
	uint32_t n_nodes, n_nodes_alloc, n_groups, n_groups_alloc;
	/* n_nodes <= PAIRS_MAX_CLOSED: [a * PAIRS_MAX_CLOSED + b]; otherwise against
	 * the reference: [2a] e_a - e_ref, [2a + 1] e_ref - e_a */
	struct bound *bounds;
	bool closed;	 /* bounds is a square */
	int64_t *square; /* the closure, as of the last second */
	uint64_t *square_from;
	struct visit *visits; /* scratch, by member */
	struct visit *merged; /* scratch, by distinct node of the call */
	uint32_t *place;      /* scratch: node -> merged + 1 */
	uint32_t n_visits_alloc;
	int64_t *sorted; /* scratch: medians */
	int64_t tick_ns; /* the last solved second; PAIRS_NONE */
};

/* pairs_node.c */
int64_t node_base(const struct node *n, int64_t host_ns, int64_t *ret_growth_ps);
/* By fleet time. */
int64_t node_base_at(const struct node *n, int64_t t_ns, int64_t *ret_growth_ps);
void node_mark(struct node *n, int64_t t_ns, double c, double sd);
struct mark node_correction(const struct node *n, int64_t t_ns);

/* Bounds wider than this are none, so that a few of them may be added. */
#define WIDEST_NS (INT64_C(1) << 61)

static inline int64_t pairs_plus(int64_t a, int64_t b)
{
	int64_t sum;

	if (a == PAIRS_UNBOUNDED || b == PAIRS_UNBOUNDED)
		return PAIRS_UNBOUNDED;
	if (__builtin_add_overflow(a, b, &sum))
		return a > 0 ? PAIRS_UNBOUNDED : -PAIRS_UNBOUNDED;
	return sum;
}

static inline bool pairs_is_sane(int64_t ns)
{
	return ns > -PAIRS_MAX_NS && ns < PAIRS_MAX_NS;
}

static inline int64_t opened_ns(int64_t v_ns, int64_t from_ps, int64_t to_ps)
{
	int64_t d = to_ps > from_ps ? to_ps - from_ps : from_ps - to_ps;

	return v_ns + d / 1000 + (d != 0);
}

/* pairs_bounds.c */
void bounds_forget_all(struct pairs *p);
int bounds_grow_nodes(struct pairs *p); /* after a node was added */
/* Two nodes at one time: what every question about them needs, taken once. */
struct moment {
	uint32_t node[2];
	int64_t base_ns[2], growth_ps[2];
	int64_t reference_ps; /* its growth; only where not closed */
};
void bounds_moment(const struct pairs *p, uint32_t i, uint32_t j, int64_t t_ns, struct moment *ret);
/* The least proven upper bound of e_first - e_second; back: of e_second - e_first. */
int64_t bounds_get(const struct pairs *p, const struct moment *m, bool back);
/* What the probes alone say of it. */
int64_t bounds_probe(const struct pairs *p, const struct moment *m, bool back);
/* Check one call, then take its bounds unless mute. v: by node, givers' enters
 * and takers' exits. Returns PAIRS_OK or PAIRS_VIOLATION; ret_from: who built
 * what it contradicts. */
int bounds_call(struct pairs *p, const struct pairs_call *c, struct visit *v, uint32_t n,
		int64_t t_ns, bool mute, struct pairs_proof *proof, uint64_t *ret_from);

/* pairs_closure.c */

/* false: what is proven contradicts itself. */
bool bounds_close(struct pairs *p, int64_t t_ns, struct pairs_proof *proof, uint64_t *ret_from);
/* Newest corrections that break what was closed last are moved inside. */
void bounds_clip(struct pairs *p);

/* pairs_exits.c */
bool exits_doubt(struct pairs *p, const struct group *g, const struct pairs_call *c);
int exits_call(struct pairs *p, struct group *g, const struct pairs_call *c, int64_t t_ns,
	       bool doubtful);
void exits_free(struct exits *x);
void exits_close(struct pairs *p, struct group *g, struct exits *x);
void exits_forget_member(struct group *g, uint32_t member);
struct exits *exits_find(const struct group *g, uint32_t kind, uint64_t bytes);
/* f and w of every member around t_ns. false when nobody was seen then. newest: a
 * second that is asked for once, from which rates are learned. */
bool exits_fit(const struct pairs *p, const struct group *g, struct exits *x, int64_t t_ns,
	       bool newest);

/* pairs_bias.c: the last to enter needs no other clock to say how long it stayed. */
void bias_note(struct exits *x, uint32_t member, uint32_t n_members, int64_t own_ns);
/* The shortest stay of a last one lately, 0 when too little is known. */
int64_t bias_shortest(const struct exits *x);
void bias_learn(const struct pairs *p, const struct group *g, struct exits *x);

/* pairs_solve.c */
void solve(struct pairs *p, int64_t second_ns);

/* Middle of n > 0 values, which are reordered. */
int64_t median_of(int64_t *v, uint32_t n);
