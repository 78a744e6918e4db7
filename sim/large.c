#include "large.h"

#include "../collector/core.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define START_NS INT64_C(1700000000000000000)
#define HOST_RAW_NS INT64_C(5000000000000)
#define LAUNCH_NS 5000
#define CHUNK 1008
#define TICK_NS INT64_C(100000000)
#define NONE UINT32_MAX
#define MAX_WORLD 65536u

enum { RING_HOST, RING_DEVICE, N_RINGS };
enum { NAME_TP = 1, NAME_DP, NAME_COMPUTE, NAME_FROM_UP, NAME_TO_UP, NAME_FROM_DOWN, NAME_TO_DOWN };
enum { STREAM_COMPUTE, STREAM_TP, STREAM_DP, STREAM_P2P };

enum op_kind { OP_COMPUTE, OP_CALL_TP, OP_CALL_DP, OP_SEND_UP, OP_SEND_DOWN, OP_FROM_UP, OP_FROM_DOWN };

struct buffer {
	struct event *v;
	size_t n, n_alloc;
};

/* A group's call that is waited for: calls of a group come one after the other. */
struct gathering {
	uint32_t n_here;
	int32_t last_rank;
	int64_t first_ns, last_ns;
	uint64_t seq;
};

struct channel { /* from one rank to its neighbour: sent times, in order */
	int64_t *sent_ns;
	uint32_t n_sent, n_taken;
	bool waiting;
};

/* The job once; the one without the fault is another. */
struct timeline {
	bool faulty;
	int64_t *now_ns;  /* by rank: the loop, or the device */
	int64_t *host_ns; /* by rank: the thread that launches ahead of the device */
	uint32_t *at;	 /* by rank: its place in its stage's list */
	struct gathering *tp, *dp;
	struct channel *down, *up; /* by sending rank: to the next stage, to the one before */
	uint32_t *ready, n_ready;
};

struct large {
	struct large_config cfg;
	uint32_t world, n_hosts, step;
	uint8_t **ops; /* by stage */
	uint32_t *n_ops;
	int64_t *offset_ns; /* by host: fleet - host */
	struct timeline real, healthy;
	struct buffer *events[N_RINGS]; /* by rank */
	uint64_t *n_messages[4];	/* by rank: from up, to up, from down, to down */
	uint32_t *n_launches;		/* by rank */
	uint8_t *streams;		/* by rank: of the last launch */
	uint64_t chunk;
	int64_t ticked_ns, begin_ns, end_ns;
	bool hung, no_memory;
};

static uint64_t mix(uint64_t z)
{
	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

/* In [0, 1), by place: drawn alike with the fault and without. */
static double draw(const struct large *l, uint64_t a, uint64_t b)
{
	uint64_t z = mix(l->cfg.seed + UINT64_C(0x9e3779b97f4a7c15) * (l->step + 1));

	return (double)(mix(mix(z + a) + b) >> 11) * 0x1p-53;
}

static int64_t vary(const struct large *l, int64_t ns, uint64_t a, uint64_t b)
{
	return (int64_t)((double)ns * (1 + l->cfg.noise * (2 * draw(l, a, b) - 1)));
}

/* ---- layout ---- */

static uint32_t stage_of(const struct large *l, uint32_t rank)
{
	return rank / l->cfg.tp % l->cfg.pp;
}

static uint32_t tp_of(const struct large *l, uint32_t rank)
{
	return rank / l->cfg.tp;
}

static uint32_t dp_of(const struct large *l, uint32_t rank)
{
	return rank % (l->cfg.pp * l->cfg.tp);
}

uint32_t large_world(const struct large *l)
{
	return l->world;
}

uint32_t large_n_hosts(const struct large *l)
{
	return l->n_hosts;
}

static bool is_slow(const struct large *l, uint32_t rank)
{
	switch (l->cfg.fault) {
	case LARGE_SLOW_RANK:
		return rank == l->cfg.target;
	case LARGE_SLOW_HOST:
		return rank / l->cfg.ranks_a_host == l->cfg.target;
	case LARGE_SLOW_STAGE:
		return stage_of(l, rank) == l->cfg.target;
	case LARGE_SLOW_ALL:
		return true;
	case LARGE_HEALTHY:
	case LARGE_SLOW_LINK:
	case LARGE_PAUSES:
	case LARGE_SKIPPED:
	case LARGE_N_FAULTS:
		break;
	}
	return false;
}

size_t large_culprits(const struct large *l, int32_t *out, size_t max)
{
	size_t n = 0;

	for (uint32_t rank = 0; rank < l->world; rank++)
		if (is_slow(l, rank) || (l->cfg.fault == LARGE_SKIPPED && rank == l->cfg.target)) {
			if (n < max)
				out[n] = (int32_t)rank;
			n++;
		}
	return n;
}

/* ---- what a stage does in a step ---- */

struct list {
	uint8_t *v;
	uint32_t n;
};

static void put(struct list *l, enum op_kind kind)
{
	l->v[l->n++] = (uint8_t)kind;
}

/* A forward or backward of one micro-batch: n calls with compute before each. */
static void put_work(const struct large *l, struct list *ops, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		put(ops, OP_COMPUTE);
		if (l->cfg.tp > 1)
			put(ops, OP_CALL_TP);
	}
}

