/* noise.c - how far a bucket's measurement can be trusted, learned from what is
 * blind to the clock: differences of neighbours. */
#include "beam_internal.h"

#include <math.h>
#include <string.h>

#define LEAST_SLOPE 0.25
#define ENOUGH 40
#define LEAST_VARIANCE (20.0 * 20.0)
#define LARGEST_SCALE 20000.0

static double clamp(double v, double lo, double hi)
{
	return fmin(fmax(v, lo), hi);
}

void beam_noise_forget(struct beam_floors *d)
{
	d->slope_ns = INT64_MIN;
	d->n_z = 0;
}

/* When one direction's jitter is larger, z leans with q = hi - lo: take it back
 * to q = 0, but only where the lean is plain. */
double beam_noise_slope(struct beam *b, int64_t at_ns, double z, double q)
{
	struct beam_floors *d = &b->floors;
	double raw = z;

	if (d->slope_ns != INT64_MIN && b->filter.n > 3 &&
	    at_ns - d->slope_ns < b->cfg->bucket_ns * 3 / 2) {
		double dz = z - d->slope_z - b->filter.x[1] * beam_seconds(d->slope_ns, at_ns);
		double dq = q - d->slope_q;

		if (fabs(dz) < 0.6 * fabs(dq) + d->scale) {
			double k = fmax(0.01, 1.0 / (2 + ++d->n_slope));

			d->szq += k * (dz * dq - d->szq);
			d->sqq += k * (dq * dq - d->sqq);
		}
	}
	d->slope_ns = at_ns;
	d->slope_z = raw;
	d->slope_q = q;
	if (d->n_slope > ENOUGH && d->sqq > 0) {
		double lean = d->szq / d->sqq;

		if (fabs(lean) > LEAST_SLOPE)
			z -= clamp(lean, -0.5, 0.5) * q;
	}
	return z;
}

/* Second differences do not see offset, rate or slow wander. */
void beam_noise_variance(struct beam *b, int64_t at_ns, double z)
{
	struct beam_floors *d = &b->floors;
	double u, bend, v;

	if (d->n_z == 3) {
		memmove(d->z, d->z + 1, 2 * sizeof *d->z);
		memmove(d->z_ns, d->z_ns + 1, 2 * sizeof *d->z_ns);
		d->n_z = 2;
	}
	while (d->n_z > 0 && at_ns - d->z_ns[0] >= b->cfg->bucket_ns * 7 / 2) {
		d->n_z--;
		memmove(d->z, d->z + 1, d->n_z * sizeof *d->z);
		memmove(d->z_ns, d->z_ns + 1, d->n_z * sizeof *d->z_ns);
	}
	d->z[d->n_z] = z;
	d->z_ns[d->n_z++] = at_ns;
	if (d->n_z < 3 || b->filter.n <= 3)
		return;
	u = (double)(d->z_ns[1] - d->z_ns[0]) / (double)(d->z_ns[2] - d->z_ns[0]);
	bend = d->z[1] - ((1 - u) * d->z[0] + u * d->z[2]);
	v = fmin(bend * bend / (1 + u * u + (1 - u) * (1 - u)), 9 * d->variance);
	d->n_variance++;
	d->variance += fmax(0.03, 1.0 / d->n_variance) * (1.1 * v - d->variance);
	d->variance = fmax(d->variance, LEAST_VARIANCE);
}

void beam_noise_scale(struct beam *b, double q)
{
	struct beam_floors *d = &b->floors;

	d->n_scale++;
	d->scale += fmax(0.02, 1.0 / d->n_scale) * (q / 2 - d->scale);
	d->scale = clamp(d->scale, b->cfg->least_scale, fmax(LARGEST_SCALE, (d->f + d->r) / 2));
}

/* Before enough buckets were clear, what clear means must come from elsewhere: the
 * round trips need no clock. */
double beam_noise_gate(const struct beam_floors *d)
{
	float v[BEAM_N_RTTS];
	unsigned n = d->n_rtts < BEAM_N_RTTS ? d->n_rtts : BEAM_N_RTTS, k;

	if (d->n_scale >= BEAM_N_LEARN || n == 0)
		return d->scale;
	for (unsigned i = 0; i < n; i++) {
		for (k = i; k > 0 && v[k - 1] > d->rtts[i]; k--)
			v[k] = v[k - 1];
		v[k] = d->rtts[i];
	}
	return fmax(d->scale, ((double)v[n / 2] - d->f - d->r) / 2);
}
