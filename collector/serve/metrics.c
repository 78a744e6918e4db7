/* metrics.c - the catalogue for Prometheus. */
#include "query_internal.h"

#include "sql.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static void label(FILE *out, const char *name, const unsigned char *value)
{
	fprintf(out, "%s=\"", name);
	for (; value && *value; value++) {
		if (*value == '\n')
			fputs("\\n", out);
		else
			fprintf(out, *value == '\\' || *value == '"' ? "\\%c" : "%c", *value);
	}
	fputc('"', out);
}

static void head(FILE *out, const char *name, const char *type, const char *help)
{
	fprintf(out, "# HELP syncline_%s %s\n# TYPE syncline_%s %s\n", name, help, name, type);
}

static void metric(FILE *out, const char *name, const char *type, const char *help, double v)
{
	head(out, name, type, help);
	fprintf(out, "syncline_%s %.17g\n", name, v);
}

/* One line a row: text columns are labels called l1 and l2, then the value. */
static int metric_rows(struct reader *rd, FILE *out, const char *sql, const struct params *p,
		       const char *name, const char *l1, const char *l2, char why[160])
{
	int value_col = l2 ? 2 : 1;
	sqlite3_stmt *q;
	int rc, r = query_start(rd, sql, p, &q, why);

	if (r != 0)
		return r;
	while ((rc = sqlite3_step(q)) == SQLITE_ROW) {
		fprintf(out, "syncline_%s{", name);
		label(out, l1, sqlite3_column_text(q, 0));
		if (l2) {
			fputc(',', out);
			label(out, l2, sqlite3_column_text(q, 1));
		}
		fprintf(out, "} %.17g\n", sqlite3_column_double(q, value_col));
	}
	r = rc == SQLITE_DONE ? 0 : query_fail(rd, rc, why);
	sqlite3_reset(q);
	return r;
}

/* Quantiles of a column that comes sorted; nothing at all without rows. */
static int metric_quantiles(struct reader *rd, FILE *out, const char *sql, const struct params *p,
			    const char *name, const char *help, char why[160])
{
	static const double quantiles[] = { 0.5, 0.9, 0.99, 1 };
	size_t n = 0, n_alloc = 0;
	double *v = NULL;
	sqlite3_stmt *q;
	int rc, r = query_start(rd, sql, p, &q, why);

	if (r != 0)
		return r;
	while ((rc = sqlite3_step(q)) == SQLITE_ROW) {
		if (n == n_alloc) {
			size_t n_more = n_alloc ? 2 * n_alloc : 64;
			double *more = realloc(v, n_more * sizeof *v);

			if (!more) {
				rc = SQLITE_NOMEM;
				break;
			}
			v = more;
			n_alloc = n_more;
		}
		v[n++] = sqlite3_column_double(q, 0);
	}
	r = rc == SQLITE_DONE ? 0 : query_fail(rd, rc, why);
	sqlite3_reset(q);
	if (r == 0 && n > 0) {
		head(out, name, "gauge", help);
		for (size_t i = 0; i < sizeof quantiles / sizeof *quantiles; i++)
			fprintf(out, "syncline_%s{quantile=\"%g\"} %.17g\n", name, quantiles[i],
				v[(size_t)ceil(quantiles[i] * (double)n) - 1]);
	}
	free(v);
	return r;
}

static int metric_steps(struct reader *rd, FILE *out, const struct params *p, char why[160])
{
	sqlite3_stmt *q;
	int r = query_row(rd, sql_serve_metrics_steps, p, &q, why);

	if (r != 0)
		return r;
	head(out, "step_seconds", "histogram", "Time of a step, earliest begin to latest end over ranks.");
	for (int col = 2; col < sqlite3_column_count(q); col++)
		fprintf(out, "syncline_step_seconds_bucket{le=\"%s\"} %" PRId64 "\n",
			sqlite3_column_name(q, col), (int64_t)sqlite3_column_double(q, col));
	fprintf(out, "syncline_step_seconds_bucket{le=\"+Inf\"} %lld\n", sqlite3_column_int64(q, 0));
	fprintf(out, "syncline_step_seconds_sum %.17g\n", sqlite3_column_double(q, 1));
	fprintf(out, "syncline_step_seconds_count %lld\n", sqlite3_column_int64(q, 0));
	sqlite3_reset(q);
	return 0;
}