static void put_pass(const struct large *l, struct list *ops, uint32_t stage, uint32_t half, uint32_t n)
{
	bool first = stage == 0, last = stage == l->cfg.pp - 1, forward = half % 2 == 0;

	if (forward ? !first : !last)
		put(ops, forward ? OP_FROM_UP : OP_FROM_DOWN);
	put_work(l, ops, n);
	if (forward ? !last : !first)
		put(ops, forward ? OP_SEND_DOWN : OP_SEND_UP);
}

/* One forward, one backward; what does not divide is done in the first passes. */
static bool make_ops(struct large *l, uint32_t stage)
{
	uint32_t n_tp = l->cfg.n_calls - l->cfg.n_dp_calls, n_halves = 2 * l->cfg.n_micro;
	uint32_t base = n_tp / n_halves, rest = n_tp % n_halves;
	uint32_t warm = l->cfg.pp - 1 - stage, n_fwd = 0, n_bwd = 0;
	struct list ops = { .v = malloc(2 * (size_t)l->cfg.n_calls + 2 * (size_t)n_halves + 2) };

	if (!ops.v)
		return false;
	while (n_bwd < l->cfg.n_micro) {
		bool forward = n_fwd < l->cfg.n_micro && n_fwd <= n_bwd + warm;
		uint32_t number = forward ? 2 * n_fwd : 2 * n_bwd + 1;

		put_pass(l, &ops, stage, number, base + (number < rest));
		*(forward ? &n_fwd : &n_bwd) += 1;
	}
	for (uint32_t i = 0; i < l->cfg.n_dp_calls; i++) {
		put(&ops, OP_COMPUTE);
		put(&ops, OP_CALL_DP);
	}
	l->ops[stage] = ops.v;
	l->n_ops[stage] = ops.n;
	return true;
}

/* ---- events ---- */

static void say(struct large *l, unsigned ring, uint32_t rank, int64_t at_ns, enum event_kind kind,
		unsigned flags, uint32_t name, uint64_t low, uint64_t b)
{
	struct buffer *buf = &l->events[ring][rank];

	if (buf->n == buf->n_alloc) {
		size_t want = buf->n_alloc ? 2 * buf->n_alloc : 256;
		struct event *grown = realloc(buf->v, want * sizeof *grown);

		if (!grown) {
			l->no_memory = true;
			return;
		}
		buf->v = grown;
		buf->n_alloc = want;
	}
	buf->v[buf->n++] = (struct event){
		.tick = (uint64_t)(at_ns - l->offset_ns[rank / l->cfg.ranks_a_host]),
		.kind = (uint16_t)kind, .flags = (uint16_t)flags, .name = name,
		.a = event_a(l->step, (uint32_t)low), .b = b,
	};
}

