/* What collectives prove about two clocks, one proof at a time. The accuracy on
 * whole jobs is sim_pairs' claim. */
#include "../../collector/align/pairs.h"
#include "../sim/colls.h"
#include "unit.h"

#include <math.h>
#include <string.h>

#define SECOND INT64_C(1000000000)
#define T0 (INT64_C(1700000000) * SECOND)
#define WIDE 1000000

static struct pairs *make(uint32_t n_nodes, double rate_bound)
{
	struct pairs *p;

	assert_int_equal(pairs_new(&p, &pairs_defaults), 0);
	for (uint32_t i = 0; i < n_nodes; i++) {
		struct pairs_probe k = { .host_ns = T0,
					 .lo_ns = -WIDE,
					 .hi_ns = WIDE,
					 .soft_ns = WIDE / 5,
					 .rate_bound = rate_bound };

		assert_int_equal(pairs_node(p), i);
		assert_int_equal(pairs_probe(p, i, &k), 0);
	}
	return p;
}

static uint32_t group(struct pairs *p, uint32_t n, const uint32_t *nodes)
{
	int64_t g = pairs_group(p, nodes, n);

	assert_true(g >= 0);
	return (uint32_t)g;
}

/* Instants are relative to T0. */
static int call(struct pairs *p, uint32_t g, enum pairs_need need, uint32_t n, const int64_t *enter,
		const int64_t *exit, struct pairs_proof *proof)
{
	int64_t in[128], out[128];

	for (uint32_t i = 0; i < n; i++) {
		in[i] = T0 + enter[i];
		out[i] = T0 + exit[i];
	}
	return pairs_call(
		p,
		&(struct pairs_call){
			.group = g, .seq = 7, .need = need, .enter_ns = in, .exit_ns = out },
		proof);
}

static struct pairs_answer ask(const struct pairs *p, uint32_t i, uint32_t j, int64_t t_ns)
{
	struct pairs_answer a;

	assert_int_equal(pairs_ask(p, i, j, T0 + t_ns, &a), 0);
	return a;
}

static const uint32_t both[] = { 0, 1 };
static const int64_t in_1[] = { 100, 150 }, out_1[] = { 200, 260 };

static void no_exit_before_the_last_entry_bounds_both(void **state)
{
	struct pairs *p = make(2, 0);
	struct pairs_answer a;

	assert_int_equal(call(p, group(p, 2, both), PAIRS_NEED_ALL, 2, in_1, out_1, NULL), 0);
	a = ask(p, 0, 1, 300);
	/* 0 left at 200, 1 had entered at 150; 1 left at 260, 0 had entered at 100. */
	assert_in_range(a.hi_ns, 50, 52);
	assert_in_range(-a.lo_ns, 160, 162);
	assert_int_equal(a.basis, PAIRS_BY_BOUNDS);
	a = ask(p, 1, 0, 300);
	assert_in_range(-a.lo_ns, 50, 52);
	assert_in_range(a.hi_ns, 160, 162);
	a = ask(p, 1, 1, 300);
	assert_true(a.lo_ns == 0 && a.hi_ns == 0 && a.offset_ns == 0);
	pairs_free(p);
}

static void a_bound_opens_with_both_rates_into_past_and_future(void **state)
{
	struct pairs *p = make(2, 1e-6);

	call(p, group(p, 2, both), PAIRS_NEED_ALL, 2, in_1, out_1, NULL);
	assert_in_range(ask(p, 0, 1, 10 * SECOND).hi_ns, 20050, 20056);
	assert_in_range(-ask(p, 0, 1, 10 * SECOND).lo_ns, 20160, 20166);
	/* Before what the probes told of, 200 ppm each. */
	assert_in_range(ask(p, 0, 1, -SECOND).hi_ns, 400050, 400056);
	pairs_free(p);
}

static void a_broadcast_binds_only_its_root(void **state)
{
	struct pairs *p = make(2, 0);

	call(p, group(p, 2, both), PAIRS_NEED_ROOT, 2, in_1, out_1, NULL);
	/* 1 left at 260, the root 0 had entered at 100; 0 waited for nobody. */
	assert_in_range(-ask(p, 0, 1, 300).lo_ns, 160, 162);
	assert_true(ask(p, 0, 1, 300).hi_ns >= 2 * WIDE);
	pairs_free(p);
}

