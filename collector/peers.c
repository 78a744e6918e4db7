#include "peers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define STREAM_INDEX_BITS 20

static int grow(void *v, uint32_t n, uint32_t *n_alloc, size_t size, uint32_t max)
{
	uint32_t wanted = *n_alloc ? *n_alloc * 2 : 16;
	void *grown;

	if (n < *n_alloc)
		return 0;
	if (n >= max)
		return -ENOMEM;
	grown = realloc(*(void **)v, (size_t)wanted * size);
	if (!grown)
		return -ENOMEM;
	*(void **)v = grown;
	*n_alloc = wanted;
	return 0;
}

int peers_init(struct peers *p)
{
	memset(p, 0, sizeof *p);
	p->max_rank = -1;
	p->n_by_unique = 64;
	p->by_unique = calloc(p->n_by_unique, sizeof *p->by_unique);
	return p->by_unique ? 0 : -ENOMEM;
}

static void agent_free(struct agent *a)
{
	while (a->held) {
		struct held *h = a->held;

		a->held = h->next;
		frame_close(&h->frame);
		free(h);
	}
	ranges_fini(&a->seqs);
	probes_free(a);
	free(a->proc_of);
	free(a);
}

static void process_free(struct process *p)
{
	for (size_t i = 0; i < SHM_MAX_RINGS; i++) {
		if (p->rings[i])
			ranges_fini(&p->rings[i]->stored);
		free(p->rings[i]);
	}
	free(p->names);
	free(p);
}

void peers_fini(struct peers *p)
{
	for (uint32_t i = 0; i < p->n_agents; i++)
		agent_free(p->agents[i]);
	for (uint32_t i = 0; i < p->n_processes; i++)
		process_free(p->processes[i]);
	free(p->hosts);
	free(p->agents);
	free(p->processes);
	free(p->by_unique);
}

struct host *peers_find_host(struct peers *p, const char *name, const char *boot_id,
			     uint64_t time_ns_inode)
{
	for (uint32_t i = 0; i < p->n_hosts; i++) {
		struct host *h = &p->hosts[i];

		if (h->time_ns_inode == time_ns_inode && strcmp(h->boot_id, boot_id) == 0 &&
		    strcmp(h->name, name) == 0)
			return h;
	}
	return NULL;
}

struct host *peers_add_host(struct peers *p)
{
	struct host *h;

	if (grow(&p->hosts, p->n_hosts, &p->n_hosts_alloc, sizeof *p->hosts, PEERS_MAX_HOSTS) != 0)
		return NULL;
	h = &p->hosts[p->n_hosts];
	*h = (struct host){ .id = p->n_hosts++ };
	return h;
}

struct agent *peers_find_agent(struct peers *p, const uint8_t agent_id[16])
{
	for (uint32_t i = 0; i < p->n_agents; i++)
		if (memcmp(p->agents[i]->agent_id, agent_id, 16) == 0)
			return p->agents[i];
	return NULL;
}

struct agent *peers_find_stream(struct peers *p, uint64_t stream)
{
	uint64_t i = stream & ((1u << STREAM_INDEX_BITS) - 1);

	return stream != 0 && i < p->n_agents && p->agents[i]->stream == stream ? p->agents[i] :
										   NULL;
}

struct agent *peers_add_agent(struct peers *p, const uint8_t agent_id[16])
{
	struct agent *a;

	if (grow(&p->agents, p->n_agents, &p->n_agents_alloc, sizeof *p->agents,
		 PEERS_MAX_AGENTS) != 0)
		return NULL;
	a = calloc(1, sizeof *a);
	if (!a)
		return NULL;
	a->id = p->n_agents;
	a->host = a->place = PEER_NONE;
	a->next_seq = 1;
	memcpy(a->agent_id, agent_id, 16);
	p->agents[p->n_agents++] = a;
	return a;
}

int agent_new_stream(struct agent *a)
{
	uint64_t random;

	if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random)
		return -errno;
	a->stream = random << STREAM_INDEX_BITS | a->id;
	if (a->stream == 0)
		a->stream = UINT64_C(1) << 63;
	return 0;
}

