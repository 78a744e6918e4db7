#include "rates_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAX_WAYS (1u << 14)
#define FUSED_NS 2000 /* messages that begin within this are one launch */

/* ---- one transfer more ---- */

static void put_sample(struct rates_cell *c, const struct rates_sample *s)
{
	if (c->n < RATES_EARLY)
		c->early[c->n] = *s;
	c->recent[c->n % RATES_KEEP] = *s;
	c->n++;
}

struct transfer {
	struct rates_sample sample;
	int64_t err_ns;
	double wait_ns, inside_ns; /* over ranks */
};

static int put_class(struct rates *r, uint32_t i, const struct transfer *t)
{
	struct rates_class *c = &r->classes[i];

	c->changed = r->changed = true;
	c->bytes += (double)t->sample.bytes;
	c->wait_ns += t->wait_ns;
	c->inside_ns += t->inside_ns;
	c->err_ns = t->err_ns > c->err_ns ? t->err_ns : c->err_ns;
	return sketch_add(&c->transfer, t->sample.transfer_ns);
}

/* ret_class: of all groups of the shape; UINT32_MAX when there was no room. */
static int put(struct rates *r, const struct rates_shape *s, const struct transfer *t, uint32_t *ret_class)
{
	uint32_t n_before = r->n_cells, own, all = UINT32_MAX;
	struct rates_cell *cell;
	bool is_new;
	int e = rates_cell_of(r, s, &cell);

	if (e < 0)
		return e;
	if (e == 0)
		put_sample(cell, &t->sample);
	is_new = r->n_cells > n_before;
	e = rates_class_of(r, s, true, &all);
	if (e == 0)
		e = put_class(r, all, t);
	if (e < 0)
		return e;
	*ret_class = all;
	if (s->pair || all == UINT32_MAX) {
		if (all != UINT32_MAX)
			r->classes[all].n_groups += is_new;
		return 0;
	}
	n_before = r->n_classes;
	e = rates_class_of(r, s, false, &own);
	r->classes[all].n_groups += r->n_classes > n_before;
	return e == 0 ? put_class(r, own, t) : e < 0 ? e : 0;
}

/* ---- collectives ---- */

static uint32_t next_mark(struct rates *r, uint32_t n_hosts)
{
	if (n_hosts > r->n_host_marks) {
		uint32_t *grown = realloc(r->host_marks, n_hosts * sizeof *grown);

		if (!grown)
			return 0;
		memset(grown + r->n_host_marks, 0, (n_hosts - r->n_host_marks) * sizeof *grown);
		r->host_marks = grown;
		r->n_host_marks = n_hosts;
	}
	if (++r->mark == 0) {
		memset(r->host_marks, 0, r->n_host_marks * sizeof *r->host_marks);
		r->mark = 1;
	}
	return r->mark;
}

/* Remembered, so that a copy that is told late finds its call. */
static int note_exits(struct rates *r, const struct coll *c, uint32_t n, uint32_t cls)
{
	for (uint32_t i = 0; i < n; i++) {
		const struct arrival *a = &c->arrivals[i];
		struct rates_proc *p;

		if (a->enter_ns == FACT_NONE)
			continue;
		p = rates_proc_of(r, a->proc);
		if (!p)
			return -ENOMEM;
		p->calls[p->n_calls % RATES_CALLS].exit_ns = a->exit_ns;
		p->calls[p->n_calls++ % RATES_CALLS].cls = cls;
		for (uint32_t k = 0; k < p->n_copies;) {
			struct rates_copy copy = p->copies[k];

			if (copy.at_ns > a->exit_ns) {
				k++;
				continue;
			}
			p->copies[k] = p->copies[--p->n_copies];
			r->classes[cls].n_copies++;
			r->classes[cls].copy_bytes += (uint64_t)copy.bytes;
			r->classes[cls].n_layouts += copy.is_layout;
		}
	}
	return 0;
}

/* Where all begin at once: what ranks were idle before, beyond the last to be ready. */
static double gaps_before(const struct coll *c, uint32_t n)
{
	int64_t least_ns = INT64_MAX;
	double sum_ns = 0;
	uint32_t n_gaps = 0;

	for (uint32_t i = 0; i < n; i++) {
		const struct arrival *a = &c->arrivals[i];

		if (a->enter_ns == FACT_NONE)
			continue;
		if (a->ready_ns == FACT_NONE || a->ready_ns > a->enter_ns)
			return 0;
		least_ns = a->enter_ns - a->ready_ns < least_ns ? a->enter_ns - a->ready_ns : least_ns;
		sum_ns += (double)(a->enter_ns - a->ready_ns);
		n_gaps++;
	}
	return n_gaps ? sum_ns - n_gaps * (double)least_ns : 0;
}

