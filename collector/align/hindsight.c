#include "hindsight_internal.h"
#include "beam_internal.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAX_NS (INT64_C(1) << 61) /* beyond is nobody's time; differences stay in range */
#define WARM_BUCKETS 120
#define LEARNED 50
#define EDGE_BUCKETS 5
#define FRESH_NS INT64_C(5000000000)

struct closed {
	struct beam_closed *v;
	size_t n, n_alloc;
	bool no_memory;
};

static void on_closed(void *arg, const struct beam_closed *c)
{
	struct closed *l = arg;

	if (l->n == l->n_alloc) {
		size_t want = l->n_alloc ? 2 * l->n_alloc : 256;
		struct beam_closed *grown = realloc(l->v, want * sizeof *grown);

		if (!grown) {
			l->no_memory = true;
			return;
		}
		l->v = grown;
		l->n_alloc = want;
	}
	l->v[l->n++] = *c;
}

/* The first two minutes teach floors and noise; then they are played again. */
static void learn(const struct beam_config *cfg, const struct beam_sample *v, size_t n,
		  struct beam_floors *floors)
{
	struct beam_knot knots[8];
	struct beam_segment segments[8];
	struct beam b;
	size_t k = 0;

	beam_init(&b, cfg, knots, 8, segments, 8);
	while (k < n && beam_seconds(v[0].t1_ns, v[k].t1_ns) < WARM_BUCKETS * 1e-9 * (double)cfg->bucket_ns)
		k++;
	for (size_t i = 0; i < k; i++)
		beam_take(&b, &v[i]);
	beam_finish(&b);
	if (b.n_segments != 1 || !isfinite(b.floors.f))
		return;
	beam_floors_init(floors);
	/* Without what was raised meanwhile: it was not so at the beginning. */
	floors->f = fmax(0, b.floors.f - b.floors.raised_f);
	floors->r = fmax(0, b.floors.r - b.floors.raised_r);
	floors->scale = b.floors.scale;
	floors->variance = b.floors.variance;
	floors->szq = b.floors.szq;
	floors->sqq = b.floors.sqq;
	floors->n_slope = b.floors.n_slope;
	floors->n_scale = floors->n_variance = LEARNED;
}

/* kept: those samples that were not refused. */
static int run_forward(struct hindsight *h, const struct beam_sample *v, size_t n,
		       struct closed *log, struct beam_sample *kept, size_t *n_kept)
{
	struct beam_segment *segments = calloc(n + 1, sizeof *segments);
	struct beam_knot knots[8];
	struct beam b;

	if (!segments)
		return -ENOMEM;
	beam_init(&b, h->cfg, knots, 8, segments, n + 1);
	learn(h->cfg, v, n, &b.floors);
	b.closed = on_closed;
	b.closed_arg = log;
	for (size_t i = 0; i < n; i++)
		if (beam_take(&b, &v[i]) != BEAM_REFUSED)
			kept[(*n_kept)++] = v[i];
	beam_finish(&b);
	h->floors = b.floors;
	h->stats = (struct hindsight_stats){ b.n_segments,  b.n_restarts, b.n_refused,
					     b.n_contradictions, b.floors.f,   b.floors.r };
	h->segments = calloc(b.n_segments + 1, sizeof *h->segments);
	if (!h->segments || log->no_memory) {
		free(segments);
		return -ENOMEM;
	}
	for (uint64_t i = b.oldest_segment; i < b.n_segments; i++)
		if (segments[i].n_knots > 0)
			h->segments[h->n_segments++].s = segments[i];
	free(segments);
	return 0;
}

int hindsight_new(struct hindsight **ret, const struct beam_config *cfg,
		  const struct beam_sample *v, size_t n)
{
	struct hindsight *h = calloc(1, sizeof *h);
	struct closed log = { 0 };
	struct beam_sample *kept = calloc(n + 1, sizeof *kept);
	size_t n_bounds = 0, n_kept = 0;
	int r = -ENOMEM;

	if (!h || !kept)
		goto fail;
	h->cfg = cfg ? cfg : &beam_defaults;
	r = run_forward(h, v, n, &log, kept, &n_kept);
	if (r < 0)
		goto fail;
	h->knots = calloc(log.n + 1, sizeof *h->knots);
	h->bounds = calloc(2 * n + 1, sizeof *h->bounds);
	if (!h->knots || !h->bounds) {
		r = -ENOMEM;
		goto fail;
	}
	for (size_t i = 0; i < h->n_segments; i++) {
		struct hind_segment *g = &h->segments[i];

		hind_smooth(h->cfg, log.v + g->s.first_knot, g->s.n_knots, h->knots + g->s.first_knot);
		hind_envelope(h, g, kept, n_kept, &n_bounds);
	}
	free(log.v);
	free(kept);
	*ret = h;
	return 0;
fail:
	free(log.v);
	free(kept);
	hindsight_free(h);
	return r;
}

void hindsight_free(struct hindsight *h)
{
	if (!h)
		return;
	free(h->segments);
	free(h->knots);
	free(h->bounds);
	free(h);
}

void hindsight_stats(const struct hindsight *h, struct hindsight_stats *ret)
{
	*ret = h->stats;
}

