#include "core.h"
#include "graph/arrivals.h"
#include "graph/graph.h"
#include "heat.h"
#include "match/evidence.h"
#include "match/ties.h"
#include "verdict/clock_contradiction.h"
#include "verdict/clock_offset.h"
#include "verdict/pace_why.h"
#include "verdict/rules.h"
#include "verdict/slow_fixed_rank.h"

#include <stdio.h>
#include <string.h>

#define DEFAULT_OPEN_COLLECTIVES 4096
#define DEFAULT_LATE_NS INT64_C(2000000000)
#define MAX_EARLY 65536 /* events kept of a process whose rank is not known yet, or whose life waits */
#define MAX_HELD (1u << 20) /* of all that wait: two lives at once take turns when it is full */
#define CLOCK_TELL_NS INT64_C(1000000000)
#define SAVE_MAGIC UINT32_C(0x32434c53) /* "SLC2" */

struct core {
	struct facts *facts;
	struct roster roster;
	struct match match;
	struct steps steps;
	struct graph graph;
	struct heat *heat;
	struct slow_fixed_rank *slow;
	struct clock_offset *offset;
	struct evidence *evidence; /* NULL while all hosts share one clock */
	struct ties ties;
	struct rules rules;
	struct arrivals *arrivals;
	FACT_ARRAY(struct fact_rank_step) restored; /* of one step, not yet seen by rules */
	bool no_paths, expects;
	uint32_t expect_first, expect_last;
	uint64_t n_events, n_unknown_kind, n_lost, n_bad, n_late;
	uint64_t n_held;	      /* events of lives that wait */
	uint64_t last_chunk, replay_below; /* a replay is not late */
};

/* What collectives have to say of where a host's instants lie. */
static int64_t shift(const void *arg, uint32_t host, host_time t, int64_t offset_ns)
{
	const struct core *c = arg;
	int64_t ns = c->evidence ? evidence_shift(c->evidence, host, t, offset_ns) : 0;

	return ns + ties_shift(&c->ties, host);
}

/* A rank that is silent in a step that others told of is a gap in the picture. */
static void note_step(struct core *c, uint32_t step, uint32_t n_ranks)
{
	if (!c->expects || step < c->expect_first)
		c->expect_first = step;
	if (!c->expects || step > c->expect_last)
		c->expect_last = step;
	c->expects = true;
	heat_expect(c->heat, n_ranks, c->expect_first, c->expect_last);
}

static int flush_restored(struct core *c);

static int on_step_told(void *arg, const struct fact_step *step, const struct fact_rank_step *v,
			size_t n, bool again)
{
	struct core *c = arg;
	int r = flush_restored(c);

	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++) {
		r = heat_put(c->heat, &v[i]);
		if (r < 0)
			return r;
	}
	note_step(c, step->step, c->steps.world_size);
	r = c->no_paths ? 0 : graph_step_told(&c->graph, step);
	if (r < 0)
		return r;
	/* Rules see a step once, in order: what comes later changes pictures and
	 * rows, not a judgement over hundreds of steps. */
	if (again)
		return 0;
	r = arrivals_step(c->arrivals, step, v, n);
	if (r == 0)
		r = rules_step(&c->rules, step, v, n, c->facts);
	return r < 0 ? r : slow_fixed_rank_step(c->slow, step->step, c->steps.world_size, v, n, c->facts);
}

/* A collective is final: what it says of clocks, then what it says of causes. */
static int on_closed(void *arg, const struct match *m, uint32_t group, const struct coll *call)
{
	struct core *c = arg;
	int r = c->evidence ? evidence_closed(c->evidence, m, group, call) : 0;

	if (r == 0)
		r = ties_closed(&c->ties, m, group, call);
	if (r == 0)
		r = arrivals_call(c->arrivals, m, group, call);
	return r < 0 ? r : rules_call(&c->rules, m, group, call);
}

static int on_ended(void *arg, const struct proc *p, uint32_t group, uint64_t seq,
		    const struct event *ev, const struct device *d)
{
	struct core *c = arg;

	return c->steps.n_told < BEATS_MAX_STEPS &&
			       c->match.groups[group].n_members >= c->steps.world_size
		       ? beats_note(&c->rules.beats, c->steps.world_size, p,
				    (uint32_t)(p - c->roster.procs), group, seq, ev, d) : 0;
}

/* The newest process of that rank. */
static const char *host_of_rank(void *arg, int32_t rank)
{
	const struct core *c = arg;

	for (uint32_t i = c->roster.n_procs; i-- > 0;)
		if (c->roster.procs[i].rank == rank)
			return c->roster.hosts[c->roster.procs[i].host].name;
	return NULL;
}

static bool is_explained(void *arg, int32_t rank)
{
	const struct core *c = arg;

	return rules_explained_else(&c->rules, rank);
}

