/* nccl_log_put.c - what a log told, as rows of its tables. */
#include "nccl_log.h"

#include <stdio.h>
#include <string.h>

/* By its hash, or by its size and how many of that size its process had before. */
static void name_comms(struct nccl_log *l)
{
	for (uint32_t i = 0; i < l->n_comms; i++) {
		struct nccl_comm *c = &l->comms[i];
		uint32_t nth = 0;

		for (uint32_t k = c->before; k; k = l->comms[k - 1].before)
			nth += l->comms[k - 1].n_ranks == c->n_ranks && !l->comms[k - 1].hash[0];
		if (c->hash[0])
			snprintf(c->key, sizeof c->key, "%s", c->hash);
		else
			snprintf(c->key, sizeof c->key, "%lld ranks, %u", (long long)c->n_ranks, nth + 1);
	}
}

static bool put_comm(struct nccl_log *l, const struct nccl_comm *c)
{
	const struct nccl_process *p = &l->processes[c->process];

	return trace_row(l->trace, "nccl_rank", "tiitiiitiiit", c->key, c->n_ranks < 0 ? TRACE_NULL : c->n_ranks,
			 c->rank < 0 ? TRACE_NULL : c->rank, p->host, p->pid, p->device, c->nvml,
			 c->bus[0] ? c->bus : NULL, c->n_nodes, c->n_channels, (int64_t)c->complete,
			 p->version[0] ? p->version : NULL);
}

static int64_t rank_or_null(int32_t rank)
{
	return rank < 0 ? TRACE_NULL : rank;
}

static bool put_fact(struct nccl_log *l, const struct nccl_fact *f)
{
	const struct nccl_process *p = &l->processes[l->workers[f->worker].process];
	/* Its thread never told of it: another one of the process did. */
	uint32_t i = f->comm ? f->comm : p->n_comms == 1 ? p->last_comm : 0;
	const char *key = i ? l->comms[i - 1].key : NULL;
	int64_t channel = f->channel;

	if (!key) {
		l->n_unplaced++;
		return true;
	}
	if (f->kind == NCCL_HOP)
		return trace_row(l->trace, "nccl_hop", "tiiiit", key, channel, (int64_t)f->v[0], rank_or_null(f->v[1]),
				 rank_or_null(f->v[2]), f->said_by);
	if (f->kind == NCCL_TREE)
		return trace_row(l->trace, "nccl_tree", "tiiiiii", key, channel, (int64_t)f->v[0],
				 rank_or_null(f->v[1]), rank_or_null(f->v[2]), rank_or_null(f->v[3]),
				 rank_or_null(f->v[4]));
	return trace_row(l->trace, "nccl_edge", "tiiiittti", key, channel, (int64_t)f->index, (int64_t)f->v[0],
			 (int64_t)f->v[1], f->send ? "send" : "receive", f->transport, f->nic[0] ? f->nic : NULL,
			 strncmp(f->transport, "NET", 3) == 0 ? (int64_t)f->gdr : TRACE_NULL);
}

static bool put_call(struct nccl_log *l, const struct nccl_call *c)
{
	const struct nccl_comm *comm = &l->comms[c->comm - 1];
	unsigned size;
	const char *dtype = nccl_dtype(c->dtype, &size);
	bool fits = size > 0 && c->count >= 0 && c->count <= INT64_MAX / size;

	return trace_row(l->trace, "nccl_call", "tiitititittiit", comm->key, comm->rank < 0 ? TRACE_NULL : comm->rank,
			 c->number, c->op, c->count, dtype[0] ? dtype : NULL, fits ? c->count * size : TRACE_NULL,
			 strstr(c->op, "educe") ? nccl_reduction(c->reduction) : NULL, c->root,
			 c->algorithm[0] ? c->algorithm : NULL, c->protocol[0] ? c->protocol : NULL, c->low, c->high,
			 c->at[0] ? c->at : NULL);
}

bool nccl_log_put(struct nccl_log *l)
{
	bool fine = true;

	name_comms(l);
	for (uint32_t i = 0; i < l->n_comms && fine; i++)
		fine = put_comm(l, &l->comms[i]);
	for (uint32_t i = 0; i < l->n_facts && fine; i++)
		fine = put_fact(l, &l->facts[i]);
	for (uint32_t i = 0; i < l->n_calls && fine; i++)
		fine = put_call(l, &l->calls[i]);
	return fine;
}
