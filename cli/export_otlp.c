/* export_otlp.c - the run's figures as OpenTelemetry metrics: a body that an OTLP
 * collector takes over HTTP, written to a file or posted.
 *
 * What is not measured is not there: a missing series is "unknown", a zero would be a
 * claim. The protocol's JSON has 64-bit integers as strings and enumerations as numbers.
 */
#include "cli.h"
#include "export.h"
#include "export_formats.h"
#include "rows.h"
#include "term.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <curl/curl.h>
#include <jansson.h>

#include "sql.h"

#define CUMULATIVE 2
#define TIMEOUT_MS 10000
#define MAX_ANSWER_BYTES (64u << 10)

static const double step_bounds_s[] = { 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300 };
#define N_BOUNDS (sizeof step_bounds_s / sizeof *step_bounds_s)

struct body {
	struct export *e;
	json_t *metrics;
	json_t *by_name; /* name → its data points, borrowed from metrics */
	int64_t begin_ns, at_ns;
};

static json_t *decimal(int64_t n)
{
	char text[24];

	snprintf(text, sizeof text, "%" PRId64, n);
	return json_string(text);
}

/* {"key": 1} as [{"key": "key", "value": {"intValue": "1"}}]. */
static json_t *attributes(json_t *v)
{
	json_t *list = json_array(), *value;
	const char *key;

	json_object_foreach(v, key, value) {
		json_t *a = NULL;

		if (json_is_integer(value))
			a = json_pack("{s:o}", "intValue", decimal(json_integer_value(value)));
		else if (json_is_string(value))
			a = json_pack("{s:O}", "stringValue", value);
		else if (json_is_real(value))
			a = json_pack("{s:O}", "doubleValue", value);
		if (a)
			json_array_append_new(list, json_pack("{s:s, s:o}", "key", key, "value", a));
	}
	return list;
}

static json_t *point(const struct body *b, json_t *about)
{
	return json_pack("{s:o, s:o, s:o}", "startTimeUnixNano", decimal(b->begin_ns), "timeUnixNano", decimal(b->at_ns),
			 "attributes", attributes(about));
}

static bool add_metric(struct body *b, const char *name, const char *unit, const char *kind, json_t *data)
{
	return json_array_append_new(b->metrics, json_pack("{s:s, s:s, s:o}", "name", name, "unit", unit, kind, data)) == 0;
}

/* ---- what there is ---- */

static bool add_steps(struct body *b)
{
	json_t *row = rows_one(b->e->db, sql_report_otlp_steps), *counts = json_object_get(row, "counts");
	int64_t n = rows_ns(row, "n"), before = 0;
	json_t *buckets = json_array(), *bounds = json_array(), *p;
	bool fine;

	if (!row)
		return false;
	if (n <= 0) {
		json_decref(row);
		json_decref(buckets);
		json_decref(bounds);
		return true;
	}
	for (size_t i = 0; i < N_BOUNDS; i++) {
		int64_t until = json_integer_value(json_array_get(counts, i));

		json_array_append_new(buckets, decimal(until - before));
		json_array_append_new(bounds, json_real(step_bounds_s[i]));
		before = until;
	}
	json_array_append_new(buckets, decimal(n - before));
	p = point(b, NULL);
	json_object_set_new(p, "count", decimal(n));
	json_object_set(p, "sum", json_object_get(row, "sum_s"));
	json_object_set(p, "min", json_object_get(row, "min_s"));
	json_object_set(p, "max", json_object_get(row, "max_s"));
	json_object_set_new(p, "bucketCounts", buckets);
	json_object_set_new(p, "explicitBounds", bounds);
	fine = add_metric(b, "syncline.step.duration", "s", "histogram",
			  json_pack("{s:i, s:[o]}", "aggregationTemporality", CUMULATIVE, "dataPoints", p));
	b->e->n_written++;
	json_decref(row);
	return fine;
}

/* The data points of that gauge, which is made when it is the first. */
static json_t *points_of(struct body *b, const char *name, const char *unit)
{
	json_t *known = json_object_get(b->by_name, name);

	if (known)
		return known;
	known = json_array();
	json_object_set_new(b->by_name, name, known);
	if (!known || !add_metric(b, name, unit, "gauge", json_pack("{s:O}", "dataPoints", known)))
		return NULL;
	return known;
}

