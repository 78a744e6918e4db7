/* turns.c - whose turn is it: batches of an agent count in the order of their
 * numbers, and each is answered once, when what it brought is committed.
 *
 * A batch whose forerunner is missing waits for it as long as the agent says that
 * it still has it (in its heartbeats): after a restart of ours or a lost
 * connection a request comes again only when the transport repeats it, seconds
 * later. What is taken out of turn is stored, but the analysis has gone on.
 */
#include "ingest_internal.h"

#include <stdlib.h>
#include <string.h>

#define HOLD_MAX 48 /* batches; they occupy the inbox's places */

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
	code = ingest_check_batch(g, a, b, now_raw_ns, why, sizeof why);
	if (code != 0) {
		ingest_notice(g, now_raw_ns, "A batch of the agent on %s was refused: %s",
			      g->peers.hosts[a->host].name, why);
		ingest_refuse(g, m, code, why);
		/* Its number is used up: the agent will not send it again. */
		if (code == REFUSE_MALFORMED && b->seq == a->next_seq)
			a->next_seq++;
		return;
	}
	ingest_take_batch(g, a, b, now_raw_ns);
	owe(g, m);
}

static void free_held(struct ingest *g, struct held *h)
{
	frame_close(&h->frame);
	free(h);
	g->n_held--;
}

void ingest_release_held(struct ingest *g, struct agent *a, bool skip, int64_t now_raw_ns)
{
	while (a->held && g->fatal == 0) {
		struct held *h = a->held;
		uint64_t seq = h->frame.batch.seq;

		if (!skip && seq > a->next_seq && seq > a->oldest_seq)
			return;

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
		ingest_release_held(g, fullest, true, now_raw_ns);
	}
}

/* Whose batch is it? An agent also ships what an earlier one of its host left in
 * the spool, under that one's id and numbers, after a hello in its name. An id
 * that never said hello stays the sender's and is refused by ingest_check_batch(). */
static struct agent *owner_of(struct ingest *g, struct agent *sender, const struct frame_batch *b)
{
	struct agent *a;

	if (memcmp(sender->agent_id, b->agent_id, sizeof b->agent_id) == 0)
		return sender;
	a = peers_find_agent(&g->peers, b->agent_id);
	return a && a->host == sender->host ? a : sender;
}

bool ingest_batch(struct ingest *g, struct inbox_msg *m, const struct frame *f,
		  int64_t now_raw_ns)
{
	struct agent *a = peers_find_stream(&g->peers, f->batch.stream);
	int trouble = g->cfg.trouble(g->cfg.arg);

	if (!a) {
		ingest_rehello(g, m, f->batch.stream);
		return false;
	}
	a->seen_raw_ns = now_raw_ns;
	a = owner_of(g, a, &f->batch);
	if (g->stopping || trouble != 0) {
		ingest_refuse(g, m, REFUSE_BUSY,
			      g->stopping ? "The collector is shutting down. Keep everything and try again." :
					    ingest_trouble_text(trouble));
		return false;
	}
	if (f->batch.seq > a->next_seq && f->batch.seq > a->oldest_seq &&
	    !ranges_has(&a->seqs, f->batch.seq)) {
		bool kept = hold(g, a, m, f, now_raw_ns);

		relieve(g, now_raw_ns);
		return kept;
	}
	process_batch(g, a, m, &f->batch, now_raw_ns);
	ingest_release_held(g, a, false, now_raw_ns);
	return false;
}