/* Work for the device, which cannot begin before it is launched. */
static void issue(const struct large *l, struct timeline *t, uint32_t rank)
{
	if (!l->cfg.device)
		return;
	t->host_ns[rank] += LAUNCH_NS;
	if (t->now_ns[rank] < t->host_ns[rank])
		t->now_ns[rank] = t->host_ns[rank];
}

/* Of what was just issued. Its number. */
static uint32_t say_launch(struct large *l, uint32_t rank, unsigned stream, uint32_t name)
{
	uint32_t number = ++l->n_launches[rank];

	say(l, RING_HOST, rank, l->real.host_ns[rank], EVENT_LAUNCH, stream, name, number, 0);
	/* One thing after the other; in a stream that needs no word. */
	if (number > 1 && l->streams[rank] != stream)
		say(l, RING_HOST, rank, l->real.host_ns[rank], EVENT_STREAM_WAIT, stream, 0, number,
		    number - 1);
	l->streams[rank] = (uint8_t)stream;
	return number;
}

static void say_compute(struct large *l, uint32_t rank, int64_t begin_ns, int64_t end_ns)
{
	uint32_t number;

	if (!l->cfg.device)
		return;
	number = say_launch(l, rank, STREAM_COMPUTE, NAME_COMPUTE);
	say(l, RING_DEVICE, rank, begin_ns, EVENT_KERNEL_BEGIN, STREAM_COMPUTE, NAME_COMPUTE,
	    number, 0);
	say(l, RING_DEVICE, rank, end_ns, EVENT_KERNEL_END, STREAM_COMPUTE, NAME_COMPUTE, number,
	    0);
}

static void say_begin(struct large *l, uint32_t rank, int64_t at_ns, unsigned flags, uint32_t name,
		      uint64_t seq, unsigned stream)
{
	if (l->cfg.device) {
		uint32_t number = say_launch(l, rank, stream, 0);

		say(l, RING_HOST, rank, l->real.host_ns[rank], EVENT_COLL_SUBMIT, flags, name, seq,
		    event_submit_b(-1, number));
	}
	say(l, l->cfg.device ? RING_DEVICE : RING_HOST, rank, at_ns, EVENT_COLL_BEGIN, flags, name,
	    seq, 4096 | (l->cfg.device ? 0 : EVENT_COLL_SYNC_BIT));
}

static void say_end(struct large *l, uint32_t rank, int64_t at_ns, unsigned flags, uint32_t name,
		    uint64_t seq)
{
	say(l, l->cfg.device ? RING_DEVICE : RING_HOST, rank, at_ns, EVENT_COLL_END, flags, name,
	    seq, 4096 | (l->cfg.device ? 0 : EVENT_COLL_SYNC_BIT));
}

/* ---- one step ---- */

static bool wears_fault(const struct large *l, const struct timeline *t)
{
	return t->faulty && l->step >= l->cfg.from_step;
}

static void compute(struct large *l, struct timeline *t, uint32_t rank)
{
	int64_t ns = vary(l, l->cfg.compute_ns, rank, t->at[rank]), begin_ns;

	if (wears_fault(l, t) && is_slow(l, rank))
		ns = (int64_t)((double)ns * l->cfg.factor);
	if (wears_fault(l, t) && l->cfg.fault == LARGE_PAUSES && t->at[rank] == 0 &&
	    rank == (uint32_t)(draw(l, MAX_WORLD, 0) * l->world))
		ns += (int64_t)(l->cfg.factor * (double)l->cfg.compute_ns);
	issue(l, t, rank);
	begin_ns = t->now_ns[rank];
	t->now_ns[rank] += ns;
	if (t->faulty)
		say_compute(l, rank, begin_ns, t->now_ns[rank]);
}

static void wake(struct timeline *t, uint32_t rank)
{
	t->ready[t->n_ready++] = rank;
}

