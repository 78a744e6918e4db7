/* formats.c - the formats that are read, in the order in which they are asked. */
#include "format.h"

#include <string.h>

extern const struct import_format format_timeline, format_kineto;
extern const struct import_format format_pickle, format_flight_json;

const struct import_format *const import_formats[] = {
	&format_pickle,
	&format_flight_json,
	&format_timeline,
	&format_kineto,
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
