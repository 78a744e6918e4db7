/* pairs_exits.c - all leave at nearly the same moment.
 *
 * Each exit is noted against the call's own: the median of what every member's
 * exit predicts. The medians of a second are kept for half a minute; a line with
 * a leaning to level through those around an instant says how a node's clock and
 * habit differ from the others' there. The gauge of a class (what all have in
 * common) is free: only differences are used.
 */
#include "pairs_internal.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAX_APART_NS 1000000000 /* a clock this far off is not aligned at all */
#define OUTLIER 6.0
#define LEAST_NOISE_NS 20.0
#define N_TELLS 8 /* seconds of a member that say something of noise and rate */
#define MOST_RATE_SD 1e-6
#define WANDER_S 3.0
#define N_TRUSTED 4 /* seconds of exits before a call may be doubted */
#define DOUBT_NS 2000
#define ABOVE 0.4 /* weight of a late exit; an early one's is 2 - this */

static int by_value(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

int64_t median_of(int64_t *v, uint32_t n)
{
	if (n > 16) {
		qsort(v, n, sizeof *v, by_value);
	} else {
		for (uint32_t i = 1; i < n; i++) {
			int64_t x = v[i];
			uint32_t k = i;

			for (; k > 0 && v[k - 1] > x; k--)
				v[k] = v[k - 1];
			v[k] = x;
		}
	}
	return v[(n - 1) / 2] + (v[n / 2] - v[(n - 1) / 2]) / 2;
}

static uint32_t size_class(uint64_t bytes)
{
	uint32_t k = 0;

	while (bytes >>= 1)
		k++;
	return k;
}

void exits_free(struct exits *x)
{
	free(x->open);
	free(x->epoch);
	free(x->count);
	free(x->fit);
	free(x->own);
	free(x->usual);
	free(x->f);
	free(x->w);
	*x = (struct exits){ 0 };
}

struct exits *exits_find(const struct group *g, uint32_t kind, uint64_t bytes)
{
	uint32_t size = size_class(bytes);

	for (size_t i = 0; i < MAX_CLASSES; i++) {
		const struct exits *x = &g->classes[i];

		if (x->used && x->kind == kind && x->size == size)
			return (struct exits *)x;
	}
	return NULL;
}

static struct exits *make_class(struct pairs *p, struct group *g, const struct pairs_call *c)
{
	struct exits *x = &g->classes[0];
	size_t n = g->n_members;

	for (size_t i = 1; i < MAX_CLASSES && x->used; i++)
		if (!g->classes[i].used || g->classes[i].last_ns < x->last_ns)
			x = &g->classes[i];
	exits_free(x);
	x->open = malloc(N_OPEN * n * sizeof *x->open);
	x->epoch = malloc(N_EPOCHS * n * sizeof *x->epoch);
	x->count = calloc(N_EPOCHS * n, sizeof *x->count);
	x->fit = malloc(n * sizeof *x->fit);
	x->own = malloc(N_OWN * n * sizeof *x->own);
	x->usual = calloc(n, sizeof *x->usual);
	x->f = malloc(n * sizeof *x->f);
	x->w = malloc(n * sizeof *x->w);
	if (!x->open || !x->epoch || !x->count || !x->fit || !x->own || !x->usual || !x->f ||
	    !x->w) {
		exits_free(x);
		return NULL;
	}
	for (size_t i = 0; i < n; i++) {
		x->fit[i] = ABSENT;
		x->usual[i].sd = (float)p->cfg.exit_skew_ns;
	}
	x->used = true;
	x->kind = c->kind;
	x->size = size_class(c->bytes);
	x->open_ns = PAIRS_NONE;
	x->noise = (double)p->cfg.exit_skew_ns;
	x->rate_var = p->cfg.rate_sd * p->cfg.rate_sd * 1e18;
	return x;
}

/* Of a few members each carries the gauge: without some of them it is another, and
 * what was noted of the others in the old one would look like slopes. */
static bool lost_its_gauge(const struct exits *x, uint32_t n_members)
{
	uint32_t n_absent = 0;

	for (uint32_t i = 0; i < n_members; i++)
		n_absent += x->fit[i] == ABSENT;
	return 4 * n_absent >= n_members;
}

void exits_forget_member(struct group *g, uint32_t member)
{
	for (size_t i = 0; i < MAX_CLASSES; i++) {
		struct exits *x = &g->classes[i];

		if (!x->used)
			continue;
		for (size_t k = 0; k < N_OPEN; k++)
			x->open[k * g->n_members + member] = ABSENT;
		for (size_t k = 0; k < N_EPOCHS; k++)
			x->epoch[k * g->n_members + member] = ABSENT;
		x->fit[member] = ABSENT;
		if (!lost_its_gauge(x, g->n_members))
			continue;
		for (uint32_t m = 0; m < g->n_members; m++) {
			x->fit[m] = ABSENT;
			x->w[m] = 0;
		}
		x->n_epochs = 0;
		x->open_ns = PAIRS_NONE;
	}
}

static double expected(const struct pairs *p, const struct group *g, const struct exits *x,
		       uint32_t member)
{
	return x->fit[member] != ABSENT ? x->fit[member] : -p->nodes[g->nodes[member]].c;
}

/* The moment at which the call let everybody go, in the gauge of the class. */
static int64_t exit_of_call(struct pairs *p, const struct group *g, const struct exits *x)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < g->n_members; i++)
		if (p->visits[i].exit_ns != PAIRS_NONE)
			p->sorted[n++] = p->visits[i].exit_ns - llround(expected(p, g, x, i));
	return n < 2 ? PAIRS_NONE : median_of(p->sorted, n);
}

