/* pace_find.c - did some ranks, or everyone, become slower, and when? */
#include "pace.h"

#include <math.h>
#include <string.h>

#define N_BEFORE 3
#define N_AFTER 8
#define EFFECT 0.02  /* of a change beside the others */
#define CLEAR 3.0    /* times the spread */
#define ALWAYS 0.11  /* of a difference without a change, and of a change of everyone */
#define PROVEN 0.06  /* with another sign of it */
#define N_ALWAYS 16
#define N_EVERY 3
#define EVERY_SHARE 0.25
#define EVERY_PART 0.15
#define EVERY_TIMES 1.5
#define N_BEFORE_ALL 5
#define SAME_ONSET 2
#define FEW 16 /* others that a rank's parts are compared with */

struct split {
	uint32_t at; /* of v[0..n): the first after it; 0 = none */
	double before, after, spread;
	bool apart;
};

/* The highest less the lowest mean of N_AFTER steps in a row. */
static double range_of(const double *v, uint32_t n)
{
	double sum = 0, low = INFINITY, high = -INFINITY;

	for (uint32_t i = 0; i < n; i++) {
		sum += v[i] - (i >= N_AFTER ? v[i - N_AFTER] : 0);
		if (i + 1 >= N_AFTER) {
			low = fmin(low, sum);
			high = fmax(high, sum);
		}
	}
	return n < N_AFTER ? 0 : (high - low) / N_AFTER;
}

/* The best upward split of a series into two levels. tmp: 2 n. */
static struct split split_of(const double *v, uint32_t n, uint32_t n_before, double *tmp)
{
	struct split s = { 0 };
	double low, high, sum = 0, head = 0, best = 0;

	if (n < n_before + N_AFTER)
		return s;
	memcpy(tmp, v, n * sizeof *v);
	low = pace_quantile(tmp, n, 0.05); /* a single pause is no level */
	high = tmp[(uint32_t)(0.95 * (n - 1) + 0.5)];
	for (uint32_t i = 0; i < n; i++)
		sum += fmin(fmax(v[i], low), high);
	for (uint32_t i = 0; i + N_AFTER <= n; i++) {
		double tail = sum - head, gain;

		if (i >= n_before) {
			gain = (tail / (n - i) - head / i) * sqrt((double)i * (n - i));
			if (gain > best) {
				best = gain;
				s.at = i;
			}
		}
		head += fmin(fmax(v[i], low), high);
	}
	if (s.at == 0)
		return s;
	memcpy(tmp, v, n * sizeof *v);
	memcpy(tmp + n, v, n * sizeof *v);
	s.before = pace_quantile(tmp, s.at, 0.5);
	s.after = pace_quantile(tmp + s.at, n - s.at, 0.5);
	s.apart = pace_quantile(tmp + s.at, n - s.at, 0.1) > pace_quantile(tmp, s.at, 0.9);
	for (uint32_t i = 0; i < n; i++)
		tmp[n + i] = fabs(v[i] - (i < s.at ? s.before : s.after));
	s.spread = pace_quantile(tmp + n, n, 0.9);
	return s;
}

/* The paces of a rank over the window; how many. */
static uint32_t series(const struct pace *p, uint32_t rank, double *out)
{
	uint32_t n = 0;
	double last = 0;

	for (uint32_t c = pace_first(p); c < p->n_steps; c++) {
		const struct pace_cell *x = pace_cell(p, c, rank);

		if (x->self >= 0)
			last = x->self / p->fast_of[pace_slot(p, c)] - 1;
		out[n++] = last; /* one that is missing is as the one before */
	}
	return n;
}

/* Every rank's own best change, and the spread that three quarters stay within. */
static double look_at_ranks(struct pace *p)
{
	double *v = p->scratch, *tmp = v + p->n_window;

	for (uint32_t r = 0; r < p->n_ranks; r++) {
		uint32_t n = series(p, r, v);
		struct split s = split_of(v, n, N_BEFORE, tmp);

		p->ranks[r] = (struct pace_rank){ .onset = pace_first(p) + s.at,
						  .shift = s.at ? s.after - s.before : 0,
						  .spread = s.spread, .apart = s.apart,
						  .range = range_of(v, n),
						  .range_before = s.at ? range_of(v, s.at) : 0 };
		memcpy(tmp, v, n * sizeof *v);
		p->ranks[r].level = pace_quantile(tmp, n, 0.5);
		p->ranks[r].low = tmp[(uint32_t)(0.1 * (n - 1) + 0.5)];
		p->ranks[r].high = tmp[(uint32_t)(0.9 * (n - 1) + 0.5)];
	}
	for (uint32_t r = 0; r < p->n_ranks; r++)
		v[r] = p->ranks[r].spread;
	return pace_quantile(v, p->n_ranks, 0.75);
}

