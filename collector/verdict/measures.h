/* measures.h - amounts that a rank says of its work and its device, over time.
 *
 * How many samples or tokens a batch has and how long it took to get it; clock,
 * heat, power and faults of the device. They come as records or as gauges, many a
 * step, so of each only the newest are kept.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MEASURE_KEEP 256

enum measure {
	MEASURE_SAMPLES,   /* loader.batch size, gauge batch */
	MEASURE_TOKENS,	   /* loader.batch tokens, gauge tokens */
	MEASURE_LOAD_MS,   /* loader.batch ms */
	MEASURE_CLOCK_MHZ, /* dev.clock sm_mhz */
	MEASURE_THROTTLE,  /* dev.clock throttle: 1 or 0 */
	MEASURE_HEAT,	   /* dev.temperature gpu_c, gauge temp_c */
	MEASURE_POWER_W,   /* gauge power_w */
	MEASURE_XID,	   /* dev.xid code */
	MEASURE_N,
};

struct measure_series { /* ring */
	uint64_t n; /* of all */
	struct {
		int64_t at_ns; /* host time */
		double value;
	} v[MEASURE_KEEP];
};

struct measures {
	struct measure_of_proc {
		struct measure_series *of[MEASURE_N];
		char throttle[48]; /* the last reason given */
	} *procs;
	uint32_t n_procs;
	uint64_t n[MEASURE_N];
};

void measures_fini(struct measures *m);
/* What is none of them is let go. 0 or -ENOMEM. */
int measures_record(struct measures *m, uint32_t proc, int64_t at_ns, const char *category,
		    const char *fields_json, size_t n_fields);
int measures_gauge(struct measures *m, uint32_t proc, int64_t at_ns, const char *name, double value);
/* NULL when nothing was said. */
const struct measure_series *measures_of(const struct measures *m, uint32_t proc, enum measure what);
/* The i-th of those that are kept, the oldest first. */
static inline size_t measure_slot(const struct measure_series *s, uint32_t i)
{
	return (s->n > MEASURE_KEEP ? s->n + i : i) % MEASURE_KEEP;
}
static inline uint32_t measure_count(const struct measure_series *s)
{
	return s->n > MEASURE_KEEP ? MEASURE_KEEP : (uint32_t)s->n;
}