static bool is_throttled(void *arg, int32_t rank, char *why, size_t n_why)
{
	const struct core *c = arg;

	for (uint32_t i = c->roster.n_procs; i-- > 0;)
		if (c->roster.procs[i].rank == rank)
			return pace_throttled(&c->rules, i, INT64_MIN, why, n_why);
	return false;
}

static void on_named(void *arg, const char *class_name, const int32_t *ranks, uint32_t n,
		     uint32_t first_step)
{
	struct core *c = arg;

	rules_named(&c->rules, class_name, ranks, n, first_step);
}

int core_new(struct core **ret, const struct core_config *cfg, struct facts *facts)
{
	static const struct core_config defaults;
	struct core *c = calloc(1, sizeof *c);
	int64_t late_ns;

	if (!c)
		return -ENOMEM;
	if (heat_new(&c->heat) < 0 || clock_offset_new(&c->offset) < 0 || arrivals_new(&c->arrivals) < 0 ||
	    slow_fixed_rank_new(&c->slow, &(struct slow_config){ .host_of = host_of_rank,
								 .explained = is_explained,
								 .throttled = is_throttled,
								 .named = on_named,
								 .arg = c }) < 0) {
		heat_free(c->heat);
		clock_offset_free(c->offset);
		arrivals_free(c->arrivals);
		free(c);
		return -ENOMEM;
	}
	if (!cfg)
		cfg = &defaults;
	late_ns = cfg->step_late_ns > 0 ? cfg->step_late_ns : DEFAULT_LATE_NS;
	c->facts = facts;
	c->no_paths = cfg->no_paths;
	match_init(&c->match, &c->roster, facts,
		   cfg->n_open_collectives ? cfg->n_open_collectives : DEFAULT_OPEN_COLLECTIVES,
		   late_ns);
	steps_init(&c->steps, &c->roster, &c->match, facts, cfg->n_open_steps, late_ns);
	graph_init(&c->graph, &c->roster, &c->match, &c->steps, late_ns);
	c->graph.facts = facts;
	c->steps.n_told_of = cfg->n_ranks;
	c->steps.told = on_step_told;
	c->steps.told_arg = c;
	c->steps.ended = on_ended;
	c->steps.ended_arg = c;
	c->match.closed = on_closed;
	c->match.closed_arg = c;
	ties_init(&c->ties, &c->roster);
	c->match.ties = &c->ties;
	c->roster.shift = shift;
	c->roster.shift_arg = c;
	rules_init(&c->rules, &c->roster, &c->match);
	*ret = c;
	return 0;
}

void core_free(struct core *c)
{
	if (!c)
		return;
	rules_fini(&c->rules);
	graph_fini(&c->graph);
	steps_fini(&c->steps);
	match_fini(&c->match);
	evidence_free(c->evidence);
	ties_fini(&c->ties);
	roster_fini(&c->roster);
	heat_free(c->heat);
	slow_fixed_rank_free(c->slow);
	clock_offset_free(c->offset);
	arrivals_free(c->arrivals);
	free(c->restored.v);
	free(c);
}

void core_set_facts(struct core *c, struct facts *facts)
{
	c->facts = facts;
	c->match.facts = facts;
	c->steps.facts = facts;
	c->graph.facts = facts;
}

void core_edges(struct core *c, uint32_t step)
{
	c->graph.edges_of = step;
}

struct heat *core_heat(struct core *c)
{
	return c->heat;
}

/* ---- hosts and clocks ---- */

/* Two hosts that do not both have the collector's clock are told apart by what
 * they do together, too. */
static int make_evidence(struct core *c)
{
	uint32_t n_others = 0;
	int r;

	if (c->evidence || c->roster.n_hosts < 2)
		return 0;
	for (uint32_t i = 0; i < c->roster.n_hosts; i++)
		n_others += !c->roster.hosts[i].clock.exact;
	if (n_others == 0)
		return 0;
	r = evidence_new(&c->evidence, &c->roster);
	if (r < 0)
		return r;
	c->match.evidence = c->evidence;
	for (uint32_t i = 0; i < c->roster.n_hosts && r == 0; i++)
		if (c->roster.hosts[i].clock.exact)
			r = evidence_clock(c->evidence, i, (host_time){ 0 }, (fleet_time){ 0 });
	return r;
}

int core_host(struct core *c, uint32_t host, bool same_clock, int64_t offset_ns)
{
	struct host *h = roster_host(&c->roster, host);

	if (!h)
		return -ENOMEM;
	if (same_clock || !clock_is_aligned(&h->clock)) {
		bool moved = !h->clock.exact || h->clock.offset_ns != offset_ns;

		clock_fini(&h->clock);
		clock_init(&h->clock, same_clock, offset_ns);
		h->placed_epoch = 0;
		if (c->evidence && same_clock && moved) {
			uint32_t i = (uint32_t)(h - c->roster.hosts);

			evidence_step(c->evidence, i);
			return evidence_clock(c->evidence, i, (host_time){ 0 }, (fleet_time){ 0 });
		}
	}
	return make_evidence(c);
}