static void a_reduce_binds_only_its_root(void **state)
{
	struct pairs *p = make(2, 0);

	call(p, group(p, 2, both), PAIRS_ROOT_NEEDS, 2, in_1, out_1, NULL);
	assert_in_range(ask(p, 0, 1, 300).hi_ns, 50, 52);
	assert_true(-ask(p, 0, 1, 300).lo_ns >= 2 * WIDE);
	pairs_free(p);
}

static void empty_pieces_prove_nothing(void **state)
{
	struct pairs *p = make(2, 0);

	call(p, group(p, 2, both), PAIRS_NEED_NOTHING, 2, in_1, out_1, NULL);
	assert_true(ask(p, 0, 1, 300).hi_ns >= 2 * WIDE);
	assert_true(-ask(p, 0, 1, 300).lo_ns >= 2 * WIDE);
	pairs_free(p);
}

static void members_that_were_not_seen_prove_nothing(void **state)
{
	struct pairs *p = make(2, 0);
	int64_t in[] = { PAIRS_NONE, T0 + 150 }, out[] = { T0 + 200, PAIRS_NONE };
	struct pairs_call c = {
		.group = group(p, 2, both), .need = PAIRS_NEED_ALL, .enter_ns = in, .exit_ns = out
	};

	assert_int_equal(pairs_call(p, &c, NULL), 0);
	assert_in_range(ask(p, 0, 1, 300).hi_ns, 50, 52);
	assert_true(-ask(p, 0, 1, 300).lo_ns >= 2 * WIDE);
	pairs_free(p);
}

static void bounds_add_up_over_a_shared_node(void **state)
{
	static const uint32_t first[] = { 0, 1 }, second[] = { 1, 2 };
	static const int64_t tick_in[] = { 2 * SECOND, 2 * SECOND };
	static const int64_t tick_out[] = { 2 * SECOND + 5000, 2 * SECOND + 5000 };
	struct pairs *p = make(3, 0);
	uint32_t g = group(p, 2, first), h = group(p, 2, second);

	call(p, g, PAIRS_NEED_ALL, 2, in_1, out_1, NULL);
	call(p, h, PAIRS_NEED_ALL, 2, in_1, out_1, NULL);
	call(p, h, PAIRS_NEED_ALL, 2, tick_in, tick_out, NULL); /* a second is over */
	assert_in_range(ask(p, 0, 2, 2 * SECOND).hi_ns, 100, 104);
	assert_in_range(-ask(p, 0, 2, 2 * SECOND).lo_ns, 320, 324);
	pairs_free(p);
}

static void a_call_from_the_future_does_not_stop_time(void **state)
{
	static const uint32_t first[] = { 0, 1 }, second[] = { 1, 2 }, odd[] = { 3 };
	static const int64_t future[] = { 200000 * SECOND };
	static const int64_t tick_in[] = { 2 * SECOND, 2 * SECOND };
	static const int64_t tick_out[] = { 2 * SECOND + 5000, 2 * SECOND + 5000 };
	struct pairs *p = make(3, 0);
	uint32_t g = group(p, 2, first), h = group(p, 2, second);

	assert_int_equal(pairs_node(p), 3);
	call(p, group(p, 1, odd), PAIRS_NEED_ALL, 1, future, future, NULL);
	call(p, g, PAIRS_NEED_ALL, 2, in_1, out_1, NULL);
	call(p, h, PAIRS_NEED_ALL, 2, in_1, out_1, NULL);
	call(p, h, PAIRS_NEED_ALL, 2, tick_in, tick_out, NULL);
	assert_in_range(ask(p, 0, 2, 2 * SECOND).hi_ns, 100, 104);
	pairs_free(p);
}

static void a_call_against_the_probes_is_a_proof_and_not_believed(void **state)
{
	/* 1 enters 5 ms after 0 left; the clocks are within 2 ms of each other. */
	static const int64_t in[] = { 100, 5000200 }, out[] = { 200, 5000300 };
	struct pairs *p = make(2, 0);
	struct pairs_proof proof;
	uint32_t g = group(p, 2, both);

	call(p, g, PAIRS_NEED_ALL, 2, in_1, out_1, NULL);
	assert_int_equal(call(p, g, PAIRS_NEED_ALL, 2, in, out, &proof), PAIRS_VIOLATION);
	assert_int_equal(proof.early, 0);
	assert_int_equal(proof.late, 1);
	assert_int_equal(proof.seq, 7);
	assert_int_equal(proof.said_ns, -5000000);
	assert_int_equal(proof.impossible_ns, proof.known_ns - proof.said_ns);
	assert_true(pairs_is_quarantined(p, g));
	/* Neither this one nor what it said before. */
	assert_true(ask(p, 0, 1, 300).hi_ns >= 2 * WIDE);
	assert_int_equal(call(p, g, PAIRS_NEED_ALL, 2, in_1, out_1, &proof), PAIRS_QUARANTINED);
	assert_int_equal(proof.impossible_ns, 0);
	assert_true(ask(p, 0, 1, 300).hi_ns >= 2 * WIDE);
	assert_true(pairs_proof_of(p, g, &proof));
	assert_int_equal(proof.said_ns, -5000000);
	assert_int_equal(pairs_n_violations(p, g), 1);
	pairs_free(p);
}