/* What the cells of a rank have from the onset on, less what they had before. */
static double change_of(struct pace *p, uint32_t rank, const struct pace_change *c,
			double (*value)(const struct pace_cell *))
{
	double *v = p->scratch, *w = v + p->n_window;
	uint32_t n = 0, k = 0;

	for (uint32_t i = c->kind == PACE_EVERY ? c->onset : pace_first(p); i < p->n_steps; i++) {
		const struct pace_cell *x = pace_cell(p, i, rank);

		if (x->self < 0)
			continue;
		if (i >= c->onset)
			v[n++] = value(x);
		else
			w[k++] = value(x);
	}
	return pace_quantile(v, n, 0.5) - pace_quantile(w, k, 0.5);
}

/* The same less that of the others, of whom a few are enough; alone where all changed. */
static double more_of(struct pace *p, uint32_t rank, const struct pace_change *c,
		      double (*value)(const struct pace_cell *))
{
	double sum = 0;
	uint32_t n = 0;

	for (uint32_t r = 0; r < p->n_ranks && n < FEW && c->kind != PACE_ALL; r++)
		if (!pace_holds(c, r)) {
			sum += change_of(p, r, c, value);
			n++;
		}
	return change_of(p, rank, c, value) - (n ? sum / n : 0);
}

static double compute_of(const struct pace_cell *x)
{
	return x->compute;
}
static double host_of(const struct pace_cell *x)
{
	return x->host;
}
static double input_of(const struct pace_cell *x)
{
	return x->input;
}
static double self_of(const struct pace_cell *x)
{
	return x->self;
}

static void take_numbers(struct pace *p, uint32_t rank, double spread, struct pace_change *c)
{
	double *v = p->scratch;
	uint32_t n = 0;

	c->n = p->n_steps - c->onset;
	c->added_ns = more_of(p, rank, c, self_of);
	c->compute_ns = more_of(p, rank, c, compute_of);
	c->host_ns = more_of(p, rank, c, host_of);
	c->input_ns = more_of(p, rank, c, input_of);
	for (uint32_t i = c->onset; i < p->n_steps; i++)
		if (pace_cell(p, i, rank)->self >= 0)
			v[n++] = pace_cell(p, i, rank)->dur;
	c->step_ns = pace_quantile(v, n, 0.5);
	c->spread_ns = spread * c->step_ns;
}

/* How much longer the others are in communication than this rank, from then on or up
 * to there. */
static double waited_ns(struct pace *p, const struct pace_change *c, uint32_t rank, uint32_t from,
			uint32_t to)
{
	double *v = p->scratch;
	uint32_t n = 0;

	for (uint32_t i = from; i < to; i++) {
		double sum = 0;
		uint32_t n_others = 0;

		for (uint32_t r = 0; r < p->n_ranks; r++)
			if (!pace_holds(c, r) && pace_cell(p, i, r)->self >= 0) {
				sum += pace_cell(p, i, r)->exposed;
				n_others++;
			}
		if (n_others && pace_cell(p, i, rank)->self >= 0)
			v[n++] = sum / n_others - pace_cell(p, i, rank)->exposed;
	}
	return pace_quantile(v, n, 0.5);
}

static void add_rank(struct pace_change *c, uint32_t rank)
{
	if (c->n_ranks < PACE_MAX_RANKS)
		c->ranks[c->n_ranks++] = (int32_t)rank;
	else
		c->kind = PACE_STEADY; /* more than can be named: a matter of the job */
}

