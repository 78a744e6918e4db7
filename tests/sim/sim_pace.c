/* sim_pace - where devices tell: is the planted rank named, and nobody else?
 *
 *     sim_pace [RUNS] [FIRST_SEED]
 *
 * The jobs of rank_steps.h as the rules get them, their times told as kernels.
 * Whoever is named has been slower by the effect for a second at least, so a job
 * whose slowness moves may name nobody, and one that slows down as a whole only
 * everyone. Noise that depends on itself over steps (contended, smooth) is that of
 * shared cores and not of devices: there one run in a hundred may be mistaken. Exit 1
 * when a claim fails.
 */
#include "../../collector/verdict/rules.h"
#include "rank_steps.h"
#include "train.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct outcome {
	uint32_t n_loud, n_wrong, seen_at, first_step;
	char class_name[40], culprit[200];
};

static void take(struct outcome *o, const struct rank_steps *s, const struct fact_verdict *f, uint32_t step)
{
	char only[16];

	if (f->severity == SEVERITY_NOTICE)
		return;
	if (o->n_loud++ == 0)
		o->seen_at = step;
	snprintf(only, sizeof only, ":[%d]", s->rank);
	if (s->cause == CAUSE_GLOBAL)
		o->n_wrong += strcmp(f->class_name, "slow.global") != 0;
	else
		o->n_wrong += !strstr(f->culprit_json, only);
	o->first_step = f->first_step;
	snprintf(o->class_name, sizeof o->class_name, "%s", f->class_name);
	snprintf(o->culprit, sizeof o->culprit, "%s", f->culprit_json);
}

static struct outcome play(struct rank_steps *s, uint32_t n_steps)
{
	static struct fact_rank_step v[512];
	static struct rules rules;
	struct roster roster = { 0 };
	struct outcome o = { 0 };
	struct match match;
	struct facts facts;

	facts_init(&facts);
	match_init(&match, &roster, &facts, 16, 1000000000);
	rules_init(&rules, &roster, &match);
	for (uint32_t i = 0; i <= n_steps; i++) {
		struct fact_step step = { .step = i, .begin_ns = s->now_ns, .n_ranks = s->world };

		if (i < n_steps) {
			rank_steps_next(s, v);
			for (uint32_t r = 0; r < s->world; r++) {
				v[r].compute_ns = v[r].self_ns;
				v[r].input_wait_ns = 0;
				v[r].proc = UINT32_MAX;
			}
			step.dur_ns = s->now_ns - step.begin_ns;
			if (rules_step(&rules, &step, v, s->world, &facts) < 0)
				abort();
		}
		if (rules_look(&rules, s->now_ns, s->world, i == n_steps, &facts) < 0)
			abort();
		for (size_t k = 0; k < facts.verdicts.n; k++)
			take(&o, s, &facts.verdicts.v[k], i);
		facts_clear(&facts);
	}
	rules_fini(&rules);
	match_fini(&match);
	facts_fini(&facts);
	return o;
}

