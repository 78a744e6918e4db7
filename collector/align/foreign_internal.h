/* foreign_internal.h - what the files of foreign share. */
#pragma once

#include "foreign.h"

#define FOREIGN_LEAST_CALLS 3

struct scratch {
	double *d, *t, *v; /* longest rank */
	size_t n_alloc;
};

int scratch_init(struct scratch *s, const struct foreign_rank *ranks, size_t n_ranks);
void scratch_fini(struct scratch *s);

/* Reorders n > 0 values. */
double middle_of(double *v, size_t n);
/* Deviation by the middle of |v|, which is not reordered. 0 without values. */
double scale_of(const double *v, size_t n);

/* Find which call of one rank is which of the reference's. Fills everything but
 * the drift. */
enum foreign_outcome foreign_match(const struct foreign_rank *ref, const struct foreign_rank *rank,
				   const struct foreign_config *cfg, struct scratch *s,
				   struct foreign_clock *ret);
