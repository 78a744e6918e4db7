/* sim_pairs - how well do collectives tell one host's time from another's?
 *
 *     sim_pairs [SEEDS] [FIRST_SEED]
 *
 * A table over kinds of job: error of probes alone, of the middle of what is
 * proven, of the answer at once and of the answer 16 s later; every second, every
 * pair. Exit 1 when an interval that claims to be hard misses the truth, when a
 * small collective's target is not met, or when a wrong match goes unnoticed.
 * Seeds 1..500 and 22 each from 20000, 40000, 60000, 80000 and 100000 were looked at
 * while the method was chosen; the default starts at 120000.
 */
#include "../../collector/align/repair.h"
#include "colls.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define SECOND INT64_C(1000000000)
#define HINDSIGHT 16
#define WARM_UP 20 /* s; the first call comes after 10 */
#define MAX_RANKS 128

struct series {
	float *v;
	size_t n, n_alloc;
};

static void push(struct series *s, double v)
{
	if (s->n == s->n_alloc) {
		s->n_alloc = s->n_alloc ? 2 * s->n_alloc : 4096;
		s->v = realloc(s->v, s->n_alloc * sizeof *s->v);
		if (!s->v)
			abort();
	}
	s->v[s->n++] = (float)v;
}

static int by_value(const void *a, const void *b)
{
	float x = *(const float *)a, y = *(const float *)b;

	return (x > y) - (x < y);
}

/* Sorts. */
static double share(struct series *s, double q)
{
	if (s->n == 0)
		return NAN;
	qsort(s->v, s->n, sizeof *s->v, by_value);
	return s->v[(size_t)(q * (double)(s->n - 1))];
}

enum { BY_PROBES, BY_BOUNDS, BY_ANSWER, BY_HINDSIGHT, N_WAYS };

struct score {
	struct series error[N_WAYS], width, soft;
	uint64_t n_checks, n_misses, n_soft, n_soft_misses, n_calls, n_refused, n_doubtful;
	uint64_t n_shown, n_impossible[3]; /* placed by probes, by pairs, repaired */
	double worst_miss_ns;
};

struct bed {
	struct colls sim;
	struct pairs *pairs;
	uint32_t groups[3], n_groups, first[3], stride[3]; /* ranks first, first + stride … */
	int64_t theta_probe[MAX_RANKS];
	uint32_t lost[MAX_RANKS];
};

/* How the ranks are connected. */
enum shape { ONE_GROUP, TWO_AND_A_BRIDGE };

/* Which of its numbers a rank gets wrong. */
enum fault { NO_FAULT, AHEAD_BY_ONE, BEHIND_BY_ONE, ONE_IN_FIFTY, SAMPLED, N_FAULTS };
static const char *fault_names[] = { "none", "rank 3 ahead by one", "rank 3 behind by one",
				     "one call in fifty is another", "each rank loses 1 %" };

static void probe_all(struct bed *b, int64_t t_ns)
{
	for (uint32_t i = 0; i < b->sim.cfg.n_ranks; i++) {
		struct pairs_probe k;

		colls_probe(&b->sim, i, t_ns, &k);
		b->theta_probe[i] = k.offset_ns - colls_theta(&b->sim, i, t_ns);
		if (pairs_probe(b->pairs, i, &k) != 0)
			abort();
	}
}

static void add_group(struct bed *b, uint32_t first, uint32_t stride, uint32_t n)
{
	uint32_t nodes[MAX_RANKS];
	int64_t r;

	for (uint32_t i = 0; i < n; i++)
		nodes[i] = first + i * stride;
	r = pairs_group(b->pairs, nodes, n);
	if (r < 0)
		abort();
	b->first[b->n_groups] = first;
	b->stride[b->n_groups] = stride;
	b->groups[b->n_groups++] = (uint32_t)r;
}

