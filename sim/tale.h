/* tale.h - what the probe of one rank says while a case is played: events of its
 * host thread and of its device, texts and gauges.
 *
 * The same kinds, names and records that a live probe gives; times are still the
 * true ones of the play. What happens at the end of a rank is told by its agent.
 */
#pragma once

#include "play.h"

#include "../proto/event.h"

enum { TALE_HOST, TALE_DEVICE, TALE_RINGS };

struct tale_text {
	int64_t at_ns;
	uint32_t kind, level; /* shm.h: enum shm_text_kind */
	char *text;	      /* owned */
};

struct tale_gauge {
	int64_t at_ns;
	const char *name;
	double value;
};

struct tale {
	struct event *events[TALE_RINGS]; /* by time; .tick = time of the play */
	size_t n_events[TALE_RINGS], n_events_alloc[TALE_RINGS];
	const char **names; /* id - 1 */
	uint32_t n_names, n_names_alloc;
	struct tale_text *texts; /* by time */
	size_t n_texts, n_texts_alloc;
	struct tale_gauge *gauges; /* by time */
	size_t n_gauges, n_gauges_alloc;
	int64_t left_ns; /* the process ends in order; PLAY_NEVER */
	void *name_ids;
};

/* 0 or -ENOMEM; either way the caller owes a tale_fini(). */
int tale_tell(struct tale *ret, const struct play *p, uint32_t rank);
void tale_fini(struct tale *t); /* zeroed is fine */
