#include "losses.h"

#include "../facts.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_LOSSES 4096

static const struct {
	const char *category, *of;
} kinds[LOSS_N_KINDS] = {
	[LOSS_RETRANSMITS] = { "net.retransmits", "peer" },
	[LOSS_DROPS] = { "net.drops", "class" },
	[LOSS_PAUSES] = { "net.pause_frames", "nic" },
};

void losses_fini(struct losses *l)
{
	free(l->v);
	*l = (struct losses){ 0 };
}

int losses_kind(const char *category)
{
	for (int i = 0; i < LOSS_N_KINDS; i++)
		if (strcmp(kinds[i].category, category) == 0)
			return i;
	return -1;
}

/* A text, or a number as one. */
static void put_of(const json_t *v, char out[40])
{
	if (json_is_string(v))
		snprintf(out, 40, "%s", json_string_value(v));
	else if (json_is_integer(v))
		snprintf(out, 40, "%" JSON_INTEGER_FORMAT, json_integer_value(v));
}

static uint32_t host_of(const struct roster *r, uint32_t proc, const json_t *fields)
{
	const char *name = json_string_value(json_object_get(fields, "host"));

	for (uint32_t i = 0; name && i < r->n_hosts; i++)
		if (r->hosts[i].name && strcmp(r->hosts[i].name, name) == 0)
			return i;
	return r->procs[proc].host;
}

int losses_note(struct losses *l, const struct roster *r, uint32_t proc, int64_t at_ns,
		enum loss_kind kind, const void *fields)
{
	const json_t *count = json_object_get(fields, "count");
	struct loss key = { .kind = kind, .host = host_of(r, proc, fields), .proc = proc,
			    .of_host = json_object_get(fields, "host") != NULL }, *v = NULL;
	int64_t n;

	if (!json_is_number(count) || json_number_value(count) < 0 || json_number_value(count) > 1e15)
		return 0;
	n = (int64_t)json_number_value(count);
	put_of(json_object_get(fields, kinds[kind].of), key.of);
	for (size_t i = 0; i < l->n && !v; i++)
		if (l->v[i].kind == kind && l->v[i].host == key.host && l->v[i].proc == proc &&
		    strcmp(l->v[i].of, key.of) == 0)
			v = &l->v[i];
	if (!v) {
		if (l->n == MAX_LOSSES)
			return 0;
		if (!facts_reserve((void **)&l->v, &l->n, &l->n_alloc, sizeof *l->v))
			return -ENOMEM;
		v = &l->v[l->n - 1];
		*v = key;
		v->first = v->last = n;
		v->first_at_ns = at_ns;
	}
	v->fell |= n < v->last;
	v->last = n;
	v->sum += n;
	v->n++;
	v->n_positive += n > 0;
	v->last_at_ns = at_ns;
	return 0;
}

int64_t loss_grown(const struct loss *l)
{
	if (l->n == 1)
		return l->last;
	if (l->fell || l->first == l->last)
		return l->n_positive > 1 && l->fell ? l->sum : 0;
	return l->last - l->first;
}