static void start(struct bed *b, const struct colls_config *cfg, enum shape shape)
{
	uint32_t n = cfg->n_ranks;

	*b = (struct bed){ 0 };
	colls_make(&b->sim, cfg);
	if (pairs_new(&b->pairs, &pairs_defaults) < 0)
		abort();
	for (uint32_t i = 0; i < n; i++)
		if (pairs_node(b->pairs) < 0)
			abort();
	if (shape == ONE_GROUP) {
		add_group(b, 0, 1, n);
	} else {
		add_group(b, 0, 1, n / 2);
		add_group(b, n / 2, 1, n / 2);
		add_group(b, 0, n / 2, 2);
	}
}

static void stop(struct bed *b)
{
	pairs_free(b->pairs);
	colls_fini(&b->sim);
}

static void ask_all(struct bed *b, int64_t t_ns, bool hindsight, struct score *s)
{
	uint32_t n = b->sim.cfg.n_ranks;

	for (uint32_t i = 0; i < n; i++)
		for (uint32_t j = i + 1; j < n; j++) {
			int64_t truth =
				colls_theta(&b->sim, j, t_ns) - colls_theta(&b->sim, i, t_ns);
			struct pairs_answer a;
			double err, miss;

			if (pairs_ask(b->pairs, i, j, t_ns, &a) != 0)
				abort();
			err = fabs((double)(a.offset_ns - truth));
			push(&s->error[hindsight ? BY_HINDSIGHT : BY_ANSWER], err);
			s->n_checks++;
			miss = fmax((double)(a.lo_ns - truth), (double)(truth - a.hi_ns));
			if (miss > 0) {
				s->n_misses++;
				s->worst_miss_ns = fmax(s->worst_miss_ns, miss);
			}
			s->n_soft++;
			s->n_soft_misses += err > (double)a.soft_ns;
			if (hindsight)
				continue;
			push(&s->error[BY_PROBES],
			     fabs((double)(b->theta_probe[j] - b->theta_probe[i])));
			push(&s->error[BY_BOUNDS],
			     fabs((double)(a.lo_ns + (a.hi_ns - a.lo_ns) / 2 - truth)));
			push(&s->soft, (double)a.soft_ns);
			push(&s->width, (double)(a.hi_ns - a.lo_ns));
		}
}

/* The call that rank i makes under number k. */
static uint32_t numbered(struct bed *b, uint32_t k, uint32_t i, enum fault fault)
{
	uint32_t at = k;

	if (k <= b->sim.n_calls / 2)
		return k;
	if (fault == SAMPLED) {
		b->lost[i] += colls_unit(&b->sim.rng) < 0.01;
		at = k + b->lost[i];
	} else if (i == 3) {
		at += fault == AHEAD_BY_ONE;
		at -= fault == BEHIND_BY_ONE;
		at += fault == ONE_IN_FIFTY && k % 50 == 7 ? 3 : 0;
	}
	return at < b->sim.n_calls ? at : k;
}

static int tell(struct bed *b, uint32_t k, enum fault fault, struct pairs_proof *proof)
{
	const struct colls_config *cfg = &b->sim.cfg;
	uint32_t g = k % b->n_groups, n = cfg->n_ranks, m = 0;
	int64_t enter[MAX_RANKS], exit[MAX_RANKS];

	for (uint32_t i = b->first[g]; i < n && (b->n_groups == 1 || m < (g == 2 ? 2 : n / 2));
	     i += b->stride[g], m++) {
		uint32_t at = numbered(b, k, i, fault);

		enter[m] = b->sim.enter_host_ns[at * n + i];
		exit[m] = b->sim.exit_host_ns[at * n + i];
	}
	return pairs_call(
		b->pairs,
		&(struct pairs_call){ .group = b->groups[g],
				      .seq = k,
				      .kind = 1,
				      .bytes = 64,
				      .need = cfg->broadcast ? PAIRS_NEED_ROOT : PAIRS_NEED_ALL,
				      .root = k % n,
				      .together = !cfg->broadcast,
				      .enter_ns = enter,
				      .exit_ns = exit },
		proof);
}

