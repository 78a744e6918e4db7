/* dumped.h - how far each rank was in the calls of its groups, as dumps of a job that stands tell it.
 *
 * A line is a communicator, or one direction of messages between two of its ranks. Calls are
 * entered in the order of their numbers, so of a seat two numbers say all.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct dumped_seat {
	int32_t rank;
	bool heard; /* there is a dump of it; else entered is what others' calls prove of it */
	int64_t entered, pending; /* the last call that it entered, that it is in; -1 = none */
};

struct dumped_line {
	const char *group, *what; /* what: for people, "" = nothing */
	const char *op;		  /* of the call below */
	bool message;
	uint32_t first_seat, n_seats;
	int64_t call;  /* the first that some are in and others have not entered; else the last pending one */
	int64_t at_ns; /* when it was first called */
	int64_t over;  /* the last that is known to have ended for somebody; -1; not of messages */
};

struct dumped { /* all of the caller's */
	struct dumped_line *lines;
	uint32_t n_lines, n_lines_alloc;
	struct dumped_seat *seats;
	uint32_t n_seats, n_seats_alloc;
	int32_t *missing; /* ranks of the world without a dump, growing */
	uint32_t n_missing, n_dumps;
	bool alone; /* nothing else tells of this job: no times that could be compared */
};

/* Did that call of that group end for somebody? */
bool dumped_over(const struct dumped *d, const char *group, uint64_t call);
