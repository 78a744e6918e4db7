#include "tick.h"

#include "clock.h"
#include "../../proto/shm.h"

#include <string.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#define HORIZON_NS 1e9 /* about the time between two pairs */
#define FIRST_PAIR_NS INT64_C(20000000)
#define PAIR_NS INT64_C(1000000000)
#define JUMP_NS 1000000
#define JUMP_RATE_ERR 1e-3
#define NS_MAX INT64_C(4000000000000000000)

void tick_init(struct tick *t, unsigned source)
{
	memset(t, 0, sizeof *t);
	t->identity = source == SHM_TICK_RAW;
}

bool tick_ready(const struct tick *t)
{
	return t->identity || t->n_lines > 0;
}

/* Ticks come from a file that anyone in the group may have written: any value
 * gives some time, none overflows. */
static int64_t along(const struct tick_line *l, uint64_t tick)
{
	double d = (double)(int64_t)(tick - l->from_tick) * l->ns_per_tick;
	int64_t at;

	if (d > (double)NS_MAX)
		d = (double)NS_MAX;
	if (d < -(double)NS_MAX)
		d = -(double)NS_MAX;
	at = (int64_t)d;
	return l->from_ns + (at - (d < (double)at)); /* floor: rising over from_tick too */
}

static const struct tick_line *line_of(const struct tick *t, uint64_t tick)
{
	unsigned i = 0;

	while (i + 1 < t->n_lines && (int64_t)(tick - t->lines[i].from_tick) < 0)
		i++;
	return &t->lines[i];
}

int64_t tick_to_ns(const struct tick *t, uint64_t tick)
{
	if (t->identity || t->n_lines == 0)
		return tick > (uint64_t)NS_MAX ? NS_MAX : (int64_t)tick;
	return along(line_of(t, tick), tick);
}

int64_t tick_error_ns(const struct tick *t, uint64_t tick)
{
	const struct tick_line *l;
	double away_ns, err_ns;

	if (t->identity || t->n_lines == 0)
		return 0;
	l = line_of(t, tick);
	away_ns = (double)(int64_t)(tick - l->from_tick) * l->ns_per_tick;
	if (away_ns < 0)
		away_ns = -away_ns;
	err_ns = away_ns * l->rate_err + l->ns_per_tick + 2; /* a counter shows whole ticks */
	if (away_ns > 2 * HORIZON_NS)	    /* past where the bend should have ended */
		err_ns += (away_ns - 2 * HORIZON_NS) * l->bend;
	return err_ns > 1e9 ? 1000000000 : l->err_ns + (int64_t)err_ns;
}

static void push_line(struct tick *t, const struct tick_line *l)
{
	memmove(t->lines + 1, t->lines, (TICK_N_LINES - 1) * sizeof *l);
	t->lines[0] = *l;
	if (t->n_lines < TICK_N_LINES)
		t->n_lines++;
}

static const struct tick_pair *pair_back(const struct tick *t, unsigned n_back)
{
	return &t->pairs[(t->next_pair + TICK_N_PAIRS - n_back) % TICK_N_PAIRS];
}

static int64_t pair_err_ns(const struct tick_pair *p, double ns_per_tick)
{
	int64_t err_ns = (int64_t)((double)p->err_ticks * ns_per_tick) + 1;

	return err_ns > p->err_ns ? err_ns : p->err_ns;
}

int64_t tick_next_pair_ns(const struct tick *t)
{
	int64_t back_ns;

	if (t->n_pairs < 2)
		return FIRST_PAIR_NS;
	back_ns = pair_back(t, 1)->raw_ns - pair_back(t, t->n_pairs)->raw_ns;
	return back_ns < FIRST_PAIR_NS ? FIRST_PAIR_NS : back_ns < PAIR_NS ? back_ns : PAIR_NS;
}

/* The new line begins where the old one is now and is bent so that it meets the
 * truth a second from here: continuous, and wrong by what was found at most. */
