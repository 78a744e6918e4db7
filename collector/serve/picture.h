/* picture.h - tiles and columns of the heatmap, ready for the wire.
 *
 * Rendered on the loop thread from the heat in memory. Packed tiles are kept in a
 * bounded cache: many browsers that look at one run cost one packing each change.
 */
#pragma once

#include "route.h"

struct picture;

/* Bytes of one tile. Counted references, loop thread only. */
struct picture_tile {
	unsigned n_refs;
	uint32_t rev;
	bool sealed, gzip;
	size_t n;
	unsigned char data[];
};

int picture_new(struct picture **ret);
void picture_free(struct picture *p); /* tiles that are on their way live on */

/* 0 or -ENOMEM; give it back with picture_unref. */
int picture_tile(struct picture *p, struct heat *heat, const struct heat_key *key, bool gzip,
		 struct picture_tile **ret);
void picture_unref(struct picture_tile *t);

/* Columns r->from .. r->to folded to r->rows rows: a tile header, then column
 * after column. The caller frees. */
int picture_cols(struct heat *heat, const struct route_request *r, unsigned char **ret,
		 size_t *ret_n);

/* Several codes of neighbours as one, in heat.c's order: a value beats "cannot say",
 * that beats "not finite", that beats missing, that beats nothing. Exact for max
 * and min. */
unsigned char picture_fold(const unsigned char *codes, size_t n, enum heat_agg agg,
			   enum heat_baseline baseline, double lo_ns, double hi_ns);
