/* clocks_hindsight.c - the clocks of a run as they look when all of it is known.
 *
 * The estimates in the catalogue are those of the moment. From the stored
 * exchanges the same estimator goes forward and back again, which halves its
 * errors and finds steps where they were.
 */
#include "clocks.h"
#include "rows.h"

#include "../collector/align/hindsight.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sql.h"

#define MAX_SAMPLES (1u << 24) /* a host: 97 days at two a second */
#define MAX_POINTS 60

struct samples {
	struct beam_sample *v;
	size_t n, n_alloc;
};

static bool push(struct samples *s, const struct beam_sample *v)
{
	if (s->n == s->n_alloc) {
		size_t want = s->n_alloc ? 2 * s->n_alloc : 1024;
		struct beam_sample *grown = want <= MAX_SAMPLES ? realloc(s->v, want * sizeof *grown) : NULL;

		if (!grown)
			return false;
		s->v = grown;
		s->n_alloc = want;
	}
	s->v[s->n++] = *v;
	return true;
}

static json_t *whole(double ns)
{
	return isfinite(ns) && fabs(ns) < 9e18 ? json_integer((json_int_t)llround(ns)) : json_null();
}

/* One instant: the offset, its hard bounds and what the noise says. */
static json_t *point(const struct hindsight *h, int64_t host_ns)
{
	struct beam_point p;
	double hi, lo;

	hindsight_place(h, (host_time){ host_ns }, &p);
	hi = p.hi - p.theta;
	lo = p.theta - p.lo;
	return json_pack("{s:I, s:I, s:o, s:o, s:o, s:s}", "host_ns", (json_int_t)host_ns, "offset_ns",
			 (json_int_t)(p.theta0_ns + llround(p.theta)), "error_ns",
			 whole(hi > lo ? hi : lo), "soft_ns", whole(p.soft), "skew_ppb",
			 json_real(round(p.rate * 10) / 10), "status", fleet_status_name(p.status));
}

static json_t *host_object(const char *name, const struct samples *s)
{
	struct hindsight *h = NULL;
	struct hindsight_stats stats;
	json_t *points = json_array();
	int64_t first_ns, last_ns;

	if (s->n == 0 || hindsight_new(&h, NULL, s->v, s->n) < 0) {
		json_decref(points);
		return NULL;
	}
	first_ns = s->v[0].t1_ns;
	last_ns = s->v[s->n - 1].t4_ns;
	for (int i = 0; i < MAX_POINTS && last_ns > first_ns; i++)
		json_array_append_new(points, point(h, first_ns + (last_ns - first_ns) / MAX_POINTS * i +
							       (last_ns - first_ns) / MAX_POINTS / 2));
	hindsight_stats(h, &stats);
	hindsight_free(h);
	return json_pack("{s:s, s:I, s:I, s:o}", "host", name, "n_exchanges", (json_int_t)s->n, "n_steps",
			 (json_int_t)(stats.n_segments > 0 ? stats.n_segments - 1 : 0), "points", points);
}

json_t *clocks_hindsight(struct db *d)
{
	json_t *hosts = json_array();
	struct samples s = { 0 };
	sqlite3_stmt *q = NULL;
	char name[256] = "";
	int rc = sqlite3_prepare_v2(d->handle, sql_report_exchanges, -1, &q, NULL);

	for (;;) {
		const char *next;
		bool row;

		if (rc == SQLITE_OK || rc == SQLITE_ROW)
			rc = sqlite3_step(q);
		row = rc == SQLITE_ROW;
		next = row ? (const char *)sqlite3_column_text(q, 0) : "";
		if (s.n > 0 && (!row || strcmp(name, next) != 0)) {
			json_t *h = host_object(name, &s);

			if (h)
				json_array_append_new(hosts, h);
			s.n = 0;
		}
		if (!row)
			break;
		snprintf(name, sizeof name, "%s", next);
		{
			int64_t t0 = sqlite3_column_int64(q, 1), t1 = sqlite3_column_int64(q, 2);
			int64_t t2 = sqlite3_column_int64(q, 3), t3 = sqlite3_column_int64(q, 4);
			struct beam_sample v;

			/* A stranger's file may hold any numbers. */
			if (__builtin_sub_overflow(t1, t0, &v.f_ns) || __builtin_sub_overflow(t2, t3, &v.g_ns))
				continue;
			v.t1_ns = t0;
			v.t4_ns = t3;
			if (!push(&s, &v))
				break;
		}
	}
	sqlite3_finalize(q);
	free(s.v);
	if (rc == SQLITE_DONE)
		return hosts;
	snprintf(d->why, sizeof d->why, "cannot read the exchanges: %s", sqlite3_errmsg(d->handle));
	json_decref(hosts);
	return NULL;
}
