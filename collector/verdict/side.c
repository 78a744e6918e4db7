#include "side.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#define MAX_OF_A_KIND 64 /* of a process */
#define MAX_UNITS 512	 /* of one: a model's last layer counts like its first */
#define MAX_RECORDS (1u << 17)
#define MAX_PROCS (1u << 17)
#define MAX_BYTES 8192

static const char *const categories[SIDE_N_KINDS] = {
	[SIDE_RENDEZVOUS] = "init.rendezvous",
	[SIDE_RESOLVE] = "init.resolve",
	[SIDE_STORE_JOIN] = "init.store_join",
	[SIDE_BACKEND] = "init.backend",
	[SIDE_CONNECT] = "net.connect",
	[SIDE_INTERFACE] = "nccl.bootstrap_if",
	[SIDE_END_OF_DATA] = "loader.end_of_data",
	[SIDE_BRANCH] = "loop.branch",
	[SIDE_ZERO_PARAM] = "zero.param",
	[SIDE_PROC_STATE] = "proc.state",
	[SIDE_LOG] = "log.line",
	[SIDE_VERSIONS] = "meta.versions",
	[SIDE_ENV] = "meta.env",
	[SIDE_DEVICE] = "meta.device",
	[SIDE_ROUTE] = "net.route",
	[SIDE_ACCEPT] = "net.accept",
	[SIDE_BOOTSTRAP_ERROR] = "net.bootstrap_error",
	[SIDE_NCCL_ERROR] = "nccl.error",
	[SIDE_NET] = "nccl.net",
	[SIDE_IB_CONN] = "nccl.ib_conn",
	[SIDE_QP] = "ib.qp",
	[SIDE_WC_ERROR] = "ib.wc_error",
	[SIDE_ALLOC_FAILED] = "mem.alloc_failed",
	[SIDE_FREE_DEFERRED] = "mem.free_deferred",
	[SIDE_UNIT] = "mem.unit",
	[SIDE_GPU_NIC] = "topo.gpu_nic",
	[SIDE_LINK] = "topo.link",
	[SIDE_PCI] = "host.pci",
	[SIDE_GRAPH] = "nccl.graph",
	[SIDE_PORT] = "ib.port",
	[SIDE_PARALLEL] = "meta.parallel",
	[SIDE_XID] = "dev.xid",
	[SIDE_ECC] = "dev.ecc",
	[SIDE_TIMERS] = "pipeline.timers",
};

void side_fini(struct side *s)
{
	for (size_t i = 0; i < s->n; i++)
		json_decref(s->v[i].fields);
	free(s->v);
	free(s->counts);
	*s = (struct side){ 0 };
}

static int count_of(struct side *s, uint32_t proc, unsigned kind, struct side_count **ret)
{
	if (proc >= s->n_procs) {
		uint32_t n = s->n_procs ? s->n_procs : 16;
		struct side_count *grown;

		while (n <= proc)
			n *= 2;
		grown = realloc(s->counts, (size_t)n * SIDE_N_KINDS * sizeof *grown);
		if (!grown)
			return -ENOMEM;
		memset(grown + (size_t)s->n_procs * SIDE_N_KINDS, 0,
		       (size_t)(n - s->n_procs) * SIDE_N_KINDS * sizeof *grown);
		s->counts = grown;
		s->n_procs = n;
	}
	*ret = &s->counts[(size_t)proc * SIDE_N_KINDS + kind];
	return 0;
}

int side_note(struct side *s, uint32_t proc, int64_t at_ns, int64_t now_ns, const char *category,
	      const char *fields_json, size_t n_fields)
{
	unsigned kind = 0;
	json_t *fields;
	struct side_count *n;

	while (kind < SIDE_N_KINDS && strcmp(categories[kind], category) != 0)
		kind++;
	if (kind == SIDE_N_KINDS || proc >= MAX_PROCS)
		return 0;
	if (count_of(s, proc, kind, &n) < 0)
		return -ENOMEM;
	if (n->n == (kind == SIDE_UNIT ? MAX_UNITS : MAX_OF_A_KIND) || s->n == MAX_RECORDS || n_fields > MAX_BYTES) {
		s->n_dropped++;
		return 0;
	}
	fields = json_loadb(fields_json, n_fields, JSON_REJECT_DUPLICATES, NULL);
	if (!json_is_object(fields)) {
		json_decref(fields);
		return 0;
	}
	if (!facts_reserve((void **)&s->v, &s->n, &s->n_alloc, sizeof *s->v)) {
		json_decref(fields);
		return -ENOMEM;
	}
	s->v[s->n - 1] = (struct side_record){ .kind = (uint8_t)kind, .proc = proc, .at_ns = at_ns,
					       .now_ns = now_ns, .fields = fields };
	if (n->last)
		s->v[n->last - 1].repeated = true;
	n->last = (uint32_t)s->n;
	n->n++;
	s->n_of_kind[kind]++;
	s->news_now_ns = now_ns;
	return 0;
}

uint32_t side_count(const struct side *s, uint32_t proc, enum side_kind kind)
{
	return proc < s->n_procs ? s->counts[(size_t)proc * SIDE_N_KINDS + kind].n : 0;
}

const char *side_text(const struct side_record *r, const char *field)
{
	return json_string_value(json_object_get(r->fields, field));
}

int64_t side_number(const struct side_record *r, const char *field, int64_t other)
{
	const json_t *v = json_object_get(r->fields, field);

	if (json_is_boolean(v))
		return json_is_true(v);
	if (json_is_integer(v))
		return json_integer_value(v);
	if (json_is_real(v) && json_real_value(v) > -1e15 && json_real_value(v) < 1e15)
		return (int64_t)json_real_value(v);
	return other;
}

double side_real(const struct side_record *r, const char *field, double other)
{
	const json_t *v = json_object_get(r->fields, field);

	return json_is_number(v) ? json_number_value(v) : other;
}