struct process *agent_process(struct peers *p, const struct agent *a, uint32_t proc)
{
	return proc < a->n_procs && a->proc_of[proc] != PEER_NONE ? p->processes[a->proc_of[proc]] :
								     NULL;
}

int agent_set_process(struct agent *a, uint32_t proc, uint32_t process)
{
	if (proc >= a->n_procs) {
		uint32_t n = (proc + 16) & ~15u;
		uint32_t *grown = realloc(a->proc_of, n * sizeof *grown);

		if (!grown)
			return -ENOMEM;
		for (uint32_t i = a->n_procs; i < n; i++)
			grown[i] = PEER_NONE;
		a->proc_of = grown;
		a->n_procs = n;
	}
	a->proc_of[proc] = process;
	return 0;
}

static uint32_t slot_of(const struct peers *p, uint32_t host, uint64_t unique)
{
	uint64_t h = (unique ^ host) * UINT64_C(0x9e3779b97f4a7c15);

	return (uint32_t)(h >> 32) & (p->n_by_unique - 1);
}

struct process *peers_find_process(struct peers *p, uint32_t host, uint64_t unique)
{
	for (uint32_t i = slot_of(p, host, unique); p->by_unique[i];
	     i = (i + 1) & (p->n_by_unique - 1)) {
		struct process *v = p->processes[p->by_unique[i] - 1];

		if (v->row.host == host && v->row.unique == unique)
			return v;
	}
	return NULL;
}

static void index_process(struct peers *p, const struct process *v)
{
	uint32_t i = slot_of(p, v->row.host, v->row.unique);

	while (p->by_unique[i])
		i = (i + 1) & (p->n_by_unique - 1);
	p->by_unique[i] = v->row.process + 1;
}

struct process *peers_add_process(struct peers *p, uint32_t host, uint64_t unique)
{
	struct process *v;

	if (grow(&p->processes, p->n_processes, &p->n_processes_alloc, sizeof *p->processes,
		 PEERS_MAX_PROCESSES) != 0)
		return NULL;
	if (p->n_processes * 2 >= p->n_by_unique) {
		uint32_t *wider = calloc((size_t)p->n_by_unique * 2, sizeof *wider);

		if (!wider)
			return NULL;
		free(p->by_unique);
		p->by_unique = wider;
		p->n_by_unique *= 2;
		for (uint32_t i = 0; i < p->n_processes; i++)
			index_process(p, p->processes[i]);
	}
	v = calloc(1, sizeof *v);
	if (!v)
		return NULL;
	v->row = (struct row_process){
		.process = p->n_processes, .host = host, .unique = unique, .rank = -1,
		.local_rank = -1, .exit_code = -1, .signal = -1,
	};
	p->processes[p->n_processes++] = v;
	index_process(p, v);
	return v;
}

struct process *peers_rank(struct peers *p, int32_t rank)
{
	return rank >= 0 && rank < FACT_MAX_RANKS && p->rank_of[rank] ?
		       p->processes[p->rank_of[rank] - 1] :
		       NULL;
}

struct ring *process_ring(struct process *p, uint32_t ring)
{
	if (!p->rings[ring])
		p->rings[ring] = calloc(1, sizeof *p->rings[ring]);
	return p->rings[ring];
}

int process_note_name(struct process *p, uint32_t id)
{
	if (id >= p->n_names) {
		uint32_t n = ((id + 1) * 2 + 63) & ~63u;
		uint64_t *wider = realloc(p->names, n / 8);

		if (!wider)
			return -ENOMEM;
		memset((char *)wider + p->n_names / 8, 0, (n - p->n_names) / 8);
		p->names = wider;
		p->n_names = n;
	}
	if (p->names[id / 64] >> (id % 64) & 1)
		return 0;
	p->names[id / 64] |= UINT64_C(1) << (id % 64);
	return 1;
}
