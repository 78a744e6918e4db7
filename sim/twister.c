#include "twister.h"

#define N 624
#define M 397

static void start(struct twister *t, uint32_t seed)
{
	t->v[0] = seed;
	for (uint32_t i = 1; i < N; i++)
		t->v[i] = 1812433253u * (t->v[i - 1] ^ t->v[i - 1] >> 30) + i;
	t->at = N;
}

void twister_seed(struct twister *t, uint64_t seed)
{
	uint32_t key[2] = { (uint32_t)seed, (uint32_t)(seed >> 32) };
	uint32_t n_key = key[1] ? 2 : 1, i = 1;

	start(t, 19650218u);
	for (uint32_t k = 0, j = 0; k < N; k++) {
		t->v[i] = (t->v[i] ^ (t->v[i - 1] ^ t->v[i - 1] >> 30) * 1664525u) + key[j] + j;
		j = (j + 1) % n_key;
		if (++i == N) {
			t->v[0] = t->v[N - 1];
			i = 1;
		}
	}
	for (uint32_t k = 1; k < N; k++) {
		t->v[i] = (t->v[i] ^ (t->v[i - 1] ^ t->v[i - 1] >> 30) * 1566083941u) - i;
		if (++i == N) {
			t->v[0] = t->v[N - 1];
			i = 1;
		}
	}
	t->v[0] = 0x80000000u;
}

static void refill(struct twister *t)
{
	for (uint32_t i = 0; i < N; i++) {
		uint32_t y = (t->v[i] & 0x80000000u) | (t->v[(i + 1) % N] & 0x7fffffffu);

		t->v[i] = t->v[(i + M) % N] ^ y >> 1 ^ (y & 1 ? 0x9908b0dfu : 0);
	}
	t->at = 0;
}

static uint32_t next(struct twister *t)
{
	uint32_t y;

	if (t->at == N)
		refill(t);
	y = t->v[t->at++];
	y ^= y >> 11;
	y ^= y << 7 & 0x9d2c5680u;
	y ^= y << 15 & 0xefc60000u;
	return y ^ y >> 18;
}

double twister_unit(struct twister *t)
{
	uint32_t a = next(t) >> 5, b = next(t) >> 6;

	return (a * 67108864.0 + b) / 9007199254740992.0;
}
