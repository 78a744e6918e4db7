/* spec.c - the frame of a case file: who is there, who is a group, whose clock is
 * off. The operations are spec_ops.c's. */
#include "spec_internal.h"

#include "../proto/frame.h"
#include "../proto/shm.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool spec_refuse(struct parser *p, const char *fmt, ...)
{
	char place[200] = "";
	size_t n = 0;
	va_list ap;

	if (p->who) {
		n = (size_t)snprintf(place, sizeof place, "program \"%.60s\", operation ", p->who);
		for (uint32_t i = 0; i < p->n_path && n < sizeof place - 16; i++)
			n += (size_t)snprintf(place + n, sizeof place - n, "%s%u", i ? "." : "",
					      p->path[i] + 1);
		if (p->what && n < sizeof place - 40)
			n += (size_t)snprintf(place + n, sizeof place - n, " (%.24s)", p->what);
		snprintf(place + n, sizeof place - n, ": ");
	}
	n = (size_t)snprintf(p->why, p->n_why, "%s", place);
	va_start(ap, fmt);
	if (n < p->n_why)
		vsnprintf(p->why + n, p->n_why - n, fmt, ap);
	va_end(ap);
	return false;
}

void *spec_alloc(struct parser *p, size_t n, size_t size)
{
	void *v = calloc(n ? n : 1, size);

	if (!v)
		p->no_memory = true;
	return v;
}

/* ---- values ---- */

bool spec_get_name(struct parser *p, const json_t *v, const char *what, size_t max,
		   const char **ret)
{
	if (!json_is_string(v) || json_string_length(v) == 0 || json_string_length(v) > max)
		return spec_refuse(p, "%s is a text of 1 to %zu bytes", what, max);
	*ret = json_string_value(v);
	return true;
}

bool spec_get_real(struct parser *p, const json_t *v, const char *what, double lo, double hi,
		   double *ret)
{
	double x = json_is_number(v) ? json_number_value(v) : NAN;

	if (!(x >= lo && x <= hi))
		return spec_refuse(p, "%s is a number from %g to %g", what, lo, hi);
	*ret = x;
	return true;
}

bool spec_get_ms(struct parser *p, const json_t *v, const char *what, double *ret)
{
	if (!spec_get_real(p, v, what, 0, SPEC_MAX_MS, ret))
		return spec_refuse(p, "%s is in milliseconds, from 0 to 30 days", what);
	return true;
}

bool spec_get_whole(struct parser *p, const json_t *v, const char *what, uint64_t lo, uint64_t hi,
		    uint64_t *ret)
{
	double x = json_is_number(v) ? json_number_value(v) : NAN;

	if (!(x >= (double)lo && x <= (double)hi) || x != floor(x))
		return spec_refuse(p, "%s is a whole number from %llu to %llu", what,
				   (unsigned long long)lo, (unsigned long long)hi);
	*ret = json_is_integer(v) ? (uint64_t)json_integer_value(v) : (uint64_t)x;
	return true;
}

/* ---- sets of ranks: "*", "0-3,6" ---- */

static void add_rank(struct spec_ranks *r, uint32_t rank)
{
	r->n += !spec_has(r, rank);
	r->bits[rank / 64] |= UINT64_C(1) << rank % 64;
}

static const char *skip_spaces(const char *s)
{
	while (*s == ' ')
		s++;
	return s;
}

/* One number; NULL when there is none or it is no rank of any world. */
static const char *read_rank(const char *s, uint32_t *ret)
{
	uint32_t v = 0;

	s = skip_spaces(s);
	if (*s < '0' || *s > '9')
		return NULL;
	for (; *s >= '0' && *s <= '9'; s++) {
		v = v * 10 + (uint32_t)(*s - '0');
		if (v >= 10 * SPEC_MAX_WORLD)
			return NULL;
	}
	*ret = v;
	return skip_spaces(s);
}

static const char *read_part(const char *s, uint32_t world, uint32_t *lo, uint32_t *hi)
{
	s = skip_spaces(s);
	if (*s == '*') {
		*lo = 0;
		*hi = world - 1;
		return skip_spaces(s + 1);
	}
	s = read_rank(s, lo);
	*hi = *lo;
	if (s && *s == '-')
		s = read_rank(s + 1, hi);
	return s;
}

