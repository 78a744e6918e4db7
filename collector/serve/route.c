#include "route.h"

#include <arpa/inet.h>
#include <string.h>
#include <strings.h>

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

enum route_outcome url_decode(const char *in, size_t n, bool query, char *out, size_t size,
			      size_t *ret_n)
{
	size_t at = 0;

	for (size_t i = 0; i < n; i++) {
		char c = in[i];

		if (c == '%') {
			int hi = n - i > 2 ? hex_value(in[i + 1]) : -1;
			int lo = n - i > 2 ? hex_value(in[i + 2]) : -1;

			if (hi < 0 || lo < 0 || (hi == 0 && lo == 0))
				return ROUTE_BAD_ESCAPE;
			c = (char)(hi << 4 | lo);
			i += 2;
		} else if (c == '\0') {
			return ROUTE_BAD_ESCAPE;
		} else if (query && c == '+') {
			c = ' ';
		}
		if (at + 1 >= size)
			return ROUTE_TOO_LONG;
		out[at++] = c;
	}
	if (at >= size)
		return ROUTE_TOO_LONG;
	out[at] = '\0';
	*ret_n = at;
	return ROUTE_OK;
}

static bool unreserved(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '-' || c == '.' || c == '_' || c == '~';
}

size_t url_encode(const char *in, size_t n, char *out, size_t size)
{
	static const char digits[] = "0123456789ABCDEF";
	size_t at = 0;

	if (size == 0)
		return 0;
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)in[i];
		size_t need = unreserved(in[i]) ? 1 : 3;

		if (need >= size - at)
			break;
		if (need == 1) {
			out[at++] = in[i];
			continue;
		}
		out[at++] = '%';
		out[at++] = digits[c >> 4];
		out[at++] = digits[c & 15];
	}
	out[at] = '\0';
	return at;
}

/* A piece of the target. */
struct slice {
	const char *at;
	size_t n;
};

static bool slice_is(struct slice s, const char *text)
{
	return strlen(text) == s.n && memcmp(s.at, text, s.n) == 0;
}

/* The text up to the next sep; *rest moves behind it. False at the end. */
static bool next_slice(struct slice *rest, char sep, struct slice *ret)
{
	const char *end;

	if (!rest->at)
		return false;
	end = rest->n ? memchr(rest->at, sep, rest->n) : NULL;
	ret->at = rest->at;
	if (!end) {
		ret->n = rest->n;
		rest->at = NULL;
		rest->n = 0;
		return true;
	}
	ret->n = (size_t)(end - rest->at);
	rest->n -= ret->n + 1;
	rest->at = end + 1;
	return true;
}

/* Digits and nothing else, no larger than max. */
static bool number(struct slice s, uint64_t max, uint64_t *ret)
{
	uint64_t v = 0;

	if (s.n == 0 || s.n > 20)
		return false;
	for (size_t i = 0; i < s.n; i++) {
		unsigned digit = (unsigned)(s.at[i] - '0');

		if (digit > 9 || v > (UINT64_MAX - digit) / 10)
			return false;
		v = v * 10 + digit;
	}
	if (v > max)
		return false;
	*ret = v;
	return true;
}

static bool number_u32(struct slice s, uint32_t max, uint32_t *ret)
{
	uint64_t v;

	if (!number(s, max, &v))
		return false;
	*ret = (uint32_t)v;
	return true;
}

static bool metric_named(struct slice s, enum heat_metric *ret)
{
	for (unsigned m = 0; m < HEAT_N_METRICS; m++) {
		if (slice_is(s, heat_metric_name((enum heat_metric)m))) {
			*ret = (enum heat_metric)m;
			return true;
		}
	}
	return false;
}

static bool baseline_named(struct slice s, enum heat_baseline *ret)
{
	for (unsigned b = 0; b < HEAT_N_BASELINES; b++) {
		if (slice_is(s, heat_baseline_name((enum heat_baseline)b))) {
			*ret = (enum heat_baseline)b;
			return true;
		}
	}
	return false;
}

static bool agg_named(struct slice s, enum heat_agg *ret)
{
	for (unsigned a = 0; a < HEAT_N_AGGS; a++) {
		if (slice_is(s, heat_agg_name((enum heat_agg)a))) {
			*ret = (enum heat_agg)a;
			return true;
		}
	}
	return false;
}

static enum route_outcome bad(struct route_request *r, const char *what)
{
	r->bad = what;
	return ROUTE_BAD_VALUE;
}

