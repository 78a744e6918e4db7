/* clock_table.c - the numbers of docs/clock.md, from one command.
 *
 *   clock_table [SCENARIOS [SEED [RUNS]]]      simulated, e.g. clock_table ABCDEFGH 100000 16
 *   clock_table --read TITLE FILE…             samples that someone else simulated
 *
 * A file has a line "s T1 T2 T3 T4" for each exchange as it came back and a line
 * "q HOST THETA" for each truth, all in whole ns.
 */
#include "clock_peers.h"
#include "clock_score.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RATE_HZ 10.0
#define N_QUERIES 12000

struct peer_score {
	struct clock_errors error, width;
	uint64_t n, n_misses;
};

struct table {
	struct peer_score peers[CLOCK_N_PEERS];
	struct clock_score beam;
	unsigned n_runs;
};

static int add_peer(struct peer_score *s, enum clock_peer p, const struct clock_world *w)
{
	double *error = malloc(2 * w->n_queries * sizeof *error), *half = error + w->n_queries;
	int r = error ? clock_peer_run(p, w, error, half) : -ENOMEM;

	for (size_t i = 0; i < w->n_queries && r == 0; i++) {
		r = clock_errors_add(&s->error, fabs(error[i]));
		if (r < 0 || isnan(half[i]))
			continue;
		s->n++;
		s->n_misses += fabs(error[i]) > half[i];
		r = clock_errors_add(&s->width, 2 * half[i]);
	}
	free(error);
	return r;
}

static int add_run(struct table *t, const struct clock_world *w)
{
	int r = clock_score_run(&t->beam, w, &beam_defaults);

	for (int p = 0; p < CLOCK_N_PEERS && r == 0; p++)
		r = add_peer(&t->peers[p], (enum clock_peer)p, w);
	t->n_runs++;
	return r;
}

static double us(struct clock_errors *e, double part)
{
	return clock_errors_at(e, part) / 1e3;
}

static void print_claims(const char *title, struct clock_claims *c)
{
	printf("| **%s** | %.3f | %.3f | %.3f | %" PRIu64 " of %.2f M | %.1f | %.3f | ", title,
	       us(&c->error, 0.5), us(&c->error, 0.99), us(&c->error_clear, 0.99), c->n_misses_clear,
	       (double)c->n / 1e6, us(&c->width, 0.5), 100 * (double)c->n_flagged / (double)c->n);
}

static void print_table(struct table *t, const char *title)
{
	struct clock_score *b = &t->beam;

	printf("\n### %s (%u runs)\n\n"
	       "| method | median µs | p99 µs | p99 outside flagged | hard misses outside flagged | width µs | "
	       "flagged %% | false steps | ns a sample |\n"
	       "|---|---|---|---|---|---|---|---|---|\n", title, t->n_runs);
	for (int p = 0; p < CLOCK_N_PEERS; p++) {
		struct peer_score *s = &t->peers[p];

		printf("| %s | %.3f | %.3f | | ", clock_peer_title((enum clock_peer)p), us(&s->error, 0.5),
		       us(&s->error, 0.99));
		if (s->n > 0)
			printf("%" PRIu64 " of %.2f M | %.1f | | | |\n", s->n_misses, (double)s->n / 1e6,
			       us(&s->width, 0.5));
		else
			printf("| | | | |\n");
	}
	print_claims("syncline, streaming", &b->live);
	printf("%" PRIu64 " | %.0f |\n", b->n_false_steps, b->cpu_ns / (double)b->n_samples);
	print_claims("syncline, in hindsight", &b->hindsight);
	printf("| |\n\nHindsight: worst run's p99 %.3f µs; hard misses in flagged time %" PRIu64
	       "; soft bound missed %.3f %%. Segments %" PRIu64 ", changes of the clock %" PRIu64 ".\n",
	       b->worst_p99_ns / 1e3, b->hindsight.n_misses - b->hindsight.n_misses_clear,
	       100 * (double)b->hindsight.n_soft_misses / (double)b->hindsight.n,
	       b->n_segments - t->n_runs, b->n_changes);
	fflush(stdout);
	for (int p = 0; p < CLOCK_N_PEERS; p++) {
		clock_errors_fini(&t->peers[p].error);
		clock_errors_fini(&t->peers[p].width);
	}
	clock_score_fini(b);
}

