#include "ledger.h"

#include <errno.h>
#include <string.h>

#define MIN_SLOTS 32
#define MAX_SLOTS 2048
#define MAX_ODD_CALLS 8 /* behind the first odd one */
#define MAX_ODDS (1u << 16)
#define MAX_PAGES (1u << 16)

void ledger_fini(struct ledger *l)
{
	for (uint32_t i = 0; i < l->n_pages; i++) {
		free(l->pages[i].v);
		free(l->pages[i].seats);
		free(l->pages[i].odds);
	}
	for (uint32_t i = 0; i < l->n_procs; i++)
		free(l->procs[i].trail);
	free(l->pages);
	free(l->procs);
	messages_fini(&l->messages);
}

/* Room for index at the end, zeroed. False without memory. */
static bool reach(void *v, uint32_t *n, uint32_t index, size_t size)
{
	uint32_t want = *n ? *n : 8;
	char *grown;

	if (index < *n)
		return true;
	while (want <= index)
		want *= 2;
	grown = realloc(*(void **)v, want * size);
	if (!grown)
		return false;
	memset(grown + *n * size, 0, (want - *n) * size);
	*(void **)v = grown;
	*n = want;
	return true;
}

static struct page *page_of(struct ledger *l, uint32_t group)
{
	uint32_t n = l->n_pages;

	if (group >= MAX_PAGES || !reach(&l->pages, &l->n_pages, group, sizeof *l->pages))
		return NULL;
	for (; n < l->n_pages; n++)
		l->pages[n].first_odd = UINT64_MAX;
	return &l->pages[group];
}

struct ledger_proc *ledger_proc(const struct ledger *l, uint32_t proc)
{
	return proc < l->n_procs ? &l->procs[proc] : NULL;
}

const char *ledger_text(const struct ledger *l, uint32_t text)
{
	return text && text <= l->roster->n_texts ? l->roster->texts[text - 1] : "";
}

struct line *ledger_line(const struct page *p, uint64_t seq)
{
	struct line *v = p->n_slots ? &p->v[seq & (p->n_slots - 1)] : NULL;

	return v && v->used && v->seq == seq ? v : NULL;
}

/* Sizes that may honestly differ by rank say nothing. */
static bool size_counts(uint8_t op, uint8_t dtype)
{
	return dtype != DTYPE_OBJECT && op != OP_SCATTER && op != OP_ALL_TO_ALL &&
	       op != OP_BARRIER && op != OP_UNKNOWN;
}

bool ledger_same(const struct shape *a, const struct shape *b)
{
	return (a->op == b->op || !a->op || !b->op) && (a->dtype == b->dtype || !a->dtype || !b->dtype) &&
	       (a->root < 0 || b->root < 0 || a->root == b->root) &&
	       (!a->name || !b->name || a->name == b->name) &&
	       (!a->sized || !b->sized || a->bytes == b->bytes || !size_counts(a->op, a->dtype));
}

static struct odd *find_odd(const struct page *p, uint32_t member, uint64_t seq)
{
	for (size_t i = 0; i < p->n_odds; i++)
		if (p->odds[i].seq == seq && p->odds[i].member == member)
			return &p->odds[i];
	return NULL;
}

bool ledger_shape(const struct page *p, uint32_t member, uint64_t seq, struct shape *ret)
{
	const struct seat *s = member < p->n_seats ? &p->seats[member] : NULL;
	const struct line *v = ledger_line(p, seq);
	const struct odd *o;

	if (!s || !s->seen || !v || seq < s->first ||
	    (seq >= s->n_submitted && seq >= s->n_entered))
		return false;
	o = v->n_odd ? find_odd(p, member, seq) : NULL;
	*ret = o ? o->shape : v->shape;
	if (seq >= s->n_entered)
		ret->sized = false;
	return true;
}

/* The window grows while its oldest call is not over. */
static struct line *open_line(struct ledger *l, struct page *p, uint64_t seq)
{
	struct line *v = p->n_slots ? &p->v[seq & (p->n_slots - 1)] : NULL;

	if (v && v->used && v->seq == seq)
		return v;
	while (!v || (v->used && p->n_slots < MAX_SLOTS &&
		      (v->seq > seq || v->n_left < v->n_entered || v->n_entered == 0))) {
		uint32_t n = p->n_slots ? 2 * p->n_slots : MIN_SLOTS;
		struct line *grown = calloc(n, sizeof *grown);

		if (!grown)
			return NULL;
		for (uint32_t i = 0; i < p->n_slots; i++)
			if (p->v[i].used)
				grown[p->v[i].seq & (n - 1)] = p->v[i];
		free(p->v);
		p->v = grown;
		p->n_slots = n;
		v = &p->v[seq & (n - 1)];
	}
	*v = (struct line){ .seq = seq, .at_ns = FACT_NONE,
			    .entered_now_ns = l->now_ns };
	if (!p->any || seq < p->first)
		p->first = seq;
	if (!p->any || seq >= p->next)
		p->next = seq + 1;
	p->any = true;
	return v;
}