/* All are there: the call ends on every member. */
static void end_call(struct large *l, struct timeline *t, bool tp, uint32_t group)
{
	struct gathering *g = tp ? &t->tp[group] : &t->dp[group];
	uint32_t n = tp ? l->cfg.tp : l->cfg.dp, stride = tp ? 1 : l->cfg.pp * l->cfg.tp;
	uint32_t first = tp ? group * l->cfg.tp : group;
	int64_t ns = vary(l, l->cfg.transfer_ns, MAX_WORLD + 1 + (tp ? 0u : MAX_WORLD) + group, g->seq);
	unsigned flags = event_coll_flags(OP_ALL_REDUCE, DTYPE_BF16);
	char name[32];

	if (wears_fault(l, t) && tp && l->cfg.fault == LARGE_SLOW_LINK && group == l->cfg.target)
		ns = (int64_t)((double)ns * l->cfg.factor);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t rank = first + i * stride;

		t->now_ns[rank] = g->last_ns + ns;
		t->at[rank]++;
		wake(t, rank);
		if (t->faulty)
			say_end(l, rank, t->now_ns[rank], flags, tp ? NAME_TP : NAME_DP, g->seq);
	}
	if (t->faulty && l->cfg.on_call) {
		snprintf(name, sizeof name, "%s %u", tp ? "tp" : "dp", group);
		l->cfg.on_call(l->cfg.arg, name, g->seq, g->last_rank, g->first_ns, g->last_ns,
			       g->last_ns + ns);
	}
	g->n_here = 0;
	g->seq++;
}

static void enter_call(struct large *l, struct timeline *t, bool tp, uint32_t rank)
{
	uint32_t group = tp ? tp_of(l, rank) : dp_of(l, rank);
	struct gathering *g = tp ? &t->tp[group] : &t->dp[group];
	int64_t now_ns;

	issue(l, t, rank);
	now_ns = t->now_ns[rank];
	if (g->n_here == 0 || now_ns < g->first_ns)
		g->first_ns = now_ns;
	if (g->n_here == 0 || now_ns > g->last_ns) {
		g->last_ns = now_ns;
		g->last_rank = (int32_t)rank;
	}
	if (t->faulty)
		say_begin(l, rank, now_ns, event_coll_flags(OP_ALL_REDUCE, DTYPE_BF16),
			  tp ? NAME_TP : NAME_DP, g->seq, tp ? STREAM_TP : STREAM_DP);
	if (++g->n_here == (tp ? l->cfg.tp : l->cfg.dp))
		end_call(l, t, tp, group);
}

static void send(struct large *l, struct timeline *t, uint32_t rank, bool down)
{
	struct channel *c = down ? &t->down[rank] : &t->up[rank];
	uint32_t peer = down ? rank + l->cfg.tp : rank - l->cfg.tp;
	int64_t now_ns;

	issue(l, t, rank);
	now_ns = t->now_ns[rank];
	if (t->faulty) {
		uint32_t name = down ? NAME_TO_DOWN : NAME_TO_UP;
		uint64_t seq = l->n_messages[down ? 3 : 1][rank]++;
		unsigned flags = event_coll_flags(OP_SEND, DTYPE_BF16);

		/* Handed over and forgotten: it does not hold the sender. */
		say_begin(l, rank, now_ns, flags, name, seq, STREAM_P2P);
		say_end(l, rank, now_ns, flags, name, seq);
	}
	c->sent_ns[c->n_sent++] = now_ns;
	t->at[rank]++;
	if (c->waiting) {
		c->waiting = false;
		wake(t, peer);
	}
}

/* False while there is nothing to take. */
static bool receive(struct large *l, struct timeline *t, uint32_t rank, bool from_up)
{
	uint32_t peer = from_up ? rank - l->cfg.tp : rank + l->cfg.tp;
	struct channel *c = from_up ? &t->down[peer] : &t->up[peer];
	int64_t begin_ns, there_ns;

	if (c->n_taken == c->n_sent) {
		c->waiting = true;
		return false;
	}
	issue(l, t, rank);
	begin_ns = t->now_ns[rank];
	there_ns = c->sent_ns[c->n_taken++] + l->cfg.transfer_ns;
	if (there_ns > t->now_ns[rank])
		t->now_ns[rank] = there_ns;
	t->at[rank]++;
	if (t->faulty) {
		uint32_t name = from_up ? NAME_FROM_UP : NAME_FROM_DOWN;
		uint64_t seq = l->n_messages[from_up ? 0 : 2][rank]++;
		unsigned flags = event_coll_flags(OP_RECV, DTYPE_BF16);

		say_begin(l, rank, begin_ns, flags, name, seq, STREAM_P2P);
		say_end(l, rank, t->now_ns[rank], flags, name, seq);
	}
	return true;
}

