#include "nccl.h"

#include "../../proto/event.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

void nccl_host(const char *name, size_t n, char out[NCCL_HOST])
{
	size_t n_short = 0;

	while (n_short < n && name[n_short] != '.')
		n_short++;
	snprintf(out, NCCL_HOST, "%.*s", (int)(n_short < NCCL_HOST ? n_short : NCCL_HOST - 1), name);
}

void nccl_whole_host(struct trace *t, const char *name, size_t n)
{
	char whole[255];

	if (n < sizeof whole && memchr(name, '.', n)) {
		snprintf(whole, sizeof whole, "%.*s", (int)n, name);
		(void)trace_secret(t, false, whole);
	}
}

static const struct {
	const char *name;
	unsigned bytes;
	enum event_dtype event;
} dtypes[] = { /* by NCCL's number */
	{ "int8", 1, DTYPE_I8 },	{ "uint8", 1, DTYPE_U8 },	{ "int32", 4, DTYPE_I32 },
	{ "uint32", 4, DTYPE_UNKNOWN }, { "int64", 8, DTYPE_I64 },	{ "uint64", 8, DTYPE_UNKNOWN },
	{ "float16", 2, DTYPE_F16 },	{ "float32", 4, DTYPE_F32 },	{ "float64", 8, DTYPE_F64 },
	{ "bfloat16", 2, DTYPE_BF16 },	{ "float8e4m3", 1, DTYPE_F8 },	{ "float8e5m2", 1, DTYPE_F8 },
};
#define N_DTYPES ((int64_t)(sizeof dtypes / sizeof *dtypes))

const char *nccl_dtype(int64_t number, unsigned *ret_bytes)
{
	bool known = number >= 0 && number < N_DTYPES;

	*ret_bytes = known ? dtypes[number].bytes : 0;
	return known ? dtypes[number].name : "";
}

int64_t nccl_dtype_number(const char *name)
{
	if (strncasecmp(name, "nccl", 4) == 0)
		name += 4;
	for (int64_t i = 0; i < N_DTYPES; i++)
		if (strcasecmp(dtypes[i].name, name) == 0)
			return i;
	return -1;
}

unsigned nccl_event_dtype(int64_t number)
{
	return number >= 0 && number < N_DTYPES ? dtypes[number].event : DTYPE_UNKNOWN;
}

unsigned nccl_event_op(const char *name)
{
	static const struct {
		const char *name;
		enum event_op op;
	} ops[] = {
		{ "AllReduce", OP_ALL_REDUCE }, { "AllGather", OP_ALL_GATHER },
		{ "ReduceScatter", OP_REDUCE_SCATTER }, { "Broadcast", OP_BROADCAST },
		{ "Reduce", OP_REDUCE }, { "Gather", OP_GATHER }, { "Scatter", OP_SCATTER },
		{ "AllToAll", OP_ALL_TO_ALL }, { "AlltoAll", OP_ALL_TO_ALL }, { "Send", OP_SEND }, { "Recv", OP_RECV },
	};

	if (strncmp(name, "nccl", 4) == 0)
		name += 4;
	for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
		if (strcmp(ops[i].name, name) == 0)
			return ops[i].op;
	return OP_UNKNOWN;
}

const char *nccl_reduction(int64_t number)
{
	static const char *const names[] = { "sum", "prod", "max", "min", "avg" };

	if (number < 0)
		return NULL;
	return number < (int64_t)(sizeof names / sizeof *names) ? names[number] : "user";
}

int64_t nccl_int(const struct trace_row *r, unsigned column)
{
	return column < r->n_values && trace_type(r, column) == 'i' ? r->values[column].integer : TRACE_NULL;
}

const char *nccl_text(const struct trace_row *r, unsigned column)
{
	return column < r->n_values && trace_type(r, column) == 't' ? r->values[column].text : "";
}
