/* probes.h - the collector's half of a clock probe, without sockets and clocks.
 *
 * A request names a stream that was handed out, carries its digest, and counts
 * once; then it is answered with as many bytes. When it came and when its answer
 * left stays here until a later request reports the agent's two times, which
 * makes a whole exchange. Room for that is taken at the hello, never by a packet.
 */
#pragma once

#include "../proto/ping.h"

#include <stdbool.h>
#include <stdint.h>

struct ingest;
struct agent;

#define PROBES_N_OPEN 128 /* exchanges whose report may still come, a stream */

struct probe_slot {
	uint64_t seq; /* 0 = free */
	int64_t t1_ns, t2_ns; /* collector RAW; t1 0 = nobody knows */
	bool warm_up, kernel_t1, kernel_t2;
};

/* Of one agent while it has a stream. */
struct probe_peer {
	uint64_t stream;
	uint8_t secret[PING_SECRET_BYTES];
	struct ping_key key;
	struct ping_window window;
	struct probe_slot slots[PROBES_N_OPEN]; /* by seq */
	uint8_t n_address, address[16]; /* where its requests come from; 0 = not known */
	int64_t received_raw_ns; /* the newest request, 0 = none */
	uint64_t n_received, n_exchanges, n_refused;
};

/* A secret for the agent's stream; kept while the stream is. 0 or a negative errno. */
int probes_admit(struct ingest *g, struct agent *a);
void probes_free(struct agent *a);

enum probe_outcome {
	PROBE_ANSWER = 0,
	PROBE_MALFORMED,
	PROBE_UNKNOWN, /* a stream that was not handed out, or before this collector's time */
	PROBE_FORGED,
	PROBE_REPEATED, /* or too old to tell */
	PROBE_N_OUTCOMES,
};

/* Which answer a time of leaving belongs to. */
struct probe_ref {
	uint32_t agent;
	uint64_t seq;
};

/* A packet that came at t1 (not earlier than it did; 0 = its time is not known).
 * With PROBE_ANSWER the answer is to be sent to where it came from. */
enum probe_outcome probes_take(struct ingest *g, const void *data, size_t n_bytes, int64_t t1_ns,
			       bool kernel, int64_t now_raw_ns, uint8_t answer[PING_BYTES],
			       struct probe_ref *ret);
/* Who asked has that address. */
struct sockaddr_storage;
void probes_from(struct ingest *g, const struct probe_ref *ref, const struct sockaddr_storage *from);
/* It left at t2 (not later than it did). The kernel's word replaces ours. */
void probes_sent(struct ingest *g, const struct probe_ref *ref, int64_t t2_ns, bool kernel);
/* Its time cannot be known: the wall clock was moved. */
void probes_void(struct ingest *g, const struct probe_ref *ref);
