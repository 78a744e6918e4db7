/* contrast.h - groups of one kind whose same calls take different times to transfer.
 *
 * A family is what may be compared: cells of the same operation, type, size, number
 * of ranks and of hosts, all as the device ran them or all as hosts saw them. Each
 * has an interval: order statistics of its last calls that hold the median of what
 * it does in at least 99 of 100 cases, whatever the distribution (from ten calls
 * on; fewer give less). A contrast is the widest step between their medians, when
 * it is at least CONTRAST_RATIO and every interval above it lies apart from
 * every one below.
 */
#pragma once

#include "rates.h"

#define CONTRAST_LEAST 5 /* calls of a cell */
#define CONTRAST_RATIO 1.3

struct contrast_cell {
	const struct rates_cell *cell;
	uint32_t n;		/* calls that were looked at */
	double lo, mid, hi;	/* ns; of sizes that differ by a little, at the mean size */
	double least, most;	/* of the last RATES_KEEP */
	uint32_t n_tail, n_all; /* of them longer than twice their median */
};

struct contrast { /* a family; its cells by median */
	struct contrast_cell *v;
	uint32_t n, n_slow; /* the last ones; 0 = no contrast */
	double ratio;
	int64_t margin_ns, error_ns;
	bool firm; /* ten calls of each at least */
};

struct contrasts {
	struct contrast_cell *cells;
	size_t n_cells, n_cells_alloc;
	struct contrast *v;
	size_t n, n_alloc;
};

void contrasts_fini(struct contrasts *c);
/* 0 or -ENOMEM. Of the newest life only. */
int contrasts_look(struct contrasts *c, const struct rates *r, uint32_t life);

/* Time that the slow cell adds over time without, by its last calls. */
double contrast_cost(const struct contrast *c, const struct contrast_cell *slow);
