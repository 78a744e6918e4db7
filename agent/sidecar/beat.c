#include "agent.h"

#include "clock.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#define BEAT_NS INT64_C(250000000)

static uint32_t known_procs(const struct agent *a, struct frame_proc *out)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < FRAME_MAX_PROCS; i++)
		if (a->guests[i])
			out[n++] = a->guests[i]->facts;
	return n;
}

static void ask(struct agent *a, const struct frame *f, enum agent_asked asked, int64_t t0_ns)
{
	if (frame_pack(&a->beat.buf, f) != 0 ||
	    link_ask(a->link, LINK_CONTROL, 0, a->beat.buf.data, a->beat.buf.n_bytes) != 0)
		return;
	a->beat.asking = true;
	a->beat.asked = asked;
	a->beat.t0_ns = t0_ns;
}

/* As an heir: for an agent that is gone, whose batches say all of its processes. */
static void ask_hello(struct agent *a, bool as_heir)
{
	static struct frame_proc procs[FRAME_MAX_PROCS];
	struct frame f = {
		.type = FRAME_HELLO,
		.hello = {
			.protocol = FRAME_PROTOCOL,
			.run_id = a->run_id,
			.host = a->host,
			.boot_id = a->boot_id,
			.token = a->opt.token,
			.version = SYNCLINE_VERSION,
			.time_ns_inode = a->time_ns_inode,
			.n_procs = as_heir ? 0 : known_procs(a, procs),
			.procs = procs,
		},
	};

	memcpy(f.hello.agent_id, as_heir ? a->ship.heir.agent_id : a->agent_id,
	       sizeof a->agent_id);
	f.hello.real_ns = clock_ns(CLOCK_REALTIME);
	f.hello.raw_ns = raw_now();
	ask(a, &f, as_heir ? ASKED_HELLO_AS_HEIR : ASKED_HELLO, f.hello.raw_ns);
	if (a->beat.asking && as_heir)
		a->ship.heir.hello_due = false;
	else if (a->beat.asking)
		a->ship.hello_due = false; /* what changes from here on is news again */
}

static uint32_t inflight(struct agent *a, struct frame_inflight *out,
			 char names[][SHM_MAX_STRING + 1])
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < FRAME_MAX_PROCS; i++) {
		struct guest *g = a->guests[i];
		struct flight_state s;
		size_t n_name;

		if (!g || g->facts.state != PROC_ALIVE)
			continue;
		s = flight_state(&g->flight);
		n_name = s.group ? guest_string(g, s.group, names[n]) : 0;
		names[n][n_name] = 0;
		out[n] = (struct frame_inflight){
			.proc = i,
			.rank = g->facts.rank,
			.step = s.step,
			.phase = s.phase,
			.group = names[n],
			.seq = s.seq,
			.op = s.op,
			.since_ns = s.since_ns,
			.last_event_ns = g->flight.last_event_ns,
		};
		n++;
	}
	return n;
}

static void ask_heartbeat(struct agent *a)
{
	static struct frame_inflight v[FRAME_MAX_PROCS];
	static char names[FRAME_MAX_PROCS][SHM_MAX_STRING + 1];
	struct spool_stats st;
	struct frame f = {
		.type = FRAME_HEARTBEAT,
		.heartbeat = {
			.stream = a->ship.stream,
			.last = a->beat.last,
			.rss_bytes = procfs_own_rss_bytes(),
			.n_inflight = inflight(a, v, names),
			.inflight = v,
		},
	};

	spool_stats(a->ship.spool, &st);
	f.heartbeat.n_spooled_bytes = st.kept_bytes;
	f.heartbeat.n_spool_dropped = st.n_given_up;
	f.heartbeat.oldest_seq = ship_oldest(&a->ship);
	f.heartbeat.probing = (struct frame_probing_state){
		.state = a->pinger.state, .n_sent = a->pinger.n_sent,
		.n_answered = a->pinger.n_answered, .n_refused = a->pinger.n_refused,
		.peer_port = a->mesh.echo.port,
	};
	f.heartbeat.cpu_ns = (uint64_t)clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	f.heartbeat.real_ns = clock_ns(CLOCK_REALTIME);
	f.heartbeat.t0_ns = raw_now(); /* last: the exchange begins here */
	ask(a, &f, ASKED_BEAT, f.heartbeat.t0_ns);
}

void beat_tick(struct agent *a, int64_t now_ns)
{
	bool connected = link_connected(a->link, LINK_CONTROL);

	(void)link_tend(a->link, now_ns);
	if (connected != a->beat.was_connected) {
		if (!connected)
			say("the collector at %s went away; events are kept and it is tried again",
			    a->opt.collector);
		else if (a->beat.ever_answered)
			say("the collector at %s is back", a->opt.collector);
		a->beat.was_connected = connected;
		a->beat.due_ns = 0;
	}
	if (a->beat.asking || !a->ship.spool || !connected || a->ship.fatal ||
	    now_ns < a->beat.due_ns)
		return;
	if (a->ship.stream == 0 || a->ship.hello_due)
		ask_hello(a, false);
	else if (a->ship.heir.hello_due)
		ask_hello(a, true);
	else
		ask_heartbeat(a);
	a->beat.due_ns = now_ns + BEAT_NS;
}

