#include "slow_fixed_rank.h"

#include <assert.h>
#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N_SHAPES 4 /* f(r) ~ ((r + 1) / n)^(2^k - 1) for k = 1 .. 4 */
#define UNIFORM_PART 0.05 /* of every bet: one odd step cannot ruin the product */
#define TAU_MIN 2.0
#define TAU_MAX 64.0
#define TAU_RANKS 64 /* of more, only the livelier ones are measured */
#define SIGMA 3.72   /* 1e-4, one-sided */
#define MIN_STEPS 32
#define MIN_STEPS_WITHOUT_BEFORE 192
#define BEFORE_STEPS 32
#define MIN_NS 1000000000.0
#define LOOK_EVERY 8  /* steps between two looks at a suspect */
#define TELL_EVERY 32 /* steps between two updates of a standing verdict */
#define SAME_ONSET 16 /* steps between the onsets of two culprits of one cause */
#define END_NATS 14.0 /* evidence that a slow rank is slow no more */
#define MIN_COVERAGE 0.9
#define SPELLS 3.0 /* times the longest spell of anybody that passed */
#define MAX_CULPRITS 64

enum part { PART_INPUT, PART_FORWARD, PART_BACKWARD, PART_OPTIMIZER, PART_OTHER, N_PARTS };
static const char *const part_names[] = { "input", "forward", "backward", "optimizer",
					  "outside of the phases" };

struct sample { /* of one rank in one step, ns; self < 0 = not there */
	float self, exposed, coverage;
	float part[N_PARTS];
	float excess;	/* over the median of the others, of the step's duration */
	float position; /* the part of the others that it is slower than by the effect */
};

struct suspect {
	double sum[N_SHAPES]; /* ln of the product since start */
	double peak[N_SHAPES];
	uint32_t start[N_SHAPES]; /* count of steps */
	double end_sum;
	uint32_t end_start;
	uint32_t next_look;
	bool standing; /* in a verdict that has not ended */
};

struct standing {
	char key[96];
	int32_t ranks[MAX_CULPRITS];
	uint32_t n_ranks;
	uint32_t onset, first_onset; /* counts of steps: now, and as told first */
	uint32_t first_step, last_step;
	int64_t onset_ns, detected_ns;
	uint32_t next_tell;
	bool ended, changed, notice;
	/* last numbers that held */
	enum fact_confidence confidence;
	double excess, cost, margin_ns, error_ns, step_ns, wait_ns, self_ratio, excess_ns;
	double part_ns[N_PARTS];
	double tau, coverage;
	uint32_t n_peers, n_steps;
};

struct slow_fixed_rank {
	struct slow_config cfg;
	uint32_t n_ranks;  /* of the arrays */
	uint32_t n_window; /* power of two */
	uint32_t n_steps;  /* fed so far: the count that names a step here */
	uint32_t last_step;
	uint32_t *step_of; /* by count & (n_window - 1) */
	int64_t *begin_of, *end_of;
	float *dur_of;
	struct sample *samples; /* [slot][rank] */
	struct suspect *suspects;
	double passed[N_SHAPES]; /* the highest peak that came to nothing */
	struct standing *standing;
	size_t n_standing, n_standing_alloc;
	double *table; /* ln f by shape and position, for n_table ranks */
	uint32_t n_table;
	double *scratch;
	size_t n_scratch;
};

int slow_fixed_rank_new(struct slow_fixed_rank **ret, const struct slow_config *cfg)
{
	struct slow_fixed_rank *s = calloc(1, sizeof *s);

	if (!s)
		return -ENOMEM;
	if (cfg)
		s->cfg = *cfg;
	if (s->cfg.effect_ratio <= 0)
		s->cfg.effect_ratio = 0.05;
	if (s->cfg.alpha <= 0)
		s->cfg.alpha = 1e-6;
	*ret = s;
	return 0;
}

void slow_fixed_rank_free(struct slow_fixed_rank *s)
{
	if (!s)
		return;
	free(s->step_of);
	free(s->begin_of);
	free(s->end_of);
	free(s->dur_of);
	free(s->samples);
	free(s->suspects);
	free(s->standing);
	free(s->table);
	free(s->scratch);
	free(s);
}

static uint32_t slot(const struct slow_fixed_rank *s, uint32_t count)
{
	return count & (s->n_window - 1);
}

static struct sample *sample(const struct slow_fixed_rank *s, uint32_t count, uint32_t rank)
{
	return &s->samples[(size_t)slot(s, count) * s->n_ranks + rank];
}

