#include "event.h"

static const char *pick(const char *const *names, unsigned n_names, unsigned i)
{
	return i < n_names && names[i] ? names[i] : "unknown";
}

const char *event_kind_name(unsigned kind)
{
	static const char *const names[] = {
		[EVENT_STEP_BEGIN] = "step_begin",
		[EVENT_STEP_END] = "step_end",
		[EVENT_PHASE_BEGIN] = "phase_begin",
		[EVENT_PHASE_END] = "phase_end",
		[EVENT_COLL_BEGIN] = "coll_begin",
		[EVENT_COLL_END] = "coll_end",
		[EVENT_BUCKET_READY] = "bucket_ready",
		[EVENT_BUCKET_SUBMIT] = "bucket_submit",
		[EVENT_BUCKET_REDUCED] = "bucket_reduced",
		[EVENT_WORK_BEGIN] = "work_begin",
		[EVENT_WORK_END] = "work_end",
		[EVENT_HOST_WAIT_BEGIN] = "host_wait_begin",
		[EVENT_HOST_WAIT_END] = "host_wait_end",
		[EVENT_LAUNCH] = "launch",
		[EVENT_KERNEL_BEGIN] = "kernel_begin",
		[EVENT_KERNEL_END] = "kernel_end",
		[EVENT_STREAM_WAIT] = "stream_wait",
		[EVENT_COLL_SUBMIT] = "coll_submit",
		[EVENT_MARK] = "mark",
		[EVENT_SCOPE_BEGIN] = "scope_begin",
		[EVENT_SCOPE_END] = "scope_end",
		[EVENT_COUNTER] = "counter",
	};
	return pick(names, sizeof names / sizeof *names, kind);
}

const char *event_phase_name(unsigned phase)
{
	static const char *const names[PHASE_N] = {
		[PHASE_NONE] = "none",         [PHASE_DATA] = "data",
		[PHASE_FORWARD] = "forward",   [PHASE_BACKWARD] = "backward",
		[PHASE_OPTIMIZER] = "optimizer", [PHASE_EVAL] = "eval",
	};
	return pick(names, PHASE_N, phase);
}

const char *event_op_name(unsigned op)
{
	static const char *const names[OP_N] = {
		[OP_ALL_REDUCE] = "all_reduce", [OP_ALL_GATHER] = "all_gather",
		[OP_REDUCE_SCATTER] = "reduce_scatter", [OP_BROADCAST] = "broadcast",
		[OP_REDUCE] = "reduce", [OP_GATHER] = "gather", [OP_SCATTER] = "scatter",
		[OP_ALL_TO_ALL] = "all_to_all", [OP_BARRIER] = "barrier", [OP_SEND] = "send",
		[OP_RECV] = "recv",
	};
	return pick(names, OP_N, op);
}

const char *event_dtype_name(unsigned dtype)
{
	static const char *const names[DTYPE_N] = {
		[DTYPE_F32] = "float32", [DTYPE_F64] = "float64", [DTYPE_F16] = "float16",
		[DTYPE_BF16] = "bfloat16", [DTYPE_F8] = "float8", [DTYPE_I8] = "int8",
		[DTYPE_U8] = "uint8", [DTYPE_I16] = "int16", [DTYPE_I32] = "int32",
		[DTYPE_I64] = "int64", [DTYPE_BOOL] = "bool", [DTYPE_OBJECT] = "object",
	};
	return pick(names, DTYPE_N, dtype);
}
