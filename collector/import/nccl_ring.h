/* nccl_ring.h - the order of ranks in a ring, from what ranks say of their neighbours and
 * their connections.
 *
 * What is said exactly (an order, a neighbour) is set. The rest is found from the
 * connections of a channel: each belongs to its ring or to its tree, and a ring leaves
 * and enters each rank once. Nothing is guessed: what more than one order would fit
 * stays open.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define NCCL_RING_MAX 65536 /* ranks */

struct nccl_ring {
	uint32_t n, n_set;
	int32_t *next, *prev;	/* by rank; -1 = not known */
	int32_t *begin, *end;	/* of a known piece, by its last and its first rank */
	bool contradicts;	/* two lines say different things */
};

struct nccl_hop {
	int32_t from, to;
	bool tree; /* a tree may be why it is there */
};

bool nccl_ring_init(struct nccl_ring *r, uint32_t n); /* false without memory */
void nccl_ring_fini(struct nccl_ring *r);
/* That hop is of the ring. What cannot be sets contradicts. */
void nccl_ring_set(struct nccl_ring *r, int32_t from, int32_t to);
/* v: the connections of a channel that their senders told. False without memory. */
bool nccl_ring_solve(struct nccl_ring *r, const struct nccl_hop *v, uint32_t n);
/* One ring of all ranks. */
bool nccl_ring_complete(const struct nccl_ring *r);
