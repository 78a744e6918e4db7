/* nccl_inspector.c - what NCCL's inspector dumps: one JSON object a line, one file a
 * process, for each call how long this rank was in it.
 *
 * Only verbose dumps say when: then the kernels' begin and end are told as events. A line
 * that cannot be read costs only itself: a process that is killed leaves half of one.
 */
#include "nccl_perf.h"
#include "lines.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_DROPS 1024

struct drop {
	char comm[NCCL_KEY], counter[64];
	int64_t rank, n;
};

struct inspector {
	struct trace *trace;
	char host[NCCL_HOST];
	int64_t pid, n_ranks, rank; /* rank: in the largest communicator, -1 = none */
	uint64_t n_calls, n_kept, n_bad;
	struct drop *drops;
	uint32_t n_drops;
	char version[16];
};

static int64_t whole(const json_t *v)
{
	double x = json_is_real(v) ? json_real_value(v) : NAN;

	if (json_is_integer(v))
		return json_integer_value(v);
	return fabs(x) < 9e18 ? llround(x) : TRACE_NULL;
}

static int64_t whole_at(const json_t *v, const char *key, int64_t highest)
{
	int64_t n = whole(json_object_get(v, key));

	return n >= 0 && n <= highest ? n : TRACE_NULL;
}

static int64_t us_at(const json_t *v, const char *key)
{
	const json_t *x = json_object_get(v, key);

	if (json_is_real(x) && json_real_value(x) >= 0 && json_real_value(x) < 1e15)
		return llround(json_real_value(x) * 1000);
	return json_is_integer(x) && json_integer_value(x) >= 0 && json_integer_value(x) < 4000000000000000 ?
		       json_integer_value(x) * 1000 : TRACE_NULL;
}

static double real_at(const json_t *v, const char *key)
{
	const json_t *x = json_object_get(v, key);

	return json_is_number(x) ? json_number_value(x) : NAN;
}

static const char *text_at(const json_t *v, const char *key)
{
	return json_string_value(json_object_get(v, key));
}

/* Of all its channels: the first begin, the last end. */
static void take_times(struct nccl_perf *p, const json_t *ts)
{
	int64_t stop_ns = us_at(ts, "coll_stop_ts");
	const json_t *kernel;
	size_t i;

	p->enqueue_ns = us_at(ts, "coll_start_ts");
	if (p->enqueue_ns != TRACE_NULL && stop_ns >= p->enqueue_ns)
		p->enqueue_dur_ns = stop_ns - p->enqueue_ns;
	json_array_foreach(json_object_get(ts, "kernel_events"), i, kernel)
	{
		int64_t begin_ns = us_at(kernel, "kernel_start_ts"), end_ns = us_at(kernel, "kernel_stop_ts");

		if (begin_ns == TRACE_NULL || end_ns < begin_ns)
			continue;
		if (p->begin_ns == TRACE_NULL || begin_ns < p->begin_ns)
			p->begin_ns = begin_ns;
		if (end_ns > p->end_ns) /* TRACE_NULL is below all */
			p->end_ns = end_ns;
	}
}

static bool take_call(struct inspector *s, const json_t *header, const json_t *v, bool message)
{
	struct nccl_perf p = NCCL_PERF_NONE;

	s->n_calls++;
	if (s->n_kept == NCCL_PERF_MAX)
		return true;
	p.comm = text_at(header, "id");
	p.host = s->host;
	p.pid = s->pid;
	p.n_ranks = whole_at(header, "n_ranks", NCCL_MAX_RANKS);
	p.rank = whole_at(header, "rank", NCCL_MAX_RANKS - 1);
	p.kind = message ? "p2p" : "coll";
	p.op = text_at(v, message ? "p2p" : "coll");
	p.sn = whole_at(v, message ? "p2p_sn" : "coll_sn", INT64_MAX);
	p.peer = message ? whole_at(v, "p2p_peer", NCCL_MAX_RANKS) : TRACE_NULL;
	p.bytes = whole_at(v, message ? "p2p_msg_size_bytes" : "coll_msg_size_bytes", INT64_MAX);
	p.exec_ns = us_at(v, message ? "p2p_exec_time_us" : "coll_exec_time_us");
	p.timing = text_at(v, message ? "p2p_timing_source" : "coll_timing_source");
	p.algbw_gbs = real_at(v, message ? "p2p_algobw_gbs" : "coll_algobw_gbs");
	p.busbw_gbs = real_at(v, message ? "p2p_busbw_gbs" : "coll_busbw_gbs");
	p.algorithm = text_at(v, "coll_algo");
	p.protocol = text_at(v, "coll_proto");
	if (!p.comm || !p.op || strlen(p.comm) >= NCCL_KEY || strlen(p.op) > 31) {
		s->n_bad++;
		return true;
	}
	if (p.n_ranks > s->n_ranks && p.rank != TRACE_NULL) {
		s->n_ranks = p.n_ranks;
		s->rank = p.rank;
	}
	take_times(&p, json_object_get(v, "event_trace_ts"));
	s->n_kept++;
	return nccl_perf_put(s->trace, &p);
}

