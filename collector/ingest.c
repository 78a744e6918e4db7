#include "ingest_internal.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECOND_NS INT64_C(1000000000)
#define HOLD_NS (2 * SECOND_NS) /* for a batch with a smaller number */
#define HOLD_MAX 48		/* batches; they occupy the inbox's places */
#define CONNECTED_NS (3 * SECOND_NS) /* heartbeats come four times a second */
#define LIVE_CLAIM_NS (10 * SECOND_NS) /* an agent silent for longer holds no rank */
#define AGENT_ROW_NS (5 * SECOND_NS)
#define SAY_MAX_A_MINUTE 30

/* --- small things -------------------------------------------------------- */

int64_t ingest_fleet_ns(const struct ingest *g, int64_t raw_ns)
{
	return raw_ns + g->fleet_minus_raw_ns;
}

const char *ingest_run_id(const struct ingest *g)
{
	return g->run_id;
}

int ingest_fatal(const struct ingest *g)
{
	return g->fatal;
}

/* Half a turn's rows are in the job, the rest is not: nothing after this may be
 * acknowledged. The caller ends the process; agents keep what was not answered. */
static void fail(struct ingest *g, int r)
{
	if (g->fatal == 0)
		g->fatal = r;
}

static void copy_id(char *out, size_t n_out, const char *text)
{
	snprintf(out, n_out, "%s", text ? text : "");
}

/* An instant that a clock can show: 0 to 73 years, so that sums do not overflow. */
static bool sane_raw(int64_t ns)
{
	return ns >= 0 && ns < INT64_C(1) << 61;
}

/* In a time that does not depend on where two tokens differ. */
static bool same_token(const char *a, const char *b)
{
	unsigned char x[FRAME_MAX_ID + 1] = { 0 }, y[FRAME_MAX_ID + 1] = { 0 };
	unsigned differ = 0;

	memcpy(x, a, strnlen(a, FRAME_MAX_ID));
	memcpy(y, b, strnlen(b, FRAME_MAX_ID));
	for (size_t i = 0; i < sizeof x; i++)
		differ |= (unsigned)(x[i] ^ y[i]);
	return differ == 0;
}

void ingest_notice(struct ingest *g, int64_t now_raw_ns, const char *fmt, ...)
{
	struct row_log *row;
	char text[512];
	va_list ap;

	if (now_raw_ns - g->say_since_raw_ns > 60 * SECOND_NS) {
		g->say_since_raw_ns = now_raw_ns;
		g->n_said = 0;
	}
	if (g->n_said++ >= SAY_MAX_A_MINUTE)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	if (g->cfg.say)
		g->cfg.say(g->cfg.arg, text);
	row = JOB_PUSH(g->job, logs);
	if (!row)
		return; /* it was said; the catalogue has one line less */
	*row = (struct row_log){
		.at_ns = ingest_fleet_ns(g, now_raw_ns), .process = -1, .rank = -1,
		.kind = "notice", .level = 30, .logger = "syncline.collector",
		.text = job_utf8(g->job, text, strlen(text)),
	};
}

/* --- answers ------------------------------------------------------------- */

static void answer(struct ingest *g, struct inbox_msg *m, const struct frame *f)
{
	if (frame_pack(&g->out, f) != 0) {
		g->cfg.reply(g->cfg.arg, m, NULL, 0); /* the peer asks again */
		return;
	}
	g->cfg.reply(g->cfg.arg, m, g->out.data, g->out.n_bytes);
}

static void refuse(struct ingest *g, struct inbox_msg *m, enum frame_refusal code,
		   const char *sentence)
{
	answer(g, m, &(struct frame){ .type = FRAME_REFUSE, .protocol = FRAME_PROTOCOL,
				      .refuse = { .code = code, .text = sentence } });
}

static void rehello(struct ingest *g, struct inbox_msg *m, uint64_t stream)
{
	answer(g, m, &(struct frame){ .type = FRAME_REHELLO, .protocol = FRAME_PROTOCOL,
				      .rehello = { .stream = stream } });
}

static unsigned n_connected(const struct ingest *g, int64_t now_raw_ns)
{
	unsigned n = 0;

	for (uint32_t i = 0; i < g->peers.n_agents; i++) {
		const struct agent *a = g->peers.agents[i];

		n += a->seen_raw_ns != 0 && now_raw_ns - a->seen_raw_ns < CONNECTED_NS;
	}
	return n;
}

static uint32_t credit(struct ingest *g, int64_t now_raw_ns)
{
	unsigned n_free = g->cfg.n_free(g->cfg.arg), n = n_connected(g, now_raw_ns);

	if (g->stopping || g->cfg.trouble(g->cfg.arg) != 0)
		return 0;
	return n > 1 ? n_free / n + (n_free > 0) : n_free;
}

static const char *trouble_text(int trouble)
{
	switch (trouble) {
	case 0:
		return "";
	case STORE_FULL:
		return "The collector's disk is full: keep everything, it goes on when there is room.";
	default:
		return "The collector cannot write its catalogue now: keep everything, it tries again.";
	}
}

/* --- rows ---------------------------------------------------------------- */

static struct store_job *take_idle(struct ingest *g)
{
	struct store_job *j = g->idle;

	if (!j)
		return job_new();
	g->idle = j->next;
	j->next = NULL;
	return j;
}

static void put_process(struct ingest *g, struct process *p)
{
	struct row_process *row;

	if (p->job_serial == g->job->serial && p->job_row < g->job->processes.n &&
	    g->job->processes.v[p->job_row].process == p->row.process) {
		g->job->processes.v[p->job_row] = p->row;
		return;
	}
	row = JOB_PUSH(g->job, processes);
	if (!row) {
		fail(g, -ENOMEM);
		return;
	}
	*row = p->row;
	p->job_serial = g->job->serial;
	p->job_row = g->job->processes.n - 1;
}