static bool read_ranks(struct parser *p, const char *text, const char *what,
		       struct spec_ranks *ret)
{
	uint32_t world = p->spec->world, lo = 0, hi = 0;
	const char *s = text;

	ret->n = 0;
	ret->bits = spec_alloc(p, (world + 63) / 64, sizeof *ret->bits);
	if (!ret->bits)
		return false;
	for (;;) {
		s = read_part(s, world, &lo, &hi);
		if (!s || (*s != ',' && *s != '\0'))
			return spec_refuse(p,
					   "%s \"%.60s\" is not a list of ranks like \"*\" or "
					   "\"0-3,6\"",
					   what, text);
		if (lo > hi || hi >= world)
			return spec_refuse(p, "%s \"%.60s\" names ranks that a world of %u has not",
					   what, text, world);
		for (uint32_t rank = lo; rank <= hi; rank++)
			add_rank(ret, rank);
		if (*s++ == '\0')
			return true;
	}
}

bool spec_get_ranks(struct parser *p, const json_t *v, const char *what, struct spec_ranks *ret)
{
	char number[24];

	if (json_is_string(v) && json_string_length(v) <= SPEC_MAX_RANKS_TEXT)
		return read_ranks(p, json_string_value(v), what, ret);
	if (!json_is_integer(v))
		return spec_refuse(p, "%s is a text like \"*\" or \"0-3,6\"", what);
	snprintf(number, sizeof number, "%lld", (long long)json_integer_value(v));
	return read_ranks(p, number, what, ret);
}

/* ---- the frame ---- */

static bool get_groups(struct parser *p, const json_t *v)
{
	struct spec *s = p->spec;
	const char *name;
	json_t *ranks;
	bool has_dp = false;

	if (v && !json_is_object(v))
		return spec_refuse(p, "pg is an object: group name to ranks");
	if (json_object_size(v) > SPEC_MAX_GROUPS)
		return spec_refuse(p, "pg names %zu groups; %d are taken", json_object_size(v),
				   SPEC_MAX_GROUPS);
	s->groups = spec_alloc(p, json_object_size(v) + 1, sizeof *s->groups);
	if (!s->groups)
		return false;
	json_object_foreach((json_t *)v, name, ranks) {
		struct spec_group *g = &s->groups[s->n_groups];

		if (!name[0] || strlen(name) > FRAME_MAX_ID)
			return spec_refuse(p, "the name of a group has 1 to %d bytes", FRAME_MAX_ID);
		*g = (struct spec_group){ .name = name, .declared = true };
		s->n_groups++;
		if (!spec_get_ranks(p, ranks, "group", &g->ranks))
			return false;
		has_dp |= strcmp(name, "dp") == 0;
	}
	if (has_dp)
		return true;
	s->groups[s->n_groups] = (struct spec_group){ .name = "dp" };
	return read_ranks(p, "*", "group", &s->groups[s->n_groups++].ranks);
}

static bool index_names(struct parser *p)
{
	p->groups = json_object();
	p->streams = json_pack("{s:i, s:i}", "c", SPEC_STREAM_COMPUTE, "p", SPEC_STREAM_P2P);
	p->spec->n_streams = 2;
	p->no_memory |= !p->streams;
	for (uint32_t i = 0; i < p->spec->n_groups; i++)
		if (json_object_set_new(p->groups, p->spec->groups[i].name, json_integer(i)) != 0)
			p->no_memory = true;
	return !p->no_memory;
}

