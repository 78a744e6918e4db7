/* sim_bracket - where is a GPU's timer, when only launches and completions are seen?
 *
 *     sim_bracket [SEEDS] [FIRST_SEED]
 *
 * A table over timers and habits of a job: error of the middle, width of what is
 * possible, at once and 20 s later. Exit 1 when an interval misses the truth, when
 * a reset of the timer is not seen or a false one is. Seeds below 500 were looked
 * at; the default starts at 30000.
 */
#include "../../collector/align/bracket.h"
#include "colls.h"

#include <math.h>
#include <stdio.h>

#define SECOND INT64_C(1000000000)
#define LATER 20
#define N_CHECKS 40 /* instants a second */

struct job {
	const char *name;
	int64_t step_ns;
	double rate_hz;
	double launch_us, seen_us;  /* least; an exponential of half of it comes on top */
	double queued, queue_us;    /* share of launches behind other work, mean wait */
	double late, late_us;	    /* share of ends that are looked for late */
	double odd;		    /* share of kernels that get another's launch */
	int64_t reset_ns;	    /* of the timer, after half of the time */
	int64_t deaf_from, deaf_to; /* s in which no end is seen */
};

struct score {
	float *error[2], *width;
	size_t n[2], n_width;
	uint64_t n_misses, n_checks, n_restarts, n_refused, n_events, n_undecided;
};

#define MAX_POINTS 400000

static int by_value(const void *a, const void *b)
{
	float x = *(const float *)a, y = *(const float *)b;

	return (x > y) - (x < y);
}

static double share(float *v, size_t n, double q)
{
	qsort(v, n, sizeof *v, by_value);
	return n ? v[(size_t)(q * (double)(n - 1))] / 1e3 : NAN;
}

static int64_t timer(const struct colls *s, const struct job *j, int64_t t_ns, int64_t half_ns)
{
	int64_t gpu = t_ns - colls_theta(s, 0, t_ns) + (t_ns >= half_ns ? j->reset_ns : 0);

	return gpu - (gpu % j->step_ns + j->step_ns) % j->step_ns;
}

static void check(const struct colls *s, const struct job *j, const struct bracket *b, int64_t t_ns,
		  int64_t half_ns, int way, struct score *score)
{
	int64_t gpu = t_ns - colls_theta(s, 0, t_ns) + (t_ns >= half_ns ? j->reset_ns : 0);
	struct bracket_point p;

	bracket_map(b, gpu, &p);
	score->n_undecided += p.status == BRACKET_UNDECIDED;
	if (p.status == BRACKET_UNDECIDED)
		return;
	score->n_checks++;
	score->n_misses += p.lo_ns > t_ns - gpu || p.hi_ns < t_ns - gpu;
	if (p.status != BRACKET_BOTH || score->n[way] == MAX_POINTS)
		return;
	score->error[way][score->n[way]++] = fabsf((float)(p.offset_ns - (t_ns - gpu)));
	if (way == 0 && score->n_width < MAX_POINTS)
		score->width[score->n_width++] = (float)(p.hi_ns - p.lo_ns);
}

static void play(const struct job *j, uint64_t seed, struct score *score)
{
	struct colls_config cfg = colls_defaults;
	struct bracket_config how = bracket_defaults;
	int64_t next_ns = COLLS_START_NS, half_ns = INT64_MAX, launch_before = 0, start_before = 0;
	struct bracket b;
	struct colls s;

	cfg.n_ranks = 1;
	cfg.seconds = 320;
	cfg.rate_hz = 0.1;
	cfg.seed = seed;
	colls_make(&s, &cfg);
	if (j->reset_ns)
		half_ns = COLLS_START_NS + 150 * SECOND;
	how.step_ns = j->step_ns;
	bracket_init(&b, &how);
	for (int64_t sec = 0; sec < 300; sec++) {
		int64_t now = COLLS_START_NS + sec * SECOND;
		bool near_reset = j->reset_ns && sec >= 150 && sec < 154;

		for (; next_ns < now;
		     next_ns += (int64_t)colls_exponential(&s.rng, 1e9 / j->rate_hz)) {
			double wait = colls_unit(&s.rng) < j->queued
					      ? colls_exponential(&s.rng, j->queue_us)
					      : 0;
			int64_t launch = next_ns, start, end, seen;
			int odd = colls_unit(&s.rng) < j->odd;

			start = launch +
				llround(1e3 * (j->launch_us + wait +
					       colls_exponential(&s.rng, j->launch_us / 2)));
			end = start + 5000 + llround(colls_exponential(&s.rng, 200e3));
			seen = end + llround(1e3 * (j->seen_us +
						    colls_exponential(&s.rng, j->seen_us / 2)));
			if (colls_unit(&s.rng) < j->late)
				seen += llround(1e3 * colls_exponential(&s.rng, j->late_us));
			score->n_events++;
			/* The launch of this kernel with the start of the one before. */
			score->n_refused +=
				bracket_after(&b, launch,
					      odd && start_before > launch_before
						      ? timer(&s, j, start_before, half_ns)
						      : timer(&s, j, start, half_ns)) ==
				BRACKET_REFUSED;
			if (sec < j->deaf_from || sec >= j->deaf_to)
				bracket_before(&b, timer(&s, j, end, half_ns), seen);
			launch_before = launch;
			start_before = start;
		}
		if (sec < 5 || near_reset)
			continue;
		for (int64_t k = 0; k < N_CHECKS; k++) {
			int64_t at = now - k * (SECOND / N_CHECKS);

			check(&s, j, &b, at, half_ns, 0, score);
			if (sec > 6 + LATER && (!j->reset_ns || sec < 150 || sec > 154 + LATER))
				check(&s, j, &b, at - LATER * SECOND, half_ns, 1, score);
		}
	}
	score->n_restarts += b.n_restarts;
	colls_fini(&s);
}