int core_host_name(struct core *c, uint32_t host, const char *name)
{
	struct host *h = roster_host(&c->roster, host);
	char *copy = h ? strdup(name) : NULL;

	if (!copy)
		return -ENOMEM;
	free(h->name);
	h->name = copy;
	return 0;
}

static int tell_clock(struct core *c, const struct host *h, fleet_time now, host_time t,
		      int64_t rtt_ns)
{
	struct fleet_point at;
	struct clock_view v;
	struct fact_clock *f;

	clock_map(&h->clock, t, &at);
	if (at.err_ns == CLOCK_UNBOUNDED)
		return 0;
	f = FACTS_PUSH(c->facts, clocks);
	if (!f)
		return -ENOMEM;
	clock_view(&h->clock, t, &v);
	f->host = h->id;
	f->at_ns = now.ns;
	f->offset_ns = at.at.ns - t.ns;
	f->error_ns = at.err_ns;
	f->rtt_ns = rtt_ns;
	f->quality = !clock_decides(at.status)	  ? "refused"
		     : at.err_ns <= CLOCK_GOOD_NS ? "good"
						  : "poor";
	f->soft_ns = at.soft_ns == CLOCK_UNBOUNDED ? FACT_NONE : at.soft_ns;
	f->skew_ppb = v.rate * 1e9;
	f->status = fleet_status_name(at.status);
	return 0;
}

static int feed_evidence(struct core *c, const struct host *h, host_time t, fleet_time now,
			 bool stepped)
{
	uint32_t i = (uint32_t)(h - c->roster.hosts);
	int r = make_evidence(c);

	if (r < 0 || !c->evidence)
		return r;
	if (stepped)
		evidence_step(c->evidence, i);
	return evidence_clock(c->evidence, i, t, now);
}

int core_exchange(struct core *c, uint32_t host, host_time t0, fleet_time t1, fleet_time t2,
		  host_time t3)
{
	struct host *h = roster_host(&c->roster, host);
	int o, r;

	if (!h)
		return -ENOMEM;
	if (h->clock.exact)
		return 0;
	o = clock_exchange(&h->clock, t0, t1, t2, t3);
	if (o < 0)
		return o;
	h->placed_epoch = 0;
	if (o == CLOCK_REFUSED)
		return 0;
	r = feed_evidence(c, h, t3, t1, o == CLOCK_STEPPED);
	if (r < 0)
		return r;
	if (o == CLOCK_OK && h->clock.told_ns != INT64_MIN &&
	    t1.ns - h->clock.told_ns < CLOCK_TELL_NS)
		return 0;
	h->clock.told_ns = t1.ns;
	return tell_clock(c, h, t1, t3, (t3.ns - t0.ns) - (t2.ns - t1.ns));
}

int core_map(const struct core *c, uint32_t host, host_time t, struct fleet_point *ret)
{
	struct host *h = roster_find_host(&c->roster, host);
	int r;

	if (!h) {
		*ret = (struct fleet_point){ { t.ns }, CLOCK_UNBOUNDED, CLOCK_UNBOUNDED, FLEET_VOID };
		return 1;
	}
	r = clock_map(&h->clock, t, ret);
	if (!clock_decides(ret->status))
		ret->err_ns = CLOCK_UNBOUNDED;
	return r;
}

int core_wall(struct core *c, uint32_t host, host_time at, int64_t real_ns, int64_t half_ns)
{
	struct host *h = roster_find_host(&c->roster, host);
	struct fleet_point p;

	if (!h || core_map(c, host, at, &p) != 0)
		return 0;
	return clock_offset_wall(c->offset, (uint32_t)(h - c->roster.hosts), p.at.ns,
				 real_ns - p.at.ns,
				 p.err_ns == CLOCK_UNBOUNDED ? CLOCK_UNBOUNDED : p.err_ns + half_ns);
}

static const char *name_of_host(void *arg, uint32_t host)
{
	const struct core *c = arg;

	return c->roster.hosts[host].name;
}

/* ---- processes ---- */

static int admit(struct core *c, struct proc *p, uint32_t ring_id, uint64_t chunk,
		 const struct event *ev, size_t n);

