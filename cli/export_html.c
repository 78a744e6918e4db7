/* export_html.c - a run as one HTML file that opens without a server.
 *
 * It is the collector's own page with its answers in it: a collector is started on the
 * file, on loopback and read-only, is asked everything that the page may ask, and ended.
 * The page unpacks the answers itself (web/src/net/kept.ts).
 */
#include "cli.h"
#include "export.h"
#include "export_ask.h"
#include "export_formats.h"
#include "export_window.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>
#include <nettle/base64.h>
#include <zlib.h>

#define TILE_SIDE 256
#define SMALLEST_LEVEL 64 /* cells: a coarser picture is of no use */
#define MAX_TILES 4000
#define BYTES_A_STEP 4000
#define BYTES_AN_ARRIVAL 12

struct page {
	struct export *e;
	struct asker *asker;
	json_t *answers;
	uint64_t n_asked, n_to_ask;
};

static bool failed(const struct page *p)
{
	if (p->asker->why[0])
		cli_say("%s", p->asker->why);
	else
		cli_say("there is not enough memory");
	return false;
}

static bool keep(struct page *p, const char *path, const struct asked *a)
{
	json_t *v = json_stringn(a->bytes, a->n_bytes);

	if (!v) { /* octets */
		char *text = malloc(1 + BASE64_ENCODE_RAW_LENGTH(a->n_bytes) + 1);

		if (!text)
			return false;
		text[0] = '@';
		base64_encode_raw(text + 1, a->n_bytes, (const uint8_t *)a->bytes);
		v = json_stringn(text, 1 + BASE64_ENCODE_RAW_LENGTH(a->n_bytes));
		free(text);
	}
	return json_object_set_new(p->answers, path, v) == 0;
}

/* False only when all is over: a path that the collector has nothing for is left out. */
static bool fetch(struct page *p, const char *path)
{
	struct asked a;
	bool fine = asker_get(p->asker, "api/v1/", path, &a);

	if (fine && a.code == 200)
		fine = keep(p, path, &a);
	free(a.bytes);
	export_progress(p->e, (double)++p->n_asked / (double)(p->n_to_ask + 1));
	return fine || failed(p);
}

/* ---- the picture ---- */

static unsigned n_levels(int64_t n)
{
	unsigned z = 0;

	while (n >> z > SMALLEST_LEVEL && z < 24)
		z++;
	return z + 1;
}

static uint64_t n_tiles(int64_t lo, int64_t hi, unsigned z)
{
	return (uint64_t)((hi >> z) / TILE_SIDE - (lo >> z) / TILE_SIDE + 1);
}

static bool fetch_level(struct page *p, const char *kind, unsigned zs, unsigned zr, int64_t first, int64_t last, int64_t n_ranks)
{
	for (int64_t x = (first >> zs) / TILE_SIDE; x <= (last >> zs) / TILE_SIDE; x++)
		for (int64_t y = 0; y <= ((n_ranks - 1) >> zr) / TILE_SIDE; y++) {
			char path[160];

			snprintf(path, sizeof path, "heat/%s/%u-%u/%" PRId64 "/%" PRId64, kind, zs, zr, x, y);
			if (!fetch(p, path))
				return false;
		}
	return true;
}

static uint64_t n_tiles_of_a_kind(int64_t first, int64_t last, int64_t n_ranks)
{
	uint64_t n = 0;

	for (unsigned zs = 0; zs < n_levels(last - first + 1); zs++)
		for (unsigned zr = 0; zr < n_levels(n_ranks); zr++)
			n += n_tiles(first, last, zs) * n_tiles(0, n_ranks - 1, zr);
	return n;
}

/* Of a large run not every way of colouring fits: what is left out is not offered by the page. */
static void choose_kinds(json_t *heat, uint64_t n_each)
{
	json_t *aggs = json_object_get(heat, "aggs"), *metrics = json_object_get(heat, "metrics"),
	       *baselines = json_object_get(heat, "baselines");

	while (n_each * json_array_size(aggs) * json_array_size(metrics) * json_array_size(baselines) > MAX_TILES) {
		json_t *shorter = json_array_size(aggs) > 1 ? aggs : json_array_size(metrics) > 2 ? metrics : baselines;

		if (json_array_size(shorter) <= 1)
			return;
		json_array_remove(shorter, json_array_size(shorter) - 1);
	}
}