static bool skips(const struct large *l, const struct timeline *t, uint32_t rank)
{
	return t->faulty && l->cfg.fault == LARGE_SKIPPED && l->step == l->cfg.from_step &&
	       rank == l->cfg.target && t->at[rank] + 1 == l->n_ops[stage_of(l, rank)];
}

/* Until the rank has to wait for somebody, or its step is done. */
static void run_rank(struct large *l, struct timeline *t, uint32_t rank)
{
	uint32_t stage = stage_of(l, rank);

	while (t->at[rank] < l->n_ops[stage]) {
		enum op_kind kind = l->ops[stage][t->at[rank]];

		if (skips(l, t, rank)) {
			t->at[rank]++;
			return;
		}
		if (kind == OP_COMPUTE) {
			compute(l, t, rank);
			t->at[rank]++;
		} else if (kind == OP_CALL_TP || kind == OP_CALL_DP) {
			enter_call(l, t, kind == OP_CALL_TP, rank);
			return; /* who comes last wakes all, itself too */
		} else if (kind == OP_SEND_UP || kind == OP_SEND_DOWN) {
			send(l, t, rank, kind == OP_SEND_DOWN);
		} else if (!receive(l, t, rank, kind == OP_FROM_UP)) {
			return;
		}
	}
}

static void begin_step(struct large *l, struct timeline *t, uint32_t rank)
{
	t->at[rank] = 0;
	t->down[rank].n_sent = t->down[rank].n_taken = 0;
	t->up[rank].n_sent = t->up[rank].n_taken = 0;
	t->host_ns[rank] = t->now_ns[rank];
	wake(t, rank);
	if (!t->faulty)
		return;
	l->events[RING_HOST][rank].n = l->events[RING_DEVICE][rank].n = 0;
	if (l->step == 0)
		say(l, RING_HOST, rank, t->now_ns[rank], EVENT_STEP_BEGIN, 0, 0, 0, 0);
}

static void end_step(struct large *l, struct timeline *t, uint32_t rank)
{
	int64_t now_ns = t->now_ns[rank];

	if (t->at[rank] < l->n_ops[stage_of(l, rank)]) {
		l->hung = true;
		return;
	}
	if (l->cfg.device) {
		say(l, RING_HOST, rank, t->host_ns[rank], EVENT_HOST_WAIT_BEGIN, 0, 0, 0, 0);
		say(l, RING_HOST, rank, now_ns, EVENT_HOST_WAIT_END, 0, 0, 0, 0);
	}
	say(l, RING_HOST, rank, now_ns, EVENT_STEP_END, 0, 0, 0, 0);
}

static void spread(const struct large *l, const struct timeline *t, int64_t *min_ns, int64_t *max_ns)
{
	*min_ns = INT64_MAX;
	*max_ns = INT64_MIN;
	for (uint32_t rank = 0; rank < l->world; rank++) {
		*min_ns = t->now_ns[rank] < *min_ns ? t->now_ns[rank] : *min_ns;
		*max_ns = t->now_ns[rank] > *max_ns ? t->now_ns[rank] : *max_ns;
	}
}

/* Earliest begin to latest end. */
static int64_t run_step(struct large *l, struct timeline *t, int64_t *ret_begin_ns,
			int64_t *ret_end_ns)
{
	int64_t ignored;

	spread(l, t, ret_begin_ns, &ignored);
	t->n_ready = 0;
	for (uint32_t rank = l->world; rank-- > 0;)
		begin_step(l, t, rank);
	while (t->n_ready > 0)
		run_rank(l, t, t->ready[--t->n_ready]);
	for (uint32_t rank = 0; t->faulty && rank < l->world; rank++)
		end_step(l, t, rank);
	spread(l, t, &ignored, ret_end_ns);
	return *ret_end_ns - *ret_begin_ns;
}