static void one_clock_alone_can_prove_a_wrong_match(void **state)
{
	static const uint32_t same[] = { 0, 0 };
	static const int64_t in[] = { 100, 300 }, out[] = { 200, 400 };
	struct pairs *p = make(1, 0);
	struct pairs_proof proof;

	assert_int_equal(call(p, group(p, 2, same), PAIRS_NEED_ALL, 2, in, out, &proof),
			 PAIRS_VIOLATION);
	assert_int_equal(proof.source, PAIRS_FROM_ONE_CLOCK);
	assert_int_equal(proof.impossible_ns, 100);
	pairs_free(p);
}

static void two_communicators_that_disagree_are_both_doubted(void **state)
{
	/* The second says that 1 is 10 us behind; the first that it is not. */
	static const int64_t in[] = { 100, 10150 }, out[] = { 200, 10260 };
	struct pairs *p = make(2, 0);
	struct pairs_proof proof;
	uint32_t g = group(p, 2, both), h = group(p, 2, both);

	call(p, g, PAIRS_NEED_ALL, 2, in_1, out_1, NULL);
	assert_int_equal(call(p, h, PAIRS_NEED_ALL, 2, in, out, &proof), PAIRS_VIOLATION);
	assert_int_equal(proof.source, PAIRS_FROM_CALLS);
	assert_true(pairs_is_quarantined(p, g) && pairs_is_quarantined(p, h));
	pairs_free(p);
}

static void one_against_two_others_is_the_wrong_one(void **state)
{
	static const uint32_t a[] = { 0, 1 }, b[] = { 1, 2 }, c[] = { 0, 2 };
	static const int64_t tick_in[] = { 2 * SECOND, 2 * SECOND };
	static const int64_t tick_out[] = { 2 * SECOND + 5000, 2 * SECOND + 5000 };
	static const int64_t in[] = { 2 * SECOND, 2 * SECOND + 20000 };
	static const int64_t out[] = { 2 * SECOND + 100, 2 * SECOND + 20100 };
	struct pairs *p = make(3, 0);
	uint32_t g = group(p, 2, a), h = group(p, 2, b), k = group(p, 2, c);

	call(p, g, PAIRS_NEED_ALL, 2, in_1, out_1, NULL);
	call(p, h, PAIRS_NEED_ALL, 2, in_1, out_1, NULL);
	call(p, h, PAIRS_NEED_ALL, 2, tick_in, tick_out, NULL);
	assert_int_equal(call(p, k, PAIRS_NEED_ALL, 2, in, out, NULL), PAIRS_VIOLATION);
	assert_true(pairs_is_quarantined(p, k));
	assert_false(pairs_is_quarantined(p, g) || pairs_is_quarantined(p, h));
	pairs_free(p);
}

static void a_circle_of_calls_that_contradict_is_found(void **state)
{
	/* Each says that its second is 1 us behind its first, all around: no two
	 * of them are wrong alone. */
	static const uint32_t a[] = { 0, 1 }, b[] = { 1, 2 }, c[] = { 2, 0 };
	static const int64_t in[] = { 1000, 2000 }, out[] = { 1000, 2500 };
	static const int64_t tick_in[] = { 2 * SECOND }, tick_out[] = { 2 * SECOND + 5000 };
	struct pairs *p = make(3, 0);
	uint32_t g[] = { group(p, 2, a), group(p, 2, b), group(p, 2, c), group(p, 1, a) };
	struct pairs_proof proof;

	for (int i = 0; i < 3; i++)
		assert_int_equal(call(p, g[i], PAIRS_NEED_ALL, 2, in, out, NULL), 0);
	call(p, g[3], PAIRS_NEED_ALL, 1, tick_in, tick_out, NULL);
	for (int i = 0; i < 3; i++)
		assert_true(pairs_is_quarantined(p, g[i]));
	assert_false(pairs_is_quarantined(p, g[3]));
	assert_true(pairs_proof_of(p, g[0], &proof));
	assert_int_equal(proof.impossible_ns, 3000);
	assert_true(ask(p, 0, 1, 300).hi_ns >= 2 * WIDE);
	pairs_free(p);
}