enum seen { SEEN_FROM = 1, SEEN_TO = 2, SEEN_ROWS = 4, SEEN_STEP = 8, SEEN_RANK = 16 };

/* One name=value of the query. A name that we do not know is not an error: pages
 * and proxies add their own. An empty value is the same as none. */
static enum route_outcome take_pair(struct slice pair, struct route_request *r, unsigned *seen)
{
	char name_text[32], value_text[64];
	struct slice raw_name = { 0 }, name = { name_text, 0 }, value = { value_text, 0 };
	enum route_outcome o;
	uint32_t rank;

	if (!next_slice(&pair, '=', &raw_name))
		return ROUTE_OK;
	o = url_decode(raw_name.at, raw_name.n, true, name_text, sizeof name_text, &name.n);
	if (o != ROUTE_OK)
		return o == ROUTE_TOO_LONG ? ROUTE_OK : o;
	if (!pair.at || pair.n == 0)
		return ROUTE_OK;
	o = url_decode(pair.at, pair.n, true, value_text, sizeof value_text, &value.n);
	if (o == ROUTE_BAD_ESCAPE)
		return o;
	if (o == ROUTE_TOO_LONG)
		value.n = 0; /* no value of ours is that long: bad where the name is ours */

	if (slice_is(name, "from")) {
		*seen |= SEEN_FROM;
		return number_u32(value, UINT32_MAX - 1, &r->from) ? ROUTE_OK : bad(r, "from");
	}
	if (slice_is(name, "to")) {
		*seen |= SEEN_TO;
		return number_u32(value, UINT32_MAX - 1, &r->to) ? ROUTE_OK : bad(r, "to");
	}
	if (slice_is(name, "rows")) {
		*seen |= SEEN_ROWS;
		return number_u32(value, ROUTE_MAX_ROWS, &r->rows) && r->rows > 0 ? ROUTE_OK
										    : bad(r, "rows");
	}
	if (slice_is(name, "step")) {
		*seen |= SEEN_STEP;
		return number_u32(value, UINT32_MAX - 1, &r->step) ? ROUTE_OK : bad(r, "step");
	}
	if (slice_is(name, "rank")) {
		*seen |= SEEN_RANK;
		if (!number_u32(value, FACT_MAX_RANKS - 1, &rank))
			return bad(r, "rank");
		r->rank = (int32_t)rank;
		return ROUTE_OK;
	}
	if (slice_is(name, "limit"))
		return number_u32(value, ROUTE_MAX_LOGS, &r->limit) ? ROUTE_OK : bad(r, "limit");
	if (slice_is(name, "cursor")) {
		r->has_cursor = true;
		return number(value, INT64_MAX, &r->cursor) ? ROUTE_OK : bad(r, "cursor");
	}
	if (slice_is(name, "rev"))
		return number(value, INT64_MAX, &r->rev) ? ROUTE_OK : bad(r, "rev");
	if (slice_is(name, "metric"))
		return metric_named(value, &r->key.metric) ? ROUTE_OK : bad(r, "metric");
	if (slice_is(name, "baseline"))
		return baseline_named(value, &r->key.baseline) ? ROUTE_OK : bad(r, "baseline");
	if (slice_is(name, "agg"))
		return agg_named(value, &r->key.agg) ? ROUTE_OK : bad(r, "agg");
	return ROUTE_OK;
}

/* {metric}/{baseline}/{agg}/{zs}-{zr}/{x}/{y} */
static enum route_outcome take_tile(struct slice rest, struct route_request *r)
{
	struct slice part, zs;
	uint32_t z;

	r->route = ROUTE_TILE;
	if (!next_slice(&rest, '/', &part) || !metric_named(part, &r->key.metric))
		return bad(r, "metric");
	if (!next_slice(&rest, '/', &part) || !baseline_named(part, &r->key.baseline))
		return bad(r, "baseline");
	if (!next_slice(&rest, '/', &part) || !agg_named(part, &r->key.agg))
		return bad(r, "agg");
	if (!next_slice(&rest, '/', &part) || !next_slice(&part, '-', &zs) || !part.at ||
	    !number_u32(zs, ROUTE_MAX_ZOOM, &z))
		return bad(r, "zs-zr");
	r->key.zs = z;
	if (!number_u32(part, ROUTE_MAX_ZOOM, &z))
		return bad(r, "zs-zr");
	r->key.zr = z;
	/* The first step and rank of the tile must be ones that can exist: nobody
	 * behind us needs to think about overflow. */
	if (!next_slice(&rest, '/', &part) || !number_u32(part, 1u << 24, &r->key.x) ||
	    (uint64_t)r->key.x << (8 + r->key.zs) > UINT32_MAX)
		return bad(r, "x");
	if (!next_slice(&rest, '/', &part) || !number_u32(part, 1u << 24, &r->key.y) ||
	    (uint64_t)r->key.y << (8 + r->key.zr) >= FACT_MAX_RANKS)
		return bad(r, "y");
	return rest.at ? ROUTE_UNKNOWN : ROUTE_OK;
}

