/* graph_events.c - events of one rank become its nodes and items. */
#include "graph_internal.h"
#include "steps_internal.h"

static uint32_t slot_of(uint32_t group, uint32_t seq)
{
	return (group * UINT32_C(0x9e3779b1)) ^ (seq * UINT32_C(0x85ebca6b));
}

struct node *graph_node(const struct rank_work *w, uint32_t group, uint32_t seq)
{
	if (w->n_slots == 0)
		return NULL;
	for (uint32_t i = slot_of(group, seq);; i++) {
		uint32_t at = w->slots[i & (w->n_slots - 1)];

		if (at == 0)
			return NULL;
		if (w->nodes[at - 1].seq == seq && w->nodes[at - 1].group == group)
			return &w->nodes[at - 1];
	}
}

struct node *graph_launched(const struct rank_work *w, uint32_t launch)
{
	for (uint32_t i = 0; launch && i < w->n_nodes; i++)
		if (w->nodes[i].launch == launch && w->nodes[i].kind >= NODE_KERNEL)
			return &w->nodes[i];
	return NULL;
}

static void put_slot(struct rank_work *w, uint32_t index)
{
	const struct node *n = &w->nodes[index];
	uint32_t i = slot_of(n->group, n->seq);

	while (w->slots[i & (w->n_slots - 1)])
		i++;
	w->slots[i & (w->n_slots - 1)] = (uint16_t)(index + 1);
}

/* A launch that proves to be a call is put twice, so slots are a third full at most. */
static bool reach_node(struct rank_work *w)
{
	uint32_t want = w->n_nodes_alloc ? 2 * w->n_nodes_alloc : 16;
	struct node *grown;
	uint16_t *slots;

	if (w->n_nodes < w->n_nodes_alloc)
		return true;
	grown = realloc(w->nodes, want * sizeof *grown);
	if (!grown)
		return false;
	w->nodes = grown;
	slots = calloc(4 * (size_t)want, sizeof *slots);
	if (!slots)
		return false;
	free(w->slots);
	w->slots = slots;
	w->n_slots = 4 * want;
	w->n_nodes_alloc = want;
	for (uint32_t i = 0; i < w->n_nodes; i++)
		put_slot(w, i);
	return true;
}

static int add_node(struct graph *g, struct rank_work *w, uint32_t group, uint32_t seq,
		    struct node **ret)
{
	*ret = NULL;
	if (w->n_nodes == GRAPH_MAX_RANK_NODES - 1 || g->n_nodes >= GRAPH_MAX_NODES) {
		w->cut = true;
		return 0;
	}
	if (!reach_node(w))
		return -ENOMEM;
	*ret = &w->nodes[w->n_nodes];
	**ret = (struct node){ .launch_ns = FACT_NONE, .begin_ns = FACT_NONE, .end_ns = FACT_NONE,
			       .group = group, .seq = seq };
	put_slot(w, w->n_nodes);
	w->n_nodes++;
	g->n_nodes++;
	w->n_pending++;
	g->last_step->n_pending++;
	return 0;
}

static void settle(struct graph *g, struct rank_work *w)
{
	w->n_pending--;
	g->last_step->n_pending--;
}

static int find_node(struct graph *g, struct rank_work *w, uint32_t group, uint32_t seq,
		     struct node **ret)
{
	*ret = graph_node(w, group, seq);
	return *ret ? 0 : add_node(g, w, group, seq, ret);
}

static uint32_t text_of(const struct proc *p, uint32_t name)
{
	return name < p->n_names ? p->names[name].text : 0;
}

static int on_launch(struct graph *g, struct rank_work *w, const struct proc *p,
		     const struct event *ev)
{
	struct node *n;
	int r = find_node(g, w, 0, event_low(ev->a), &n);

	if (r < 0 || !n)
		return r;
	n->launch = event_low(ev->a);
	n->launch_ns = (int64_t)ev->tick;
	n->stream = ev->flags;
	n->name = text_of(p, ev->name);
	return 0;
}

static void end_node(struct graph *g, struct rank_work *w, struct node *n, int64_t at_ns)
{
	if (n->end_ns == FACT_NONE) {
		settle(g, w);
		g->last_step->n_on_host -= !(n->flags & NODE_DEVICE);
	}
	n->end_ns = at_ns;
	if (n->begin_ns == FACT_NONE || n->begin_ns > at_ns)
		n->begin_ns = at_ns;
	if ((n->flags & NODE_DEVICE) && at_ns > w->device_ns)
		w->device_ns = at_ns;
}

