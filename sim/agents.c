/* agents.c - the agents of a played case: hosts with clocks of their own, which
 * encode what their ranks' probes say.
 */
#include "sim_internal.h"

#include "../proto/chunk.h"
#include "../proto/shm.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_RANKS FRAME_MAX_PROCS /* of an agent, so that a hello holds them */
#define PARCEL_BYTES (FRAME_BATCH_BYTES / 2) /* leaves room for one more chunk and its names */
#define ANSWER_NS 15000
#define NAME_BYTES 16 /* of a name or a text beside its bytes */

static int64_t host_ns(const struct sim_agent *a, int64_t at_ns)
{
	return SIM_RAW0_NS + at_ns + a->offset_ns +
	       (int64_t)nearbyint((double)at_ns * a->drift_ppm / 1e6) +
	       (at_ns >= a->set_ns ? a->set_by_ns : 0);
}

/* ---- who is on which host, by which clock ---- */

static const char *host_of(const struct spec *s, uint32_t rank)
{
	for (uint32_t i = 0; i < s->n_hosts; i++)
		if (spec_has(&s->hosts[i].ranks, rank))
			return s->hosts[i].name;
	return "";
}

static const struct spec_clock *clock_of(const struct spec *s, uint32_t rank)
{
	static const struct spec_clock none;

	for (uint32_t i = 0; i < s->n_clocks; i++)
		if (s->clocks[i].rank == rank)
			return &s->clocks[i];
	return &none;
}

static bool add_rank(struct sim *s, struct sim_agent *a, uint32_t rank)
{
	if (a->n_ranks == a->n_ranks_alloc) {
		uint32_t want = a->n_ranks_alloc ? 2 * a->n_ranks_alloc : 8;
		uint32_t *grown = realloc(a->ranks, want * sizeof *grown);

		if (!grown) {
			s->no_memory = true;
			return false;
		}
		a->ranks = grown;
		a->n_ranks_alloc = want;
	}
	s->mouths[rank].agent = (uint32_t)(a - s->agents);
	s->mouths[rank].proc = a->n_ranks;
	a->ranks[a->n_ranks++] = rank;
	return true;
}

/* Ranks of one host with one clock have one agent, up to its size. */
static struct sim_agent *agent_for(struct sim *s, uint32_t rank)
{
	const struct spec_clock *c = clock_of(s->spec, rank);
	int64_t offset_ns = (int64_t)nearbyint(c->offset_us * 1000);
	int64_t set_ns = (int64_t)nearbyint(c->set_ms * 1e6);
	int64_t set_by_ns = (int64_t)nearbyint(c->set_by_us * 1000);
	const char *host = host_of(s->spec, rank);
	uint32_t clock = s->n_agents; /* the first agent with this clock */
	struct sim_agent *a;

	for (uint32_t i = s->n_agents; i-- > 0;) {
		a = &s->agents[i];
		if (a->host != host || a->offset_ns != offset_ns || a->drift_ppm != c->drift_ppm ||
		    a->set_ns != set_ns || a->set_by_ns != set_by_ns)
			continue;
		if (a->n_ranks < MAX_RANKS)
			return a;
		clock = i;
	}
	a = &s->agents[s->n_agents++];
	*a = (struct sim_agent){ .host = host, .offset_ns = offset_ns, .drift_ppm = c->drift_ppm,
				.set_ns = set_ns, .set_by_ns = set_by_ns };
	snprintf(a->boot_id, sizeof a->boot_id, "case-%u", clock);
	memcpy(a->id, &s->n_agents, sizeof s->n_agents);
	return a;
}

bool agents_make(struct sim *s)
{
	uint32_t world = s->spec->world, home = 0;

	s->mouths = calloc(world, sizeof *s->mouths);
	s->agents = calloc(world, sizeof *s->agents);
	if (!s->mouths || !s->agents) {
		s->no_memory = true;
		return false;
	}
	for (uint32_t rank = 0; rank < world; rank++) {
		if (!add_rank(s, agent_for(s, rank), rank))
			return false;
		if (tale_tell(&s->mouths[rank].tale, s->play, rank) != 0) {
			s->no_memory = true;
			return false;
		}
		for (uint32_t i = 0; i < rank; i++)
			s->mouths[rank].local_rank +=
				s->agents[s->mouths[i].agent].host ==
				s->agents[s->mouths[rank].agent].host;
	}
	while (home < s->n_agents && (s->agents[home].offset_ns || s->agents[home].drift_ppm != 0 ||
				      s->agents[home].set_by_ns))
		home++;
	for (uint32_t i = home; i < s->n_agents; i++)
		s->agents[i].same_clock =
			strcmp(s->agents[i].boot_id, s->agents[home].boot_id) == 0;
	return true;
}

