/* sim_clock.c - what the clock estimator promises, over many simulated hosts.
 *
 *   sim_clock [FIRST_SEED [RUNS]]
 *
 * A million instants a scenario: none lies outside its hard bound, in hindsight
 * anywhere, live outside the time that is flagged. The errors stay within what is
 * promised, nothing looks like a step that is none, and the same input gives the
 * same bytes.
 */
#include "clock_score.h"
#include "../../collector/align/hindsight.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RATE_HZ 10.0
#define N_QUERIES 12000
#define FIRST_SEED 500000
#define N_RUNS 84

struct promise {
	char scenario;
	double floor_us; /* of the round trip: the widest that is in it for long, and for K what 1 ppm adds */
	double median_us, p99_us, worst_run_us, live_p99_us, flagged; /* flagged: share */
	uint64_t n_false_steps;
};

static const struct promise promises[] = {
	{ 'A', 50, 0.05, 0.125, 0.25, 0.5, 0, 0 },
	{ 'B', 50, 0.06, 0.25, 4, 0.5, 0, 0 },
	{ 'C', 50, 0.08, 0.25, 0.5, 0.875, 0, 0 },
	{ 'D', 50, 0.06, 0.75, 20, 1.5, 0.004, 2 },
	{ 'E', 60, 10.1, 10.2, 10.3, 10.4, 0, 0 },
	{ 'F', 62, 0.2, 0.7, 1.25, 2.5, 0, 0 },
	{ 'G', 60, 0.08, 2.5, 3, 2.5, 0, 0 },
	{ 'H', 79, 0.8, 20, 150, 25, 0.025, 20 },
	{ 'K', 0.8, 0.03, 0.0625, 0.1, 0.1875, 0, 0 },
};

static unsigned n_broken;

static void expect(bool held, const struct promise *p, const char *what, double found, double limit)
{
	if (held)
		return;
	fprintf(stderr, "%c: %s: %g, promised %g\n", p->scenario, what, found, limit);
	n_broken++;
}

static void at_most(const struct promise *p, const char *what, double found, double limit)
{
	expect(found <= limit, p, what, found, limit);
}

static void check_score(const struct promise *p, struct clock_score *s)
{
	struct clock_claims *h = &s->hindsight, *l = &s->live;

	at_most(p, "hard bounds missed in hindsight", (double)h->n_misses, 0);
	at_most(p, "hard bounds missed live", (double)l->n_misses_clear, 0);
	at_most(p, "median in hindsight, us", clock_errors_at(&h->error_clear, 0.5) / 1e3, p->median_us);
	at_most(p, "p99 in hindsight, us", clock_errors_at(&h->error_clear, 0.99) / 1e3, p->p99_us);
	at_most(p, "p99 of the worst run, us", s->worst_p99_ns / 1e3, p->worst_run_us);
	at_most(p, "p99 live, us", clock_errors_at(&l->error_clear, 0.99) / 1e3, p->live_p99_us);
	at_most(p, "width in hindsight, us", clock_errors_at(&h->width, 0.5) / 1e3, 1.1 * p->floor_us);
	at_most(p, "width live, us", clock_errors_at(&l->width, 0.5) / 1e3, 1.1 * p->floor_us);
	at_most(p, "share flagged in hindsight", (double)h->n_flagged / (double)h->n, p->flagged);
	at_most(p, "false steps", (double)s->n_false_steps, (double)p->n_false_steps);
}

static bool run_scenario(const struct promise *p, uint64_t seed, unsigned n_runs)
{
	struct clock_score s = { 0 };
	int r = 0;

	for (unsigned i = 0; i < n_runs && r == 0; i++) {
		struct clock_world w;

		r = clock_world_make(&w, p->scenario, seed + i, RATE_HZ, N_QUERIES);
		if (r == 0)
			r = clock_score_run(&s, &w, &beam_defaults);
		clock_world_fini(&w);
	}
	if (r == 0) {
		check_score(p, &s);
		printf("%c: %" PRIu64 " instants; in hindsight %.3f / %.3f us, live %.3f / %.3f us, "
		       "%" PRIu64 " + %" PRIu64 " misses\n", p->scenario, s.hindsight.n,
		       clock_errors_at(&s.hindsight.error_clear, 0.5) / 1e3,
		       clock_errors_at(&s.hindsight.error_clear, 0.99) / 1e3,
		       clock_errors_at(&s.live.error_clear, 0.5) / 1e3,
		       clock_errors_at(&s.live.error_clear, 0.99) / 1e3, s.hindsight.n_misses,
		       s.live.n_misses_clear);
	}
	clock_score_fini(&s);
	return r == 0;
}

/* ---- the same input gives the same bytes ---- */

static uint64_t mix(uint64_t h, const void *v, size_t n)
{
	const unsigned char *b = v;

	for (size_t i = 0; i < n; i++)
		h = (h ^ b[i]) * UINT64_C(0x100000001b3);
	return h;
}

static uint64_t mix_point(uint64_t h, const struct beam_point *p)
{
	h = mix(h, &p->theta0_ns, sizeof p->theta0_ns);
	h = mix(h, &p->theta, sizeof p->theta);
	h = mix(h, &p->hi, sizeof p->hi);
	h = mix(h, &p->lo, sizeof p->lo);
	h = mix(h, &p->soft, sizeof p->soft);
	return mix(h, &p->status, sizeof p->status);
}

/* dirt: what lay in the memory before. */
static uint64_t digest(const struct clock_world *w, int dirt)
{
	static struct beam_knot knots[256];
	static struct beam_segment segments[16];
	static struct beam b;
	struct hindsight *h;
	struct beam_point p;
	uint64_t sum = 1;

	memset(knots, dirt, sizeof knots);
	memset(segments, dirt, sizeof segments);
	memset(&b, dirt, sizeof b);
	beam_init(&b, NULL, knots, 256, segments, 16);
	for (size_t i = 0; i < w->n_samples; i++) {
		beam_take(&b, &w->samples[i]);
		beam_place(&b, (host_time){ w->samples[i].t4_ns }, &p);
		sum = mix_point(sum, &p);
	}
	if (hindsight_new(&h, NULL, w->samples, w->n_samples) < 0)
		return (uint64_t)dirt;
	for (size_t i = 0; i < w->n_queries; i++) {
		hindsight_place(h, (host_time){ w->queries[i].host_ns }, &p);
		sum = mix_point(sum, &p);
	}
	hindsight_free(h);
	return sum;
}

static void check_same_bytes(uint64_t seed)
{
	struct clock_world w;

	if (clock_world_make(&w, 'H', seed, RATE_HZ, 1000) < 0)
		return;
	if (digest(&w, 0) != digest(&w, 0x5a)) {
		fprintf(stderr, "the same input gives other bytes\n");
		n_broken++;
	}
	clock_world_fini(&w);
}

int main(int argc, char **argv)
{
	uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 10) : FIRST_SEED;
	unsigned n_runs = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : N_RUNS;

	for (size_t i = 0; i < sizeof promises / sizeof *promises; i++)
		if (!run_scenario(&promises[i], seed, n_runs))
			return 1;
	check_same_bytes(seed);
	if (n_broken > 0)
		fprintf(stderr, "seeds %" PRIu64 " and the next %u: %u promises broken\n", seed, n_runs,
			n_broken);
	return n_broken > 0;
}