static bool add_gauges(struct body *b)
{
	json_t *rows = rows_all(b->e->db, sql_report_otlp_gauges), *row;
	bool fine = rows;
	size_t i;

	json_array_foreach(rows, i, row) {
		json_t *value = json_object_get(row, "value"), *points, *p;

		if (!json_is_number(value) || !isfinite(json_number_value(value)))
			continue;
		points = points_of(b, rows_text(row, "metric"), rows_text(row, "unit"));
		p = point(b, json_object_get(row, "attributes"));
		json_object_set_new(p, "asDouble", json_real(json_number_value(value)));
		fine = fine && points && json_array_append_new(points, p) == 0;
		b->e->n_written++;
	}
	json_decref(rows);
	return fine;
}

static bool add_drops(struct body *b)
{
	json_t *rows = rows_all(b->e->db, sql_report_otlp_drops), *list = json_array(), *row;
	bool fine = rows && list;
	size_t i;

	json_array_foreach(rows, i, row) {
		json_t *about = json_pack("{s:O, s:O}", "place", json_object_get(row, "place"), "rank", json_object_get(row, "rank"));
		json_t *p = point(b, about);

		json_decref(about);
		json_object_set_new(p, "asInt", decimal(json_integer_value(json_object_get(row, "n"))));
		fine = fine && json_array_append_new(list, p) == 0;
		b->e->n_written++;
	}
	json_decref(rows);
	return fine && add_metric(b, "syncline.dropped", "{event}", "sum",
				  json_pack("{s:i, s:b, s:o}", "aggregationTemporality", CUMULATIVE, "isMonotonic", 1,
					    "dataPoints", list));
}

static json_t *resource(json_t *run)
{
	json_t *about = json_pack("{s:s, s:O}", "service.name", "syncline", "syncline.run.id", json_object_get(run, "id")), *v;

	json_object_set(about, "syncline.world_size", json_object_get(run, "world_size"));
	v = json_pack("{s:o}", "attributes", attributes(about));
	json_decref(about);
	return v;
}

static int64_t wall_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

/* A run that has ended is told as of its end; another one as of now. */
static json_t *make_body(struct export *e)
{
	json_t *run = rows_one(e->db, sql_report_run), *whole;
	struct body b = { .e = e, .metrics = json_array(), .by_name = json_object() };
	int64_t ended_ns = run ? rows_ns(run, "ended_ns") : INT64_MIN;
	bool fine = run && b.metrics && b.by_name;

	e->n_written = 0;
	b.begin_ns = run ? rows_ns(run, "started_ns") : 0;
	b.begin_ns = b.begin_ns > 0 ? b.begin_ns : 0;
	b.at_ns = ended_ns > 0 ? ended_ns : wall_ns();
	fine = fine && add_steps(&b) && add_gauges(&b) && add_drops(&b);
	whole = fine ? json_pack("{s:[{s:o, s:[{s:{s:s, s:s}, s:O}]}]}", "resourceMetrics", "resource", resource(run),
				 "scopeMetrics", "scope", "name", "syncline", "version", SYNCLINE_VERSION, "metrics",
				 b.metrics)
		     : NULL;
	if (!whole)
		cli_say("%s", e->db->why[0] ? e->db->why : "there is not enough memory");
	json_decref(b.by_name);
	json_decref(b.metrics);
	json_decref(run);
	return whole;
}

/* ---- where it goes ---- */

struct answer {
	char *text;
	size_t n;
};

static size_t take(char *data, size_t size, size_t n, void *arg)
{
	struct answer *a = arg;
	char *grown = a->n + size * n < MAX_ANSWER_BYTES ? realloc(a->text, a->n + size * n + 1) : NULL;

	if (!grown)
		return 0;
	memcpy(grown + a->n, data, size * n);
	a->text = grown;
	a->n += size * n;
	a->text[a->n] = '\0';
	return size * n;
}

/* "key1=value1,key2=value2", as OpenTelemetry has it. */
static struct curl_slist *own_headers(struct curl_slist *list)
{
	const char *p = getenv("OTEL_EXPORTER_OTLP_HEADERS");

