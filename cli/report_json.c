#include "report_json.h"
#include "cli.h"
#include "report_flight.h"
#include "report_memory.h"
#include "report_profile.h"
#include "report_pipeline.h"
#include "report_nccl.h"
#include "rows.h"

#include <stdlib.h>
#include <string.h>

#include "sql.h"

#define REPORT_SCHEMA 1

/* Every verdict has every key of the contract, also those its rule did not fill. */
static void complete_culprits(json_t *verdicts)
{
	static const char *const keys[] = {"ranks", "host",   "group",	"link",	   "call",  "step",
					   "stage", "bucket", "module", "setting", "detail"};
	size_t i;
	json_t *v;

	json_array_foreach(verdicts, i, v)
	{
		json_t *culprit = json_object_get(v, "culprit");

		if (!json_is_object(culprit)) {
			culprit = json_object();
			json_object_set_new(v, "culprit", culprit);
		}
		for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
			if (json_object_get(culprit, keys[k]))
				continue;
			json_object_set_new(culprit, keys[k], k == 0 ? json_array() : json_null());
		}
	}
}

static bool set(json_t *report, const char *key, json_t *value)
{
	return value && json_object_set_new(report, key, value) == 0;
}

static bool set_coverage(json_t *report, struct db *d)
{
	json_t *v = rows_one(d, sql_report_coverage);

	return v && set(v, "inputs", rows_all(d, sql_report_inputs)) && set(report, "coverage", v);
}

static bool set_clock(json_t *report, struct db *d)
{
	json_t *hosts = rows_all(d, sql_report_clock), *own = rows_one(d, sql_report_clock_method);
	const char *method = json_string_value(json_object_get(own, "method"));
	bool ok = hosts && own;

	if (ok)
		ok = set(report, "clock",
			 json_pack("{s:s, s:s, s:s, s:O}", "method",
				   method ? method
					  : "least delay of each direction, followed by a filter; hard bound "
					    "from causality and rate",
				   "reference", method ? "the trace's reference host" : "collector", "sign",
				   "reference = local + offset", "hosts", hosts));
	json_decref(hosts);
	json_decref(own);
	return ok;
}

/* Rows of one scope, the worst first; what the row says of itself more than once goes. */
static bool set_parts(json_t *what_if, const char *key, const json_t *rows, const char *scope)
{
	json_t *list = json_array(), *row;
	size_t i;

	json_array_foreach(rows, i, row)
	{
		if (strcmp(json_string_value(json_object_get(row, "scope")), scope) != 0)
			continue;
		row = json_copy(row);
		json_object_del(row, "scope");
		json_object_del(row, "steps");
		json_object_del(row, "step_ns");
		json_object_del(row, "method");
		if (strcmp(scope, "rank") == 0 || strcmp(scope, "stage") == 0)
			json_object_del(row, "name");
		if (strcmp(scope, "rank") != 0)
			json_object_del(row, "rank");
		if (strcmp(scope, "stage") != 0)
			json_object_del(row, "stage");
		json_array_append_new(list, row);
	}
	return set(what_if, key, list);
}

static bool set_what_if(json_t *report, struct db *d)
{
	json_t *rows = rows_all(d, sql_report_what_if), *v = json_object(), *row;
	static const char *const keys[] = {"slowdown", "step_ns", "without_ns", "error_ns", "steps", "method"};
	bool ok = rows && v;
	size_t i;

	for (i = 0; ok && i < sizeof keys / sizeof *keys; i++)
		ok = set(v, keys[i], json_null());
	json_array_foreach(rows, i, row)
		for (size_t k = 0; ok && k < sizeof keys / sizeof *keys; k++)
			if (strcmp(json_string_value(json_object_get(row, "scope")), "job") == 0)
				ok = json_object_set(v, keys[k], json_object_get(row, keys[k])) == 0;
	ok = ok && set_parts(v, "by_rank", rows, "rank") && set_parts(v, "by_stage", rows, "stage") &&
	     set_parts(v, "by_replica", rows, "replica") && set_parts(v, "by_kind", rows, "kind") &&
	     set_parts(v, "worst_ranks", rows, "worst ranks") &&
	     set_parts(v, "last_stage", rows, "last stage") && json_object_set(report, "what_if", v) == 0;
	json_decref(v);
	json_decref(rows);
	return ok;
}

