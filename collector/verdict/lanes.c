#include "lanes.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#define MAX_LANES (1u << 17)

void lanes_fini(struct lanes *l)
{
	for (uint32_t i = 0; i < l->n; i++)
		free(l->v[i].laps);
	free(l->v);
}

static struct lane *lane_of(struct lanes *l, const struct proc *p)
{
	uint32_t index = (uint32_t)(p - l->roster->procs), n = l->n ? l->n : 16;
	struct lane *grown;

	if (index < l->n)
		return &l->v[index];
	while (n <= index)
		n *= 2;
	grown = n <= MAX_LANES ? realloc(l->v, n * sizeof *grown) : NULL;
	if (!grown)
		return NULL;
	memset(grown + l->n, 0, (n - l->n) * sizeof *grown);
	l->v = grown;
	l->n = n;
	return &l->v[index];
}

static void begin_lap(struct lane *v, uint32_t step, int64_t at_ns)
{
	v->now = (struct lap){ .step = step, .any = true, .begin_ns = at_ns, .end_ns = at_ns,
			       .first_ns = FACT_NONE, .last_ns = FACT_NONE };
	memset(v->pieces, 0, sizeof v->pieces);
}

/* How much like pieces differ among themselves. */
static void sum_up_pieces(const struct lane *v, struct lap *lap)
{
	double square = 0, sum = 0;
	uint32_t n = 0, n_free = 0;

	for (uint32_t i = 0; i < LANE_PIECES; i++) {
		const struct lane_piece *s = &v->pieces[i];

		if (s->n < 2)
			continue;
		square += s->square_ns2 - s->sum_ns * s->sum_ns / s->n;
		sum += s->sum_ns;
		n += s->n;
		n_free += s->n - 1;
	}
	lap->n_pieces = n;
	lap->piece_ns = n ? (int64_t)(sum / n) : 0;
	lap->spread_ns = n_free && square > 0 ? (int64_t)sqrt(square / n_free) : 0;
}

static int end_lap(struct lane *v)
{
	if (v->now.first_ns == FACT_NONE)
		return 0;
	if (!v->laps)
		v->laps = calloc(LANE_LAPS, sizeof *v->laps);
	if (!v->laps)
		return -ENOMEM;
	sum_up_pieces(v, &v->now);
	v->laps[v->n_laps++ % LANE_LAPS] = v->now;
	return 0;
}

static void sum_up(struct lane *v, int64_t at_ns)
{
	struct lane_sums *s = &v->now.all;
	int64_t ns = at_ns - v->at_ns;

	if (ns < 0) {
		v->now.disorder_ns -= ns;
		return;
	}
	if (v->device && v->n_work)
		s->work_ns += ns;
	else if (v->n_colls)
		s->coll_ns += ns;
	else if (v->n_messages)
		s->message_ns += ns;
	else if (v->n_work)
		s->work_ns += ns;
	else
		s->rest_ns += ns;
	v->at_ns = v->now.end_ns = at_ns;
}

/* 0 or -ENOMEM. Time until then belongs to what was under way; what comes is of that step. */
static int go_on(struct lane *v, int64_t at_ns, uint32_t step)
{
	int r = 0;

	if (!v->now.any) {
		begin_lap(v, step, at_ns);
		v->at_ns = at_ns;
	} else if (step != v->now.step && (v->now.step == EVENT_STEP_UNKNOWN || step > v->now.step) &&
		   step != EVENT_STEP_UNKNOWN) {
		int64_t end_ns = v->at_ns;

		r = end_lap(v);
		begin_lap(v, step, end_ns);
	}
	sum_up(v, at_ns);
	return r;
}

static int64_t busy_ns(const struct lane_sums *s)
{
	return s->work_ns + s->coll_ns;
}

static void add_piece(struct lane *v, uint64_t key, double ns)
{
	for (uint32_t i = 0; i < LANE_PIECES; i++) {
		struct lane_piece *s = &v->pieces[i];

		if (s->n > 0 && s->key != key)
			continue;
		s->key = key;
		s->n++;
		s->sum_ns += ns;
		s->square_ns2 += ns * ns;
		return;
	}
}

static struct lane_peer *peer_of(struct lap *lap, int32_t rank)
{
	for (uint32_t i = 0; i < lap->n_peers; i++)
		if (lap->peers[i].rank == rank)
			return &lap->peers[i];
	if (lap->n_peers == LANE_PEERS) {
		lap->many = true;
		return NULL;
	}
	lap->peers[lap->n_peers] = (struct lane_peer){ .rank = rank, .least_ns = INT64_MAX };
	return &lap->peers[lap->n_peers++];
}

