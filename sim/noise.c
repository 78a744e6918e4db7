/* noise.c - every duration of a spec a little longer or shorter.
 *
 * Drawn once for each number that is written, in the file's order: what is
 * repeated repeats its noise, and the ranks of one program share it. Products
 * and sums are apart, so that no compiler fuses them into another result.
 */
#include "spec.h"
#include "twister.h"

struct noise {
	struct twister rng;
	double amount;
};

static void vary(struct noise *n, double *ms)
{
	double width = n->amount - -n->amount;
	double drawn = width * twister_unit(&n->rng);
	double u = -n->amount + drawn;
	double factor = 1 + u;

	*ms = *ms * factor;
}

static void walk(struct noise *n, struct spec_list *list)
{
	for (uint32_t i = 0; i < list->n; i++) {
		struct spec_op *op = &list->v[i];

		switch (op->kind) {
		case SPEC_CPU:
		case SPEC_KERNEL:
		case SPEC_COLL:
		case SPEC_P2P:
			vary(n, &op->ms);
			break;
		case SPEC_REPEAT:
			walk(n, &op->repeat.body);
			break;
		case SPEC_ONLY:
			walk(n, &op->only.body);
			break;
		case SPEC_1F1B:
			for (uint32_t k = 0; k < op->f1b.n_fwd; k++)
				vary(n, &op->f1b.fwd_ms[k]);
			for (uint32_t k = 0; k < op->f1b.n_bwd; k++)
				vary(n, &op->f1b.bwd_ms[k]);
			break;
		case SPEC_STEP:
		case SPEC_STALL:
		case SPEC_SYNC:
		case SPEC_WAIT:
		case SPEC_RECORD:
		case SPEC_GAUGE:
		case SPEC_N_KINDS:
			break;
		}
	}
}

void spec_add_noise(struct spec *s, double amount, uint64_t seed)
{
	struct noise n = { .amount = amount };

	twister_seed(&n.rng, seed);
	/* Where a key is there twice, the reference knows its last program alone, at
	 * the first one's place. The others draw behind. */
	for (uint32_t i = 0; i < s->n_progs; i++)
		if (s->progs[i].is_first)
			walk(&n, &s->progs[s->progs[i].last].ops);
	for (uint32_t i = 0; i < s->n_progs; i++)
		if (s->progs[i].last != i)
			walk(&n, &s->progs[i].ops);
}
