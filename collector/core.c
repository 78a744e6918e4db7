#include "core_internal.h"

#include <stdio.h>

#define DEFAULT_OPEN_COLLECTIVES 4096
#define DEFAULT_LATE_NS INT64_C(2000000000)

/* What collectives have to say of where a host's instants lie. */
static int64_t shift(const void *arg, uint32_t host, host_time t, int64_t offset_ns)
{
	const struct core *c = arg;
	int64_t ns = c->evidence ? evidence_shift(c->evidence, host, t, offset_ns) : 0;

	return ns + ties_shift(&c->ties, host);
}

/* A rank that is silent in a step that others told of is a gap in the picture. */
void core_note_step(struct core *c, uint32_t step, uint32_t n_ranks)
{
	if (!c->expects || step < c->expect_first)
		c->expect_first = step;
	if (!c->expects || step > c->expect_last)
		c->expect_last = step;
	c->expects = true;
	heat_expect(c->heat, n_ranks, c->expect_first, c->expect_last);
}

static int on_step_told(void *arg, const struct fact_step *step, const struct fact_rank_step *v,
			size_t n, bool again)
{
	struct core *c = arg;
	int r = core_flush_restored(c);

	if (r < 0)
		return r;
	for (size_t i = 0; i < n && !c->no_heat; i++) {
		r = heat_put(c->heat, &v[i]);
		if (r < 0)
			return r;
	}
	core_note_step(c, step->step, c->steps.world_size);
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
	c->no_heat = cfg->no_heat;
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

/* ---- processes ---- */

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
		r = core_admit(c, p, early[i].ring, early[i].chunk, &early[i].ev, 1);
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

int core_feed(struct core *c, struct proc *p, uint32_t ring_id, uint64_t chunk,
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
			return core_hold(c, p, ring_id, chunk, ev + i, n - i);
		ring->last_ns = (int64_t)ev[i].tick;
		if (note_call(c, p, &ev[i]) < 0)
			return -ENOMEM;
		r = r == STEPS_HOLD_NEXT ? r
					 : rules_event(&c->rules, p, &ev[i],
						       (uint32_t)core_restart_count(c, p));
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

			r = core_hold(c, p, ring_id, chunk, &begin, 1);
			return r < 0 ? r : core_hold(c, p, ring_id, chunk, ev + i + 1, n - i - 1);
		}
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
	return core_admit(c, p, ring, chunk, ev, n);
}

void core_replayed(struct core *c, const struct fact_what_if *v, size_t n, uint32_t first_step,
		   uint32_t last_step)
{
	replayed_note(&c->rules.replayed, v, n, first_step, last_step);
}

void core_dumped(struct core *c, const struct dumped *d)
{
	c->rules.dumped = d;
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
	return rules_lost(&c->rules, p, n);
}

void core_late(struct core *c, const struct event *ev, size_t n)
{
	for (size_t i = 0; i < n; i++)
		c->n_late += ev[i].kind < EVENT_FIRST_RAW_KIND;
}

static const char *name_of_host(void *arg, uint32_t host)
{
	const struct core *c = arg;

	return c->roster.hosts[host].name;
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
	return r < 0 ? r : core_let_in(c, false);
}

int core_finish(struct core *c, fleet_time now)
{
	int r;

	c->steps.now_ns = c->match.now_ns = now.ns;
	r = core_let_in(c, true);
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
		r = core_flush_restored(c); /* the run had already ended */
	if (r == 0)
		r = rules_look(&c->rules, now.ns, c->steps.world_size, true, c->facts);
	return r < 0 ? r : slow_fixed_rank_finish(c->slow, c->facts);
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
