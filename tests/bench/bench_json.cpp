/* bench_json.cpp - which library reads the events of a profiler's file fastest: each one gets the same texts, one
 * event each as json_cut.c cuts them, and has to look at every value in them.
 *
 *   bench_json FILE.json
 *
 * Only libraries that are there when this is built are in it. "digits": does it hand out numbers as they are written,
 * which stamps of microseconds with a fraction need? */
extern "C" {
#include "../../collector/import/json_cut.h"
}
#include "../../collector/import/json_walk.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <vector>

#include <simdjson.h>
#ifdef WITH_JSON_C /* in a program of its own: its names are jansson's */
#include <json-c/json.h>
#else
#include <jansson.h>
#endif
#ifdef WITH_CJSON
#include <cjson/cJSON.h>
#endif
#ifdef WITH_YAJL
#include <yajl/yajl_parse.h>
#endif
#ifdef WITH_RAPIDJSON
#define RAPIDJSON_SSE2
#include <rapidjson/reader.h>
#endif

namespace {

struct piece {
	const char *text; /* JSON_CUT_PADDING bytes more can be read */
	size_t n;
};

std::string bytes;
std::vector<piece> pieces;
uint64_t sum; /* what was seen, so that it must be looked at */

#ifdef WITH_JSON_C
void see(json_object *v)
{
	if (json_object_is_type(v, json_type_object)) {
		json_object_object_foreach(v, key, inner) {
			sum += strlen(key);
			see(inner);
		}
	} else if (json_object_is_type(v, json_type_array)) {
		for (size_t i = 0; i < json_object_array_length(v); i++)
			see(json_object_array_get_idx(v, i));
	} else if (json_object_is_type(v, json_type_string)) {
		sum += (uint64_t)json_object_get_string_len(v);
	} else {
		sum++;
	}
}

bool by_json_c(const piece &p)
{
	static json_tokener *tok = json_tokener_new();
	json_object *v;

	json_tokener_reset(tok);
	v = json_tokener_parse_ex(tok, p.text, (int)p.n);
	if (v)
		see(v);
	json_object_put(v);
	return v;
}
#else
void see(json_t *v)
{
	const char *key;
	json_t *inner;
	size_t i;

	if (json_is_object(v))
		json_object_foreach(v, key, inner) {
			sum += strlen(key);
			see(inner);
		}
	else if (json_is_array(v))
		json_array_foreach(v, i, inner)
			see(inner);
	else if (json_is_string(v))
		sum += json_string_length(v);
	else
		sum++;
}

bool by_jansson(const piece &p)
{
	json_t *v = json_loadb(p.text, p.n, 0, nullptr);

	if (v)
		see(v);
	json_decref(v);
	return v;
}
#endif

#ifdef WITH_CJSON
void see(const cJSON *v)
{
	const cJSON *inner;

	if (v->string)
		sum += strlen(v->string);
	if (cJSON_IsString(v))
		sum += strlen(v->valuestring);
	else if (!v->child)
		sum++;
	cJSON_ArrayForEach(inner, v)
		see(inner);
}

bool by_cjson(const piece &p)
{
	cJSON *v = cJSON_ParseWithLength(p.text, p.n);

	if (v)
		see(v);
	cJSON_Delete(v);
	return v;
}
#endif

#ifdef WITH_YAJL
int see_text(void *, const unsigned char *, size_t n)
{
	sum += n;
	return 1;
}

int see_number(void *, const char *, size_t)
{
	sum++;
	return 1;
}

int see_word(void *)
{
	sum++;
	return 1;
}

int see_bool(void *, int)
{
	sum++;
	return 1;
}

bool by_yajl(const piece &p)
{
	static const yajl_callbacks callbacks = { see_word, see_bool, nullptr, nullptr, see_number, see_text, nullptr,
						  see_text, nullptr, nullptr, nullptr };
	yajl_handle h = yajl_alloc(&callbacks, nullptr, nullptr);
	bool fine = yajl_parse(h, (const unsigned char *)p.text, p.n) == yajl_status_ok &&
		    yajl_complete_parse(h) == yajl_status_ok;

	yajl_free(h);
	return fine;
}
#endif

#ifdef WITH_RAPIDJSON
struct see_all : rapidjson::BaseReaderHandler<rapidjson::UTF8<>, see_all> {
	bool Default()
	{
		sum++;
		return true;
	}
	bool String(const char *, rapidjson::SizeType n, bool)
	{
		sum += n;
		return true;
	}
	bool Key(const char *, rapidjson::SizeType n, bool)
	{
		sum += n;
		return true;
	}
	bool StartObject() { return true; }
	bool EndObject(rapidjson::SizeType) { return true; }
	bool StartArray() { return true; }
	bool EndArray(rapidjson::SizeType) { return true; }
};

/* In place, in a copy: what is refused must still be there to be repaired. */
bool by_rapidjson(const piece &p)
{
	static std::vector<char> copy(JSON_CUT_BYTES + 1);
	rapidjson::Reader reader;
	see_all all;

	memcpy(copy.data(), p.text, p.n);
	copy[p.n] = '\0';
	rapidjson::InsituStringStream in(copy.data());
	return reader.Parse<rapidjson::kParseInsituFlag | rapidjson::kParseNumbersAsStringsFlag |
			    rapidjson::kParseValidateEncodingFlag>(in, all);
}
#endif

void see(simdjson::dom::element v)
{
	if (v.is_object()) {
		for (auto field : simdjson::dom::object(v.get_object().value_unsafe())) {
			sum += field.key.size();
			see(field.value);
		}
	} else if (v.is_array()) {
		for (auto inner : simdjson::dom::array(v.get_array().value_unsafe()))
			see(inner);
	} else if (v.is_string()) {
		sum += v.get_string_length().value_unsafe();
	} else {
		sum++;
	}
}

bool by_simdjson_dom(const piece &p)
{
	static simdjson::dom::parser parser;
	simdjson::dom::element v;

	if (parser.parse(p.text, p.n, false).get(v))
		return false;
	see(v);
	return true;
}

void see_item(void *, const struct json_item *v)
{
	sum += v->n_key;
	if (v->type == '"')
		sum += v->n_text;
	else if (v->text)
		sum++;
}

bool by_json_walk(const piece &p)
{
	static struct json_walk *walk = json_walk_new();

	return json_walk(walk, p.text, p.n, see_item, nullptr);
}

/* ---- */

size_t at;

ptrdiff_t read_bytes(void *, unsigned char *out, size_t n)
{
	if (n > bytes.size() - at)
		n = bytes.size() - at;
	memcpy(out, bytes.data() + at, n);
	at += n;
	return (ptrdiff_t)n;
}

double cpu_s()
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* The fastest of several rounds: others use this machine, too. */
void measure(const char *name, const char *digits, bool (*read)(const piece &p))
{
	double n_bytes = 0, best_s = 1e9;
	size_t n_refused = 0;

	for (int round = 0; round < 7; round++) {
		double before_s = cpu_s(), took_s;

		n_bytes = 0;
		sum = n_refused = 0;
		for (const piece &p : pieces) {
			n_refused += !read(p);
			n_bytes += (double)p.n;
		}
		took_s = cpu_s() - before_s;
		best_s = took_s < best_s ? took_s : best_s;
	}
	printf("%-28s %5.0f MB/s  %4.0f ns an event  digits: %-3s  refused: %zu  seen: %llu\n", name,
	       n_bytes / best_s / 1e6, best_s * 1e9 / (double)pieces.size(), digits, n_refused,
	       (unsigned long long)sum);
}

}

