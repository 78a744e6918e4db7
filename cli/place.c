#include "place.h"

#include "interns.h"

#include <stdlib.h>
#include <string.h>

#include "sql.h"

#define N_KNOTS 512 /* arrivals that are kept of a rank, one in each part of the window */
#define MAX_COMMS (1 << 20)

/* host + offset_ns around host_ns. */
struct knot {
	int64_t host_ns, offset_ns;
};

struct place_host {
	uint32_t host;
	bool exact;
	int64_t offset_ns;
	struct knot *v; /* estimates, in order of time; owned */
	size_t n;
};

struct wanted {
	uint32_t comm; /* 0 = none in this part of the window */
	uint32_t seq;
	int64_t arrival_ns;
};

struct place_rank { /* of one process, on a host with a clock of its own */
	int32_t rank;
	struct wanted v[N_KNOTS];
};

struct member {
	uint32_t process;
	int32_t rank;
	size_t host;
	bool alone; /* the rank's only process */
};

struct place {
	struct place_host *hosts;
	size_t n_hosts;
	struct member *members; /* by process */
	size_t n_members;
	struct place_rank **ranks; /* by rank, those that were noted */
	size_t n_ranks;
	struct interns comms;
	int64_t from_ns, part_ns;

	/* Of the process that is being placed. */
	const struct member *now;
	const struct place_host *host;
	struct idmap wanted; /* call -> part of the window */
	struct knot knots[N_KNOTS];
	size_t n_knots;
	size_t n_seen;
};

static bool grow(void *v, size_t n, size_t size)
{
	void **at = v, *grown;

	if (n & (n - 1)) /* doubled at each power of two */
		return true;
	grown = realloc(*at, (n ? 2 * n : 1) * size);
	if (grown)
		*at = grown;
	return grown != NULL;
}

static int by_process(const void *a, const void *b)
{
	const struct member *x = a, *y = b;

	return (x->process > y->process) - (x->process < y->process);
}

static bool add_host(struct place *p, sqlite3_stmt *q)
{
	if (!grow(&p->hosts, p->n_hosts, sizeof *p->hosts))
		return false;
	p->hosts[p->n_hosts++] = (struct place_host){ .host = (uint32_t)sqlite3_column_int64(q, 0),
						      .exact = sqlite3_column_int(q, 1) != 0,
						      .offset_ns = sqlite3_column_int64(q, 2) };
	return true;
}

static struct place_host *host_of(struct place *p, uint32_t host)
{
	for (size_t i = 0; i < p->n_hosts; i++)
		if (p->hosts[i].host == host)
			return &p->hosts[i];
	return NULL;
}

/* Rows by host, in order of time. */
static bool add_estimate(struct place *p, sqlite3_stmt *q)
{
	struct place_host *h = host_of(p, (uint32_t)sqlite3_column_int64(q, 0));
	int64_t offset_ns = sqlite3_column_int64(q, 2), host_ns;

	if (!h || h->exact || __builtin_sub_overflow(sqlite3_column_int64(q, 1), offset_ns, &host_ns))
		return true;
	if (!grow(&h->v, h->n, sizeof *h->v))
		return false;
	if (h->n == 0 || h->v[h->n - 1].host_ns < host_ns)
		h->v[h->n++] = (struct knot){ host_ns, offset_ns };
	return true;
}

static bool add_member(struct place *p, sqlite3_stmt *q)
{
	struct place_host *h = host_of(p, (uint32_t)sqlite3_column_int64(q, 2));

	if (!h)
		return true;
	if (!grow(&p->members, p->n_members, sizeof *p->members))
		return false;
	p->members[p->n_members++] = (struct member){ .process = (uint32_t)sqlite3_column_int64(q, 1),
						      .rank = sqlite3_column_int(q, 0), .host = (size_t)(h - p->hosts),
						      .alone = sqlite3_column_int(q, 7) == 1 };
	return true;
}

static bool each(struct place *p, const struct export *e, const char *sql, bool (*add)(struct place *, sqlite3_stmt *))
{
	sqlite3_stmt *q = NULL;
	int rc = sqlite3_prepare_v2(e->db->handle, sql, -1, &q, NULL), i;
	bool fine = rc == SQLITE_OK;

	if (fine && (i = sqlite3_bind_parameter_index(q, ":from_ns")) > 0)
		sqlite3_bind_int64(q, i, e->window.from_ns);
	if (fine && (i = sqlite3_bind_parameter_index(q, ":to_ns")) > 0)
		sqlite3_bind_int64(q, i, e->window.to_ns);
	while (fine && sqlite3_step(q) == SQLITE_ROW)
		fine = add(p, q);
	sqlite3_finalize(q);
	return fine;
}

struct place *place_new(struct export *e)
{
	struct place *p = calloc(1, sizeof *p);

