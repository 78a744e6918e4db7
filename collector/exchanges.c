/* exchanges.c - what becomes of a two-way exchange, whichever way it went.
 *
 * All of them are told to the core. Of each second the store keeps the one that
 * was fastest there and the one that was fastest back: these two are what an
 * estimate rests on, so a restart has as much to go by as we had.
 *
 * While clock probes come, exchanges in the stream of events are left out: they
 * are as true and far wider. When probes cease the stream takes over, and why is
 * kept beside the host's clock.
 */
#include "ingest_internal.h"

#include <errno.h>
#include <string.h>

#define PROBES_CEASED_NS (2 * SECOND_NS)
#define PATH_ROW_NS (5 * SECOND_NS)
#define BUSY_NS (5 * SECOND_NS)
#define CALM_NS (60 * SECOND_NS)
#define WISH_BUSY 50
#define WISH_NORMAL 12
#define WISH_CALM 2
#define GOOD_NS 1000000
#define RATE_OVER_NS (8 * SECOND_NS)

/* --- rows ---------------------------------------------------------------- */

static void put_exchange(struct ingest *g, const struct row_exchange *x)
{
	struct row_exchange *row = JOB_PUSH(g->job, exchanges);

	if (row)
		*row = *x;
}

static void close_second(struct ingest *g, struct host *h)
{
	struct host_second *s = &h->second;

	if (!s->open)
		return;
	s->open = false;
	if (g->cfg.trouble(g->cfg.arg) != 0)
		return; /* nothing is written now, and another comes in a moment */
	put_exchange(g, &s->there);
	if (s->back.t0_ns != s->there.t0_ns)
		put_exchange(g, &s->back);
}

void ingest_close_seconds(struct ingest *g, int64_t before_raw_ns)
{
	for (uint32_t i = 0; i < g->peers.n_hosts; i++)
		if (g->peers.hosts[i].second.open &&
		    g->peers.hosts[i].second.since_raw_ns <= before_raw_ns)
			close_second(g, &g->peers.hosts[i]);
}

/* Where the clock is believed to be, held for a second: its drift within it must not
 * decide, nor what is learned meanwhile. */
static void open_second(struct ingest *g, struct host *h, const struct row_exchange *x,
			int64_t now_raw_ns)
{
	struct host_second *s = &h->second;
	struct fleet_point now, before;

	ingest_place(g, h->id, x->t0_ns, &now);
	ingest_place(g, h->id, x->t0_ns - RATE_OVER_NS, &before);
	*s = (struct host_second){ .open = true, .number = x->t0_ns / SECOND_NS,
				   .since_raw_ns = now_raw_ns, .t0_ns = x->t0_ns,
				   .offset_ns = now.at.ns - x->t0_ns, .there_ns = INT64_MAX,
				   .back_ns = INT64_MAX };
	if (now.err_ns < GOOD_NS && before.err_ns < GOOD_NS)
		s->rate = (double)(now.at.ns - before.at.ns - RATE_OVER_NS) / (double)RATE_OVER_NS;
}

static int64_t offset_at(const struct host_second *s, int64_t host_ns)
{
	return s->offset_ns + (int64_t)((double)(host_ns - s->t0_ns) * s->rate);
}

static void keep_best(struct ingest *g, struct host *h, const struct row_exchange *x,
		      int64_t now_raw_ns)
{
	struct host_second *s = &h->second;
	int64_t there_ns, back_ns;

	if (s->open && s->number != x->t0_ns / SECOND_NS)
		close_second(g, h);
	if (!s->open)
		open_second(g, h, x, now_raw_ns);
	there_ns = x->t1_ns - x->t0_ns - offset_at(s, x->t0_ns);
	back_ns = x->t3_ns + offset_at(s, x->t3_ns) - x->t2_ns;
	if (there_ns < s->there_ns) {
		s->there = *x;
		s->there_ns = there_ns;
	}
	if (back_ns < s->back_ns) {
		s->back = *x;
		s->back_ns = back_ns;
	}
}

/* --- how many are wanted -------------------------------------------------- */

/* A clock whose state changed is looked at closely for a while; one that was good
 * for long needs little. */
static void judge(struct ingest *g, struct host *h, int64_t host_ns, int64_t now_raw_ns)
{
	struct fleet_point at;
	int quality;

	ingest_place(g, h->id, host_ns, &at);
	quality = at.err_ns == FACT_UNBOUNDED ? 0 : at.err_ns <= GOOD_NS ? 2 : 1;
	if (quality != h->quality || h->changed_raw_ns == 0)
		h->changed_raw_ns = now_raw_ns;
	h->quality = quality;
}