	while (p && *p) {
		size_t n = strcspn(p, ","), n_key = strcspn(p, "=");
		char line[4096];

		if (n_key < n && snprintf(line, sizeof line, "%.*s: %.*s", (int)n_key, p, (int)(n - n_key - 1), p + n_key + 1) < (int)sizeof line)
			list = curl_slist_append(list, line);
		p += n + (p[n] == ',');
	}
	return list;
}

/* How many points the other side did not take, -1 = it does not say. */
static int64_t rejected(const struct answer *a)
{
	json_t *v = a->text ? json_loads(a->text, 0, NULL) : NULL;
	json_t *n = json_object_get(json_object_get(v, "partialSuccess"), "rejectedDataPoints");
	int64_t ret = json_is_string(n) ? strtoll(json_string_value(n), NULL, 10) : json_is_integer(n) ? json_integer_value(n) : -1;

	json_decref(v);
	return ret;
}

static int post(const char *url, const char *text)
{
	struct answer a = { NULL, 0 };
	char error[CURL_ERROR_SIZE] = "";
	struct curl_slist *headers = own_headers(curl_slist_append(NULL, "Content-Type: application/json"));
	CURL *c = curl_easy_init();
	long code = 0;
	CURLcode r = CURLE_OUT_OF_MEMORY;
	int64_t n_rejected;

	if (c) {
		curl_easy_setopt(c, CURLOPT_URL, url);
		curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https");
		curl_easy_setopt(c, CURLOPT_POSTFIELDS, text);
		curl_easy_setopt(c, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)strlen(text));
		curl_easy_setopt(c, CURLOPT_HTTPHEADER, headers);
		curl_easy_setopt(c, CURLOPT_TIMEOUT_MS, (long)TIMEOUT_MS);
		curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
		curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, take);
		curl_easy_setopt(c, CURLOPT_WRITEDATA, &a);
		curl_easy_setopt(c, CURLOPT_ERRORBUFFER, error);
		r = curl_easy_perform(c);
		curl_easy_getinfo(c, CURLINFO_RESPONSE_CODE, &code);
	}
	curl_easy_cleanup(c);
	curl_slist_free_all(headers);
	n_rejected = rejected(&a);
	free(a.text);
	if (r != CURLE_OK) {
		cli_say("%s takes nothing: %s. Is an OpenTelemetry collector there, with an OTLP receiver over HTTP?", url,
			error[0] ? error : curl_easy_strerror(r));
		return EXIT_UNREACHED;
	}
	if (code / 100 != 2) {
		cli_say("%s refuses: HTTP %ld. The path of metrics is usually /v1/metrics", url, code);
		return EXIT_UNREACHED;
	}
	if (n_rejected > 0) {
		cli_say("%s left %" PRId64 " points out", url, n_rejected);
		return EXIT_INCOMPLETE;
	}
	return EXIT_FINE;
}

static int post_once(struct export *e)
{
	json_t *body = make_body(e);
	char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;
	int status = text ? post(e->endpoint, text) : EXIT_UNREACHED;

	free(text);
	json_decref(body);
	if (status == EXIT_FINE) {
		printf("%" PRIu64 " points to ", e->n_written);
		term_put(stdout, e->endpoint);
		putchar('\n');
		fflush(stdout);
	}
	return status;
}

static bool has_ended(struct export *e)
{
	json_t *run = rows_one(e->db, sql_report_run);
	bool ended = run && rows_ns(run, "ended_ns") > 0;

	json_decref(run);
	return ended;
}

/* One that does not get through is tried again at the next turn. */
static int post_all(struct export *e)
{
	for (;;) {
		bool ended = e->every_s == 0 || has_ended(e);
		int status = post_once(e);

		if (ended)
			return status;
		sleep((unsigned)e->every_s);
	}
}

int export_otlp(struct export *e, const struct export_format *f)
{
	json_t *body;
	bool fine;
	int status;

	if (e->endpoint)
		return post_all(e);
	if ((status = export_open(e, f)) != EXIT_FINE)
		return status;
	body = make_body(e);
	fine = body && json_dumpf(body, e->out, JSON_COMPACT) == 0;
	if (fine)
		fputc('\n', e->out);
	json_decref(body);
	return export_close(e, fine) ? EXIT_FINE : EXIT_UNREACHED;
}
