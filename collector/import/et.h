/* et.h - execution traces: what a program computes and what each part of it comes after, as
 * graphs without times (PyTorch's observer, PARAM, Chakra). Between readers and the tables.
 */
#pragma once

#include "format.h"

#define ET_MAX_NODES (1u << 20)
#define ET_MAX_EDGES (1u << 22)
#define ET_NONE INT64_MIN

enum et_edge_kind { ET_DATA, ET_CONTROL, ET_PARENT, ET_N_EDGE_KINDS };

struct et_comm { /* of a node that communicates; ET_NONE, "" = not said */
	char collective[64], group[64], dtype[32];
	int64_t seq, rank, n_in, n_out, bytes, group_size, source, target;
};

struct et_node {
	int64_t id, parent, type; /* type: Chakra's number; ET_NONE */
	int64_t dur_us;
	char *name;	      /* owned */
	struct et_comm *comm; /* owned; NULL = it computes */
};

struct et_edge {
	int64_t from, to; /* ids; from comes first */
	enum et_edge_kind kind;
};

struct et {
	struct trace *trace;
	char schema[64];
	struct et_node *nodes;
	uint32_t n_nodes, n_nodes_alloc;
	struct et_edge *edges;
	uint32_t n_edges, n_edges_alloc;
	uint64_t n_bad; /* nodes without an id */
	char *why;
	size_t n_why;
};

/* What is wrong with its graph. */
struct et_check {
	uint64_t n_unknown;   /* edges from an id that no node has */
	uint64_t n_duplicate; /* nodes with an id that one before them has */
	uint64_t n_cyclic;    /* nodes on cycles, or between two */
};

struct et_comm et_no_comm(void);
/* They take what is given: its name and comm are its own from then on. False: too many, or no
 * memory. */
bool et_add_node(struct et *e, const struct et_node *node);
bool et_add_edge(struct et *e, int64_t from, int64_t to, enum et_edge_kind kind);
bool et_fail(struct et *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void et_free(struct et *e);

bool et_look(const struct et *e, struct et_check *ret); /* false without memory */
/* Its rows. Its rank is that of its name, else that of its communication. */
bool et_tell(struct et *e, struct trace_input *in);
/* "rank-3.json", "et_3.json", "chakra.3.et.gz": 3. -1 = none. */
int64_t et_rank_of(const char *path);

extern const struct import_format format_et, format_et_workload;