/* Adds what b knows. */
static void merge(struct shape *a, const struct shape *b)
{
	if (!a->sized && b->sized) {
		a->sized = true;
		a->bytes = b->bytes;
	}
	if (!a->name)
		a->name = b->name;
	if (a->root < 0)
		a->root = b->root;
}

/* A call that raised before it was sent: its number is used again, and what it asked
 * for is void. */
static void forget(struct page *p, struct line *v, uint32_t member)
{
	struct odd *o = v->n_odd ? find_odd(p, member, v->seq) : NULL;

	if (!o)
		return;
	*o = p->odds[--p->n_odds];
	if (--v->n_odd == 0 && p->first_odd == v->seq) {
		p->first_odd = UINT64_MAX;
		for (size_t i = 0; i < p->n_odds; i++)
			if (p->odds[i].seq < p->first_odd)
				p->first_odd = p->odds[i].seq;
	}
}

static int compare(struct page *p, struct line *v, uint32_t member, const struct shape *shape)
{
	struct odd *o = v->n_odd ? find_odd(p, member, v->seq) : NULL;
	struct shape odd = *shape;

	if (!v->used) {
		v->used = true;
		v->shape = *shape;
		return 0;
	}
	if (o) {
		merge(&o->shape, shape);
		return 0;
	}
	if (ledger_same(&v->shape, shape)) {
		merge(&v->shape, shape);
		return 0;
	}
	if ((p->first_odd != UINT64_MAX && v->seq > p->first_odd + MAX_ODD_CALLS) ||
	    p->n_odds == MAX_ODDS)
		return 0;
	if (!facts_reserve((void **)&p->odds, &p->n_odds, &p->n_odds_alloc, sizeof *p->odds))
		return -ENOMEM;
	if (odd.op == v->shape.op && odd.dtype == v->shape.dtype)
		merge(&odd, &(struct shape){ .name = v->shape.name, .root = v->shape.root });
	p->odds[p->n_odds - 1] = (struct odd){ v->seq, member, odd };
	v->n_odd++;
	if (v->seq < p->first_odd)
		p->first_odd = v->seq;
	return 0;
}

static int leave_mark(struct ledger_proc *q, const struct step_mark *m)
{
	if (!q->trail)
		q->trail = calloc(LEDGER_TRAIL, sizeof *q->trail);
	if (!q->trail)
		return -ENOMEM;
	q->trail[q->n_trail++ % LEDGER_TRAIL] = *m;
	return 0;
}

/* Which group, and which of its members? 1 when it has no name. */
static int find_seat(struct ledger *l, struct proc *p, uint32_t name, uint32_t restart_count,
		     struct page **ret, uint32_t *ret_group, uint32_t *ret_member)
{
	struct seat *s;
	struct name_use *u;

	if (name == 0 || name >= p->n_names || p->names[name].text == 0)
		return 1;
	u = &p->names[name];
	if (u->group == 0) {
		int64_t g = match_group(l->match, l->roster->texts[u->text - 1], restart_count,
					p->rank);
		int64_t member = g < 0 ? g : match_member(l->match, (uint32_t)g, p->rank);

		if (member < 0)
			return member == -E2BIG ? 1 : (int)member;
		u->group = (uint32_t)g + 1;
		u->member = (uint32_t)member;
	}
	if (u->group > MAX_PAGES)
		return 1;
	*ret = page_of(l, u->group - 1);
	if (!*ret || !reach(&(*ret)->seats, &(*ret)->n_seats, u->member, sizeof *(*ret)->seats))
		return -ENOMEM;
	*ret_group = u->group - 1;
	*ret_member = u->member;
	s = &(*ret)->seats[u->member];
	s->rank = p->rank;
	s->proc = (uint32_t)(p - l->roster->procs);
	return 0;
}

static bool has_just_entered(const struct seat *s, uint64_t seq)
{
	return s->seen && s->n_entered == seq + 1;
}

static void note_call(struct ledger *l, const struct proc *p, const struct event *ev, struct page *g,
		      struct line *v, struct seat *s)
{
	if (!s->seen || v->seq < s->first)
		s->first = v->seq;
	s->seen = true;
	g->news_now_ns = l->now_ns;
	if (v->at_ns == FACT_NONE) {
		v->at_ns = roster_place(l->roster, p, (int64_t)ev->tick).at.ns;
		v->step = p->cur_step;
	}
	if (ev->kind == EVENT_COLL_SUBMIT) {
		if (v->seq >= s->n_submitted)
			s->n_submitted = v->seq + 1;
		return;
	}
	if (has_just_entered(s, v->seq))
		return;
	if (v->n_entered++ == 0)
		v->entered_now_ns = l->now_ns;
	v->last_now_ns = l->now_ns;
	if (v->seq >= s->n_entered)
		s->n_entered = v->seq + 1;
}

