/* responder.h - the UDP socket that clock probes come to, on the loop.
 *
 * It takes the kernel's times of each packet, asks probes.h what to answer and
 * sends that. An answer is never longer than what it answers and goes to nobody
 * who has not shown a key. Loop thread only; nothing is allocated after open.
 */
#pragma once

#include "ingest.h"
#include "probes.h"

#include <stddef.h>
#include <stdint.h>
#include <uv.h>

struct responder;

/* At the address that control connections come to, on port (0 = the number of the
 * control port, or any free one when that is taken). 0 or a negative errno. */
struct sockaddr_storage;
int responder_open(struct responder **ret, uv_loop_t *loop, struct ingest *g,
		   const struct sockaddr_storage *control, uint16_t port);
uint16_t responder_port(const struct responder *r);
/* At least ten times a second: how the wall clock runs. */
void responder_tick(struct responder *r);

struct responder_stats {
	uint64_t n[PROBE_N_OUTCOMES]; /* by enum probe_outcome; 0 = answered */
	uint64_t n_unsent;	      /* answers that the system did not take */
};
void responder_stats(const struct responder *r, struct responder_stats *ret);
/* The handle's close callback frees it. NULL is fine. */
void responder_close(struct responder *r);
