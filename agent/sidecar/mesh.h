/* mesh.h - clock probes between agents, where the collector asks for them.
 *
 * It names a few others to each of us and changes them now and then. What is
 * found is shipped with the batches: the clocks of two hosts that were each
 * compared with the collector's must agree with what the two find of each other.
 */
#pragma once

#include "echo.h"
#include "pinger.h"

struct mesh {
	struct echo echo;
	struct {
		struct frame_peer peer; /* host, as the collector numbers them */
		struct pinger pinger;
	} others[FRAME_MAX_PEERS];
	uint64_t stream;
	const char *token;
};

void mesh_init(struct mesh *m);
/* What a welcome says of it; family: of the address that the collector has. */
void mesh_aim(struct mesh *m, int family, uint64_t stream, const char *token,
	      const uint8_t secret[FRAME_SECRET_BYTES]);
/* Probe these and no others. */
void mesh_peers(struct mesh *m, const struct frame_peer *v, uint32_t n);
int64_t mesh_due_in_ns(const struct mesh *m);
void mesh_tick(struct mesh *m);
#define MESH_N_FDS (1 + FRAME_MAX_PEERS)
void mesh_fds(const struct mesh *m, int fds[MESH_N_FDS]); /* -1 = none */
void mesh_receive(struct mesh *m, unsigned which);
/* The next exchange that is whole; false = none. */
bool mesh_next(struct mesh *m, struct frame_peer_exchange *ret);
