/* Any bytes as a list of events: cut with pieces of any size, the same elements and the same end; and they are those
 * that another library (jansson) finds in the whole, where that takes it for JSON. What both take is not repaired. */
#include "../../collector/import/json_repair.h"
#include "../../collector/import/trace_events.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(claim)             \
	do {                     \
		if (!(claim))    \
			abort(); \
	} while (0)

struct bytes {
	const unsigned char *v;
	size_t n, at, piece;
};

static ptrdiff_t read_bytes(void *arg, unsigned char *out, size_t n)
{
	struct bytes *b = arg;

	n = n < b->n - b->at ? n : b->n - b->at;
	n = n < b->piece ? n : b->piece;
	memcpy(out, b->v + b->at, n);
	b->at += n;
	return (ptrdiff_t)n;
}

static uint64_t hash(uint64_t h, const void *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		h = (h ^ ((const unsigned char *)v)[i]) * UINT64_C(0x100000001b3);
	return h;
}

/* ---- cut in pieces ---- */

static uint64_t cut_all(const unsigned char *data, size_t n, size_t piece)
{
	struct bytes b = { data, n, 0, piece };
	struct json_cut c;
	enum json_cut_got got;
	uint64_t h = UINT64_C(0xcbf29ce484222325);

	CHECK(json_cut_init(&c, read_bytes, &b, "traceEvents"));
	do {
		got = json_cut_next(&c);
		h = hash(h, &got, sizeof got);
		if (got == JSON_CUT_MEMBER)
			h = hash(h, c.key, strlen(c.key));
		if (got < JSON_CUT_END) {
			CHECK(c.n_text <= JSON_CUT_BYTES && (c.n_text == 0 || c.at_bytes + c.n_text <= n));
			CHECK(memcmp(c.text, data + c.at_bytes, c.n_text) == 0);
			h = hash(h, c.text, c.n_text);
		}
	} while (got < JSON_CUT_END);
	CHECK(got == JSON_CUT_END || (c.why[0] && memchr(c.why, '\0', sizeof c.why)));
	h = hash(h, c.why, strlen(c.why));
	h = hash(h, &c.unclosed, sizeof c.unclosed);
	json_cut_fini(&c);
	return h;
}

/* The same through trace_events.h, which looks into them. */
static uint64_t read_all(const unsigned char *data, size_t n, size_t piece)
{
	struct bytes b = { data, n, 0, piece };
	struct trace_events *s = trace_events_open(read_bytes, &b, NULL);
	static struct trace_event ev;
	enum trace_events_got got;
	uint64_t h = UINT64_C(0xcbf29ce484222325);
	char word[64], said[256] = "";

	CHECK(s);
	while ((got = trace_events_next(s, &ev)) == TRACE_EVENTS_ONE) {
		h = hash(h, ev.name, strlen(ev.name));
		h = hash(h, ev.numbers, sizeof ev.numbers);
		h = hash(h, ev.texts[TRACE_GROUP], strlen(ev.texts[TRACE_GROUP]));
		CHECK(ev.n_args <= TRACE_MAX_ARGS && ev.text[0] == '{' && ev.text[ev.n_text - 1] == '}');
		h = hash(h, word, trace_event_arg(&ev, "a", word, sizeof word) ? strlen(word) : 0);
	}
	CHECK(got == TRACE_EVENTS_END || trace_events_why(s)[0]);
	trace_events_remark(s, said, sizeof said);
	h = hash(h, said, strlen(said));
	h = hash(h, trace_events_why(s), strlen(trace_events_why(s)));
	trace_events_close(s);
	return h;
}

/* ---- beside another library ---- */

static void nothing(void *arg, const struct json_item *v)
{
	bool *is_plain = arg;

	/* What the other library has limits for, and this one none. */
	if (v->type == '0' && (v->n_text > 17 || memchr(v->text, 'e', v->n_text) || memchr(v->text, 'E', v->n_text)))
		*is_plain = false;
	if ((v->type == '"' && memchr(v->text, 0, v->n_text)) || (v->key && memchr(v->key, 0, v->n_key)))
		*is_plain = false;
}

