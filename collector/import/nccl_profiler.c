/* nccl_profiler.c - what the example of a profiler plug-in in NCCL's own tree writes: a
 * Chrome trace with an event for each begin and end, one a line.
 *
 * From "b" to "e" of a collective is its enqueue: the host gives it to NCCL and goes on.
 * What ran on the device are the channels' kernels that stand between them. Where there
 * are none, nothing is known of the transfer, and no duration is told.
 * Its JSON is not all JSON: communicators are numbers of 64 bits without a sign, and some
 * releases wrote names and addresses without quotes.
 */
#include "nccl_perf.h"
#include "lines.h"

#include <ctype.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_DIGITS 15 /* of a number that is kept as one */

struct profiler {
	struct trace *trace;
	char host[NCCL_HOST];
	struct nccl_perf call; /* while open */
	char comm[NCCL_KEY], op[32], algorithm[16], protocol[16];
	bool open, has_kernel, kernel_open;
	uint64_t first_gpu_ns, last_gpu_ns; /* 0 = not told */
	bool gpu_is_whole;
	int64_t first_ns, last_ns, kernel_id;
	int64_t rank; /* the highest that it has in any communicator: its rank in the job; -1 */
	uint64_t n_calls, n_kept, n_bad, n_enqueue_only;
};

/* ---- JSON ---- */

static bool is_bare(char c)
{
	return isalnum((unsigned char)c) || strchr("+-._()", c);
}

/* What stands outside of quotes and is no plain word or number of JSON, in quotes. */
static size_t quote(const char *in, size_t n, char *out, size_t n_out)
{
	static const char *const plain[] = { "true", "false", "null" };
	size_t at = 0;
	bool inside = false;

	for (size_t i = 0; i < n;) {
		size_t from = i, len;
		bool number = true, word = false;

		if (at + 4 > n_out)
			return 0;
		if (inside || !is_bare(in[i]) || in[i] == '\0') {
			if (inside && in[i] == '\\' && i + 1 < n)
				out[at++] = in[i++];
			else if (in[i] == '"')
				inside = !inside;
			out[at++] = in[i++];
			continue;
		}
		for (; i < n && in[i] && is_bare(in[i]); i++)
			number &= isdigit((unsigned char)in[i]) || strchr("+-.eE", in[i]);
		len = i - from;
		for (size_t k = 0; k < sizeof plain / sizeof *plain; k++)
			word |= len == strlen(plain[k]) && memcmp(in + from, plain[k], len) == 0;
		number &= len <= MAX_DIGITS || memchr(in + from, '.', len);
		if (at + len + 3 > n_out)
			return 0;
		if (!number && !word)
			out[at++] = '"';
		memcpy(out + at, in + from, len);
		at += len;
		if (!number && !word)
			out[at++] = '"';
	}
	return at;
}

static json_t *parse(const char *line, size_t n)
{
	char buf[4096];
	size_t n_quoted;

	while (n > 0 && strchr("[, \t", *line)) {
		line++;
		n--;
	}
	while (n > 0 && strchr("], \t", line[n - 1]))
		n--;
	n_quoted = n > 0 ? quote(line, n, buf, sizeof buf) : 0;
	return n_quoted ? json_loadb(buf, n_quoted, 0, NULL) : NULL;
}

static const char *text_at(const json_t *v, const char *key)
{
	const char *text = json_string_value(json_object_get(v, key));

	return text ? text : "";
}

static int64_t whole_at(const json_t *v, const char *key, int64_t highest)
{
	const json_t *x = json_object_get(v, key);

	return json_is_integer(x) && json_integer_value(x) >= 0 && json_integer_value(x) <= highest ?
		       json_integer_value(x) : TRACE_NULL;
}

/* Of 64 bits without a sign, as a number or in quotes; 0 = none. */
static uint64_t wide_at(const json_t *v, const char *key)
{
	const json_t *x = json_object_get(v, key);
	const char *text = json_string_value(x);
	char *end;
	uint64_t n;

	if (json_is_integer(x))
		return json_integer_value(x) > 0 ? (uint64_t)json_integer_value(x) : 0;
	if (!text || !isdigit((unsigned char)text[0]) || strlen(text) > 20)
		return 0;
	n = strtoull(text, &end, 10);
	return *end == '\0' ? n : 0;
}