static void bend(struct tick *t, const struct tick_pair *p, double rate, double rate_err)
{
	int64_t from_ns = along(line_of(t, p->tick), p->tick);
	int64_t off_ns = p->raw_ns - from_ns;
	struct tick_line l = {
		.from_tick = p->tick,
		.from_ns = from_ns,
		.ns_per_tick = rate,
		.rate_err = rate_err,
		.err_ns = p->err_ns + (off_ns < 0 ? -off_ns : off_ns),
	};

	/* More than the old line admits: a suspended or migrated machine. */
	if (l.err_ns - p->err_ns > JUMP_NS + tick_error_ns(t, p->tick)) {
		t->n_jumps++;
		l.from_ns = p->raw_ns;
		l.err_ns = p->err_ns;
		l.ns_per_tick = t->lines[0].ns_per_tick;
		l.rate_err = t->lines[0].rate_err + JUMP_RATE_ERR;
		t->n_pairs = 0; /* what was measured over the jump is no rate */
	} else {
		l.bend = (double)(l.err_ns - p->err_ns) / HORIZON_NS;
		l.ns_per_tick += (double)off_ns / HORIZON_NS * rate;
	}
	push_line(t, &l);
}

void tick_add_pair(struct tick *t, const struct tick_pair *p)
{
	if (t->identity)
		return;
	if (t->n_pairs > 0) {
		const struct tick_pair *last = pair_back(t, 1);
		const struct tick_pair *first =
			pair_back(t, t->n_pairs < TICK_N_PAIRS ? t->n_pairs : TICK_N_PAIRS);
		double ticks = (double)(p->tick - first->tick);
		double ns = (double)(p->raw_ns - first->raw_ns);
		double rate_err;

		if ((int64_t)(p->tick - last->tick) <= 0 || p->raw_ns <= last->raw_ns)
			return; /* a counter that stands still or runs back is no clock */
		rate_err = (double)(pair_err_ns(first, ns / ticks) + pair_err_ns(p, ns / ticks)) / ns;
		if (t->n_lines > 0) {
			bend(t, p, ns / ticks, rate_err);
		} else {
			push_line(t, &(struct tick_line){
					     .from_tick = first->tick,
					     .from_ns = first->raw_ns,
					     .ns_per_tick = ns / ticks,
					     .rate_err = rate_err,
					     .err_ns = pair_err_ns(first, ns / ticks),
				     });
		}
	}
	t->pairs[t->next_pair] = *p;
	t->next_pair = (t->next_pair + 1) % TICK_N_PAIRS;
	if (t->n_pairs < TICK_N_PAIRS)
		t->n_pairs++;
}

uint64_t tick_counter(unsigned source)
{
#if defined(__x86_64__)
	if (source == SHM_TICK_TSC) {
		unsigned aux;

		return __rdtscp(&aux); /* waits for the reads before it */
	}
#elif defined(__aarch64__)
	if (source == SHM_TICK_CNTVCT) {
		uint64_t v;

		__asm__ volatile("isb; mrs %0, cntvct_el0" : "=r"(v)::"memory");
		return v;
	}
#endif
	(void)source;
	return (uint64_t)raw_now();
}

bool tick_readable(unsigned source)
{
#if defined(__x86_64__)
	if (source == SHM_TICK_TSC)
		return true;
#elif defined(__aarch64__)
	if (source == SHM_TICK_CNTVCT)
		return true;
#endif
	return source == SHM_TICK_RAW;
}

struct tick_pair tick_read_pair(unsigned source, unsigned n, double ns_per_tick)
{
	struct tick_pair best = { 0 };
	uint64_t best_width = UINT64_MAX;

	for (unsigned i = 0; i < n; i++) {
		uint64_t before = tick_counter(source);
		int64_t raw_ns = raw_now();
		uint64_t after = tick_counter(source);

		if (after - before < best_width) {
			best_width = after - before;
			best.tick = before + best_width / 2;
			best.raw_ns = raw_ns;
		}
	}
	best.err_ticks = best_width / 2 + 1;
	best.err_ns = (int64_t)((double)best.err_ticks * ns_per_tick) + 1;
	return best;
}