int core_process(struct core *c, const struct core_process *v)
{
	struct host *h = roster_host(&c->roster, v->host);
	struct proc *p = h ? roster_proc(&c->roster, v->process) : NULL;
	struct early *early;
	size_t n_early;
	int64_t life;
	int r = 0;

	if (!p)
		return -ENOMEM;
	p->host = (uint32_t)(h - c->roster.hosts);
	p->tick_error_ns = v->tick_error_ns < 0 ? 0 : v->tick_error_ns;
	if (v->rank < 0 || v->rank >= FACT_MAX_RANKS)
		return 0;
	if (p->rank == v->rank && p->restart_count == v->restart_count && p->life)
		return 0;

	/* The names of groups were looked up for the identity it had. */
	for (uint32_t i = 0; i < p->n_names; i++)
		p->names[i].group = 0;
	if (p->life)
		c->n_held -= p->n_early;
	life = steps_life(&c->steps, v->restart_count < 0 ? 0 : v->restart_count);
	if (life < 0)
		return (int)life;
	p->rank = v->rank;
	p->world_size = v->world_size > v->rank && v->world_size <= FACT_MAX_RANKS ? v->world_size
										  : v->rank + 1;
	p->restart_count = v->restart_count;
	p->life = (uint32_t)life + 1;
	r = steps_world(&c->steps, (uint32_t)p->world_size);
	if (r < 0)
		return r;
	c->match.world_size = c->steps.world_size;

	early = p->early;
	n_early = p->n_early;
	p->early = NULL;
	p->n_early = p->n_early_alloc = 0;
	for (size_t i = 0; i < n_early && r == 0; i++)
		r = admit(c, p, early[i].ring, early[i].chunk, &early[i].ev, 1);
	free(early);
	return r;
}

int core_process_state(struct core *c, uint32_t process, enum core_process_state s, host_time at)
{
	struct proc *p = roster_find_proc(&c->roster, process);

	if (!p)
		return 0;
	if (s != CORE_ALIVE && !p->gone)
		c->steps.n_gone++;
	if (s == CORE_ALIVE && p->gone)
		c->steps.n_gone--;
	p->gone = s != CORE_ALIVE;
	p->died = s == CORE_DIED;
	p->gone_at = at;
	return 0;
}

int core_name(struct core *c, uint32_t process, uint32_t id, const char *text, size_t n_text)
{
	struct proc *p = roster_find_proc(&c->roster, process);

	return p ? roster_name(&c->roster, p, id, text, n_text) : 0;
}

/* The record does not say of which incarnation: of the newest. */
int core_group(struct core *c, const char *name, const int32_t *ranks, size_t n)
{
	uint32_t life = 0;
	int64_t g;

	for (uint32_t i = 0; i < c->steps.n_lives; i++)
		if ((uint32_t)c->steps.lives[i].restart_count > life)
			life = (uint32_t)c->steps.lives[i].restart_count;
	g = match_declare(&c->match, name, life, ranks, n);
	return g == -ENOMEM ? -ENOMEM : 0;
}

int core_record(struct core *c, uint32_t process, host_time at, const char *category,
		const char *fields_json, size_t n_fields)
{
	const struct proc *p = roster_find_proc(&c->roster, process);

	return p ? rules_record(&c->rules, p, at.ns, category, fields_json, n_fields) : 0;
}

int core_gauge(struct core *c, uint32_t process, uint32_t host, host_time at, const char *name,
	       double value)
{
	const struct proc *p = roster_find_proc(&c->roster, process);
	const struct host *h = p ? &c->roster.hosts[p->host] : roster_find_host(&c->roster, host);

	int r = p ? measures_gauge(&c->rules.measures, (uint32_t)(p - c->roster.procs), at.ns, name, value)
		  : 0;

	if (!h || r < 0)
		return r;
	return gauges_note(&c->rules.gauges, &(struct gauge_of){
			.host = (uint32_t)(h - c->roster.hosts),
			.proc = p ? (uint32_t)(p - c->roster.procs) : GAUGE_OF_HOST },
		name, &(struct gauge_sample){ .at_ns = at.ns, .now_ns = c->rules.now_ns,
			.step = p ? step_times_at(&c->rules.step_times, (uint32_t)(p - c->roster.procs), at.ns)
				  : EVENT_STEP_UNKNOWN, .value = value });
}

/* ---- events ---- */

static int keep_early(struct core *c, struct proc *p, uint32_t ring, uint64_t chunk,
		      const struct event *ev, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (p->n_early == p->n_early_alloc) {
			size_t want = p->n_early_alloc ? 2 * p->n_early_alloc : 64;
			struct early *grown;

			if (want > MAX_EARLY) {
				c->n_lost += n - i;
				p->n_lost_pending += n - i;
				return 0;
			}
			grown = realloc(p->early, want * sizeof *grown);
			if (!grown)
				return -ENOMEM;
			p->early = grown;
			p->n_early_alloc = want;
		}
		p->early[p->n_early++] = (struct early){ ring, chunk, ev[i] };
		c->n_held += p->life != 0;
	}
	return 0;
}

