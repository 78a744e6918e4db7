/* echo.h - answers other agents' clock probes.
 *
 * What shows no key gets no answer. A later answer to the same agent reports when
 * its request before came and when that answer left, by the kernel's stamps. At
 * most ECHO_N_PEERS agents are remembered, the latest; nothing is allocated.
 */
#pragma once

#include "../../proto/frame.h"
#include "../../proto/ping.h"
#include "../../proto/stamp.h"

#define ECHO_N_PEERS 64

struct echo_peer {
	uint64_t stream; /* 0 = free */
	struct ping_key key;
	struct ping_window window;
	int64_t used_ns;
	/* its last request */
	uint64_t seq;
	uint32_t number; /* of the answer, as the kernel counts */
	int64_t t1_ns, t2_ns; /* true RAW; t1 0 = not known */
	bool kernel_t1, kernel_t2;
};

struct echo {
	int fd; /* -1 = closed */
	uint16_t port;
	const char *token;
	uint8_t secret[FRAME_SECRET_BYTES];
	struct stamp_line line;
	uint32_t n_numbered;
	int64_t unnumbered_until_ns; /* true RAW; 0 = numbers mean what they say */
	struct echo_peer peers[ECHO_N_PEERS];
	uint64_t n_answered, n_refused;
};

void echo_init(struct echo *e);
/* For agents that were given this secret; as before when it is open for it already. */
void echo_open(struct echo *e, int family, const char *token, const uint8_t secret[FRAME_SECRET_BYTES]);
void echo_close(struct echo *e);
void echo_receive(struct echo *e); /* the descriptor is readable or has stamps */