static int on_call(struct ledger *l, struct proc *p, struct ledger_proc *q, const struct event *ev,
		   uint32_t restart_count)
{
	struct shape shape = { .op = (uint8_t)(ev->flags >> 8), .dtype = (uint8_t)ev->flags,
			       .root = -1 };
	uint32_t group = 0, member = 0;
	struct page *g = NULL;
	struct line *v;
	uint64_t seq;
	int r = find_seat(l, p, ev->name, restart_count, &g, &group, &member);

	if (r != 0)
		return r < 0 ? r : 0;
	seq = match_seq(l->match, group, event_low(ev->a));
	if (ev->kind == EVENT_COLL_END) {
		v = ledger_line(g, seq);
		g->news_now_ns = l->now_ns;
		if (v && g->seats[member].n_left != seq + 1)
			v->n_left++;
		if (seq >= g->seats[member].n_left)
			g->seats[member].n_left = seq + 1;
		return 0;
	}
	v = open_line(l, g, seq);
	if (!v)
		return -ENOMEM;
	if (ev->kind == EVENT_COLL_SUBMIT) {
		shape.root = (int32_t)(ev->b >> 32) - 1;
		if (q->launch == (uint32_t)ev->b) {
			shape.name = q->launch_name;
			/* That launch was this call and no work of its own. */
			q->n_trail -= shape.name != 0 && q->n_trail > 0 &&
				      q->trail[(q->n_trail - 1) % LEDGER_TRAIL].name == shape.name;
		}
	} else {
		shape.bytes = ev->b & ~EVENT_COLL_SYNC_BIT;
		shape.sized = shape.dtype != DTYPE_UNKNOWN || shape.bytes > 0;
		if (has_just_entered(&g->seats[member], seq))
			forget(g, v, member);
	}
	r = compare(g, v, member, &shape);
	if (r == 0 && (ev->kind == EVENT_COLL_SUBMIT || seq >= g->seats[member].n_submitted))
		r = leave_mark(q, &(struct step_mark){ .group = group + 1, .seq = seq });
	note_call(l, p, ev, g, v, &g->seats[member]);
	q->spoke = true;
	return r;
}

static uint32_t text_of(const struct proc *p, uint32_t name)
{
	return name < p->n_names ? p->names[name].text : 0;
}

static int on_launch(struct proc *p, struct ledger_proc *q, const struct event *ev)
{
	q->launch = event_low(ev->a);
	q->launch_name = text_of(p, ev->name);
	return q->launch_name ? leave_mark(q, &(struct step_mark){ .name = q->launch_name }) : 0;
}

int ledger_event(struct ledger *l, struct proc *p, const struct event *ev, uint32_t restart_count)
{
	uint32_t index = (uint32_t)(p - l->roster->procs);
	struct ledger_proc *q;
	unsigned op = ev->flags >> 8;

	if (index >= l->n_procs && !reach(&l->procs, &l->n_procs, index, sizeof *l->procs))
		return -ENOMEM;
	q = &l->procs[index];
	q->news_now_ns = l->now_ns;
	switch (ev->kind) {
	case EVENT_LAUNCH:
		return on_launch(p, q, ev);
	case EVENT_COLL_SUBMIT:
	case EVENT_COLL_BEGIN:
	case EVENT_COLL_END:
		if (op == OP_SEND || op == OP_RECV)
			return messages_event(&l->messages, l->roster, p, ev, l->now_ns);
		return on_call(l, p, q, ev, restart_count);
	case EVENT_WORK_BEGIN:
		if (q->n_work++ == 0) {
			q->work_name = text_of(p, ev->name);
			q->work_now_ns = l->now_ns;
		}
		return 0;
	case EVENT_WORK_END:
		q->n_work -= q->n_work > 0;
		return 0;
	case EVENT_KERNEL_BEGIN:
		q->n_kernels++;
		q->kernel_name = text_of(p, ev->name);
		return 0;
	case EVENT_KERNEL_END:
		q->n_kernels -= q->n_kernels > 0;
		return 0;
	case EVENT_STEP_BEGIN:
		q->n_steps++;
		return 0;
	default:
		return 0;
	}
}

int ledger_lost(struct ledger *l, const struct proc *p)
{
	uint32_t index = (uint32_t)(p - l->roster->procs);

	if (!reach(&l->procs, &l->n_procs, index, sizeof *l->procs))
		return -ENOMEM;
	l->procs[index].lost = true;
	return 0;
}
