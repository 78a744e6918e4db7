/* Any marks of a few threads: what comes out is nested, and every mark is in a pair or counted. */
#include "../../collector/import/span_pairs.h"

#include <stdlib.h>

#define CHECK(claim)             \
	do {                     \
		if (!(claim))    \
			abort(); \
	} while (0)

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n);
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n)
{
	size_t n_marks = n / 2;
	struct pair_mark *v = calloc(n_marks + 1, sizeof *v);
	struct pair *pairs = calloc(n_marks / 2 + 1, sizeof *pairs);
	unsigned char *used = calloc(n_marks + 1, 1);
	struct pair_count c;

	CHECK(v && pairs && used);
	for (size_t i = 0; i < n_marks; i++)
		v[i] = (struct pair_mark){ data[2 * i], data[2 * i + 1] & 1, (data[2 * i + 1] >> 1) & 3, (uint32_t)i,
					   data[2 * i + 1] >> 7 };
	CHECK(pairs_find(v, n_marks, pairs, &c));
	CHECK(2 * c.n + c.n_without_begin + c.n_without_end == n_marks && c.n <= n_marks / 2);
	for (size_t i = 0; i < c.n; i++) {
		const struct pair *p = &pairs[i];

		CHECK(p->begin_ns <= p->end_ns && p->begin_tag < n_marks && p->end_tag < n_marks);
		CHECK(!used[p->begin_tag]++ && !used[p->end_tag]++);
		CHECK(data[2 * p->begin_tag] == p->begin_ns && data[2 * p->end_tag] == p->end_ns);
		for (size_t k = 0; k < i && n_marks < 256; k++) { /* inside, around, or apart */
			const struct pair *q = &pairs[k];

			CHECK(q->lane != p->lane || q->end_ns <= p->begin_ns || p->end_ns <= q->begin_ns ||
			      (p->begin_ns <= q->begin_ns && q->end_ns <= p->end_ns));
		}
	}
	free(v);
	free(pairs);
	free(used);
	return 0;
}