/* Returns how many were named that should not be. */
static uint32_t healthy(uint32_t n_runs, uint64_t seed)
{
	static const uint32_t worlds[] = { 2, 4, 4, 8, 16, 64 };
	uint32_t n[N_CAUSES][N_NOISES] = { 0 }, wrong[N_CAUSES][N_NOISES] = { 0 };
	uint32_t total = 0, of_cores = 0;

	for (uint32_t i = 0; i < n_runs; i++) {
		struct rank_steps s = { .cause = (enum cause)(i % CAUSE_SLOW),
					.noise = (enum noise)(i / CAUSE_SLOW % N_NOISES) };
		uint64_t rng = seed + i;
		uint32_t n_steps = 12 + (uint32_t)(train_rand(&rng) % 600);
		struct outcome o;

		s.world = worlds[train_rand(&rng) % 6];
		s.rank = -1;
		/* A spell as long as the run is no spell. */
		if (s.cause >= CAUSE_ROTATE_1 && s.cause <= CAUSE_WANDER)
			n_steps += 240;
		/* Of two ranks that half is one rank. */
		if (s.cause == CAUSE_HALF_OF_ALL && s.world == 2)
			s.rank = 1;
		if (s.cause == CAUSE_RESTLESS || s.cause == CAUSE_SMALL || s.cause == CAUSE_PAUSES_FIXED)
			s.rank = (int32_t)(train_rand(&rng) % s.world);
		s.onset = (uint32_t)(train_rand(&rng) % (n_steps / 2));
		s.phase = 1;
		rank_steps_init(&s, seed + i);
		o = play(&s, n_steps);
		n[s.cause][s.noise]++;
		/* 2 % in the part of a step is near the effect; it is true, and may be said. */
		if (s.cause == CAUSE_SMALL || s.cause == CAUSE_GLOBAL ||
				    (s.cause == CAUSE_HALF_OF_ALL && s.world == 2)
			    ? o.n_wrong : o.n_loud) {
			wrong[s.cause][s.noise]++;
			if (s.noise == NOISE_CONTENDED || s.noise == NOISE_SMOOTH)
				of_cores++;
			else
				total++;
			printf("seed %llu, %s, %s, %u ranks, %u steps, onset %u: %s %s from %u, said at %u\n",
			       (unsigned long long)(seed + i), cause_names[s.cause], noise_names[s.noise],
			       s.world, n_steps, s.onset, o.class_name, o.culprit, o.first_step, o.seen_at);
		}
	}
	printf("\nNobody may be named: named / runs by noise\n%-20s", "");
	for (unsigned k = 0; k < N_NOISES; k++)
		printf("%13s", noise_names[k]);
	printf("\n");
	for (unsigned c = 0; c < CAUSE_SLOW; c++) {
		printf("%-20s", cause_names[c]);
		for (unsigned k = 0; k < N_NOISES; k++)
			printf("%7u /%4u", wrong[c][k], n[c][k]);
		printf("\n");
	}
	printf("%u with noise that devices have, %u of %u with noise of shared cores\n", total, of_cores,
	       n_runs / 3);
	return total + (300 * of_cores > n_runs ? of_cores : 0);
}

static int by_number(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

static uint32_t planted(uint32_t n_each, uint64_t seed, bool *ret_found)
{
	static const double by[] = { 0.05, 0.08, 0.15, 0.3, 1 };
	uint32_t wrong = 0;

	*ret_found = true;
	printf("\nOne planted rank of 4 or 8, 60 steps, onset at 5 to 30: found / runs, delay in steps\n");
	for (unsigned e = 0; e < 5; e++)
		for (unsigned k = 0; k < N_NOISES; k++) {
			uint32_t found = 0, bad = 0;
			int delay[512];

			for (uint32_t i = 0; i < n_each; i++) {
				uint64_t rng = seed + i * 97 + e;
				struct rank_steps s = { .noise = (enum noise)k, .cause = CAUSE_SLOW,
							.by = by[e], .phase = 1 };
				struct outcome o;

				s.world = train_rand(&rng) % 2 ? 8 : 4;
				s.onset = 5 + (uint32_t)(train_rand(&rng) % 25);
				s.rank = (int32_t)(train_rand(&rng) % s.world);
				rank_steps_init(&s, seed + i * 97 + e);
				o = play(&s, 60);
				if (o.n_loud == 0)
					continue;
				bad += o.n_wrong > 0 || o.first_step + 4 < s.onset;
				delay[found++] = (int)o.seen_at - (int)s.onset;
			}
			wrong += bad;
			qsort(delay, found, sizeof *delay, by_number);
			printf("slow by %4.0f %%  %-12s %3u /%3u", by[e] * 100, noise_names[k], found, n_each);
			if (found)
				printf("   delay %3d %3d", delay[found / 2], delay[found - 1]);
			printf(bad ? "   WRONG %u\n" : "\n", bad);
			if (k == NOISE_CALM && by[e] >= 0.15 && found < n_each)
				*ret_found = false;
		}
	return wrong;
}

int main(int argc, char **argv)
{
	uint32_t n_runs = argc > 1 ? (uint32_t)atoi(argv[1]) : 3000, false_names, wrong;
	uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1300000;
	bool found;

	false_names = healthy(n_runs, seed);
	wrong = planted(n_runs >= 3000 ? 40 : 16, seed, &found);
	printf("\n%u named without cause, %u wrong, obvious ones %s\n", false_names, wrong,
	       found ? "all found" : "MISSED");
	return false_names || wrong || !found;
}