static void put_agent(struct ingest *g, struct agent *a, int64_t now_raw_ns)
{
	struct row_agent *row = JOB_PUSH(g->job, agents);
	const char *version = job_utf8(g->job, a->version, strlen(a->version));

	if (!row || !version) {
		fail(g, -ENOMEM);
		return;
	}
	*row = (struct row_agent){
		.agent = a->id, .host = a->host, .version = version,
		.seen_ns = ingest_fleet_ns(g, now_raw_ns), .n_given_up = a->n_given_up,
		.cpu_ns = a->cpu_ns, .rss_bytes = a->rss_bytes,
	};
	memcpy(row->agent_id, a->agent_id, sizeof row->agent_id);
	a->told_raw_ns = now_raw_ns;
}

static void put_run(struct ingest *g)
{
	g->run.set = true;
	copy_id(g->run.run_id, sizeof g->run.run_id, g->run_id);
	g->run.fleet_minus_raw_ns = g->fleet_minus_raw_ns;
	copy_id(g->run.boot_id, sizeof g->run.boot_id, g->boot_id);
	g->run.time_ns_inode = g->cfg.time_ns_inode;
	g->job->run = g->run;
}

static void put_ring(struct ingest *g, struct process *p, uint32_t index, struct ring *ring,
		     const struct range *range, bool merged)
{
	struct row_ring *row;

	if (ring->job_serial == g->job->serial && ring->job_row < g->job->rings.n) {
		row = &g->job->rings.v[ring->job_row];
		if (row->process == p->row.process && row->ring == index && row->lo == range->lo) {
			row->hi = range->hi;
			row->merged |= merged;
			return;
		}
	}
	row = JOB_PUSH(g->job, rings);
	if (!row) {
		fail(g, -ENOMEM);
		return;
	}
	*row = (struct row_ring){ .process = p->row.process, .ring = index, .lo = range->lo,
				  .hi = range->hi, .merged = merged };
	ring->job_serial = g->job->serial;
	ring->job_row = g->job->rings.n - 1;
}

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

/* The newest process of each rank says whether the run goes on. */
static void count_ranks(struct ingest *g, bool told)
{
	uint32_t n_alive = 0, n_seen = 0;
	int64_t ended = FACT_NONE;

	for (int32_t rank = 0; rank <= g->peers.max_rank; rank++) {
		const struct process *p = peers_rank(&g->peers, rank);
		const struct host *h;
		int64_t at;

		if (!p)
			continue;
		n_seen++;
		n_alive += p->row.state == ROW_ALIVE;
		h = &g->peers.hosts[p->row.host];
		at = p->row.state_at_ns + h->offset_ns;
		if (p->row.state != ROW_ALIVE && (ended == FACT_NONE || at > ended))
			ended = at;
	}
	g->n_ranks_alive = n_alive;
	g->n_ranks_seen = n_seen;
	if (n_alive > 0 || n_seen == 0)
		ended = FACT_NONE;
	if (told && ended != g->run.ended_ns) {
		g->run.ended_ns = ended;
		put_run(g);
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
		put_run(g);
		return;
	}
	snprintf(a->notice, sizeof a->notice,
		 "Rank %d says the world has %d ranks, others said %d. Check how it was started; its "
		 "events are kept.",
		 p->row.rank, size, g->run.world_size);
	ingest_notice(g, now_raw_ns, "%s", a->notice);
}

/* --- hosts, agents, processes -------------------------------------------- */

static bool same_clock(const struct ingest *g, const char *boot_id, uint64_t time_ns_inode)
{
	return boot_id[0] && strcmp(boot_id, g->boot_id) == 0 && time_ns_inode != 0 &&
	       time_ns_inode == g->cfg.time_ns_inode;
}

static struct host *learn_host(struct ingest *g, const struct frame_hello *v)
{
	struct host *h = peers_find_host(&g->peers, v->host, v->boot_id, v->time_ns_inode);
	struct row_host *row;

	if (h)
		return h;
	h = peers_add_host(&g->peers);
	if (!h)
		return NULL;
	copy_id(h->name, sizeof h->name, v->host);
	copy_id(h->boot_id, sizeof h->boot_id, v->boot_id);
	h->time_ns_inode = v->time_ns_inode;
	h->same_clock = same_clock(g, h->boot_id, h->time_ns_inode);
	/* Until the first exchange: its wall clock is the best guess, for display. */
	h->offset_ns = h->same_clock ? g->fleet_minus_raw_ns : v->real_ns - v->raw_ns;
	row = JOB_PUSH(g->job, hosts);
	if (!row) {
		fail(g, -ENOMEM);
		return h;
	}
	*row = (struct row_host){
		.host = h->id, .name = job_utf8(g->job, h->name, strlen(h->name)),
		.boot_id = job_utf8(g->job, h->boot_id, strlen(h->boot_id)),
		.time_ns_inode = h->time_ns_inode, .same_clock = h->same_clock,
		.offset_ns = h->offset_ns,
	};
	if (core_host(g->core, h->id, h->same_clock, h->offset_ns) != 0 ||
	    core_host_name(g->core, h->id, h->name) != 0)
		fail(g, -ENOMEM);
	return h;
}

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

