/* pace_throttle.c - a device that runs below what it can: what it or its agent said. */
#include "pace_why.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define CLOCK_LOW 0.95	/* of what it was, or of what the others have */
#define POWER_LOW 0.85
#define HOT_C 80.0	/* throttling begins a little above */
#define HOTTER_C 8.0

/* The median of what was said from then up to there; NaN where nothing was. */
static double typical(const struct measures *m, uint32_t proc, enum measure what, int64_t from_ns,
		      int64_t to_ns)
{
	const struct measure_series *s = measures_of(m, proc, what);
	double v[MEASURE_KEEP];
	uint32_t n = 0;

	for (uint32_t i = 0; s && i < measure_count(s); i++) {
		size_t at = measure_slot(s, i);

		if (s->v[at].at_ns >= from_ns && s->v[at].at_ns < to_ns)
			v[n++] = s->v[at].value;
	}
	return n ? pace_quantile(v, n, 0.5) : (double)NAN;
}

/* The median over the other ranks. */
static double others(const struct rules *r, uint32_t proc, enum measure what)
{
	const struct roster *roster = r->ledger.roster;
	double v[PACE_MAX_RANKS];
	uint32_t n = 0;

	for (uint32_t i = 0; i < roster->n_procs && n < PACE_MAX_RANKS; i++) {
		double x = i == proc || roster->procs[i].rank < 0
				   ? (double)NAN
				   : typical(&r->measures, i, what, INT64_MIN, INT64_MAX);

		if (!isnan(x))
			v[n++] = x;
	}
	return n ? pace_quantile(v, n, 0.5) : (double)NAN;
}

/* Since then against before, or where nothing is known of before, against the others. */
static bool is_below(const struct rules *r, uint32_t proc, enum measure what, int64_t since_ns,
		     double part, double *ret_now, double *ret_then)
{
	*ret_now = typical(&r->measures, proc, what, since_ns, INT64_MAX);
	*ret_then = typical(&r->measures, proc, what, INT64_MIN, since_ns);
	if (isnan(*ret_then))
		*ret_then = others(r, proc, what);
	return *ret_now < part * *ret_then;
}

bool pace_throttled(const struct rules *r, uint32_t proc, int64_t since_ns, char *why, size_t n_why)
{
	const struct measures *m = &r->measures;
	double now, then;

	if (typical(m, proc, MEASURE_THROTTLE, since_ns, INT64_MAX) > 0.5) {
		const char *reason = m->procs[proc].throttle;

		now = typical(m, proc, MEASURE_CLOCK_MHZ, since_ns, INT64_MAX);
		if (isnan(now))
			snprintf(why, n_why, "it is throttled%s%s", *reason ? ": " : "", reason);
		else
			snprintf(why, n_why, "it is throttled%s%s, at %.0f MHz", *reason ? ": " : "",
				 reason, now);
		return true;
	}
	if (is_below(r, proc, MEASURE_CLOCK_MHZ, since_ns, CLOCK_LOW, &now, &then)) {
		snprintf(why, n_why, "its clock is at %.0f MHz instead of %.0f", now, then);
		return true;
	}
	now = typical(m, proc, MEASURE_XID, INT64_MIN, INT64_MAX);
	if (!isnan(now)) {
		snprintf(why, n_why, "its driver reported Xid %.0f", now);
		return true;
	}
	now = typical(m, proc, MEASURE_HEAT, since_ns, INT64_MAX);
	then = others(r, proc, MEASURE_HEAT);
	if (isnan(then))
		then = typical(m, proc, MEASURE_HEAT, INT64_MIN, since_ns);
	if (now >= HOT_C && now >= then + HOTTER_C) {
		snprintf(why, n_why, "it is at %.0f C, the others at %.0f C", now, then);
		return true;
	}
	if (is_below(r, proc, MEASURE_POWER_W, since_ns, POWER_LOW, &now, &then)) {
		snprintf(why, n_why, "it draws %.0f W instead of %.0f", now, then);
		return true;
	}
	return false;
}