static uint64_t n_kinds(const json_t *heat)
{
	return json_array_size(json_object_get(heat, "aggs")) * json_array_size(json_object_get(heat, "metrics")) *
	       json_array_size(json_object_get(heat, "baselines"));
}

static bool fetch_picture(struct page *p, const json_t *heat, int64_t first, int64_t last, int64_t n_ranks)
{
	size_t m, b, a;
	json_t *metric, *baseline, *agg;

	json_array_foreach(json_object_get(heat, "metrics"), m, metric)
	json_array_foreach(json_object_get(heat, "baselines"), b, baseline)
	json_array_foreach(json_object_get(heat, "aggs"), a, agg)
		for (unsigned zs = 0; zs < n_levels(last - first + 1); zs++)
			for (unsigned zr = 0; zr < n_levels(n_ranks); zr++) {
				char kind[100];

				snprintf(kind, sizeof kind, "%.30s/%.30s/%.30s", json_string_value(metric), json_string_value(baseline),
					 json_string_value(agg));
				if (!fetch_level(p, kind, zs, zr, first, last, n_ranks))
					return false;
			}
	return true;
}

/* ---- everything else ---- */

static bool fetch_steps(struct page *p)
{
	for (int64_t step = p->e->window.first; step <= p->e->window.last; step++) {
		char path[40];

		snprintf(path, sizeof path, "step/%" PRId64, step);
		if (!fetch(p, path))
			return false;
		p->e->n_written += json_object_get(p->answers, path) != NULL;
	}
	return true;
}

/* boot as this file can answer it: not live, and only what is in it. */
static bool fetch_all(struct page *p)
{
	static const char *const plain[] = { "run", "ranks", "findings", "steps", "clocks", "clocks/history", "clocks/steps", "drops", "logs" };
	struct asked a;
	json_t *boot, *axes, *heat;
	int64_t first, last, n_ranks;
	bool fine;
	char *text;

	if (!asker_get(p->asker, "api/v1/", "boot", &a))
		return failed(p);
	boot = json_loadb(a.bytes, a.n_bytes, 0, NULL);
	free(a.bytes);
	axes = json_object_get(boot, "axes");
	heat = json_object_get(boot, "heat");
	if (!axes || !heat) {
		cli_say("the collector has no answer to start a page with");
		json_decref(boot);
		return false;
	}
	json_object_set_new(json_object_get(boot, "live"), "state", json_string("snapshot"));
	first = json_integer_value(json_object_get(axes, "first_step"));
	last = json_integer_value(json_object_get(axes, "last_step"));
	n_ranks = json_integer_value(json_object_get(axes, "n_ranks"));
	if (n_ranks > 0) {
		uint64_t n_each = n_tiles_of_a_kind(first, last, n_ranks);

		choose_kinds(heat, n_each);
		p->n_to_ask = n_each * n_kinds(heat);
	}
	if (p->e->window.last >= p->e->window.first)
		p->n_to_ask += (uint64_t)(p->e->window.last - p->e->window.first) + 1;
	text = json_dumps(boot, JSON_COMPACT);
	fine = text && json_object_set_new(p->answers, "boot", json_string(text)) == 0;
	free(text);
	for (size_t i = 0; i < sizeof plain / sizeof *plain && fine; i++)
		fine = fetch(p, plain[i]);
	fine = fine && fetch_steps(p) && (n_ranks == 0 || fetch_picture(p, heat, first, last, n_ranks));
	json_decref(boot);
	return fine;
}

/* ---- the file ---- */

static bool put_packed(FILE *out, const char *text)
{
	size_t n = strlen(text);
	uLong n_bound = compressBound(n) + 64;
	unsigned char *packed = malloc(n_bound);
	z_stream z = { 0 };
	char *base64;
	bool fine = packed && deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK;

	if (!fine) {
		free(packed);
		return false;
	}
	z.next_in = (unsigned char *)text;
	z.avail_in = (uInt)n;
	z.next_out = packed;
	z.avail_out = (uInt)n_bound;
	fine = n < UINT32_MAX / 2 && deflate(&z, Z_FINISH) == Z_STREAM_END;
	base64 = fine ? malloc(BASE64_ENCODE_RAW_LENGTH(z.total_out) + 1) : NULL;
	if (base64) {
		base64_encode_raw(base64, z.total_out, packed);
		fwrite(base64, 1, BASE64_ENCODE_RAW_LENGTH(z.total_out), out);
	}
	deflateEnd(&z);
	free(packed);
	free(base64);
	return fine && base64;
}

