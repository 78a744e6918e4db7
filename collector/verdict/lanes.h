/* lanes.h - what the device of each rank did between its messages: work, waiting, nothing.
 *
 * A lane is the time line of one process, on its own clock: its device's where the
 * process tells of one, otherwise that of its host's phases and blocking calls.
 * Every moment is work (a kernel, a phase), a collective, a message or rest; the
 * first that holds counts on a device, the blocking call on a host. A lap is one
 * step of it; a job that tells no steps has one lap for all. Laps are kept of
 * processes that send or receive messages, the newest LANE_LAPS of each.
 *
 * A message counts once however many tensors it has: one of a peer counts again
 * only after work.
 */
#pragma once

#include "lateness.h"
#include "messages.h"

#define LANE_LAPS 16
#define LANE_PEERS 4
#define LANE_PIECES 8

struct lane_sums {
	int64_t work_ns, coll_ns, message_ns, rest_ns;
};

struct lane_peer {
	int32_t rank;
	uint32_t n_sent, n_received; /* micro-batches */
	uint32_t n_flushed; /* sent when the last of them had come back */
	uint32_t sent_work, received_work; /* the piece of work before the newest */
	bool sends_first, both_first; /* what the lap's first message with it was */
	int64_t least_ns; /* of a message with it: nobody was waited for */
};

struct lap {
	uint32_t step;
	bool any; /* an event */
	int64_t begin_ns, end_ns; /* host time; begins where the last one ended */
	struct lane_sums all, inside, at_first; /* inside: from the first message to the last */
	int64_t first_ns, last_ns; /* of its messages; FACT_NONE */
	int64_t wait_ns, wait_inside_ns; /* in collectives, for their last member */
	int64_t wait_open_ns; /* since the last message */
	double wait_inside_ns2, wait_open_ns2; /* sums of their squares: one long wait or many? */
	int64_t disorder_ns; /* events came out of order by so much */
	int64_t spread_ns, piece_ns; /* of like pieces of work between messages: deviation, mean */
	uint32_t n_pieces;
	uint32_t n_flushes; /* all that was passed on to a peer came back from it */
	struct lane_peer peers[LANE_PEERS];
	uint32_t n_peers;
	bool many; /* peers were more */
};

struct lane {
	uint32_t life;
	int32_t rank;
	bool device; /* it tells what its device does */
	uint32_t shift; /* from the process's own steps to the run's */
	int64_t at_ns; /* all before is summed up */
	uint32_t n_work, n_colls, n_messages; /* under way */
	uint32_t works; /* pieces of work so far */
	/* Messages that overlap are one exchange: with whom and which way it is, the last
	 * one was; when it began, and the work between the two. */
	uint64_t exchange, last_exchange;
	int64_t exchange_ns, before_ns, busy_ns; /* busy: in all, when the last one ended */
	struct lane_piece { /* work between messages of one kind */
		uint64_t key;
		uint32_t n;
		double sum_ns, square_ns2;
	} pieces[LANE_PIECES];
	struct lap now;
	struct lap *laps; /* ring; NULL without messages */
	uint64_t n_laps;
};

struct lane_wait { /* the longest wait in a collective */
	uint32_t group, step;
	uint64_t seq;
	int64_t wait_ns, transfer_ns;
	int32_t rank, last_rank; /* rank: who waited */
};

struct lanes {
	struct roster *roster;
	const struct messages *messages;
	struct lane *v; /* by process */
	uint32_t n;
	bool any; /* messages */
	struct lane_wait longest; /* of this life */
	uint32_t life;
};

void lanes_fini(struct lanes *l);
/* After the ledger has seen it. 0 or -ENOMEM. */
int lanes_event(struct lanes *l, const struct proc *p, const struct event *ev);
/* A collective is final, and late was its last member. */
void lanes_call(struct lanes *l, const struct match *m, uint32_t group, const struct coll *c,
		const struct lateness *late, const struct lateness_places *places);
/* Its lap of that step; now as well once it is closed or nothing more comes. NULL. */
const struct lap *lanes_lap(const struct lane *v, uint32_t step, bool finishing);
