#include "onset.h"
#include "start.h"

#include <assert.h>
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_FIELDS 128
#define MAX_CAMPS 16
#define SAME_NUMBER 0.02 /* two machines of one kind never have the same memory to the byte */

static const enum side_kind kinds[CONFIG_N] = { SIDE_VERSIONS, SIDE_ENV, SIDE_DEVICE };

struct camps { /* who says what of one field */
	const json_t *v[MAX_CAMPS]; /* NULL: not set */
	uint32_t n[MAX_CAMPS];
	unsigned n_camps;
	uint32_t n_ranks;
	uint8_t *of; /* by process: camp + 1 */
	bool exact;  /* numbers too */
};

static bool same(const json_t *a, const json_t *b, bool exact)
{
	double x, y;

	if (exact || !a || !b || !json_is_number(a) || !json_is_number(b))
		return a == b || (a && b && json_equal(a, b));
	x = json_number_value(a);
	y = json_number_value(b);
	return fabs(x - y) <= SAME_NUMBER * fmax(fabs(x), fabs(y));
}

/* False when there are too many values to speak of camps. */
static bool join(struct camps *c, uint32_t proc, const json_t *v)
{
	unsigned k = 0;

	while (k < c->n_camps && !same(c->v[k], v, c->exact))
		k++;
	if (k == MAX_CAMPS)
		return false;
	if (k == c->n_camps)
		c->v[c->n_camps++] = v;
	c->n[k]++;
	c->n_ranks++;
	c->of[proc] = (uint8_t)(k + 1);
	return true;
}

static bool counts(const struct rules *r, size_t i, enum side_kind kind)
{
	const struct proc *p = &r->ledger.roster->procs[r->side.v[i].proc];

	return r->side.v[i].kind == kind && p->life == r->life && p->life > 0 && p->rank >= 0;
}

static bool is_value(enum config_what what, const json_t *v)
{
	if (what == CONFIG_VERSION)
		return json_is_number(v) ||
		       (json_is_string(v) && strpbrk(json_string_value(v), "0123456789"));
	return json_is_string(v) || json_is_number(v) || json_is_boolean(v) ||
	       (json_is_array(v) && json_array_size(v) > 0);
}

/* The last word of each process; a variable that is in none of its records is not set. */
static bool gather(const struct rules *r, enum config_what what, const char *field, struct camps *c)
{
	memset(c->of, 0, r->ledger.roster->n_procs);
	c->n_camps = c->n_ranks = 0;
	c->exact = what != CONFIG_DEVICE;
	memset(c->n, 0, sizeof c->n);
	for (size_t i = r->side.n; i-- > 0;) {
		const json_t *v;

		if (!counts(r, i, kinds[what]) || c->of[r->side.v[i].proc])
			continue;
		v = json_object_get(r->side.v[i].fields, field);
		if (v && is_value(what, v) && !join(c, r->side.v[i].proc, v))
			return false;
	}
	for (size_t i = 0; i < r->side.n && what == CONFIG_SETTING; i++)
		if (counts(r, i, kinds[what]) && !c->of[r->side.v[i].proc] &&
		    !join(c, r->side.v[i].proc, NULL))
			return false;
	return c->n_camps > 1;
}

static size_t fields_of(const struct rules *r, enum config_what what, const char **ret)
{
	size_t n = 0;

	for (size_t i = 0; i < r->side.n; i++) {
		const char *key;
		json_t *v;

		if (!counts(r, i, kinds[what]))
			continue;
		json_object_foreach(r->side.v[i].fields, key, v) {
			size_t k = 0;

			while (k < n && strcmp(ret[k], key) != 0)
				k++;
			if (k == n && n < MAX_FIELDS && config_weigh(what, key).order < 255)
				ret[n++] = key;
		}
	}
	return n;
}

static void value_text(const json_t *v, char *out, size_t n_out)
{
	char *dumped = v && !json_is_string(v) ? json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;

	snprintf(out, n_out, "%.80s", !v ? "not set" : json_is_string(v) ? json_string_value(v) :
				      dumped ? dumped : "?");
	free(dumped);
}

static unsigned largest(const struct camps *c)
{
	unsigned best = 0;

	for (unsigned k = 1; k < c->n_camps; k++)
		if (c->n[k] > c->n[best])
			best = k;
	return best;
}

/* The one rank of a camp. */
static int32_t only_rank(const struct rules *r, const struct camps *c, unsigned camp)
{
	for (uint32_t i = 0; i < r->ledger.roster->n_procs; i++)
		if (c->of[i] == camp + 1)
			return r->ledger.roster->procs[i].rank;
	return -1;
}