/* An element of the page with the address of a file of ours in it. */
static const char *find_element(const char *html, const char *begin, const char *attribute, char *address, size_t n_address, const char **ret_end)
{
	const char *at = strstr(html, begin);

	while (at) {
		const char *end = strchr(at, '>'), *value = strstr(at, attribute);

		if (!end)
			return NULL;
		if (value && value < end) {
			size_t n;

			value += strlen(attribute);
			n = strcspn(value, "\"");
			if (n < n_address) {
				memcpy(address, value, n);
				address[n] = '\0';
				*ret_end = end + 1;
				return at;
			}
		}
		at = strstr(end, begin);
	}
	return NULL;
}

/* Script within an HTML file must not end its element. */
static void put_script(FILE *out, const char *text)
{
	const char *at;

	while ((at = strstr(text, "</script"))) {
		fwrite(text, 1, (size_t)(at - text), out);
		fputs("<\\/script", out);
		text = at + strlen("</script");
	}
	fputs(text, out);
}

static bool put_file(struct page *p, FILE *out, const char *address, const char *begin, const char *end, bool script)
{
	struct asked a;
	bool fine = asker_get(p->asker, "", address[0] == '.' && address[1] == '/' ? address + 2 : address, &a);

	if (fine && a.code != 200) {
		cli_say("the page's %s is missing: HTTP %ld", address, a.code);
		fine = false;
	} else if (!fine) {
		failed(p);
	}
	if (fine) {
		fputs(begin, out);
		if (script)
			put_script(out, a.bytes);
		else
			fputs(a.bytes, out);
		fputs(end, out);
	}
	free(a.bytes);
	return fine;
}

static bool put_page(struct page *p, const char *html, const char *packed)
{
	FILE *out = p->e->out;
	char style[200], script[200];
	const char *style_end, *script_end, *style_at, *script_at, *body;

	style_at = find_element(html, "<link rel=\"stylesheet\"", "href=\"", style, sizeof style, &style_end);
	script_at = find_element(html, "<script type=\"module\"", "src=\"", script, sizeof script, &script_end);
	body = strstr(html, "<body>");
	if (!style_at || !script_at || !body) {
		cli_say("this build has no page to put the run into. Build it: web/build.sh, then build again");
		return false;
	}
	/* What is left of the head: neither icon nor files of the collector's. */
	fputs("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
	      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
	      "<meta name=\"color-scheme\" content=\"light dark\">\n<title>syncline</title>\n", out);
	if (!put_file(p, out, style, "<style>\n", "</style>\n</head>\n", false))
		return false;
	fputs("<body>\n<div id=\"page\"></div>\n<noscript>This page draws with JavaScript. Without it, use: syncline report run.db</noscript>\n"
	      "<script type=\"application/octet-stream\" id=\"kept\">", out);
	if (!put_packed(out, packed)) {
		cli_say("the answers are too many for one page. Take fewer steps with --last");
		return false;
	}
	fputs("</script>\n", out);
	return put_file(p, out, script, "<script type=\"module\">\n", "</script>\n</body>\n</html>\n", true);
}

static bool make(struct page *p)
{
	struct asked html;
	json_t *kept;
	char *text;
	bool fine;

	if (!asker_get(p->asker, "", "", &html))
		return failed(p);
	fine = fetch_all(p);
	kept = json_pack("{s:s, s:O}", "about", p->e->window.what, "answers", p->answers);
	text = fine && kept ? json_dumps(kept, JSON_COMPACT) : NULL;
	fine = text && put_page(p, html.bytes, text);
	free(text);
	json_decref(kept);
	free(html.bytes);
	return fine;
}

int export_html(struct export *e, const struct export_format *f)
{
	struct page p = { .e = e, .answers = json_object() };
	bool fine;
	int status;

	if ((status = export_open(e, f)) != EXIT_FINE)
		return status;
	p.asker = asker_start(e->db_path);
	fine = p.asker && p.answers;
	if (fine && !p.asker->why[0])
		fine = make(&p);
	else
		fine = p.asker ? failed(&p) : false;
	asker_stop(p.asker);
	json_decref(p.answers);
	return export_close(e, fine) ? EXIT_FINE : EXIT_UNREACHED;
}

int64_t export_guess_html(const struct export *e)
{
	return 200000 + (e->size.n_steps * BYTES_A_STEP + e->size.n_arrivals * BYTES_AN_ARRIVAL) / 4;
}