static int on_kernel(struct graph *g, struct rank_work *w, const struct proc *p,
		     const struct event *ev)
{
	struct node *n;
	int r = find_node(g, w, 0, event_low(ev->a), &n);

	if (r < 0 || !n)
		return r;
	n->kind = NODE_KERNEL;
	n->flags |= NODE_DEVICE;
	n->launch = event_low(ev->a);
	n->stream = ev->flags;
	if (ev->name)
		n->name = text_of(p, ev->name);
	if (ev->kind == EVENT_KERNEL_END)
		end_node(g, w, n, (int64_t)ev->tick);
	else
		n->begin_ns = (int64_t)ev->tick;
	return 0;
}

/* The group's key; 0 when it has no name. Negative errno. */
static int64_t key_of(struct graph *g, struct proc *p, const struct event *ev)
{
	unsigned op = ev->flags >> 8;
	uint32_t group, member, text = text_of(p, ev->name);
	int r;

	if (op == OP_SEND || op == OP_RECV)
		return text ? (int64_t)(GRAPH_MESSAGE | text) : 0;
	r = steps_find_group(g->steps, p, ev->name, &group, &member);
	if (r == 0)
		return (int64_t)group + 1;
	return r < 0 && r != -E2BIG ? r : 0;
}

static int on_call(struct graph *g, struct rank_work *w, struct proc *p, const struct event *ev)
{
	uint32_t n_before = w->n_nodes;
	int64_t key = key_of(g, p, ev);
	struct node *n;
	int r;

	if (key <= 0)
		return (int)key;
	r = find_node(g, w, (uint32_t)key, event_low(ev->a), &n);
	if (r < 0 || !n)
		return r;
	g->last_step->n_on_host += w->n_nodes != n_before;
	n->kind = key & GRAPH_MESSAGE ? NODE_MESSAGE : NODE_CALL;
	n->op = (uint8_t)(ev->flags >> 8);
	if (ev->kind == EVENT_COLL_END) {
		end_node(g, w, n, (int64_t)ev->tick);
		return 0;
	}
	n->begin_ns = (int64_t)ev->tick;
	if (ev->b & EVENT_COLL_SYNC_BIT)
		n->flags |= NODE_BLOCKS;
	return 0;
}

/* The launch proves to be a call. Of several in one launch each has a node. */
static int on_submit(struct graph *g, struct rank_work *w, struct proc *p, const struct event *ev)
{
	uint32_t launch = (uint32_t)ev->b, index;
	int64_t key = key_of(g, p, ev);
	struct node *n, *l;
	bool heard;
	int r = 0;

	if (key <= 0)
		return (int)key;
	l = graph_node(w, 0, launch);
	n = graph_node(w, (uint32_t)key, event_low(ev->a));
	heard = n != NULL;
	if (!n && l && l->kind == NODE_LAUNCH) {
		index = (uint32_t)(l - w->nodes);
		l->group = (uint32_t)key;
		l->seq = event_low(ev->a);
		put_slot(w, index);
		n = l;
	} else if (!n) {
		r = add_node(g, w, (uint32_t)key, event_low(ev->a), &n);
		if (r < 0 || !n)
			return r;
		l = w->n_nodes > 1 && n[-1].launch == launch ? n - 1 : NULL;
		n->launch_ns = l ? l->launch_ns : FACT_NONE;
		n->stream = l ? l->stream : 0;
	} else if (l && l->kind == NODE_LAUNCH) { /* it was heard of on the device first */
		n->launch_ns = l->launch_ns;
		n->stream = l->stream;
		n->name = l->name;
		l->kind = NODE_DEAD;
		settle(g, w);
	}
	if (heard && !(n->flags & NODE_DEVICE) && n->end_ns == FACT_NONE)
		g->last_step->n_on_host--;
	n->launch = launch;
	n->kind = key & GRAPH_MESSAGE ? NODE_MESSAGE : NODE_CALL;
	n->op = (uint8_t)(ev->flags >> 8);
	n->flags |= NODE_DEVICE;
	if (n->end_ns != FACT_NONE && n->end_ns > w->device_ns)
		w->device_ns = n->end_ns;
	return 0;
}

/* ---- what the host is in ---- */

static int add_item(struct rank_work *w, const struct item *v)
{
	if (w->n_items == w->n_items_alloc) {
		uint32_t want = w->n_items_alloc ? 2 * w->n_items_alloc : 16;
		struct item *grown;

		if (want > GRAPH_MAX_RANK_NODES) {
			w->cut = true;
			return 0;
		}
		grown = realloc(w->items, want * sizeof *grown);
		if (!grown)
			return -ENOMEM;
		w->items = grown;
		w->n_items_alloc = want;
	}
	w->items[w->n_items++] = *v;
	return 0;
}