static void take_level(struct agent *a, uint32_t level)
{
	if (level > LEVEL_MAX || level == a->level)
		return; /* no opinion, or nothing new */
	a->level = level;
	for (uint32_t i = 0; i < FRAME_MAX_PROCS; i++)
		if (a->guests[i])
			guest_set_level(a->guests[i], level);
}

static void take_notice(struct agent *a, const char *notice)
{
	if (strncmp(notice, a->beat.notice, sizeof a->beat.notice - 1) == 0)
		return;
	strncpy(a->beat.notice, notice, sizeof a->beat.notice - 1);
	if (notice[0])
		say("the collector says: %s", a->beat.notice);
}

/* Clock probes go to whom the control channel found under the name we were given. */
static void aim_probes(struct agent *a, const struct frame_welcome *w)
{
	struct sockaddr_storage peer;
	bool has_peer = link_peer(a->link, &peer);

	pinger_aim(&a->pinger, PINGER_COLLECTOR, has_peer ? &peer : NULL, w->probe_port, w->stream,
		   a->opt.token, w->probe_secret);
	mesh_aim(&a->mesh, has_peer && w->probe_port ? peer.ss_family : AF_UNSPEC, w->stream,
		 a->opt.token, w->peer_secret);
}

/* A collector that has not met us before may lack what an earlier one has: tell
 * names and processes again. They are few. */
static void take_welcome(struct agent *a, const struct frame_welcome *w)
{
	bool first = !a->beat.ever_answered;

	if (w->stream != a->ship.stream && !first) {
		for (uint32_t i = 0; i < FRAME_MAX_PROCS; i++) {
			if (!a->guests[i])
				continue;
			a->guests[i]->n_names = 0;
			a->guests[i]->facts_due = a->guests[i]->barrier = true;
		}
	}
	a->ship.stream = w->stream;
	if (first)
		say("shipping run %s to %s (syncline-collector %s)",
		    w->run_id[0] ? w->run_id : "(unnamed)", a->opt.collector, w->version);
	take_level(a, w->level);
	take_notice(a, w->notice);
	aim_probes(a, w);
	a->beat.ever_answered = true;
}

/* The hello that got no welcome is due again. */
static void ask_again(struct agent *a)
{
	a->ship.hello_due |= a->beat.asked == ASKED_HELLO;
	a->ship.heir.hello_due |= a->beat.asked == ASKED_HELLO_AS_HEIR;
}

void beat_answer(struct agent *a, const struct link_answer *answer)
{
	struct frame f;
	int r;

	a->beat.asking = false;
	if (answer->result != 0) {
		ask_again(a);
		return;
	}
	r = frame_open(&f, answer->data, answer->n_bytes);
	if (r != FRAME_OK) {
		say_limited(&a->ship.bad_limit, answer->at_ns,
			    "what answers at %s is not a collector that this agent understands: %s",
			    a->opt.collector, frame_outcome_text(r));
		ask_again(a);
		return;
	}
	if (f.type == FRAME_WELCOME && a->beat.asked == ASKED_HELLO_AS_HEIR) {
		a->ship.heir.stream = f.welcome.stream;
	} else if (f.type == FRAME_WELCOME && a->beat.asked == ASKED_HELLO &&
		   f.welcome.stream != 0) {
		take_welcome(a, &f.welcome);
		a->beat.due_ns = 0; /* a first clock sample at once */
	} else if (f.type == FRAME_BEAT && a->beat.asked == ASKED_BEAT) {
		a->beat.last = (struct frame_exchange){ a->beat.t0_ns, f.beat.t1_ns, f.beat.t2_ns,
							answer->at_ns };
		a->ship.credit = f.beat.credit;
		take_level(a, f.beat.level);
		take_notice(a, f.beat.notice);
		mesh_peers(&a->mesh, f.beat.peers, f.beat.n_peers);
	} else if (f.type == FRAME_REHELLO) {
		a->ship.stream = 0; /* at the next beat, lest two confused ends spin */
		a->ship.hello_due = true;
		ask_again(a);
	} else if (f.type == FRAME_REFUSE && f.refuse.code == REFUSE_BUSY) {
		say_limited(&a->ship.busy_limit, answer->at_ns,
			    "the collector asks to come again later: %s", f.refuse.text);
		ask_again(a);
	} else if (f.type == FRAME_REFUSE) {
		ship_refused(&a->ship, &f.refuse);
	}
	frame_close(&f);
}
