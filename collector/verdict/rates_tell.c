/* rates_tell.c - the classes as facts. */
#include "rates_internal.h"

#include <errno.h>

#define TELL_NS INT64_C(5000000000)

static int tell(struct rates_class *c, const struct rates_peaks *peaks, struct facts *facts)
{
	struct fact_comm_class *f = FACTS_PUSH(facts, comm_classes);

	if (!f)
		return -ENOMEM;
	*f = (struct fact_comm_class){
		.group = c->group, .n_ranks = c->n_ranks, .n_hosts = c->n_hosts, .n_groups = c->n_groups,
		.op = c->op, .dtype = c->dtype, .size = c->size, .n = c->transfer.n, .bytes = c->bytes,
		.sum_ns = c->transfer.sum, .min_ns = c->transfer.min, .max_ns = c->transfer.max,
		.p50_ns = sketch_quantile(&c->transfer, 0.5), .p95_ns = sketch_quantile(&c->transfer, 0.95),
		.p99_ns = sketch_quantile(&c->transfer, 0.99), .err_ns = c->err_ns, .wait_ns = c->wait_ns,
		.inside_ns = c->inside_ns, .n_copies = c->n_copies, .copy_bytes = c->copy_bytes,
		.n_layouts = c->n_layouts, .peak_gbs = c->n_hosts > 1 ? peaks->between : peaks->inside,
	};
	c->changed = false;
	return 0;
}

int rates_tell(struct rates *r, int64_t now_ns, bool finishing, const struct rates_peaks *peaks,
	       struct facts *facts)
{
	if (!r->changed || (!finishing && now_ns - r->told_ns < TELL_NS))
		return 0;
	r->told_ns = now_ns;
	r->changed = false;
	for (uint32_t i = 0; i < r->n_classes; i++)
		if (r->classes[i].changed && tell(&r->classes[i], peaks, facts) < 0)
			return -ENOMEM;
	return 0;
}