/* The fast quarter's own time, after over before: near 1 where only the others moved. */
static double fast_change(struct pace *p, uint32_t onset)
{
	double *v = p->scratch;
	uint32_t n = 0, k = 0;

	for (uint32_t i = pace_first(p); i < onset; i++)
		v[n++] = p->fast_of[pace_slot(p, i)];
	for (uint32_t i = onset; i < p->n_steps; i++)
		v[n + k++] = p->fast_of[pace_slot(p, i)];
	return pace_quantile(v + n, k, 0.5) / pace_quantile(v, n, 0.5);
}

static bool find_changed(struct pace *p, double spread, struct pace_change *c)
{
	const struct pace_rank *best = &p->ranks[0];
	uint32_t rank = 0, near;

	for (uint32_t r = 1; r < p->n_ranks; r++)
		if (p->ranks[r].shift > best->shift)
			best = &p->ranks[rank = r];
	if (!best->apart || best->shift < EFFECT || best->shift < CLEAR * best->spread ||
	    best->shift < CLEAR * spread)
		return false;
	*c = (struct pace_change){ .kind = PACE_RANKS, .onset = best->onset, .ratio = best->shift };
	near = SAME_ONSET + (p->n_steps - best->onset) / 8;
	for (uint32_t r = 0; r < p->n_ranks; r++) {
		const struct pace_rank *x = &p->ranks[r];
		uint32_t gap = x->onset > best->onset ? x->onset - best->onset : best->onset - x->onset;

		if (x->shift <= best->shift / 2) {
			if (x->range > best->shift / 2)
				return false; /* it was slower by as much, for a while */
			continue;
		}
		if (!x->apart || x->shift < CLEAR * x->spread || gap > near ||
		    x->range_before > best->shift / 2)
			return false; /* neither with them nor with the others */
		add_rank(c, r);
	}
	if (c->kind == PACE_STEADY || 2 * c->n_ranks > p->n_ranks)
		return false;
	if (2 * c->n_ranks == p->n_ranks && fabs(fast_change(p, c->onset) - 1) > best->shift / 2)
		return false; /* one half slower or the other faster? */
	take_numbers(p, rank, best->spread > spread ? best->spread : spread, c);
	return waited_ns(p, c, rank, c->onset, p->n_steps) -
		       waited_ns(p, c, rank, pace_first(p), c->onset) >= c->added_ns / 2;
}

/* The largest gap between the levels of two ranks next to each other. */
static bool find_different(struct pace *p, double spread, double least, struct pace_change *c)
{
	double *level = p->scratch, gap = 0, split = 0, among, low = INFINITY, high = -INFINITY;
	uint32_t rank = 0;

	if (p->n_steps - pace_first(p) < N_ALWAYS)
		return false;
	for (uint32_t r = 0; r < p->n_ranks; r++)
		level[r] = p->ranks[r].level;
	among = -pace_quantile(level, p->n_ranks, 0);
	for (uint32_t r = p->n_ranks / 2; r < p->n_ranks; r++)
		if (r > 0 && level[r] - level[r - 1] > gap) {
			gap = level[r] - level[r - 1];
			split = level[r];
			among = level[r - 1] - level[0];
		}
	if (gap < least || gap < 4 * among || gap < CLEAR * spread)
		return false;
	*c = (struct pace_change){ .kind = PACE_ALWAYS, .onset = pace_first(p), .ratio = gap };
	for (uint32_t r = 0; r < p->n_ranks; r++) {
		if (p->ranks[r].level < split) {
			high = fmax(high, p->ranks[r].high);
			continue;
		}
		low = fmin(low, p->ranks[r].low);
		if (!c->n_ranks || p->ranks[r].level > p->ranks[rank].level)
			rank = r;
		add_rank(c, r);
	}
	if (c->kind == PACE_STEADY || low <= high)
		return false;
	take_numbers(p, rank, spread, c);
	return waited_ns(p, c, rank, c->onset, p->n_steps) >= c->added_ns / 2;
}