static int on_item(struct rank_work *w, uint32_t ring, const struct event *ev,
		   enum item_label label, uint32_t what, bool begin)
{
	if (begin)
		return add_item(w, &(struct item){ .begin_ns = (int64_t)ev->tick,
						   .end_ns = FACT_NONE, .what = what, .key = ring,
						   .label = (uint8_t)label });
	for (uint32_t i = w->n_items; i-- > 0;) {
		struct item *v = &w->items[i];

		if (v->label == label && v->key == ring && v->end_ns == FACT_NONE && v->what == what) {
			v->end_ns = (int64_t)ev->tick;
			return 0;
		}
	}
	return 0;
}

static int on_bucket(struct graph *g, struct rank_work *w, struct proc *p, const struct event *ev)
{
	uint32_t key = (uint32_t)ev->flags << 16 | (event_low(ev->a) & 0xffff), group, member;

	if (ev->kind == EVENT_BUCKET_READY)
		return 0;
	if (ev->kind == EVENT_BUCKET_SUBMIT) {
		int r = steps_find_group(g->steps, p, ev->name, &group, &member);

		if (r < 0)
			return r == -E2BIG ? 0 : r;
		return add_item(w, &(struct item){ .begin_ns = (int64_t)ev->tick,
						   .end_ns = FACT_NONE,
						   .what = r == 0 ? group + 1 : 0,
						   .seq = (uint32_t)ev->b, .key = key,
						   .label = IN_BUCKET });
	}
	for (uint32_t i = w->n_items; i-- > 0;)
		if (w->items[i].label == IN_BUCKET && w->items[i].key == key) {
			w->items[i].end_ns = (int64_t)ev->tick;
			break;
		}
	return 0;
}

static int on_wait(struct rank_work *w, const struct event *ev)
{
	if (w->n_waits == w->n_waits_alloc) {
		uint32_t want = w->n_waits_alloc ? 2 * w->n_waits_alloc : 16;
		struct stream_wait *grown;

		if (want > 4 * GRAPH_MAX_RANK_NODES) {
			w->cut = true;
			return 0;
		}
		grown = realloc(w->waits, want * sizeof *grown);
		if (!grown)
			return -ENOMEM;
		w->waits = grown;
		w->n_waits_alloc = want;
	}
	w->waits[w->n_waits++] = (struct stream_wait){ event_low(ev->a), (uint32_t)ev->b };
	return 0;
}

int graph_event(struct graph *g, struct proc *p, uint32_t ring, const struct event *ev)
{
	struct rank_work *w;
	int r;

	if (ev->kind < EVENT_PHASE_BEGIN) /* steps knows of begins and ends */
		return 0;
	while (g->n_nodes >= GRAPH_MAX_NODES && g->base + 1 < g->next_step)
		if ((r = graph_close_oldest(g)) < 0)
			return r;
	r = graph_work(g, p, event_step(ev->a), &w);
	if (r < 0 || !w)
		return r;
	switch (ev->kind) {
	case EVENT_PHASE_BEGIN:
	case EVENT_PHASE_END:
		return on_item(w, ring, ev, IN_PHASE, ev->flags, ev->kind == EVENT_PHASE_BEGIN);
	case EVENT_WORK_BEGIN:
	case EVENT_WORK_END:
		return on_item(w, ring, ev, IN_WORK, text_of(p, ev->name),
			       ev->kind == EVENT_WORK_BEGIN);
	case EVENT_HOST_WAIT_BEGIN:
	case EVENT_HOST_WAIT_END:
		return on_item(w, ring, ev, IN_WAIT, event_low(ev->a),
			       ev->kind == EVENT_HOST_WAIT_BEGIN);
	case EVENT_COLL_BEGIN:
	case EVENT_COLL_END:
		return on_call(g, w, p, ev);
	case EVENT_BUCKET_READY:
	case EVENT_BUCKET_SUBMIT:
	case EVENT_BUCKET_REDUCED:
		return on_bucket(g, w, p, ev);
	case EVENT_LAUNCH:
		return on_launch(g, w, p, ev);
	case EVENT_KERNEL_BEGIN:
	case EVENT_KERNEL_END:
		return on_kernel(g, w, p, ev);
	case EVENT_STREAM_WAIT:
		return on_wait(w, ev);
	case EVENT_COLL_SUBMIT:
		return on_submit(g, w, p, ev);
	default:
		return 0;
	}
}