static int32_t restart_count_of(const struct core *c, const struct proc *p)
{
	return c->steps.lives[p->life - 1].restart_count;
}

static int hold(struct core *c, struct proc *p, uint32_t ring, uint64_t chunk,
		const struct event *ev, size_t n);

/* What replays of arrivals have to know of calls before they are final. */
static int note_call(struct core *c, const struct proc *p, const struct event *ev)
{
	if (event_is_message(ev))
		arrivals_message(c->arrivals);
	else if (ev->kind == EVENT_COLL_BEGIN && (ev->b & EVENT_COLL_SYNC_BIT) && ev->name < p->n_names &&
		 p->names[ev->name].group)
		return arrivals_blocks(c->arrivals, p->names[ev->name].group - 1);
	return 0;
}

static int feed(struct core *c, struct proc *p, uint32_t ring_id, uint64_t chunk,
		const struct event *ev, size_t n)
{
	struct ring *ring = roster_ring(p, ring_id);

	if (!ring) {
		c->n_bad += n;
		return ring_id < ROSTER_MAX_RINGS ? -ENOMEM : 0;
	}
	for (size_t i = 0; i < n; i++) {
		uint64_t n_late;
		int r;

		if (ev[i].kind >= EVENT_FIRST_RAW_KIND)
			continue;
		if (!event_kind_is_known(ev[i].kind)) {
			c->n_unknown_kind++;
			continue;
		}
		if (ev[i].tick >= (uint64_t)CLOCK_MAX_NS) {
			c->n_bad++;
			continue;
		}
		n_late = c->steps.n_late + c->match.n_late;
		r = steps_event(&c->steps, p, ring, &ev[i], chunk);
		if (r < 0)
			return r;
		if (r == STEPS_HOLD)
			return hold(c, p, ring_id, chunk, ev + i, n - i);
		ring->last_ns = (int64_t)ev[i].tick;
		if (note_call(c, p, &ev[i]) < 0)
			return -ENOMEM;
		r = r == STEPS_HOLD_NEXT ? r
					 : rules_event(&c->rules, p, &ev[i],
						       (uint32_t)restart_count_of(c, p));
		if (r == 0 && !c->no_paths)
			r = graph_event(&c->graph, p, ring_id, &ev[i]);
		if (r < 0)
			return r;
		if (c->steps.n_late + c->match.n_late != n_late && chunk >= c->replay_below) {
			c->n_late++;
			steps_lost(&c->steps, p, 1);
		}
		if (r == STEPS_HOLD_NEXT) {
			struct event begin = { .tick = ev[i].tick,
					       .kind = EVENT_STEP_BEGIN,
					       .a = event_a(event_step(ev[i].a) + 1, 0) };

			r = hold(c, p, ring_id, chunk, &begin, 1);
			return r < 0 ? r : hold(c, p, ring_id, chunk, ev + i + 1, n - i - 1);
		}
	}
	return 0;
}

/* ---- lives that wait ---- */

/* The lowest of those that wait; false when none does. */
static bool find_waiting(const struct core *c, int32_t *ret)
{
	bool any = false;

	for (uint32_t i = 0; c->n_held > 0 && i < c->roster.n_procs; i++) {
		const struct proc *p = &c->roster.procs[i];

		if (!p->life || p->n_early == 0 || (any && restart_count_of(c, p) >= *ret))
			continue;
		*ret = restart_count_of(c, p);
		any = true;
	}
	return any;
}

struct queue { /* what waited of one process */
	struct early *v;
	size_t n, at;
	uint32_t proc; /* index */
};

/* In the order of their chunks, as they came: the window of open steps is narrow. */
static int feed_queues(struct core *c, struct queue *q, size_t n_queues)
{
	for (;;) {
		struct queue *first = NULL;
		uint64_t chunk;

		for (size_t i = 0; i < n_queues; i++)
			if (q[i].at < q[i].n &&
			    (!first || q[i].v[q[i].at].chunk < first->v[first->at].chunk))
				first = &q[i];
		if (!first)
			return 0;
		chunk = first->v[first->at].chunk;
		for (; first->at < first->n && first->v[first->at].chunk == chunk; first->at++) {
			int r = admit(c, &c->roster.procs[first->proc], first->v[first->at].ring,
				      chunk, &first->v[first->at].ev, 1);

			if (r < 0)
				return r;
		}
	}
}