static int64_t ns_of(const json_t *v)
{
	double us = json_is_number(json_object_get(v, "ts")) ? json_number_value(json_object_get(v, "ts")) : -1;

	return us >= 0 && us < 1e15 ? llround(us * 1000) : TRACE_NULL;
}

/* ---- events ---- */

static void begin_call(struct profiler *p, const json_t *v, const json_t *args, bool message)
{
	const char *op = text_at(v, "name");
	int64_t count = whole_at(args, "Count", INT64_MAX);
	unsigned size;

	if (strncmp(op, "nccl", 4) == 0)
		op += 4;
	if (strlen(op) >= sizeof p->op)
		op = "?";
	(void)nccl_dtype(nccl_dtype_number(text_at(args, "Datatype")), &size);
	p->call = NCCL_PERF_NONE;
	snprintf(p->comm, sizeof p->comm, "0x%llx", (unsigned long long)wide_at(args, "CommHash"));
	snprintf(p->op, sizeof p->op, "%s", op);
	snprintf(p->algorithm, sizeof p->algorithm, "%.15s", text_at(args, "Algorithm"));
	snprintf(p->protocol, sizeof p->protocol, "%.15s", text_at(args, "Protocol"));
	p->call.comm = p->comm;
	p->call.op = p->op;
	p->call.host = p->host;
	p->call.algorithm = p->algorithm[0] ? p->algorithm : NULL;
	p->call.protocol = p->protocol[0] ? p->protocol : NULL;
	p->call.kind = message ? "p2p" : "coll";
	p->call.pid = whole_at(v, "pid", INT32_MAX);
	p->call.rank = whole_at(args, "Rank", NCCL_MAX_RANKS - 1);
	if (p->call.rank > p->rank)
		p->rank = p->call.rank;
	p->call.peer = message ? whole_at(args, "Peer", NCCL_MAX_RANKS - 1) : TRACE_NULL;
	p->call.sn = whole_at(args, "SeqNum", INT64_MAX);
	p->call.bytes = count >= 0 && size > 0 && count <= INT64_MAX / size ? count * size : TRACE_NULL;
	p->call.enqueue_ns = ns_of(v);
	p->open = true;
	p->has_kernel = p->kernel_open = false;
	p->first_gpu_ns = p->last_gpu_ns = 0;
	p->gpu_is_whole = true;
	p->first_ns = p->last_ns = TRACE_NULL;
}

/* A channel's kernel: on the GPU's clock, and as the host saw it. */
static void take_kernel(struct profiler *p, const json_t *v, const json_t *args, bool begin)
{
	uint64_t first = wide_at(args, "StartGpuClk"), last = wide_at(args, "StopGpuClk");
	int64_t id = whole_at(v, "id", INT64_MAX), at_ns = ns_of(v);

	if (begin) {
		p->has_kernel = p->kernel_open = true;
		p->kernel_id = id;
		p->gpu_is_whole &= first > 0 && last >= first;
		if (p->first_gpu_ns == 0 || first < p->first_gpu_ns)
			p->first_gpu_ns = first;
		if (last > p->last_gpu_ns)
			p->last_gpu_ns = last;
		if (at_ns != TRACE_NULL && (p->first_ns == TRACE_NULL || at_ns < p->first_ns))
			p->first_ns = at_ns;
	} else if (p->kernel_open && id == p->kernel_id && at_ns > p->last_ns) {
		p->last_ns = at_ns;
	}
}

static bool end_call(struct profiler *p, const json_t *v)
{
	int64_t end_ns = ns_of(v);

	p->open = false;
	p->n_calls++;
	if (p->n_kept == NCCL_PERF_MAX)
		return true;
	if (p->call.enqueue_ns != TRACE_NULL && end_ns >= p->call.enqueue_ns)
		p->call.enqueue_dur_ns = end_ns - p->call.enqueue_ns;
	if (p->has_kernel && p->first_ns != TRACE_NULL && p->last_ns > p->first_ns) {
		p->call.begin_ns = p->first_ns;
		p->call.end_ns = p->last_ns;
		p->call.exec_ns = p->last_ns - p->first_ns;
		p->call.timing = "kernel_cpu";
	}
	if (p->has_kernel && p->gpu_is_whole && p->last_gpu_ns > p->first_gpu_ns &&
	    p->last_gpu_ns - p->first_gpu_ns < UINT64_C(1) << 60) {
		p->call.exec_ns = (int64_t)(p->last_gpu_ns - p->first_gpu_ns);
		p->call.timing = "kernel_gpu";
	}
	p->n_enqueue_only += p->call.exec_ns == TRACE_NULL;
	p->n_kept++;
	return nccl_perf_put(p->trace, &p->call);
}