/* Who kept all others waiting? n_members when that cannot be said. */
static uint32_t last_to_enter(const struct pairs *p, const struct group *g)
{
	uint32_t last = 0;
	double latest = -INFINITY;

	for (uint32_t i = 0; i < g->n_members; i++) {
		const struct visit *v = &p->visits[i];
		double at;

		if (v->enter_ns == PAIRS_NONE)
			return g->n_members;
		at = (double)(v->enter_ns - p->visits[0].enter_ns) + p->nodes[v->node].c;
		if (at > latest) {
			latest = at;
			last = i;
		}
	}
	return last;
}

/* A rank may leave late for any reason. It does not leave before the others by many
 * times the noise, nor enter so late that the collective took it half of the
 * shortest time: not unless its clock moved or this is another call of its. Too
 * little for a proof, too much to build one on. */
bool exits_doubt(struct pairs *p, const struct group *g, const struct pairs_call *c)
{
	const struct exits *x = exits_find(g, c->kind, c->bytes);
	int64_t call_ns, limit_ns, stay_ns;
	double age_s;

	if (!c->together || !x || x->n_epochs < N_TRUSTED)
		return false;
	call_ns = exit_of_call(p, g, x);
	if (call_ns == PAIRS_NONE)
		return false;
	age_s = fabs((double)(call_ns - x->epoch_ns[(x->n_epochs - 1) % N_EPOCHS])) * 1e-9;
	limit_ns = DOUBT_NS + llround(OUTLIER * (x->noise + sqrt(x->rate_var) * age_s));
	stay_ns = (bias_shortest(x) - limit_ns) / 2;
	for (uint32_t i = 0; i < g->n_members; i++) {
		const struct visit *v = &p->visits[i];

		if (x->fit[i] == ABSENT)
			continue;
		if (v->exit_ns != PAIRS_NONE && v->exit_ns - x->fit[i] < call_ns - limit_ns)
			return true;
		if (v->enter_ns != PAIRS_NONE && v->enter_ns - x->fit[i] > call_ns - stay_ns)
			return true;
	}
	return false;
}

