#include "trace_event.h"

#include "json_number.h"

#include <stdio.h>
#include <string.h>

/* True: not all of it. */
static bool copy(char *out, size_t n_out, const struct json_item *v)
{
	size_t n = v->n_text < n_out - 1 ? v->n_text : n_out - 1;
	char *zero;

	memcpy(out, v->text, n);
	/* Not in the middle of a character. */
	while (n < v->n_text && n > 0 && ((unsigned char)v->text[n] & 0xc0) == 0x80)
		n--;
	out[n] = '\0';
	while ((zero = memchr(out, 0, n)))
		*zero = ' ';
	return n < v->n_text;
}

static inline bool is(const struct json_item *v, const char *key)
{
	/* Most differ in the first byte. */
	return v->n_key > 0 && v->key[0] == key[0] && v->n_key == strlen(key) &&
	       memcmp(v->key, key, v->n_key) == 0;
}

static bool has_text(const struct json_item *v)
{
	return v->type == '"' || v->type == '0';
}

static void forget_args(struct trace_event *ev)
{
	for (int i = 0; i < TRACE_N_NUMBERS; i++)
		ev->numbers[i] = TRACE_NO_NUMBER;
	for (int i = 0; i < TRACE_N_TEXTS; i++) {
		ev->texts[i][0] = '\0';
		ev->cut[i] = false;
	}
	ev->n_args = 0;
}

static void take_arg(struct trace_event *ev, const struct json_item *v)
{
	static const char *const numbers[TRACE_N_NUMBERS] = {
		[TRACE_STEP] = "step", [TRACE_CHUNK] = "model_chunk", [TRACE_SEQ] = "seq_id",
		[TRACE_MICRO] = "mb_id", [TRACE_CORRELATION] = "correlation",
		[TRACE_EXTERNAL] = "External id", [TRACE_STREAM] = "stream",
		[TRACE_BYTES] = "bytes", [TRACE_N_IN] = "In msg nelems",
		[TRACE_N_OUT] = "Out msg nelems", [TRACE_GROUP_SIZE] = "Group size",
		[TRACE_RANK_START] = "Global rank start", [TRACE_RANK_STRIDE] = "Global rank stride",
	};
	static const char *const texts[TRACE_N_TEXTS] = {
		[TRACE_NAME] = "name", [TRACE_COLLECTIVE] = "Collective name",
		[TRACE_DTYPE] = "dtype", [TRACE_GROUP] = "Process Group Name",
		[TRACE_GROUP_DESC] = "Process Group Description",
		[TRACE_GROUP_RANKS] = "Process Group Ranks",
	};
	int64_t number;

	if (v->type == '}' || v->type == ']')
		return;
	if (ev->n_args < TRACE_MAX_ARGS)
		ev->args[ev->n_args++] = *v;
	for (int i = 0; i < TRACE_N_NUMBERS && has_text(v); i++)
		if (is(v, numbers[i])) {
			/* Some write a number as a text. */
			if (json_integer_of(v->text, v->n_text, 0, &number))
				ev->numbers[i] = number;
			return;
		}
	for (int i = 0; i < TRACE_N_TEXTS && has_text(v); i++)
		if (is(v, texts[i])) {
			ev->cut[i] = copy(ev->texts[i], sizeof ev->texts[i], v);
			return;
		}
}

static void take_field(struct trace_event *ev, const struct json_item *v)
{
	if (is(v, "args")) {
		ev->in_args = v->type == '{';
		if (v->type != '}')
			forget_args(ev);
	} else if (!has_text(v)) {
		return;
	} else if (is(v, "ph")) {
		ev->phase = v->n_text > 0 ? v->text[0] : '\0';
	} else if (is(v, "name")) {
		(void)copy(ev->name, sizeof ev->name, v);
	} else if (is(v, "cat")) {
		(void)copy(ev->category, sizeof ev->category, v);
	} else if (is(v, "pid")) {
		(void)copy(ev->pid, sizeof ev->pid, v);
	} else if (is(v, "tid")) {
		(void)copy(ev->tid, sizeof ev->tid, v);
	} else if (is(v, "id")) {
		(void)copy(ev->id, sizeof ev->id, v);
	} else if (is(v, "ts")) {
		ev->has_time = json_integer_of(v->text, v->n_text, 3, &ev->ts_ns);
	} else if (is(v, "dur")) {
		ev->has_duration = json_integer_of(v->text, v->n_text, 3, &ev->dur_ns);
	}
}

static void take(void *arg, const struct json_item *v)
{
	struct trace_event *ev = arg;

	if (v->depth == 1 && v->key)
		take_field(ev, v);
	else if (v->depth == 2 && ev->in_args)
		take_arg(ev, v);
}

bool trace_event_read(struct json_walk *w, const char *text, size_t n, struct trace_event *ret)
{
	ret->phase = ret->name[0] = ret->category[0] = ret->pid[0] = ret->tid[0] = ret->id[0] = '\0';
	ret->has_time = ret->has_duration = ret->in_args = false;
	ret->ts_ns = ret->dur_ns = 0;
	ret->text = text;
	ret->n_text = n;
	forget_args(ret);
	return n > 0 && text[0] == '{' && json_walk(w, text, n, take, ret);
}

static const struct json_item *find_arg(const struct trace_event *ev, const char *name)
{
	for (unsigned i = ev->n_args; i-- > 0;)
		if (is(&ev->args[i], name))
			return ev->args[i].text ? &ev->args[i] : NULL;
	return NULL;
}

bool trace_event_arg(const struct trace_event *ev, const char *name, char *out, size_t n_out)
{
	const struct json_item *v = find_arg(ev, name);

	out[0] = '\0';
	if (v)
		(void)copy(out, n_out, v);
	return v != NULL;
}

bool trace_event_arg_integer(const struct trace_event *ev, const char *name, int64_t *ret)
{
	const struct json_item *v = find_arg(ev, name);

	return v && has_text(v) && json_integer_of(v->text, v->n_text, 0, ret);
}
