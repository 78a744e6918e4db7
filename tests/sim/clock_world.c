#include "clock_world.h"
#include "clock_draw.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define GRID_NS INT64_C(20000000)
#define EPOCH_NS INT64_C(1790000000123456789) /* of the fleet: no instant fits a double */
#define S_NS 1e9
#define US_NS 1e3
#define MAX_EPISODES 12

struct wave {
	double amp_ppm, period_s, phase;
};

struct stretch { /* of true seconds, with a value */
	double from_s, to_s, value;
};

struct clock_model {
	double skew_ppm, walk_ppm; /* walk: per sqrt(second) */
	struct wave waves[2];
	size_t n_waves;
	struct stretch steps[2]; /* value: ns */
	size_t n_steps;
	struct stretch slew, migration; /* value: ppm */
	int64_t offset_ns;
	double *table; /* ns gained since the start, every GRID_NS */
	size_t n_table;
};

struct path_model {
	double floor_us, jitter_us, jitter_sigma, queued, pareto_us, alpha;
	struct stretch episodes[MAX_EPISODES]; /* value: mean us */
	size_t n_episodes;
	double episode_share;
	double route_s, route_us; /* the floor from route_s on; 0 = never */
};

struct pauses {
	struct stretch v[2];
	size_t n;
};

struct scene {
	uint64_t rng;
	struct clock_model clock;
	struct path_model to, back;
	struct pauses pauses;
};

const char *clock_scenario_title(char scenario)
{
	static const char *const titles[] = { "quiet LAN",	  "one-way congestion",
					      "temperature wander", "steps, slew, pauses",
					      "asymmetry 40/20",  "user stamps, loaded",
					      "route changes",	  "everything at once",
					      "kernel stamps" };

	return titles[strchr(CLOCK_SCENARIOS, scenario) - CLOCK_SCENARIOS];
}

/* ---- the clock ---- */

static int wind_up(struct clock_model *c, uint64_t *rng)
{
	double rate = c->skew_ppm, gained = 0, dt = (double)GRID_NS * 1e-9;

	c->n_table = (size_t)(CLOCK_WORLD_S * INT64_C(1000000000) / GRID_NS) + 200;
	c->table = malloc(c->n_table * sizeof *c->table);
	if (!c->table)
		return -ENOMEM;
	for (size_t i = 0; i < c->n_table; i++) {
		double t = (double)i * dt, now;

		rate += draw_normal(rng) * c->walk_ppm * sqrt(dt);
		now = rate;
		for (size_t k = 0; k < c->n_waves; k++)
			now += c->waves[k].amp_ppm * sin(6.283185307179586 * t / c->waves[k].period_s +
							c->waves[k].phase);
		if (t >= c->slew.from_s && t < c->slew.to_s)
			now += c->slew.value;
		if (c->migration.value != 0 && t >= c->migration.from_s)
			now += c->migration.value;
		c->table[i] = gained;
		gained += now * 1e3 * dt;
	}
	return 0;
}

/* t_ns: true, since the start. */
static int64_t host_at(const struct clock_model *c, int64_t t_ns)
{
	size_t i = t_ns < 0 ? 0 : (size_t)(t_ns / GRID_NS);
	double u, gained;

	if (i > c->n_table - 2)
		i = c->n_table - 2;
	u = (double)(t_ns - (int64_t)i * GRID_NS) / (double)GRID_NS;
	gained = c->table[i] + u * (c->table[i + 1] - c->table[i]);
	for (size_t k = 0; k < c->n_steps; k++)
		if ((double)t_ns >= c->steps[k].from_s * S_NS)
			gained += c->steps[k].value;
	return t_ns + c->offset_ns + llround(gained);
}

/* ---- the paths ---- */

static int64_t delay_ns(const struct path_model *p, uint64_t *rng, double t_s)
{
	double us = p->route_s > 0 && t_s >= p->route_s ? p->route_us : p->floor_us;

	us += p->jitter_us * exp(draw_normal(rng) * p->jitter_sigma);
	if (draw_unit(rng) < p->queued)
		us += fmin(p->pareto_us * (pow(draw_unit(rng), -1 / p->alpha) - 1 + 0.1), 2e5);
	for (size_t i = 0; i < p->n_episodes; i++) {
		const struct stretch *e = &p->episodes[i];

		if (t_s >= e->from_s && t_s < e->to_s && draw_unit(rng) < p->episode_share)
			us += e->value * (draw_exponential(rng) + 0.15);
	}
	return llround(us * US_NS);
}