int exits_call(struct pairs *p, struct group *g, const struct pairs_call *c, int64_t t_ns,
	       bool doubtful)
{
	struct exits *x = exits_find(g, c->kind, c->bytes);
	int64_t call_ns;
	uint32_t last;

	if (!x)
		x = make_class(p, g, c);
	if (!x)
		return -ENOMEM;
	x->last_ns = t_ns;
	x->queued = c->enter_is_queued;
	call_ns = exit_of_call(p, g, x);
	if (call_ns == PAIRS_NONE)
		return 0;
	if (x->open_ns != PAIRS_NONE && t_ns >= x->open_ns + TICK_NS)
		exits_close(p, g, x);
	if (x->open_ns == PAIRS_NONE) {
		x->open_ns = t_ns - t_ns % TICK_NS;
		x->n_open = 0;
		x->sum_ns = 0;
	}
	if (x->n_open < N_OPEN && t_ns >= x->open_ns) {
		int32_t *row = &x->open[x->n_open++ * g->n_members];

		x->sum_ns += t_ns - x->open_ns;
		for (uint32_t i = 0; i < g->n_members; i++) {
			int64_t apart_ns = p->visits[i].exit_ns - call_ns;

			row[i] = p->visits[i].exit_ns == PAIRS_NONE || apart_ns > MAX_APART_NS ||
						 apart_ns < -MAX_APART_NS
					 ? ABSENT
					 : (int32_t)apart_ns;
		}
	}
	if (c->need != PAIRS_NEED_ALL || c->enter_is_queued || doubtful)
		return 0;
	last = last_to_enter(p, g);
	if (last < g->n_members && x->fit[last] != ABSENT)
		bias_note(x, last, g->n_members, call_ns + x->fit[last] - p->visits[last].enter_ns);
	return 0;
}

void exits_close(struct pairs *p, struct group *g, struct exits *x)
{
	size_t at = x->n_epochs % N_EPOCHS;
	bool any = false;

	for (uint32_t i = 0; i < g->n_members; i++) {
		uint32_t n = 0;

		for (uint32_t k = 0; k < x->n_open; k++)
			if (x->open[k * g->n_members + i] != ABSENT)
				p->sorted[n++] = x->open[k * g->n_members + i];
		x->epoch[at * g->n_members + i] = n ? (int32_t)median_of(p->sorted, n) : ABSENT;
		x->count[at * g->n_members + i] = (uint8_t)n;
		any = any || n;
	}
	x->epoch_ns[at] = x->open_ns + (x->n_open ? x->sum_ns / x->n_open : 0);
	x->open_ns = PAIRS_NONE;
	if (!any)
		return;
	x->n_epochs++;
	exits_fit(p, g, x, x->epoch_ns[at], true);
	for (uint32_t i = 0; i < g->n_members; i++)
		if (x->w[i] > 0)
			x->fit[i] = (int32_t)lround(x->f[i]);
	bias_learn(p, g, x);
}

/* What was noted of one member around an instant. */
struct near {
	uint32_t n;
	double at[N_EPOCHS], v[N_EPOCHS], weight[N_EPOCHS]; /* s, ns, exits */
};

static void gather(const struct pairs *p, const struct group *g, const struct exits *x,
		   uint32_t member, int64_t t_ns, struct near *ret)
{
	uint64_t oldest = x->n_epochs > N_EPOCHS ? x->n_epochs - N_EPOCHS : 0;
	int64_t newest_ns = x->epoch_ns[(x->n_epochs - 1) % N_EPOCHS];
	int64_t from_ns = t_ns - p->cfg.window_ns;

	/* As long a window while its later side is still to come. */
	if (newest_ns - 2 * p->cfg.window_ns < from_ns)
		from_ns = newest_ns - 2 * p->cfg.window_ns;
	ret->n = 0;
	for (uint64_t k = oldest; k < x->n_epochs; k++) {
		size_t at = k % N_EPOCHS;
		int32_t v = x->epoch[at * g->n_members + member];

		if (v == ABSENT || x->epoch_ns[at] < from_ns ||
		    x->epoch_ns[at] > t_ns + p->cfg.window_ns)
			continue;
		ret->at[ret->n] = (double)(x->epoch_ns[at] - t_ns) * 1e-9;
		ret->v[ret->n] = v;
		ret->weight[ret->n++] = x->count[at * g->n_members + member];
	}
}

/* The middle, and the deviation of a single exit by the differences of neighbours:
 * blind to a rate. */
static double spread(const struct near *s, double *ret_middle)
{
	int64_t v[N_EPOCHS];
	double mean = 0;

	for (uint32_t i = 0; i < s->n; i++) {
		v[i] = (int64_t)s->v[i];
		mean += s->weight[i] / s->n;
	}
	*ret_middle = (double)median_of(v, s->n);
	if (s->n < 2)
		return 0;
	for (uint32_t i = 0; i + 1 < s->n; i++)
		v[i] = llabs((int64_t)s->v[i + 1] - (int64_t)s->v[i]);
	return 1.4826 / M_SQRT2 * (double)median_of(v, s->n - 1) * sqrt(mean);
}

