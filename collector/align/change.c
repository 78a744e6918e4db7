/* change.c - the clock is not where it was: a new segment, and the gap before it.
 *
 * The new segment begins at the first sample that contradicts the old one. The gap
 * begins earlier, at the last exchange that proves the old one: its round trip was at
 * the floor, so nothing was queued. A slew can hide behind a queue until then. */
#include "beam_internal.h"

#include <math.h>

#define CARRIED_RATE 5000.0 /* ns/s: the rate mostly survives a step */
#define ENOUGH_WINDOW 15
#define SURE 5 /* buckets */
#define RECENT_BUCKETS 6

void beam_segment_open(struct beam *b, int64_t theta0_ns, int64_t begin_ns, int64_t gap_ns)
{
	b->n_segments++;
	b->n_since_restart++;
	*beam_now(b) = (struct beam_segment){ .theta0_ns = theta0_ns,
					      .begin_ns = begin_ns,
					      .end_ns = INT64_MAX,
					      .gap_ns = gap_ns,
					      .suspect_ns = INT64_MAX,
					      .first_knot = b->n_knots };
	beam_filter_init(b->cfg, &b->filter);
	beam_envelope_init(&b->envelope);
	beam_noise_forget(&b->floors);
}

/* Against the state before the open bucket. */
static double predicted(const struct beam *b, int64_t t_ns)
{
	return b->filter.x[0] + b->filter.x[1] * beam_seconds(b->filter.at_ns, t_ns);
}

static double gate(const struct beam *b)
{
	const struct beam_floors *d = &b->floors;

	return b->cfg->gate * sqrt(b->filter.p[0] + d->scale * d->scale) + b->cfg->slack;
}

/* The first bound of the bucket on the wrong side; the first of all when none is. */
static int64_t first_contradiction(const struct beam *b, int64_t begin, int64_t end)
{
	int64_t first = INT64_MAX, least = INT64_MAX, theta0 = beam_now(b)->theta0_ns;
	double lim = gate(b);

	for (uint64_t i = beam_recent_first(b); i < b->n_samples; i++) {
		const struct beam_sample *s = beam_recent(b, i);

		if (s->t1_ns >= begin && s->t1_ns < end) {
			least = s->t1_ns < least ? s->t1_ns : least;
			if ((double)(s->f_ns - theta0) - b->floors.f - predicted(b, s->t1_ns) < -lim &&
			    s->t1_ns < first)
				first = s->t1_ns;
		}
		if (s->t4_ns >= begin && s->t4_ns < end) {
			least = s->t4_ns < least ? s->t4_ns : least;
			if (predicted(b, s->t4_ns) - (double)(s->g_ns - theta0) - b->floors.r < -lim &&
			    s->t4_ns < first)
				first = s->t4_ns;
		}
	}
	return first != INT64_MAX ? first : least;
}

/* The last proof of the old segment, as it stood before it can have been touched. */
static int64_t last_agreement(const struct beam *b, int64_t before_ns)
{
	const struct beam_floors *d = &b->floors;
	const struct beam_past *o = &b->filter.past[0];
	int64_t last = INT64_MIN, theta0 = beam_now(b)->theta0_ns;
	double lim = 2 * sqrt(o->p0 + d->scale * d->scale) + b->cfg->slack;
	double tight = 2 * (b->cfg->gate * d->scale + b->cfg->slack);

	for (uint64_t i = beam_recent_first(b); i < b->n_samples; i++) {
		const struct beam_sample *s = beam_recent(b, i);
		double mid = ((double)(s->f_ns - theta0) + (double)(s->g_ns - theta0)) / 2;
		double was = o->x[0] + o->x[1] * beam_seconds(o->at_ns, s->t4_ns);

		if (s->t4_ns <= o->anchor_ns || s->t4_ns >= before_ns || s->t4_ns <= last ||
		    (double)(s->f_ns - s->g_ns) - d->f - d->r > tight)
			continue;
		if (fabs(mid - (d->f - d->r) / 2 - was) <= lim)
			last = s->t4_ns;
	}
	if (last != INT64_MIN)
		return last;
	return o->anchor_ns < before_ns ? o->anchor_ns : before_ns;
}

