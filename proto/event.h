/* event.h - what a training process can say in 32 bytes.
 *
 * The guest writes these into its ring, the agent ships them in column chunks
 * and the collector turns them into facts. A kind, once released, keeps its
 * number and its meaning. Kinds that a reader does not know are kept and
 * counted, never fatal: a new probe may talk to an old collector.
 */
#pragma once

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

struct event {
	uint64_t tick; /* the process's tick source (shm.h); host RAW ns once shipped */
	uint16_t kind; /* enum event_kind */
	uint16_t flags;
	uint32_t name; /* id in the process's string table, 0 = none */
	uint64_t a;
	uint64_t b;
};
static_assert(sizeof(struct event) == 32, "the ring's slots are 32 bytes");

/* Domain events say which step they belong to, because a backward hook may run
 * on another thread than the loop: a = step << 32 | low. */
#define EVENT_STEP_UNKNOWN UINT32_MAX

static inline uint64_t event_a(uint32_t step, uint32_t low)
{
	return (uint64_t)step << 32 | low;
}
static inline uint32_t event_step(uint64_t a)
{
	return (uint32_t)(a >> 32);
}
static inline uint32_t event_low(uint64_t a)
{
	return (uint32_t)a;
}

enum event_kind {
	EVENT_NONE = 0,

	/* The loop. Steps are numbered from 0 by the probe and are contiguous:
	 * the end of n is the beginning of n + 1 (same tick). a = step << 32. */
	EVENT_STEP_BEGIN = 1,
	EVENT_STEP_END = 2,

	/* flags = enum event_phase, a = step << 32 | micro-batch. Phases of one
	 * thread nest properly. */
	EVENT_PHASE_BEGIN = 3,
	EVENT_PHASE_END = 4,

	/* A collective as issued by this rank: BEGIN is its arrival, END is when
	 * this rank knows it is complete (sync: the call returns; async: the
	 * future's callback). flags = op << 8 | dtype, name = group name,
	 * a = step << 32 | sequence number in the group (from 0, low 32 bits),
	 * b = bytes of the input. A message from one rank to another is a send of
	 * the one and a receive of the other in a group "… p2p SOURCE>TARGET" of
	 * its own. A BEGIN with EVENT_COLL_SYNC_BIT in b's top bit
	 * blocks the calling thread until END. */
	EVENT_COLL_BEGIN = 5,
	EVENT_COLL_END = 6,

	/* DDP buckets. flags = event_bucket_flags(ddp, micro), name = group,
	 * a = step << 32 | bucket index.
	 * READY: all gradients of the bucket are there; b = bytes.
	 * SUBMIT: its collective was issued;  b = sequence number in the group.
	 * REDUCED: its future is done;        b = sequence number in the group.
	 * Applied is the end of the optimizer phase of the step. */
	EVENT_BUCKET_READY = 7,
	EVENT_BUCKET_SUBMIT = 8,
	EVENT_BUCKET_REDUCED = 9,

	/* Work of a host thread that the program names (saving, logging, collecting
	 * garbage, setting up). name = what, a = step << 32. One that has begun and
	 * not ended is what the thread is in. */
	EVENT_WORK_BEGIN = 10,
	EVENT_WORK_END = 11,

	/* A host thread stands still until the device is done. a = step << 32 |
	 * number of the launch that it waits for; 0 = for all of them. */
	EVENT_HOST_WAIT_BEGIN = 12,
	EVENT_HOST_WAIT_END = 13,

	/* 14..31 are kept for the loop. */

	/* The device as its runtime shows it. Launches of a process are numbered
	 * from 1 in the order of the calls; streams by the process, 0 = unknown.
	 * LAUNCH: a host thread has given work to a stream. flags = stream, name =
	 *   what the program calls it (0 = nothing), a = step << 32 | launch.
	 * KERNEL: it runs on the device; as its LAUNCH. Work that is a collective
	 *   or a message has none: its COLL_BEGIN and COLL_END are the device's.
	 * STREAM_WAIT: that launch may not begin before another one has ended.
	 *   flags = stream, a = step << 32 | launch, b = the other launch. What the
	 *   order in a stream says already is not said again.
	 * COLL_SUBMIT: which launch is that call? flags, name and a as its
	 *   COLL_BEGIN, b = (root + 1) << 32 | launch, the root a rank of the job;
	 *   0 above = it has none, or none is known. Several calls of one launch are fused: they
	 *   begin and end as one. Where a SUBMIT is told, the BEGIN of the call is
	 *   its begin on the device and not the host's call. */
	EVENT_LAUNCH = 32,
	EVENT_KERNEL_BEGIN = 33,
	EVENT_KERNEL_END = 34,
	EVENT_STREAM_WAIT = 35,
	EVENT_COLL_SUBMIT = 36,