/* Room for the world as it is; it may still grow at the start of a run. */
static int resize(struct slow_fixed_rank *s, uint32_t n_ranks)
{
	uint32_t n_window = 1024;
	struct sample *samples;
	struct suspect *suspects;
	double *scratch;

	if (n_ranks <= s->n_ranks)
		return 0;
	if (s->n_window)
		n_window = s->n_window;
	else if (s->cfg.n_window)
		for (n_window = 64; n_window < s->cfg.n_window;)
			n_window *= 2;
	else
		while (n_window > 256 && (uint64_t)n_window * n_ranks > 1u << 20)
			n_window /= 2;

	if (!s->n_window) {
		s->step_of = calloc(n_window, sizeof *s->step_of);
		s->begin_of = calloc(n_window, sizeof *s->begin_of);
		s->end_of = calloc(n_window, sizeof *s->end_of);
		s->dur_of = calloc(n_window, sizeof *s->dur_of);
		if (!s->step_of || !s->begin_of || !s->end_of || !s->dur_of)
			return -ENOMEM;
		s->n_window = n_window;
	}
	samples = malloc((size_t)n_window * n_ranks * sizeof *samples);
	if (!samples)
		return -ENOMEM;
	for (uint32_t i = 0; i < n_window; i++)
		for (uint32_t r = 0; r < n_ranks; r++) {
			struct sample *to = &samples[(size_t)i * n_ranks + r];

			if (r < s->n_ranks)
				*to = s->samples[(size_t)i * s->n_ranks + r];
			else
				*to = (struct sample){ .self = -1 };
		}
	free(s->samples);
	s->samples = samples;
	suspects = realloc(s->suspects, n_ranks * sizeof *suspects);
	if (!suspects)
		return -ENOMEM;
	s->suspects = suspects;
	memset(suspects + s->n_ranks, 0, (n_ranks - s->n_ranks) * sizeof *suspects);
	for (uint32_t r = s->n_ranks; r < n_ranks; r++)
		for (unsigned k = 0; k < N_SHAPES; k++)
			suspects[r].start[k] = s->n_steps;
	s->n_scratch = 4 * (size_t)(n_window > n_ranks ? n_window : n_ranks) + 8;
	scratch = realloc(s->scratch, s->n_scratch * sizeof *scratch);
	if (!scratch)
		return -ENOMEM;
	s->scratch = scratch;
	s->n_ranks = n_ranks;
	return 0;
}

