/* kineto_groups.h - which ranks a process group has, from all that a profile says of it.
 *
 * A call's own list may be cut off ("[0, 1, …]"). The file's head may have it whole, or
 * the call says that it is regular. Else the members are not known, and that is said.
 */
#pragma once

#include "kineto.h"

#include <jansson.h>

struct kineto;

struct kineto_group { /* of the file's head */
	char name[64], desc[64];
	int32_t *ranks; /* owned */
	uint32_t n, n_alloc;
};

struct kineto_label { /* of a call's group, once it was asked for */
	char name[160];	  /* of the group in the trace; "" = not asked yet */
	char *ranks;	  /* owned; "[0, 1]", NULL = not known */
};

struct kineto_groups {
	struct kineto_group *v;
	uint32_t n, n_alloc;
	uint64_t n_ranks;	     /* of all of them: they are limited together */
	struct kineto_label *labels; /* by call; owned */
	uint32_t n_labels, n_cut;    /* calls whose list is cut off for good */
};

/* The head's list "pg_config"; NULL is fine. False only without memory. */
bool kineto_groups_read(struct kineto *k, const json_t *list);
/* The group of a call (index + 1; 0 = nothing is known), which is the trace's from then
 * on. NULL without memory. */
const struct kineto_label *kineto_group_of(struct kineto *k, uint32_t call);
void kineto_groups_free(struct kineto *k);