static enum route_outcome take_api(struct slice rest, struct route_request *r)
{
	static const struct {
		const char *name;
		enum route route;
	} plain[] = {
		{ "boot", ROUTE_BOOT },	    { "run", ROUTE_RUN },	{ "ranks", ROUTE_RANKS },
		{ "findings", ROUTE_FINDINGS }, { "steps", ROUTE_STEPS }, { "cell", ROUTE_CELL },
		{ "clocks", ROUTE_CLOCKS }, { "clocks/history", ROUTE_CLOCK_HISTORY },
		{ "clocks/steps", ROUTE_CLOCK_STEPS }, { "drops", ROUTE_DROPS }, { "logs", ROUTE_LOGS },
		{ "events", ROUTE_EVENTS }, { "since", ROUTE_SINCE },	{ "login", ROUTE_LOGIN },
		{ "heat/cols", ROUTE_COLS },
	};
	struct slice head;

	for (size_t i = 0; i < sizeof plain / sizeof *plain; i++) {
		if (slice_is(rest, plain[i].name)) {
			r->route = plain[i].route;
			return ROUTE_OK;
		}
	}
	if (!next_slice(&rest, '/', &head) || !rest.at)
		return ROUTE_UNKNOWN;
	if (slice_is(head, "heat"))
		return take_tile(rest, r);
	if (slice_is(head, "step")) {
		r->route = ROUTE_STEP;
		return number_u32(rest, UINT32_MAX - 1, &r->step) ? ROUTE_OK : bad(r, "step");
	}
	return ROUTE_UNKNOWN;
}

static enum route_outcome take_path(struct slice path, struct route_request *r)
{
	enum route_outcome o;
	struct slice p = { r->path, 0 };

	if (path.n == 0 || path.at[0] != '/')
		return ROUTE_UNKNOWN;
	o = url_decode(path.at + 1, path.n - 1, false, r->path, sizeof r->path, &p.n);
	if (o != ROUTE_OK)
		return o == ROUTE_TOO_LONG ? ROUTE_UNKNOWN : o;
	if (p.n >= 7 && memcmp(p.at, "api/v1/", 7) == 0)
		return take_api((struct slice){ p.at + 7, p.n - 7 }, r);
	if (slice_is(p, "healthz"))
		r->route = ROUTE_HEALTHZ;
	else if (slice_is(p, "readyz"))
		r->route = ROUTE_READYZ;
	else if (slice_is(p, "metrics"))
		r->route = ROUTE_METRICS;
	else
		r->route = ROUTE_FILE;
	if (p.n == 0)
		memcpy(r->path, "index.html", sizeof "index.html");
	return ROUTE_OK;
}

static enum route_outcome missing(struct route_request *r, const char *what)
{
	r->bad = what;
	return ROUTE_MISSING;
}

/* What only makes sense together. */
static enum route_outcome check(struct route_request *r, unsigned seen)
{
	if (r->route == ROUTE_CELL) {
		if (!(seen & SEEN_STEP))
			return missing(r, "step");
		return seen & SEEN_RANK ? ROUTE_OK : missing(r, "rank");
	}
	if (r->route == ROUTE_COLS) {
		if (!(seen & SEEN_FROM))
			return missing(r, "from");
		if (!(seen & SEEN_TO))
			return missing(r, "to");
		if (!(seen & SEEN_ROWS))
			return missing(r, "rows");
		if (r->from > r->to || r->to - r->from >= ROUTE_MAX_COLS)
			return bad(r, "to");
		return (r->to - r->from + 1) * r->rows <= ROUTE_MAX_CELLS ? ROUTE_OK : bad(r, "rows");
	}
	if (r->route == ROUTE_STEPS && r->from > r->to)
		return bad(r, "to");
	return ROUTE_OK;
}

enum route_outcome route_parse(const char *uri, size_t n, struct route_request *ret)
{
	struct slice rest = { uri, n }, path, pair;
	enum route_outcome o;
	uint32_t step_of_path;
	unsigned seen = 0;