static const struct job jobs[] = {
	{ "32 ns timer, idle queue", 32, 200, 3, 1, 0.3, 2000, 0.3, 1000 },
	{ "1 us timer, idle queue", 1000, 200, 3, 1, 0.3, 2000, 0.3, 1000 },
	{ "32 ns, 1 in 100 launches idle", 32, 200, 3, 1, 0.99, 3000, 0.3, 1000 },
	{ "32 ns, 1 in 100 ends seen at once", 32, 200, 3, 1, 0.3, 2000, 0.99, 20000 },
	{ "32 ns, 2 kernels a second", 32, 2, 3, 1, 0.5, 2000, 0.5, 1000 },
	{ "32 ns, slow launches (15 us)", 32, 200, 15, 1, 0.3, 2000, 0.3, 1000 },
	{ "32 ns, no end seen for a minute", 32, 200, 3, 1, 0.3, 2000, 0.3, 1000, 0, 0, 100, 160 },
	{ "32 ns, timer reset by -3 s", 32, 200, 3, 1, 0.3, 2000, 0.3, 1000, 0, -3000000000 },
	{ "32 ns, timer set by 1 ms", 32, 200, 3, 1, 0.3, 2000, 0.3, 1000, 0, 1000000 },
	{ "1 us, 1 in 5000 takes another launch", 1000, 200, 3, 1, 0.3, 2000, 0.3, 1000, 2e-4 },
};

int main(int argc, char **argv)
{
	uint32_t n_seeds = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 20;
	uint64_t first = argc > 2 ? strtoull(argv[2], NULL, 10) : 30000;
	int bad = 0;

	printf("A GPU's timer on the host's time line: us, median / p99; %u seeds from %llu\n",
	       n_seeds, (unsigned long long)first);
	printf("%-38s %14s %14s %16s %18s %9s %8s %9s\n", "", "at once", "20 s later", "width",
	       "misses", "restarts", "refused", "undecided");
	for (size_t i = 0; i < sizeof jobs / sizeof *jobs; i++) {
		struct score s = { 0 };
		uint64_t expected = jobs[i].reset_ns ? n_seeds : 0;

		for (int w = 0; w < 2; w++)
			s.error[w] = malloc(MAX_POINTS * sizeof *s.error[w]);
		s.width = malloc(MAX_POINTS * sizeof *s.width);
		if (!s.error[0] || !s.error[1] || !s.width)
			return 2;
		for (uint32_t k = 0; k < n_seeds; k++)
			play(&jobs[i], first + k, &s);
		printf("%-38s", jobs[i].name);
		for (int w = 0; w < 2; w++)
			printf(" %6.2f / %5.2f", share(s.error[w], s.n[w], 0.5),
			       share(s.error[w], s.n[w], 0.99));
		printf(" %7.1f / %6.1f", share(s.width, s.n_width, 0.5),
		       share(s.width, s.n_width, 0.99));
		printf(" %7llu / %8llu %9llu %8llu %9llu", (unsigned long long)s.n_misses,
		       (unsigned long long)s.n_checks, (unsigned long long)s.n_restarts,
		       (unsigned long long)s.n_refused, (unsigned long long)s.n_undecided);
		if (s.n_misses || s.n_restarts != expected) {
			printf("  FAILED");
			bad = 1;
		}
		printf("\n");
		for (int w = 0; w < 2; w++)
			free(s.error[w]);
		free(s.width);
	}
	return bad;
}