/* Nothing is printed that is not measured: a missing series is "unknown", a zero
 * would be a claim. */
static int metrics_write(struct reader *rd, FILE *out, const struct query_facts *f,
			 const struct params *p, char why[160])
{
	const struct serve_live *l = &f->live;
	int r;

	head(out, "build_info", "gauge", "Always 1; the version is the label.");
	fprintf(out, "syncline_build_info{version=\"%s\"} 1\n", SYNCLINE_VERSION);
	r = metric_steps(rd, out, p, why);
	if (r == 0)
		r = metric_quantiles(rd, out, sql_serve_metrics_excess, p, "rank_excess_ratio",
				     "Self time over the peers' median - 1, mean of a rank's newest 20 steps.",
				     why);
	if (r == 0) {
		head(out, "worst_rank_excess_ratio", "gauge", "The largest rank_excess_ratio on each host.");
		r = metric_rows(rd, out, sql_serve_metrics_worst, p, "worst_rank_excess_ratio", "host",
				NULL, why);
	}
	if (r == 0) {
		head(out, "findings", "gauge", "Findings so far.");
		r = metric_rows(rd, out, sql_serve_metrics_findings, p, "findings", "kind", "severity",
				why);
	}
	if (r == 0) {
		head(out, "collective_skew_seconds", "gauge",
		     "First to last arrival, largest decided of the newest 20 steps.");
		r = metric_rows(rd, out, sql_serve_metrics_skew, p, "collective_skew_seconds", "comm",
				"op", why);
	}
	if (r == 0) {
		head(out, "drops_total", "counter", "Events and texts that were lost, by place.");
		r = metric_rows(rd, out, sql_serve_metrics_drops, p, "drops_total", "where", NULL, why);
	}
	if (r == 0)
		r = metric_quantiles(rd, out, sql_serve_metrics_clock, p, "clock_error_seconds",
				     "Bound of a host's clock error, over aligned hosts.", why);
	if (r != 0)
		return r;
	head(out, "agents", "gauge", "Agents, by state.");
	fprintf(out, "syncline_agents{state=\"connected\"} %u\nsyncline_agents{state=\"lost\"} %u\n",
		l->n_agents, l->n_agents_lost);
	metric(out, "ranks", "gauge", "Ranks that are alive.", l->n_ranks);
	metric(out, "hosts_unaligned", "gauge", "Hosts whose clock was never aligned.",
	       l->n_hosts_unaligned);
	metric(out, "hosts_by_stream", "gauge",
	       "Hosts whose clock probes do not get through: their clocks go by the stream of events.",
	       l->n_hosts_by_stream);
	metric(out, "probes_refused_total", "counter",
	       "Clock probes that were forged, repeated, of no stream of ours, or none at all.",
	       (double)l->n_probes_refused);
	metric(out, "events_total", "counter", "Events received.", (double)l->n_events);
	metric(out, "events_lost_total", "counter", "Events known to be lost.", (double)l->n_events_lost);
	if (isfinite(l->agent_cpu_ratio))
		metric(out, "agent_cpu_ratio", "gauge", "CPU of the agents, mean, 1 = one core.",
		       l->agent_cpu_ratio);
	metric(out, "http_streams", "gauge", "Open server-sent event streams.", (double)f->n_streams);
	return 0;
}

int query_metrics(struct reader *rd, const struct query_facts *f, const struct params *p,
		  char **ret, size_t *ret_n, char why[160])
{
	char *text = NULL;
	size_t n = 0;
	FILE *out = open_memstream(&text, &n);
	int r;

	if (!out)
		return -ENOMEM;
	r = metrics_write(rd, out, f, p, why);
	if (fclose(out) != 0 && r == 0)
		r = -ENOMEM;
	if (r != 0) {
		free(text);
		return r;
	}
	*ret = text;
	*ret_n = n;
	return 0;
}