int rates_call(struct rates *r, const struct match *m, uint32_t group, const struct coll *c)
{
	const struct group *g = &m->groups[group];
	struct rates_shape s = { .op = c->op, .dtype = c->dtype, .group = group,
				 .bytes = c->bytes, .device = true, .host = UINT32_MAX };
	struct transfer t = { .sample = { .transfer_ns = INT64_MAX, .bytes = c->bytes, .step = c->step } };
	uint32_t n = c->n_alloc < g->n_members ? c->n_alloc : g->n_members, mark, cls = UINT32_MAX;
	int64_t exit_ns = 0;
	int e;

	if (c->mismatch || !c->has_call || g->n_expected < 2 || c->n_done < g->n_expected)
		return 0;
	mark = next_mark(r, m->roster->n_hosts);
	if (!mark)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++) {
		const struct arrival *a = &c->arrivals[i];
		const struct proc *p;
		int64_t inside_ns;

		if (a->enter_ns == FACT_NONE || a->exit_ns == FACT_NONE)
			continue;
		p = &m->roster->procs[a->proc];
		inside_ns = a->exit_ns > a->enter_ns ? a->exit_ns - a->enter_ns : 0;
		s.n_ranks++;
		s.life = p->life;
		s.n_hosts += r->host_marks[p->host] != mark;
		r->host_marks[p->host] = mark;
		s.device &= a->proc < r->n_procs && r->procs[a->proc].device;
		t.inside_ns += (double)inside_ns;
		t.err_ns = p->tick_error_ns > t.err_ns ? p->tick_error_ns : t.err_ns;
		t.sample.transfer_ns = inside_ns < t.sample.transfer_ns ? inside_ns : t.sample.transfer_ns;
		if (p->host < s.host) {
			s.host = p->host;
			exit_ns = a->exit_ns;
		}
	}
	if (s.n_ranks < 2)
		return 0;
	t.wait_ns = t.inside_ns - s.n_ranks * (double)t.sample.transfer_ns;
	if (g->n_common == MATCH_COMMON_CALLS) {
		double gaps_ns = gaps_before(c, n);

		t.wait_ns += gaps_ns;
		t.inside_ns += gaps_ns;
	}
	t.err_ns *= 2;
	t.sample.begin_ns = exit_ns - t.sample.transfer_ns;
	if (c->uneven) /* not of one size */
		s.bytes = t.sample.bytes = 0;
	e = put(r, &s, &t, &cls);
	return e < 0 || cls == UINT32_MAX ? e : note_exits(r, c, n, cls);
}

int rates_copy(struct rates *r, uint32_t proc, int64_t at_ns, int64_t bytes, bool is_layout)
{
	struct rates_proc *p = rates_proc_of(r, proc);
	uint32_t n, best = UINT32_MAX;

	if (!p)
		return -ENOMEM;
	bytes = bytes > 0 && bytes < INT64_C(1) << 48 ? bytes : 0;
	n = p->n_calls < RATES_CALLS ? p->n_calls : RATES_CALLS;
	for (uint32_t k = 0; k < n; k++) /* the first that ended behind it */
		if (p->calls[k].exit_ns >= at_ns &&
		    (best == UINT32_MAX || p->calls[k].exit_ns < p->calls[best].exit_ns))
			best = k;
	if (best != UINT32_MAX) {
		struct rates_class *c = &r->classes[p->calls[best].cls];

		c->n_copies++;
		c->copy_bytes += (uint64_t)bytes;
		c->n_layouts += is_layout;
		c->changed = r->changed = true;
	} else if (p->n_copies < RATES_COPIES) {
		p->copies[p->n_copies++] = (struct rates_copy){ at_ns, bytes, is_layout };
	} else {
		r->n_dropped++;
	}
	return 0;
}

/* ---- messages ---- */

static struct rates_way *way_of(struct rates *r, uint32_t i)
{
	if (i >= r->n_ways) {
		uint32_t n = r->n_ways ? 2 * r->n_ways : 16;
		struct rates_way *grown;

		n = n > i ? n : i + 1;
		grown = realloc(r->ways, n * sizeof *grown);
		if (!grown)
			return NULL;
		for (uint32_t k = r->n_ways; k < n; k++)
			for (uint32_t j = 0; j < RATES_OPEN; j++)
				grown[k].open[j].number = UINT64_MAX;
		r->ways = grown;
		r->n_ways = n;
	}
	return &r->ways[i];
}

/* One launch may send to one peer and receive from another: it ends with the slower of
 * them, so that neither's time can be told. Both are left out. */