static int make_table(struct slow_fixed_rank *s, uint32_t n)
{
	double *table;

	if (s->n_table == n)
		return 0;
	table = realloc(s->table, (size_t)n * N_SHAPES * sizeof *table);
	if (!table)
		return -ENOMEM;
	s->table = table;
	s->n_table = n;
	for (unsigned k = 0; k < N_SHAPES; k++) {
		double power = (double)(2u << k) - 1, sum = 0;

		for (uint32_t r = 0; r < n; r++)
			sum += pow((double)(r + 1) / n, power);
		for (uint32_t r = 0; r < n; r++)
			table[k * n + r] = log(UNIFORM_PART + (1 - UNIFORM_PART) * n *
						pow((double)(r + 1) / n, power) / sum);
	}
	return 0;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void sort(double *v, size_t n)
{
	qsort(v, n, sizeof *v, by_value);
}

/* Of sorted values. */
static double median(const double *v, size_t n)
{
	return n ? (v[(n - 1) / 2] + v[n / 2]) / 2 : NAN;
}

/* Of the others: sorted values without one equal to mine. */
static double median_without(const double *v, size_t n, double mine)
{
	size_t k = n / 2;

	if (n < 2)
		return NAN;
	if (n % 2 == 0)
		return mine < v[k] ? v[k] : v[k - 1];
	return ((mine < v[k] ? v[k] : v[k - 1]) + (mine > v[k] ? v[k] : v[k + 1])) / 2;
}

static size_t n_below(const double *sorted, size_t n, double limit)
{
	size_t lo = 0, hi = n;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (sorted[mid] < limit)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* ---- a look at one suspect ---- */

struct look {
	uint32_t onset; /* count */
	uint32_t n;	/* steps since, in the window */
	double tau, coverage;
	double excess, low, high; /* of the step: median and its interval */
	double other, other_high; /* the worst of the others */
	double cost_share;	  /* what the others wait for it, of its excess */
	double step_ns, added_ns, wait_ns;
	double part_ns[N_PARTS];
	double self_ratio;
	uint32_t n_peers;
};

static uint32_t window_begin(const struct slow_fixed_rank *s)
{
	return s->n_steps > s->n_window ? s->n_steps - s->n_window : 0;
}

/* Sum of absolute deviations from the median of v[0..n), sorted by this. */
static double deviation(double *v, size_t n)
{
	double m, sum = 0;

	sort(v, n);
	m = median(v, n);
	for (size_t i = 0; i < n; i++)
		sum += fabs(v[i] - m);
	return sum;
}

/* The count at which the rank's excess changes its level: the best split near
 * the product's own start. */
static uint32_t find_onset(struct slow_fixed_rank *s, uint32_t rank, uint32_t near)
{
	uint32_t begin = window_begin(s), from, to, lo, hi, best = near, n = 0;
	double *v = s->scratch, *w = v + s->n_window, least = DBL_MAX, whole;

	from = near > begin + 96 ? near - 96 : begin;
	to = near + 96 < s->n_steps ? near + 96 : s->n_steps;
	for (uint32_t c = from; c < to; c++) {
		const struct sample *x = sample(s, c, rank);

		v[n++] = x->self < 0 ? 0 : x->excess;
	}
	memcpy(w, v, n * sizeof *w);
	whole = deviation(w, n);
	lo = near > from + 32 ? near - 32 : from;
	hi = near + 32 < to ? near + 32 : to;
	for (uint32_t c = lo; c < hi; c++) {
		uint32_t n_before = c - from;
		double cost;

		if (n_before < 3)
			continue; /* too few to be another level */
		memcpy(w, v, n * sizeof *w);
		cost = deviation(w, n_before) + deviation(w + n_before, n - n_before);
		if (cost < least) {
			least = cost;
			best = c;
		}
	}
	/* Slow from the first step on: no split explains more than one level does. */
	if (near - begin < 8 && begin == 0 && least > 0.8 * whole)
		return 0;
	return best;
}

static bool is_culprit(const struct slow_fixed_rank *s, uint32_t rank, double limit)
{
	for (unsigned k = 0; k < N_SHAPES; k++)
		if (s->suspects[rank].sum[k] >= limit)
			return true;
	return s->suspects[rank].standing;
}

/* Whoever is or may be slow for good does not tell how long slowness lasts. */
static bool is_left_out(const struct slow_fixed_rank *s, uint32_t r, uint32_t rank, bool after,
			double limit)
{
	return s->suspects[r].standing || (after && (r == rank || is_culprit(s, r, limit)));
}

/* Integrated autocorrelation time of the positions (Geyer's initial positive
 * sequence). Ranks that are alike have one mean, so deviations are from the
 * mean of all of them and not of each: a rank that was slow for the whole of a
 * short past must count as slow for long, not as a rank with another mean. What
 * is under suspicion is left out where it is. */
static double find_tau(struct slow_fixed_rank *s, uint32_t rank, uint32_t onset, double limit)
{
	uint32_t begin = window_begin(s), max_lag;
	double *cov = s->scratch, *z = cov + s->n_window, tau = 1, last = 0;
	uint32_t longest = s->n_steps - onset > onset - begin ? s->n_steps - onset : onset - begin;

	max_lag = longest / 3 < 128 ? longest / 3 : 128;
	memset(cov, 0, (max_lag + 1) * sizeof *cov);
	for (unsigned side = 0; side < 2; side++) {
		uint32_t from = side ? onset : begin, to = side ? s->n_steps : onset;
		double sum = 0, squares = 0, n_all = 0, mean, variance;

		if (to - from < 16)
			continue;
		for (uint32_t c = from; c < to; c++)
			for (uint32_t r = 0; r < s->n_ranks; r++) {
				double p = sample(s, c, r)->position;

				if (sample(s, c, r)->self < 0 || is_left_out(s, r, rank, side, limit))
					continue;
				sum += p;
				squares += p * p;
				n_all++;
			}
		if (n_all == 0)
			continue;
		mean = sum / n_all;
		variance = squares / n_all - mean * mean;
		for (uint32_t r = 0; r < s->n_ranks; r++) {
			double square = 0;
			uint32_t n = 0;

			if (is_left_out(s, r, rank, side, limit))
				continue;
			for (uint32_t c = from; c < to; c++) {
				const struct sample *x = sample(s, c, r);

				if (x->self < 0)
					continue;
				z[n] = x->position - mean;
				square += z[n] * z[n];
				n++;
			}
			/* Of many ranks only the lively ones: they had the spells. */
			if (s->n_ranks > TAU_RANKS && square < variance * n)
				continue;
			for (uint32_t lag = 0; lag <= max_lag && lag < n; lag++)
				for (uint32_t i = lag; i < n; i++)
					cov[lag] += z[i] * z[i - lag];
		}
	}
	if (cov[0] <= 0)
		return TAU_MIN;
	for (uint32_t lag = 1; lag <= max_lag; lag++) {
		if (lag % 2 == 0 && last + cov[lag] < 0)
			break;
		last = cov[lag];
		tau += 2 * cov[lag] / cov[0];
	}
	return tau < TAU_MIN ? TAU_MIN : tau > TAU_MAX ? TAU_MAX : tau;
}

/* Median of a rank's excess since the onset, and its interval. False when there
 * are too few steps for one. */
static bool interval(struct slow_fixed_rank *s, uint32_t rank, uint32_t from, double tau,
		     double *ret_low, double *ret_mid, double *ret_high)
{
	double *v = s->scratch, half;
	uint32_t n = 0, k;

	for (uint32_t c = from; c < s->n_steps; c++)
		if (sample(s, c, rank)->self >= 0)
			v[n++] = sample(s, c, rank)->excess;
	half = SIGMA * sqrt(n * tau) / 2;
	if (n == 0 || half >= n / 2.0)
		return false;
	sort(v, n);
	k = (uint32_t)(n / 2.0 - half);
	*ret_low = v[k];
	*ret_mid = median(v, n);
	*ret_high = v[n - 1 - k];
	return true;
}

static bool look_at(struct slow_fixed_rank *s, uint32_t rank, uint32_t near, double limit,
		    struct look *ret)
{
	uint32_t from, n = 0, n_incomplete = 0;
	double *dur, *added, *waited, *ratio, mid, low, high;

	*ret = (struct look){ .onset = find_onset(s, rank, near), .other = -DBL_MAX,
			      .other_high = -DBL_MAX };
	from = ret->onset;
	ret->n = s->n_steps - from;
	ret->tau = find_tau(s, rank, from, limit);
	if (!interval(s, rank, from, ret->tau, &ret->low, &ret->excess, &ret->high))
		return false;
	for (uint32_t r = 0; r < s->n_ranks; r++) {
		if (r == rank || is_culprit(s, r, limit) ||
		    !interval(s, r, from, ret->tau, &low, &mid, &high))
			continue;
		ret->n_peers++;
		if (mid > ret->other)
			ret->other = mid;
		if (high > ret->other_high)
			ret->other_high = high;
	}

	dur = s->scratch;
	added = dur + s->n_window;
	waited = added + s->n_window;
	ratio = waited + s->n_window;
	for (uint32_t c = from; c < s->n_steps; c++) {
		const struct sample *x = sample(s, c, rank);
		double d = s->dur_of[slot(s, c)];

		if (x->self < 0) {
			n_incomplete++;
			continue;
		}
		dur[n] = d;
		added[n] = x->excess * d;
		ratio[n] = x->self > added[n] ? added[n] / (x->self - added[n]) : 0;
		ret->coverage += x->coverage;
		n++;
	}
	ret->coverage /= n + n_incomplete;
	sort(dur, n);
	sort(added, n);
	sort(ratio, n);
	ret->step_ns = median(dur, n);
	ret->added_ns = median(added, n);
	ret->self_ratio = median(ratio, n);

	/* What the others wait more than the rank itself. */
	n = 0;
	for (uint32_t c = from; c < s->n_steps; c++) {
		const struct sample *x = sample(s, c, rank);
		double sum = 0;
		uint32_t n_others = 0;

		if (x->self < 0)
			continue;
		for (uint32_t r = 0; r < s->n_ranks; r++)
			if (r != rank && sample(s, c, r)->self >= 0) {
				sum += sample(s, c, r)->exposed;
				n_others++;
			}
		if (n_others)
			waited[n++] = sum / n_others - x->exposed;
	}
	sort(waited, n);
	ret->wait_ns = n ? median(waited, n) : 0;
	ret->cost_share = ret->added_ns > 0 ? ret->wait_ns / ret->added_ns : 0;

	for (unsigned p = 0; p < N_PARTS; p++) {
		uint32_t m = 0;

		for (uint32_t c = from; c < s->n_steps; c++) {
			double sum = 0;
			uint32_t n_others = 0;

			if (sample(s, c, rank)->self < 0)
				continue;
			for (uint32_t r = 0; r < s->n_ranks; r++)
				if (r != rank && sample(s, c, r)->self >= 0) {
					sum += sample(s, c, r)->part[p];
					n_others++;
				}
			if (n_others)
				dur[m++] = sample(s, c, rank)->part[p] - sum / n_others;
		}
		sort(dur, m);
		ret->part_ns[p] = m ? median(dur, m) : 0;
	}
	return true;
}

/* ---- verdicts ---- */

static struct standing *find_standing(struct slow_fixed_rank *s, uint32_t onset)
{
	for (size_t i = 0; i < s->n_standing; i++) {
		struct standing *v = &s->standing[i];
		uint32_t gap = v->onset > onset ? v->onset - onset : onset - v->onset;

		/* Noise moves an onset by more the more steps it took to be sure. */
		if (!v->ended && !v->notice &&
		    (gap <= SAME_ONSET || gap <= (s->n_steps - onset) / 4))
			return v;
	}
	return NULL;
}

static struct standing *add_standing(struct slow_fixed_rank *s)
{
	if (s->n_standing == s->n_standing_alloc) {
		size_t want = s->n_standing_alloc ? 2 * s->n_standing_alloc : 4;
		struct standing *grown = realloc(s->standing, want * sizeof *grown);

		if (!grown)
			return NULL;
		s->standing = grown;
		s->n_standing_alloc = want;
	}
	s->standing[s->n_standing] = (struct standing){ 0 };
	return &s->standing[s->n_standing++];
}

static void take_numbers(struct standing *v, const struct look *l, enum fact_confidence confidence)
{
	v->confidence = confidence;
	v->excess = l->excess;
	v->excess_ns = l->added_ns;
	v->step_ns = l->step_ns;
	v->cost = l->step_ns > l->added_ns ? l->added_ns / (l->step_ns - l->added_ns) : 0;
	v->margin_ns = (l->excess - l->other) * l->step_ns;
	v->error_ns = (l->excess - l->low + l->other_high - l->other) * l->step_ns;
	v->wait_ns = l->wait_ns;
	v->self_ratio = l->self_ratio;
	v->tau = l->tau;
	v->coverage = l->coverage;
	v->n_peers = l->n_peers;
	v->n_steps = l->n;
	memcpy(v->part_ns, l->part_ns, sizeof v->part_ns);
	v->changed = true;
}

/* The parts that grew: each at least a quarter of the largest. */
static void name_parts(const struct standing *v, char *out, size_t n_out)
{
	double most = 0;
	size_t at = 0;

	*out = '\0';
	for (unsigned p = 0; p < N_PARTS; p++)
		if (v->part_ns[p] > most)
			most = v->part_ns[p];
	for (unsigned p = 0; p < N_PARTS; p++)
		if (v->part_ns[p] > 0 && v->part_ns[p] >= most / 4 && at < n_out)
			at += (size_t)snprintf(out + at, n_out - at, "%s%s", at ? " and " : "",
					       part_names[p]);
}

static void name_ranks(const struct standing *v, const char *glue, const char *last_glue, char *out,
		       size_t n_out)
{
	size_t at = 0;

	*out = '\0';
	for (uint32_t i = 0; i < v->n_ranks && at < n_out; i++)
		at += (size_t)snprintf(out + at, n_out - at, "%s%d",
				       i == 0 ? "" : i + 1 == v->n_ranks ? last_glue : glue,
				       v->ranks[i]);
}

/* Host names are a stranger's text: the quotes of JSON are ours. */
static void json_text(const char *in, char *out, size_t n_out)
{
	size_t at = 0;

	for (; *in && at + 7 < n_out; in++) {
		unsigned char c = (unsigned char)*in;

		if (c == '"' || c == '\\')
			out[at++] = '\\';
		if (c < 0x20)
			at += (size_t)snprintf(out + at, n_out - at, "\\u%04x", c);
		else
			out[at++] = (char)c;
	}
	out[at] = '\0';
}

static const char *common_host(const struct slow_fixed_rank *s, const struct standing *v)
{
	const char *host = NULL;

	for (uint32_t i = 0; i < v->n_ranks && s->cfg.host_of; i++) {
		const char *h = s->cfg.host_of(s->cfg.arg, v->ranks[i]);

		if (!h || !*h || (host && strcmp(h, host) != 0))
			return NULL;
		host = h;
	}
	return host;
}

static int tell(struct slow_fixed_rank *s, struct standing *v, struct facts *facts)
{
	char list[MAX_CULPRITS * 8], words[MAX_CULPRITS * 8], parts[128], host_json[160] = "";
	const char *host = common_host(s, v), *verb = v->n_ranks == 1 ? "computes" : "compute";
	char evidence[256];
	struct fact_verdict *f;

	v->changed = false;
	if (!facts)
		return 0;
	name_ranks(v, ",", ",", list, sizeof list);
	name_ranks(v, ", ", " and ", words, sizeof words);
	name_parts(v, parts, sizeof parts);
	if (host) {
		char quoted[128];

		json_text(host, quoted, sizeof quoted);
		snprintf(host_json, sizeof host_json, "\"host\":\"%s\",", quoted);
	}
	f = FACTS_PUSH(facts, verdicts);
	if (!f)
		return -ENOMEM;
	memcpy(f->key, v->key, sizeof f->key);
	f->class_name = "slow.fixed_rank";
	f->severity = v->notice ? SEVERITY_NOTICE : SEVERITY_SLOW;
	f->confidence = v->confidence;
	f->error_kind = ERROR_KIND_NONE;
	f->culprit_json = facts_printf(facts, "{\"ranks\":[%s],%s\"detail\":\"%s\"}", list, host_json,
				       parts);
	if (v->confidence == CONFIDENCE_INSUFFICIENT)
		f->sentence = facts_printf(
			facts,
			"Rank %s seems slower than its peers since step %u, but %s to be sure.",
			words, v->first_step,
			v->n_peers < 3 ? "there are fewer than three ranks to compare it with"
				       : "too many events are missing");
	else if (v->confidence == CONFIDENCE_TOO_CLOSE)
		f->sentence = facts_printf(
			facts,
			"Rank %s is slower than its peers since step %u by about %.1f ms a step, "
			"but the spread of the others (%.1f ms) is too large to name it.",
			words, v->first_step, v->excess_ns / 1e6, v->error_ns / 1e6);
	else
		f->sentence = facts_printf(
			facts,
			"Rank%s %s%s%s %s %.0f %% longer than the other ranks (%.1f ms a step, in %s) "
			"from step %u %s; the others wait for it and each step takes %.0f %% longer.",
			v->n_ranks == 1 ? "" : "s", words, host ? " on " : "", host ? host : "", verb,
			v->self_ratio * 100, v->excess_ns / 1e6, *parts ? parts : "no single phase",
			v->first_step,
			v->ended ? "on, until it was as fast as they again" : "on", v->cost * 100);
	snprintf(evidence, sizeof evidence,
		 "[{\"view\":\"rank_step\",\"step\":%u,\"rank\":%d},"
		 "{\"view\":\"rank_step\",\"step\":%u,\"rank\":%d},"
		 "{\"view\":\"step\",\"step\":%u}]",
		 v->first_step, v->ranks[0], v->last_step, v->ranks[0], v->first_step);
	f->evidence_json = facts_string(facts, evidence);
	f->rules_out_json = facts_printf(
		facts,
		"[\"slow.global: in the same steps %u other ranks did not slow down with it\","
		"\"slow.rotating_host_pause: the same rank%s in %u steps, correlated over %.0f\","
		"\"slow.link: the time grew in the rank's own work, not in its transfers\"]",
		v->n_peers, v->n_ranks == 1 ? "" : "s", v->n_steps, v->tau);
	f->coverage_json = facts_printf(facts, "{\"events_seen_ratio\":%.4f,\"peers\":%u}",
					v->coverage, v->n_peers);
	f->first_step = v->first_step;
	f->last_step = v->last_step;
	f->onset_ns = v->onset_ns;
	f->detected_ns = v->detected_ns;
	f->cost_ratio = v->cost;
	f->margin_ns = (int64_t)v->margin_ns;
	f->error_ns = (int64_t)v->error_ns;
	return 0;
}

static bool holds_rank(const struct standing *v, int32_t rank)
{
	for (uint32_t i = 0; i < v->n_ranks; i++)
		if (v->ranks[i] == rank)
			return true;
	return false;
}

static void insert_rank(struct standing *v, int32_t rank)
{
	uint32_t i = v->n_ranks;

	if (i == MAX_CULPRITS || holds_rank(v, rank))
		return;
	for (; i > 0 && v->ranks[i - 1] > rank; i--)
		v->ranks[i] = v->ranks[i - 1];
	v->ranks[i] = rank;
	v->n_ranks++;
	v->changed = true;
}

/* A notice stands once for a rank: repeating it is no news. */
static struct standing *notice_of(struct slow_fixed_rank *s, int32_t rank)
{
	for (size_t i = 0; i < s->n_standing; i++)
		if (s->standing[i].notice && holds_rank(&s->standing[i], rank))
			return &s->standing[i];
	return NULL;
}

static int judge(struct slow_fixed_rank *s, uint32_t rank, uint32_t near, double sum, double limit,
		 struct facts *facts)
{
	struct suspect *x = &s->suspects[rank];
	enum fact_confidence confidence;
	uint32_t n_culprits = 0, n_before;
	struct standing *v;
	struct look l;

	x->next_look = s->n_steps + LOOK_EVERY;
	if (!look_at(s, rank, near, limit, &l))
		return 0;
	n_before = l.onset - window_begin(s);
	if (sum < l.tau * limit || l.n < MIN_STEPS ||
	    (n_before < BEFORE_STEPS && l.n < MIN_STEPS_WITHOUT_BEFORE) ||
	    (double)(s->end_of[slot(s, s->n_steps - 1)] - s->begin_of[slot(s, l.onset)]) < MIN_NS)
		return 0;
	if (x->end_sum >= END_NATS / 2) /* it was, but is no more */
		return 0;
	if (l.cost_share < 0.5) /* slow, but nobody waits for it */
		return 0;
	for (uint32_t r = 0; r < s->n_ranks; r++)
		n_culprits += r == rank || is_culprit(s, r, limit);
	if (2 * n_culprits >= s->n_ranks && s->n_ranks > 3)
		return 0; /* half of the job: who is slow and who is fast? */

	if (s->n_ranks < 4 || l.coverage < MIN_COVERAGE)
		confidence = CONFIDENCE_INSUFFICIENT;
	else if (l.low <= l.other_high || l.excess < s->cfg.effect_ratio)
		confidence = CONFIDENCE_TOO_CLOSE;
	else
		confidence = CONFIDENCE_CERTAIN;

	if (confidence != CONFIDENCE_CERTAIN) {
		if (notice_of(s, (int32_t)rank))
			return 0;
		v = add_standing(s);
	} else {
		v = find_standing(s, l.onset);
		x->standing = true;
		if (v) { /* the same cause on another rank */
			insert_rank(v, (int32_t)rank);
			return tell(s, v, facts);
		}
		/* What was only noticed before is certain now: the same row. */
		v = notice_of(s, (int32_t)rank);
		if (!v)
			v = add_standing(s);
	}
	if (!v)
		return -ENOMEM;
	if (!*v->key) {
		v->first_onset = l.onset;
		v->first_step = s->step_of[slot(s, l.onset)];
		snprintf(v->key, sizeof v->key, "slow.fixed_rank/%u/%u", rank, v->first_step);
	}
	v->notice = confidence != CONFIDENCE_CERTAIN;
	v->onset = l.onset;
	v->first_step = s->step_of[slot(s, l.onset)];
	v->onset_ns = s->begin_of[slot(s, l.onset)];
	v->last_step = s->step_of[slot(s, s->n_steps - 1)];
	v->detected_ns = s->end_of[slot(s, s->n_steps - 1)];
	v->next_tell = s->n_steps + TELL_EVERY;
	insert_rank(v, (int32_t)rank);
	take_numbers(v, &l, confidence);
	return tell(s, v, facts);
}

/* Standing verdicts: still so, or over? */
static int review(struct slow_fixed_rank *s, struct facts *facts)
{
	for (size_t i = 0; i < s->n_standing; i++) {
		struct standing *v = &s->standing[i];
		uint32_t last = 0, over = 0;
		int r;

		if (v->ended || v->notice)
			continue;
		for (uint32_t k = 0; k < v->n_ranks; k++) {
			const struct suspect *x = &s->suspects[v->ranks[k]];
			uint32_t until = x->end_sum > END_NATS / 2 ? x->end_start : s->n_steps;

			over += x->end_sum >= END_NATS;
			if (until > last)
				last = until;
		}
		if (last > v->onset)
			v->last_step = s->step_of[slot(s, last - 1)];
		if (over == v->n_ranks) {
			v->ended = v->changed = true;
			for (uint32_t k = 0; k < v->n_ranks; k++) {
				struct suspect *x = &s->suspects[v->ranks[k]];

				x->standing = false;
				for (unsigned q = 0; q < N_SHAPES; q++) {
					x->sum[q] = x->peak[q] = 0;
					x->start[q] = s->n_steps;
				}
			}
			r = tell(s, v, facts);
			if (r < 0)
				return r;
			continue;
		}
		if (s->n_steps < v->next_tell)
			continue;
		v->next_tell = s->n_steps + TELL_EVERY;
		if (over == 0 && v->onset >= window_begin(s)) {
			struct look l;

			if (look_at(s, (uint32_t)v->ranks[0], v->onset, DBL_MAX, &l) &&
			    l.low > l.other_high) {
				take_numbers(v, &l, CONFIDENCE_CERTAIN);
				/* More steps place the onset better, not elsewhere. */
				if (l.onset + SAME_ONSET >= v->first_onset &&
				    l.onset <= v->first_onset + SAME_ONSET) {
					v->onset = l.onset;
					v->first_step = s->step_of[slot(s, l.onset)];
					v->onset_ns = s->begin_of[slot(s, l.onset)];
				}
			}
		}
		r = tell(s, v, facts);
		if (r < 0)
			return r;
	}
	return 0;
}

int slow_fixed_rank_step(struct slow_fixed_rank *s, uint32_t step, uint32_t world_size,
			 const struct fact_rank_step *v, size_t n, struct facts *facts)
{
	uint32_t n_ranks = world_size, at;
	double *self, *dur, typical_ns, effect_ns, limit;
	int64_t begin = INT64_MAX, end = INT64_MIN, err_ns = 0;
	int r;

	if (n < 2 || (s->n_steps > 0 && step <= s->last_step))
		return 0;
	for (size_t i = 0; i < n; i++)
		if ((uint32_t)v[i].rank >= n_ranks)
			n_ranks = (uint32_t)v[i].rank + 1;
	r = resize(s, n_ranks);
	if (r == 0)
		r = make_table(s, (uint32_t)n);
	if (r < 0)
		return r;

	at = slot(s, s->n_steps);
	self = s->scratch;
	dur = self + n;
	for (size_t i = 0; i < n; i++) {
		self[i] = (double)v[i].self_ns;
		dur[i] = (double)(v[i].dur_ns - v[i].eval_ns);
		if (v[i].begin_ns < begin)
			begin = v[i].begin_ns;
		if (v[i].begin_ns + v[i].dur_ns > end)
			end = v[i].begin_ns + v[i].dur_ns;
		if (v[i].dur_err_ns > err_ns)
			err_ns = v[i].dur_err_ns;
	}
	sort(self, n);
	sort(dur, n);
	typical_ns = median(dur, n);
	if (typical_ns <= 0)
		return 0;
	effect_ns = s->cfg.effect_ratio * typical_ns;
	if (effect_ns < 2 * (double)err_ns)
		effect_ns = 2 * (double)err_ns;
	s->step_of[at] = step;
	s->begin_of[at] = begin;
	s->end_of[at] = end;
	s->dur_of[at] = (float)typical_ns;
	for (uint32_t k = 0; k < s->n_ranks; k++)
		sample(s, s->n_steps, k)->self = -1;

	limit = log(N_SHAPES * (double)s->n_ranks / s->cfg.alpha) + 2 * log(s->n_steps + 2.0);
	for (size_t i = 0; i < n; i++) {
		const struct fact_rank_step *f = &v[i];
		struct sample *x = sample(s, s->n_steps, (uint32_t)f->rank);
		struct suspect *q = &s->suspects[f->rank];
		double mine = (double)f->self_ns;
		size_t position = n_below(self, n, mine - effect_ns);

		x->self = (float)mine;
		x->exposed = (float)f->exposed_comm_ns;
		x->coverage = (float)f->coverage;
		x->part[PART_INPUT] = (float)f->input_wait_ns;
		x->part[PART_FORWARD] = (float)f->fwd_ns;
		x->part[PART_BACKWARD] = (float)f->bwd_ns;
		x->part[PART_OPTIMIZER] = (float)f->opt_ns;
		x->part[PART_OTHER] = (float)(f->self_ns - f->input_wait_ns - f->fwd_ns - f->bwd_ns -
					      f->opt_ns);
		x->excess = (float)((mine - median_without(self, n, mine)) / typical_ns);
		x->position = (float)position / (float)(n - 1);

		for (unsigned k = 0; k < N_SHAPES; k++) {
			q->sum[k] += s->table[k * n + position];
			if (q->sum[k] > q->peak[k])
				q->peak[k] = q->sum[k];
			/* It fell to the half: that spell of slowness is over. */
			if (q->sum[k] < q->peak[k] / 2 && !q->standing && q->peak[k] > s->passed[k])
				s->passed[k] = q->peak[k];
			if (q->sum[k] <= 0) {
				q->sum[k] = q->peak[k] = 0;
				q->start[k] = s->n_steps + 1;
			}
		}
		if (q->end_sum <= 0)
			q->end_start = s->n_steps;
		q->end_sum -= s->table[1 * n + n_below(self, n, mine)];
		if (q->end_sum < 0)
			q->end_sum = 0;
		if (q->end_sum > END_NATS) /* healthy for long must not outweigh what comes */
			q->end_sum = END_NATS;
	}
	s->n_steps++;
	s->last_step = step;

	for (uint32_t k = 0; k < s->n_ranks; k++) {
		struct suspect *q = &s->suspects[k];
		unsigned best = 0;

		if (q->standing || s->n_steps < q->next_look)
			continue;
		for (unsigned m = 1; m < N_SHAPES; m++)
			if (q->sum[m] > q->sum[best])
				best = m;
		if (q->sum[best] < TAU_MIN * limit || q->sum[best] < SPELLS * s->passed[best])
			continue;
		r = judge(s, k,
			  q->start[best] > window_begin(s) ? q->start[best] : window_begin(s),
			  q->sum[best], limit, facts);
		if (r < 0)
			return r;
	}
	return review(s, facts);
}

int slow_fixed_rank_finish(struct slow_fixed_rank *s, struct facts *facts)
{
	for (size_t i = 0; i < s->n_standing; i++) {
		struct standing *v = &s->standing[i];
		int r;

		if (v->ended)
			continue;
		r = tell(s, v, facts);
		if (r < 0)
			return r;
	}
	return 0;
}