void agents_free(struct sim *s)
{
	for (uint32_t i = 0; s->mouths && i < s->spec->world; i++)
		tale_fini(&s->mouths[i].tale);
	for (uint32_t i = 0; s->agents && i < s->n_agents; i++)
		free(s->agents[i].ranks);
	free(s->mouths);
	free(s->agents);
}

/* ---- what agents say ---- */

static struct frame_proc proc_of(const struct sim *s, uint32_t rank, bool left)
{
	const struct mouth *m = &s->mouths[rank];
	const struct sim_agent *a = &s->agents[m->agent];

	return (struct frame_proc){
		.proc = m->proc, .unique = rank + 1, .started_ns = host_ns(a, 0), .pid = 1000 + rank,
		.rank = (int32_t)rank, .local_rank = (int32_t)m->local_rank,
		.world_size = (int32_t)s->spec->world, .level = LEVEL_GPU,
		.state = left ? PROC_LEFT : PROC_ALIVE,
		.state_at_ns = host_ns(a, left ? m->tale.left_ns : 0),
		.exit_code = left ? 0 : -1, .signal = -1,
	};
}

bool agents_hello(struct sim *s)
{
	struct frame_proc procs[MAX_RANKS];

	for (uint32_t i = 0; i < s->n_agents; i++) {
		struct sim_agent *a = &s->agents[i];
		struct frame f = { .type = FRAME_HELLO, .protocol = FRAME_PROTOCOL };

		for (uint32_t k = 0; k < a->n_ranks; k++)
			procs[k] = proc_of(s, a->ranks[k], false);
		f.hello = (struct frame_hello){
			.protocol = FRAME_PROTOCOL, .run_id = s->spec->id, .host = a->host,
			.boot_id = a->same_clock ? "case" : a->boot_id, .token = "",
			.version = SYNCLINE_VERSION, .time_ns_inode = 1,
			.raw_ns = host_ns(a, s->now_ns),
			.real_ns = host_ns(a, s->now_ns) - SIM_RAW0_NS + SIM_REAL0_NS,
			.n_procs = a->n_ranks, .procs = procs,
		};
		memcpy(f.hello.agent_id, a->id, sizeof a->id);
		if (!sim_send(s, a, &f, 0))
			return false;
		if (!a->stream)
			return sim_fail(s, "the collector gave the agent on %s no stream", a->host);
	}
	return true;
}