static void note_begin(struct rates *r, struct rates_proc *p, uint32_t way, uint64_t number, int32_t peer,
		       int64_t begin_ns)
{
	uint32_t k = number % RATES_OPEN, last = p->message.number % RATES_OPEN;
	struct rates_way *other = &r->ways[p->message.way];

	if (p->message.peer != peer && p->message.begin_ns > begin_ns - FUSED_NS &&
	    p->message.begin_ns < begin_ns + FUSED_NS) {
		r->ways[way].open[k].fused = true;
		if (other->open[last].number == p->message.number)
			other->open[last].fused = true;
	}
	p->message.begin_ns = begin_ns;
	p->message.peer = peer;
	p->message.way = way;
	p->message.number = number;
}

static int put_message(struct rates *r, const struct roster *roster, const struct direction *d,
		       struct rates_way *w, uint32_t k)
{
	const struct proc *a = &roster->procs[w->open[k].proc[0]], *b = &roster->procs[w->open[k].proc[1]];
	int64_t sent_ns = w->open[k].end_ns[0] - w->open[k].begin_ns[0];
	int64_t received_ns = w->open[k].end_ns[1] - w->open[k].begin_ns[1];
	int64_t least_ns = sent_ns < received_ns ? sent_ns : received_ns;
	struct rates_shape s = { .pair = true, .op = OP_SEND, .life = d->life, .bytes = w->open[k].bytes,
				 .ranks = { d->ranks[0], d->ranks[1] }, .n_ranks = 2, .host = a->host,
				 .n_hosts = a->host == b->host ? 1 : 2,
				 .device = r->procs[w->open[k].proc[0]].device };
	uint32_t cls;

	w->open[k].number = UINT64_MAX;
	if (least_ns < 0 || w->open[k].fused)
		return 0;
	return put(r, &s, &(struct transfer){
			.sample = { .begin_ns = w->open[k].end_ns[0] == INT64_MIN ? 0 : w->open[k].end_ns[0] - least_ns,
				    .transfer_ns = least_ns, .bytes = s.bytes, .step = a->cur_step },
			.err_ns = 2 * (a->tick_error_ns > b->tick_error_ns ? a->tick_error_ns : b->tick_error_ns),
			.inside_ns = (double)sent_ns + (double)received_ns,
			.wait_ns = (double)sent_ns + (double)received_ns - 2 * (double)least_ns },
		&cls);
}

int rates_event(struct rates *r, const struct roster *roster, const struct messages *m,
		const struct proc *p, const struct event *ev)
{
	unsigned op = ev->flags >> 8, side = op == OP_RECV;
	uint32_t proc = (uint32_t)(p - roster->procs), text, i, k;
	const struct direction *d;
	struct rates_way *w;

	if (ev->kind == EVENT_COLL_SUBMIT) {
		struct rates_proc *own = rates_proc_of(r, proc);

		if (own)
			own->device = true;
		return own ? 0 : -ENOMEM;
	}
	if ((ev->kind != EVENT_COLL_BEGIN && ev->kind != EVENT_COLL_END) ||
	    (op != OP_SEND && op != OP_RECV))
		return 0;
	text = ev->name < p->n_names ? p->names[ev->name].text : 0;
	i = text ? idmap_get(&m->of_text, text) : IDMAP_NONE;
	if (i == IDMAP_NONE || i >= MAX_WAYS)
		return 0;
	d = &m->v[i];
	w = way_of(r, i);
	if (!w || !rates_proc_of(r, proc))
		return -ENOMEM;
	if (d->life != p->life || d->ranks[side] != p->rank)
		return 0;
	k = event_low(ev->a) % RATES_OPEN;
	if (w->open[k].number != event_low(ev->a)) {
		w->open[k].number = event_low(ev->a);
		w->open[k].bytes = 0;
		w->open[k].fused = false;
		for (int j = 0; j < 2; j++)
			w->open[k].begin_ns[j] = w->open[k].end_ns[j] = INT64_MIN;
	}
	if (ev->kind == EVENT_COLL_BEGIN)
		note_begin(r, &r->procs[proc], i, event_low(ev->a), d->ranks[!side], (int64_t)ev->tick);
	w->open[k].proc[side] = proc;
	w->open[k].bytes = ev->b & ~EVENT_COLL_SYNC_BIT;
	(ev->kind == EVENT_COLL_BEGIN ? w->open[k].begin_ns : w->open[k].end_ns)[side] = (int64_t)ev->tick;
	for (int j = 0; j < 2; j++)
		if (w->open[k].begin_ns[j] == INT64_MIN || w->open[k].end_ns[j] == INT64_MIN)
			return 0;
	return put_message(r, roster, d, w, k);
}
