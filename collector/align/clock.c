#include "clock.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct clock_state {
	struct beam beam;
	struct beam_knot knots[CLOCK_N_KNOTS];
	struct beam_segment segments[CLOCK_N_SEGMENTS];
};

const char *fleet_status_name(enum fleet_status s)
{
	switch (s) {
	case FLEET_ANCHORED:
		return "anchored";
	case FLEET_ONE_SIDED:
		return "one-sided";
	case FLEET_COASTING:
		return "coasting";
	case FLEET_UNDECIDED:
		return "undecided";
	case FLEET_UNANCHORED:
		return "unanchored";
	case FLEET_VOID:
		return "void";
	}
	return "void";
}

void clock_init(struct clock *c, bool exact, int64_t offset_ns)
{
	*c = (struct clock){ .exact = exact, .offset_ns = offset_ns, .told_ns = INT64_MIN };
}

void clock_fini(struct clock *c)
{
	free(c->state);
	c->state = NULL;
}

bool clock_is_aligned(const struct clock *c)
{
	return c->exact || (c->state && c->state->beam.n_segments > 0);
}

host_time clock_newest(const struct clock *c)
{
	return (host_time){ c->state->beam.last_ns };
}

int clock_exchange(struct clock *c, host_time t0, fleet_time t1, fleet_time t2, host_time t3)
{
	struct clock_state *s = c->state;

	if (c->exact)
		return CLOCK_OK;
	if (!s) {
		s = calloc(1, sizeof *s);
		if (!s)
			return -ENOMEM;
		beam_init(&s->beam, NULL, s->knots, CLOCK_N_KNOTS, s->segments, CLOCK_N_SEGMENTS);
		c->state = s;
	}
	switch (beam_exchange(&s->beam, t0, t1, t2, t3)) {
	case BEAM_OK:
		return CLOCK_OK;
	case BEAM_REFUSED:
		return CLOCK_REFUSED;
	case BEAM_STEPPED:
		return CLOCK_STEPPED;
	}
	return CLOCK_REFUSED;
}

static bool in_range(host_time t)
{
	return t.ns > -CLOCK_MAX_NS && t.ns < CLOCK_MAX_NS;
}

struct clock_line clock_choose(const struct clock *c, host_time t)
{
	struct beam_point p;

	if (c->exact || !clock_is_aligned(c) || !in_range(t))
		return (struct clock_line){ t.ns, c->offset_ns, 0 };
	beam_place(&c->state->beam, t, &p);
	/* A rate that no clock has would turn the order around. */
	return (struct clock_line){ t.ns, p.theta0_ns + llround(p.theta),
				    fmin(fmax(p.rate * 1e-9, -1e-3), 1e-3) };
}

static int64_t whole(double ns)
{
	return ns < 0x1p61 ? (int64_t)ceil(ns) : CLOCK_UNBOUNDED;
}

void clock_place(const struct clock *c, const struct clock_line *l, host_time t,
		 struct fleet_point *ret)
{
	struct beam_point p;
	double off;

	if (c->exact && in_range(t)) {
		*ret = (struct fleet_point){ { t.ns + c->offset_ns }, 0, 0, FLEET_ANCHORED };
		return;
	}
	*ret = (struct fleet_point){ { t.ns }, CLOCK_UNBOUNDED, CLOCK_UNBOUNDED, FLEET_VOID };
	if (!in_range(t))
		return;
	ret->at.ns = t.ns + l->offset_ns + llround(l->rate * (double)(t.ns - l->at_ns));
	if (clock_is_aligned(c)) {
		beam_place(&c->state->beam, t, &p);
		off = (double)(ret->at.ns - t.ns - p.theta0_ns);
		/* The bounds are within a nanosecond: so are the stamps. */
		ret->err_ns = whole(fmax(p.hi - off, off - p.lo));
		ret->soft_ns = whole(p.soft + fabs(p.theta - off));
		if (ret->soft_ns > ret->err_ns)
			ret->soft_ns = ret->err_ns;
		ret->status = p.status;
	}
}

void clock_view(const struct clock *c, host_time t, struct clock_view *ret)
{
	struct beam_point p;

	*ret = (struct clock_view){ c->offset_ns, -CLOCK_UNBOUNDED, CLOCK_UNBOUNDED, CLOCK_UNBOUNDED,
				    0, INFINITY, FLEET_VOID };
	if (c->exact) {
		*ret = (struct clock_view){ c->offset_ns, c->offset_ns, c->offset_ns, 0, 0, 0,
					    FLEET_ANCHORED };
	} else if (clock_is_aligned(c) && in_range(t)) {
		beam_place(&c->state->beam, t, &p);
		ret->offset_ns = p.theta0_ns + llround(p.theta);
		if (p.hi < 0x1p61)
			ret->hi_ns = p.theta0_ns + (int64_t)ceil(p.hi);
		if (p.lo > -0x1p61)
			ret->lo_ns = p.theta0_ns + (int64_t)floor(p.lo);
		ret->soft_ns = whole(p.soft);
		ret->rate = p.rate * 1e-9;
		ret->rate_bound = p.rate_bound * 1e-9;
		ret->status = p.status;
	}
}

int clock_map(const struct clock *c, host_time t, struct fleet_point *ret)
{
	struct clock_line l = clock_choose(c, t);

	clock_place(c, &l, t, ret);
	return !clock_is_aligned(c);
}
