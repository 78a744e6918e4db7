/* growth.h - a gauge of memory over the steps of a process, and whether it grows. */
#pragma once

#include "memory.h"
#include "trend.h"

struct growth {
	const char *name; /* of the gauge */
	struct trend trend; /* in gigabytes over steps */
	uint32_t first_step, last_step, n;
};

/* The floors of its steps without the first ones, which warm up. least: steps that must be
 * there. False when there are fewer. */
bool growth_of(const struct rules *r, uint32_t proc, const char *name, uint32_t least,
	       struct growth *ret);