static int simulate(char scenario, uint64_t seed, unsigned n_runs)
{
	struct table t = { 0 };
	char title[80];
	int r = 0;

	for (unsigned i = 0; i < n_runs && r == 0; i++) {
		struct clock_world w;

		r = clock_world_make(&w, scenario, seed + i, RATE_HZ, N_QUERIES);
		if (r == 0)
			r = add_run(&t, &w);
		clock_world_fini(&w);
	}
	snprintf(title, sizeof title, "%c: %s", scenario, clock_scenario_title(scenario));
	if (r == 0)
		print_table(&t, title);
	return r;
}

/* ---- samples of others ---- */

static bool grow(void **v, size_t n, size_t *n_alloc, size_t size)
{
	void *grown;

	if (n < *n_alloc)
		return true;
	*n_alloc = *n_alloc ? 2 * *n_alloc : 1024;
	grown = realloc(*v, *n_alloc * size);
	if (!grown)
		return false;
	*v = grown;
	return true;
}

static int read_world(struct clock_world *w, const char *path)
{
	size_t n_samples_alloc = 0, n_queries_alloc = 0;
	FILE *f = fopen(path, "r");
	char line[160];

	memset(w, 0, sizeof *w);
	if (!f)
		return -errno;
	while (fgets(line, sizeof line, f)) {
		int64_t v[4];

		if (sscanf(line, "s %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64, &v[0], &v[1], &v[2],
			   &v[3]) == 4 &&
		    grow((void **)&w->samples, w->n_samples, &n_samples_alloc, sizeof *w->samples))
			w->samples[w->n_samples++] = (struct beam_sample){ v[0], v[3], v[1] - v[0],
									   v[2] - v[3] };
		else if (sscanf(line, "q %" SCNd64 " %" SCNd64, &v[0], &v[1]) == 2 &&
			 grow((void **)&w->queries, w->n_queries, &n_queries_alloc, sizeof *w->queries))
			w->queries[w->n_queries++] = (struct clock_query){ v[0], v[1] };
	}
	fclose(f);
	return w->n_samples >= 20 && w->n_queries > 0 ? 0 : -EINVAL;
}

static int read_files(const char *title, char **paths, int n)
{
	struct table t = { 0 };
	int r = 0;

	for (int i = 0; i < n && r == 0; i++) {
		struct clock_world w;

		r = read_world(&w, paths[i]);
		if (r == 0)
			r = add_run(&t, &w);
		clock_world_fini(&w);
	}
	if (r == 0)
		print_table(&t, title);
	return r;
}

int main(int argc, char **argv)
{
	const char *scenarios = argc > 1 ? argv[1] : CLOCK_SCENARIOS;
	uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
	unsigned n_runs = argc > 3 ? (unsigned)strtoul(argv[3], NULL, 10) : 4;
	int r = 0;

	if (argc > 3 && strcmp(argv[1], "--read") == 0) {
		r = read_files(argv[2], argv + 3, argc - 3);
	} else if (strspn(scenarios, CLOCK_SCENARIOS) != strlen(scenarios) || n_runs == 0) {
		fprintf(stderr, "usage: clock_table [SCENARIOS [SEED [RUNS]]] | --read TITLE FILE...\n");
		return 2;
	}
	if (argc <= 3 || strcmp(argv[1], "--read") != 0)
		for (const char *s = scenarios; *s && r == 0; s++)
			r = simulate(*s, seed, n_runs);
	if (r < 0) {
		fprintf(stderr, "clock_table: %s\n", strerror(-r));
		return 1;
	}
	return 0;
}
