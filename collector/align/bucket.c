/* bucket.c - the least bound of each direction in a bucket, from different packets.
 *
 * If a share p of the packets of a direction is clear, the best exchange needs
 * both ways clear at once, p squared; two minima need p. */
#include "beam_internal.h"

#include <math.h>

int64_t beam_bucket_of(const struct beam *b, int64_t t_ns)
{
	int64_t d = t_ns - b->origin_ns, n = d / b->cfg->bucket_ns;

	return n - (d % b->cfg->bucket_ns < 0);
}

static void take_rtt(struct beam_bucket *u, double rtt)
{
	if (u->n_rtt == 0 || rtt < u->rtt[0]) {
		u->rtt[1] = u->rtt[0];
		u->rtt[0] = rtt;
	} else if (u->n_rtt == 1 || rtt < u->rtt[1]) {
		u->rtt[1] = rtt;
	}
	u->n_rtt += u->n_rtt < 2;
}

/* Of what was sent or came back in the segment. */
void beam_bucket_gather(const struct beam *b, int64_t bucket, struct beam_bucket *ret)
{
	const struct beam_segment *now = beam_now(b);
	int64_t begin = b->origin_ns + bucket * b->cfg->bucket_ns;
	int64_t end = begin + b->cfg->bucket_ns;
	double rate = b->filter.x[1], v;
	struct beam_bucket u = { .at_ns = begin + b->cfg->bucket_ns / 2,
				 .f = INFINITY,
				 .g = -INFINITY };

	if (begin < now->begin_ns)
		begin = now->begin_ns;
	for (uint64_t i = beam_recent_first(b); i < b->n_samples; i++) {
		const struct beam_sample *s = beam_recent(b, i);

		if (s->t1_ns >= begin && s->t1_ns < end) {
			take_rtt(&u, (double)(s->f_ns - s->g_ns));
			v = (double)(s->f_ns - now->theta0_ns) - rate * beam_seconds(u.at_ns, s->t1_ns);
			if (v < u.f) {
				u.f = v;
				u.f_ns = s->t1_ns;
			}
		}
		if (s->t4_ns >= begin && s->t4_ns < end) {
			v = (double)(s->g_ns - now->theta0_ns) - rate * beam_seconds(u.at_ns, s->t4_ns);
			if (v > u.g) {
				u.g = v;
				u.g_ns = s->t4_ns;
			}
		}
	}
	*ret = u;
}
