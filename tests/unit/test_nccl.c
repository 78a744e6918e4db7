/* Rings from connections, lines of any length, and what is quoted in a profiler's JSON. */
#include "unit.h"

#include "../../collector/import/lines.h"
#include "../../collector/import/nccl.h"
#include "../../collector/import/nccl_ring.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t rng = 88172645463325252u;

static uint32_t draw(uint32_t n)
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return (uint32_t)(rng % n);
}

/* ---- rings ---- */

#define N 12

/* A ring in any order, its hops in any order, and other connections of a tree among them. */
static uint32_t draw_hops(int32_t ring[N], struct nccl_hop *v, uint32_t n_more)
{
	uint32_t n = 0;

	for (int32_t i = 0; i < N; i++)
		ring[i] = i;
	for (uint32_t i = N; i-- > 1;) {
		uint32_t k = draw(i + 1);
		int32_t x = ring[i];

		ring[i] = ring[k];
		ring[k] = x;
	}
	for (uint32_t i = 0; i < N; i++)
		v[n++] = (struct nccl_hop){ ring[i], ring[(i + 1) % N], draw(8) != 0 };
	while (n < N + n_more) {
		struct nccl_hop h = { (int32_t)draw(N), (int32_t)draw(N), true };

		if (h.from != h.to)
			v[n++] = h;
	}
	for (uint32_t i = n; i-- > 1;) {
		uint32_t k = draw(i + 1);
		struct nccl_hop x = v[i];

		v[i] = v[k];
		v[k] = x;
	}
	return n;
}

/* How many rings of all ranks these connections allow: by trying all. */
static uint32_t count_rings(const bool can[N][N], int32_t at, uint32_t seen, uint32_t n)
{
	uint32_t found = 0;

	if (n == N)
		return can[at][0];
	for (int32_t k = 1; k < N && found < 2; k++)
		if (can[at][k] && !(seen >> k & 1))
			found += count_rings(can, k, seen | 1u << k, n + 1);
	return found;
}

static void test_a_ring_that_is_told_is_the_only_one_that_fits(void **state)
{
	uint32_t n_complete = 0, n_open = 0;

	(void)state;
	for (int round = 0; round < 2000; round++) {
		struct nccl_hop v[3 * N];
		bool can[N][N] = { { false } };
		int32_t truth[N];
		uint32_t n = draw_hops(truth, v, draw(2 * N));
		struct nccl_ring r;

		assert_true(nccl_ring_init(&r, N));
		assert_true(nccl_ring_solve(&r, v, n));
		assert_false(r.contradicts);
		for (uint32_t i = 0; i < n; i++)
			can[v[i].from][v[i].to] = true;
		for (uint32_t i = 0; i < n; i++)
			for (int32_t k = 0; k < N && !v[i].tree; k++) {
				can[v[i].from][k] &= k == v[i].to;
				can[k][v[i].to] &= k == v[i].from;
			}
		if (nccl_ring_complete(&r)) {
			n_complete++;
			assert_int_equal(count_rings(can, 0, 1, 1), 1);
			for (uint32_t i = 0; i < N; i++)
				assert_int_equal(r.next[truth[i]], truth[(i + 1) % N]);
		} else {
			/* Nothing is set that is not certain. */
			assert_int_equal(r.n_set, 0);
			n_open++;
		}
		nccl_ring_fini(&r);
	}
	assert_true(n_complete > 200 && n_open > 200);
}

static void test_a_rank_that_is_silent_leaves_its_ring_open(void **state)
{
	static const struct nccl_hop v[] = { { 0, 1, false }, { 1, 2, false }, { 2, 3, false } };
	struct nccl_ring r;

	(void)state;
	assert_true(nccl_ring_init(&r, 4));
	assert_true(nccl_ring_solve(&r, v, 3));
	assert_false(nccl_ring_complete(&r));
	nccl_ring_fini(&r);
}

static void test_short_rings_and_second_neighbours_contradict(void **state)
{
	struct nccl_ring r;

	(void)state;
	assert_true(nccl_ring_init(&r, 3));
	nccl_ring_set(&r, 0, 1);
	nccl_ring_set(&r, 0, 1);
	assert_false(r.contradicts);
	nccl_ring_set(&r, 1, 0);
	assert_true(r.contradicts);
	nccl_ring_fini(&r);
	assert_true(nccl_ring_init(&r, 3));
	nccl_ring_set(&r, 0, 1);
	nccl_ring_set(&r, 2, 1);
	assert_true(r.contradicts);
	nccl_ring_fini(&r);
	assert_true(nccl_ring_init(&r, 1));
	nccl_ring_set(&r, 0, 0);
	assert_true(nccl_ring_complete(&r));
	nccl_ring_fini(&r);
}

/* ---- lines ---- */

struct text {
	const char *v;
	size_t n, at, piece;
};

static ptrdiff_t read_text(void *arg, unsigned char *out, size_t n)
{
	struct text *t = arg;

	n = n < t->piece ? n : t->piece;
	n = n < t->n - t->at ? n : t->n - t->at;
	memcpy(out, t->v + t->at, n);
	t->at += n;
	return (ptrdiff_t)n;
}

static void test_lines_come_whole_whatever_the_pieces(void **state)
{
	static const size_t pieces[] = { 1, 3, 1000, 1u << 20 };
	size_t n_long = LINES_MAX + 10, n = n_long + 40;
	char *v = malloc(n);

	(void)state;
	assert_non_null(v);
	memcpy(v, "one\r\n\n", 6);
	memset(v + 6, 'x', n_long);
	memcpy(v + 6 + n_long, "\ntwo\nthree", 10);
	for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
		static const char *const want[] = { "one", "", "two", "three" };
		struct text t = { v, 6 + n_long + 10, 0, pieces[i] };
		struct lines l;
		size_t got, k = 0;
		char *line;

		assert_true(lines_open(&l, read_text, &t));
		while ((line = lines_next(&l, &got))) {
			assert_true(k < 4);
			assert_string_equal(line, want[k]);
			assert_int_equal(got, strlen(want[k]));
			k++;
		}
		assert_int_equal(k, 4);
		assert_int_equal(l.n_long, 1);
		lines_close(&l);
	}
	free(v);
}

static void test_names_of_types_and_hosts(void **state)
{
	char a[NCCL_HOST], b[NCCL_HOST];
	unsigned size;

	(void)state;
	for (int64_t i = 0; i < 12; i++) {
		const char *name = nccl_dtype(i, &size);

		assert_true(size > 0);
		assert_int_equal(nccl_dtype_number(name), i);
	}
	assert_int_equal(nccl_dtype_number("ncclFloat32"), 7);
	assert_string_equal(nccl_dtype(12, &size), "");
	assert_int_equal(size, 0);
	nccl_host("node-1.domain", 13, a);
	nccl_host("node-1", 6, b);
	assert_string_equal(a, b);
	nccl_host("node-2", 6, b);
	assert_string_not_equal(a, b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_ring_that_is_told_is_the_only_one_that_fits),
		cmocka_unit_test(test_a_rank_that_is_silent_leaves_its_ring_open),
		cmocka_unit_test(test_short_rings_and_second_neighbours_contradict),
		cmocka_unit_test(test_lines_come_whole_whatever_the_pieces),
		cmocka_unit_test(test_names_of_types_and_hosts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
