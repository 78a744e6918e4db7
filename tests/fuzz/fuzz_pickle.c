/* Any bytes as a pickle: refused with a sentence, or a tree within the limits, which JSON text gives back equal;
 * and the same whatever pieces it comes in. */
#include "../../collector/import/pickle.h"
#include "import_check.h"

static const struct pickle_limits limits = {
	.max_bytes = 1 << 20, .max_kept_bytes = 1 << 24, .max_unfolded = 1 << 16,
	.max_values = 1 << 15, .max_depth = 16, .max_text_bytes = 1 << 16,
};

static ptrdiff_t read_one(void *arg, unsigned char *out, size_t n)
{
	return read_bytes(arg, out, n ? 1 : 0);
}

static uint64_t walk(json_t *v, uint32_t depth)
{
	uint64_t n = 1;
	const char *key;
	json_t *item;
	size_t i;

	CHECK(depth <= limits.max_depth);
	json_array_foreach(v, i, item)
		n += walk(item, depth + 1);
	json_object_foreach(v, key, item)
		n += walk(item, depth + 1);
	return n;
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n);
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n)
{
	struct bytes b = { data, n, 0 }, c = { data, n, 0 };
	char why[120], again[120], *text;
	json_t *v, *w;
	enum pickle_outcome o = pickle_load(&v, read_bytes, &b, &limits, why, sizeof why);

	CHECK(o == pickle_load(&w, read_one, &c, &limits, again, sizeof again) && strcmp(why, again) == 0);
	CHECK(o == PICKLE_OK ? json_equal(v, w) : o == PICKLE_REFUSED && !v && why[0] && memchr(why, '\0', sizeof why));
	json_decref(w);
	if (o != PICKLE_OK)
		return 0;
	CHECK(walk(v, 0) <= limits.max_unfolded);
	text = json_dumps(v, JSON_ENCODE_ANY | JSON_REAL_PRECISION(17));
	CHECK(text);
	w = json_loads(text, JSON_DECODE_ANY, NULL);
	CHECK(w && json_equal(v, w));
	json_decref(w);
	json_decref(v);
	free(text);
	return 0;
}
