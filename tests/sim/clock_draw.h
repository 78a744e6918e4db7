/* clock_draw.h - random numbers of the clock worlds. */
#pragma once

#include <math.h>
#include <stdint.h>

static inline uint64_t draw_bits(uint64_t *state) /* splitmix64 */
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

static inline double draw_unit(uint64_t *state) /* (0, 1) */
{
	return ((double)(draw_bits(state) >> 12) + 0.5) * 0x1p-52;
}

static inline double draw_between(uint64_t *state, double a, double b)
{
	return a + (b - a) * draw_unit(state);
}

static inline double draw_normal(uint64_t *state)
{
	double r = sqrt(-2 * log(draw_unit(state)));

	return r * cos(6.283185307179586 * draw_unit(state));
}

static inline double draw_exponential(uint64_t *state)
{
	return -log(draw_unit(state));
}

static inline double draw_sign(uint64_t *state)
{
	return draw_bits(state) >> 63 ? 1 : -1;
}
