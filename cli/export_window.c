/* export_window.c - which part of a run an export takes.
 *
 * Whatever a person names, the answer is a range of steps and the time that it covers: so
 * a slice is in whole or not at all, and two exports of the same steps say the same.
 */
#include "cli.h"
#include "export_window.h"
#include "rows.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sql.h"

#define NS INT64_C(1000000000)
#define DEFAULT_EVENTS 300000 /* more than that, and only the last steps are taken unasked */
#define LONG_S (INT64_C(1) << 33)

bool export_time(const char *text, struct export_instant *ret)
{
	struct tm tm = {0};
	const char *rest = strptime(text, "%Y-%m-%dT%H:%M:%S", &tm);
	char *end;
	double s;

	if (!rest)
		rest = strptime(text, "%Y-%m-%d %H:%M:%S", &tm);
	ret->set = true;
	ret->of_run = !rest;
	if (rest) {
		int64_t ns = 0, unit = NS;

		if (*rest == '.')
			for (rest++; *rest >= '0' && *rest <= '9'; rest++)
				ns += (*rest - '0') * (unit /= 10);
		if (*rest == 'Z')
			rest++;
		ret->ns = (int64_t)timegm(&tm) * NS + ns;
		return *rest == '\0';
	}
	s = strtod(text, &end);
	if (end == text || *end || !(s >= 0 && s < (double)LONG_S))
		return false;
	ret->ns = (int64_t)(s * 1e9);
	return true;
}

/* One row of a statement whose parameters are named; NULL after it has said why not. */
static json_t *row_of(struct export *e, const char *sql, const char *const names[], const int64_t values[])
{
	sqlite3_stmt *q = NULL;
	json_t *row = NULL;
	int rc = sqlite3_prepare_v2(e->db->handle, sql, -1, &q, NULL);

	for (int i = 0; rc == SQLITE_OK && names[i]; i++)
		rc = sqlite3_bind_int64(q, sqlite3_bind_parameter_index(q, names[i]), values[i]);
	if (rc == SQLITE_OK)
		rc = sqlite3_step(q);
	if (rc == SQLITE_ROW) {
		row = json_object();
		for (int i = 0; i < sqlite3_column_count(q); i++)
			json_object_set_new(row, sqlite3_column_name(q, i),
					    sqlite3_column_type(q, i) == SQLITE_NULL
						    ? json_null()
						    : json_integer(sqlite3_column_int64(q, i)));
	} else {
		cli_say("%s: cannot read the tables: %s", e->db_path, sqlite3_errmsg(e->db->handle));
	}
	sqlite3_finalize(q);
	return row;
}

static int64_t instant_ns(const struct export_instant *t, int64_t started_ns, int64_t otherwise_ns)
{
	return !t->set ? otherwise_ns : t->of_run ? started_ns + t->ns : t->ns;
}

/* ---- the size ---- */

int64_t export_guess_events(const struct export *e)
{
	const struct export_size *s = &e->size;
	int64_t n = s->n_rank_steps + 3 * s->n_arrivals + s->n_findings;

	/* A slice is two events; launches, joins and calls of the host are not written. */
	if (export_has(e, EXPORT_HOST) || export_has(e, EXPORT_KERNELS))
		n += s->n_events / 3;
	if (export_has(e, EXPORT_COUNTERS))
		n += s->n_readings;
	return n;
}

/* What share of the ranks is meant. */
static double ranks_share(struct export *e)
{
	json_t *rows;
	size_t n = 0, n_in = 0, i;
	json_t *row;

	if (e->ranks.n == 0)
		return 1;
	rows = rows_all(e->db, sql_report_export_ranks);
	json_array_foreach(rows, i, row) {
		n++;
		n_in += export_has_rank(&e->ranks, (int32_t)rows_ns(row, "rank"));
	}
	json_decref(rows);
	return n ? (double)n_in / (double)n : 1;
}

static bool measure(struct export *e)
{
	static const char *const names[] = { ":first", ":last", ":from_ns", ":to_ns", NULL };
	const struct export_window *w = &e->window;
	json_t *row = row_of(e, sql_report_export_size, names,
			     (const int64_t[]){ export_first(w), export_last(w), w->from_ns, w->to_ns });
	double share = ranks_share(e);

	if (!row)
		return false;
	e->size = (struct export_size){
		.n_steps = rows_ns(row, "n_steps"),
		.n_rank_steps = (int64_t)((double)rows_ns(row, "n_rank_steps") * share),
		.n_calls = rows_ns(row, "n_calls"),
		.n_arrivals = (int64_t)((double)rows_ns(row, "n_arrivals") * share),
		.n_events = (int64_t)((double)rows_ns(row, "n_events") * share),
		.n_readings = (int64_t)((double)rows_ns(row, "n_readings") * share),
		.n_findings = rows_ns(row, "n_findings"),
	};
	json_decref(row);
	return true;
}