static bool is_impossible(const int64_t *enter, const int64_t *exit, uint32_t n)
{
	int64_t last = INT64_MIN, first = INT64_MAX;

	for (uint32_t i = 0; i < n; i++) {
		last = enter[i] > last ? enter[i] : last;
		first = exit[i] < first ? exit[i] : first;
	}
	return first < last;
}

/* One call as a picture would show it, a while later. */
static void show(struct bed *b, uint32_t k, struct score *s)
{
	static int64_t slack[MAX_RANKS * MAX_RANKS];
	int64_t enter[MAX_RANKS], exit[MAX_RANKS], soft[MAX_RANKS], shift[MAX_RANKS],
		scratch[4 * MAX_RANKS], ignored;
	uint32_t n = b->sim.cfg.n_ranks;
	enum repair_outcome r;

	for (uint32_t i = 0; i < n; i++) {
		int64_t in = b->sim.enter_host_ns[k * n + i], out = b->sim.exit_host_ns[k * n + i];
		double bias = b->sim.clocks[i].asymmetry_ns;

		enter[i] = in + colls_theta(&b->sim, i, b->sim.enter_ns[k * n + i]) + llround(bias);
		exit[i] = out + colls_theta(&b->sim, i, b->sim.exit_ns[k * n + i]) + llround(bias);
	}
	s->n_shown++;
	s->n_impossible[0] += is_impossible(enter, exit, n);
	for (uint32_t i = 0; i < n; i++)
		if (pairs_place(b->pairs, i, b->sim.enter_host_ns[k * n + i], &enter[i],
				&soft[i]) ||
		    pairs_place(b->pairs, i, b->sim.exit_host_ns[k * n + i], &exit[i], &ignored))
			abort();
	s->n_impossible[1] += is_impossible(enter, exit, n);
	repair_start(slack, n);
	repair_call(slack, n, enter, exit);
	r = repair(slack, n, soft, scratch, shift);
	for (uint32_t i = 0; i < n; i++) {
		enter[i] += shift[i];
		exit[i] += shift[i];
	}
	if ((r != REPAIR_IMPOSSIBLE) == is_impossible(enter, exit, n))
		abort();
	s->n_impossible[2] += is_impossible(enter, exit, n);
}

static void play(const struct colls_config *cfg, enum shape shape, struct score *s)
{
	struct bed b;
	uint32_t k = 0, shown = 0;

	start(&b, cfg, shape);
	for (int64_t sec = 0; sec < (int64_t)cfg->seconds - 8; sec++) {
		int64_t now = COLLS_START_NS + sec * SECOND;

		for (; k < b.sim.n_calls && b.sim.exit_ns[k * cfg->n_ranks] < now; k++) {
			struct pairs_proof proof;
			int r = tell(&b, k, NO_FAULT, &proof);

			s->n_calls++;
			s->n_refused += r != PAIRS_OK;
			if (r == PAIRS_VIOLATION)
				printf("  false proof: seed %llu call %u, %lld ns, source %d\n",
				       (unsigned long long)cfg->seed, k,
				       (long long)proof.impossible_ns, (int)proof.source);
		}
		probe_all(&b, now);
		if (sec < WARM_UP || (cfg->n_ranks > 16 && sec % 5 != 0))
			continue;
		ask_all(&b, now, false, s);
		if (sec < WARM_UP + HINDSIGHT)
			continue;
		ask_all(&b, now - HINDSIGHT * SECOND, true, s);
		for (; shape == ONE_GROUP && !cfg->broadcast &&
		       b.sim.exit_ns[shown * cfg->n_ranks] < now - HINDSIGHT * SECOND;
		     shown++)
			show(&b, shown, s);
	}
	for (uint32_t i = 0; i < b.n_groups; i++)
		s->n_doubtful += pairs_n_doubtful(b.pairs, b.groups[i]);
	stop(&b);
}

struct row {
	const char *name;
	struct colls_config cfg;
	double median_us, p99_us; /* target of the answer at once; 0 = none */
	uint32_t few;		  /* take every so many seeds */
	enum shape shape;
};