static void congest(struct path_model *p, uint64_t *rng, size_t n, double length_s, double share,
		    double mean_us)
{
	p->episode_share = share;
	p->n_episodes = n;
	for (size_t i = 0; i < n; i++) {
		double from = draw_between(rng, 20, CLOCK_WORLD_S - 60);

		p->episodes[i] = (struct stretch){
			from, from + length_s * draw_between(rng, 0.6, 1.4), mean_us };
	}
}

/* ---- the scenarios ---- */

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void draw_times(uint64_t *rng, double *t, size_t n)
{
	for (size_t i = 0; i < n; i++)
		t[i] = draw_between(rng, 80, CLOCK_WORLD_S - 80);
	qsort(t, n, sizeof *t, ascending);
}

static void pause_at(struct pauses *p, double at_s, double length_s)
{
	p->v[p->n++] = (struct stretch){ at_s, at_s + length_s, 0 };
}

static void set_steps(struct scene *s)
{
	uint64_t *rng = &s->rng;
	double t[3];

	draw_times(rng, t, 3);
	s->clock.steps[0] = (struct stretch){ t[0], t[0], draw_sign(rng) * 2.5e6 };
	s->clock.steps[1] = (struct stretch){ t[2], t[2], draw_sign(rng) * 180e3 };
	s->clock.n_steps = 2;
	s->clock.slew = (struct stretch){ t[1], t[1] + 12, draw_sign(rng) * 80 };
	pause_at(&s->pauses, draw_between(rng, 50, CLOCK_WORLD_S - 50), 0.4);
	pause_at(&s->pauses, draw_between(rng, 50, CLOCK_WORLD_S - 50), 1.5);
	congest(&s->to, rng, 3, 20, 0.9, 300);
}

static void set_everything(struct scene *s)
{
	uint64_t *rng = &s->rng;
	double t[5];

	draw_times(rng, t, 5);
	s->clock.walk_ppm = 0.006;
	s->clock.waves[s->clock.n_waves++] = (struct wave){ 0.8, 500, draw_between(rng, 0, 6) };
	s->clock.steps[0] = (struct stretch){ t[0], t[0], draw_sign(rng) * 900e3 };
	s->clock.steps[1] = (struct stretch){ t[3], t[3], draw_sign(rng) * 5e6 };
	s->clock.n_steps = 2;
	s->clock.slew = (struct stretch){ t[1], t[1] + 8, draw_sign(rng) * 60 };
	s->clock.migration = (struct stretch){ t[3], t[3], draw_between(rng, -20, 20) };
	pause_at(&s->pauses, draw_between(rng, 50, CLOCK_WORLD_S - 50), 0.3);
	pause_at(&s->pauses, t[3] - 0.02, 0.25);
	s->to = (struct path_model){ 32, 8, 1.0, 0.25, 120, 1.3 };
	s->back = (struct path_model){ 32, 8, 1.0, 0.20, 120, 1.3 };
	congest(&s->to, rng, 8, 20, 0.95, 500);
	congest(&s->back, rng, 4, 15, 0.9, 300);
	s->to.route_s = t[2];
	s->to.route_us = 47;
}

static void set_scene(struct scene *s, char scenario)
{
	const struct path_model quiet = { 25, 2, 0.9, 0.05, 30, 1.6 };
	const struct path_model busy = { 25, 2, 0.9, 0.15, 50, 1.5 };
	uint64_t *rng = &s->rng;

	s->clock.skew_ppm = draw_between(rng, -30, 30);
	s->clock.offset_ns = llround(draw_between(rng, 1e12, 1e15)); /* since the host was started */
	s->clock.walk_ppm = 0.0005;
	s->to = s->back = scenario == 'A' || scenario == 'E' ? quiet : busy;
	switch (scenario) {
	case 'B': /* the way to the collector carries the traces */
		s->to = (struct path_model){ 25, 2, 0.9, 0.30, 60, 1.3 };
		s->back = (struct path_model){ 25, 2, 0.9, 0.10, 40, 1.6 };
		congest(&s->to, rng, 12, 25, 0.97, 400);
		break;
	case 'C':
		s->clock.walk_ppm = 0.01;
		s->clock.waves[0] = (struct wave){ 1.5, 420, draw_between(rng, 0, 6) };
		s->clock.waves[1] = (struct wave){ 0.25, 75, draw_between(rng, 0, 6) };
		s->clock.n_waves = 2;
		break;
	case 'D':
		set_steps(s);
		break;
	case 'E':
		s->to.floor_us = 40;
		s->back.floor_us = 20;
		break;
	case 'F':
		s->to = s->back = (struct path_model){ 30, 14, 1.0, 0.25, 150, 1.2 };
		break;
	case 'G':
		s->to.route_s = 300;
		s->to.route_us = 43;
		s->back.route_s = 600;
		s->back.route_us = 17;
		break;
	case 'H':
		set_everything(s);
		break;
	case 'K': /* what is left between two kernels of one machine */
		s->clock.walk_ppm = 0.004;
		s->clock.waves[s->clock.n_waves++] = (struct wave){ 0.4, 200, draw_between(rng, 0, 6) };
		s->to = s->back = (struct path_model){ 0.12, 0.25, 0.9, 0.1, 2, 1.6 };
		break;
	default:
		break;
	}
}