/* ---- the part ---- */

/* Steps first to last, as far as there are any: their time. */
static int take_steps(struct export *e, int64_t first, int64_t last)
{
	static const char *const names[] = { ":first", ":last", NULL };
	struct export_window *w = &e->window;
	json_t *row = row_of(e, sql_report_export_between, names, (const int64_t[]){ first, last });
	int64_t n = row ? rows_ns(row, "n") : 0;

	if (!row)
		return EXIT_UNREACHED;
	if (n > 0) {
		w->first = rows_ns(row, "first");
		w->last = rows_ns(row, "last");
		w->from_ns = rows_ns(row, "from_ns");
		w->to_ns = rows_ns(row, "to_ns");
		w->whole = w->to_the_end = false;
	}
	json_decref(row);
	return n > 0 ? EXIT_FINE : EXIT_INCOMPLETE;
}

static int no_such_steps(const struct export *e, const char *what)
{
	const struct export_window *w = &e->window;

	if (w->first > w->last)
		cli_say("%s has no steps, so there are none %s", e->db_path, what);
	else
		cli_say("%s has steps %" PRId64 " to %" PRId64 ", none %s", e->db_path, w->first, w->last, what);
	return EXIT_UNREACHED;
}

static int take_asked_steps(struct export *e, int64_t first, int64_t last)
{
	char what[80];
	int status = take_steps(e, first, last);

	if (status != EXIT_INCOMPLETE)
		return status;
	snprintf(what, sizeof what, "from %" PRId64 " to %" PRId64, first, last);
	return no_such_steps(e, what);
}

static int take_times(struct export *e, const struct export_asked *a, int64_t started_ns)
{
	static const char *const names[] = { ":from_ns", ":to_ns", NULL };
	struct export_window *w = &e->window;
	int64_t from_ns = instant_ns(&a->since, started_ns, INT64_MIN);
	int64_t to_ns = instant_ns(&a->until, started_ns, INT64_MAX);
	json_t *row = row_of(e, sql_report_export_at, names, (const int64_t[]){ from_ns, to_ns });
	int64_t first = row ? rows_ns(row, "first") : INT64_MIN, last = row ? rows_ns(row, "last") : INT64_MIN;

	json_decref(row);
	if (!row)
		return EXIT_UNREACHED;
	if (first != INT64_MIN)
		return take_steps(e, first, last);
	if (w->first <= w->last)
		return no_such_steps(e, "at that time");
	w->whole = w->to_the_end = false;
	w->from_ns = from_ns > w->from_ns ? from_ns : w->from_ns;
	w->to_ns = to_ns < w->to_ns ? to_ns : w->to_ns;
	if (w->from_ns <= w->to_ns)
		return EXIT_FINE;
	cli_say("%s has nothing at that time", e->db_path);
	return EXIT_UNREACHED;
}

/* Its culprits; of a finding about none, all ranks. */
static bool take_culprits(struct export *e, const json_t *finding)
{
	const json_t *list = json_object_get(json_object_get(finding, "culprit"), "ranks");
	struct export_range *v;
	size_t i, n = 0;
	json_t *rank;

	if (e->ranks.n > 0 || json_array_size(list) == 0)
		return true;
	v = calloc(json_array_size(list), sizeof *v);
	if (!v)
		return false;
	json_array_foreach(list, i, rank) {
		int32_t r = (int32_t)json_integer_value(rank);

		if (json_is_integer(rank) && (n == 0 || r > v[n - 1].hi))
			v[n++] = (struct export_range){ r, r };
	}
	e->ranks.v = v;
	e->ranks.n = n;
	return true;
}

