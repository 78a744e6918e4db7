/* hello.c - how an agent is admitted, and its heartbeats: what it says of itself,
 * its host and its clock.
 */
#include "ingest_internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define AGENT_ROW_NS (5 * SECOND_NS)

/* --- hello --------------------------------------------------------------- */

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

static void put_agent(struct ingest *g, struct agent *a, int64_t now_raw_ns)
{
	struct row_agent *row = JOB_PUSH(g->job, agents);
	const char *version = job_utf8(g->job, a->version, strlen(a->version));

	if (!row || !version) {
		ingest_fail(g, -ENOMEM);
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

bool ingest_same_clock(const struct ingest *g, const char *boot_id, uint64_t time_ns_inode)
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
	ingest_copy_id(h->name, sizeof h->name, v->host);
	ingest_copy_id(h->boot_id, sizeof h->boot_id, v->boot_id);
	h->time_ns_inode = v->time_ns_inode;
	h->same_clock = ingest_same_clock(g, h->boot_id, h->time_ns_inode);
	/* Until the first exchange: its wall clock is the best guess, for display. */
	h->offset_ns = h->same_clock ? g->fleet_minus_raw_ns : v->real_ns - v->raw_ns;
	row = JOB_PUSH(g->job, hosts);
	if (!row) {
		ingest_fail(g, -ENOMEM);
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
		ingest_fail(g, -ENOMEM);
	return h;
}

/* A host that shares our clock has nothing to probe. */
static void welcome(struct ingest *g, struct inbox_msg *m, struct agent *a, const struct host *h)
{
	struct frame f = { .type = FRAME_WELCOME, .protocol = FRAME_PROTOCOL,
			   .welcome = { .stream = a->stream, .level = g->cfg.level,
					.run_id = g->run_id, .version = SYNCLINE_VERSION,
					.notice = a->notice } };

	if (g->probe_port != 0 && !h->same_clock && probes_admit(g, a) == 0) {
		f.welcome.probe_port = g->probe_port;
		memcpy(f.welcome.probe_secret, a->probe->secret, sizeof f.welcome.probe_secret);
		memcpy(f.welcome.peer_secret, g->peer_secret, sizeof f.welcome.peer_secret);
	}
	ingest_answer(g, m, &f);
}

void ingest_hello(struct ingest *g, struct inbox_msg *m, const struct frame_hello *v,
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
		ingest_refuse(g, m, REFUSE_TOKEN,
			      v->token[0] ?
				      "The token is wrong. Give the agent the collector's token with "
				      "--token-file or SYNCLINE_TOKEN_FILE." :
				      "This collector wants a token. Give it to the agent with --token-file or "
				      "SYNCLINE_TOKEN_FILE.");
		return;
	}
	if (g->stopping) {
		ingest_refuse(g, m, REFUSE_BUSY,
			      "The collector is shutting down. Keep everything and try again.");
		return;
	}
	if (!g->run_id[0]) {
		ingest_copy_id(g->run_id, sizeof g->run_id, v->run_id[0] ? v->run_id : "run");
		g->run.started_ns = ingest_fleet_ns(g, now_raw_ns);
		g->run.ended_ns = FACT_NONE;
		ingest_put_run(g);
	} else if (v->run_id[0] && strcmp(v->run_id, g->run_id) != 0) {
		snprintf(why, sizeof why,
			 "This collector keeps run %s and the agent belongs to run %.64s. Start a "
			 "collector of its own for that run, with another port and another --db.",
			 g->run_id, v->run_id);
		ingest_refuse(g, m, REFUSE_OTHER_RUN, why);
		return;
	}
	if (!ingest_sane_raw(v->raw_ns) || v->real_ns < 0 || v->real_ns >= INT64_C(1) << 62) {
		ingest_refuse(g, m, REFUSE_MALFORMED,
			      "The agent's clocks show a time that cannot be.");
		return;
	}
	a = peers_find_agent(&g->peers, v->agent_id);
	h = learn_host(g, v);
	if (!h) {
		ingest_refuse(g, m, REFUSE_BUSY, "This collector has no room for another host.");
		return;
	}
	code = ingest_check_procs(g, a, h->id, v->procs, v->n_procs, now_raw_ns, why, sizeof why);
	if (code != 0) {
		ingest_notice(g, now_raw_ns, "An agent on %s was refused: %s", v->host, why);
		ingest_refuse(g, m, code, why);
		return;
	}
	is_new = !a;
	if (!a)
		a = peers_add_agent(&g->peers, v->agent_id);
	if (!a || (a->stream == 0 && agent_new_stream(a) != 0)) {
		ingest_refuse(g, m, REFUSE_BUSY, "This collector has no room for another agent.");
		return;
	}
	a->host = h->id;
	a->seen_raw_ns = now_raw_ns;
	ingest_copy_id(a->version, sizeof a->version, v->version);
	if (is_new || now_raw_ns - a->told_raw_ns > AGENT_ROW_NS)
		put_agent(g, a, now_raw_ns);
	for (uint32_t i = 0; i < v->n_procs; i++)
		ingest_learn_process(g, a, &v->procs[i], now_raw_ns);
	welcome(g, m, a, h);
}

/* --- heartbeat ----------------------------------------------------------- */

static void note_exchange(struct ingest *g, struct agent *a, const struct frame_exchange *x,
			  int64_t now_raw_ns)
{
	const struct host *h = &g->peers.hosts[a->host];
	bool ours = false;

	if (h->same_clock || x->t1_ns == 0 || !ingest_sane_raw(x->t0_ns) ||
	    !ingest_sane_raw(x->t1_ns) || !ingest_sane_raw(x->t2_ns) || !ingest_sane_raw(x->t3_ns))
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
	ingest_exchange(g, a->host,
			&(struct ingest_exchange){ x->t0_ns, x->t1_ns, x->t2_ns, x->t3_ns,
						   ROW_WAY_STREAM },
			now_raw_ns);
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

void ingest_heartbeat(struct ingest *g, struct inbox_msg *m, const struct frame_heartbeat *v,
		      int64_t now_raw_ns)
{
	struct frame answer = { .type = FRAME_BEAT, .protocol = FRAME_PROTOCOL };
	struct agent *a = peers_find_stream(&g->peers, v->stream);
	const char *notice;
	int trouble;

	if (!a) {
		ingest_rehello(g, m, v->stream);
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
	if (v->oldest_seq > a->oldest_seq)
		a->oldest_seq = v->oldest_seq;
	ingest_release_held(g, a, false, now_raw_ns);
	a->probing = v->probing;
	note_exchange(g, a, &v->last, now_raw_ns);
	trouble = g->cfg.trouble(g->cfg.arg);
	if (trouble == 0)
		ingest_tell_path(g, a, now_raw_ns);
	if (trouble == 0 && now_raw_ns - a->told_raw_ns > AGENT_ROW_NS)
		put_agent(g, a, now_raw_ns);
	notice = trouble ? ingest_trouble_text(trouble) : a->notice;
	a->beats[a->next_beat].t1_ns = m->at_raw_ns;
	a->beats[a->next_beat].t2_ns = now_raw_ns;
	a->next_beat = (a->next_beat + 1) % AGENT_BEATS;
	answer.beat = (struct frame_beat){ .t1_ns = m->at_raw_ns, .t2_ns = now_raw_ns,
					   .level = g->cfg.level, .credit = credit(g, now_raw_ns),
					   .notice = notice };
	answer.beat.n_peers = ingest_peers_of(g, a, answer.beat.peers);
	ingest_answer(g, m, &answer);
}
