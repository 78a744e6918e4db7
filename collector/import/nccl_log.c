#include "nccl_log.h"
#include "lines.h"

#include <ctype.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Room for one more, zeroed; NULL without memory or beyond the limit. */
static void *more(struct nccl_log *l, void *v, uint32_t *n, uint32_t *n_alloc, size_t size)
{
	if (*n >= NCCL_LOG_MAX) {
		l->n_left_out++;
		return NULL;
	}
	if (*n == *n_alloc) {
		uint32_t want = *n_alloc ? 2 * *n_alloc : 64;
		void *grown = realloc(*(void **)v, want * size);

		if (!grown) {
			l->trace->no_memory = true;
			return NULL;
		}
		*(void **)v = grown;
		*n_alloc = want;
	}
	return memset(*(char **)v + size * (*n)++, 0, size);
}

/* ---- who ---- */

static uint32_t find(struct nccl_log *l, json_t *ids, const char *id, uint32_t n)
{
	const json_t *known = json_object_get(ids, id);

	if (known)
		return (uint32_t)json_integer_value(known);
	if (n < NCCL_LOG_MAX && json_object_set_new(ids, id, json_integer(n)) != 0)
		l->trace->no_memory = true;
	return n;
}

static struct nccl_worker *find_worker(struct nccl_log *l, const char *host, int64_t pid, int64_t tid, int64_t device)
{
	char id[160];
	struct nccl_worker *w;
	struct nccl_process *p;
	uint32_t i, process;

	snprintf(id, sizeof id, "%s %lld %lld", host, (long long)pid, (long long)device);
	process = find(l, l->process_ids, id, l->n_processes);
	if (process == l->n_processes) {
		p = more(l, &l->processes, &l->n_processes, &l->n_processes_alloc, sizeof *p);
		if (!p)
			return NULL;
		snprintf(p->host, sizeof p->host, "%s", host);
		p->pid = pid;
		p->device = device;
	}
	snprintf(id, sizeof id, "%s %lld %lld %lld", host, (long long)pid, (long long)tid, (long long)device);
	i = find(l, l->worker_ids, id, l->n_workers);
	if (i < l->n_workers)
		return &l->workers[i];
	w = more(l, &l->workers, &l->n_workers, &l->n_workers_alloc, sizeof *w);
	if (!w)
		return NULL;
	snprintf(w->host, sizeof w->host, "%s", host);
	w->pid = pid;
	w->tid = tid;
	w->device = device;
	w->process = process;
	return w;
}

struct nccl_comm *nccl_log_find(struct nccl_log *l, const struct nccl_worker *w, const char *pointer)
{
	for (uint32_t i = l->processes[w->process].last_comm; i; i = l->comms[i - 1].before)
		if (strcmp(l->comms[i - 1].pointer, pointer) == 0)
			return &l->comms[i - 1];
	return NULL;
}

struct nccl_comm *nccl_log_add(struct nccl_log *l, const struct nccl_worker *w, const char *pointer)
{
	struct nccl_process *p = &l->processes[w->process];
	struct nccl_comm *c;

	if (p->n_comms >= NCCL_LOG_MAX_COMMS) {
		l->n_left_out++;
		return NULL;
	}
	c = more(l, &l->comms, &l->n_comms, &l->n_comms_alloc, sizeof *c);
	if (!c)
		return NULL;
	*c = (struct nccl_comm){ .process = w->process, .rank = -1, .n_ranks = -1, .device = TRACE_NULL,
				 .nvml = TRACE_NULL, .n_nodes = TRACE_NULL, .n_channels = TRACE_NULL,
				 .before = p->last_comm };
	snprintf(c->pointer, sizeof c->pointer, "%s", pointer);
	p->n_comms++;
	p->last_comm = l->n_comms;
	return c;
}

/* ---- what ---- */

struct nccl_fact *nccl_log_fact(struct nccl_log *l, struct nccl_worker *w, enum nccl_fact_kind kind)
{
	struct nccl_fact *f = more(l, &l->facts, &l->n_facts, &l->n_facts_alloc, sizeof *f);

	if (!f)
		return NULL;
	/* Rings and trees are told while it is set up: of one that is complete they are not. */
	if (kind != NCCL_EDGE && w->comm && l->comms[w->comm - 1].complete)
		w->comm = 0;
	f->kind = (uint8_t)kind;
	f->worker = (uint32_t)(w - l->workers);
	f->comm = w->comm;
	if (!w->comm) {
		f->next = w->pending;
		w->pending = l->n_facts;
	}
	return f;
}