static int let_in(struct core *c, int32_t restart_count, bool over)
{
	struct queue *q = calloc(c->roster.n_procs, sizeof *q);
	size_t n = 0;
	int r = q ? steps_begin(&c->steps, restart_count, over, c->last_chunk) : -ENOMEM;

	for (uint32_t i = 0; r == 0 && i < c->roster.n_procs; i++) {
		struct proc *p = &c->roster.procs[i];

		if (!p->life || p->n_early == 0 || restart_count_of(c, p) != restart_count)
			continue;
		q[n++] = (struct queue){ .v = p->early, .n = p->n_early, .proc = i };
		c->n_held -= p->n_early;
		p->early = NULL;
		p->n_early = p->n_early_alloc = 0;
	}
	if (r == 0)
		r = feed_queues(c, q, n);
	for (size_t i = 0; i < n; i++)
		free(q[i].v);
	free(q);
	return r;
}

static int hold(struct core *c, struct proc *p, uint32_t ring, uint64_t chunk,
		const struct event *ev, size_t n)
{
	int32_t rc = restart_count_of(c, p);
	int r;

	if (n == 0)
		return 0;
	if (p->n_early == 0 && c->steps.n_spans == 0 && c->steps.n_lives == 1 && rc == 0) {
		r = steps_begin(&c->steps, rc, true, 0); /* nobody to wait for */
		return r < 0 ? r : feed(c, p, ring, chunk, ev, n);
	}
	if (p->n_early + n > MAX_EARLY || c->n_held + n > MAX_HELD) {
		r = let_in(c, rc, false);
		return r < 0 ? r : admit(c, p, ring, chunk, ev, n);
	}
	if (c->n_held == 0)
		c->steps.held_now_ns = c->steps.now_ns;
	return keep_early(c, p, ring, chunk, ev, n);
}

static int admit(struct core *c, struct proc *p, uint32_t ring_id, uint64_t chunk,
		 const struct event *ev, size_t n)
{
	if (!p->life)
		return keep_early(c, p, ring_id, chunk, ev, n);
	return p->n_early > 0 ? hold(c, p, ring_id, chunk, ev, n)
			      : feed(c, p, ring_id, chunk, ev, n);
}

/* all: nobody is waited for any longer. */
static int let_in_waiting(struct core *c, bool all)
{
	int32_t rc = 0;

	while (find_waiting(c, &rc)) {
		bool over = true;
		int r;

		if (!all && !steps_may_begin(&c->steps, rc, &over))
			return 0;
		r = let_in(c, rc, over);
		if (r < 0)
			return r;
		if (c->n_held > 0) /* the next one waits for this one */
			c->steps.held_now_ns = c->steps.now_ns;
	}
	return 0;
}

int core_events(struct core *c, uint32_t process, uint32_t ring, uint64_t chunk,
		const struct event *ev, size_t n)
{
	struct proc *p = roster_find_proc(&c->roster, process);

	c->n_events += n;
	if (!p) {
		c->n_bad += n;
		return 0;
	}
	if (chunk > c->last_chunk)
		c->last_chunk = chunk;
	return admit(c, p, ring, chunk, ev, n);
}

void core_replayed(struct core *c, const struct fact_what_if *v, size_t n, uint32_t first_step,
		   uint32_t last_step)
{
	replayed_note(&c->rules.replayed, v, n, first_step, last_step);
}

int core_lost(struct core *c, uint32_t process, host_time at, uint64_t n)
{
	struct proc *p = roster_find_proc(&c->roster, process);

	(void)at; /* the gap lies between what was fed and what will be */
	c->n_lost += n;
	if (p && p->life)
		steps_lost(&c->steps, p, n);
	else if (p)
		p->n_lost_pending += n;
	return p ? ledger_lost(&c->rules.ledger, p) : 0;
}

void core_late(struct core *c, const struct event *ev, size_t n)
{
	for (size_t i = 0; i < n; i++)
		c->n_late += ev[i].kind < EVENT_FIRST_RAW_KIND;
}

static const char *name_of_id(const struct core *c, uint32_t host, char buf[32])
{
	const struct host *h = roster_find_host(&c->roster, host);

	snprintf(buf, 32, "host %u", host);
	return h && h->name ? h->name : buf;
}

/* What collectives and clocks have to say of each other. */
static int tell_evidence(struct core *c, int64_t now_ns)
{
	size_t i = c->facts->contradictions.n;
	int r = c->evidence ? evidence_tell(c->evidence, now_ns, c->facts) : 0;

	for (; r == 0 && i < c->facts->contradictions.n; i++) {
		const struct fact_contradiction *f = &c->facts->contradictions.v[i];
		char early[32], late[32];

		r = clock_contradiction_tell(
			&(struct clock_contradiction){
				.fact = f,
				.communicator = c->match.groups[f->group].name,
				.early = name_of_id(c, f->early, early),
				.late = name_of_id(c, f->late, late),
				.step = c->expects ? c->expect_last : 0,
				.now_ns = now_ns },
			c->facts);
	}
	return r;
}

