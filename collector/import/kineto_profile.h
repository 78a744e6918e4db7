/* kineto_profile.h - what of a profile goes into tables of its own: the breakdown, the
 * kernels of collectives with their arguments, annotations, and what the file itself was.
 */
#pragma once

#include "profile_breakdown.h"
#include "stamp_range.h"

#define PROFILE_OPEN 64 /* annotations of the device that are under way at once */

struct kineto;
struct kept;

struct profile_sum { /* of an annotation's name, or of a collective's kernels */
	uint32_t name, call; /* indices + 1 */
	bool on_device;
	int64_t n, sum_ns, n_work, work_ns;
	int64_t first_ns, last_ns;
};

struct profile_sums {
	struct profile_sum *v; /* owned */
	uint32_t n, n_alloc;
	uint32_t *index; /* owned; v's by their key, + 1 */
};

struct profile {
	/* While it is read, in any order: */
	struct stamp_ranges host_stamps, device_stamps;
	int64_t last_step_ns; /* the latest begin */
	int64_t first_step;   /* a number; more than one: several */
	bool has_step, has_steps;
	uint64_t n_impossible; /* stamps that cannot be */
	const char *rank_from; /* static */
	/* From kineto_profile_begin() on: */
	struct stamp_range host, device;
	bool apart; /* host and device have nothing in common */
	struct breakdown breakdown;
	struct profile_sums ranges, calls;
	struct {
		int64_t end_ns;
		uint32_t sum, stream; /* sum: index + 1 */
	} open[PROFILE_OPEN];
	unsigned n_open;
	uint64_t n_work, n_linked, n_early, n_far;
	int64_t early_ns; /* the most */
};

/* What is kept, while it is read. */
void kineto_profile_saw(struct kineto *k, const struct kept *v);
/* After the last: what is used of it. */
void kineto_profile_begin(struct kineto *k);
/* In the order of begins, launches found. False: it has no place on the time line, and is
 * not to be told. Without memory it says so in the trace. */
bool kineto_profile_take(struct kineto *k, const struct kept *v);
/* Rows of all that, and remarks. */
bool kineto_profile_end(struct kineto *k, int32_t rank);
void kineto_profile_free(struct kineto *k);