struct nccl_call *nccl_log_call(struct nccl_log *l)
{
	return more(l, &l->calls, &l->n_calls, &l->n_calls_alloc, sizeof *l->calls);
}

void nccl_log_line(struct nccl_log *l, const struct nccl_worker *w, const char *at, const char *kind,
		   const char *key, const char *text)
{
	char copy[400];

	snprintf(copy, sizeof copy, "%.399s", text);
	(void)trace_row(l->trace, "nccl_line", "tiitttt", w ? w->host : NULL, w ? w->pid : TRACE_NULL,
			w ? w->device : TRACE_NULL, at[0] ? at : NULL, kind, key, copy);
}

/* ---- a line ---- */

struct prefix {
	const char *begin; /* of it in the line */
	const char *host;
	size_t n_host;
	int64_t pid, tid, device;
	char at[40];
	bool known;
};

/* The word that ends before end, and where it begins. */
static const char *word_before(const char *line, const char **end)
{
	const char *at;

	while (*end > line && (*end)[-1] == ' ')
		--*end;
	for (at = *end; at > line && at[-1] != ' ';)
		at--;
	return at;
}

static bool digits(const char *from, const char *to, int64_t *ret)
{
	*ret = 0;
	if (from == to || to - from > 10)
		return false;
	for (; from < to; from++) {
		if (!isdigit((unsigned char)*from))
			return false;
		*ret = *ret * 10 + (*from - '0');
	}
	return true;
}

/* HOST:PID:TID */
static bool is_process(const char *from, const char *to, struct prefix *p)
{
	const char *second = to, *first;

	while (second > from && second[-1] != ':')
		second--;
	first = second > from ? second - 1 : from;
	while (first > from && first[-1] != ':')
		first--;
	if (first == from || !digits(second, to, &p->tid) || !digits(first, second - 1, &p->pid) ||
	    first - 1 == from)
		return false;
	p->host = from;
	p->n_host = (size_t)(first - 1 - from);
	return true;
}

/* "[2025-03-01 10:11:12] " before it */
static void find_time(const char *line, struct prefix *p)
{
	const char *end = p->begin, *open;

	while (end > line && end[-1] == ' ')
		end--;
	if (end == line || end[-1] != ']')
		return;
	for (open = end - 1; open > line && *open != '[' && end - open < 40;)
		open--;
	if (*open == '[' && memchr(open, ':', (size_t)(end - open)))
		snprintf(p->at, sizeof p->at, "%.*s", (int)(end - open - 2), open + 1);
}

/* "[TIME] HOST:PID:TID [DEVICE] FILE:LINE " before "NCCL INFO": what is there of it. */
static void read_prefix(const char *line, const char *level, struct prefix *ret)
{
	const char *end = level, *from;
	int64_t device = -1, ignored;

	*ret = (struct prefix){ .begin = level, .device = -1 };
	for (int words = 0; words < 3 && end > line; words++) {
		from = word_before(line, &end);
		if (*from == '[' && end[-1] == ']' && digits(from + 1, end - 1, &ignored)) {
			device = ignored;
		} else if (is_process(from, end, ret)) {
			ret->begin = from;
			ret->device = device;
			ret->known = true;
			find_time(line, ret);
			return;
		} else if (!memchr(from, ':', (size_t)(end - from))) {
			return; /* no file either */
		}
		end = from;
	}
}

/* The next "NCCL INFO ", "NCCL WARN ", …: where it begins, and its text. A version stands
 * without a level. */
static const char *find_level(const char *from, const char **ret_text, bool *ret_warning)
{
	static const char *const levels[] = { "INFO ", "WARN ", "TRACE " };

	for (const char *at = from; (at = strstr(at, "NCCL ")); at++)
		for (size_t i = 0; i < sizeof levels / sizeof *levels; i++)
			if ((at == from || at[-1] == ' ') && strncmp(at + 5, levels[i], strlen(levels[i])) == 0) {
				*ret_text = at + 5 + strlen(levels[i]);
				*ret_warning = i == 1;
				return at;
			}
	return NULL;
}

/* NCCL writes plain letters; what else a program mixed in is no part of its words. */
static void make_plain(char *line, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)line[i] >= 0x7f || ((unsigned char)line[i] < ' ' && line[i] != '\t'))
			line[i] = '?';
}