/* ---- putting it together ---- */

static bool frozen(const struct pauses *p, double t_s, double *until_s)
{
	for (size_t i = 0; i < p->n; i++)
		if (t_s >= p->v[i].from_s && t_s < p->v[i].to_s) {
			*until_s = p->v[i].to_s;
			return true;
		}
	return false;
}

static int by_return(const void *pa, const void *pb)
{
	const struct beam_sample *a = pa, *b = pb;

	return (a->t4_ns > b->t4_ns) - (a->t4_ns < b->t4_ns);
}

static void exchange(struct clock_world *w, struct scene *s, double t_s)
{
	uint64_t *rng = &s->rng;
	int64_t sent, seen, answered, back;
	double until;

	sent = llround(t_s * S_NS);
	seen = sent + delay_ns(&s->to, rng, t_s);
	answered = seen + llround(8e3 * draw_between(rng, 0.7, 1.3));
	back = answered + delay_ns(&s->back, rng, (double)answered / S_NS);
	if (draw_unit(rng) < 0.01 || frozen(&s->pauses, t_s, &until))
		return;
	if (frozen(&s->pauses, (double)back / S_NS, &until))
		back = llround(until * S_NS) + 30000;
	if (back >= CLOCK_WORLD_S * INT64_C(1000000000))
		return;
	w->samples[w->n_samples++] = (struct beam_sample){
		.t1_ns = host_at(&s->clock, sent),
		.t4_ns = host_at(&s->clock, back),
		.f_ns = seen + EPOCH_NS - host_at(&s->clock, sent),
		.g_ns = answered + EPOCH_NS - host_at(&s->clock, back),
	};
}

static void note_change(struct clock_world *w, const struct clock_model *c, const struct stretch *at)
{
	w->changes[w->n_changes][0] = host_at(c, llround(at->from_s * S_NS) - 1);
	w->changes[w->n_changes++][1] = host_at(c, llround(at->to_s * S_NS) + 1);
}

static int by_host(const void *pa, const void *pb)
{
	const struct clock_query *a = pa, *b = pb;

	return (a->host_ns > b->host_ns) - (a->host_ns < b->host_ns);
}

int clock_world_make(struct clock_world *w, char scenario, uint64_t seed, double rate_hz,
		     size_t n_queries)
{
	uint64_t mixed = seed * 256 + (uint64_t)scenario;
	/* Neighbours in the generator's own sequence would be one world, shifted. */
	struct scene s = { .rng = draw_bits(&mixed) };
	double period = 1 / rate_hz;

	memset(w, 0, sizeof *w);
	set_scene(&s, scenario);
	if (wind_up(&s.clock, &s.rng) < 0)
		return -ENOMEM;
	w->samples = calloc((size_t)(CLOCK_WORLD_S * rate_hz) + 1, sizeof *w->samples);
	w->queries = calloc(n_queries + 1, sizeof *w->queries);
	if (!w->samples || !w->queries) {
		free(s.clock.table);
		clock_world_fini(w);
		return -ENOMEM;
	}
	for (double t = 0.3; t < CLOCK_WORLD_S - 0.5; t += period)
		exchange(w, &s, t + draw_between(&s.rng, 0, 0.3 * period));
	qsort(w->samples, w->n_samples, sizeof *w->samples, by_return);
	for (size_t i = 0; i < n_queries; i++) {
		int64_t t = llround(draw_between(&s.rng, 5, CLOCK_WORLD_S - 5) * S_NS);
		int64_t host = host_at(&s.clock, t);

		w->queries[w->n_queries++] = (struct clock_query){ host, t + EPOCH_NS - host };
	}
	qsort(w->queries, n_queries, sizeof *w->queries, by_host);
	for (size_t i = 0; i < s.clock.n_steps; i++)
		note_change(w, &s.clock, &s.clock.steps[i]);
	if (s.clock.slew.value != 0)
		note_change(w, &s.clock, &s.clock.slew);
	free(s.clock.table);
	return 0;
}

void clock_world_fini(struct clock_world *w)
{
	free(w->samples);
	free(w->queries);
	memset(w, 0, sizeof *w);
}