static int table(uint64_t first, uint32_t n_seeds)
{
	struct row rows[20];
	size_t n = 0;
	int bad = 0;

#define ROW(text, few_, m, p, ...)                                                                 \
	do {                                                                                       \
		rows[n] = (struct row){ text, colls_defaults, m, p, few_ };                        \
		struct colls_config *c = &rows[n++].cfg;                                           \
		__VA_ARGS__;                                                                       \
	} while (0)
	ROW("8 ranks, 16 us, 10/s", 1, 0.6, 2.0, c->rate_hz = 10);
	ROW("8 ranks, 16 us, 1/s", 1, 0.6, 2.0, c->rate_hz = 1);
	ROW("8 ranks, 5 ms, 1/s", 1, 0, 0, c->comm_us = 5000, c->comm_jitter = 0.03);
	ROW("8 ranks, host stamps 10 us, 10/s", 1, 0, 0, c->rate_hz = 10, c->host_us = 10);
	ROW("8 ranks, host stamps 10 us, 1/s", 1, 0, 0, c->host_us = 10);
	ROW("8 ranks, exit habit 10 us, 10/s", 1, 0, 0, c->rate_hz = 10, c->exit_bias_us = 10);
	ROW("8 ranks, ring 0.5 us a step, 10/s", 1, 0, 0, c->rate_hz = 10, c->exit_bias_us = 0,
	    c->ring_us = 0.5);
	ROW("8 ranks, rank 1 last in 80 %, 2/s", 1, 0.6, 2.0, c->rate_hz = 2, c->straggler = 0.8);
	ROW("64 ranks, 25 us, 2/s", 8, 0.6, 2.0, c->n_ranks = 64, c->comm_us = 25, c->rate_hz = 2);
	ROW("8 ranks, 1/s, rates 15 s late", 1, 0.6, 2.2, c->rate_hz = 1, c->rate_lag_s = 15,
	    c->rate_noise = 0.1e-6);
	ROW("8 ranks, broadcasts, 10/s", 1, 0, 0, c->rate_hz = 10, c->broadcast = true);
	ROW("8 ranks, bursts of 3, 3/s", 1, 0.6, 2.0, c->rate_hz = 3, c->burst = 3);
	ROW("2 groups of 4 and a pair, 6/s", 1, 0, 0, c->rate_hz = 6);
	rows[n - 1].shape = TWO_AND_A_BRIDGE;
	ROW("100 ranks, 25 us, 2/s", 8, 0, 0, c->n_ranks = 100, c->comm_us = 25, c->rate_hz = 2);
#undef ROW
	printf("%-36s %14s %14s %14s %14s %7s %16s %7s %9s  %s\n", "", "probes", "bounds' middle",
	       "at once", "16 s later", "width", "hard misses", "soft", "soft out",
	       "impossible, %");
	for (size_t i = 0; i < n; i++) {
		struct score s = { 0 };

		for (uint32_t k = 0; k < n_seeds; k += rows[i].few) {
			rows[i].cfg.seed = first + k;
			play(&rows[i].cfg, rows[i].shape, &s);
		}
		printf("%-36s", rows[i].name);
		for (int w = 0; w < N_WAYS; w++)
			printf(" %6.2f / %5.2f", share(&s.error[w], 0.5) / 1e3,
			       share(&s.error[w], 0.99) / 1e3);
		printf(" %7.1f %4llu / %9llu %7.2f %8.2f%% ", share(&s.width, 0.5) / 1e3,
		       (unsigned long long)s.n_misses, (unsigned long long)s.n_checks,
		       share(&s.soft, 0.5) / 1e3,
		       100.0 * (double)s.n_soft_misses / (double)s.n_soft);
		printf(" %5.2f", 100.0 * (double)s.n_doubtful / (double)s.n_calls);
		for (int w = 0; w < 3 && s.n_shown; w++)
			printf(" %5.2f", 100.0 * (double)s.n_impossible[w] / (double)s.n_shown);
		if (s.n_misses || s.n_refused ||
		    (rows[i].p99_us > 0 &&
		     (share(&s.error[BY_ANSWER], 0.5) > rows[i].median_us * 1e3 ||
		      share(&s.error[BY_ANSWER], 0.99) > rows[i].p99_us * 1e3))) {
			printf("  FAILED");
			bad = 1;
		}
		printf("\n");
		fflush(stdout);
		for (int w = 0; w < N_WAYS; w++)
			free(s.error[w].v);
		free(s.width.v);
		free(s.soft.v);
	}
	return bad;
}

