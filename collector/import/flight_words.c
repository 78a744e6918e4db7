/* flight_words.c - names and numbers of a Flight Recorder dump, and of its file. */
#include "flight.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	const char *part;
	enum event_op op;
} ops[] = { /* the longer before what is in it */
	{ "barrier", OP_BARRIER },	{ "all_reduce", OP_ALL_REDUCE },   { "allreduce", OP_ALL_REDUCE },
	{ "reduce_scatter", OP_REDUCE_SCATTER }, { "all_gather", OP_ALL_GATHER }, { "allgather", OP_ALL_GATHER },
	{ "all_to_all", OP_ALL_TO_ALL }, { "alltoall", OP_ALL_TO_ALL },	   { "broadcast", OP_BROADCAST },
	{ "gather", OP_GATHER },	{ "scatter", OP_SCATTER },	   { "reduce", OP_REDUCE },
};

struct flight_words flight_words(const char *name)
{
	const char *colon = strchr(name, ':');
	struct flight_words w = { OP_UNKNOWN, -1, -1 };
	char small[64] = "";

	name = colon ? colon + 1 : name;
	for (size_t i = 0; name[i] && i + 1 < sizeof small; i++)
		small[i] = (char)tolower((unsigned char)name[i]);
	if (strncmp(small, "send", 4) == 0) {
		w.op = OP_SEND;
		if (sscanf(small, "send %9d->%9d", &w.from, &w.to) != 2)
			w.from = w.to = -1;
		return w;
	}
	if (strncmp(small, "recv", 4) == 0) {
		w.op = OP_RECV;
		if (sscanf(small, "recv %9d<-%9d", &w.to, &w.from) != 2)
			w.from = w.to = -1;
		return w;
	}
	for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
		if (strstr(small, ops[i].part)) {
			w.op = ops[i].op;
			break;
		}
	return w;
}

enum event_dtype flight_dtype(const char *name, uint64_t *bytes)
{
	static const struct {
		const char *name;
		enum event_dtype dtype;
		uint64_t bytes;
	} known[] = {
		{ "float", DTYPE_F32, 4 },    { "float32", DTYPE_F32, 4 },   { "double", DTYPE_F64, 8 },
		{ "float64", DTYPE_F64, 8 },  { "half", DTYPE_F16, 2 },	     { "float16", DTYPE_F16, 2 },
		{ "bfloat16", DTYPE_BF16, 2 }, { "char", DTYPE_I8, 1 },	     { "int8", DTYPE_I8, 1 },
		{ "byte", DTYPE_U8, 1 },      { "uint8", DTYPE_U8, 1 },	     { "short", DTYPE_I16, 2 },
		{ "int16", DTYPE_I16, 2 },    { "int", DTYPE_I32, 4 },	     { "int32", DTYPE_I32, 4 },
		{ "long", DTYPE_I64, 8 },     { "int64", DTYPE_I64, 8 },     { "bool", DTYPE_BOOL, 1 },
	};
	const char *dot = strrchr(name, '.');

	name = dot ? dot + 1 : name; /* torch.float32 */
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (strcasecmp(known[i].name, name) == 0) {
			*bytes = known[i].bytes;
			return known[i].dtype;
		}
	*bytes = 1;
	return strncasecmp(name, "float8", 6) == 0 ? DTYPE_F8 : DTYPE_UNKNOWN;
}

uint64_t flight_elements(const json_t *shapes, size_t *n)
{
	const json_t *shape, *size;
	uint64_t sum = 0;
	size_t i, k;

	*n = json_array_size(shapes);
	json_array_foreach((json_t *)shapes, i, shape)
	{
		uint64_t one = 1;

		json_array_foreach((json_t *)shape, k, size)
		{
			int64_t v = flight_integer(size, 0);

			one = v <= 0 || one > (UINT64_C(1) << 48) / (uint64_t)v ? 0 : one * (uint64_t)v;
		}
		sum += sum < UINT64_C(1) << 48 ? one : 0;
	}
	return sum;
}

int64_t flight_integer(const json_t *v, int64_t other)
{
	const char *text = json_string_value(v);
	char *end;
	long long n;

	if (json_is_integer(v))
		return json_integer_value(v);
	if (!text || !*text)
		return other;
	errno = 0;
	n = strtoll(text, &end, 10);
	return *end || errno ? other : n;
}

/* ---- a file's name ---- */

static int32_t number_at(const char *s)
{
	int64_t v = 0;

	if (!isdigit((unsigned char)*s))
		return -1;
	for (; isdigit((unsigned char)*s); s++)
		if ((v = v * 10 + (*s - '0')) >= FACT_MAX_RANKS)
			return -1;
	return (int32_t)v;
}

/* Behind the last such word that no longer word ends with, and one sign between; -1. */
static int32_t behind(const char *name, const char *word)
{
	int32_t found = -1;

	for (const char *at = name; (at = strcasestr(at, word)); at++) {
		const char *to = at + strlen(word);

		to += *to && strchr("_-.=", *to);
		if (number_at(to) >= 0 && (at == name || !isalpha((unsigned char)at[-1])))
			found = number_at(to);
	}
	return found;
}

int32_t flight_rank_of_name(const char *name)
{
	const char *end = name + strlen(name), *at;
	int32_t found = behind(name, "rank");

	if (found < 0)
		found = behind(name, "dump");
	if (found >= 0)
		return found;
	/* The last number in front of what the file is called for: node12_3.pkl. */
	while ((at = memrchr(name, '.', (size_t)(end - name))) && at > name && number_at(at + 1) < 0)
		end = at;
	while (end > name && !isdigit((unsigned char)end[-1]))
		end--;
	while (end > name && isdigit((unsigned char)end[-1]))
		end--;
	return number_at(end);
}