static bool get_hosts(struct parser *p, const json_t *v)
{
	uint64_t placed[SPEC_MAX_WORLD / 64] = { 0 };
	struct spec *s = p->spec;
	uint32_t n_placed = 0;
	const char *name;
	json_t *ranks;

	if (v && !json_is_object(v))
		return spec_refuse(p, "hosts is an object: host name to ranks");
	if (json_object_size(v) > SPEC_MAX_HOSTS)
		return spec_refuse(p, "hosts names %zu hosts; %d are taken", json_object_size(v),
				   SPEC_MAX_HOSTS);
	s->hosts = spec_alloc(p, json_object_size(v) + 1, sizeof *s->hosts);
	if (!s->hosts)
		return false;
	if (json_object_size(v) == 0) {
		s->hosts[s->n_hosts].name = "host";
		return read_ranks(p, "*", "host", &s->hosts[s->n_hosts++].ranks);
	}
	json_object_foreach((json_t *)v, name, ranks) {
		struct spec_host *h = &s->hosts[s->n_hosts];

		if (!name[0] || strlen(name) > FRAME_MAX_ID)
			return spec_refuse(p, "the name of a host has 1 to %d bytes", FRAME_MAX_ID);
		h->name = name;
		s->n_hosts++;
		if (!spec_get_ranks(p, ranks, "host", &h->ranks))
			return false;
		for (uint32_t k = 0; k < (s->world + 63) / 64; k++) {
			if (placed[k] & h->ranks.bits[k])
				return spec_refuse(p, "host \"%s\" holds a rank of another host",
						   name);
			placed[k] |= h->ranks.bits[k];
		}
		n_placed += h->ranks.n;
	}
	if (n_placed != s->world)
		return spec_refuse(p, "hosts holds %u of %u ranks; name a host for each", n_placed,
				   s->world);
	return true;
}

static bool get_clocks(struct parser *p, const json_t *v)
{
	struct spec *s = p->spec;
	const char *key;
	json_t *pair;

	if (v && !json_is_object(v))
		return spec_refuse(p, "clock is an object: rank to [offset_us, drift_ppm], or with "
				      "[…, set_ms, set_by_us] behind");
	s->clocks = spec_alloc(p, json_object_size(v), sizeof *s->clocks);
	if (!s->clocks)
		return false;
	json_object_foreach((json_t *)v, key, pair) {
		struct spec_clock c = { 0 };
		size_t n = json_array_size(pair);
		const char *end = read_rank(key, &c.rank);

		if (!end || *end || c.rank >= s->world)
			return spec_refuse(p, "clock \"%.60s\" is not a rank of this world", key);
		for (uint32_t i = 0; i < s->n_clocks; i++)
			if (s->clocks[i].rank == c.rank)
				return spec_refuse(p, "clock names rank %u twice", c.rank);
		if (!json_is_array(pair) || (n != 2 && n != 4))
			return spec_refuse(p, "clock of rank %u is [offset_us, drift_ppm] or "
					      "[offset_us, drift_ppm, set_ms, set_by_us]", c.rank);
		if (!spec_get_real(p, json_array_get(pair, 0), "an offset in us",
				   -SPEC_MAX_OFFSET_US, SPEC_MAX_OFFSET_US, &c.offset_us) ||
		    !spec_get_real(p, json_array_get(pair, 1), "a drift in ppm",
				   -SPEC_MAX_DRIFT_PPM, SPEC_MAX_DRIFT_PPM, &c.drift_ppm))
			return false;
		if (n == 4 &&
		    (!spec_get_ms(p, json_array_get(pair, 2), "set_ms", &c.set_ms) ||
		     !spec_get_real(p, json_array_get(pair, 3), "what a clock is set by in us",
				    -SPEC_MAX_OFFSET_US, SPEC_MAX_OFFSET_US, &c.set_by_us)))
			return false;
		s->clocks[s->n_clocks++] = c;
	}
	return true;
}

static void note_strange_keys(struct spec *s, const json_t *root)
{
	static const char *const keys[] = { "id",    "world", "pg",	"prog",	  "clock",
					    "wd_ms", "hosts", "probes", "expect" };
	const char *key;
	json_t *v;

	json_object_foreach((json_t *)root, key, v) {
		bool known = false;

		for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
			known |= strcmp(key, keys[i]) == 0;
		if (!known && !s->remark[0])
			snprintf(s->remark, sizeof s->remark,
				 "the key \"%.60s\" has no meaning here and is passed over", key);
	}
}

