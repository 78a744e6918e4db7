/* path_host.c - on the host: its own work, back to the last thing that it stood still for. */
#include "path_internal.h"

/* What it was in just before t, the innermost; lo: where that changes at the latest. */
static const struct item *scope_before(const struct rank_work *w, int64_t t_ns, int64_t *lo)
{
	const struct item *in = NULL;

	for (uint32_t i = 0; i < w->n_items; i++) {
		const struct item *v = &w->items[i];

		if (v->label != IN_WORK && v->label != IN_PHASE)
			continue;
		if (v->begin_ns < t_ns && v->begin_ns > *lo)
			*lo = v->begin_ns;
		if (v->end_ns != FACT_NONE && v->end_ns < t_ns && v->end_ns > *lo)
			*lo = v->end_ns;
		if (v->begin_ns < t_ns && (v->end_ns == FACT_NONE || v->end_ns >= t_ns) &&
		    (!in || v->begin_ns >= in->begin_ns))
			in = v;
	}
	return in;
}

/* Its own work since then. */
static void own_work(struct walk *k, int64_t since_ns)
{
	while (k->where == ON_HOST && k->t_ns > since_ns) {
		int64_t lo = since_ns;
		const struct item *in = scope_before(k->w, k->t_ns, &lo);
		enum fact_segment_kind kind = SEGMENT_HOST;
		struct stretch *s;

		if (in && in->label == IN_WORK)
			kind = SEGMENT_WORK;
		else if (in && in->what == PHASE_DATA)
			kind = SEGMENT_INPUT;
		s = path_add(k, kind, lo);
		if (!s)
			continue;
		s->node = NULL;
		if (in && in->label == IN_WORK) {
			s->name = in->what;
			s->excess_ns = excess_of_scope(k->gs, k->rank, IN_WORK, in->what, s->dur_ns);
		} else if (in) {
			s->phase = (uint8_t)in->what;
			s->excess_ns = excess_of_scope(k->gs, k->rank, IN_PHASE, in->what, s->dur_ns);
		}
	}
}

/* What stood still for a bucket: a backward from the last SUBMIT on, where all of its
 * buckets were reduced within it. */
static const struct item *bucket_wait(const struct rank_work *w, const struct item *phase,
				      int64_t *ret_end_ns)
{
	const struct item *last = NULL;

	*ret_end_ns = INT64_MIN;
	for (uint32_t i = 0; i < w->n_items; i++) {
		const struct item *v = &w->items[i];

		if (v->label != IN_BUCKET || v->begin_ns < phase->begin_ns ||
		    v->begin_ns > phase->end_ns)
			continue;
		if (!last || v->begin_ns > last->begin_ns)
			last = v;
		if (v->end_ns != FACT_NONE && v->end_ns <= phase->end_ns && v->end_ns > *ret_end_ns)
			*ret_end_ns = v->end_ns;
	}
	return last && last->end_ns != FACT_NONE && last->end_ns <= phase->end_ns ? last : NULL;
}

struct stood { /* what the host stood still for, and when it went on */
	int64_t begin_ns, end_ns;
	const struct node *node; /* a call; NULL: the device */
	uint32_t launch;
};

static void consider(struct stood *s, int64_t t_ns, const struct stood *v)
{
	if (v->end_ns <= t_ns && v->begin_ns < v->end_ns && v->end_ns > s->end_ns)
		*s = *v;
}

static struct stood last_stood(const struct rank_work *w, int64_t t_ns)
{
	struct stood s = { .end_ns = INT64_MIN };

	for (uint32_t i = 0; i < w->n_nodes; i++) {
		const struct node *n = &w->nodes[i];

		if ((n->flags & NODE_BLOCKS) && !(n->flags & NODE_DEVICE) && node_ran(n))
			consider(&s, t_ns, &(struct stood){ n->begin_ns, n->end_ns, n, 0 });
	}
	for (uint32_t i = 0; i < w->n_items; i++) {
		const struct item *v = &w->items[i], *bucket;
		int64_t end_ns;

		if (v->end_ns == FACT_NONE)
			continue;
		if (v->label == IN_WAIT)
			consider(&s, t_ns, &(struct stood){ v->begin_ns, v->end_ns, NULL, v->what });
		if (v->label != IN_PHASE || v->what != PHASE_BACKWARD)
			continue;
		bucket = bucket_wait(w, v, &end_ns);
		if (bucket)
			consider(&s, t_ns,
				 &(struct stood){ bucket->begin_ns, end_ns,
						  graph_node(w, bucket->what, bucket->seq), 0 });
	}
	return s;
}

const struct node *path_device_before(const struct rank_work *w, uint32_t launch, int64_t t_ns)
{
	const struct node *last = NULL;

	for (uint32_t i = 0; i < w->n_nodes; i++) {
		const struct node *n = &w->nodes[i];

		if (!(n->flags & NODE_DEVICE) || !node_ran(n) || n->end_ns > t_ns ||
		    (launch && n->launch != launch))
			continue;
		if (!last || n->end_ns > last->end_ns)
			last = n;
	}
	return last;
}

static bool has_buckets(const struct rank_work *w)
{
	for (uint32_t i = 0; i < w->n_items; i++)
		if (w->items[i].label == IN_BUCKET)
			return true;
	return false;
}

/* Between two calls that block: each piece its share of what is too much. */
static void share_excess(struct walk *k, size_t first, const struct stood *s, int64_t own_ns)
{
	int64_t before = s->node ? s->node - k->w->nodes : -1, excess;

	if (own_ns <= 0 || k->next == PATH_ELSEWHERE || (s->end_ns != INT64_MIN && !s->node) || has_buckets(k->w) ||
	    k->w->device_ns != INT64_MIN)
		return;
	excess = excess_of_run_up(k->gs, k->rank, before, k->next, own_ns);
	for (size_t i = first; excess != FACT_NONE && i < k->path->v.n; i++) {
		struct stretch *v = &k->path->v.v[i];

		v->excess_ns = (int64_t)((double)excess * (double)v->dur_ns / (double)own_ns);
	}
}

void path_on_host(struct walk *k)
{
	struct stood s = last_stood(k->w, k->t_ns);
	int64_t from = path_from_ns(k->g, k->w, k->rank), t_ns = k->t_ns;
	int64_t since = s.end_ns > from ? s.end_ns : from;
	size_t first = k->path->v.n;
	const struct node *n;

	if (s.end_ns <= from)
		s = (struct stood){ .end_ns = INT64_MIN };
	own_work(k, since);
	share_excess(k, first, &s, t_ns - since);
	if (k->where == OVER || since == from) {
		k->where = OVER;
		return;
	}
	k->where = AT_END;
	k->node = s.node;
	if (s.node && node_ran(s.node) && s.node->end_ns > s.begin_ns) {
		path_add(k, SEGMENT_HOST, s.node->end_ns);
		return;
	}
	n = s.node ? NULL : path_device_before(k->w, s.launch, s.end_ns);
	if (n && n->end_ns > s.begin_ns) {
		path_add(k, SEGMENT_HOST, n->end_ns);
		k->node = n;
		return;
	}
	/* It stood still for nothing that is known. */
	k->node = NULL;
	k->next = PATH_ELSEWHERE;
	k->where = ON_HOST;
	path_add(k, SEGMENT_HOST, s.begin_ns);
}