	*ret = (struct route_request){
		.to = UINT32_MAX, .limit = 200, .key = { .agg = HEAT_MAX, .baseline = HEAT_PEERS },
	};
	if (n > ROUTE_MAX_URI)
		return ROUTE_TOO_LONG;
	if (n == 0 || !next_slice(&rest, '?', &path))
		return ROUTE_UNKNOWN;
	o = take_path(path, ret);
	if (o != ROUTE_OK)
		return o;
	step_of_path = ret->step;
	while (next_slice(&rest, '&', &pair)) {
		struct heat_key of_path = ret->key;

		o = take_pair(pair, ret, &seen);
		if (o != ROUTE_OK)
			return o;
		if (ret->route == ROUTE_TILE)
			ret->key = of_path; /* the path says which tile, not the query */
	}
	if (ret->route == ROUTE_STEP)
		ret->step = step_of_path;
	return check(ret, seen);
}

static bool ip_literal(const char *host)
{
	struct in6_addr any;

	return inet_pton(AF_INET, host, &any) == 1 || inet_pton(AF_INET6, host, &any) == 1;
}

static bool loopback(const char *host)
{
	struct in_addr v4;

	if (strcasecmp(host, "localhost") == 0 || strcmp(host, "::1") == 0)
		return true;
	return inet_pton(AF_INET, host, &v4) == 1 && ntohl(v4.s_addr) >> 24 == 127;
}

bool host_allowed(const char *host, const char *const *hosts, size_t n_hosts, bool any_literal)
{
	const char *end;
	char name[256];
	size_t n;

	if (host[0] == '[') {
		host++;
		end = strchr(host, ']');
		if (!end || (end[1] != '\0' && end[1] != ':'))
			return false;
	} else {
		end = host + strcspn(host, ":");
	}
	n = (size_t)(end - host);
	if (n == 0 || n >= sizeof name)
		return false;
	memcpy(name, host, n);
	name[n] = '\0';

	if (loopback(name) || (any_literal && ip_literal(name)))
		return true;
	for (size_t i = 0; i < n_hosts; i++) {
		if (strcasecmp(name, hosts[i]) == 0)
			return true;
	}
	return false;
}

bool origin_matches(const char *origin, const char *host)
{
	if (strncasecmp(origin, "http://", 7) == 0)
		return strcasecmp(origin + 7, host) == 0;
	if (strncasecmp(origin, "https://", 8) == 0) /* a proxy ends TLS before us */
		return strcasecmp(origin + 8, host) == 0;
	return false;
}

bool token_equal(const char *given, const char *token)
{
	size_t n_given = strlen(given), n_token = strlen(token);
	volatile unsigned char differs = n_given != n_token;

	/* As many rounds as the secret is long, whatever was given; given[0] exists,
	 * if only as the closing NUL. */
	for (size_t i = 0; i < n_token; i++)
		differs |= (unsigned char)(given[i < n_given ? i : n_given] ^ token[i]);
	return differs == 0;
}

bool etag_listed(const char *list, const char *etag)
{
	size_t n = strlen(etag);

	while (*list) {
		list += strspn(list, " \t,");
		if (list[0] == '*')
			return true;
		if (strncmp(list, "W/", 2) == 0)
			list += 2;
		if (strncmp(list, etag, n) == 0 && (list[n] == '\0' || strchr(" \t,", list[n])))
			return true;
		list += strcspn(list, ",");
	}
	return false;
}

bool accepts_gzip(const char *accept)
{
	bool gzip = false, star = false, gzip_named = false;

	while (*accept) {
		size_t n_name, n_all = strcspn(accept, ",");
		const char *q;
		bool zero = false;

		accept += strspn(accept, " \t");
		n_all = strcspn(accept, ",");
		n_name = strcspn(accept, " \t;,");
		q = memchr(accept, ';', n_all);
		if (q) {
			q += 1 + strspn(q + 1, " \t");
			/* q=0, q=0. and q=0.000 refuse; anything else allows. */
			if ((q[0] == 'q' || q[0] == 'Q') && q[1] == '=' && q[2] == '0')
				zero = strspn(q + 2, "0.") == strcspn(q + 2, " \t,;");
		}
		if (n_name == 4 && strncasecmp(accept, "gzip", 4) == 0) {
			gzip_named = true;
			gzip = !zero;
		} else if (n_name == 1 && accept[0] == '*') {
			star = !zero;
		}
		accept += n_all;
		accept += *accept == ',';
	}
	return gzip_named ? gzip : star;
}