/* Counters of what found no room. They grow; the greatest is kept. */
static void take_drops(struct inspector *s, const json_t *header, const json_t *stats)
{
	const char *comm = text_at(header, "id"), *key;
	const json_t *value;

	json_object_foreach((json_t *)stats, key, value)
	{
		int64_t n = whole(value);
		uint32_t i = 0;

		if (n < 0)
			continue;
		while (i < s->n_drops && (strncmp(s->drops[i].counter, key, 63) != 0 ||
					  strncmp(s->drops[i].comm, comm ? comm : "", NCCL_KEY - 1) != 0))
			i++;
		if (i == MAX_DROPS)
			return;
		if (i == s->n_drops) {
			s->drops[s->n_drops++] = (struct drop){ .rank = whole_at(header, "rank", NCCL_MAX_RANKS - 1) };
			snprintf(s->drops[i].counter, sizeof s->drops[i].counter, "%.63s", key);
			snprintf(s->drops[i].comm, sizeof s->drops[i].comm, "%.47s", comm ? comm : "");
		}
		if (n > s->drops[i].n)
			s->drops[i].n = n;
	}
}

static bool put_drops(struct inspector *s)
{
	for (uint32_t i = 0; i < s->n_drops; i++) {
		const struct drop *d = &s->drops[i];

		if (!trace_row(s->trace, "nccl_drop", "tititi", d->comm[0] ? d->comm : NULL, d->rank, s->host, s->pid,
			       d->counter, d->n))
			return false;
	}
	return true;
}

static void take_metadata(struct inspector *s, const json_t *v)
{
	const char *host = text_at(v, "hostname"), *version = text_at(v, "inspector_output_format_version");

	if (host && strncmp(s->host, host, strlen(s->host)) != 0 )
		nccl_whole_host(s->trace, host, strlen(host));
	if (host)
		nccl_host(host, strlen(host), s->host);
	s->pid = whole_at(v, "pid", INT32_MAX);
	if (version && !s->version[0])
		snprintf(s->version, sizeof s->version, "%.15s", version);
}

static bool take_line(struct inspector *s, const char *line, size_t n)
{
	json_t *v = json_loadb(line, n, 0, NULL);
	const json_t *header = json_object_get(v, "header"), *part;
	bool fine = true;

	if (!json_is_object(v)) {
		s->n_bad++;
		json_decref(v);
		return true;
	}
	take_metadata(s, json_object_get(v, "metadata"));
	if ((part = json_object_get(v, "coll_perf")))
		fine = take_call(s, header, part, false);
	if (fine && (part = json_object_get(v, "p2p_perf")))
		fine = take_call(s, header, part, true);
	if ((part = json_object_get(v, "dump_stats")))
		take_drops(s, header, part);
	json_decref(v);
	return fine;
}

static void tell(const struct inspector *s, const struct lines *lines, char *why, size_t n_why)
{
	size_t at = 0;

	if (s->n_bad + lines->n_long > 0)
		at = (size_t)snprintf(why, n_why, "ok; %llu lines are no record, and left out",
				      (unsigned long long)(s->n_bad + lines->n_long));
	if (s->n_calls > s->n_kept + s->n_bad && at < n_why)
		snprintf(why + at, n_why - at, "%s the first %u calls of %llu are kept", at ? ";" : "ok;",
			 NCCL_PERF_MAX, (unsigned long long)s->n_calls);
}

static enum import_outcome read_file(struct trace *t, struct trace_input *in, bytes_fn read, void *arg, char *why,
				     size_t n_why)
{
	struct inspector s = { .trace = t, .pid = TRACE_NULL, .rank = -1, .drops = calloc(MAX_DROPS, sizeof *s.drops) };
	enum import_outcome o = IMPORT_FAILED;
	struct lines lines = { 0 };
	uint32_t n_rows = t->n_rows;
	char *line;
	size_t n;

	t->no_memory |= !s.drops || !lines_open(&lines, read, arg);
	while (!t->no_memory && (line = lines_next(&lines, &n)))
		if (n > strspn(line, " \t"))
			(void)take_line(&s, line, n);
	if (!t->no_memory && !lines.failed) {
		if (s.n_calls == 0 && s.n_drops == 0) {
			snprintf(why, n_why, "has no call of NCCL's inspector");
			o = IMPORT_UNKNOWN;
		} else if (put_drops(&s)) {
			in->n_events = s.n_kept;
			in->rank = s.rank;
			tell(&s, &lines, why, n_why);
			o = IMPORT_OK;
		}
	}
	if (o != IMPORT_OK)
		trace_forget_rows(t, n_rows);
	lines_close(&lines);
	free(s.drops);
	return o;
}

static bool is_inspector(const struct import_head *h)
{
	return head_first(h) == '{' && (head_has(h, "\"inspector_output_format_version\"") ||
					(head_has(h, "\"header\"") && head_has(h, "_perf\"")));
}

const struct import_format format_nccl_inspector = { "NCCL inspector", is_inspector, read_file, nccl_perf_join, .apart = true,
						      .last = '\n' };
