/* procs.c - processes as agents tell of them: checked, learnt, told to the core;
 * and what they say of the run, who lives and whether it has ended.
 */
#include "ingest_internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define LIVE_CLAIM_NS (10 * SECOND_NS) /* an agent silent for longer holds no rank */

/* --- the run: who lives, has it ended ------------------------------------ */

static void note_change(struct ingest *g, int32_t rank, enum row_state state)
{
	if (g->n_changes < sizeof g->changes / sizeof *g->changes)
		g->changes[g->n_changes++] = (struct ingest_rank_change){ rank, state };
}

size_t ingest_take_changes(struct ingest *g, struct ingest_rank_change *out, size_t max)
{
	size_t n = g->n_changes < max ? g->n_changes : max;

	memcpy(out, g->changes, n * sizeof *out);
	g->n_changes = 0;
	return n;
}

void ingest_count_ranks(struct ingest *g, bool told)
{
	uint32_t n_alive = 0, n_seen = 0;
	int64_t ended = FACT_NONE;

	for (int32_t rank = 0; rank <= g->peers.max_rank; rank++) {
		const struct process *p = peers_rank(&g->peers, rank);
		struct fleet_point at;

		if (!p)
			continue;
		n_seen++;
		n_alive += p->row.state == ROW_ALIVE;
		ingest_place(g, p->row.host, p->row.state_at_ns, &at);
		if (p->row.state != ROW_ALIVE && (ended == FACT_NONE || at.at.ns > ended))
			ended = at.at.ns;
	}
	g->n_ranks_alive = n_alive;
	g->n_ranks_seen = n_seen;
	if (n_alive > 0 || n_seen == 0)
		ended = FACT_NONE;
	if (told && ended != g->run.ended_ns) {
		g->run.ended_ns = ended;
		ingest_put_run(g);
	}
}

static void note_world_size(struct ingest *g, struct agent *a, const struct process *p,
			    int64_t now_raw_ns)
{
	int32_t size = p->row.world_size;

	if (size <= 0 || size == g->run.world_size)
		return;
	if (g->run.world_size == 0 || p->row.restart_count > 0) {
		/* An elastic job may come back smaller or larger. */
		g->run.world_size = size;
		ingest_put_run(g);
		return;
	}
	snprintf(a->notice, sizeof a->notice,
		 "Rank %d says the world has %d ranks, others said %d. Check how it was started; its "
		 "events are kept.",
		 p->row.rank, size, g->run.world_size);
	ingest_notice(g, now_raw_ns, "%s", a->notice);
}

/* --- can it be ----------------------------------------------------------- */

/* Is this rank held by another process that is alive? Then two jobs speak under
 * one run id. */
static const struct process *claimed_by_other(struct ingest *g, const struct agent *a,
					      uint32_t host, const struct frame_proc *v,
					      int64_t now_raw_ns)
{
	const struct process *p = peers_rank(&g->peers, v->rank);
	const struct agent *other;

	if (!p || v->state != PROC_ALIVE || p->row.state != ROW_ALIVE ||
	    p->row.restart_count != v->restart_count ||
	    (p->row.host == host && p->row.unique == v->unique))
		return NULL;
	other = g->peers.agents[p->row.agent];
	/* The same agent knows its processes: it will say soon that the old one is gone. */
	if (other == a || other->seen_raw_ns == 0 ||
	    now_raw_ns - other->seen_raw_ns > LIVE_CLAIM_NS)
		return NULL;
	return p;
}

enum frame_refusal ingest_check_procs(struct ingest *g, const struct agent *a, uint32_t host,
				      const struct frame_proc *v, uint32_t n, int64_t now_raw_ns,
				      char *why, size_t n_why)
{
	for (uint32_t i = 0; i < n; i++) {
		const struct process *other;

		if (v[i].proc >= AGENT_MAX_PROCS || v[i].rank < -1 || v[i].rank >= FACT_MAX_RANKS ||
		    v[i].world_size < 0 || v[i].world_size > FACT_MAX_RANKS ||
		    v[i].state < PROC_ALIVE || v[i].state > PROC_DIED ||
		    !ingest_sane_raw(v[i].started_ns) || !ingest_sane_raw(v[i].state_at_ns)) {
			snprintf(why, n_why,
				 "Process %u has a rank, world size, state or time that cannot be (rank %d "
				 "of %d, state %u).",
				 v[i].proc, v[i].rank, v[i].world_size, v[i].state);
			return REFUSE_MALFORMED;
		}
		other = claimed_by_other(g, a, host, &v[i], now_raw_ns);
		if (other) {
			snprintf(why, n_why,
				 "Rank %d of run %s is alive on %s (pid %u) already: two jobs use one "
				 "run id. Start this one with another run id and its own collector.",
				 v[i].rank, g->run_id, g->peers.hosts[other->row.host].name,
				 other->row.pid);
			return REFUSE_RANK_TAKEN;
		}
	}
	return 0;
}

/* --- learning ------------------------------------------------------------ */

