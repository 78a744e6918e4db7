/* spans_internal.h - spans of a Chrome trace, between their reader, what is made of their
 * names and the pipeline that they may show. */
#pragma once

#include "timeline_internal.h"

#define SPANS_MAX_MARKS (1u << 21)

struct mark { /* one event */
	int64_t at_ns, end_ns; /* end: of a whole span */
	uint32_t lane, name;
	int32_t step, micro, chunk, stage, replica, tensor, rank; /* -1 = not said */
	char phase; /* B, E, X, i */
};

struct lane_id {
	char pid[64], tid[64];
	int64_t pid_number, tid_number; /* -1 = none */
	int32_t stage, replica, tensor, rank;
	uint32_t n_forward, n_backward;
	uint32_t worker; /* UINT32_MAX = none */
};

struct span { /* whole */
	int64_t begin_ns, end_ns;
	uint32_t lane, name;
	int32_t step, micro, chunk;
};

struct step_mark {
	uint32_t lane;
	int64_t begin_ns, end_ns; /* end INT64_MAX: open */
	int32_t number;
};

struct spans {
	struct timeline l;
	struct mark *marks;
	uint32_t n_marks, n_marks_alloc;
	struct lane_id *lanes;
	uint32_t n_lanes, n_lanes_alloc;
	void *lane_ids, *name_ids; /* json_t */
	char **names; /* id - 1, owned */
	uint32_t n_names, n_names_alloc;
	struct span *v; /* by lane and begin, outer ones first */
	uint32_t n, n_alloc;
	struct step_mark *steps; /* by lane and begin */
	uint32_t n_steps, n_steps_alloc;
	uint64_t n_without_end, n_without_begin, n_early, n_untimed, n_outside;
	bool pipeline; /* forwards and backwards of stages */
	bool told;     /* by itself which stage who is */
	bool no_steps; /* the whole is one */
	bool other_names; /* some are summed up as one */
};

/* What a span's name stands for. */
enum role spans_role(const char *name);
bool spans_is_message(const char *name);
/* The name of a step, with its number or -1. */
bool spans_is_step(const char *name, int32_t *ret_number);

const char *spans_name(const struct spans *s, uint32_t name);
/* Marks into spans and steps. False: it failed. */
bool spans_collect(struct spans *s);
/* Who works, and on which stage; once more, without stages, where pipeline was taken back. */
bool spans_place(struct spans *s);
/* The messages that a pipeline must have had. After its operations are there. */
bool spans_link(struct spans *s);
