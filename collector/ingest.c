#include "ingest_internal.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HOLD_NS (15 * SECOND_NS) /* for a batch with a smaller number, from an agent that says nothing */
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

void ingest_fail(struct ingest *g, int r)
{
	if (g->fatal == 0)
		g->fatal = r;
}

void ingest_copy_id(char *out, size_t n_out, const char *text)
{
	snprintf(out, n_out, "%s", text ? text : "");
}

void ingest_place(const struct ingest *g, uint32_t host, int64_t at_ns, struct fleet_point *ret)
{
	if (core_map(g->core, host, (host_time){ at_ns }, ret) != 0) {
		ret->at.ns = at_ns + g->peers.hosts[host].offset_ns;
		ret->err_ns = FACT_UNBOUNDED;
	}
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

void ingest_answer(struct ingest *g, struct inbox_msg *m, const struct frame *f)
{
	if (frame_pack(&g->out, f) != 0) {
		g->cfg.reply(g->cfg.arg, m, NULL, 0); /* the peer asks again */
		return;
	}
	g->cfg.reply(g->cfg.arg, m, g->out.data, g->out.n_bytes);
}

void ingest_refuse(struct ingest *g, struct inbox_msg *m, enum frame_refusal code,
		   const char *sentence)
{
	ingest_answer(g, m, &(struct frame){ .type = FRAME_REFUSE, .protocol = FRAME_PROTOCOL,
					     .refuse = { .code = code, .text = sentence } });
}

void ingest_rehello(struct ingest *g, struct inbox_msg *m, uint64_t stream)
{
	ingest_answer(g, m, &(struct frame){ .type = FRAME_REHELLO, .protocol = FRAME_PROTOCOL,
					     .rehello = { .stream = stream } });
}

const char *ingest_trouble_text(int trouble)
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

void ingest_put_run(struct ingest *g)
{
	g->run.set = true;
	ingest_copy_id(g->run.run_id, sizeof g->run.run_id, g->run_id);
	g->run.fleet_minus_raw_ns = g->fleet_minus_raw_ns;
	ingest_copy_id(g->run.boot_id, sizeof g->run.boot_id, g->boot_id);
	g->run.time_ns_inode = g->cfg.time_ns_inode;
	g->job->run = g->run;
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
		ingest_refuse(g, m, REFUSE_VERSION, why);
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
		ingest_refuse(g, m, REFUSE_MALFORMED, why);
		return;
	}
	if (f.type == FRAME_HELLO && m->control) {
		ingest_hello(g, m, &f.hello, now_raw_ns);
	} else if (f.type == FRAME_HEARTBEAT && m->control) {
		ingest_heartbeat(g, m, &f.heartbeat, now_raw_ns);
	} else if (f.type == FRAME_BATCH && !m->control) {
		if (ingest_batch(g, m, &f, now_raw_ns))
			return; /* held: its frame stays open */
	} else {
		ingest_refuse(g, m, REFUSE_MALFORMED,
			      "This kind of message does not belong on this connection.");
	}
	frame_close(&f);
}

/* What a replay from the low-water mark cannot rebuild goes with the facts. */
static int save_core(struct ingest *g)
{
	const struct facts *f = &g->job->facts;
	uint64_t low_water = core_low_water(g->core);
	struct core_stats stats;
	size_t n;

	if (low_water > g->next_chunk)
		low_water = g->next_chunk; /* nothing is open */
	core_stats(g->core, &stats);
	g->job->low_water = low_water;
	g->job->n_late = stats.n_late_events;
	if (low_water == g->low_water && stats.n_late_events == g->n_late &&
	    f->steps.n + f->rank_steps.n + f->collectives.n + f->groups.n == 0)
		return 0;
	g->low_water = low_water;
	g->n_late = stats.n_late_events;
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
		ingest_fail(g, -ENOMEM);
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
			ingest_release_held(g, a, true, now_raw_ns);
	}
	ingest_close_seconds(g, now_raw_ns - 2 * SECOND_NS);
	ingest_order_peers(g, now_raw_ns);
	if (core_tick(g->core, (fleet_time){ ingest_fleet_ns(g, now_raw_ns) }) != 0)
		ingest_fail(g, -ENOMEM);
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
		ingest_answer(g, m, &ack);
	}
	job_clear(j);
	j->next = g->idle;
	g->idle = j;
}

void ingest_finish(struct ingest *g, int64_t now_raw_ns)
{
	for (uint32_t i = 0; i < g->peers.n_agents; i++)
		while (g->peers.agents[i]->held && g->fatal == 0)
			ingest_release_held(g, g->peers.agents[i], true, now_raw_ns);
	ingest_close_seconds(g, INT64_MAX);
	g->stopping = true;
	if (g->fatal == 0 && g->run.ended_ns != FACT_NONE && g->run_id[0] &&
	    core_finish(g->core, (fleet_time){ ingest_fleet_ns(g, now_raw_ns) }) != 0)
		ingest_fail(g, -ENOMEM);
	submit(g);
}

void ingest_set_probe_port(struct ingest *g, uint16_t port)
{
	g->probe_port = port;
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
	for (uint32_t i = 0; i < g->peers.n_hosts; i++)
		ret->n_hosts_by_stream += ingest_goes_by_stream(&g->peers.hosts[i], now_raw_ns);
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
	ingest_copy_id(g->run_id, sizeof g->run_id, cfg->run_id);
	ingest_copy_id(g->token, sizeof g->token, cfg->token);
	ingest_copy_id(g->boot_id, sizeof g->boot_id, cfg->boot_id);
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
		ingest_put_run(g);
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
	free(g->circle);
	free(g);
}