static uint64_t direction_bit(const struct lane *v, const struct lane_peer *s, bool send)
{
	return UINT64_C(1) << (2 * (s ? s - v->now.peers : 0) + send);
}

static void count_message(struct lane *v, struct lane_peer *s, bool send)
{
	uint32_t *n = send ? &s->n_sent : &s->n_received;
	uint32_t *work = send ? &s->sent_work : &s->received_work;

	if (s->n_sent + s->n_received == 0)
		s->sends_first = send;
	else if (s->n_sent + s->n_received == 1 && *n == 0 && (v->exchange & direction_bit(v, s, !send)))
		s->both_first = true; /* an exchange, not a passing on */
	if (*n > 0 && *work == v->works)
		return;
	*work = v->works;
	(*n)++;
}

static void begin_exchange(struct lane *v, int64_t at_ns)
{
	struct lap *lap = &v->now;

	v->exchange = 0;
	v->exchange_ns = at_ns;
	v->before_ns = lap->last_ns == FACT_NONE ? 0 : busy_ns(&lap->all) - v->busy_ns;
	if (lap->first_ns == FACT_NONE) {
		lap->first_ns = at_ns;
		lap->at_first = lap->all;
	}
	lap->wait_inside_ns += lap->wait_open_ns;
	lap->wait_inside_ns2 += lap->wait_open_ns2;
	lap->wait_open_ns = 0;
	lap->wait_open_ns2 = 0;
}

static void end_exchange(struct lane *v, int64_t at_ns)
{
	const struct lane_sums *all = &v->now.all, *first = &v->now.at_first;

	v->now.last_ns = at_ns;
	v->now.inside = (struct lane_sums){ all->work_ns - first->work_ns,
					    all->coll_ns - first->coll_ns,
					    all->message_ns - first->message_ns,
					    all->rest_ns - first->rest_ns };
	if (v->before_ns > 0)
		add_piece(v, v->last_exchange << 32 | v->exchange, (double)v->before_ns);
	v->last_exchange = v->exchange;
	v->busy_ns = busy_ns(all);
	for (uint32_t i = 0; i < v->now.n_peers; i++) {
		struct lane_peer *s = &v->now.peers[i];

		if (s->n_sent != s->n_received || s->n_sent == s->n_flushed)
			continue;
		s->n_flushed = s->n_sent;
		v->now.n_flushes += s->sends_first;
	}
}

static void on_message(struct lanes *l, struct lane *v, const struct proc *p, const struct event *ev)
{
	uint32_t text = ev->name < p->n_names ? p->names[ev->name].text : 0;
	uint32_t i = text ? idmap_get(&l->messages->of_text, text) : IDMAP_NONE;
	const struct direction *d = i != IDMAP_NONE ? &l->messages->v[i] : NULL;
	int64_t at_ns = (int64_t)ev->tick;
	struct lane_peer *s;
	bool send;

	if (!d || (d->ranks[0] != p->rank && d->ranks[1] != p->rank))
		return;
	l->any = true;
	send = d->ranks[0] == p->rank;
	s = peer_of(&v->now, d->ranks[send]);
	if (ev->kind == EVENT_COLL_BEGIN) {
		if (v->n_messages++ == 0)
			begin_exchange(v, at_ns);
		v->exchange |= direction_bit(v, s, send);
		if (s)
			count_message(v, s, send);
	} else if (v->n_messages > 0 && --v->n_messages == 0) {
		if (s && at_ns - v->exchange_ns < s->least_ns)
			s->least_ns = at_ns - v->exchange_ns;
		end_exchange(v, at_ns);
	}
}

/* From now on it is the device that counts. */
static void has_device(struct lane *v)
{
	if (v->device)
		return;
	v->device = true;
	v->n_work = v->n_colls = v->n_messages = 0;
	v->now.any = false;
}

static int on_device(struct lanes *l, struct lane *v, const struct proc *p, const struct event *ev)
{
	unsigned op = ev->flags >> 8;
	uint32_t step = event_step(ev->a);
	int r = go_on(v, (int64_t)ev->tick, step == EVENT_STEP_UNKNOWN ? step : step + v->shift);

	if (ev->kind == EVENT_KERNEL_BEGIN || ev->kind == EVENT_PHASE_BEGIN) {
		v->works += v->n_work++ == 0;
	} else if (ev->kind == EVENT_KERNEL_END || ev->kind == EVENT_PHASE_END) {
		v->n_work -= v->n_work > 0;
	} else if (op == OP_SEND || op == OP_RECV) {
		on_message(l, v, p, ev);
	} else if (ev->kind == EVENT_COLL_BEGIN) {
		v->n_colls++;
	} else {
		v->n_colls -= v->n_colls > 0;
	}
	return r;
}

