/* formats.c - the formats that are read, in the order in which they are asked. */
#include "format.h"

#include <string.h>

extern const struct import_format format_pickle, format_flight_json;
extern const struct import_format format_nccl_profiler, format_nccl_inspector, format_nccl_log, format_nccl_topology;
extern const struct import_format format_timeline, format_kineto, format_kineto_list, format_spans, format_spans_any, format_megatron_log;
extern const struct import_format format_et, format_et_workload, format_et_proto;

const struct import_format *const import_formats[] = {
	&format_pickle,
	&format_flight_json,
	&format_nccl_log,
	&format_nccl_profiler,
	&format_nccl_inspector,
	&format_et,
	&format_et_workload,
	&format_et_proto,
	&format_kineto_list,
	&format_spans,
	&format_timeline,
	&format_kineto,
	&format_nccl_topology,
	&format_spans_any,
	&format_megatron_log, /* reads all of what no other knows */
	NULL,
};

bool head_has(const struct import_head *h, const char *text)
{
	return memmem(h->bytes, h->n_bytes, text, strlen(text)) != NULL;
}

int head_first(const struct import_head *h)
{
	for (size_t i = 0; i < h->n_bytes; i++)
		if (!strchr(" \t\r\n", h->bytes[i]) || h->bytes[i] == 0)
			return h->bytes[i];
	return -1;
}
