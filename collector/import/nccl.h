/* nccl.h - what the readers of NCCL's own files share: names, and the tables that they fill
 * (migrations/0004_imports.sql).
 */
#pragma once

#include "format.h"

#define NCCL_KEY 48  /* of a communicator: its hash, or what else tells it apart */
#define NCCL_HOST 64
#define NCCL_MAX_RANKS 65536

/* The name of a machine without its domain: processes of one write it with and without. */
void nccl_host(const char *name, size_t n, char out[NCCL_HOST]);
/* Tells its name with the domain, if it has one: other files have it whole. */
void nccl_whole_host(struct trace *t, const char *name, size_t n);
/* ncclDataType_t by its number or name. "" and 0 bytes for others. */
const char *nccl_dtype(int64_t number, unsigned *ret_bytes);
int64_t nccl_dtype_number(const char *name); /* "ncclFloat32", "float32"; -1 */
unsigned nccl_event_dtype(int64_t number);   /* enum event_dtype */
unsigned nccl_event_op(const char *name);    /* enum event_op of "AllReduce", "ncclAllReduce", … */
const char *nccl_reduction(int64_t number);  /* "user" for those of programs, NULL for none */

/* The value of a row that a reader said. */
int64_t nccl_int(const struct trace_row *r, unsigned column); /* TRACE_NULL */
const char *nccl_text(const struct trace_row *r, unsigned column); /* "" */

/* What trace_row() wrote, by column. */
enum { RANK_COMM, RANK_N_RANKS, RANK_RANK, RANK_HOST, RANK_PID, RANK_DEVICE, RANK_NVML, RANK_BUS, RANK_N_NODES,
       RANK_N_CHANNELS, RANK_COMPLETE, RANK_VERSION };
enum { HOP_COMM, HOP_CHANNEL, HOP_RANK, HOP_PREVIOUS, HOP_NEXT, HOP_SAID_BY };
enum { TREE_COMM, TREE_CHANNEL, TREE_RANK, TREE_UP, TREE_DOWN_0, TREE_DOWN_1, TREE_DOWN_2 };
enum { EDGE_COMM, EDGE_CHANNEL, EDGE_INDEX, EDGE_FROM, EDGE_TO, EDGE_SIDE, EDGE_TRANSPORT, EDGE_NIC, EDGE_GDR };
enum { LINE_HOST, LINE_PID, LINE_DEVICE, LINE_AT, LINE_KIND, LINE_KEY, LINE_TEXT };
enum { PERF_COMM, PERF_N_RANKS, PERF_RANK, PERF_HOST, PERF_PID, PERF_KIND, PERF_OP, PERF_SN, PERF_PEER, PERF_BYTES,
       PERF_EXEC_NS, PERF_TIMING, PERF_ALGBW, PERF_BUSBW, PERF_ALGORITHM, PERF_PROTOCOL, PERF_ENQUEUE_NS,
       PERF_ENQUEUE_DUR_NS, PERF_BEGIN_NS, PERF_END_NS };
