#include "clock_offset.h"
#include "words.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOOK_NS INT64_C(1000000000)
#define FRESH_NS INT64_C(10000000000) /* an older word on a wall clock is none */
#define LEAST_NS INT64_C(100000000)
#define N_IN_A_ROW 3 /* looks: a clock that is being set right now is not an offset */
#define MAX_HOSTS (1u << 16)

struct wall {
	bool known;
	int64_t at_ns, wall_ns, err_ns;
	unsigned n_off;	  /* looks in a row */
	int64_t onset_ns; /* of the first of them */
	int64_t told_ns;  /* the offset as told last, 0 = never */
};

struct clock_offset {
	struct wall *v; /* by host */
	uint32_t n, n_alloc;
	int64_t looked_ns;
	int64_t *sorted;
	uint32_t n_sorted_alloc;
};

int clock_offset_new(struct clock_offset **ret)
{
	*ret = calloc(1, sizeof **ret);
	if (!*ret)
		return -ENOMEM;
	(*ret)->looked_ns = INT64_MIN;
	return 0;
}

void clock_offset_free(struct clock_offset *c)
{
	if (!c)
		return;
	free(c->v);
	free(c->sorted);
	free(c);
}

int clock_offset_wall(struct clock_offset *c, uint32_t host, int64_t at_ns, int64_t wall_ns,
		      int64_t err_ns)
{
	struct wall *w;

	if (host >= MAX_HOSTS)
		return 0;
	if (host >= c->n_alloc) {
		uint32_t n = c->n_alloc ? c->n_alloc : 16;
		struct wall *grown;

		while (n <= host)
			n *= 2;
		grown = realloc(c->v, n * sizeof *grown);
		if (!grown)
			return -ENOMEM;
		memset(grown + c->n_alloc, 0, (n - c->n_alloc) * sizeof *grown);
		c->v = grown;
		c->n_alloc = n;
	}
	if (host >= c->n)
		c->n = host + 1;
	w = &c->v[host];
	w->known = err_ns != FACT_UNBOUNDED;
	w->at_ns = at_ns;
	w->wall_ns = wall_ns;
	w->err_ns = err_ns;
	return 0;
}

