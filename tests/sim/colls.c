#include "colls.h"

#include <assert.h>
#include <math.h>

#define GRID_NS INT64_C(100000000)
#define US 1e3

const struct colls_config colls_defaults = {
	.n_ranks = 8,
	.rate_hz = 1,
	.seconds = 900,
	.comm_us = 16,
	.comm_jitter = 0.12,
	.exit_bias_us = 1,
	.exit_us = 1.2,
	.asymmetry_us = 20,
	.round_trip_us = 100,
	.rate_lag_s = 5,
	.rate_noise = 0.02e-6,
};

static uint64_t next(struct colls_rng *r) /* splitmix64 */
{
	uint64_t z = r->s += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

double colls_unit(struct colls_rng *r)
{
	return (double)(next(r) >> 11) * 0x1p-53;
}

double colls_normal(struct colls_rng *r)
{
	double u = 1 - colls_unit(r), v = colls_unit(r);

	return sqrt(-2 * log(u)) * cos(2 * M_PI * v);
}

double colls_exponential(struct colls_rng *r, double mean)
{
	return mean > 0 ? -mean * log(1 - colls_unit(r)) : 0;
}

static double between(struct colls_rng *r, double lo, double hi)
{
	return lo + (hi - lo) * colls_unit(r);
}

static void make_clock(struct colls *s, struct colls_clock *c)
{
	double walk = 0, phase = between(&s->rng, 0, 6.3), skew = between(&s->rng, -30e-6, 30e-6);

	c->n = (uint32_t)(s->cfg.seconds * 1e9 / (double)GRID_NS) + 100;
	c->x = calloc(c->n, sizeof *c->x);
	c->rate = calloc(c->n, sizeof *c->rate);
	assert(c->x && c->rate);
	c->offset_ns = (int64_t)between(&s->rng, -5e9, 5e9);
	c->asymmetry_ns = between(&s->rng, -1, 1) * s->cfg.asymmetry_us * US;
	for (uint32_t k = 0; k < c->n; k++) {
		double t = k * ((double)GRID_NS * 1e-9);

		walk += 0.002e-6 * sqrt((double)GRID_NS * 1e-9) * colls_normal(&s->rng);
		c->rate[k] = skew + walk + 0.4e-6 * sin(2 * M_PI * t / 300 + phase);
		if (k + 1 < c->n)
			c->x[k + 1] = c->x[k] + c->rate[k] * (double)GRID_NS;
	}
}

int64_t colls_theta(const struct colls *s, uint32_t rank, int64_t t_ns)
{
	const struct colls_clock *c = &s->clocks[rank];
	int64_t dt = t_ns - COLLS_START_NS + 50 * GRID_NS, k = dt / GRID_NS;

	assert(k >= 0 && k < c->n);
	return c->offset_ns + llround(c->x[k] + c->rate[k] * (double)(dt - k * GRID_NS));
}

void colls_probe(struct colls *s, uint32_t rank, int64_t t_ns, struct pairs_probe *ret)
{
	const struct colls_clock *c = &s->clocks[rank];
	int64_t theta = colls_theta(s, rank, t_ns),
		dt = t_ns - COLLS_START_NS - (int64_t)(s->cfg.rate_lag_s * 1e9);
	double half = s->cfg.round_trip_us * US / 2;
	int64_t k = dt > -50 * GRID_NS ? dt / GRID_NS + 50 : 0;

	*ret = (struct pairs_probe){
		.host_ns = t_ns - theta,
		.offset_ns = theta + llround(c->asymmetry_ns + 50 * colls_normal(&s->rng)),
		.soft_ns = llround(0.2 * half),
		.rate = c->rate[k] + s->cfg.rate_noise * colls_normal(&s->rng),
		.rate_bound = 1e-6,
	};
	ret->hi_ns = theta + llround(half + c->asymmetry_ns + colls_exponential(&s->rng, 500));
	ret->lo_ns = theta - llround(half - c->asymmetry_ns + colls_exponential(&s->rng, 500));
}

/* True entries; returns who is last. */
static uint32_t enter(struct colls *s, uint32_t call, int64_t t_ns)
{
	const struct colls_config *cfg = &s->cfg;
	int64_t *in = &s->enter_ns[call * cfg->n_ranks];
	uint32_t last = 0;

	for (uint32_t i = 0; i < cfg->n_ranks; i++) {
		if (cfg->burst > 1 && call % cfg->burst != 0)
			in[i] = s->exit_ns[(call - 1) * cfg->n_ranks + i] + 5000 +
				llround(colls_exponential(&s->rng, 10 * US));
		else
			in[i] = t_ns + llround(150 * US * exp(0.8 * colls_normal(&s->rng)));
		if (i == 1 && colls_unit(&s->rng) < cfg->straggler)
			in[i] += llround(2000 * US * (1 + colls_unit(&s->rng)));
		if (in[i] > in[last])
			last = i;
	}
	return last;
}

static void leave(struct colls *s, uint32_t call, uint32_t last)
{
	const struct colls_config *cfg = &s->cfg;
	int64_t *in = &s->enter_ns[call * cfg->n_ranks], *out = &s->exit_ns[call * cfg->n_ranks];
	uint32_t n = cfg->n_ranks, root = call % n;
	double comm = cfg->comm_us * US * exp(fabs(cfg->comm_jitter * colls_normal(&s->rng)));

	if (colls_unit(&s->rng) < 0.2)
		comm += colls_exponential(&s->rng, 300 * US);
	for (uint32_t i = 0; i < n; i++) {
		int64_t needed = cfg->broadcast ? in[root] : in[last];

		out[i] = needed +
			 llround(comm + s->bias_ns[i] + cfg->ring_us * US * ((i + n - last) % n) +
				 colls_exponential(&s->rng, cfg->exit_us * US));
		if (out[i] < needed)
			out[i] = needed; /* a habit is not an oracle */
		if (out[i] < in[i])
			out[i] = in[i] + 1000;
	}
}

static void make_call(struct colls *s, uint32_t call, int64_t t_ns)
{
	const struct colls_config *cfg = &s->cfg;

	leave(s, call, enter(s, call, t_ns));
	for (uint32_t i = 0; i < cfg->n_ranks; i++) {
		size_t at = call * cfg->n_ranks + i;
		int64_t in = s->enter_ns[at], out = s->exit_ns[at];

		in -= llround(colls_exponential(&s->rng, cfg->host_us * US));
		out += llround(colls_exponential(&s->rng, cfg->host_us * US));
		s->enter_host_ns[at] = in - colls_theta(s, i, in);
		s->exit_host_ns[at] = out - colls_theta(s, i, out);
	}
}

void colls_make(struct colls *s, const struct colls_config *cfg)
{
	size_t n_stamps;

	*s = (struct colls){ .cfg = *cfg, .rng = { cfg->seed } };
	s->clocks = calloc(cfg->n_ranks, sizeof *s->clocks);
	s->bias_ns = calloc(cfg->n_ranks, sizeof *s->bias_ns);
	s->n_calls = (uint32_t)((cfg->seconds - 20) * cfg->rate_hz);
	n_stamps = (size_t)s->n_calls * cfg->n_ranks;
	s->enter_ns = calloc(n_stamps, sizeof *s->enter_ns);
	s->exit_ns = calloc(n_stamps, sizeof *s->exit_ns);
	s->enter_host_ns = calloc(n_stamps, sizeof *s->enter_host_ns);
	s->exit_host_ns = calloc(n_stamps, sizeof *s->exit_host_ns);
	assert(s->clocks && s->bias_ns && s->enter_ns && s->exit_ns && s->enter_host_ns &&
	       s->exit_host_ns);
	for (uint32_t i = 0; i < cfg->n_ranks; i++) {
		make_clock(s, &s->clocks[i]);
		s->bias_ns[i] = between(&s->rng, -1, 1) * cfg->exit_bias_us * US;
	}
	for (uint32_t k = 0; k < s->n_calls; k++) {
		uint32_t turn = cfg->burst > 1 ? k - k % cfg->burst : k;

		make_call(
			s, k,
			COLLS_START_NS + INT64_C(10000000000) +
				(int64_t)((turn + 0.5 * colls_unit(&s->rng)) * 1e9 / cfg->rate_hz));
	}
}

void colls_fini(struct colls *s)
{
	for (uint32_t i = 0; i < s->cfg.n_ranks; i++) {
		free(s->clocks[i].x);
		free(s->clocks[i].rate);
	}
	free(s->clocks);
	free(s->bias_ns);
	free(s->enter_ns);
	free(s->exit_ns);
	free(s->enter_host_ns);
	free(s->exit_host_ns);
}