int lanes_event(struct lanes *l, const struct proc *p, const struct event *ev)
{
	struct lane *v = lane_of(l, p);

	if (!v)
		return p - l->roster->procs < MAX_LANES ? -ENOMEM : 0;
	v->life = p->life;
	v->rank = p->rank;
	switch (ev->kind) {
	case EVENT_STEP_BEGIN:
		v->shift = p->cur_step == EVENT_STEP_UNKNOWN ? 0 : p->cur_step - event_step(ev->a);
		return 0;
	case EVENT_LAUNCH:
	case EVENT_COLL_SUBMIT:
		has_device(v);
		return 0;
	case EVENT_KERNEL_BEGIN:
	case EVENT_KERNEL_END:
		has_device(v);
		return on_device(l, v, p, ev);
	case EVENT_PHASE_BEGIN:
	case EVENT_PHASE_END:
		return v->device || (ev->flags != PHASE_FORWARD && ev->flags != PHASE_BACKWARD &&
				     ev->flags != PHASE_OPTIMIZER) ? 0 : on_device(l, v, p, ev);
	case EVENT_COLL_BEGIN:
	case EVENT_COLL_END:
		return on_device(l, v, p, ev);
	default:
		return 0;
	}
}

const struct lap *lanes_lap(const struct lane *v, uint32_t step, bool finishing)
{
	if (finishing && v->now.any && v->now.step == step && v->now.first_ns != FACT_NONE)
		return &v->now;
	for (uint64_t i = v->n_laps; i > 0 && v->n_laps - i < LANE_LAPS; i--)
		if (v->laps[(i - 1) % LANE_LAPS].step == step)
			return &v->laps[(i - 1) % LANE_LAPS];
	return NULL;
}

/* The one in which it entered then. */
static struct lap *lap_at(struct lane *v, int64_t at_ns)
{
	if (v->now.any && at_ns >= v->now.begin_ns)
		return &v->now;
	for (uint64_t i = v->n_laps; i > 0 && v->n_laps - i < LANE_LAPS; i--)
		if (at_ns >= v->laps[(i - 1) % LANE_LAPS].begin_ns)
			return &v->laps[(i - 1) % LANE_LAPS];
	return NULL;
}

static void add_wait(struct lane *v, const struct arrival *a, int64_t wait_ns)
{
	struct lap *lap = lap_at(v, a->enter_ns);

	if (!lap)
		return;
	lap->wait_ns += wait_ns;
	if (lap->first_ns == FACT_NONE || a->exit_ns <= lap->first_ns)
		return;
	if (a->exit_ns <= lap->last_ns) {
		lap->wait_inside_ns += wait_ns;
		lap->wait_inside_ns2 += (double)wait_ns * (double)wait_ns;
	} else if (lap == &v->now) {
		lap->wait_open_ns += wait_ns;
		lap->wait_open_ns2 += (double)wait_ns * (double)wait_ns;
	}
}

/* Of all waits in the newest life. */
static void note_longest(struct lanes *l, const struct lane_wait *w, uint32_t life)
{
	if (life > l->life) {
		l->life = life;
		l->longest = (struct lane_wait){ 0 };
	}
	if (life == l->life && w->wait_ns > l->longest.wait_ns)
		l->longest = *w;
}

void lanes_call(struct lanes *l, const struct match *m, uint32_t group, const struct coll *c,
		const struct lateness *late, const struct lateness_places *places)
{
	const struct group *g = &m->groups[group];

	if (!l->any || !late->all_here)
		return;
	for (uint32_t i = 0; i < c->n_alloc && i < g->n_members; i++) {
		const struct arrival *a = &c->arrivals[i];
		int64_t wait_ns = lateness_wait_ns(late, places, i, a);

		if (wait_ns <= 0 || a->proc >= l->n)
			continue;
		add_wait(&l->v[a->proc], a, wait_ns);
		note_longest(l, &(struct lane_wait){
				     .group = group, .step = c->step, .seq = c->seq, .wait_ns = wait_ns,
				     .transfer_ns = a->exit_ns - a->enter_ns - wait_ns,
				     .rank = g->ranks[i], .last_rank = late->v[0].rank },
			     l->roster->procs[a->proc].life);
	}
}