static bool get_spec(struct parser *p, const json_t *root)
{
	const json_t *watchdog = json_object_get(root, "wd_ms");
	const json_t *probes = json_object_get(root, "probes");
	const json_t *id = json_object_get(root, "id");
	struct spec *s = p->spec;
	uint64_t world;

	if (!json_is_object(root))
		return spec_refuse(p, "a case is a JSON object");
	s->id = "case";
	if (id && !spec_get_name(p, id, "id", FRAME_MAX_ID, &s->id))
		return false;
	if (!spec_get_whole(p, json_object_get(root, "world"), "world", 1, SPEC_MAX_WORLD, &world))
		return false;
	s->world = (uint32_t)world;
	if (watchdog && !spec_get_ms(p, watchdog, "wd_ms", &s->watchdog_ms))
		return false;
	if (probes && !json_is_boolean(probes) && !json_is_number(probes))
		return spec_refuse(p, "probes is 0 or 1");
	s->probes = json_is_true(probes) || (json_is_number(probes) && json_number_value(probes) != 0);
	note_strange_keys(s, root);
	return get_groups(p, json_object_get(root, "pg")) && index_names(p) &&
	       get_hosts(p, json_object_get(root, "hosts")) &&
	       get_clocks(p, json_object_get(root, "clock")) &&
	       spec_get_progs(p);
}

/* ---- before it is parsed ---- */

/* How deep and how much? The JSON parser would believe anything. */
static bool is_modest(const char *text, size_t n)
{
	size_t n_values = 0;
	unsigned depth = 0;

	for (size_t i = 0; i < n; i++) {
		switch (text[i]) {
		case '"':
			for (i++; i < n && text[i] != '"'; i++)
				i += text[i] == '\\';
			break;
		case '[':
		case '{':
			n_values++;
			if (++depth > SPEC_MAX_DEPTH)
				return false;
			break;
		case ']':
		case '}':
			depth -= depth > 0;
			break;
		case ',':
			n_values++;
			break;
		default:
			break;
		}
	}
	return n_values <= SPEC_MAX_VALUES;
}

int spec_parse(struct spec **ret, const char *text, size_t n_bytes, char *why, size_t n_why)
{
	struct parser p = { .why = why, .n_why = n_why, .text = text, .n_text = n_bytes };
	json_error_t e;
	bool fine;

	if (n_bytes > SPEC_MAX_BYTES || !is_modest(text, n_bytes)) {
		spec_refuse(&p, "it is larger than %u bytes, deeper than %d or has more than %d "
				"values: no case needs that",
			    SPEC_MAX_BYTES, SPEC_MAX_DEPTH, SPEC_MAX_VALUES);
		return SPEC_REFUSED;
	}
	p.spec = calloc(1, sizeof *p.spec);
	if (!p.spec)
		return -ENOMEM;
	p.spec->json = json_loadb(text, n_bytes, 0, &e);
	if (!p.spec->json) {
		bool no_memory = e.text[0] == '\0'; /* it does not always say so */

		spec_refuse(&p, "line %d, column %d: %s", e.line, e.column, e.text);
		spec_free(p.spec);
		return no_memory ? -ENOMEM : SPEC_REFUSED;
	}
	fine = get_spec(&p, p.spec->json);
	json_decref(p.groups);
	json_decref(p.streams);
	json_decref(p.progs);
	if (fine) {
		*ret = p.spec;
		return SPEC_OK;
	}
	spec_free(p.spec);
	return p.no_memory ? -ENOMEM : SPEC_REFUSED;
}

void spec_free(struct spec *s)
{
	if (!s)
		return;
	for (uint32_t i = 0; i < s->n_groups; i++)
		free(s->groups[i].ranks.bits);
	for (uint32_t i = 0; i < s->n_hosts; i++)
		free(s->hosts[i].ranks.bits);
	for (uint32_t i = 0; i < s->n_progs; i++) {
		free(s->progs[i].ranks.bits);
		spec_free_ops(&s->progs[i].ops);
	}
	free(s->groups);
	free(s->hosts);
	free(s->progs);
	free(s->clocks);
	json_decref(s->json);
	json_decref(s->json_progs);
	free(s);
}
