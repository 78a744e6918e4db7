/* route.h - which answer does this request line ask for?
 *
 * Pure functions on bytes from strangers: no allocation, no I/O, every number
 * range-checked before anybody multiplies it. What leaves here is safe to use.
 */
#pragma once

#include "../heat.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ROUTE_MAX_URI 8192
#define ROUTE_MAX_PATH 256    /* decoded, of a file of the page */
#define ROUTE_MAX_ZOOM 24
#define ROUTE_MAX_COLS 2048   /* columns in one heat/cols answer */
#define ROUTE_MAX_ROWS 4096
#define ROUTE_MAX_CELLS (1u << 22)
#define ROUTE_MAX_LOGS 1000

enum route {
	ROUTE_FILE, /* of the page */
	ROUTE_BOOT,
	ROUTE_RUN,
	ROUTE_RANKS,
	ROUTE_FINDINGS,
	ROUTE_STEPS,
	ROUTE_STEP,
	ROUTE_TILE,
	ROUTE_COLS,
	ROUTE_CELL,
	ROUTE_CLOCKS,
	ROUTE_CLOCK_HISTORY,
	ROUTE_CLOCK_STEPS,
	ROUTE_DROPS,
	ROUTE_LOGS,
	ROUTE_EVENTS,
	ROUTE_SINCE,
	ROUTE_LOGIN,
	ROUTE_HEALTHZ,
	ROUTE_READYZ,
	ROUTE_METRICS,
};

enum route_outcome {
	ROUTE_OK = 0,
	ROUTE_TOO_LONG,
	ROUTE_BAD_ESCAPE, /* a % that is not %XX, or %00 */
	ROUTE_UNKNOWN,    /* nothing is there */
	ROUTE_BAD_VALUE,  /* request.bad names it */
	ROUTE_MISSING,    /* request.bad names what is needed */
};

struct route_request {
	enum route route;
	char path[ROUTE_MAX_PATH]; /* FILE: "assets/x.js"; "/" is "index.html" */
	uint32_t step;             /* STEP, CELL */
	int32_t rank;              /* CELL */
	struct heat_key key;       /* TILE; COLS: metric, baseline, agg */
	uint32_t from, to, rows;   /* STEPS, COLS; to UINT32_MAX = newest */
	uint32_t limit;            /* LOGS */
	uint64_t cursor;           /* EVENTS, SINCE */
	bool has_cursor;
	uint64_t rev; /* of the picture the page believes in; 0 = none given */
	const char *bad;
};

/* uri is the request target as it came: path, maybe ? and a query. */
enum route_outcome route_parse(const char *uri, size_t n, struct route_request *ret);

/* %XX (and + when in a query) to bytes. Never longer than its input; out gets a
 * closing NUL that *ret_n does not count, so size n + 1 always suffices. */
enum route_outcome url_decode(const char *in, size_t n, bool query, char *out, size_t size,
			      size_t *ret_n);
/* Everything but letters, digits and -._~ as %XX; cut at a whole character when
 * out is too small. Returns what it wrote, without the NUL. */
size_t url_encode(const char *in, size_t n, char *out, size_t size);

/* Does this Host header's value (with or without a port) name us? hosts are the
 * names that may be used besides loopback's. any_literal: every IP address will
 * do (we listen on all; a rebinding attack needs a name). */
bool host_allowed(const char *host, const char *const *hosts, size_t n_hosts, bool any_literal);
/* Is Origin the page that this Host serves? */
bool origin_matches(const char *origin, const char *host);

/* Same length and bytes, in time that does not depend on where they differ. */
bool token_equal(const char *given, const char *token);

/* Is this entity tag (quotes included) in an If-None-Match list? */
bool etag_listed(const char *list, const char *etag);
/* Does Accept-Encoding allow gzip (named or *, and not q=0)? */
bool accepts_gzip(const char *accept);