static int take_finding(struct export *e, int64_t id)
{
	json_t *rows = rows_all_of(e->db, sql_report_export_finding, id), *f = json_array_get(rows, 0);
	int64_t first, last;
	int status = EXIT_FINE;

	if (!f) {
		if (rows)
			cli_say("%s has no finding %" PRId64 ". Which there are: syncline sql %s 'SELECT id, sentence FROM "
				"finding'", e->db_path, id, e->db_path);
		else
			cli_say("%s: %s", e->db_path, e->db->why);
		json_decref(rows);
		return EXIT_UNREACHED;
	}
	e->window.finding = id;
	first = rows_ns(f, "first");
	last = rows_ns(f, "last");
	if (first != INT64_MIN) /* with the step before and the one behind, to compare with */
		status = take_asked_steps(e, first > 0 ? first - 1 : 0, last == INT64_MIN ? first + 1 : last + 1);
	if (status == EXIT_FINE && !take_culprits(e, f)) {
		cli_say("there is not enough memory");
		status = EXIT_UNREACHED;
	}
	json_decref(rows);
	return status;
}

/* Everything of a small run, else as many of its last steps as are still pleasant to look at. */
static int take_default(struct export *e)
{
	const struct export_window *w = &e->window;
	int64_t n_events, n_steps = w->last - w->first + 1;

	if (!measure(e))
		return EXIT_UNREACHED;
	n_events = export_guess_events(e);
	if (n_events <= DEFAULT_EVENTS || n_steps <= 1)
		return EXIT_FINE;
	n_steps = (int64_t)((double)n_steps * DEFAULT_EVENTS / (double)n_events);
	return take_steps(e, w->last - (n_steps > 0 ? n_steps - 1 : 0), w->last);
}

static bool take_all(struct export *e, int64_t *ret_started_ns)
{
	static const char *const none[] = { NULL };
	json_t *row = row_of(e, sql_report_export_bounds, none, NULL);
	struct export_window *w = &e->window;

	if (!row)
		return false;
	w->first = rows_ns(row, "first");
	w->last = rows_ns(row, "last");
	if (w->first == INT64_MIN) {
		w->first = 0;
		w->last = -1;
	}
	w->from_ns = rows_ns(row, "from_ns");
	w->to_ns = rows_ns(row, "to_ns");
	w->whole = w->to_the_end = true;
	*ret_started_ns = rows_ns(row, "started_ns");
	json_decref(row);
	return true;
}

static void describe(struct export *e, int64_t first, int64_t last)
{
	struct export_window *w = &e->window;
	size_t n;

	if (w->first > w->last)
		n = (size_t)snprintf(w->what, sizeof w->what, "a run without steps");
	else if (w->first == first && w->last == last)
		n = (size_t)snprintf(w->what, sizeof w->what, "all %" PRId64 " steps", e->size.n_steps);
	else
		n = (size_t)snprintf(w->what, sizeof w->what, "steps %" PRId64 " to %" PRId64 " of %" PRId64 " to %" PRId64,
				     w->first, w->last, first, last);
	if (w->finding && n < sizeof w->what)
		n += (size_t)snprintf(w->what + n, sizeof w->what - n, ", about finding %" PRId64, w->finding);
	if (e->ranks.n > 0 && n < sizeof w->what)
		snprintf(w->what + n, sizeof w->what - n, ", ranks %" PRId32 "%s", e->ranks.v[0].lo,
			 e->ranks.n > 1 || e->ranks.v[0].hi > e->ranks.v[0].lo ? " …" : "");
}

int export_choose(struct export *e, const struct export_asked *a)
{
	int64_t started_ns, first, last, end_ns;
	int status = EXIT_FINE;

	if (!take_all(e, &started_ns))
		return EXIT_UNREACHED;
	first = e->window.first;
	last = e->window.last;
	end_ns = e->window.to_ns;
	if (a->first >= 0 || a->last >= 0)
		status = take_asked_steps(e, a->first >= 0 ? a->first : 0, a->last >= 0 ? a->last : UINT32_MAX);
	else if (a->n_last > 0 && first <= last)
		status = take_asked_steps(e, last - a->n_last + 1, last);
	else if (a->since.set || a->until.set)
		status = take_times(e, a, started_ns);
	else if (a->finding > 0)
		status = take_finding(e, a->finding);
	else if (!a->all)
		status = take_default(e);
	if (status == EXIT_FINE && first <= last && e->window.last == last) {
		e->window.to_the_end = true;
		e->window.to_ns = end_ns > e->window.to_ns ? end_ns : e->window.to_ns;
	}
	if (status == EXIT_FINE && !measure(e))
		status = EXIT_UNREACHED;
	if (status != EXIT_FINE)
		return status;
	if (e->size.n_rank_steps + e->size.n_calls + e->size.n_events == 0) {
		cli_say("%s has no steps, collectives or events there: nothing to export", e->db_path);
		return EXIT_INCOMPLETE;
	}
	describe(e, first, last);
	return EXIT_FINE;
}