int large_next(struct large *l, struct large_step *ret)
{
	int64_t begin_ns, end_ns;

	if (l->hung)
		return 1;
	if (l->begin_ns) /* the first has no step before it */
		l->step++;
	*ret = (struct large_step){ 0 };
	ret->healthy_dur_ns = run_step(l, &l->healthy, &begin_ns, &end_ns);
	ret->dur_ns = run_step(l, &l->real, &l->begin_ns, &l->end_ns);
	ret->begin_ns = l->begin_ns;
	ret->end_ns = l->end_ns;
	ret->hangs = l->hung;
	for (uint32_t rank = 0; rank < l->world; rank++)
		ret->n_events += l->events[RING_HOST][rank].n + l->events[RING_DEVICE][rank].n;
	return l->no_memory ? -ENOMEM : 0;
}

/* ---- to the core ---- */

static int introduce_groups(const struct large *l, struct core *c)
{
	int32_t *ranks = malloc(l->world * sizeof *ranks);
	uint32_t n_tp = l->world / l->cfg.tp, n_dp = l->cfg.pp * l->cfg.tp;
	char name[32];
	int r = ranks ? 0 : -ENOMEM;

	for (uint32_t g = 0; r == 0 && g < n_tp; g++) {
		for (uint32_t i = 0; i < l->cfg.tp; i++)
			ranks[i] = (int32_t)(g * l->cfg.tp + i);
		snprintf(name, sizeof name, "tp %u", g);
		r = core_group(c, name, ranks, l->cfg.tp);
	}
	for (uint32_t g = 0; r == 0 && g < n_dp; g++) {
		for (uint32_t i = 0; i < l->cfg.dp; i++)
			ranks[i] = (int32_t)(g + i * n_dp);
		snprintf(name, sizeof name, "dp %u", g);
		r = core_group(c, name, ranks, l->cfg.dp);
	}
	free(ranks);
	return r;
}

void large_name(const struct large *l, uint32_t rank, uint32_t name, char *out, size_t n_out)
{
	uint32_t up = rank - l->cfg.tp, down = rank + l->cfg.tp;
	char names[LARGE_N_NAMES][40] = { "" };

	snprintf(names[NAME_TP], sizeof *names, "tp %u", tp_of(l, rank));
	snprintf(names[NAME_DP], sizeof *names, "dp %u", dp_of(l, rank));
	snprintf(names[NAME_COMPUTE], sizeof *names, "compute");
	snprintf(names[NAME_FROM_UP], sizeof *names, "default p2p %u>%u", up, rank);
	snprintf(names[NAME_TO_UP], sizeof *names, "default p2p %u>%u", rank, up);
	snprintf(names[NAME_FROM_DOWN], sizeof *names, "default p2p %u>%u", down, rank);
	snprintf(names[NAME_TO_DOWN], sizeof *names, "default p2p %u>%u", rank, down);
	snprintf(out, n_out, "%s", name < LARGE_N_NAMES ? names[name] : "");
}

size_t large_events(const struct large *l, uint32_t rank, unsigned ring, const struct event **ret)
{
	*ret = ring < N_RINGS ? l->events[ring][rank].v : NULL;
	return ring < N_RINGS ? l->events[ring][rank].n : 0;
}

static int introduce_rank(const struct large *l, struct core *c, uint32_t rank)
{
	char name[40];
	int r = core_process(c, &(struct core_process){ .process = rank,
							.host = rank / l->cfg.ranks_a_host,
							.rank = (int32_t)rank,
							.world_size = (int32_t)l->world });

	for (uint32_t i = 1; r == 0 && i < LARGE_N_NAMES; i++) {
		large_name(l, rank, i, name, sizeof name);
		r = core_name(c, rank, i, name, strlen(name));
	}
	return r;
}

