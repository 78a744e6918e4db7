/* resume.c - after a restart: what the file knows becomes what we know, and the
 * core sees again what its open steps need.
 */
#include "ingest_internal.h"

#include <errno.h>
#include <string.h>

static int load_host(void *arg, const struct row_host *v)
{
	struct ingest *g = arg;
	struct host *h = peers_add_host(&g->peers);

	if (!h)
		return -ENOMEM;
	if (h->id != v->host)
		return STORE_DAMAGED;
	ingest_copy_id(h->name, sizeof h->name, v->name);
	ingest_copy_id(h->boot_id, sizeof h->boot_id, v->boot_id);
	h->time_ns_inode = v->time_ns_inode;
	h->same_clock = v->same_clock;
	h->offset_ns = v->offset_ns;
	if (core_host(g->core, h->id, h->same_clock, h->offset_ns) != 0)
		return -ENOMEM;
	return core_host_name(g->core, h->id, h->name);
}

static int load_agent(void *arg, const struct row_agent *v)
{
	struct ingest *g = arg;
	struct agent *a = peers_add_agent(&g->peers, v->agent_id);

	if (!a)
		return -ENOMEM;
	if (a->id != v->agent || v->host >= g->peers.n_hosts)
		return STORE_DAMAGED;
	a->host = v->host;
	ingest_copy_id(a->version, sizeof a->version, v->version);
	a->n_given_up = v->n_given_up;
	a->cpu_ns = v->cpu_ns;
	a->rss_bytes = v->rss_bytes;
	return 0;
}

static int load_batches(void *arg, uint32_t agent, uint64_t lo, uint64_t hi)
{
	struct ingest *g = arg;
	struct range holder;
	bool merged;

	if (agent >= g->peers.n_agents || lo >= hi)
		return STORE_DAMAGED;
	g->peers.agents[agent]->next_seq = hi;
	return ranges_add(&g->peers.agents[agent]->seqs, lo, hi, &holder, &merged);
}

static int load_process(void *arg, const struct row_process *v)
{
	struct ingest *g = arg;
	struct process *p;

	if (v->host >= g->peers.n_hosts || v->agent >= g->peers.n_agents ||
	    v->rank >= FACT_MAX_RANKS)
		return STORE_DAMAGED;
	p = peers_add_process(&g->peers, v->host, v->unique);
	if (!p)
		return -ENOMEM;
	if (p->row.process != v->process)
		return STORE_DAMAGED;
	p->row = *v;
	g->n_gap += v->n_gap;
	g->n_dropped += v->n_dropped;
	g->n_text_dropped += v->n_text_dropped;
	g->n_names_dropped += v->n_names_dropped;
	ingest_learn_rank(g, p);
	return ingest_tell_process(g, p);
}

static int load_ring(void *arg, const struct row_ring *v)
{
	struct ingest *g = arg;
	struct ring *ring;
	struct range holder;
	bool merged;

	if (v->process >= g->peers.n_processes || v->ring >= SHM_MAX_RINGS || v->lo >= v->hi)
		return STORE_DAMAGED;
	ring = process_ring(g->peers.processes[v->process], v->ring);
	if (!ring)
		return -ENOMEM;
	g->n_events += v->hi - v->lo;
	return ranges_add(&ring->stored, v->lo, v->hi, &holder, &merged);
}

static int load_name(void *arg, const struct row_name *v)
{
	struct ingest *g = arg;
	int r;

	if (v->process >= g->peers.n_processes || v->id >= PROCESS_MAX_NAMES)
		return STORE_DAMAGED;
	r = process_note_name(g->peers.processes[v->process], v->id);
	return r < 0 ? r : core_name(g->core, v->process, v->id, v->text, strlen(v->text));
}

static int load_core_state(void *arg, const unsigned char *v, size_t n)
{
	struct ingest *g = arg;
	int r = core_load(g->core, v, n);

	return r == -EINVAL ? STORE_DAMAGED : r;
}

static int load_rank_step(void *arg, const struct fact_rank_step *v)
{
	struct ingest *g = arg;

	return core_restore_rank_steps(g->core, v, 1);
}

static int load_exchange(void *arg, const struct row_exchange *v)
{
	struct ingest *g = arg;
	int r = core_exchange(g->core, v->host, (host_time){ v->t0_ns }, (fleet_time){ v->t1_ns },
			      (fleet_time){ v->t2_ns }, (host_time){ v->t3_ns });

	return r < 0 ? r : 0;
}

static int load_snapshot(void *arg, const struct row_snapshot *v)
{
	struct ingest *g = arg;

	if (v->host >= g->peers.n_hosts)
		return STORE_DAMAGED;
	g->peers.hosts[v->host].snapshot = *v;
	g->peers.hosts[v->host].has_snapshot = true;
	g->peers.hosts[v->host].snapshot_agent = PEER_NONE;
	return 0;
}

static int load_chunk(void *arg, const struct row_chunk *v)
{
	struct ingest *g = arg;
	struct chunk_info info;
	size_t n;

	if (v->process >= g->peers.n_processes ||
	    chunk_peek(v->data, v->n_bytes, &info) != CHUNK_OK)
		return STORE_DAMAGED;
	if (!chunk_has_domain(&info))
		return 0;
	if (chunk_decode(v->data, v->n_bytes, g->decoded, CHUNK_MAX_EVENTS, &n) != CHUNK_OK)
		return STORE_DAMAGED;
	return core_events(g->core, v->process, v->ring, v->chunk, g->decoded, n);
}

int ingest_load(struct ingest *g, struct store *s)
{
	static const struct store_reader_fns before = {
		.host = load_host, .agent = load_agent, .batches = load_batches,
		.process = load_process, .ring = load_ring, .name = load_name,
		.core_state = load_core_state, .rank_step = load_rank_step, .exchange = load_exchange,
		.snapshot = load_snapshot, .chunk = load_chunk,
	};
	struct store_head head;
	int r = store_head(s, &head);

	if (r != 0)
		return r;
	if (!head.run.set)
		return 0;
	if (g->run_id[0] && strcmp(g->run_id, head.run.run_id) != 0)
		return INGEST_OUTCOME(INGEST_OTHER_RUN);
	ingest_copy_id(g->run_id, sizeof g->run_id, head.run.run_id);
	/* The time line goes on as it was while the clock does; after a reboot the
	 * wall clock is the only thing that both sides know. */
	if (ingest_same_clock(g, head.run.boot_id, head.run.time_ns_inode))
		g->fleet_minus_raw_ns = head.run.fleet_minus_raw_ns;
	g->run = head.run;
	g->next_chunk = head.last_chunk + 1;
	ingest_put_run(g);
	r = store_read(s, &before, g);
	for (uint32_t i = 0; i < g->peers.n_processes && r == 0; i++)
		if (g->peers.processes[i]->row.state != ROW_ALIVE)
			r = ingest_tell_state(g, g->peers.processes[i]);
	ingest_count_ranks(g, false);
	return r;
}
