#include "calls.h"

#include <ctype.h>
#include <stddef.h>
#include <string.h>

/* "All_Reduce" is "allreduce". */
static const char *plain(const char *name, char *out, size_t n_out)
{
	size_t n = 0;

	for (; *name && n + 1 < n_out; name++)
		if (*name != '_' && *name != '-')
			out[n++] = (char)tolower((unsigned char)*name);
	out[n] = '\0';
	return out;
}

static unsigned find(const char *name, const char *const *names, size_t n)
{
	char text[32];

	plain(name, text, sizeof text);
	for (size_t i = 0; i < n; i++) {
		const char *at = names[i] ? strstr(names[i], text) : NULL;
		size_t n_text = strlen(text);

		/* A whole word of the list. */
		for (; at && n_text; at = strstr(at + 1, text))
			if ((at == names[i] || at[-1] == ' ') &&
			    (at[n_text] == ' ' || at[n_text] == '\0'))
				return (unsigned)i;
	}
	return 0;
}

enum event_op call_op(const char *name)
{
	static const char *const names[OP_N] = {
		[OP_ALL_REDUCE] = "allreduce",
		[OP_ALL_GATHER] = "allgather",
		[OP_REDUCE_SCATTER] = "reducescatter",
		[OP_BROADCAST] = "broadcast bcast",
		[OP_REDUCE] = "reduce",
		[OP_GATHER] = "gather",
		[OP_SCATTER] = "scatter",
		[OP_ALL_TO_ALL] = "alltoall alltoallv",
		[OP_BARRIER] = "barrier",
		[OP_SEND] = "send",
		[OP_RECV] = "recv",
	};

	return (enum event_op)find(name, names, OP_N);
}

enum event_dtype call_dtype(const char *name)
{
	static const char *const names[DTYPE_N] = {
		[DTYPE_F32] = "f32 fp32 float32 float",
		[DTYPE_F64] = "f64 fp64 float64 double",
		[DTYPE_F16] = "f16 fp16 float16 half",
		[DTYPE_BF16] = "bf16 bfloat16",
		[DTYPE_F8] = "f8 fp8 float8 f8e4m3 f8e5m2",
		[DTYPE_I8] = "i8 int8",
		[DTYPE_U8] = "u8 uint8",
		[DTYPE_I16] = "i16 int16",
		[DTYPE_I32] = "i32 int32 int",
		[DTYPE_I64] = "i64 int64 long",
		[DTYPE_BOOL] = "bool",
		[DTYPE_OBJECT] = "object",
	};

	return (enum event_dtype)find(name, names, DTYPE_N);
}

unsigned call_dtype_bytes(enum event_dtype dtype)
{
	static const unsigned char sizes[DTYPE_N] = {
		[DTYPE_F32] = 4, [DTYPE_F64] = 8, [DTYPE_F16] = 2, [DTYPE_BF16] = 2,
		[DTYPE_I16] = 2, [DTYPE_I32] = 4, [DTYPE_I64] = 8,
	};

	return sizes[dtype] ? sizes[dtype] : 1;
}
