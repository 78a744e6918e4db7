/* pinger.h - clock probes to the collector or to another agent, beside the stream
 * of events.
 *
 * Nothing that waits in the stream's queues delays them, and the kernel stamps
 * them, so that it hardly matters when we get to run. A train is one packet that
 * wakes what sleeps on the way and then a few that count, 100 us apart; trains
 * come at random, lest they beat in time with the job. The collector says how
 * many it wants.
 *
 * One thread, the agent's. A train keeps it for about a millisecond.
 */
#pragma once

#include "../../proto/frame.h"
#include "../../proto/ping.h"
#include "../../proto/stamp.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#define PINGER_N_OUT 64 /* requests whose answer may still come */

/* One exchange, in true RAW ns; REALTIME until it is placed. */
struct pinger_out {
	uint64_t seq; /* 0 = free */
	uint32_t number; /* the kernel's, of the packet sent */
	int64_t t0_ns, t3_ns;	     /* the agent's own times: never too tight */
	int64_t t0_real_ns, t3_real_ns; /* the kernel's; 0 = none */
	int64_t t1_ns, t2_ns; /* a peer's, on its clock; 0 = not told yet */
	bool warm_up, answered, placed_t0, placed_t3;
	bool dropped; /* its times cannot be known */
};

struct pinger_report {
	uint64_t seq;
	uint8_t flags;
	int64_t t0_ns, t3_ns; /* as the host's clock is said to be */
	int64_t t1_ns, t2_ns; /* a peer's */
};

/* The collector wants our times and keeps its own; a peer tells us its own. */
enum pinger_whom { PINGER_COLLECTOR, PINGER_PEER };

struct pinger {
	int fd; /* -1 = no probes */
	enum pinger_whom whom;
	uint64_t stream;
	struct ping_key key;
	bool kernel;
	enum frame_probing state;
	uint64_t seq, n_sent, n_answered, n_refused;
	uint32_t n_numbered;
	int64_t unnumbered_until_ns; /* true RAW: numbers of before may still come */
	struct pinger_out out[PINGER_N_OUT]; /* by seq */
	struct pinger_report reports[PINGER_N_OUT]; /* a queue, for requests or for pinger_next() */
	unsigned n_reports, first_report;
	struct stamp_line line;
	uint8_t wish;
	unsigned n_trains;
	int64_t due_ns, answered_ns, began_ns; /* true RAW */
	uint64_t random;
};

void pinger_init(struct pinger *p);
/* Probe this address for this stream; as before when it is the one probed already.
 * peer NULL or port 0: no probes. */
void pinger_aim(struct pinger *p, enum pinger_whom whom, const struct sockaddr_storage *peer,
		uint32_t port, uint64_t stream, const char *token,
		const uint8_t secret[FRAME_SECRET_BYTES]);
/* In nanoseconds from now; INT64_MAX = never. */
int64_t pinger_due_in_ns(const struct pinger *p);
void pinger_tick(struct pinger *p); /* a train, when it is due */
void pinger_receive(struct pinger *p); /* the descriptor is readable or has stamps */
void pinger_stop(struct pinger *p);
/* With a peer: the next exchange that is whole; false = none. */
bool pinger_next(struct pinger *p, struct pinger_report *ret);