static void read_line(struct nccl_log *l, char *line)
{
	bool warning = false, next_warning = false;
	const char *text, *next_text, *level = find_level(line, &text, &warning);
	struct prefix p, next = { 0 };

	if (!level) {
		if (strncmp(line, "NCCL version ", 13) == 0) {
			l->n_lines++;
			nccl_log_message(l, NULL, "", false, line);
		}
		return;
	}
	read_prefix(line, level, &p);
	for (;;) {
		const char *after = find_level(text, &next_text, &next_warning);
		char host[NCCL_HOST];

		if (after)
			read_prefix(text, after, &next);
		l->n_lines++;
		/* What another line runs into is cut: a number in it may be a part of one. */
		if (after) {
			l->n_cut++;
		} else if (p.known) {
			uint32_t n_workers = l->n_workers;
			struct nccl_worker *w;

			nccl_host(p.host, p.n_host, host);
			w = find_worker(l, host, p.pid, p.tid, p.device);
			if (l->n_workers > n_workers)
				nccl_whole_host(l->trace, p.host, p.n_host);
			if (w)
				nccl_log_message(l, w, p.at, warning, text);
		}
		if (!after)
			return;
		p = next;
		text = next_text;
		warning = next_warning;
	}
}

/* ---- the file ---- */

static void tell(const struct nccl_log *l, const struct lines *lines, char *why, size_t n_why)
{
	const struct {
		uint64_t n;
		const char *what;
	} remarks[] = {
		{ l->n_cut, "are cut by others and not read" },
		{ lines->n_long, "are too long" },
		{ l->n_unplaced, "are of no communicator that it tells of" },
		{ l->n_left_out, "are left out: there are too many" },
	};
	size_t at = 0;

	for (size_t i = 0; i < sizeof remarks / sizeof *remarks; i++)
		if (remarks[i].n > 0 && at < n_why)
			at += (size_t)snprintf(why + at, n_why - at, "%s%llu lines %s",
					       at ? ", " : "ok; of its lines of NCCL: ",
					       (unsigned long long)remarks[i].n, remarks[i].what);
}

static enum import_outcome read_file(struct trace *t, struct trace_input *in, bytes_fn read, void *arg, char *why,
				     size_t n_why)
{
	struct nccl_log l = { .trace = t, .worker_ids = json_object(), .process_ids = json_object() };
	struct lines lines = { 0 };
	uint32_t n_rows = t->n_rows;
	enum import_outcome o = IMPORT_FAILED;
	char *line;
	size_t n;

	t->no_memory |= !l.worker_ids || !l.process_ids || !lines_open(&lines, read, arg);
	while (!t->no_memory && (line = lines_next(&lines, &n))) {
		make_plain(line, n);
		read_line(&l, line);
	}
	if (!t->no_memory && !lines.failed) {
		if (l.n_lines == 0) {
			snprintf(why, n_why, "has no line of NCCL");
			o = IMPORT_UNKNOWN;
		} else if (nccl_log_put(&l)) {
			in->n_events = l.n_lines;
			tell(&l, &lines, why, n_why);
			o = IMPORT_OK;
		}
	}
	if (o != IMPORT_OK)
		trace_forget_rows(t, n_rows);
	lines_close(&lines);
	json_decref(l.worker_ids);
	json_decref(l.process_ids);
	free(l.workers);
	free(l.processes);
	free(l.comms);
	free(l.facts);
	free(l.calls);
	return o;
}

/* A bracket may begin a time or a rank; a list of objects is somebody else's. */
static bool is_log(const struct import_head *h)
{
	const unsigned char *list = memchr(h->bytes, '[', h->n_bytes);
	size_t at = list ? (size_t)(list - h->bytes) + 1 : 0;
	int first = head_first(h);

	while (at < h->n_bytes && isspace(h->bytes[at]))
		at++;
	if (first == '{' || first == '<' || (first == '[' && at < h->n_bytes && h->bytes[at] == '{'))
		return false;
	return head_has(h, "NCCL INFO ") || head_has(h, "NCCL WARN ") || head_has(h, "NCCL version ");
}

/* Joined behind all formats that tell events (nccl_topology_put.c). */
const struct import_format format_nccl_log = { "NCCL log", is_log, read_file, NULL, .apart = true, .last = '\n',
						.lines = true };