static bool find_everyone(struct pace *p, struct pace_change *c)
{
	double *v = p->scratch, *tmp = v + p->n_window;
	uint32_t n = 0;
	struct split s;

	for (uint32_t i = pace_first(p); i < p->n_steps; i++)
		v[n++] = p->mid_of[pace_slot(p, i)];
	s = split_of(v, n, N_BEFORE_ALL, tmp);
	if (!s.at || !s.apart || s.after - s.before < ALWAYS * s.before ||
	    s.after - s.before < CLEAR * s.spread || range_of(v, s.at) > (s.after - s.before) / 2)
		return false;
	*c = (struct pace_change){ .kind = PACE_ALL, .onset = pace_first(p) + s.at,
				   .ratio = s.after / s.before - 1 };
	if (fast_change(p, c->onset) - 1 < c->ratio / 2)
		return false; /* some did not */
	take_numbers(p, 0, s.spread / s.after, c);
	return c->added_ns > 0;
}

static double pause_of(const struct pace_cell *x)
{
	return x->pause;
}

/* How much more a rank has in that step than every other; *ret_rank is who. 0 unless
 * it is enough. */
static double excess_in(const struct pace *p, uint32_t count, double (*value)(const struct pace_cell *),
			double share, double times, uint32_t *ret_rank)
{
	double most = 0, next = 0, waited = 0;
	uint32_t n = 0;

	for (uint32_t r = 0; r < p->n_ranks; r++) {
		const struct pace_cell *x = pace_cell(p, count, r);

		if (x->self < 0)
			continue;
		n++;
		waited += x->wait;
		if (value(x) > most) {
			next = most;
			most = value(x);
			*ret_rank = r;
		} else if (value(x) > next) {
			next = value(x);
		}
	}
	if (n < 2 || most <= 0 || most < times * next)
		return 0;
	waited -= pace_cell(p, count, *ret_rank)->wait;
	return most - next >= share * pace_cell(p, count, *ret_rank)->dur &&
			       waited / (n - 1) >= (most - next) / 2
		       ? most - next : 0;
}

/* One rank in every step, but for a first one that may be cut. */
static bool find_in_every(struct pace *p, double (*value)(const struct pace_cell *), double share,
			  double times, struct pace_change *c)
{
	double *v = p->scratch, low, high, typical;
	uint32_t first = pace_first(p), n = 0, rank = UINT32_MAX;

	for (uint32_t i = p->n_steps; i-- > first;) {
		uint32_t slow = UINT32_MAX;
		double excess = excess_in(p, i, value, share, times, &slow);

		if (excess > 0 && (rank == UINT32_MAX || rank == slow)) {
			rank = slow;
			v[n++] = excess;
		} else if (i != first || p->n_steps - first <= N_EVERY) {
			return false;
		}
	}
	if (n < N_EVERY)
		return false;
	typical = pace_quantile(v, n, 0.5);
	low = v[(uint32_t)(0.1 * (n - 1) + 0.5)];
	high = v[(uint32_t)(0.9 * (n - 1) + 0.5)];
	if (high - low > typical / 2)
		return false;
	*c = (struct pace_change){ .kind = PACE_EVERY, .onset = p->n_steps - n,
				   .paused = value == pause_of };
	add_rank(c, rank);
	take_numbers(p, rank, 0, c);
	c->added_ns = typical;
	c->spread_ns = (high - low) / 2;
	if (c->paused)
		c->compute_ns = 0;
	c->ratio = c->added_ns / (c->step_ns - c->added_ns);
	return true;
}

static bool find_one(struct pace *p, struct pace_change *c)
{
	return find_in_every(p, compute_of, EVERY_PART, EVERY_TIMES, c) ||
	       find_in_every(p, pause_of, EVERY_PART, EVERY_TIMES, c) ||
	       find_in_every(p, self_of, EVERY_SHARE, 1, c);
}

bool pace_find(struct pace *p, bool (*proven)(const void *arg, uint32_t proc), const void *arg,
	       struct pace_change *ret)
{
	double spread;

	if (p->n_steps < N_BEFORE + N_AFTER)
		return p->n_steps > 0 && find_one(p, ret);
	spread = look_at_ranks(p);
	if (find_changed(p, spread, ret) || find_everyone(p, ret) ||
	    find_different(p, spread, ALWAYS, ret))
		return true;
	if (find_different(p, spread, PROVEN, ret)) {
		uint32_t n = 0;

		while (n < ret->n_ranks && proven(arg, pace_proc(p, (uint32_t)ret->ranks[n])))
			n++;
		if (n == ret->n_ranks)
			return true;
	}
	return find_one(p, ret);
}
