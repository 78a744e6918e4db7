#include "measures.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_PROCS (1u << 16)
#define MAX_BYTES 4096

void measures_fini(struct measures *m)
{
	for (uint32_t i = 0; i < m->n_procs; i++)
		for (unsigned k = 0; k < MEASURE_N; k++)
			free(m->procs[i].of[k]);
	free(m->procs);
	*m = (struct measures){ 0 };
}

static struct measure_of_proc *proc_at(struct measures *m, uint32_t proc)
{
	uint32_t n = m->n_procs ? m->n_procs : 16;
	struct measure_of_proc *grown;

	if (proc < m->n_procs)
		return &m->procs[proc];
	while (n <= proc)
		n *= 2;
	grown = realloc(m->procs, n * sizeof *grown);
	if (!grown)
		return NULL;
	memset(grown + m->n_procs, 0, (n - m->n_procs) * sizeof *grown);
	m->procs = grown;
	m->n_procs = n;
	return &m->procs[proc];
}

static int put(struct measures *m, uint32_t proc, enum measure what, int64_t at_ns, double value)
{
	struct measure_of_proc *p;
	struct measure_series *s;
	size_t at;

	if (proc >= MAX_PROCS || !isfinite(value))
		return 0;
	p = proc_at(m, proc);
	if (!p)
		return -ENOMEM;
	if (!p->of[what])
		p->of[what] = calloc(1, sizeof **p->of);
	s = p->of[what];
	if (!s)
		return -ENOMEM;
	at = s->n++ % MEASURE_KEEP;
	s->v[at].at_ns = at_ns;
	s->v[at].value = value;
	m->n[what]++;
	return 0;
}

static int put_field(struct measures *m, uint32_t proc, enum measure what, int64_t at_ns,
		     const json_t *fields, const char *name)
{
	const json_t *v = json_object_get(fields, name);

	return json_is_number(v) ? put(m, proc, what, at_ns, json_number_value(v)) : 0;
}

/* A reason, a flag or a mask; "none" and its like are no reason. */
static int put_throttle(struct measures *m, uint32_t proc, int64_t at_ns, const json_t *fields)
{
	const json_t *v = json_object_get(fields, "throttle");
	const char *text = json_string_value(v);
	bool on = json_is_true(v) || (json_is_number(v) && json_number_value(v) != 0);
	int r;

	if (!v || json_is_null(v))
		return 0;
	if (text)
		on = *text && strcmp(text, "none") != 0 && strcmp(text, "None") != 0 &&
		     strcmp(text, "no") != 0 && strcmp(text, "idle") != 0 && strcmp(text, "0") != 0;
	r = put(m, proc, MEASURE_THROTTLE, at_ns, on);
	if (r == 0 && on && text && proc < m->n_procs)
		snprintf(m->procs[proc].throttle, sizeof m->procs[proc].throttle, "%s", text);
	return r;
}

int measures_record(struct measures *m, uint32_t proc, int64_t at_ns, const char *category,
		    const char *fields_json, size_t n_fields)
{
	bool load = strcmp(category, "loader.batch") == 0, clock = strcmp(category, "dev.clock") == 0;
	bool heat = strcmp(category, "dev.temperature") == 0, xid = strcmp(category, "dev.xid") == 0;
	json_t *fields;
	int r = 0;

	if ((!load && !clock && !heat && !xid) || n_fields > MAX_BYTES)
		return 0;
	fields = json_loadb(fields_json, n_fields, 0, NULL);
	if (load) {
		r = put_field(m, proc, MEASURE_SAMPLES, at_ns, fields, "size");
		if (r == 0)
			r = put_field(m, proc, MEASURE_TOKENS, at_ns, fields, "tokens");
		if (r == 0)
			r = put_field(m, proc, MEASURE_LOAD_MS, at_ns, fields, "ms");
	} else if (clock) {
		r = put_field(m, proc, MEASURE_CLOCK_MHZ, at_ns, fields, "sm_mhz");
		if (r == 0)
			r = put_throttle(m, proc, at_ns, fields);
	} else if (heat) {
		r = put_field(m, proc, MEASURE_HEAT, at_ns, fields, "gpu_c");
	} else {
		r = put_field(m, proc, MEASURE_XID, at_ns, fields, "code");
	}
	json_decref(fields);
	return r;
}

int measures_gauge(struct measures *m, uint32_t proc, int64_t at_ns, const char *name, double value)
{
	static const struct {
		const char *name;
		enum measure what;
	} known[] = { { "batch", MEASURE_SAMPLES },
		      { "tokens", MEASURE_TOKENS },
		      { "temp_c", MEASURE_HEAT },
		      { "power_w", MEASURE_POWER_W } };

	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (strcmp(known[i].name, name) == 0)
			return put(m, proc, known[i].what, at_ns, value);
	return 0;
}

const struct measure_series *measures_of(const struct measures *m, uint32_t proc, enum measure what)
{
	return proc < m->n_procs ? m->procs[proc].of[what] : NULL;
}
