/* side.h - what ranks, agents and logs said besides spans: the records that rules read.
 *
 * Kept are the categories that a rule asks for, decoded once, the first few of each
 * kind of each process. Everything else is in the store only. A record is a
 * stranger's: a rule asks for a field by name and type and takes NULL or -1 for
 * an answer.
 */
#pragma once

#include "../facts.h"

enum side_kind {
	SIDE_RENDEZVOUS, /* init.rendezvous */
	SIDE_RESOLVE,	 /* init.resolve */
	SIDE_STORE_JOIN, /* init.store_join */
	SIDE_BACKEND,	 /* init.backend */
	SIDE_CONNECT,	 /* net.connect */
	SIDE_INTERFACE,	 /* nccl.bootstrap_if */
	SIDE_END_OF_DATA, /* loader.end_of_data */
	SIDE_BRANCH,	 /* loop.branch */
	SIDE_ZERO_PARAM, /* zero.param */
	SIDE_PROC_STATE, /* proc.state */
	SIDE_LOG,	 /* log.line: errors only */
	SIDE_VERSIONS,	 /* meta.versions */
	SIDE_ENV,	 /* meta.env */
	SIDE_DEVICE,	 /* meta.device */
	SIDE_ROUTE,	 /* net.route */
	SIDE_ACCEPT,	 /* net.accept */
	SIDE_BOOTSTRAP_ERROR, /* net.bootstrap_error */
	SIDE_NCCL_ERROR, /* nccl.error */
	SIDE_NET,	 /* nccl.net */
	SIDE_IB_CONN,	 /* nccl.ib_conn */
	SIDE_QP,	 /* ib.qp */
	SIDE_WC_ERROR,	 /* ib.wc_error */
	SIDE_ALLOC_FAILED, /* mem.alloc_failed */
	SIDE_FREE_DEFERRED, /* mem.free_deferred */
	SIDE_UNIT,	 /* mem.unit */
	SIDE_GPU_NIC,	 /* topo.gpu_nic */
	SIDE_LINK,	 /* topo.link */
	SIDE_PCI,	 /* host.pci */
	SIDE_GRAPH,	 /* nccl.graph */
	SIDE_PORT,	 /* ib.port */
	SIDE_PARALLEL,	 /* meta.parallel */
	SIDE_XID,	 /* dev.xid */
	SIDE_ECC,	 /* dev.ecc */
	SIDE_TIMERS,	 /* pipeline.timers: of a training log */
	SIDE_N_KINDS,
};

struct side_record {
	uint8_t kind;
	bool repeated; /* the same process has said the same kind again since */
	uint32_t proc; /* index in the roster */
	int64_t at_ns; /* host time */
	int64_t now_ns; /* core time: when it was heard */
	void *fields; /* json_t */
};

struct side {
	struct side_record *v;
	size_t n, n_alloc;
	struct side_count {
		uint32_t n, last; /* last: index + 1 */
	} *counts; /* by process and kind */
	uint32_t n_procs;
	uint32_t n_of_kind[SIDE_N_KINDS];
	uint64_t n_dropped;
	int64_t news_now_ns;
};

void side_fini(struct side *s);
/* 0 or -ENOMEM. What no rule asks for, is no object or too much is let go. */
int side_note(struct side *s, uint32_t proc, int64_t at_ns, int64_t now_ns, const char *category,
	      const char *fields_json, size_t n_fields);

/* How many of a kind are kept of a process. */
uint32_t side_count(const struct side *s, uint32_t proc, enum side_kind kind);
/* NULL when it is not there or no text. */
const char *side_text(const struct side_record *r, const char *field);
/* Whole numbers and truth values; other when it is neither. */
int64_t side_number(const struct side_record *r, const char *field, int64_t other);
double side_real(const struct side_record *r, const char *field, double other);
