#include "transfers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAX_GROUPS (1u << 16)

void transfers_fini(struct transfers *t)
{
	free(t->v);
	*t = (struct transfers){ 0 };
}

static struct transfer *transfer_of(struct transfers *t, uint32_t group)
{
	uint32_t n = t->n ? t->n : 8;
	void *grown;

	if (group < t->n)
		return &t->v[group];
	while (n <= group)
		n *= 2;
	grown = realloc(t->v, n * sizeof *t->v);
	if (!grown)
		return NULL;
	t->v = grown;
	memset(t->v + t->n, 0, (n - t->n) * sizeof *t->v);
	t->n = n;
	return &t->v[group];
}

/* The shortest stay of a member is that of the last to come: no clock is compared. */
static bool shortest(const struct match *m, const struct coll *c, uint32_t n_members, int64_t *ret_ns,
		     uint32_t *ret_hosts)
{
	uint32_t host = UINT32_MAX;

	*ret_ns = INT64_MAX;
	*ret_hosts = 0;
	for (uint32_t i = 0; i < n_members; i++) {
		const struct arrival *a = &c->arrivals[i];

		if (a->enter_ns == FACT_NONE || a->exit_ns == FACT_NONE)
			return false;
		if (a->exit_ns - a->enter_ns < *ret_ns)
			*ret_ns = a->exit_ns - a->enter_ns;
		if (m->roster->procs[a->proc].host != host)
			(*ret_hosts)++;
		host = m->roster->procs[a->proc].host;
	}
	return n_members > 0;
}

int transfers_call(struct transfers *t, const struct match *m, uint32_t group, const struct coll *c)
{
	const struct group *g = &m->groups[group];
	uint32_t n_members = g->n_members < c->n_alloc ? g->n_members : c->n_alloc, n_hosts;
	struct transfer *v;
	int64_t ns;

	if (group >= MAX_GROUPS || !c->arrivals || g->n_expected < 2 || c->n_entered < g->n_expected ||
	    c->mismatch || !shortest(m, c, n_members, &ns, &n_hosts))
		return 0;
	v = transfer_of(t, group);
	if (!v)
		return -ENOMEM;
	if (c->bytes < v->bytes || (c->bytes == v->bytes && v->n > 0 && c->op != v->op))
		return 0;
	if (c->bytes > v->bytes || v->n == 0)
		*v = (struct transfer){ .op = c->op, .bytes = c->bytes, .n_members = n_members,
					.n_hosts = n_hosts };
	v->n++;
	v->sum_ns += ns;
	return 0;
}