static void a_confessed_step_clears_the_communicator(void **state)
{
	static const int64_t in[] = { 100, 5000200 }, out[] = { 200, 5000300 };
	struct pairs_probe stepped = { .host_ns = T0 + 6000000,
				       .offset_ns = -5000100,
				       .lo_ns = -5000100 - WIDE,
				       .hi_ns = -5000100 + WIDE,
				       .soft_ns = WIDE / 5 };
	struct pairs *p = make(2, 0);
	uint32_t g = group(p, 2, both);

	assert_int_equal(call(p, g, PAIRS_NEED_ALL, 2, in, out, NULL), PAIRS_VIOLATION);
	pairs_step(p, 1);
	assert_false(pairs_is_quarantined(p, g));
	assert_int_equal(pairs_probe(p, 1, &stepped), 0);
	assert_int_equal(call(p, g, PAIRS_NEED_ALL, 2, in, out, NULL), 0);
	assert_in_range(-ask(p, 0, 1, 300).hi_ns, 5000000 - 500, 5000000);
	pairs_free(p);
}

static void what_cannot_be_is_refused(void **state)
{
	struct pairs *p = make(2, 0);
	struct pairs_probe k = { .host_ns = T0 + 5, .lo_ns = -1, .hi_ns = 1 };
	int64_t in[] = { T0, T0 }, out[] = { T0 + 5, T0 - 1 };
	struct pairs_call c = {
		.group = group(p, 2, both), .need = PAIRS_NEED_ALL, .enter_ns = in, .exit_ns = out
	};
	struct pairs_answer a;
	struct pairs_probe bad;

	assert_int_equal(pairs_call(p, &c, NULL), PAIRS_REFUSED);
	out[1] = INT64_MAX - 3;
	assert_int_equal(pairs_call(p, &c, NULL), PAIRS_REFUSED);
	out[0] = out[1] = PAIRS_NONE;
	assert_int_equal(pairs_call(p, &c, NULL), PAIRS_REFUSED);
	c.group = 1;
	assert_int_equal(pairs_call(p, &c, NULL), PAIRS_REFUSED);
	c.group = 0;
	c.need = PAIRS_NEED_ROOT;
	c.root = 2;
	assert_int_equal(pairs_call(p, &c, NULL), PAIRS_REFUSED);

	bad = k;
	bad.rate = NAN;
	assert_int_equal(pairs_probe(p, 0, &bad), PAIRS_REFUSED);
	bad = k;
	bad.rate_bound = -1;
	assert_int_equal(pairs_probe(p, 0, &bad), PAIRS_REFUSED);
	bad = k;
	bad.lo_ns = 2;
	assert_int_equal(pairs_probe(p, 0, &bad), PAIRS_REFUSED);
	bad = k;
	bad.host_ns = T0 - 1; /* runs backwards */
	assert_int_equal(pairs_probe(p, 0, &bad), PAIRS_REFUSED);
	assert_int_equal(pairs_probe(p, 2, &k), PAIRS_REFUSED);
	assert_int_equal(pairs_probe(p, 0, &k), 0);
	assert_int_equal(pairs_ask(p, 0, 2, T0, &a), PAIRS_REFUSED);
	assert_int_equal(pairs_ask(p, 0, 1, INT64_MAX, &a), PAIRS_REFUSED);
	assert_true(pairs_group(p, (const uint32_t[]){ 0, 2 }, 2) < 0);
	pairs_free(p);
}

static void clocks_that_nobody_probed_are_still_bounded_to_each_other(void **state)
{
	static const int64_t in[] = { 100, 150 - 3600 * SECOND };
	static const int64_t out[] = { 200, 260 - 3600 * SECOND };
	struct pairs_answer a;
	struct pairs *p;

	assert_int_equal(pairs_new(&p, &pairs_defaults), 0);
	assert_int_equal(pairs_node(p), 0);
	assert_int_equal(pairs_node(p), 1);
	assert_int_equal(call(p, group(p, 2, both), PAIRS_NEED_ALL, 2, in, out, NULL), 0);
	a = ask(p, 0, 1, 300);
	assert_in_range(a.hi_ns - 3600 * SECOND, 50, 52);
	assert_in_range(3600 * SECOND - a.lo_ns, 160, 162);
	pairs_free(p);
}

