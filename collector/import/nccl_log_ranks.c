/* nccl_log_ranks.c - the ranks of the job that a log tells of, and the records that rules
 * read.
 *
 * A rank of the job is one of the largest communicator: programs begin with one of all
 * ranks. What is said of the start is a rule's matter only while the start is open, or
 * when events of the job are there to be held against it: in a log alone every set-up
 * that was completed looks like one that nothing came after.
 */
#include "nccl_log.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

struct seat { /* a process that is a rank of the job */
	const char *host;
	int64_t pid, device, rank;
	const char *version, *network, *interfaces; /* NULL = not told */
	const struct trace_row *bootstrap;
	int64_t n_cards;
	uint32_t index; /* of the trace's ranks */
	bool complete;
};

struct seats {
	struct trace *t;
	struct seat *v;
	uint32_t n, n_rows;
	json_t *by_process; /* "host pid device" -> index */
	json_t *settings;   /* name -> how many of the seats told it */
};

static void id_of(char out[NCCL_HOST + 48], const char *host, int64_t pid, int64_t device)
{
	snprintf(out, NCCL_HOST + 48, "%s %lld %lld", host, (long long)pid, (long long)device);
}

static struct seat *find_seat(const struct seats *s, const char *host, int64_t pid, int64_t device)
{
	char id[NCCL_HOST + 48];
	const json_t *known;

	id_of(id, host, pid, device);
	known = json_object_get(s->by_process, id);
	return known ? &s->v[json_integer_value(known)] : NULL;
}

static struct seat *seat_of_line(const struct seats *s, const struct trace_row *r)
{
	return find_seat(s, nccl_text(r, LINE_HOST), nccl_int(r, LINE_PID), nccl_int(r, LINE_DEVICE));
}

static int64_t largest(const struct trace *t, uint32_t n_rows)
{
	int64_t n = 0;

	for (uint32_t i = 0; i < n_rows; i++)
		if (strcmp(t->rows[i].table, "nccl_rank") == 0 && nccl_int(&t->rows[i], RANK_RANK) != TRACE_NULL &&
		    nccl_int(&t->rows[i], RANK_N_RANKS) > n)
			n = nccl_int(&t->rows[i], RANK_N_RANKS);
	return n;
}

static bool take(struct seats *s, const struct trace_row *r)
{
	const char *host = nccl_text(r, RANK_HOST), *version = nccl_text(r, RANK_VERSION);
	int64_t pid = nccl_int(r, RANK_PID), device = nccl_int(r, RANK_DEVICE);
	char id[NCCL_HOST + 48];

	if (find_seat(s, host, pid, device))
		return true;
	id_of(id, host, pid, device);
	if (json_object_set_new(s->by_process, id, json_integer(s->n)) != 0)
		return false;
	s->v[s->n++] = (struct seat){ .host = host, .pid = pid, .device = device, .rank = nccl_int(r, RANK_RANK),
				      .version = version[0] ? version : NULL,
				      .complete = nccl_int(r, RANK_COMPLETE) == 1 };
	return true;
}

static bool gather(struct seats *s, int64_t n_ranks)
{
	bool fine = true;

	for (uint32_t i = 0; i < s->n_rows && fine; i++) {
		const struct trace_row *r = &s->t->rows[i];

		if (strcmp(r->table, "nccl_rank") == 0 && nccl_int(r, RANK_N_RANKS) == n_ranks &&
		    nccl_int(r, RANK_RANK) != TRACE_NULL)
			fine = take(s, r);
	}
	return fine;
}

/* Ranks that no other file has brought. Hosts of logs have no known clocks, and no times. */
static bool add_ranks(struct seats *s)
{
	uint32_t *at = calloc(FACT_MAX_RANKS, sizeof *at); /* index + 1, by rank */
	bool fine = at != NULL;

	for (uint32_t i = 0; i < s->t->n_ranks && fine; i++)
		at[s->t->ranks[i].rank] = i + 1;
	for (uint32_t i = 0; i < s->n && fine; i++) {
		struct seat *v = &s->v[i];
		struct trace_rank *r = at[v->rank] ? NULL : trace_add_rank(s->t, (int32_t)v->rank, v->host);

		fine = r || at[v->rank];
		if (r) {
			r->clock = s->t->reference;
			at[v->rank] = s->t->n_ranks;
		}
		v->index = at[v->rank] - 1;
	}
	free(at);
	return fine;
}

/* ---- records ---- */

static bool note(struct seats *s, const struct seat *v, const char *category, json_t *fields)
{
	char *text = fields ? json_dumps(fields, JSON_COMPACT) : NULL;
	bool fine = !fields || (text && trace_note(s->t, &s->t->ranks[v->index], 0, category, text));

	free(text);
	json_decref(fields);
	return fine;
}