/* One run with a fault in its second half; after every call every pair is asked.
 * Returns how many calls it took to be noticed, UINT32_MAX when never. */
static uint32_t play_fault(const struct colls_config *cfg, enum fault fault, struct score *s)
{
	uint32_t k = 0, n = cfg->n_ranks, noticed = UINT32_MAX;
	struct bed b;

	start(&b, cfg, ONE_GROUP);
	for (int64_t sec = 0; sec < (int64_t)cfg->seconds - 10; sec++) {
		int64_t now = COLLS_START_NS + sec * SECOND;

		for (; k < b.sim.n_calls && b.sim.exit_ns[k * n] < now; k++) {
			if (tell(&b, k, fault, NULL) == PAIRS_VIOLATION)
				noticed = k - b.sim.n_calls / 2;
			if (sec >= WARM_UP)
				ask_all(&b, b.sim.exit_ns[k * n], false, s);
		}
		probe_all(&b, now);
	}
	if (!pairs_is_quarantined(b.pairs, b.groups[0]))
		noticed = UINT32_MAX;
	stop(&b);
	return noticed;
}

/* A wrong match is noticed, and no interval that is called hard is wrong, before or after. */
static int faults(uint64_t first, uint32_t n_seeds)
{
	static const struct {
		const char *name;
		double rate_hz;
		uint32_t burst;
	} kinds[] = { { "10/s", 10, 0 },
		      { "1/s", 1, 0 },
		      { "bursts of 3", 3, 3 },
		      { "bursts of 12", 12, 12 } };
	int bad = 0;

	printf("\n%-34s %-14s %9s %14s %20s\n", "wrong matches", "calls", "noticed", "after calls",
	       "hard misses");
	for (size_t kind = 0; kind < sizeof kinds / sizeof *kinds; kind++)
		for (int f = AHEAD_BY_ONE; f < N_FAULTS; f++) {
			uint32_t n_noticed = 0, worst = 0;
			struct score s = { 0 };

			for (uint32_t i = 0; i < n_seeds; i++) {
				struct colls_config cfg = colls_defaults;
				uint32_t after;

				cfg.seed = first + i;
				cfg.seconds = 200;
				cfg.rate_hz = kinds[kind].rate_hz;
				cfg.burst = kinds[kind].burst;
				after = play_fault(&cfg, (enum fault)f, &s);
				n_noticed += after != UINT32_MAX;
				worst = after > worst ? after : worst;
			}
			printf("%-34s %-14s %4u / %2u %14u %9llu / %8llu", fault_names[f],
			       kinds[kind].name, n_noticed, n_seeds, worst,
			       (unsigned long long)s.n_misses, (unsigned long long)s.n_checks);
			if (n_noticed < n_seeds || s.n_misses) {
				printf("  FAILED");
				bad = 1;
			}
			printf("\n");
			for (int w = 0; w < N_WAYS; w++)
				free(s.error[w].v);
			free(s.width.v);
			free(s.soft.v);
		}
	return bad;
}

int main(int argc, char **argv)
{
	uint32_t n_seeds = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 5;
	uint64_t first = argc > 2 ? strtoull(argv[2], NULL, 10) : 120000;
	int bad;

	printf("One host's time against another's: error in us, median / p99; %u seeds from %llu\n",
	       n_seeds, (unsigned long long)first);
	bad = getenv("FAULTS_ONLY") ? 0 : table(first, n_seeds);
	return faults(first, n_seeds) | bad;
}