/* A sentence when the list cannot be taken, NULL when it can. */
static enum frame_refusal check_procs(struct ingest *g, const struct agent *a, uint32_t host,
				      const struct frame_proc *v, uint32_t n, int64_t now_raw_ns,
				      char *why, size_t n_why)
{
	for (uint32_t i = 0; i < n; i++) {
		const struct process *other;

		if (v[i].proc >= AGENT_MAX_PROCS || v[i].rank < -1 || v[i].rank >= FACT_MAX_RANKS ||
		    v[i].world_size < 0 || v[i].world_size > FACT_MAX_RANKS ||
		    v[i].state < PROC_ALIVE || v[i].state > PROC_DIED ||
		    !sane_raw(v[i].started_ns) || !sane_raw(v[i].state_at_ns)) {
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

static enum row_state row_state_of(uint32_t state)
{
	return state == PROC_LEFT ? ROW_LEFT : state == PROC_DIED ? ROW_DIED : ROW_ALIVE;
}

static int tell_core_process(struct ingest *g, const struct process *p)
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

static int tell_core_state(struct ingest *g, const struct process *p)
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
		fail(g, -ENOMEM);
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

static void learn_rank(struct ingest *g, const struct process *p)
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

static void learn_process(struct ingest *g, struct agent *a, const struct frame_proc *v,
			  int64_t now_raw_ns)
{
	struct process *p = peers_find_process(&g->peers, a->host, v->unique);
	struct row_process before;
	bool is_new = !p, moved;

	if (!p)
		p = peers_add_process(&g->peers, a->host, v->unique);
	if (!p || agent_set_process(a, v->proc, p->row.process) != 0) {
		fail(g, -ENOMEM);
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
	    tell_core_process(g, p) != 0)
		fail(g, -ENOMEM);
	note_losses(g, p, v);
	if (moved && tell_core_state(g, p) != 0)
		fail(g, -ENOMEM);
	if (memcmp(&before, &p->row, sizeof before) == 0 && !is_new)
		return;
	put_process(g, p);
	if (is_new || before.rank != p->row.rank || before.state != p->row.state) {
		learn_rank(g, p);
		if (p->row.rank >= 0)
			note_change(g, p->row.rank, p->row.state);
		count_ranks(g, true);
	}
	if (p->row.rank >= 0 && before.world_size != p->row.world_size)
		note_world_size(g, a, p, now_raw_ns);
}

/* --- hello and heartbeat ------------------------------------------------- */

static void on_hello(struct ingest *g, struct inbox_msg *m, const struct frame_hello *v,
		     int64_t now_raw_ns)
{
	char why[400];
	enum frame_refusal code;
	struct agent *a;
	struct host *h;
	bool is_new;

	if (g->token[0] && !same_token(g->token, v->token)) {
		ingest_notice(g, now_raw_ns,
			      v->token[0] ? "An agent on %s was refused: its token is wrong." :
					    "An agent on %s was refused: it brought no token.",
			      v->host);
		refuse(g, m, REFUSE_TOKEN,
		       v->token[0] ?
			       "The token is wrong. Give the agent the collector's token with "
			       "--token-file or SYNCLINE_TOKEN_FILE." :
			       "This collector wants a token. Give it to the agent with --token-file or "
			       "SYNCLINE_TOKEN_FILE.");
		return;
	}
	if (g->stopping) {
		refuse(g, m, REFUSE_BUSY, "The collector is shutting down. Keep everything and try again.");
		return;
	}
	if (!g->run_id[0]) {
		copy_id(g->run_id, sizeof g->run_id, v->run_id[0] ? v->run_id : "run");
		g->run.started_ns = ingest_fleet_ns(g, now_raw_ns);
		g->run.ended_ns = FACT_NONE;
		put_run(g);
	} else if (v->run_id[0] && strcmp(v->run_id, g->run_id) != 0) {
		snprintf(why, sizeof why,
			 "This collector keeps run %s and the agent belongs to run %.64s. Start a "
			 "collector of its own for that run, with another port and another --db.",
			 g->run_id, v->run_id);
		refuse(g, m, REFUSE_OTHER_RUN, why);
		return;
	}
	if (!sane_raw(v->raw_ns) || v->real_ns < 0 || v->real_ns >= INT64_C(1) << 62) {
		refuse(g, m, REFUSE_MALFORMED, "The agent's clocks show a time that cannot be.");
		return;
	}
	a = peers_find_agent(&g->peers, v->agent_id);
	h = learn_host(g, v);
	if (!h) {
		refuse(g, m, REFUSE_BUSY, "This collector has no room for another host.");
		return;
	}
	code = check_procs(g, a, h->id, v->procs, v->n_procs, now_raw_ns, why, sizeof why);
	if (code != 0) {
		ingest_notice(g, now_raw_ns, "An agent on %s was refused: %s", v->host, why);
		refuse(g, m, code, why);
		return;
	}
	is_new = !a;
	if (!a)
		a = peers_add_agent(&g->peers, v->agent_id);
	if (!a || (a->stream == 0 && agent_new_stream(a) != 0)) {
		refuse(g, m, REFUSE_BUSY, "This collector has no room for another agent.");
		return;
	}
	a->host = h->id;
	a->seen_raw_ns = now_raw_ns;
	copy_id(a->version, sizeof a->version, v->version);
	if (is_new || now_raw_ns - a->told_raw_ns > AGENT_ROW_NS)
		put_agent(g, a, now_raw_ns);
	for (uint32_t i = 0; i < v->n_procs; i++)
		learn_process(g, a, &v->procs[i], now_raw_ns);
	answer(g, m, &(struct frame){
			     .type = FRAME_WELCOME, .protocol = FRAME_PROTOCOL,
			     .welcome = { .stream = a->stream, .level = g->cfg.level,
					  .run_id = g->run_id, .version = SYNCLINE_VERSION,
					  .notice = a->notice } });
}

static void note_exchange(struct ingest *g, struct agent *a, const struct frame_exchange *x,
			  int64_t now_raw_ns)
{
	const struct host *h = &g->peers.hosts[a->host];
	struct row_exchange *row;
	bool ours = false;
	fleet_time t1, t2;

	if (h->same_clock || x->t1_ns == 0 || !sane_raw(x->t0_ns) || !sane_raw(x->t1_ns) ||
	    !sane_raw(x->t2_ns) || !sane_raw(x->t3_ns))
		return;
	/* Only what we said ourselves counts, once. */
	for (unsigned i = 0; i < AGENT_BEATS; i++)
		if (a->beats[i].t1_ns == x->t1_ns && a->beats[i].t2_ns == x->t2_ns) {
			ours = true;
			a->beats[i].t1_ns = 0;
		}
	if (!ours || x->t3_ns - x->t0_ns < x->t2_ns - x->t1_ns || x->t3_ns < x->t0_ns ||
	    x->t0_ns <= 0 || x->t3_ns - x->t0_ns > 60 * SECOND_NS)
		return;
	t1.ns = ingest_fleet_ns(g, x->t1_ns);
	t2.ns = ingest_fleet_ns(g, x->t2_ns);
	if (core_exchange(g->core, a->host, (host_time){ x->t0_ns }, t1, t2,
			  (host_time){ x->t3_ns }) < 0)
		fail(g, -ENOMEM);
	if (g->cfg.trouble(g->cfg.arg) != 0)
		return; /* nothing is written now, and another comes in a moment */
	row = JOB_PUSH(g->job, exchanges);
	if (row)
		*row = (struct row_exchange){ a->host, x->t0_ns, t1.ns, t2.ns, x->t3_ns };
	(void)now_raw_ns;
}

static void on_heartbeat(struct ingest *g, struct inbox_msg *m, const struct frame_heartbeat *v,
			 int64_t now_raw_ns)
{
	struct agent *a = peers_find_stream(&g->peers, v->stream);
	const char *notice;
	int trouble;

	if (!a) {
		rehello(g, m, v->stream);
		return;
	}
	a->seen_raw_ns = now_raw_ns;
	if (a->cpu_before_raw_ns == 0 || v->cpu_ns < a->cpu_before_ns) {
		a->cpu_before_raw_ns = now_raw_ns;
		a->cpu_before_ns = v->cpu_ns;
	} else if (now_raw_ns - a->cpu_before_raw_ns > SECOND_NS) {
		a->cpu_ratio = (double)(v->cpu_ns - a->cpu_before_ns) /
			       (double)(now_raw_ns - a->cpu_before_raw_ns);
		a->cpu_before_raw_ns = now_raw_ns;
		a->cpu_before_ns = v->cpu_ns;
	}
	a->cpu_ns = v->cpu_ns;
	a->rss_bytes = v->rss_bytes;
	if (v->n_spool_dropped > a->n_given_up)
		a->n_given_up = v->n_spool_dropped;
	note_exchange(g, a, &v->last, now_raw_ns);
	trouble = g->cfg.trouble(g->cfg.arg);
	if (trouble == 0 && now_raw_ns - a->told_raw_ns > AGENT_ROW_NS)
		put_agent(g, a, now_raw_ns);
	notice = trouble ? trouble_text(trouble) : a->notice;
	a->beats[a->next_beat].t1_ns = m->at_raw_ns;
	a->beats[a->next_beat].t2_ns = now_raw_ns;
	a->next_beat = (a->next_beat + 1) % AGENT_BEATS;
	answer(g, m, &(struct frame){
			     .type = FRAME_BEAT, .protocol = FRAME_PROTOCOL,
			     .beat = { .t1_ns = m->at_raw_ns, .t2_ns = now_raw_ns,
				       .level = g->cfg.level, .credit = credit(g, now_raw_ns),
				       .notice = notice } });
}

/* --- batches ------------------------------------------------------------- */

/* The process that a batch means by `proc`: known, or introduced by itself. */
static bool knows_proc(struct ingest *g, const struct agent *a, const struct frame_batch *b,
		       uint32_t proc)
{
	if (agent_process(&g->peers, a, proc))
		return true;
	for (uint32_t i = 0; i < b->n_procs; i++)
		if (b->procs[i].proc == proc)
			return true;
	return false;
}

/* Everything that could be wrong, before anything of it counts. 0 or a refusal. */
static enum frame_refusal check_batch(struct ingest *g, const struct agent *a,
				      const struct frame_batch *b, int64_t now_raw_ns, char *why,
				      size_t n_why)
{
	enum frame_refusal code;

	if (memcmp(a->agent_id, b->agent_id, sizeof a->agent_id) != 0 || b->seq == 0) {
		snprintf(why, n_why, "The batch does not belong to the agent of its stream.");
		return REFUSE_MALFORMED;
	}
	code = check_procs(g, a, a->host, b->procs, b->n_procs, now_raw_ns, why, n_why);
	if (code != 0)
		return code;
	for (uint32_t i = 0; i < b->n_names; i++)
		if (b->names[i].id == 0 || b->names[i].id >= PROCESS_MAX_NAMES ||
		    b->names[i].n_text > SHM_MAX_STRING || !knows_proc(g, a, b, b->names[i].proc)) {
			snprintf(why, n_why, "Name %u of process %u cannot be.", b->names[i].id,
				 b->names[i].proc);
			return REFUSE_MALFORMED;
		}
	for (uint32_t i = 0; i < b->n_texts; i++)
		if (b->texts[i].n_text > SHM_MAX_TEXT || !sane_raw(b->texts[i].at_ns) ||
		    !knows_proc(g, a, b, b->texts[i].proc)) {
			snprintf(why, n_why, "A text of process %u is too long, of nobody or at no time.",
				 b->texts[i].proc);
			return REFUSE_MALFORMED;
		}
	for (uint32_t i = 0; i < b->n_gauges; i++)
		if ((b->gauges[i].proc != FRAME_HOST_PROC &&
		     !knows_proc(g, a, b, b->gauges[i].proc)) ||
		    strlen(b->gauges[i].name) > FRAME_MAX_ID || !sane_raw(b->gauges[i].at_ns)) {
			snprintf(why, n_why, "A gauge is of nobody, at no time or its name is too long.");
			return REFUSE_MALFORMED;
		}
	for (uint32_t i = 0; i < b->n_chunks; i++) {
		const struct frame_chunk *c = &b->chunks[i];
		struct chunk_info info;
		enum chunk_outcome r = chunk_peek(c->data, c->n_bytes, &info);
		size_t n;

		if (r == CHUNK_OK && chunk_has_domain(&info))
			r = chunk_decode(c->data, c->n_bytes, g->decoded, CHUNK_MAX_EVENTS, &n);
		if (r != CHUNK_OK || info.n_events == 0 || c->ring >= SHM_MAX_RINGS ||
		    c->first > UINT64_MAX / 2 || info.n_bytes != c->n_bytes ||
		    !sane_raw(info.t_min_ns) || !sane_raw(info.t_max_ns) ||
		    !knows_proc(g, a, b, c->proc)) {
			snprintf(why, n_why, "Chunk %u of %u (process %u, ring %u) is damaged: %s.", i,
				 b->n_chunks, c->proc, c->ring,
				 r != CHUNK_OK ? chunk_outcome_text(r) : "its place, time or size cannot be");
			return REFUSE_MALFORMED;
		}
	}
	return 0;
}

static void note_newest(struct ingest *g, const struct process *p, int64_t t_ns)
{
	struct fleet_point at;

	if (core_map(g->core, p->row.host, (host_time){ t_ns }, &at) != 0)
		at.at.ns = t_ns + g->peers.hosts[p->row.host].offset_ns;
	if (at.at.ns > g->last_event_ns)
		g->last_event_ns = at.at.ns;
}

/* One run of events that is not stored yet: [lo, hi) of the chunk's indices. */
static void take_events(struct ingest *g, struct process *p, uint32_t index, struct ring *ring,
			const struct frame_chunk *c, const struct chunk_info *whole,
			const struct range *part)
{
	uint64_t end = ranges_end(&ring->stored), n_hole = 0;
	const struct event *events = g->decoded;
	const unsigned char *data = c->data;
	struct chunk_info info = *whole;
	struct row_chunk *row;
	struct range holder;
	bool merged, late = part->lo < end, cut = part->hi - part->lo < whole->n_events;
	size_t n = 0;

	if (chunk_has_domain(whole) || cut) {
		if (chunk_decode(c->data, c->n_bytes, g->decoded, CHUNK_MAX_EVENTS, &n) != CHUNK_OK) {
			/* Never checked, because no kind is ours: nothing of it can be cut out. */
			cut = false;
			late = true;
		}
	}
	if (cut) {
		unsigned char *piece;

		events += part->lo - c->first;
		n = (size_t)(part->hi - part->lo);
		piece = (unsigned char *)job_bytes(g->job, CHUNK_MAX_BYTES(n));
		if (!piece) {
			fail(g, -ENOMEM);
			return;
		}
		info.n_bytes = chunk_encode(events, n, piece);
		(void)chunk_peek(piece, info.n_bytes, &info); /* our own bytes */
		data = piece;
	}
	if (!late)
		n_hole = part->lo - end;
	if (ranges_add(&ring->stored, part->lo, part->hi, &holder, &merged) != 0) {
		fail(g, -ENOMEM);
		return;
	}
	row = JOB_PUSH(g->job, chunks);
	if (!row) {
		fail(g, -ENOMEM);
		return;
	}
	*row = (struct row_chunk){
		.chunk = g->next_chunk++, .process = p->row.process, .ring = index,
		.first = part->lo, .kinds = info.kinds, .n_events = info.n_events,
		.t_min_ns = info.t_min_ns, .t_max_ns = info.t_max_ns, .data = data,
		.n_bytes = info.n_bytes,
	};
	put_ring(g, p, index, ring, &holder, merged);
	g->n_events += info.n_events;
	if (n_hole) {
		p->row.n_gap += n_hole;
		g->n_gap += n_hole;
		put_process(g, p);
		if (core_lost(g->core, p->row.process, (host_time){ info.t_min_ns }, n_hole) != 0)
			fail(g, -ENOMEM);
	} else if (late) {
		/* It came after all. Stored; the analysis has gone on without it. */
		uint64_t n_back = part->hi - part->lo;

		n_back = n_back < p->row.n_gap ? n_back : p->row.n_gap;
		p->row.n_gap -= n_back;
		g->n_gap -= n_back;
		put_process(g, p);
	}
	if (!late && chunk_has_domain(&info) &&
	    core_events(g->core, p->row.process, index, row->chunk, events, n) != 0)
		fail(g, -ENOMEM);
	note_newest(g, p, info.t_max_ns);
}

static void take_chunk(struct ingest *g, struct process *p, const struct frame_chunk *c)
{
	struct ring *ring = process_ring(p, c->ring);
	struct chunk_info info;
	struct range part;

	if (!ring) {
		fail(g, -ENOMEM);
		return;
	}
	(void)chunk_peek(c->data, c->n_bytes, &info); /* check_batch() has */
	while (g->fatal == 0 &&
	       ranges_missing(&ring->stored, c->first, c->first + info.n_events, &part))
		take_events(g, p, c->ring, ring, c, &info, &part);
}

static void take_gauge(struct ingest *g, const struct agent *a, const struct frame_gauge *v)
{
	const struct process *p = v->proc == FRAME_HOST_PROC ? NULL :
							       agent_process(&g->peers, a, v->proc);
	struct row_gauge *row = JOB_PUSH(g->job, gauges);
	struct fleet_point at;

	if (core_map(g->core, a->host, (host_time){ v->at_ns }, &at) != 0)
		at.at.ns = v->at_ns + g->peers.hosts[a->host].offset_ns;
	if (!row) {
		fail(g, -ENOMEM);
		return;
	}
	*row = (struct row_gauge){ .at_ns = at.at.ns, .host = a->host, .rank = p ? p->row.rank : -1,
				   .name = job_utf8(g->job, v->name, strlen(v->name)),
				   .value = v->value };
}

static void take_name(struct ingest *g, struct process *p, const struct frame_name *v)
{
	struct row_name *row;
	const char *text;
	int is_new = process_note_name(p, v->id);

	if (is_new == 0)
		return;
	row = is_new > 0 ? JOB_PUSH(g->job, names) : NULL;
	text = row ? job_utf8(g->job, v->text, v->n_text) : NULL;
	if (!text || core_name(g->core, p->row.process, v->id, text, strlen(text)) != 0) {
		fail(g, -ENOMEM);
		return;
	}
	*row = (struct row_name){ .process = p->row.process, .id = v->id, .text = text };
}

/* The message is owed an answer once the current job is committed. */
static void owe(struct ingest *g, struct inbox_msg *m)
{
	void **owed = JOB_PUSH(g->job, owed);

	if (!owed) {
		g->cfg.reply(g->cfg.arg, m, NULL, 0);
		return;
	}
	*owed = m;
}

static void take_batch(struct ingest *g, struct agent *a, const struct frame_batch *b,
		       int64_t now_raw_ns)
{
	struct row_batch *row;
	struct range holder;
	bool merged;

	for (uint32_t i = 0; i < b->n_procs; i++)
		learn_process(g, a, &b->procs[i], now_raw_ns);
	for (uint32_t i = 0; i < b->n_names; i++)
		take_name(g, agent_process(&g->peers, a, b->names[i].proc), &b->names[i]);
	for (uint32_t i = 0; i < b->n_chunks && g->fatal == 0; i++)
		take_chunk(g, agent_process(&g->peers, a, b->chunks[i].proc), &b->chunks[i]);
	for (uint32_t i = 0; i < b->n_texts; i++)
		if (ingest_text(g, agent_process(&g->peers, a, b->texts[i].proc), &b->texts[i]) != 0)
			fail(g, -ENOMEM);
	for (uint32_t i = 0; i < b->n_gauges; i++)
		take_gauge(g, a, &b->gauges[i]);
	if (b->n_given_up > a->n_given_up)
		a->n_given_up = b->n_given_up;
	row = JOB_PUSH(g->job, batches);
	if (!row || ranges_add(&a->seqs, b->seq, b->seq + 1, &holder, &merged) != 0) {
		fail(g, -ENOMEM);
		return;
	}
	*row = (struct row_batch){ a->id, b->seq };
	if (b->seq >= a->next_seq)
		a->next_seq = b->seq + 1;
}

/* Checks and takes a batch whose turn it is, and answers or owes. */
static void process_batch(struct ingest *g, struct agent *a, struct inbox_msg *m,
			  const struct frame_batch *b, int64_t now_raw_ns)
{
	char why[400];
	enum frame_refusal code;

	if (ranges_has(&a->seqs, b->seq)) { /* taken before: true once this job is committed */
		owe(g, m);
		return;
	}
	code = check_batch(g, a, b, now_raw_ns, why, sizeof why);
	if (code != 0) {
		ingest_notice(g, now_raw_ns, "A batch of the agent on %s was refused: %s",
			      g->peers.hosts[a->host].name, why);
		refuse(g, m, code, why);
		/* Its number is used up: the agent will not send it again. */
		if (code == REFUSE_MALFORMED && b->seq == a->next_seq)
			a->next_seq++;
		return;
	}
	take_batch(g, a, b, now_raw_ns);
	owe(g, m);
}

static void free_held(struct ingest *g, struct held *h)
{
	frame_close(&h->frame);
	free(h);
	g->n_held--;
}

/* Takes what waited for its turn; with skip, the first no longer waits for those
 * before it. */
static void release_held(struct ingest *g, struct agent *a, bool skip, int64_t now_raw_ns)
{
	while (a->held && (skip || a->held->frame.batch.seq <= a->next_seq) && g->fatal == 0) {
		struct held *h = a->held;

		a->held = h->next;
		process_batch(g, a, h->msg, &h->frame.batch, now_raw_ns);
		free_held(g, h);
		skip = false;
	}
}

/* Too early: keep it for its turn. True when it is kept. */
static bool hold(struct ingest *g, struct agent *a, struct inbox_msg *m, const struct frame *f,
		 int64_t now_raw_ns)
{
	struct held **at = &a->held, *h;

	while (*at && (*at)->frame.batch.seq < f->batch.seq)
		at = &(*at)->next;
	if (*at && (*at)->frame.batch.seq == f->batch.seq) {
		/* Sent again while the first copy waits: that one will be answered. */
		g->cfg.reply(g->cfg.arg, m, NULL, 0);
		return false;
	}
	h = malloc(sizeof *h);
	if (!h) {
		g->cfg.reply(g->cfg.arg, m, NULL, 0);
		return false;
	}
	*h = (struct held){ .next = *at, .msg = m, .frame = *f, .since_raw_ns = now_raw_ns };
	*at = h;
	g->n_held++;
	return true;
}

/* The places of the inbox are few: the longest queue stops waiting. */
static void relieve(struct ingest *g, int64_t now_raw_ns)
{
	while (g->n_held > HOLD_MAX && g->fatal == 0) {
		struct agent *fullest = NULL;
		unsigned most = 0;

		for (uint32_t i = 0; i < g->peers.n_agents; i++) {
			unsigned n = 0;

			for (const struct held *h = g->peers.agents[i]->held; h; h = h->next)
				n++;
			if (n > most) {
				most = n;
				fullest = g->peers.agents[i];
			}
		}
		release_held(g, fullest, true, now_raw_ns);
	}
}

/* Whose batch is it? An agent also ships what an earlier one of its host left in
 * the spool, under that one's id and numbers, after a hello in its name. An id
 * that never said hello stays the sender's and is refused by check_batch(). */
static struct agent *owner_of(struct ingest *g, struct agent *sender, const struct frame_batch *b)
{
	struct agent *a;

	if (memcmp(sender->agent_id, b->agent_id, sizeof b->agent_id) == 0)
		return sender;
	a = peers_find_agent(&g->peers, b->agent_id);
	return a && a->host == sender->host ? a : sender;
}

/* The frame is closed by the caller unless it was held. */
static bool on_batch(struct ingest *g, struct inbox_msg *m, const struct frame *f,
		     int64_t now_raw_ns)
{
	struct agent *a = peers_find_stream(&g->peers, f->batch.stream);
	int trouble = g->cfg.trouble(g->cfg.arg);

	if (!a) {
		rehello(g, m, f->batch.stream);
		return false;
	}
	a->seen_raw_ns = now_raw_ns;
	a = owner_of(g, a, &f->batch);
	if (g->stopping || trouble != 0) {
		refuse(g, m, REFUSE_BUSY,
		       g->stopping ? "The collector is shutting down. Keep everything and try again." :
				     trouble_text(trouble));
		return false;
	}
	if (f->batch.seq > a->next_seq && !ranges_has(&a->seqs, f->batch.seq)) {
		bool kept = hold(g, a, m, f, now_raw_ns);

		relieve(g, now_raw_ns);
		return kept;
	}
	process_batch(g, a, m, &f->batch, now_raw_ns);
	release_held(g, a, false, now_raw_ns);
	return false;
}

/* --- messages ------------------------------------------------------------ */

void ingest_message(struct ingest *g, struct inbox_msg *m, int64_t now_raw_ns)
{
	struct frame f;
	char why[300];
	int r;

	if (g->fatal != 0) {
		g->cfg.reply(g->cfg.arg, m, NULL, 0);
		return;
	}
	r = frame_open(&f, m->data, m->n_bytes);
	if (r == FRAME_NEWER) {
		snprintf(why, sizeof why,
			 "The agent speaks protocol %u and this collector (syncline " SYNCLINE_VERSION
			 ") up to %u. Update the collector, or run the agent of its release.",
			 f.protocol, FRAME_PROTOCOL);
		refuse(g, m, REFUSE_VERSION, why);
		return;
	}
	if (r < 0) {
		g->cfg.reply(g->cfg.arg, m, NULL, 0); /* no memory now; the peer asks again */
		return;
	}
	if (r != FRAME_OK) {
		snprintf(why, sizeof why, "The message cannot be read: %s.", frame_outcome_text(r));
		ingest_notice(g, now_raw_ns,
			      "A message of %zu bytes was refused: %s. Is something else than a "
			      "syncline-agent of this release sending to this address?",
			      m->n_bytes, frame_outcome_text(r));
		refuse(g, m, REFUSE_MALFORMED, why);
		return;
	}
	if (f.type == FRAME_HELLO && m->control) {
		on_hello(g, m, &f.hello, now_raw_ns);
	} else if (f.type == FRAME_HEARTBEAT && m->control) {
		on_heartbeat(g, m, &f.heartbeat, now_raw_ns);
	} else if (f.type == FRAME_BATCH && !m->control) {
		if (on_batch(g, m, &f, now_raw_ns))
			return; /* held: its frame stays open */
	} else {
		refuse(g, m, REFUSE_MALFORMED,
		       "This kind of message does not belong on this connection.");
	}
	frame_close(&f);
}

/* What a replay from the low-water mark cannot rebuild goes with the facts. */
static int save_core(struct ingest *g)
{
	const struct facts *f = &g->job->facts;
	uint64_t low_water = core_low_water(g->core);
	size_t n;

	if (low_water > g->next_chunk)
		low_water = g->next_chunk; /* nothing is open */
	g->job->low_water = low_water;
	if (low_water == g->low_water &&
	    f->steps.n + f->rank_steps.n + f->collectives.n + f->groups.n == 0)
		return 0;
	g->low_water = low_water;
	n = core_save(g->core, g->job->core_state.v, g->job->core_state.n_alloc);
	if (n > g->job->core_state.n_alloc) {
		unsigned char *grown = realloc(g->job->core_state.v, n * 2);

		if (!grown)
			return -ENOMEM;
		g->job->core_state.v = grown;
		g->job->core_state.n_alloc = n * 2;
		n = core_save(g->core, grown, n * 2);
	}
	g->job->core_state.n = n;
	return 0;
}

static void submit(struct ingest *g)
{
	struct store_job *next;

	if (g->fatal != 0 || job_empty(g->job))
		return;
	next = take_idle(g);
	if (!next)
		return; /* the job goes on filling; the next turn tries again */
	if (save_core(g) != 0) {
		fail(g, -ENOMEM);
		job_free(next);
		return;
	}
	core_set_facts(g->core, &next->facts);
	g->cfg.submit(g->cfg.arg, g->job);
	g->job = next;
}

void ingest_turn_over(struct ingest *g)
{
	submit(g);
}

void ingest_tick(struct ingest *g, int64_t now_raw_ns)
{
	if (g->fatal != 0)
		return;
	for (uint32_t i = 0; i < g->peers.n_agents && g->n_held > 0; i++) {
		struct agent *a = g->peers.agents[i];

		if (a->held && now_raw_ns - a->held->since_raw_ns > HOLD_NS)
			release_held(g, a, true, now_raw_ns);
	}
	if (core_tick(g->core, (fleet_time){ ingest_fleet_ns(g, now_raw_ns) }) != 0)
		fail(g, -ENOMEM);
	/* While nothing can be written, one job grows instead of many. */
	if (g->cfg.trouble(g->cfg.arg) == 0)
		submit(g);
}

void ingest_done(struct ingest *g, struct store_job *j)
{
	struct frame ack = { .type = FRAME_ACK, .protocol = FRAME_PROTOCOL };

	for (size_t i = 0; i < j->owed.n; i++) {
		struct inbox_msg *m = j->owed.v[i];
		struct frame f;

		if (j->failed || frame_open(&f, m->data, m->n_bytes) != FRAME_OK) {
			g->cfg.reply(g->cfg.arg, m, NULL, 0);
			continue;
		}
		ack.ack.seq = f.batch.seq;
		ack.ack.credit = g->cfg.n_free(g->cfg.arg) + 1;
		frame_close(&f);
		answer(g, m, &ack);
	}
	job_clear(j);
	j->next = g->idle;
	g->idle = j;
}

void ingest_finish(struct ingest *g, int64_t now_raw_ns)
{
	for (uint32_t i = 0; i < g->peers.n_agents; i++)
		while (g->peers.agents[i]->held && g->fatal == 0)
			release_held(g, g->peers.agents[i], true, now_raw_ns);
	g->stopping = true;
	if (g->fatal == 0 && g->run.ended_ns != FACT_NONE && g->run_id[0] &&
	    core_finish(g->core, (fleet_time){ ingest_fleet_ns(g, now_raw_ns) }) != 0)
		fail(g, -ENOMEM);
	submit(g);
}

void ingest_status(const struct ingest *g, int64_t now_raw_ns, struct ingest_status *ret)
{
	double cpu = 0;
	unsigned n_cpu = 0;

	*ret = (struct ingest_status){
		.last_event_ns = g->last_event_ns,
		.n_hosts = g->peers.n_hosts,
		.n_ranks = g->n_ranks_alive,
		.n_ranks_seen = g->n_ranks_seen,
		.n_ranks_expected = g->run.world_size > 0 ? (uint32_t)g->run.world_size : 0,
		.n_events = g->n_events,
		.n_events_lost = g->n_gap + g->n_dropped,
		.n_drops = g->n_gap + g->n_dropped + g->n_text_dropped + g->n_names_dropped,
		.ended = g->run_id[0] && g->run.ended_ns != FACT_NONE,
	};
	for (uint32_t i = 0; i < g->peers.n_agents; i++) {
		const struct agent *a = g->peers.agents[i];
		bool connected = a->seen_raw_ns && now_raw_ns - a->seen_raw_ns < CONNECTED_NS;

		ret->n_agents += connected;
		ret->n_drops += a->n_given_up;
		if (connected && a->cpu_ratio > 0) {
			cpu += a->cpu_ratio;
			n_cpu++;
		}
		/* Silent, and one of its ranks is not known to have ended. */
		for (uint32_t k = 0; !connected && k < a->n_procs; k++) {
			const struct process *p = agent_process((struct peers *)&g->peers, a, k);

			if (p && p->row.agent == a->id && p->row.state == ROW_ALIVE &&
			    now_raw_ns - g->started_raw_ns > CONNECTED_NS) {
				ret->n_agents_lost++;
				break;
			}
		}
	}
	ret->agent_cpu_ratio = n_cpu ? cpu / n_cpu : NAN;
}

/* --- life ---------------------------------------------------------------- */

int ingest_new(struct ingest **ret, const struct ingest_config *cfg)
{
	struct ingest *g = calloc(1, sizeof *g);

	if (!g)
		return -ENOMEM;
	g->cfg = *cfg;
	g->core = cfg->core;
	copy_id(g->run_id, sizeof g->run_id, cfg->run_id);
	copy_id(g->token, sizeof g->token, cfg->token);
	copy_id(g->boot_id, sizeof g->boot_id, cfg->boot_id);
	g->fleet_minus_raw_ns = cfg->real_ns - cfg->raw_ns;
	g->started_raw_ns = cfg->raw_ns;
	g->run.started_ns = cfg->real_ns;
	g->run.ended_ns = FACT_NONE;
	g->last_event_ns = FACT_NONE;
	g->next_chunk = 1;
	g->job = job_new();
	if (!g->job || peers_init(&g->peers) != 0) {
		ingest_free(g);
		return -ENOMEM;
	}
	core_set_facts(g->core, &g->job->facts);
	if (g->run_id[0])
		put_run(g);
	*ret = g;
	return 0;
}

void ingest_free(struct ingest *g)
{
	if (!g)
		return;
	peers_fini(&g->peers);
	job_free(g->job);
	while (g->idle) {
		struct store_job *j = g->idle;

		g->idle = j->next;
		job_free(j);
	}
	frame_buf_fini(&g->out);
	free(g);
}

/* --- after a restart ----------------------------------------------------- */

static int load_host(void *arg, const struct row_host *v)
{
	struct ingest *g = arg;
	struct host *h = peers_add_host(&g->peers);

	if (!h)
		return -ENOMEM;
	if (h->id != v->host)
		return STORE_DAMAGED;
	copy_id(h->name, sizeof h->name, v->name);
	copy_id(h->boot_id, sizeof h->boot_id, v->boot_id);
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
	copy_id(a->version, sizeof a->version, v->version);
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
	learn_rank(g, p);
	return tell_core_process(g, p);
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
		.core_state = load_core_state, .rank_step = load_rank_step, .exchange = load_exchange, .chunk = load_chunk,
	};
	struct store_head head;
	int r = store_head(s, &head);

	if (r != 0)
		return r;
	if (!head.run.set)
		return 0;
	if (g->run_id[0] && strcmp(g->run_id, head.run.run_id) != 0)
		return INGEST_OUTCOME(INGEST_OTHER_RUN);
	copy_id(g->run_id, sizeof g->run_id, head.run.run_id);
	/* The time line goes on as it was while the clock does; after a reboot the
	 * wall clock is the only thing that both sides know. */
	if (same_clock(g, head.run.boot_id, head.run.time_ns_inode))
		g->fleet_minus_raw_ns = head.run.fleet_minus_raw_ns;
	g->run = head.run;
	g->next_chunk = head.last_chunk + 1;
	put_run(g);
	r = store_read(s, &before, g);
	for (uint32_t i = 0; i < g->peers.n_processes && r == 0; i++)
		if (g->peers.processes[i]->row.state != ROW_ALIVE)
			r = tell_core_state(g, g->peers.processes[i]);
	count_ranks(g, false);
	return r;
}