static void describe(const struct rules *r, const struct camps *c, struct difference *d)
{
	unsigned best = largest(c);
	size_t at = 0;

	d->values[0] = '\0';
	for (unsigned i = 0; i < c->n_camps && i < 4 && at < sizeof d->values; i++) {
		unsigned k = i == 0 ? best : i <= best ? i - 1 : i; /* the largest first */
		char text[96], on[32];

		value_text(c->v[k], text, sizeof text);
		snprintf(on, sizeof on, "on %u ranks", c->n[k]);
		if (c->n[k] == 1)
			snprintf(on, sizeof on, "on rank %d", only_rank(r, c, k));
		at += (size_t)snprintf(d->values + at, sizeof d->values - at, "%s%.60s %s",
				       i ? ", " : "", text, on);
	}
}

/* Who is odd, and is that a whole host? */
static void name_odd(const struct rules *r, const struct camps *c, struct difference *d)
{
	const struct roster *roster = r->ledger.roster;
	unsigned best = largest(c);
	struct finding f = { .n_ranks = 0 };
	uint32_t host = UINT32_MAX;
	bool several = false, shared = false;

	d->n_odd = 0;
	d->host = NULL;
	if (2 * c->n[best] <= c->n_ranks)
		return;
	for (uint32_t i = 0; i < roster->n_procs; i++)
		if (c->of[i] && c->of[i] != best + 1) {
			several |= host != UINT32_MAX && host != roster->procs[i].host;
			host = roster->procs[i].host;
			finding_rank(&f, roster->procs[i].rank);
			d->n_odd++;
		}
	for (uint32_t i = 0; i < roster->n_procs; i++)
		shared |= c->of[i] == best + 1 && roster->procs[i].host == host;
	static_assert(sizeof d->odd == sizeof f.ranks, "both name as many");
	memcpy(d->odd, f.ranks, sizeof d->odd);
	if (host != UINT32_MAX && !several && !shared)
		d->host = roster->hosts[host].name;
}

static void compare(const struct rules *r, enum config_what what, struct camps *c, struct difference *d)
{
	const char *fields[MAX_FIELDS], *best = NULL;
	size_t n = fields_of(r, what, fields), at = 0;
	bool differs[MAX_FIELDS] = { false };

	*d = (struct difference){ .field = "" };
	for (size_t i = 0; i < n; i++) {
		differs[i] = gather(r, what, fields[i], c);
		if (differs[i] && (!best || config_weigh(what, fields[i]).order <
						    config_weigh(what, best).order))
			best = fields[i];
	}
	if (!best || !gather(r, what, best, c))
		return;
	snprintf(d->field, sizeof d->field, "%.60s", best);
	d->may_hold = config_weigh(what, best).may_hold;
	d->may_slow = config_weigh(what, best).may_slow;
	d->on_wire = d->may_hold && config_weigh(what, best).order < 3;
	d->n_ranks = c->n_ranks;
	describe(r, c, d);
	name_odd(r, c, d);
	for (size_t i = 0; i < n && at < sizeof d->others; i++)
		if (differs[i] && fields[i] != best)
			at += (size_t)snprintf(d->others + at, sizeof d->others - at, "%s%.40s",
					       at ? ", " : "", fields[i]);
}

int config_compare(struct rules *r)
{
	const uint32_t *of_kind = r->side.n_of_kind;
	uint32_t n = of_kind[SIDE_VERSIONS] + of_kind[SIDE_ENV] + of_kind[SIDE_DEVICE];
	struct config *v = &r->config;
	struct standstill s;
	struct camps c;

	if (v->life != r->life)
		*v = (struct config){ .life = r->life };
	/* While ranks arrive, and say so one after the other, there is no majority. */
	if ((v->n_records == n && v->n_procs == r->ledger.roster->n_procs) ||
	    (!r->finishing && onset_of(r, START_FIXED_NS, &s) == ONSET_UNKNOWN))
		return 0;
	v->n_records = n;
	v->n_procs = r->ledger.roster->n_procs;
	c.of = calloc(v->n_procs ? v->n_procs : 1, sizeof *c.of);
	if (!c.of)
		return -ENOMEM;
	for (unsigned k = 0; k < CONFIG_N; k++) {
		struct difference old = v->v[k];

		compare(r, (enum config_what)k, &c, &v->v[k]);
		if (v->told[k] == CONFIG_NOTICE && strcmp(old.values, v->v[k].values) != 0)
			v->told[k] = CONFIG_UNTOLD; /* the notice is told anew */
	}
	free(c.of);
	return 0;
}
