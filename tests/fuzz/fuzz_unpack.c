/* Packed bytes: what comes out does not depend on the pieces in which it is asked for, or in
 * which the file is read; and an end is reached. */
#include "../../collector/import/unpack.h"

#include <stdlib.h>
#include <string.h>

#define MAX_OUT (1u << 22)
#define CHECK(claim)             \
	do {                     \
		if (!(claim))    \
			abort(); \
	} while (0)

struct pieces {
	const unsigned char *v;
	size_t n, at, piece;
};

static ptrdiff_t read_pieces(void *arg, unsigned char *out, size_t n)
{
	struct pieces *p = arg;

	n = n < p->piece ? n : p->piece;
	n = n < p->n - p->at ? n : p->n - p->at;
	memcpy(out, p->v + p->at, n);
	p->at += n;
	return (ptrdiff_t)n;
}

/* The sum of what came out, and how many; -1 in the end when it was damaged. */
static ptrdiff_t take(const unsigned char *data, size_t n, size_t piece, size_t ask, uint64_t *ret_sum, size_t *ret_n)
{
	struct pieces p = { data, n, 0, piece };
	struct unpack *u = unpack_new(data, n, read_pieces, &p);
	static unsigned char out[4096];
	ptrdiff_t got;

	CHECK(u);
	*ret_sum = *ret_n = 0;
	while ((got = unpack_read(u, out, ask)) > 0 && *ret_n < MAX_OUT) {
		CHECK((size_t)got <= ask);
		for (ptrdiff_t i = 0; i < got; i++)
			*ret_sum = *ret_sum * 31 + out[i];
		*ret_n += (size_t)got;
	}
	unpack_free(u);
	return got;
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n);
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n)
{
	uint64_t sum, other_sum;
	size_t n_out, n_other;
	ptrdiff_t end, other_end;

	if (!unpack_is_packed(data, n))
		return 0;
	end = take(data, n, 1 << 20, 4096, &sum, &n_out);
	other_end = take(data, n, 7, 4096, &other_sum, &n_other);
	CHECK((end < 0) == (other_end < 0) || n_out >= MAX_OUT);
	if (end == 0)
		CHECK(n_out == n_other && sum == other_sum);
	return 0;
}