	if (!p)
		return NULL;
	interns_init(&p->comms, MAX_COMMS);
	p->from_ns = e->window.from_ns;
	p->part_ns = (e->window.to_ns - e->window.from_ns) / N_KNOTS + 1;
	if (each(p, e, sql_report_export_hosts, add_host) && each(p, e, sql_report_export_clocks, add_estimate) &&
	    each(p, e, sql_report_export_ranks, add_member)) {
		if (p->n_members)
			qsort(p->members, p->n_members, sizeof *p->members, by_process);
		return p;
	}
	place_free(p);
	return NULL;
}

void place_free(struct place *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->n_hosts; i++)
		free(p->hosts[i].v);
	for (size_t i = 0; i < p->n_ranks; i++)
		free(p->ranks[i]);
	free(p->hosts);
	free(p->members);
	free(p->ranks);
	free(p->wanted.v);
	interns_fini(&p->comms);
	free(p);
}

void place_note(struct place *p, int32_t rank, const char *comm, uint64_t seq, int64_t arrival_ns)
{
	int64_t part = (arrival_ns - p->from_ns) / p->part_ns;
	struct place_rank *r = NULL;
	struct wanted *w;
	bool is_new;

	if (part < 0 || part >= N_KNOTS || seq > UINT32_MAX)
		return;
	if ((size_t)rank >= p->n_ranks) {
		size_t n = (size_t)rank + 64;
		struct place_rank **grown = realloc(p->ranks, n * sizeof *grown);

		if (!grown)
			return; /* less well placed */
		memset(grown + p->n_ranks, 0, (n - p->n_ranks) * sizeof *grown);
		p->ranks = grown;
		p->n_ranks = n;
	}
	if (!p->ranks[rank])
		p->ranks[rank] = calloc(1, sizeof *r);
	r = p->ranks[rank];
	w = r ? &r->v[part] : NULL;
	if (w && !w->comm)
		*w = (struct wanted){ interns_number(&p->comms, comm, &is_new), (uint32_t)seq, arrival_ns };
}

static uint64_t key_of(const struct wanted *w)
{
	return (uint64_t)w->comm << 32 | w->seq;
}

bool place_process(struct place *p, uint32_t process)
{
	const struct member key = { .process = process };
	const struct place_rank *r;

	p->now = p->n_members ? bsearch(&key, p->members, p->n_members, sizeof key, by_process) : NULL;
	p->host = p->now ? &p->hosts[p->now->host] : NULL;
	p->n_knots = p->n_seen = 0;
	free(p->wanted.v);
	p->wanted = (struct idmap){ 0 };
	if (!p->now || p->host->exact || !p->now->alone || (size_t)p->now->rank >= p->n_ranks)
		return false;
	r = p->ranks[p->now->rank];
	for (uint32_t i = 0; r && i < N_KNOTS; i++)
		if (r->v[i].comm && idmap_get(&p->wanted, key_of(&r->v[i])) == IDMAP_NONE)
			idmap_put(&p->wanted, key_of(&r->v[i]), i);
	return p->wanted.n > 0;
}

void place_see(struct place *p, const struct event *ev, const char *comm)
{
	bool is_new;
	struct wanted w = { .comm = interns_number(&p->comms, comm, &is_new), .seq = event_low(ev->a) };
	uint32_t i = idmap_get(&p->wanted, key_of(&w));

	if (i != IDMAP_NONE && p->n_seen < N_KNOTS)
		p->knots[p->n_seen++] = (struct knot){ (int64_t)ev->tick,
						       p->ranks[p->now->rank]->v[i].arrival_ns - (int64_t)ev->tick };
}

static int by_time(const void *a, const void *b)
{
	const struct knot *x = a, *y = b;

	return (x->host_ns > y->host_ns) - (x->host_ns < y->host_ns);
}

/* Two that would turn the order of time around are not both right; the earlier one stays. */
void place_seen(struct place *p)
{
	qsort(p->knots, p->n_seen, sizeof *p->knots, by_time);
	p->n_knots = 0;
	for (size_t i = 0; i < p->n_seen; i++) {
		const struct knot *k = &p->knots[i], *last = p->n_knots ? &p->knots[p->n_knots - 1] : NULL;

		if (!last || (k->host_ns > last->host_ns && k->host_ns + k->offset_ns > last->host_ns + last->offset_ns))
			p->knots[p->n_knots++] = *k;
	}
}

static int64_t between(const struct knot *v, size_t n, int64_t host_ns)
{
	size_t lo = 0, hi = n;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (v[mid].host_ns <= host_ns)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo == 0 || lo == n)
		return host_ns + v[lo ? n - 1 : 0].offset_ns;
	return host_ns + v[lo - 1].offset_ns +
	       (int64_t)((double)(v[lo].offset_ns - v[lo - 1].offset_ns) * (double)(host_ns - v[lo - 1].host_ns) /
			 (double)(v[lo].host_ns - v[lo - 1].host_ns));
}

int64_t place_at(const struct place *p, int64_t host_ns)
{
	if (!p->host)
		return host_ns;
	if (p->host->exact)
		return host_ns + p->host->offset_ns;
	if (p->n_knots)
		return between(p->knots, p->n_knots, host_ns);
	if (p->host->n)
		return between(p->host->v, p->host->n, host_ns);
	return host_ns + p->host->offset_ns;
}