unsigned ingest_probe_wish(const struct ingest *g, uint32_t host, int64_t now_raw_ns)
{
	const struct host *h = &g->peers.hosts[host];
	int64_t since_ns = now_raw_ns - h->changed_raw_ns;

	if (h->changed_raw_ns == 0)
		return WISH_NORMAL;
	if (since_ns < BUSY_NS)
		return WISH_BUSY;
	return h->quality == 2 && since_ns > CALM_NS ? WISH_CALM : WISH_NORMAL;
}

/* --- an exchange ---------------------------------------------------------- */

static bool probes_work(const struct host *h, int64_t now_raw_ns)
{
	return h->probe_raw_ns != 0 && now_raw_ns - h->probe_raw_ns < PROBES_CEASED_NS;
}

void ingest_exchange(struct ingest *g, uint32_t host, const struct ingest_exchange *x,
		     int64_t now_raw_ns)
{
	struct host *h = &g->peers.hosts[host];
	struct row_exchange row = {
		.host = host, .t0_ns = x->t0_ns, .t1_ns = ingest_fleet_ns(g, x->t1_ns),
		.t2_ns = ingest_fleet_ns(g, x->t2_ns), .t3_ns = x->t3_ns, .way = x->way,
	};

	if (x->way != ROW_WAY_STREAM) {
		h->probe_raw_ns = now_raw_ns;
		h->probe_way = x->way;
	} else if (probes_work(h, now_raw_ns)) {
		return;
	}
	if (core_exchange(g->core, host, (host_time){ row.t0_ns }, (fleet_time){ row.t1_ns },
			  (fleet_time){ row.t2_ns }, (host_time){ row.t3_ns }) < 0)
		ingest_fail(g, -ENOMEM);
	judge(g, h, row.t3_ns, now_raw_ns);
	keep_best(g, h, &row, now_raw_ns);
}

/* --- which way, and why --------------------------------------------------- */

/* What the agent says it sent, what came here, what it got back. */
static const char *why_not(const struct ingest *g, const struct agent *a, int64_t now_raw_ns)
{
	const struct probe_peer *p = a->probe;

	if (g->probe_port == 0)
		return "this collector takes no clock probes";
	if (a->probing.state == PROBING_NO_PATH)
		return "the agent cannot send UDP to the collector's probe port";
	if (a->probing.state != PROBING)
		return "the agent sends no clock probes";
	if (!p || p->received_raw_ns == 0 || now_raw_ns - p->received_raw_ns > PROBES_CEASED_NS)
		return "the agent's clock probes do not arrive: is UDP let through to the probe port?";
	return "answers to clock probes do not get back, or their times cannot be used";
}

bool ingest_goes_by_stream(const struct host *h, int64_t now_raw_ns)
{
	return !h->same_clock && h->told_path_raw_ns != 0 && !probes_work(h, now_raw_ns);
}

void ingest_tell_path(struct ingest *g, const struct agent *a, int64_t now_raw_ns)
{
	struct host *h = &g->peers.hosts[a->host];
	bool work = probes_work(h, now_raw_ns);
	enum row_way way = work ? h->probe_way : ROW_WAY_STREAM;
	const char *why = work ? "" : why_not(g, a, now_raw_ns);
	struct row_clock_path *row;

	if (h->same_clock || (h->told_path_raw_ns != 0 && way == h->told_way &&
			      strcmp(why, h->told_why) == 0 &&
			      now_raw_ns - h->told_path_raw_ns < PATH_ROW_NS))
		return;
	row = JOB_PUSH(g->job, clock_paths);
	if (!row)
		return; /* the next heartbeat tries again */
	*row = (struct row_clock_path){
		.host = h->id, .at_ns = ingest_fleet_ns(g, now_raw_ns), .way = way, .why = why,
		.n_sent = a->probing.n_sent, .n_answered = a->probing.n_answered,
		.n_refused = a->probing.n_refused, .wish = ingest_probe_wish(g, h->id, now_raw_ns),
	};
	if (a->probe) {
		row->n_received = a->probe->n_received;
		row->n_exchanges = a->probe->n_exchanges;
		row->n_refused += a->probe->n_refused;
	}
	h->told_path_raw_ns = now_raw_ns;
	h->told_way = way;
	h->told_why = why;
}