int core_tick(struct core *c, fleet_time now)
{
	int r = c->evidence ? evidence_tick(c->evidence, now) : 0;

	if (r == 0)
		r = match_tick(&c->match, now.ns);
	if (r == 0)
		r = steps_tick(&c->steps, now.ns); /* rules run as steps are told */
	if (r == 0)
		r = graph_tick(&c->graph, now.ns);
	if (r == 0)
		r = clock_offset_look(c->offset, now.ns, c->expects ? c->expect_last : 0, name_of_host,
				      c, c->facts);
	if (r == 0)
		r = tell_evidence(c, now.ns);
	if (r == 0)
		r = arrivals_tick(c->arrivals, now.ns, c->steps.late_ns, c->facts);
	if (r == 0)
		r = rules_look(&c->rules, now.ns, c->steps.world_size, false, c->facts);
	return r < 0 ? r : let_in_waiting(c, false);
}

int core_finish(struct core *c, fleet_time now)
{
	int r;

	c->steps.now_ns = c->match.now_ns = now.ns;
	r = let_in_waiting(c, true);
	if (r == 0)
		r = steps_finish(&c->steps);
	if (r == 0)
		r = match_finish(&c->match);
	if (r == 0)
		r = graph_finish(&c->graph);
	if (r == 0)
		r = tell_evidence(c, now.ns);
	if (r == 0)
		r = arrivals_finish(c->arrivals, c->facts);
	if (r == 0)
		r = flush_restored(c); /* the run had already ended */
	if (r == 0)
		r = rules_look(&c->rules, now.ns, c->steps.world_size, true, c->facts);
	return r < 0 ? r : slow_fixed_rank_finish(c->slow, c->facts);
}

/* ---- restart ---- */

uint64_t core_low_water(const struct core *c)
{
	uint64_t a = steps_low_water(&c->steps), b = match_low_water(&c->match);

	if (b < a)
		a = b;
	for (uint32_t i = 0; i < c->roster.n_procs; i++) {
		const struct proc *p = &c->roster.procs[i];

		for (size_t k = 0; k < p->n_early; k++)
			if (p->early[k].chunk < a)
				a = p->early[k].chunk;
	}
	return a;
}

/* A cursor over bytes that are written, counted or read. */
struct bytes {
	unsigned char *out;
	const unsigned char *in;
	size_t n, at;
	bool bad;
};

static void put(struct bytes *b, const void *v, size_t n)
{
	if (n > 0 && b->at + n <= b->n)
		memcpy(b->out + b->at, v, n);
	b->at += n;
}

static void put_u32(struct bytes *b, uint32_t v)
{
	put(b, &v, sizeof v);
}

static void put_u64(struct bytes *b, uint64_t v)
{
	put(b, &v, sizeof v);
}

static const unsigned char *get(struct bytes *b, size_t n)
{
	if (b->bad || n > b->n - b->at) {
		b->bad = true;
		return NULL;
	}
	b->at += n;
	return b->in + b->at - n;
}

static uint32_t get_u32(struct bytes *b)
{
	const unsigned char *p = get(b, 4);
	uint32_t v = 0;

	if (p)
		memcpy(&v, p, sizeof v);
	return v;
}

static uint64_t get_u64(struct bytes *b)
{
	const unsigned char *p = get(b, 8);
	uint64_t v = 0;

	if (p)
		memcpy(&v, p, sizeof v);
	return v;
}

size_t core_save(const struct core *c, unsigned char *out, size_t n_out)
{
	struct bytes b = { .out = out, .n = 0 };

	/* Once to count, once to write. */
	for (int pass = 0; pass < 2; pass++) {
		b.at = 0;
		put_u32(&b, SAVE_MAGIC);
		put_u32(&b, c->steps.base);
		put_u32(&b, c->steps.n_seen);
		put_u64(&b, c->last_chunk);
		put_u64(&b, c->n_late + c->steps.n_cut);
		put_u32(&b, c->steps.n_spans);
		for (uint32_t i = 0; i < c->steps.n_spans; i++) {
			put_u32(&b, (uint32_t)c->steps.spans[i].restart_count);
			put_u32(&b, c->steps.spans[i].own_first);
			put_u32(&b, c->steps.spans[i].first_step);
			put_u64(&b, c->steps.spans[i].begun_chunk);
			put_u32(&b, c->steps.spans[i].n_cut);
		}
		put_u32(&b, c->match.n_groups);
		for (uint32_t i = 0; i < c->match.n_groups; i++) {
			const struct group *g = &c->match.groups[i];
			uint32_t n_name = (uint32_t)strlen(g->name);

			put_u32(&b, g->life);
			put_u32(&b, g->known ? g->n_expected : 0);
			put_u64(&b, g->told_below);
			put_u32(&b, n_name);
			put(&b, g->name, n_name);
			put_u32(&b, g->n_members);
			put(&b, g->ranks, g->n_members * sizeof *g->ranks);
		}
		if (b.at > n_out)
			break;
		b.n = n_out;
	}
	return b.at;
}