int main(int argc, char **argv)
{
	struct json_cut cut;
	std::vector<size_t> begins;
	std::string kept;
	enum json_cut_got got;
	char buf[65536];
	size_t n;
	FILE *f = argc == 2 ? fopen(argv[1], "rb") : nullptr;

	if (!f || !json_cut_init(&cut, read_bytes, nullptr, "traceEvents"))
		return 2;
	while (bytes.size() < 100000000 && (n = fread(buf, 1, sizeof buf, f)) > 0)
		bytes.append(buf, n);
	while ((got = json_cut_next(&cut)) < JSON_CUT_END)
		if (got == JSON_CUT_ELEMENT && cut.n_text > 0) {
			begins.push_back(kept.size());
			kept.append(cut.text, cut.n_text);
		}
	begins.push_back(kept.size());
	kept.append(JSON_CUT_PADDING, ' ');
	for (size_t i = 0; i + 1 < begins.size(); i++)
		pieces.push_back({ kept.data() + begins[i], begins[i + 1] - begins[i] });
	printf("%zu events\n", pieces.size());
	measure("simdjson on demand", "yes", by_json_walk);
	measure("simdjson tree", "no", by_simdjson_dom);
#ifdef WITH_RAPIDJSON
	measure("rapidjson, in place", "yes", by_rapidjson);
#endif
#ifdef WITH_YAJL
	measure("yajl", "yes", by_yajl);
#endif
#ifdef WITH_CJSON
	measure("cJSON", "no", by_cjson);
#endif
#ifdef WITH_JSON_C
	measure("json-c", "yes", by_json_c);
#else
	measure("jansson", "no", by_jansson);
#endif
	return 0;
}
