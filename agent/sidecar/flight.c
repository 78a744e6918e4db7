#include "flight.h"

#include <string.h>

void flight_init(struct flight *f)
{
	memset(f, 0, sizeof *f);
	f->step = EVENT_STEP_UNKNOWN;
}

static void open_add(struct flight *f, const struct flight_open *o)
{
	if (f->n_open == FLIGHT_MAX_OPEN) {
		memmove(f->open, f->open + 1, (FLIGHT_MAX_OPEN - 1) * sizeof *f->open);
		f->n_open--;
	}
	f->open[f->n_open++] = *o;
}

static void open_remove(struct flight *f, uint32_t group, uint32_t seq)
{
	for (unsigned i = 0; i < f->n_open; i++) {
		if (f->open[i].group != group || f->open[i].seq != seq)
			continue;
		memmove(f->open + i, f->open + i + 1, (f->n_open - i - 1) * sizeof *f->open);
		f->n_open--;
		return;
	}
}

static void phase_begin(struct flight *f, const struct event *ev)
{
	if (f->n_phases == FLIGHT_MAX_DEPTH)
		return;
	f->phases[f->n_phases].phase = ev->flags;
	f->phases[f->n_phases++].since_ns = (int64_t)ev->tick;
}

/* An end also ends what was begun inside it: an exception may have jumped over
 * the inner ends. */
static void phase_end(struct flight *f, const struct event *ev)
{
	for (unsigned i = f->n_phases; i-- > 0;) {
		if (f->phases[i].phase == ev->flags) {
			f->n_phases = i;
			return;
		}
	}
}

void flight_event(struct flight *f, const struct event *ev)
{
	int64_t at_ns = (int64_t)ev->tick;

	if (at_ns > f->last_event_ns)
		f->last_event_ns = at_ns;
	switch (ev->kind) {
	case EVENT_STEP_BEGIN:
		f->step = event_step(ev->a);
		f->step_since_ns = at_ns;
		break;
	case EVENT_PHASE_BEGIN:
		phase_begin(f, ev);
		break;
	case EVENT_PHASE_END:
		phase_end(f, ev);
		break;
	case EVENT_COLL_BEGIN:
		open_add(f, &(struct flight_open){
				    .group = ev->name,
				    .seq = event_low(ev->a),
				    .step = event_step(ev->a),
				    .op = (uint8_t)(ev->flags >> 8),
				    .sync = (ev->b & EVENT_COLL_SYNC_BIT) != 0,
				    .since_ns = at_ns });
		break;
	case EVENT_COLL_END:
		open_remove(f, ev->name, event_low(ev->a));
		break;
	case EVENT_BUCKET_SUBMIT: /* DDP's own, when its all-reduce is not seen as a call */
		for (unsigned i = 0; i < f->n_open; i++)
			if (f->open[i].group == ev->name && f->open[i].seq == (uint32_t)ev->b)
				return;
		open_add(f, &(struct flight_open){ .group = ev->name,
						   .seq = (uint32_t)ev->b,
						   .step = event_step(ev->a),
						   .op = OP_ALL_REDUCE,
						   .since_ns = at_ns });
		break;
	case EVENT_BUCKET_REDUCED:
		open_remove(f, ev->name, (uint32_t)ev->b);
		break;
	default:
		break;
	}
}

struct flight_state flight_state(const struct flight *f)
{
	struct flight_state s = { .step = f->step, .since_ns = f->step_since_ns };
	const struct flight_open *o = f->n_open > 0 ? &f->open[0] : NULL;

	if (f->n_phases > 0) {
		s.phase = f->phases[f->n_phases - 1].phase;
		s.since_ns = f->phases[f->n_phases - 1].since_ns;
	}
	for (unsigned i = 0; i < f->n_open; i++) {
		if (f->open[i].sync) {
			o = &f->open[i];
			break;
		}
	}
	if (o) {
		s.group = o->group;
		s.seq = o->seq;
		s.op = o->op;
		s.since_ns = o->since_ns;
		if (o->step != EVENT_STEP_UNKNOWN)
			s.step = o->step;
	}
	return s;
}