int large_introduce(const struct large *l, struct core *c)
{
	bool one_clock = l->cfg.max_offset_ns == 0;
	char name[32];
	int r = 0;

	for (uint32_t h = 0; r == 0 && h < l->n_hosts; h++) {
		bool ours = one_clock || h == 0;

		snprintf(name, sizeof name, "host-%u", h);
		r = core_host(c, h, ours, ours ? l->offset_ns[h] : 0);
		if (r == 0)
			r = core_host_name(c, h, name);
	}
	for (uint32_t rank = 0; r == 0 && rank < l->world; rank++)
		r = introduce_rank(l, c, rank);
	return r == 0 ? introduce_groups(l, c) : r;
}

/* Every host's clock against the collector's, 20 to 60 us a way. */
static int exchange(struct large *l, struct core *c, int64_t at_ns)
{
	int r = 0;

	for (uint32_t h = 1; r == 0 && l->cfg.max_offset_ns && h < l->n_hosts; h++) {
		int64_t there = 20000 + (int64_t)(draw(l, 3 * MAX_WORLD + h, (uint64_t)at_ns) * 40000);
		int64_t back = 20000 + (int64_t)(draw(l, 4 * MAX_WORLD + h, (uint64_t)at_ns) * 40000);

		r = core_exchange(c, h, (host_time){ at_ns - l->offset_ns[h] },
				  (fleet_time){ at_ns + there }, (fleet_time){ at_ns + there + 5000 },
				  (host_time){ at_ns + there + 5000 + back - l->offset_ns[h] });
	}
	return r;
}

int large_feed(struct large *l, struct core *c)
{
	int r = 0;

	if (!l->ticked_ns) {
		l->ticked_ns = l->begin_ns - 2 * TICK_NS;
		r = exchange(l, c, l->ticked_ns);
		if (r == 0)
			r = core_tick(c, (fleet_time){ l->ticked_ns });
	}
	for (uint32_t rank = 0; r == 0 && rank < l->world; rank++)
		for (unsigned ring = 0; r == 0 && ring < N_RINGS; ring++) {
			const struct buffer *buf = &l->events[ring][rank];

			for (size_t i = 0; r == 0 && i < buf->n; i += CHUNK)
				r = core_events(c, rank, ring, ++l->chunk, buf->v + i,
						buf->n - i < CHUNK ? buf->n - i : CHUNK);
		}
	while (r == 0 && l->ticked_ns < l->end_ns) {
		l->ticked_ns += TICK_NS;
		r = exchange(l, c, l->ticked_ns);
		if (r == 0)
			r = core_tick(c, (fleet_time){ l->ticked_ns });
	}
	return r;
}

/* ---- life ---- */

static bool make_timeline(struct large *l, struct timeline *t, bool faulty)
{
	uint32_t n = l->world;

	t->faulty = faulty;
	t->now_ns = calloc(n, sizeof *t->now_ns);
	t->host_ns = calloc(n, sizeof *t->host_ns);
	t->at = calloc(n, sizeof *t->at);
	t->tp = calloc(n / l->cfg.tp, sizeof *t->tp);
	t->dp = calloc(n / l->cfg.dp, sizeof *t->dp);
	t->down = calloc(n, sizeof *t->down);
	t->up = calloc(n, sizeof *t->up);
	t->ready = calloc(2 * (size_t)n, sizeof *t->ready);
	if (!t->now_ns || !t->host_ns || !t->at || !t->tp || !t->dp || !t->down || !t->up || !t->ready)
		return false;
	for (uint32_t rank = 0; rank < n; rank++) {
		t->now_ns[rank] = START_NS + (int64_t)(draw(l, 5 * MAX_WORLD, rank) * 1e6);
		t->down[rank].sent_ns = calloc(l->cfg.n_micro, sizeof(int64_t));
		t->up[rank].sent_ns = calloc(l->cfg.n_micro, sizeof(int64_t));
		if (!t->down[rank].sent_ns || !t->up[rank].sent_ns)
			return false;
	}
	return true;
}