	/* 37..63 are kept for GPU and NCCL. */

	/* The C API (syncline_probe.h), stored as raw events only. */
	EVENT_MARK = 64,
	EVENT_SCOPE_BEGIN = 65,
	EVENT_SCOPE_END = 66,
	EVENT_COUNTER = 67, /* a = bits of a double */

	EVENT_N_KINDS = 256, /* larger numbers are refused on the wire */
};

#define EVENT_COLL_SYNC_BIT (UINT64_C(1) << 63)

/* Kinds below this one are read by the analysis; a chunk without any is stored
 * without being decoded. */
#define EVENT_FIRST_RAW_KIND 64

static inline bool event_kind_is_known(unsigned kind)
{
	return (kind > EVENT_NONE && kind <= EVENT_HOST_WAIT_END) ||
	       (kind >= EVENT_LAUNCH && kind <= EVENT_COLL_SUBMIT) ||
	       (kind >= EVENT_MARK && kind <= EVENT_COUNTER);
}

enum event_phase {
	PHASE_NONE = 0,
	PHASE_DATA = 1,
	PHASE_FORWARD = 2,
	PHASE_BACKWARD = 3,
	PHASE_OPTIMIZER = 4,
	PHASE_EVAL = 5, /* forward of a module that is not training */
	PHASE_N,
};

enum event_op {
	OP_UNKNOWN = 0,
	OP_ALL_REDUCE = 1,
	OP_ALL_GATHER = 2,
	OP_REDUCE_SCATTER = 3,
	OP_BROADCAST = 4,
	OP_REDUCE = 5,
	OP_GATHER = 6,
	OP_SCATTER = 7,
	OP_ALL_TO_ALL = 8,
	OP_BARRIER = 9,
	OP_SEND = 10,
	OP_RECV = 11,
	OP_N,
};

enum event_dtype {
	DTYPE_UNKNOWN = 0,
	DTYPE_F32 = 1,
	DTYPE_F64 = 2,
	DTYPE_F16 = 3,
	DTYPE_BF16 = 4,
	DTYPE_F8 = 5,
	DTYPE_I8 = 6,
	DTYPE_U8 = 7,
	DTYPE_I16 = 8,
	DTYPE_I32 = 9,
	DTYPE_I64 = 10,
	DTYPE_BOOL = 11,
	DTYPE_OBJECT = 12, /* pickled Python objects */
	DTYPE_N,
};

static inline uint16_t event_coll_flags(enum event_op op, enum event_dtype dtype)
{
	return (uint16_t)((unsigned)op << 8 | (unsigned)dtype);
}
static inline uint64_t event_submit_b(int64_t root, uint32_t launch) /* root -1 = none */
{
	return (uint64_t)(root + 1) << 32 | launch;
}
/* One end of a message between two ranks. */
static inline bool event_is_message(const struct event *ev)
{
	return (ev->kind == EVENT_COLL_BEGIN || ev->kind == EVENT_COLL_END) &&
	       (ev->flags >> 8 == OP_SEND || ev->flags >> 8 == OP_RECV);
}
static inline uint16_t event_bucket_flags(unsigned ddp, unsigned micro)
{
	return (uint16_t)((ddp & 0xf) << 12 | (micro & 0xfff));
}

/* Names as people write them ("all_reduce", "float32", "forward"); "unknown"
 * for a number this build does not know. Defined in event.c. */
const char *event_kind_name(unsigned kind);
const char *event_phase_name(unsigned phase);
const char *event_op_name(unsigned op);
const char *event_dtype_name(unsigned dtype);

/* Levels of the control word: what a probe records. */
enum level {
	LEVEL_OFF = 0,
	LEVEL_STEPS = 1,   /* steps and arrivals of collectives */
	LEVEL_DEFAULT = 2, /* + phases, buckets, C API marks */
	LEVEL_LAYERS = 3,
	LEVEL_GPU = 4,
	LEVEL_MAX = 4,
};