static int by_size(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static int64_t size_of(int64_t v)
{
	return v < 0 ? -v : v;
}

static bool is_fresh(const struct wall *w, int64_t now_ns)
{
	return w->known && now_ns - w->at_ns < FRESH_NS;
}

/* The interval of the median: that of the lower ends to that of the upper ends.
 * Of an even number both middle ones count. Returns how many hosts it is of. */
static int median(struct clock_offset *c, int64_t now_ns, int64_t *ret_lo, int64_t *ret_hi)
{
	int64_t *ends[2] = { ret_lo, ret_hi };
	uint32_t n = 0;

	if (c->n > c->n_sorted_alloc) {
		int64_t *grown = realloc(c->sorted, c->n_alloc * sizeof *grown);

		if (!grown)
			return -ENOMEM;
		c->sorted = grown;
		c->n_sorted_alloc = c->n_alloc;
	}
	for (int upper = 0; upper < 2; upper++) {
		n = 0;
		for (uint32_t i = 0; i < c->n; i++) {
			const struct wall *w = &c->v[i];

			if (is_fresh(w, now_ns))
				c->sorted[n++] = w->wall_ns + (upper ? w->err_ns : -w->err_ns);
		}
		if (n == 0)
			return 0;
		qsort(c->sorted, n, sizeof *c->sorted, by_size);
		*ends[upper] = c->sorted[upper ? n / 2 : (n - 1) / 2];
	}
	return (int)n;
}

struct finding {
	uint32_t host, other; /* other: of a pair */
	bool pair;
	int64_t off_ns, margin_ns, err_ns;
};

static int tell(struct clock_offset *c, const struct finding *v, int64_t now_ns, uint32_t step,
		const char *name, const char *other, struct facts *facts)
{
	struct wall *w = &c->v[v->host];
	struct fact_verdict *f = FACTS_PUSH(facts, verdicts);
	char quoted[128], pair[300] = "", by[32], err[32];

	if (!f)
		return -ENOMEM;
	w->told_ns = v->off_ns;
	words_json(name, quoted, sizeof quoted);
	words_ns(size_of(v->off_ns), by, sizeof by);
	words_ns(v->err_ns, err, sizeof err);
	snprintf(f->key, sizeof f->key, "clock.offset/%u", v->host);
	f->class_name = "clock.offset";
	f->severity = SEVERITY_NOTICE;
	f->confidence = CONFIDENCE_CERTAIN;
	f->error_kind = ERROR_KIND_HARD;
	if (v->pair) {
		char quoted_other[128];

		words_json(other, quoted_other, sizeof quoted_other);
		snprintf(pair, sizeof pair, " or of %s", quoted_other);
	}
	f->culprit_json = facts_printf(facts, "{\"ranks\":[],\"host\":\"%s\",\"detail\":\"wall clock%s %s%s\"}",
				       quoted, pair, v->off_ns < 0 ? "-" : "+", by);
	if (v->pair)
		f->sentence = facts_printf(
			facts,
			"The wall clocks of %s and %s are %s (± %s) apart, and with two hosts it cannot be "
			"known whose is wrong: log lines of the two must not be lined up by their times. "
			"syncline's own times are not affected.",
			name, other, by, err);
	else
		f->sentence = facts_printf(
			facts,
			"The wall clock of %s is %s (± %s) %s those of the other hosts: log lines and file "
			"times of it must not be lined up with theirs. syncline's own times are not affected.",
			name, by, err, v->off_ns < 0 ? "behind" : "ahead of");
	f->evidence_json = facts_printf(facts, "[{\"view\":\"clock_snapshot\",\"host\":\"%s\"}]", quoted);
	f->rules_out_json = facts_string(
		facts, "[\"a late rank: what is compared is one host's two clocks at one instant\","
		       "\"raw clocks that count from different boots: only wall clocks are compared\"]");
	f->coverage_json = facts_string(facts, "{}");
	f->first_step = f->last_step = step;
	f->onset_ns = w->onset_ns;
	f->cost_ratio = NAN; /* it costs the job nothing */
	f->detected_ns = now_ns;
	f->margin_ns = v->margin_ns;
	f->error_ns = v->err_ns;
	return 0;
}

int clock_offset_look(struct clock_offset *c, int64_t now_ns, uint32_t step,
		      const char *(*name_of)(void *arg, uint32_t host), void *arg,
		      struct facts *facts)
{
	int64_t lo_ns = 0, hi_ns = 0;
	bool pair_seen = false;
	int n;

	if (c->n < 2 || (c->looked_ns != INT64_MIN && now_ns - c->looked_ns < LOOK_NS))
		return 0;
	c->looked_ns = now_ns;
	n = median(c, now_ns, &lo_ns, &hi_ns);
	if (n < 2)
		return n < 0 ? n : 0;
	for (uint32_t i = 0; i < c->n; i++) {
		struct wall *w = &c->v[i];
		struct finding v = { .host = i, .pair = n == 2 };
		const char *name, *other = NULL;
		int64_t over_ns;
		int r;

		if (!is_fresh(w, now_ns) || pair_seen)
			continue;
		pair_seen = v.pair;
		for (uint32_t k = 0; v.pair && k < c->n; k++)
			if (k != i && is_fresh(&c->v[k], now_ns)) {
				v.other = k;
				lo_ns = c->v[k].wall_ns - c->v[k].err_ns;
				hi_ns = c->v[k].wall_ns + c->v[k].err_ns;
			}
		over_ns = w->wall_ns - w->err_ns - hi_ns;
		if (lo_ns - w->wall_ns - w->err_ns > over_ns)
			over_ns = lo_ns - w->wall_ns - w->err_ns;
		if (over_ns < LEAST_NS) {
			w->n_off = 0;
			continue;
		}
		if (w->n_off++ == 0)
			w->onset_ns = w->at_ns;
		v.off_ns = w->wall_ns - (lo_ns + (hi_ns - lo_ns) / 2);
		v.err_ns = w->err_ns + (hi_ns - lo_ns) / 2;
		v.margin_ns = over_ns;
		if (w->n_off < N_IN_A_ROW ||
		    (w->told_ns != 0 && size_of(v.off_ns - w->told_ns) <= size_of(w->told_ns) / 2))
			continue;
		name = name_of(arg, i);
		if (v.pair)
			other = name_of(arg, v.other);
		if (!name || (v.pair && !other))
			continue;
		r = tell(c, &v, now_ns, step, name, other, facts);
		if (r < 0)
			return r;
	}
	return 0;
}
