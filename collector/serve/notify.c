/* notify.c - what changed goes into the feed, folded, and the streams are woken. */
#include "serve_internal.h"

#include <jansson.h>
#include <stdlib.h>

static void feed_changed(struct serve *s);

static void on_feed_timer(uv_timer_t *handle)
{
	struct serve *s = handle->data;

	if (feed_flush(s->feed, serve_mono_ns()) && streams_wake(&s->streams))
		serve_kick(s);
	feed_changed(s);
}

/* Set the timer for what still waits. */
static void feed_changed(struct serve *s)
{
	int64_t due_ns = feed_due_ns(s->feed), now_ns = serve_mono_ns();

	if (due_ns == INT64_MAX)
		return;
	uv_update_time(s->loop);
	uv_timer_start(&s->feed_timer, on_feed_timer,
		       due_ns > now_ns ? (uint64_t)(due_ns - now_ns) / 1000000 + 1 : 0, 0);
}

static void post(struct serve *s, enum feed_kind kind, json_t *data)
{
	char *text = data ? json_dumps(data, JSON_COMPACT) : NULL;

	json_decref(data);
	if (!s->stopping) {
		if (feed_post(s->feed, kind, text ? text : "{}", serve_mono_ns())) {
			if (streams_wake(&s->streams))
				serve_kick(s);
		} else {
			feed_changed(s);
		}
	}
	free(text);
}

void serve_notify_step(struct serve *s, uint32_t step)
{
	post(s, FEED_STEP,
	     json_pack("{s:I,s:I}", "step", (json_int_t)step, "rev", (json_int_t)serve_rev(s)));
}

void serve_notify_finding(struct serve *s, int64_t id, const char *class_name, const char *severity)
{
	post(s, FEED_FINDING, json_pack("{s:I,s:s,s:s}", "id", (json_int_t)id, "class", class_name,
					"severity", severity));
}

void serve_notify_rank(struct serve *s, int32_t rank, const char *state)
{
	post(s, FEED_RANK, json_pack("{s:i,s:s}", "rank", (int)rank, "state", state));
}

void serve_notify_drop(struct serve *s, uint64_t n_total)
{
	post(s, FEED_DROP, json_pack("{s:I}", "total", (json_int_t)n_total));
}

void serve_notify_clock(struct serve *s, int64_t error_ns)
{
	post(s, FEED_CLOCK, error_ns == FACT_NONE ? json_pack("{s:n}", "error_ns")
						  : json_pack("{s:I}", "error_ns", (json_int_t)error_ns));
}
