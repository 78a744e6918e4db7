/* pickle_json.c - pickles from stdin, each behind its size in 8 bytes, as lines of JSON:
 * what the importers' loader makes of it, or "!" and why it was refused. */
#include "../../collector/import/pickle.h"

#include <stdio.h>
#include <stdlib.h>

static ptrdiff_t read_rest(void *arg, unsigned char *out, size_t n)
{
	uint64_t *left = arg;
	size_t got = fread(out, 1, n < *left ? n : *left, stdin);

	*left -= got;
	return (ptrdiff_t)got;
}

int main(void)
{
	unsigned char waste[4096];
	uint64_t left;

	while (fread(&left, sizeof left, 1, stdin) == 1) {
		char why[200], *text = NULL;
		json_t *v;

		if (pickle_load(&v, read_rest, &left, &pickle_limits, why, sizeof why) == PICKLE_OK)
			text = json_dumps(v, JSON_ENCODE_ANY | JSON_REAL_PRECISION(17));
		printf("%s%s\n", text ? "" : "!", text ? text : why);
		json_decref(v);
		free(text);
		while (left > 0 && read_rest(&left, waste, sizeof waste) > 0)
			;
	}
	return 0;
}
