/* twister.h - the generator behind Python's random.Random, so that a seed draws
 * here what it draws in the reference interpreter (Mersenne Twister, MT19937). */
#pragma once

#include <stdint.h>

struct twister {
	uint32_t v[624];
	uint32_t at;
};

/* As random.Random(seed). */
void twister_seed(struct twister *t, uint64_t seed);
/* As .random(): 53 bits in [0, 1). */
double twister_unit(struct twister *t);