static uint64_t draw(struct sim *s) /* splitmix64 */
{
	uint64_t z = s->rng += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

/* One way of a message: some tens of us, now and then much more. */
static int64_t draw_way_ns(struct sim *s)
{
	int64_t ns = 25000 + (int64_t)(draw(s) % 20000);

	return draw(s) % 8 ? ns : ns + (int64_t)(draw(s) % 400000);
}

bool agents_beat(struct sim *s)
{
	for (uint32_t i = 0; i < s->n_agents && s->spec->probes; i++) {
		struct sim_agent *a = &s->agents[i];
		struct frame f = { .type = FRAME_HEARTBEAT, .protocol = FRAME_PROTOCOL };
		int64_t there_ns, back_ns;

		if (a->same_clock)
			continue;
		there_ns = draw_way_ns(s);
		back_ns = draw_way_ns(s);
		f.heartbeat = (struct frame_heartbeat){
			.stream = a->stream, .t0_ns = host_ns(a, s->now_ns),
			.real_ns = host_ns(a, s->now_ns) - SIM_RAW0_NS + SIM_REAL0_NS,
			.last = a->last,
		};
		a->open.t0_ns = f.heartbeat.t0_ns;
		a->open.t3_ns = host_ns(a, s->now_ns + there_ns + ANSWER_NS + back_ns);
		if (!sim_send(s, a, &f, there_ns))
			return false;
	}
	return true;
}

void agents_answer(struct sim *s, struct sim_agent *a, const struct frame *f)
{
	switch (f->type) {
	case FRAME_WELCOME:
		a->stream = f->welcome.stream;
		break;
	case FRAME_BEAT:
		a->last = a->open;
		a->last.t1_ns = f->beat.t1_ns;
		a->last.t2_ns = f->beat.t2_ns;
		break;
	case FRAME_ACK:
		break;
	case FRAME_REFUSE:
		sim_fail(s, "the collector refuses the agent on %s: %s", a->host, f->refuse.text);
		break;
	case FRAME_HELLO:
	case FRAME_HEARTBEAT:
	case FRAME_BATCH:
	case FRAME_REHELLO:
		sim_fail(s, "the collector does not know the agent on %s", a->host);
		break;
	}
}

/* ---- batches ---- */

#define MAX_PARTS 2048 /* of each sort in one batch */

struct parcel {
	struct frame_proc procs[FRAME_MAX_PROCS];
	struct frame_name names[MAX_PARTS];
	struct frame_chunk chunks[MAX_PARTS];
	struct frame_text texts[MAX_PARTS];
	struct frame_gauge gauges[MAX_PARTS];
	uint32_t n_procs, n_names, n_chunks, n_texts, n_gauges;
	size_t n_bytes, n_chunk_bytes;
	unsigned char chunk_bytes[2 * FRAME_BATCH_BYTES];
};

static bool send_parcel(struct sim *s, struct sim_agent *a, struct parcel *v)
{
	struct frame f = { .type = FRAME_BATCH, .protocol = FRAME_PROTOCOL };
	bool fine = true;

	if (v->n_procs > 0) {
		f.batch = (struct frame_batch){
			.stream = a->stream, .seq = ++a->seq, .n_procs = v->n_procs,
			.n_names = v->n_names, .n_chunks = v->n_chunks, .n_texts = v->n_texts,
			.n_gauges = v->n_gauges, .procs = v->procs, .names = v->names,
			.chunks = v->chunks, .texts = v->texts, .gauges = v->gauges,
		};
		memcpy(f.batch.agent_id, a->id, sizeof a->id);
		fine = sim_send(s, a, &f, 0);
		s->result->n_batches++;
	}
	v->n_procs = v->n_names = v->n_chunks = v->n_texts = v->n_gauges = 0;
	v->n_bytes = v->n_chunk_bytes = 0;
	s->n_parcels++;
	return fine;
}

/* Room for one more part of that many bytes, and the process of it stated. */
static bool room_for(struct sim *s, struct sim_agent *a, struct parcel *v, uint32_t rank,
		     size_t n_bytes)
{
	struct mouth *m = &s->mouths[rank];
	bool full = v->n_names == MAX_PARTS || v->n_chunks == MAX_PARTS ||
		    v->n_texts == MAX_PARTS || v->n_gauges == MAX_PARTS;

	if ((full || v->n_bytes + n_bytes > PARCEL_BYTES) && v->n_bytes > 0 &&
	    !send_parcel(s, a, v))
		return false;
	if (m->parcel != s->n_parcels + 1) {
		m->parcel = s->n_parcels + 1;
		v->procs[v->n_procs++] = proc_of(s, rank, false);
	}
	v->n_bytes += n_bytes;
	return true;
}

static bool pack_names(struct sim *s, struct sim_agent *a, struct parcel *v, uint32_t rank,
		       uint32_t up_to)
{
	struct mouth *m = &s->mouths[rank];

	for (; m->n_names < up_to; m->n_names++) {
		const char *text = m->tale.names[m->n_names];
		size_t n = strlen(text);

		if (!room_for(s, a, v, rank, n + NAME_BYTES))
			return false;
		v->names[v->n_names++] = (struct frame_name){ m->proc, m->n_names + 1, text,
							      (uint32_t)n };
	}
	return true;
}

static bool pack_chunk(struct sim *s, struct sim_agent *a, struct parcel *v, uint32_t rank,
		       unsigned ring, size_t n)
{
	struct mouth *m = &s->mouths[rank];
	struct event ev[CHUNK_EVENTS];
	unsigned char *out;
	uint32_t newest = 0;
	size_t n_bytes;

	for (size_t i = 0; i < n; i++) {
		ev[i] = m->tale.events[ring][m->at[ring] + i];
		ev[i].tick = (uint64_t)host_ns(a, (int64_t)ev[i].tick);
		newest = ev[i].name > newest ? ev[i].name : newest;
	}
	if (!pack_names(s, a, v, rank, newest) || !room_for(s, a, v, rank, CHUNK_MAX_BYTES(n)))
		return false;
	out = v->chunk_bytes + v->n_chunk_bytes;
	n_bytes = chunk_encode(ev, n, out);
	v->n_bytes -= CHUNK_MAX_BYTES(n) - n_bytes;
	v->n_chunk_bytes += n_bytes;
	v->chunks[v->n_chunks++] = (struct frame_chunk){ m->proc, ring, m->at[ring], out, n_bytes };
	m->at[ring] += n;
	s->result->n_events += n;
	return true;
}

static bool pack_events(struct sim *s, struct sim_agent *a, struct parcel *v, uint32_t rank,
			int64_t until_ns)
{
	struct mouth *m = &s->mouths[rank];

	for (unsigned ring = 0; ring < TALE_RINGS; ring++)
		for (;;) {
			const struct event *ev = m->tale.events[ring] + m->at[ring];
			size_t n = 0, n_left = m->tale.n_events[ring] - m->at[ring];

			while (n < n_left && n < CHUNK_EVENTS && (int64_t)ev[n].tick < until_ns)
				n++;
			if (n == 0)
				break;
			if (!pack_chunk(s, a, v, rank, ring, n))
				return false;
		}
	return true;
}

static bool pack_rest(struct sim *s, struct sim_agent *a, struct parcel *v, uint32_t rank,
		      int64_t until_ns)
{
	struct mouth *m = &s->mouths[rank];

	for (; m->n_texts < m->tale.n_texts && m->tale.texts[m->n_texts].at_ns < until_ns;
	     m->n_texts++) {
		const struct tale_text *t = &m->tale.texts[m->n_texts];
		size_t n = strlen(t->text);

		if (!room_for(s, a, v, rank, n + NAME_BYTES))
			return false;
		v->texts[v->n_texts++] = (struct frame_text){ m->proc, t->kind, t->level,
							      host_ns(a, t->at_ns), t->text,
							      (uint32_t)n };
		s->result->n_texts++;
	}
	for (; m->n_gauges < m->tale.n_gauges && m->tale.gauges[m->n_gauges].at_ns < until_ns;
	     m->n_gauges++) {
		const struct tale_gauge *g = &m->tale.gauges[m->n_gauges];

		if (!room_for(s, a, v, rank, strlen(g->name) + NAME_BYTES))
			return false;
		v->gauges[v->n_gauges++] = (struct frame_gauge){ m->proc, host_ns(a, g->at_ns),
								 g->name, g->value };
		s->result->n_gauges++;
	}
	return true;
}

/* In a batch of its own behind everything that the rank said. */
static bool pack_end(struct sim *s, struct sim_agent *a, struct parcel *v, uint32_t rank,
		     int64_t until_ns)
{
	struct mouth *m = &s->mouths[rank];

	if (m->left || m->tale.left_ns >= until_ns)
		return true;
	if (v->n_procs == FRAME_MAX_PROCS && !send_parcel(s, a, v))
		return false;
	v->procs[v->n_procs++] = proc_of(s, rank, true);
	m->left = true;
	s->result->n_left++;
	return true;
}

bool agents_ship(struct sim *s, int64_t until_ns)
{
	struct parcel *v = calloc(1, sizeof *v);
	bool fine = v != NULL;

	s->no_memory |= !v;
	for (uint32_t i = 0; fine && i < s->n_agents; i++) {
		struct sim_agent *a = &s->agents[i];

		for (uint32_t k = 0; fine && k < a->n_ranks; k++)
			fine = pack_events(s, a, v, a->ranks[k], until_ns) &&
			       pack_rest(s, a, v, a->ranks[k], until_ns);
		fine = fine && send_parcel(s, a, v);
		for (uint32_t k = 0; fine && k < a->n_ranks; k++)
			fine = pack_end(s, a, v, a->ranks[k], until_ns);
		fine = fine && send_parcel(s, a, v);
	}
	free(v);
	return fine;
}

int64_t agents_next_ns(const struct sim *s)
{
	int64_t next_ns = PLAY_NEVER;

	for (uint32_t rank = 0; rank < s->spec->world; rank++) {
		const struct mouth *m = &s->mouths[rank];
		const struct tale *t = &m->tale;
		int64_t at[] = { PLAY_NEVER, PLAY_NEVER, PLAY_NEVER, PLAY_NEVER, PLAY_NEVER };

		for (unsigned ring = 0; ring < TALE_RINGS; ring++)
			if (m->at[ring] < t->n_events[ring])
				at[ring] = (int64_t)t->events[ring][m->at[ring]].tick;
		if (m->n_texts < t->n_texts)
			at[2] = t->texts[m->n_texts].at_ns;
		if (m->n_gauges < t->n_gauges)
			at[3] = t->gauges[m->n_gauges].at_ns;
		if (!m->left)
			at[4] = t->left_ns;
		for (size_t i = 0; i < sizeof at / sizeof *at; i++)
			next_ns = at[i] < next_ns ? at[i] : next_ns;
	}
	return next_ns;
}