static void free_timeline(const struct large *l, struct timeline *t)
{
	for (uint32_t rank = 0; rank < l->world; rank++) {
		if (t->down)
			free(t->down[rank].sent_ns);
		if (t->up)
			free(t->up[rank].sent_ns);
	}
	free(t->now_ns);
	free(t->host_ns);
	free(t->at);
	free(t->tp);
	free(t->dp);
	free(t->down);
	free(t->up);
	free(t->ready);
}

static bool settle_config(struct large *l)
{
	struct large_config *c = &l->cfg;
	uint64_t world = (uint64_t)c->dp * c->pp * c->tp;

	if (world == 0 || world > MAX_WORLD || c->dp > MAX_WORLD || c->pp > MAX_WORLD ||
	    c->noise < 0 || c->noise >= 1 || c->compute_ns <= 0 || c->transfer_ns <= 0)
		return false;
	l->world = (uint32_t)world;
	c->n_micro = c->n_micro ? c->n_micro : c->pp > 1 ? 4 * c->pp : 1;
	if (c->n_dp_calls == 0)
		c->n_dp_calls = c->tp == 1 && c->pp == 1 ? c->n_calls : (c->n_calls + 7) / 8;
	c->ranks_a_host = c->ranks_a_host ? c->ranks_a_host : 8;
	l->n_hosts = (l->world + c->ranks_a_host - 1) / c->ranks_a_host;
	if (c->fault == LARGE_SKIPPED && c->dp < 2)
		return false; /* nobody would wait */
	if (c->tp == 1 && c->pp == 1)
		return c->n_calls >= c->n_dp_calls;
	return c->n_calls >= c->n_dp_calls && c->n_calls - c->n_dp_calls >= 2 * c->n_micro;
}

int large_new(struct large **ret, const struct large_config *cfg)
{
	struct large *l = calloc(1, sizeof *l);
	bool fine;

	if (!l)
		return -ENOMEM;
	l->cfg = *cfg;
	if (!settle_config(l)) {
		free(l);
		return -EINVAL;
	}
	l->ops = calloc(l->cfg.pp, sizeof *l->ops);
	l->n_ops = calloc(l->cfg.pp, sizeof *l->n_ops);
	l->offset_ns = calloc(l->n_hosts, sizeof *l->offset_ns);
	l->n_launches = calloc(l->world, sizeof *l->n_launches);
	l->streams = calloc(l->world, sizeof *l->streams);
	fine = l->ops && l->n_ops && l->offset_ns && l->n_launches && l->streams;
	for (unsigned i = 0; i < N_RINGS; i++)
		fine &= (l->events[i] = calloc(l->world, sizeof **l->events)) != NULL;
	for (unsigned i = 0; i < 4; i++)
		fine &= (l->n_messages[i] = calloc(l->world, sizeof **l->n_messages)) != NULL;
	fine = fine && make_timeline(l, &l->real, true) && make_timeline(l, &l->healthy, false);
	for (uint32_t stage = 0; fine && stage < l->cfg.pp; stage++)
		fine = make_ops(l, stage);
	for (uint32_t h = 0; fine && h < l->n_hosts; h++)
		l->offset_ns[h] = START_NS - HOST_RAW_NS +
				  (h ? (int64_t)((2 * draw(l, 6 * MAX_WORLD, h) - 1) *
						 (double)l->cfg.max_offset_ns) : 0);
	if (fine) {
		*ret = l;
		return 0;
	}
	large_free(l);
	return -ENOMEM;
}

void large_free(struct large *l)
{
	if (!l)
		return;
	free_timeline(l, &l->real);
	free_timeline(l, &l->healthy);
	for (unsigned i = 0; i < N_RINGS; i++) {
		for (uint32_t rank = 0; l->events[i] && rank < l->world; rank++)
			free(l->events[i][rank].v);
		free(l->events[i]);
	}
	for (unsigned i = 0; i < 4; i++)
		free(l->n_messages[i]);
	for (uint32_t stage = 0; l->ops && stage < l->cfg.pp; stage++)
		free(l->ops[stage]);
	free(l->ops);
	free(l->n_ops);
	free(l->offset_ns);
	free(l->n_launches);
	free(l->streams);
	free(l);
}
