/* nccl_perf.h - calls that NCCL's inspector or the example of a profiler recorded: rows of
 * raw_nccl_perf, and events of those whose begin and end are known.
 *
 * Durations alone are numbers in a table. A rank's duration has its waiting for the others
 * in it; the least over the ranks of a call is the transfer.
 */
#pragma once

#include "nccl.h"

#define NCCL_PERF_MAX 200000 /* calls of a file */

struct nccl_perf {
	const char *comm, *host, *kind, *op, *timing, *algorithm, *protocol; /* NULL = not told */
	int64_t n_ranks, rank, pid, sn, peer, bytes;			     /* TRACE_NULL, as all from here */
	int64_t exec_ns, enqueue_ns, enqueue_dur_ns, begin_ns, end_ns;
	double algbw_gbs, busbw_gbs; /* NaN */
};

#define NCCL_PERF_NONE                                                                                            \
	(struct nccl_perf){ .n_ranks = TRACE_NULL, .rank = TRACE_NULL, .pid = TRACE_NULL, .sn = TRACE_NULL,      \
			    .peer = TRACE_NULL, .bytes = TRACE_NULL, .exec_ns = TRACE_NULL,                      \
			    .enqueue_ns = TRACE_NULL, .enqueue_dur_ns = TRACE_NULL, .begin_ns = TRACE_NULL,      \
			    .end_ns = TRACE_NULL, .algbw_gbs = NAN, .busbw_gbs = NAN }

bool nccl_perf_put(struct trace *t, const struct nccl_perf *v);
/* Events of what the rows know, for ranks that no other file has told events of. */
bool nccl_perf_join(struct trace *t, struct trace_input *inputs, uint32_t n_inputs);
struct nccl_timed { /* a call that was told as events */
	uint32_t group, number, rank; /* rank: index of the trace's */
	int64_t begin_ns, end_ns;
};

/* The clocks of their hosts, where no other format's ranks are there; sorts v. False without memory. */
bool nccl_perf_align(struct trace *t, struct trace_input *inputs, uint32_t n_inputs, struct nccl_timed *v, size_t n);