static bool note_interface(struct seats *s, const struct seat *v)
{
	char address[64], setting[300];

	snprintf(address, sizeof address, "%.63s", nccl_text(v->bootstrap, LINE_TEXT));
	address[strcspn(address, "<")] = '\0';
	if (v->interfaces)
		snprintf(setting, sizeof setting, "NCCL_SOCKET_IFNAME=%.200s", v->interfaces);
	return note(s, v, "nccl.bootstrap_if",
		    json_pack("{s:s, s:s, s:s*}", "if", nccl_text(v->bootstrap, LINE_KEY), "addr", address, "env",
			      v->interfaces ? setting : NULL));
}

/* A setting that only some read is no difference. */
static bool note_setting(struct seats *s, const struct seat *v, const struct trace_row *r)
{
	const char *name = nccl_text(r, LINE_KEY);

	if (json_integer_value(json_object_get(s->settings, name)) < (json_int_t)s->n)
		return true;
	return note(s, v, "meta.env", json_pack("{s:s}", name, nccl_text(r, LINE_TEXT)));
}

/* What it says last counts. */
static bool take_line(struct seats *s, const struct trace_row *r)
{
	struct seat *v = seat_of_line(s, r);
	const char *kind = nccl_text(r, LINE_KIND), *name = nccl_text(r, LINE_KEY);
	int64_t n;

	if (!v)
		return true;
	if (strcmp(kind, "network") == 0)
		v->network = nccl_text(r, LINE_TEXT);
	else if (strcmp(kind, "bootstrap") == 0)
		v->bootstrap = r;
	if (strcmp(kind, "setting") != 0)
		return true;
	if (strcmp(name, "NCCL_SOCKET_IFNAME") == 0)
		v->interfaces = nccl_text(r, LINE_TEXT);
	n = json_integer_value(json_object_get(s->settings, name));
	return json_object_set_new(s->settings, name, json_integer(n + 1)) == 0;
}

/* The cards of the network that it uses; sockets are no cards of their own. */
static void take_card(struct seats *s, const struct trace_row *r)
{
	struct seat *v = find_seat(s, nccl_text(r, 0), nccl_int(r, 1), nccl_int(r, 2));

	if (v && v->network && strncmp(v->network, "Socket", 6) != 0 && strcmp(v->network, nccl_text(r, 3)) == 0 &&
	    nccl_int(r, 4) + 1 > v->n_cards)
		v->n_cards = nccl_int(r, 4) + 1;
}

static bool note_seat(struct seats *s, const struct seat *v)
{
	return (!v->version || note(s, v, "meta.versions", json_pack("{s:s}", "nccl", v->version))) &&
	       (!v->bootstrap || note_interface(s, v)) &&
	       (!v->network || note(s, v, "nccl.net",
				    json_pack("{s:I, s:s}", "nics", (json_int_t)v->n_cards, "plugin", v->network)));
}

static bool note_all(struct seats *s)
{
	bool fine = true;

	for (uint32_t i = 0; i < s->n_rows && fine; i++)
		if (strcmp(s->t->rows[i].table, "nccl_line") == 0)
			fine = take_line(s, &s->t->rows[i]);
	for (uint32_t i = 0; i < s->n_rows && fine; i++)
		if (strcmp(s->t->rows[i].table, "nccl_nic") == 0)
			take_card(s, &s->t->rows[i]);
	for (uint32_t i = 0; i < s->n && fine; i++)
		fine = note_seat(s, &s->v[i]);
	for (uint32_t i = 0; i < s->n_rows && fine; i++) {
		const struct trace_row *r = &s->t->rows[i];
		const struct seat *v = NULL;

		if (strcmp(r->table, "nccl_line") == 0 && strcmp(nccl_text(r, LINE_KIND), "setting") == 0)
			v = seat_of_line(s, r);
		fine = !v || note_setting(s, v, r);
	}
	return fine;
}

static bool has_events(const struct trace *t)
{
	for (uint32_t i = 0; i < t->n_ranks; i++)
		if (trace_has_events(&t->ranks[i]))
			return true;
	return false;
}

bool nccl_log_ranks(struct trace *t, uint32_t n_rows)
{
	struct seats s = { .t = t, .n_rows = n_rows, .by_process = json_object(), .settings = json_object() };
	int64_t n_ranks = largest(t, n_rows);
	bool fine = s.by_process && s.settings, told = has_events(t), open = false;

	s.v = calloc((size_t)n_rows + 1, sizeof *s.v);
	fine = fine && s.v && gather(&s, n_ranks) && add_ranks(&s);
	for (uint32_t i = 0; i < s.n; i++)
		open |= !s.v[i].complete;
	if (n_ranks > t->world_size)
		t->world_size = (int32_t)n_ranks;
	if (!t->clock_method)
		t->clock_method = "a log: no times";
	if (fine && (told || open))
		fine = note_all(&s);
	free(s.v);
	json_decref(s.by_process);
	json_decref(s.settings);
	t->no_memory |= !fine;
	return fine;
}
