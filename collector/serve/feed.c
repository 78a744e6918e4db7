#include "feed.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct waiting {
	char *data; /* owned; NULL when nothing waits */
	unsigned n; /* posts folded into it */
	int64_t due_ns; /* earliest time of the next event of this kind */
	bool used;  /* due_ns means something */
};

struct feed {
	uint64_t first_id, head;
	int64_t gap_ns;
	struct waiting waiting[FEED_N_KINDS];
	struct feed_event ring[FEED_EVENTS];
};

int feed_new(struct feed **ret, uint64_t first_id, int64_t gap_ns)
{
	struct feed *f = calloc(1, sizeof *f);

	if (!f)
		return -ENOMEM;
	f->first_id = f->head = first_id;
	f->gap_ns = gap_ns;
	*ret = f;
	return 0;
}

void feed_free(struct feed *f)
{
	if (!f)
		return;
	for (size_t i = 0; i < FEED_EVENTS; i++)
		free(f->ring[i].data);
	for (size_t i = 0; i < FEED_N_KINDS; i++)
		free(f->waiting[i].data);
	free(f);
}

/* The object with "n" added when it stands for several. NULL without memory. */
static char *folded(const char *data, unsigned n)
{
	size_t n_data = strlen(data);
	char *text;

	if (n_data > FEED_MAX_DATA || n_data < 2) {
		data = "{}";
		n_data = 2;
	}
	text = malloc(n_data + 32);
	if (!text)
		return NULL;
	if (n > 1)
		snprintf(text, n_data + 32, "%.*s%s\"n\":%u}", (int)n_data - 1, data,
			 n_data > 2 ? "," : "", n);
	else
		memcpy(text, data, n_data + 1);
	return text;
}

/* Takes data. Without memory the event is told as an empty object: clients then
 * ask for everything of that kind, which is slower but never wrong. */
static void emit(struct feed *f, enum feed_kind kind, char *data)
{
	struct feed_event *ev = &f->ring[(f->head + 1) % FEED_EVENTS];

	free(ev->data);
	*ev = (struct feed_event){ .id = ++f->head, .kind = kind, .data = data };
}

bool feed_post(struct feed *f, enum feed_kind kind, const char *data, int64_t now_ns)
{
	struct waiting *w = &f->waiting[kind];

	if (!w->n && (!w->used || now_ns >= w->due_ns)) {
		emit(f, kind, folded(data, 1));
		w->due_ns = now_ns + f->gap_ns;
		w->used = true;
		return true;
	}
	free(w->data);
	w->n++;
	w->data = folded(data, w->n);
	return false;
}

bool feed_flush(struct feed *f, int64_t now_ns)
{
	bool any = false;

	for (size_t kind = 0; kind < FEED_N_KINDS; kind++) {
		struct waiting *w = &f->waiting[kind];

		if (!w->n || now_ns < w->due_ns)
			continue;
		emit(f, (enum feed_kind)kind, w->data);
		w->data = NULL;
		w->n = 0;
		w->due_ns = now_ns + f->gap_ns;
		any = true;
	}
	return any;
}

int64_t feed_due_ns(const struct feed *f)
{
	int64_t due_ns = INT64_MAX;

	for (size_t kind = 0; kind < FEED_N_KINDS; kind++) {
		const struct waiting *w = &f->waiting[kind];

		if (w->n && w->due_ns < due_ns)
			due_ns = w->due_ns;
	}
	return due_ns;
}

uint64_t feed_head(const struct feed *f)
{
	return f->head;
}

bool feed_covers(const struct feed *f, uint64_t cursor)
{
	return cursor <= f->head && cursor >= f->first_id && f->head - cursor <= FEED_EVENTS;
}

const struct feed_event *feed_get(const struct feed *f, uint64_t id)
{
	if (id > f->head || id <= f->first_id || f->head - id >= FEED_EVENTS)
		return NULL;
	return &f->ring[id % FEED_EVENTS];
}

const char *feed_kind_name(enum feed_kind kind)
{
	switch (kind) {
	case FEED_STEP:
		return "step";
	case FEED_FINDING:
		return "finding";
	case FEED_RANK:
		return "rank";
	case FEED_DROP:
		return "drop";
	case FEED_CLOCK:
		return "clock";
	case FEED_N_KINDS:
		break;
	}
	return "";
}