static bool set_steps(json_t *report, struct db *d)
{
	json_t *v = rows_one(d, sql_report_steps);

	return v && set(v, "breakdown", rows_one(d, sql_report_breakdown)) && set(report, "steps", v);
}

static bool set_collectives(json_t *report, struct db *d)
{
	json_t *v = rows_one(d, sql_report_collectives);

	return v && set(v, "last_arrival", rows_all(d, sql_report_last_arrival)) &&
	       set(v, "arrivals", rows_all(d, sql_report_arrivals)) &&
	       set(v, "classes", rows_all(d, sql_report_comm_classes)) &&
	       set(report, "collectives", v);
}

static bool set_blame(json_t *report, struct db *d)
{
	json_t *v = rows_one(d, sql_report_blame_total);

	return v && set(v, "top", rows_all(d, sql_report_blame_top)) &&
	       set(v, "by", rows_all(d, sql_report_blame)) && set(report, "blame", v);
}

static bool set_verdicts(json_t *report, struct db *d)
{
	json_t *v = rows_all(d, sql_report_verdicts);

	if (v)
		complete_culprits(v);
	return set(report, "verdicts", v);
}

json_t *report_build(struct db *d)
{
	json_t *report = json_pack("{s:i}", "schema", REPORT_SCHEMA);
	bool ok;

	/* One read transaction: what a running collector commits meanwhile waits. */
	sqlite3_exec(d->handle, "BEGIN", NULL, NULL, NULL);
	ok = report && set(report, "run", rows_one(d, sql_report_run)) && set_coverage(report, d) &&
	     set_clock(report, d) && set_steps(report, d) &&
	     set(report, "ranks", rows_all(d, sql_report_ranks)) && set_collectives(report, d) &&
	     set_blame(report, d) &&
	     set_what_if(report, d) && set(report, "profile", report_profile(d)) &&
	     set(report, "pipeline", report_pipeline(d)) &&
	     set(report, "execution_traces", report_execution_traces(d)) &&
	     set(report, "nccl", report_nccl_build(d)) &&
	     set(report, "flight", report_flight(d)) &&
	     set(report, "memory", report_memory(d)) &&
	     set_verdicts(report, d) &&
	     set(report, "overhead",
		 json_pack("{s:n, s:n, s:n, s:s}", "slowdown", "lo", "hi", "method",
			   "not measured in this run"));
	sqlite3_exec(d->handle, "COMMIT", NULL, NULL, NULL);
	if (ok)
		return report;
	if (!d->why[0])
		snprintf(d->why, sizeof d->why, "out of memory");
	json_decref(report);
	return NULL;
}

static bool is(const json_t *v, const char *key, const char *text)
{
	const char *s = json_string_value(json_object_get(v, key));

	return s && strcmp(s, text) == 0;
}

static int64_t number(const json_t *v, const char *key)
{
	return json_integer_value(json_object_get(v, key));
}

/* Where most of the gradient sync is hidden (NCCL without its plug-in), the rank
 * that computes and those that wait for it look alike: silence proves nothing. */
bool report_is_blind(const json_t *report)
{
	const json_t *coverage = json_object_get(report, "coverage");

	return 2 * number(coverage, "buckets_unseen") > number(coverage, "buckets");
}

int report_exit(const json_t *report)
{
	const json_t *coverage = json_object_get(report, "coverage");
	bool found = false, too_close = false, missing;
	json_t *v;
	size_t i;

	missing = number(coverage, "ranks_seen") < number(coverage, "ranks_expected") ||
		  number(coverage, "ranks_seen") == 0 || number(coverage, "ranks_open") > 0 ||
		  number(coverage, "events_lost") > 0 || number(coverage, "events_late") > 0 ||
		  number(coverage, "texts_lost") > 0 || report_is_blind(report);
	json_array_foreach(json_object_get(report, "verdicts"), i, v)
	{
		if (is(v, "severity", "notice"))
			continue;
		found = found || is(v, "confidence", "certain") || is(v, "confidence", "likely");
		too_close = too_close || is(v, "confidence", "too_close");
		missing = missing || is(v, "confidence", "insufficient");
	}
	if (found)
		return EXIT_FINDING;
	if (too_close)
		return EXIT_TOO_CLOSE;
	return missing ? EXIT_INCOMPLETE : EXIT_FINE;
}