void ingest_put_process(struct ingest *g, struct process *p)
{
	struct row_process *row;

	if (p->job_serial == g->job->serial && p->job_row < g->job->processes.n &&
	    g->job->processes.v[p->job_row].process == p->row.process) {
		g->job->processes.v[p->job_row] = p->row;
		return;
	}
	row = JOB_PUSH(g->job, processes);
	if (!row) {
		ingest_fail(g, -ENOMEM);
		return;
	}
	*row = p->row;
	p->job_serial = g->job->serial;
	p->job_row = g->job->processes.n - 1;
}

static enum row_state row_state_of(uint32_t state)
{
	return state == PROC_LEFT ? ROW_LEFT : state == PROC_DIED ? ROW_DIED : ROW_ALIVE;
}

int ingest_tell_process(struct ingest *g, const struct process *p)
{
	return core_process(g->core, &(struct core_process){
					     .process = p->row.process,
					     .host = p->row.host,
					     .rank = p->row.rank,
					     .world_size = p->row.world_size,
					     .restart_count = p->row.restart_count,
					     .tick_error_ns = p->row.tick_error_ns,
				     });
}

int ingest_tell_state(struct ingest *g, const struct process *p)
{
	static const enum core_process_state states[] = {
		[ROW_ALIVE] = CORE_ALIVE, [ROW_LEFT] = CORE_LEFT, [ROW_DIED] = CORE_DIED
	};

	return core_process_state(g->core, p->row.process, states[p->row.state],
				  (host_time){ p->row.state_at_ns });
}

/* Counters of losses only grow; the guest's own events never had an index, so
 * they are not in the gaps. */
static void note_losses(struct ingest *g, struct process *p, const struct frame_proc *v)
{
	uint64_t n_new = v->n_dropped > p->row.n_dropped ? v->n_dropped - p->row.n_dropped : 0;

	if (n_new && core_lost(g->core, p->row.process, (host_time){ v->state_at_ns }, n_new) != 0)
		ingest_fail(g, -ENOMEM);
	g->n_dropped += n_new;
	p->row.n_dropped += n_new;
	if (v->n_text_dropped > p->row.n_text_dropped) {
		g->n_text_dropped += v->n_text_dropped - p->row.n_text_dropped;
		p->row.n_text_dropped = v->n_text_dropped;
	}
	if (v->n_names_dropped > p->row.n_names_dropped) {
		g->n_names_dropped += v->n_names_dropped - p->row.n_names_dropped;
		p->row.n_names_dropped = v->n_names_dropped;
	}
}

void ingest_learn_rank(struct ingest *g, const struct process *p)
{
	struct process *before = peers_rank(&g->peers, p->row.rank);

	if (p->row.rank < 0)
		return;
	/* A restarted rank is another process; the newest speaks for the rank. */
	if (before && (before->row.restart_count > p->row.restart_count ||
		       (before->row.restart_count == p->row.restart_count &&
			before->row.process > p->row.process)))
		return;
	g->peers.rank_of[p->row.rank] = p->row.process + 1;
	if (p->row.rank > g->peers.max_rank)
		g->peers.max_rank = p->row.rank;
}

void ingest_learn_process(struct ingest *g, struct agent *a, const struct frame_proc *v,
			  int64_t now_raw_ns)
{
	struct process *p = peers_find_process(&g->peers, a->host, v->unique);
	struct row_process before;
	bool is_new = !p, moved;

	if (!p)
		p = peers_add_process(&g->peers, a->host, v->unique);
	if (!p || agent_set_process(a, v->proc, p->row.process) != 0) {
		ingest_fail(g, -ENOMEM);
		return;
	}
	before = p->row;
	p->row.agent = a->id;
	p->row.pid = v->pid;
	p->row.host_started_ns = v->started_ns;
	p->row.tick_source = v->tick_source;
	p->row.tick_error_ns = v->tick_error_ns;
	if (v->rank >= 0) { /* an identity, once known, is not unlearnt */
		p->row.rank = v->rank;
		p->row.local_rank = v->local_rank;
		p->row.world_size = v->world_size;
		p->row.restart_count = v->restart_count;
	}
	moved = p->row.state == ROW_ALIVE && v->state != PROC_ALIVE;
	if (moved || (p->row.state == ROW_LEFT && v->state == PROC_DIED)) {
		p->row.state = row_state_of(v->state);
		p->row.state_at_ns = v->state_at_ns;
	}
	if (v->exit_code >= 0)
		p->row.exit_code = v->exit_code;
	if (v->signal >= 0)
		p->row.signal = v->signal;
	if ((is_new || before.rank != p->row.rank || before.restart_count != p->row.restart_count ||
	     before.world_size != p->row.world_size ||
	     before.tick_error_ns != p->row.tick_error_ns) &&
	    ingest_tell_process(g, p) != 0)
		ingest_fail(g, -ENOMEM);
	note_losses(g, p, v);
	if (moved && ingest_tell_state(g, p) != 0)
		ingest_fail(g, -ENOMEM);
	if (memcmp(&before, &p->row, sizeof before) == 0 && !is_new)
		return;
	ingest_put_process(g, p);
	if (is_new || before.rank != p->row.rank || before.state != p->row.state) {
		ingest_learn_rank(g, p);
		if (p->row.rank >= 0)
			note_change(g, p->row.rank, p->row.state);
		ingest_count_ranks(g, true);
	}
	if (p->row.rank >= 0 && before.world_size != p->row.world_size)
		note_world_size(g, a, p, now_raw_ns);
}