double hind_rate_bound(const struct hindsight *h, const struct hind_segment *g, int64_t t_ns)
{
	const struct hind_knot *k = h->knots + g->s.first_knot;
	const struct beam_config *cfg = h->cfg;
	size_t n = g->s.n_knots, i = hind_find(k, n, t_ns), j = i + 1 < n ? i + 1 : i;
	int64_t edge_ns = EDGE_BUCKETS * cfg->bucket_ns;
	double jump, rate;

	/* Where the curve is not to be trusted, the bound is one of the rate itself. */
	hind_curve(k, n, t_ns, &rate);
	jump = cfg->rate_jump + fabs(rate);
	if (n < 3)
		return jump;
	if (g->s.begin_ns != INT64_MIN && t_ns < g->s.begin_ns + edge_ns)
		return jump;
	if (g->s.end_ns != INT64_MAX &&
	    t_ns > (g->s.end_ns - edge_ns < g->s.suspect_ns ? g->s.end_ns - edge_ns : g->s.suspect_ns))
		return jump;
	return fmin(jump, cfg->rate_slack + 3 * fmax(k[i].unrest + k[i].rate_sd,
						      k[j].unrest + k[j].rate_sd));
}

static void place_hard(const struct hindsight *h, const struct hind_segment *g, int64_t t_ns,
		       double *lo, double *hi)
{
	const struct hind_bound *v = h->bounds + g->first_bound;
	size_t from = 0, to = g->n_bounds;
	double rate, base, w;

	*lo = -INFINITY;
	*hi = INFINITY;
	if (to == 0)
		return;
	base = hind_curve(h->knots + g->s.first_knot, g->s.n_knots, t_ns, &rate);
	w = hind_rate_bound(h, g, t_ns);
	while (to - from > 1) {
		size_t m = from + (to - from) / 2;

		if (v[m].at_ns <= t_ns)
			from = m;
		else
			to = m;
	}
	for (size_t i = from; i < g->n_bounds && i <= from + 1; i++) {
		double d = w * fabs(beam_seconds(v[i].at_ns, t_ns));

		*hi = fmin(*hi, v[i].hi + d);
		*lo = fmax(*lo, v[i].lo - d);
	}
	*hi += base;
	*lo += base;
}

static size_t find_segment(const struct hindsight *h, int64_t t_ns)
{
	size_t i = h->n_segments - 1;

	while (i > 0 && h->segments[i].s.begin_ns > t_ns)
		i--;
	return i;
}

static void unite(const struct hindsight *h, size_t i, int64_t t_ns, struct beam_point *ret)
{
	double lo, hi, shift = (double)(h->segments[i].s.theta0_ns - ret->theta0_ns);

	place_hard(h, &h->segments[i], t_ns, &lo, &hi);
	ret->hi = fmax(ret->hi, hi + shift);
	ret->lo = fmin(ret->lo, lo + shift);
}

/* Inside the gap before a segment any of those that it touches may hold. */
static bool place_gap(const struct hindsight *h, size_t i, int64_t t_ns, struct beam_point *ret)
{
	bool any = false;

	for (size_t k = i + 1; k < h->n_segments; k++) {
		const struct beam_segment *s = &h->segments[k].s;

		if (s->gap_ns == INT64_MIN || t_ns <= s->gap_ns)
			continue;
		any = true;
		if (s->wild) {
			ret->hi = INFINITY;
			ret->lo = -INFINITY;
		}
		for (size_t j = find_segment(h, s->gap_ns); j <= k; j++)
			unite(h, j, t_ns, ret);
	}
	return any;
}

void hindsight_place(const struct hindsight *h, host_time t, struct beam_point *ret)
{
	const struct hind_segment *g;
	const struct hind_knot *k;
	size_t i, at, n;
	double out = 0, sd;

	*ret = (struct beam_point){ .hi = INFINITY, .lo = -INFINITY, .soft = INFINITY,
				    .status = FLEET_VOID };
	if (h->n_segments == 0 || t.ns > MAX_NS || t.ns < -MAX_NS)
		return;
	i = find_segment(h, t.ns);
	g = &h->segments[i];
	k = h->knots + g->s.first_knot;
	n = g->s.n_knots;
	ret->segment = i;
	ret->theta0_ns = g->s.theta0_ns;
	ret->theta = hind_curve(k, n, t.ns, &ret->rate);
	place_hard(h, g, t.ns, &ret->lo, &ret->hi);
	at = hind_find(k, n, t.ns);
	if (t.ns < k[0].at_ns || at + 1 == n)
		out = fabs(beam_seconds(k[at].at_ns, t.ns));
	sd = fmax(k[at].sd, at + 1 < n ? k[at + 1].sd : 0);
	sd = sqrt(sd * sd + out * out * k[at].rate_sd * k[at].rate_sd + h->floors.variance / 4);
	ret->soft = h->cfg->z * sd + h->cfg->asymmetry_share * (h->floors.f + h->floors.r) / 2;
	ret->status = k[at].n_clear == 2 ? FLEET_ANCHORED
		      : k[at].n_clear    ? FLEET_ONE_SIDED
					 : FLEET_COASTING;
	if (out * 1e9 > (double)FRESH_NS)
		ret->status = FLEET_COASTING;
	if (place_gap(h, i, t.ns, ret)) {
		ret->status = FLEET_UNDECIDED;
		ret->soft = INFINITY;
	}
	ret->theta = fmin(fmax(ret->theta, ret->lo), ret->hi);
}