/* Nodes with true offsets of up to 1 us against the probes' word. The reference is
 * not in most groups: bounds go on through the member that knows it. */
static void many_nodes_are_bounded_through_the_reference(void **state)
{
	enum { N = 100, PER = 10 };
	uint64_t rng = 77;
	int64_t e[N];
	struct pairs *p = make(N, 1e-6);
	uint32_t groups[N / PER + 1];

	for (uint32_t i = 0; i < N; i++)
		e[i] = (int64_t)(unit_rand(&rng) % 2000) - 1000;
	for (uint32_t g = 0; g < N / PER; g++) {
		uint32_t nodes[PER];

		for (uint32_t i = 0; i < PER; i++)
			nodes[i] = g * PER + i;
		groups[g] = group(p, PER, nodes);
	}
	{
		uint32_t nodes[N / PER];

		for (uint32_t i = 0; i < N / PER; i++)
			nodes[i] = i * PER;
		groups[N / PER] = group(p, N / PER, nodes);
	}
	for (int64_t k = 0; k < 400; k++)
		for (uint32_t g = 0; g <= N / PER; g++) {
			int64_t in[PER], out[PER], last = 0;
			int64_t at = k * SECOND / 50 + g * 100000;

			for (uint32_t i = 0; i < PER; i++) {
				in[i] = at + (int64_t)(unit_rand(&rng) % 20000);
				last = in[i] > last ? in[i] : last;
			}
			for (uint32_t i = 0; i < PER; i++) {
				uint32_t node = g < N / PER ? g * PER + i : i * PER;

				out[i] = last + 3000 + (int64_t)(unit_rand(&rng) % 2000) - e[node];
				in[i] -= e[node];
			}
			assert_int_equal(call(p, groups[g], PAIRS_NEED_ALL, PER, in, out, NULL), 0);
		}
	for (uint32_t i = 0; i < N; i++)
		for (uint32_t j = 0; j < N; j++) {
			struct pairs_answer a = ask(p, i, j, 8 * SECOND);

			assert_true(a.lo_ns <= e[j] - e[i] && e[j] - e[i] <= a.hi_ns);
			assert_true(a.hi_ns - a.lo_ns < 80000);
		}
	pairs_free(p);
}

static int64_t hostile(uint64_t *rng)
{
	static const int64_t worst[] = {
		INT64_MIN,	  INT64_MIN + 1, -PAIRS_MAX_NS, -1,	  0, 1,
		PAIRS_MAX_NS - 1, PAIRS_MAX_NS,	 INT64_MAX - 1, INT64_MAX
	};

	switch (unit_rand(rng) % 4) {
	case 0:
		return worst[unit_rand(rng) % (sizeof worst / sizeof *worst)];
	case 1:
		return (int64_t)unit_rand(rng);
	case 2:
		return (int64_t)(unit_rand(rng) >> (1 + unit_rand(rng) % 62));
	default:
		return T0 + (int64_t)(unit_rand(rng) % 10) * SECOND / 3;
	}
}

static void hostile_numbers_never_turn_a_bound_around(void **state)
{
	for (uint64_t seed = 1; seed <= 60; seed++) {
		uint32_t n = seed % 3 ? 4 : 70, nodes[70];
		uint64_t rng = seed;
		struct pairs *p;
		uint32_t g;

		assert_int_equal(pairs_new(&p, &pairs_defaults), 0);
		for (uint32_t i = 0; i < n; i++)
			nodes[i] = (uint32_t)pairs_node(p);
		g = group(p, n, nodes);
		for (int k = 0; k < 400; k++) {
			uint32_t i = (uint32_t)(unit_rand(&rng) % n),
				 j = (uint32_t)(unit_rand(&rng) % n);
			struct pairs_probe probe = { hostile(&rng),
						     hostile(&rng),
						     hostile(&rng),
						     hostile(&rng),
						     hostile(&rng),
						     (double)hostile(&rng) * 1e-22,
						     (double)hostile(&rng) * 1e-22 };
			int64_t in[70], out[70];
			struct pairs_call c = { .group = g,
						.seq = unit_rand(&rng),
						.need = k % 4,
						.root = i,
						.together = k % 3 > 0,
						.enter_ns = in,
						.exit_ns = out };
			struct pairs_answer a;

			pairs_probe(p, i, &probe);
			for (uint32_t m = 0; m < n; m++) {
				in[m] = hostile(&rng);
				out[m] = unit_rand(&rng) % 3 ? hostile(&rng) : in[m];
				if (out[m] < in[m])
					out[m] = PAIRS_NONE;
				if (!(in[m] > -PAIRS_MAX_NS && in[m] < PAIRS_MAX_NS))
					in[m] = out[m] = PAIRS_NONE;
				if (out[m] >= PAIRS_MAX_NS)
					out[m] = PAIRS_NONE;
			}
			pairs_call(p, &c, NULL);
			if (pairs_ask(p, i, j, hostile(&rng), &a) == 0)
				assert_true(a.lo_ns <= a.hi_ns && a.lo_ns <= a.offset_ns &&
					    a.offset_ns <= a.hi_ns);
			if (unit_rand(&rng) % 20 == 0)
				pairs_step(p, i);
		}
		pairs_free(p);
	}
}