int core_load(struct core *c, const unsigned char *in, size_t n)
{
	struct bytes b = { .in = in, .n = n };
	uint32_t n_spans, n_groups;

	if (get_u32(&b) != SAVE_MAGIC)
		return -EINVAL;
	c->steps.base = c->steps.told_below = c->steps.next_step = get_u32(&b);
	c->steps.n_seen = get_u32(&b);
	c->last_chunk = get_u64(&b);
	c->replay_below = c->last_chunk + 1;
	c->rules.ledger.replayed = true;
	c->n_late = get_u64(&b);
	n_spans = get_u32(&b);
	if (b.bad || n_spans > n / 8)
		return -EINVAL;
	for (uint32_t i = 0; i < n_spans; i++) {
		struct span v = { .restart_count = (int32_t)get_u32(&b) };
		int64_t life = steps_life(&c->steps, v.restart_count);
		int r;

		if (life < 0)
			return (int)life;
		v.own_first = get_u32(&b);
		v.first_step = get_u32(&b);
		v.begun_chunk = get_u64(&b);
		v.n_cut = get_u32(&b);
		if (b.bad || (i > 0 && v.first_step < c->steps.spans[i - 1].first_step))
			return -EINVAL;
		r = steps_add_span(&c->steps, &v);
		if (r < 0)
			return r;
	}
	n_groups = get_u32(&b);
	for (uint32_t i = 0; i < n_groups && !b.bad; i++) {
		uint32_t life = get_u32(&b), n_known = get_u32(&b), n_name, n_members;
		uint64_t told_below = get_u64(&b);
		const unsigned char *text, *ranks;
		char name[256];
		int r;

		n_name = get_u32(&b);
		text = n_name < sizeof name ? get(&b, n_name) : NULL;
		n_members = get_u32(&b);
		ranks = n_members <= MATCH_MAX_MEMBERS ? get(&b, n_members * sizeof(int32_t))
						       : NULL;
		if (!text || !ranks)
			return -EINVAL;
		memcpy(name, text, n_name);
		name[n_name] = '\0';
		r = match_restore(&c->match, name, life, n_known, told_below, ranks, n_members);
		if (r < 0)
			return r;
	}
	return b.bad || b.at != n ? -EINVAL : 0;
}

/* The rule wants a step as a whole, the store may give a row at a time. */
static int flush_restored(struct core *c)
{
	uint32_t step, n_ranks = c->steps.world_size;
	size_t n = c->restored.n;

	if (n == 0)
		return 0;
	c->restored.n = 0;
	step = c->restored.v[0].step;
	for (size_t i = 0; i < n; i++)
		if ((uint32_t)c->restored.v[i].rank >= n_ranks)
			n_ranks = (uint32_t)c->restored.v[i].rank + 1;
	note_step(c, step, n_ranks);
	return slow_fixed_rank_step(c->slow, step, n_ranks, c->restored.v, n, NULL);
}

int core_restore_rank_steps(struct core *c, const struct fact_rank_step *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		int r;

		if (v[i].rank < 0 || v[i].rank >= FACT_MAX_RANKS)
			continue;
		r = heat_put(c->heat, &v[i]);
		if (r == 0 && c->restored.n > 0 && c->restored.v[0].step != v[i].step)
			r = flush_restored(c);
		if (r < 0)
			return r;
		if (!facts_reserve((void **)&c->restored.v, &c->restored.n, &c->restored.n_alloc,
				   sizeof *c->restored.v))
			return -ENOMEM;
		c->restored.v[c->restored.n - 1] = v[i];
	}
	return 0;
}

void core_stats(const struct core *c, struct core_stats *ret)
{
	*ret = (struct core_stats){ .n_events = c->n_events,
				    .n_unknown_kind = c->n_unknown_kind,
				    .n_steps = c->steps.n_told,
				    .n_collectives = c->match.n_told,
				    .n_late_events = c->n_late + c->steps.n_cut,
				    .n_lost = c->n_lost,
				    .n_bad_events = c->n_bad,
				    .first_step = c->steps.any_complete ? c->steps.first_complete
									: 0,
				    .last_step = c->steps.any_complete ? c->steps.last_complete
								       : 0 };
	for (uint32_t i = 0; i < c->roster.n_hosts; i++) {
		const struct clock *k = &c->roster.hosts[i].clock;

		struct fleet_point at;

		if (k->exact)
			continue;
		if (!clock_is_aligned(k) || clock_map(k, clock_newest(k), &at) != 0 ||
		    !clock_decides(at.status))
			ret->n_hosts_unaligned++;
		else if (at.err_ns > ret->max_clock_error_ns)
			ret->max_clock_error_ns = at.err_ns;
	}
}