struct line {
	double f, weight;
	double rate, rate_var; /* without the leaning to level, ns/s */
};

/* Lateness is one-sided: what is below the line counts more than what is above. */
static bool fit_line(const struct near *s, double middle, double var, double slope_sd,
		     double window_s, struct line *ret)
{
	double limit = OUTLIER * sqrt(var) + OUTLIER * slope_sd * window_s, slope = 0;

	ret->f = middle;
	for (int round = 0; round < 3; round++) {
		double s0 = 0, s1 = 0, free = 0, s2, t0 = 0, t1 = 0, det;

		for (uint32_t k = 0; k < s->n; k++) {
			double at = s->at[k], off = s->v[k] - middle, w = s->weight[k];

			if (fabs(off) > limit)
				continue;
			if (round > 0)
				w *= s->v[k] < ret->f + slope * at ? 2 - ABOVE : ABOVE;
			s0 += w;
			s1 += w * at;
			free += w * at * at;
			t0 += w * off;
			t1 += w * at * off;
		}
		s2 = free + var / (slope_sd * slope_sd);
		det = s0 * s2 - s1 * s1;
		if (s0 <= 0 || det <= 0)
			return false;
		ret->f = middle + (s2 * t0 - s1 * t1) / det;
		slope = (s0 * t1 - s1 * t0) / det;
		ret->weight = det / (s2 * var);
		free = free * s0 - s1 * s1;
		ret->rate = free > 0 ? (s0 * t1 - s1 * t0) / free : 0;
		ret->rate_var = free > 0 ? var * s0 / free : INFINITY;
	}
	return true;
}

/* How far do rates differ from what the probes said? What noise does not explain of
 * the members' slopes, and by more than a deviation; followed over a minute. */
static void learn_rate(const struct pairs *p, struct exits *x, double squares, double noise,
		       uint32_t n)
{
	double least = p->cfg.rate_sd * p->cfg.rate_sd * 1e18;
	double most = MOST_RATE_SD * MOST_RATE_SD * 1e18, excess;

	if (n < 2)
		return;
	excess = (squares - noise * (1 + sqrt(2.0 / n))) / n;
	x->rate_excess += 0.02 * ((excess < most ? excess : most) - x->rate_excess);
	x->rate_var = x->rate_excess > least ? x->rate_excess : least;
}

bool exits_fit(const struct pairs *p, const struct group *g, struct exits *x, int64_t t_ns,
	       bool newest)
{
	double noise = 0, squares = 0, unsure = 0;
	uint32_t n_noise = 0;
	bool any = false;

	if (x->n_epochs == 0)
		return false;
	for (uint32_t i = 0; i < g->n_members; i++) {
		double middle, sd, var;
		struct line line;
		struct near s;

		x->w[i] = 0;
		gather(p, g, x, i, t_ns, &s);
		if (s.n == 0)
			continue;
		sd = spread(&s, &middle);
		var = ((s.n - 1) * sd * sd + 4 * x->noise * x->noise) / (s.n + 3) +
		      LEAST_NOISE_NS * LEAST_NOISE_NS;
		if (!fit_line(&s, middle, var, sqrt(x->rate_var), (double)p->cfg.window_ns * 1e-9,
			      &line))
			continue;
		x->f[i] = line.f;
		/* Rates that differ have wandered inside the window, too. */
		x->w[i] = 1 / (1 / line.weight + WANDER_S * WANDER_S * x->rate_var);
		any = true;
		if (s.n >= N_TELLS) {
			noise += sd * sd;
			squares += line.rate * line.rate;
			unsure += line.rate_var;
			n_noise++;
		}
	}
	x->n_noise += n_noise > 0;
	if (n_noise)
		x->noise += 0.1 * (sqrt(noise / n_noise) - x->noise);
	if (newest)
		learn_rate(p, x, squares, unsure, n_noise);
	return any;
}