static uint64_t digest_of_a_run(uint64_t seed)
{
	struct colls_config cfg = colls_defaults;
	uint64_t h = 14695981039346656037u;
	struct pairs_answer a;
	struct colls s;
	struct pairs *p;
	uint32_t nodes[8];

	cfg.seconds = 80;
	cfg.rate_hz = 5;
	cfg.seed = seed;
	colls_make(&s, &cfg);
	assert_int_equal(pairs_new(&p, &pairs_defaults), 0);
	for (uint32_t i = 0; i < 8; i++)
		nodes[i] = (uint32_t)pairs_node(p);
	group(p, 8, nodes);
	for (uint32_t k = 0; k < s.n_calls; k++) {
		struct pairs_call c = { .need = PAIRS_NEED_ALL,
					.together = true,
					.enter_ns = &s.enter_host_ns[k * 8],
					.exit_ns = &s.exit_host_ns[k * 8] };

		for (uint32_t i = 0; k % 5 == 0 && i < 8; i++) {
			struct pairs_probe probe;

			colls_probe(&s, i, s.enter_ns[k * 8], &probe);
			assert_int_equal(pairs_probe(p, i, &probe), 0);
		}
		assert_int_equal(pairs_call(p, &c, NULL), 0);
		for (uint32_t i = 0; i < 8; i++) {
			assert_int_equal(pairs_ask(p, i, k % 8, s.exit_ns[k * 8], &a), 0);
			h = (h ^ (uint64_t)a.offset_ns) * 1099511628211u;
			h = (h ^ (uint64_t)(a.hi_ns - a.lo_ns)) * 1099511628211u;
			h = (h ^ (uint64_t)a.soft_ns) * 1099511628211u;
		}
	}
	pairs_free(p);
	colls_fini(&s);
	return h;
}

static void the_same_input_gives_the_same_answers(void **state)
{
	uint64_t first = digest_of_a_run(3);
	void *moved = malloc(12345); /* other addresses */

	assert_int_equal(digest_of_a_run(3), first);
	assert_int_not_equal(digest_of_a_run(4), first);
	free(moved);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_exit_before_the_last_entry_bounds_both),
		cmocka_unit_test(a_bound_opens_with_both_rates_into_past_and_future),
		cmocka_unit_test(a_broadcast_binds_only_its_root),
		cmocka_unit_test(a_reduce_binds_only_its_root),
		cmocka_unit_test(empty_pieces_prove_nothing),
		cmocka_unit_test(members_that_were_not_seen_prove_nothing),
		cmocka_unit_test(bounds_add_up_over_a_shared_node),
		cmocka_unit_test(a_call_from_the_future_does_not_stop_time),
		cmocka_unit_test(a_call_against_the_probes_is_a_proof_and_not_believed),
		cmocka_unit_test(one_clock_alone_can_prove_a_wrong_match),
		cmocka_unit_test(two_communicators_that_disagree_are_both_doubted),
		cmocka_unit_test(one_against_two_others_is_the_wrong_one),
		cmocka_unit_test(a_circle_of_calls_that_contradict_is_found),
		cmocka_unit_test(a_confessed_step_clears_the_communicator),
		cmocka_unit_test(what_cannot_be_is_refused),
		cmocka_unit_test(clocks_that_nobody_probed_are_still_bounded_to_each_other),
		cmocka_unit_test(many_nodes_are_bounded_through_the_reference),
		cmocka_unit_test(hostile_numbers_never_turn_a_bound_around),
		cmocka_unit_test(the_same_input_gives_the_same_answers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