/* In brackets, padded: may be no JSON. NULL: it is none. */
static json_t *value_of(struct json_walk *w, const struct json_cut *c, bool *is_plain)
{
	char *text = calloc(1, c->n_text + 2 + JSON_CUT_PADDING), *repaired = malloc(JSON_REPAIR_GROWS * c->n_text + 1);
	size_t n_repaired;
	json_t *list = NULL;

	CHECK(text && repaired);
	text[0] = '[';
	memcpy(text + 1, c->text, c->n_text);
	text[c->n_text + 1] = ']';
	n_repaired = json_repair(c->text, c->n_text, repaired);
	CHECK(n_repaired <= JSON_REPAIR_GROWS * c->n_text);
	if (json_walk(w, text, c->n_text + 2, nothing, is_plain)) {
		CHECK(n_repaired == c->n_text && memcmp(repaired, c->text, n_repaired) == 0);
		list = json_loadb(text, c->n_text + 2, JSON_ALLOW_NUL, NULL);
		CHECK(list || !*is_plain);
	} else {
		CHECK(!json_loadb(text, c->n_text + 2, JSON_ALLOW_NUL, NULL));
	}
	free(text);
	free(repaired);
	return list;
}

/* The other library would take the last of two lists. */
static bool has_one_list(const unsigned char *data, size_t n)
{
	static const char key[] = "traceEvents";
	const unsigned char *first = memmem(data, n, key, sizeof key - 1);

	return !first || !memmem(first + 1, n - (size_t)(first + 1 - data), key, sizeof key - 1);
}

/* Each value that is cut is the whole's; and with nothing but values, the whole is JSON. */
static void compare(const unsigned char *data, size_t n)
{
	struct bytes b = { data, n, 0, SIZE_MAX };
	json_t *whole = json_loadb((const char *)data, n, JSON_ALLOW_NUL, NULL), *list;
	struct json_walk *w = json_walk_new();
	bool is_plain = has_one_list(data, n), is_json = true;
	enum json_cut_got got;
	struct json_cut c;
	size_t at = 0;

	CHECK(w && json_cut_init(&c, read_bytes, &b, "traceEvents"));
	list = json_is_array(whole) ? whole : json_object_get(whole, "traceEvents");
	while ((got = json_cut_next(&c)) < JSON_CUT_END) {
		json_t *v;

		if (c.n_text == 0) {
			is_plain = false;
			continue;
		}
		v = value_of(w, &c, &is_plain);
		is_json &= v != NULL;
		if (got == JSON_CUT_MEMBER)
			for (const char *k = c.key; k == c.key || *k; k++)
				is_plain &= *k >= ' ' && *k < 0x7f && *k != '\\';
		if (whole && is_plain && got == JSON_CUT_ELEMENT && v)
			CHECK(json_equal(json_array_get(v, 0), json_array_get(list, at++)));
		json_decref(v);
	}
	if (got == JSON_CUT_END && is_json && is_plain && !c.unclosed)
		CHECK(whole);
	/* Nothing else than these is a reason to refuse JSON. */
	if (whole && got == JSON_CUT_BAD)
		CHECK(strstr(c.why, "too deeply") || strstr(c.why, "two lists"));
	if (whole && got == JSON_CUT_END && is_plain)
		CHECK(at == json_array_size(list));
	json_cut_fini(&c);
	json_walk_free(w);
	json_decref(whole);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n);
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n)
{
	size_t odd = 1 + (n > 0 ? data[n / 2] : 0);
	uint64_t cut = cut_all(data, n, SIZE_MAX), read = read_all(data, n, SIZE_MAX);

	CHECK(cut == cut_all(data, n, 1) && cut == cut_all(data, n, odd));
	CHECK(read == read_all(data, n, odd));
	if (!memchr(data, 0, n)) /* which jansson passes over behind a number */
		compare(data, n);
	return 0;
}