static uint64_t first_after(const struct beam *b, int64_t t_ns)
{
	uint64_t i = beam_recent_first(b);

	while (i < b->n_samples - 1 && beam_recent(b, i)->t4_ns < t_ns)
		i++;
	return i;
}

/* The new segment waits for a rate of its own, as a new node does: a slew changes it. */
void beam_change(struct beam *b, int64_t bucket)
{
	int64_t begin = b->origin_ns + bucket * b->cfg->bucket_ns, at, proof;
	struct beam_filter old = b->filter;
	const struct beam_sample *s;

	beam_floors_raise(&b->floors, ENOUGH_WINDOW, begin); /* a change of path would hide behind the step */
	at = first_contradiction(b, begin, begin + b->cfg->bucket_ns);
	proof = last_agreement(b, at);
	/* A segment that fails before it was ever sure of itself proves nothing. */
	if (b->n_since_restart > 1 && old.n < SURE && proof > beam_now(b)->gap_ns)
		proof = beam_now(b)->gap_ns;
	beam_now(b)->end_ns = at;
	beam_now(b)->suspect_ns = proof;
	b->start_sample = first_after(b, at);
	s = beam_recent(b, b->start_sample);
	beam_segment_open(b, s->g_ns + (s->f_ns - s->g_ns) / 2, at, proof);
	b->started = false;
	b->filter.anchor_ns = at;
	beam_floors_queued(&b->floors, RECENT_BUCKETS, &b->filter.queued_f, &b->filter.queued_r);
	b->filter.x[1] = old.x[1];
	b->filter.p[2] = old.n > 5 ? fmax(old.p[2] * 100, CARRIED_RATE * CARRIED_RATE)
				   : b->cfg->rate_unknown * b->cfg->rate_unknown;
	for (uint64_t i = beam_recent_first(b); i < b->n_samples; i++)
		if (beam_recent(b, i)->t1_ns >= at)
			beam_envelope_take(b, beam_recent(b, i));
}

void beam_change_again(struct beam *b)
{
	const struct beam_sample *s = beam_recent(b, b->n_samples - 1);
	struct beam_segment *now = beam_now(b);

	b->start_sample = b->n_samples - 1;
	b->bucket = beam_bucket_of(b, s->t1_ns);
	b->started = false;
	if (now->gap_ns == INT64_MIN)
		now->gap_ns = b->origin_ns;
	now->begin_ns = s->t1_ns;
	now->theta0_ns = s->g_ns + (s->f_ns - s->g_ns) / 2;
	now->wild = true;
	beam_envelope_init(&b->envelope);
	beam_envelope_take(b, s);
}

/* Only what lies before a jump ahead keeps its map: behind a jump back the same
 * host instants come twice. */
void beam_restart(struct beam *b, const struct beam_sample *s)
{
	bool ahead = s->t1_ns > b->last_ns;

	if (b->n_segments > 0) {
		b->n_restarts++;
		beam_now(b)->end_ns = b->last_ns + 1;
		beam_now(b)->suspect_ns = b->last_ns;
	}
	if (!ahead)
		b->oldest_segment = b->n_segments;
	b->n_since_restart = 0;
	/* The first of all reaches back as far as anyone asks. */
	beam_segment_open(b, s->g_ns + (s->f_ns - s->g_ns) / 2,
			  b->n_segments == 0 ? INT64_MIN : s->t1_ns,
			  b->n_segments > 0 && ahead ? b->last_ns : INT64_MIN);
	b->origin_ns = s->t1_ns;
	b->bucket = 0;
	b->n_samples = b->start_sample = 0;
	b->started = false;
	b->floors.n_window = b->floors.next_window = 0;
	b->floors.blame_until_ns = INT64_MIN;
}
