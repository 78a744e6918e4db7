#include "clock_score.h"
#include "../../collector/align/hindsight.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define N_KNOTS 1024
#define N_SEGMENTS 256
#define NEAR_NS INT64_C(3000000000)
#define AFTER_NS INT64_C(2000000000)

int clock_errors_add(struct clock_errors *e, double ns)
{
	if (e->n == e->n_alloc) {
		size_t want = e->n_alloc ? 2 * e->n_alloc : 4096;
		double *grown = realloc(e->v, want * sizeof *grown);

		if (!grown)
			return -ENOMEM;
		e->v = grown;
		e->n_alloc = want;
	}
	e->v[e->n++] = ns;
	return 0;
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double clock_errors_at(struct clock_errors *e, double part)
{
	if (e->n == 0)
		return NAN;
	qsort(e->v, e->n, sizeof *e->v, ascending);
	return e->v[(size_t)(part * (double)(e->n - 1))];
}

void clock_errors_fini(struct clock_errors *e)
{
	free(e->v);
	*e = (struct clock_errors){ 0 };
}

static int claim(struct clock_claims *c, const struct beam_point *p, int64_t theta_ns, bool flagged)
{
	double truth = (double)(theta_ns - p->theta0_ns), error = fabs(p->theta - truth);
	bool missed = truth > p->hi + 1 || truth < p->lo - 1; /* stamps are whole ns */

	c->n++;
	c->n_flagged += flagged;
	c->n_misses += missed;
	c->n_soft_misses += error > p->soft;
	if (missed && !flagged) {
		c->n_misses_clear++;
		c->worst_miss_ns = fmax(c->worst_miss_ns, fmax(truth - p->hi, p->lo - truth));
	}
	if (clock_errors_add(&c->error, error) < 0 ||
	    (!flagged && clock_errors_add(&c->error_clear, error) < 0))
		return -ENOMEM;
	return clock_errors_add(&c->width, p->hi - p->lo);
}

static int score_hindsight(struct clock_score *s, const struct clock_world *w,
			   const struct beam_config *cfg)
{
	struct clock_errors run = { 0 };
	struct hindsight *h;
	int r = hindsight_new(&h, cfg, w->samples, w->n_samples);

	for (size_t i = 0; i < w->n_queries && r == 0; i++) {
		struct beam_point p;

		hindsight_place(h, (host_time){ w->queries[i].host_ns }, &p);
		r = claim(&s->hindsight, &p, w->queries[i].theta_ns, p.status >= FLEET_UNDECIDED);
		if (r == 0)
			r = clock_errors_add(&run, fabs(p.theta - (double)(w->queries[i].theta_ns -
									  p.theta0_ns)));
	}
	if (r == 0) {
		s->worst_p99_ns = fmax(s->worst_p99_ns, clock_errors_at(&run, 0.99));
		hindsight_free(h);
	}
	clock_errors_fini(&run);
	return r;
}

struct answer {
	struct beam_point p;
	bool flagged;
};

static double cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void feed(struct beam *b, const struct beam_sample *v)
{
	beam_exchange(b, (host_time){ v->t1_ns }, (fleet_time){ v->t1_ns + v->f_ns },
		      (fleet_time){ v->t4_ns + v->g_ns }, (host_time){ v->t4_ns });
}

/* What was later found to be a gap, and the two seconds after a step. */
static bool in_gap(const struct beam *b, int64_t t_ns)
{
	for (uint64_t i = 1; i < b->n_segments && i < N_SEGMENTS; i++)
		if (b->segments[i].gap_ns != INT64_MIN && t_ns > b->segments[i].gap_ns &&
		    t_ns < b->segments[i].begin_ns + AFTER_NS)
			return true;
	return false;
}

static bool is_false(const struct clock_world *w, int64_t t_ns)
{
	for (size_t i = 0; i < w->n_changes; i++)
		if (t_ns > w->changes[i][0] - NEAR_NS && t_ns < w->changes[i][1] + NEAR_NS)
			return false;
	return true;
}

static int score_live(struct clock_score *s, const struct clock_world *w,
		      const struct beam_config *cfg)
{
	static struct beam_knot knots[N_KNOTS];
	static struct beam_segment segments[N_SEGMENTS];
	static struct beam b;
	struct answer *a = calloc(w->n_queries + 1, sizeof *a);
	size_t q = 0;
	int r = 0;

	if (!a)
		return -ENOMEM;
	beam_init(&b, cfg, knots, N_KNOTS, segments, N_SEGMENTS);
	for (size_t i = 0; i < w->n_samples; i++) {
		for (; q < w->n_queries && w->queries[q].host_ns < w->samples[i].t4_ns; q++) {
			beam_place(&b, (host_time){ w->queries[q].host_ns }, &a[q].p);
			a[q].flagged = a[q].p.status >= FLEET_UNDECIDED;
		}
		feed(&b, &w->samples[i]);
	}
	for (size_t i = 0; i < q && r == 0; i++)
		r = claim(&s->live, &a[i].p, w->queries[i].theta_ns,
			  a[i].flagged || in_gap(&b, w->queries[i].host_ns));
	s->n_segments += b.n_segments;
	s->n_changes += w->n_changes;
	for (uint64_t i = 1; i < b.n_segments; i++)
		s->n_false_steps += is_false(w, b.segments[i].begin_ns);
	free(a);
	return r;
}

static void measure_cpu(struct clock_score *s, const struct clock_world *w,
			const struct beam_config *cfg)
{
	static struct beam_knot knots[N_KNOTS];
	static struct beam_segment segments[N_SEGMENTS];
	static struct beam b;
	double begin;

	beam_init(&b, cfg, knots, N_KNOTS, segments, N_SEGMENTS);
	begin = cpu_ns();
	for (size_t i = 0; i < w->n_samples; i++)
		feed(&b, &w->samples[i]);
	s->cpu_ns += cpu_ns() - begin;
	s->n_samples += w->n_samples;
}

int clock_score_run(struct clock_score *s, const struct clock_world *w,
		    const struct beam_config *cfg)
{
	int r = score_hindsight(s, w, cfg);

	if (r == 0)
		r = score_live(s, w, cfg);
	if (r == 0)
		measure_cpu(s, w, cfg);
	return r;
}

static void fini(struct clock_claims *c)
{
	clock_errors_fini(&c->error);
	clock_errors_fini(&c->error_clear);
	clock_errors_fini(&c->width);
}

void clock_score_fini(struct clock_score *s)
{
	fini(&s->hindsight);
	fini(&s->live);
	memset(s, 0, sizeof *s);
}
