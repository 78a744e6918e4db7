/* match_internal.h - what the files of match share. */
#pragma once

#include "between.h"

struct match_point {
	struct instant is;
	uint32_t member, host;
};

/* That of a member who entered; points are in the order of members. */
static inline const struct match_point *match_point_of(const struct match *m, size_t n_points, uint32_t member)
{
	size_t i = member < n_points ? member : n_points - 1;

	while (m->points[i].member > member)
		i--;
	return &m->points[i];
}

/* groups.c */
void match_sort_members(struct group *g);
/* To the facts, when it changed since. */
int match_tell_group(struct match *m, uint32_t group);

/* tell.c */

/* Place every arrival and find the first and the last. Returns how many. */
size_t match_place(struct match *m, const struct group *g, struct coll *c, size_t *ret_first,
		   size_t *ret_last);
int match_tell(struct match *m, uint32_t group, struct coll *c);

/* match.c: room for seq: a larger ring while it may grow, else the oldest goes. */
int match_make_room(struct match *m, uint32_t group, uint64_t seq);