static bool take_event(struct profiler *p, const json_t *v)
{
	const char *category = text_at(v, "cat"), *phase = text_at(v, "ph");
	const json_t *args = json_object_get(v, "args");
	bool begin = phase[0] == 'b', coll = strcmp(category, "COLL") == 0, message = strcmp(category, "P2P") == 0;

	if (phase[0] != 'b' && phase[0] != 'e')
		return true;
	if ((coll || message) && begin)
		begin_call(p, v, args, message);
	else if ((coll || message) && p->open)
		return end_call(p, v);
	else if (strcmp(category, "GPU") == 0 && p->open)
		take_kernel(p, v, args, begin);
	return true;
}

/* ---- the file ---- */

static void tell(const struct profiler *p, const struct lines *lines, char *why, size_t n_why)
{
	size_t at = 0;

	if (p->n_enqueue_only > 0)
		at = (size_t)snprintf(why, n_why, "ok; of %llu of %llu calls only the enqueue was recorded, not the transfer",
				      (unsigned long long)p->n_enqueue_only, (unsigned long long)p->n_kept);
	if (p->n_bad + lines->n_long > 0 && at < n_why)
		at += (size_t)snprintf(why + at, n_why - at, "%s %llu lines are no event, and left out", at ? ";" : "ok;",
				       (unsigned long long)(p->n_bad + lines->n_long));
	if (p->n_calls > p->n_kept && at < n_why)
		snprintf(why + at, n_why - at, "%s the first %u calls of %llu are kept", at ? ";" : "ok;",
			 NCCL_PERF_MAX, (unsigned long long)p->n_calls);
}

/* Nothing in it names the host: a file is a process of its own. */
static void call_it(const char *path, char out[NCCL_HOST])
{
	const char *slash = strrchr(path, '/');

	snprintf(out, NCCL_HOST, "file %.50s", slash ? slash + 1 : path);
}

static enum import_outcome read_file(struct trace *t, struct trace_input *in, bytes_fn read, void *arg, char *why,
				     size_t n_why)
{
	struct profiler *p = calloc(1, sizeof *p);
	enum import_outcome o = IMPORT_FAILED;
	struct lines lines = { 0 };
	uint32_t n_rows = t->n_rows;
	char *line;
	size_t n;

	t->no_memory |= !p || !lines_open(&lines, read, arg);
	if (p) {
		p->trace = t;
		p->rank = -1;
		call_it(in->path, p->host);
	}
	while (!t->no_memory && (line = lines_next(&lines, &n))) {
		json_t *v;

		if (n == strspn(line, "[]{}, \t"))
			continue;
		v = parse(line, n);
		p->n_bad += !json_is_object(v);
		if (json_is_object(v))
			(void)take_event(p, v);
		json_decref(v);
	}
	if (!t->no_memory && !lines.failed) {
		if (p->n_calls == 0) {
			snprintf(why, n_why, "has no call of a profiler of NCCL");
			o = IMPORT_UNKNOWN;
		} else {
			in->n_events = p->n_kept;
			in->rank = p->rank;
			tell(p, &lines, why, n_why);
			o = IMPORT_OK;
		}
	}
	if (o != IMPORT_OK)
		trace_forget_rows(t, n_rows);
	lines_close(&lines);
	free(p);
	return o;
}

static bool is_profiler(const struct import_head *h)
{
	return head_first(h) == '[' && (head_has(h, "\"cat\": \"GROUP") || head_has(h, "\"cat\": \"COLL") ||
					head_has(h, "\"cat\": \"P2P") || head_has(h, "\"cat\": \"PROXY\"") ||
					head_has(h, "\"CommHash\""));
}

/* Its rows are joined with the inspector's. */
const struct import_format format_nccl_profiler = { "NCCL profiler trace", is_profiler, read_file, NULL, .apart = true,
						      .last = ']' };
