#include "messages.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_DIRECTIONS (1u << 16)
#define MAX_RANK 65535

void messages_fini(struct messages *m)
{
	free(m->v);
	idmap_fini(&m->of_text);
}

/* The two ranks at the end of the name. */
static bool parse_name(const char *name, int32_t ranks[2])
{
	const char *at = strrchr(name, ' ');
	int n = 0;

	return at && sscanf(at, " %9d>%9d%n", &ranks[0], &ranks[1], &n) == 2 && at[n] == '\0' &&
	       ranks[0] >= 0 && ranks[0] <= MAX_RANK && ranks[1] >= 0 && ranks[1] <= MAX_RANK;
}

/* 0, 1 when it is none of ours, -ENOMEM. */
static int find(struct messages *m, const struct roster *r, const struct proc *p, uint32_t name,
		struct direction **ret)
{
	uint32_t text = name < p->n_names ? p->names[name].text : 0, i;
	int32_t ranks[2];

	if (text == 0)
		return 1;
	i = idmap_get(&m->of_text, text);
	if (i == IDMAP_NONE) {
		if (m->n == MAX_DIRECTIONS || !parse_name(r->texts[text - 1], ranks))
			return 1;
		if (m->n == m->n_alloc) {
			uint32_t n = m->n_alloc ? 2 * m->n_alloc : 16;
			struct direction *grown = realloc(m->v, n * sizeof *grown);

			if (!grown)
				return -ENOMEM;
			m->v = grown;
			m->n_alloc = n;
		}
		if (idmap_put(&m->of_text, text, m->n) < 0)
			return -ENOMEM;
		i = m->n++;
		m->v[i] = (struct direction){ .life = p->life, .ranks = { ranks[0], ranks[1] } };
	}
	*ret = &m->v[i];
	if (p->life > (*ret)->life)
		**ret = (struct direction){ .life = p->life, .ranks = { (*ret)->ranks[0],
									(*ret)->ranks[1] } };
	return p->life == (*ret)->life ? 0 : 1;
}

int messages_event(struct messages *m, const struct roster *r, const struct proc *p,
		   const struct event *ev, int64_t now_ns)
{
	struct direction *d;
	int e = find(m, r, p, ev->name, &d), side = ev->flags >> 8 == OP_RECV;
	uint64_t behind = (uint64_t)event_low(ev->a) + 1;

	if (e != 0)
		return e < 0 ? e : 0;
	if (d->ranks[side] != p->rank)
		return 0;
	d->news_now_ns = now_ns;
	if (ev->kind == EVENT_COLL_BEGIN && behind > d->n_begun[side])
		d->n_begun[side] = behind;
	if (ev->kind == EVENT_COLL_END && behind > d->n_ended[side])
		d->n_ended[side] = behind;
	return 0;
}

int messages_waiting(const struct direction *d)
{
	for (int side = 0; side < 2; side++)
		if (d->n_begun[side] > d->n_ended[side] && d->n_begun[side] > d->n_begun[!side])
			return side;
	return -1;
}
