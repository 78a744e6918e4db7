/* fake_agent.h - an agent without probes: hello, batches over W requests in
 * flight, and which of them were acknowledged. For the collector's tests and
 * benchmarks; blocking calls, its own threads.
 */
#pragma once

#include "../../proto/chunk.h"
#include "../../proto/frame.h"

#include <nng/nng.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct fake_agent {
	nng_socket control, data;
	uint8_t agent_id[16];
	const char *run_id, *token, *host, *boot_id;
	uint32_t protocol; /* 0 = ours */
	char boot[40];
	uint64_t time_ns_inode; /* 0 = another clock than the collector's */
	struct frame_proc procs[64];
	uint32_t n_procs;
	_Atomic uint64_t stream;
	pthread_mutex_t hello_lock;
	int retry_ms; /* after "busy" */
	/* the last refusal of any request: 0 = none */
	_Atomic uint32_t refused;
	char why[512];
};

/* Connects in the background. resend_ms: NNG's REQ resend time. */
int fake_agent_open(struct fake_agent *a, const char *url, int resend_ms);
void fake_agent_close(struct fake_agent *a);

/* One request on the control pair. On 0 the caller owes frame_close() and
 * nng_msg_free(). */
int fake_agent_ask(struct fake_agent *a, const struct frame *f, struct frame *ret,
		   nng_msg **ret_msg, int timeout_ms);
/* Says hello until welcomed or refused. True when welcomed. */
bool fake_agent_hello(struct fake_agent *a, int timeout_ms);

/* Sends a batch (stream and agent_id are filled in) until it is acknowledged,
 * saying hello again when asked to. A context of the data socket is needed.
 * True when acknowledged, false when refused for good or out of time. */
bool fake_agent_send(struct fake_agent *a, nng_ctx ctx, struct frame_batch *b,
		     struct frame_buf *buf, int timeout_ms);

/* The same clock as a collector on this machine has. */
bool fake_agent_share_clock(struct fake_agent *a);
void fake_proc(struct frame_proc *p, uint32_t proc, int32_t rank, int32_t world_size);

/* One step of a rank at t0: n_coll all_reduce calls of name 1, sequence numbers
 * step * n_coll …, in which rank r arrives r * 37 ns after rank 0. */
#define FAKE_STEP_NS(n_coll) (INT64_C(20000) * ((n_coll) + 2))
#define FAKE_STEP_EVENTS(n_coll) (2 * (n_coll) + 2)
size_t fake_step(struct event *ev, uint32_t step, uint32_t rank, uint32_t n_coll, int64_t t0);

int64_t fake_now_ns(void); /* CLOCK_MONOTONIC_RAW */
