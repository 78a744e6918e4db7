#include "trace_event.h"

#include <stdio.h>
#include <string.h>

static bool copy(char *out, size_t n_out, const struct json_scan *s)
{
	size_t n = s->n_text < n_out - 1 ? s->n_text : n_out - 1;

	memcpy(out, s->text, n);
	/* Not in the middle of a character. */
	while (n < s->n_text && n > 0 && ((unsigned char)out[n - 1] & 0xc0) == 0x80)
		n--;
	if (n < s->n_text && n > 0 && (unsigned char)out[n - 1] >= 0xc0)
		n--;
	out[n] = '\0';
	return s->cut || n < s->n_text;
}

static bool is(const struct json_scan *s, const char *key)
{
	return strcmp(s->text, key) == 0;
}

static void take_number(int64_t *ret, enum json_token t, const struct json_scan *s)
{
	int64_t v;

	/* Some write a number as a text. */
	if ((t == JSON_SCAN_NUMBER || t == JSON_SCAN_STRING) && json_scan_integer(s->text, 0, &v))
		*ret = v;
}

static int number_of(const struct json_scan *s)
{
	static const struct {
		const char *key;
		enum trace_number number;
	} known[] = {
		{ "step", TRACE_STEP }, { "iteration", TRACE_STEP }, { "model_chunk", TRACE_CHUNK },
		{ "seq_id", TRACE_SEQ }, { "mb_id", TRACE_MICRO }, { "microbatch", TRACE_MICRO },
		{ "correlation", TRACE_CORRELATION }, { "External id", TRACE_EXTERNAL },
		{ "stream", TRACE_STREAM }, { "bytes", TRACE_BYTES }, { "In msg nelems", TRACE_N_IN },
		{ "Out msg nelems", TRACE_N_OUT }, { "Group size", TRACE_GROUP_SIZE },
		{ "pp_rank", TRACE_STAGE }, { "pp_rk", TRACE_STAGE }, { "dp_rank", TRACE_REPLICA },
		{ "dp_rk", TRACE_REPLICA }, { "tp_rank", TRACE_TENSOR }, { "tp_rk", TRACE_TENSOR },
		{ "g_rk", TRACE_RANK },
	};

	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (is(s, known[i].key))
			return (int)known[i].number;
	return -1;
}

static bool read_args(struct json_scan *s, struct trace_event *ret)
{
	static const char *const texts[TRACE_N_TEXTS] = {
		[TRACE_NAME] = "name", [TRACE_COLLECTIVE] = "Collective name",
		[TRACE_DTYPE] = "dtype", [TRACE_GROUP] = "Process Group Name",
		[TRACE_GROUP_DESC] = "Process Group Description",
		[TRACE_GROUP_RANKS] = "Process Group Ranks",
	};
	enum json_token t;

	while ((t = json_scan_next(s)) == JSON_SCAN_KEY) {
		int number = number_of(s), text = -1;

		for (int i = 0; i < TRACE_N_TEXTS && text < 0 && number < 0; i++)
			text = is(s, texts[i]) ? i : -1;
		t = json_scan_next(s);
		if (number >= 0)
			take_number(&ret->numbers[number], t, s);
		else if (text >= 0 && (t == JSON_SCAN_STRING || t == JSON_SCAN_NUMBER))
			ret->cut[text] = copy(ret->texts[text], sizeof ret->texts[text], s);
		if (!json_scan_skip(s, t))
			return false;
	}
	return t == JSON_SCAN_OBJECT_END;
}

static bool read_field(struct json_scan *s, struct trace_event *ret)
{
	enum { OTHER, PHASE, NAME, CATEGORY, PID, TID, TS, DUR, ARGS } field =
		is(s, "ph") ? PHASE : is(s, "name") ? NAME : is(s, "cat") ? CATEGORY :
		is(s, "pid") ? PID : is(s, "tid") ? TID : is(s, "ts") ? TS :
		is(s, "dur") ? DUR : is(s, "args") ? ARGS : OTHER;
	enum json_token t = json_scan_next(s);
	bool text = t == JSON_SCAN_STRING || t == JSON_SCAN_NUMBER;

	if (field == ARGS && t == JSON_SCAN_OBJECT)
		return read_args(s, ret);
	if (field == PHASE && text)
		ret->phase = s->text[0];
	else if (field == NAME && text)
		(void)copy(ret->name, sizeof ret->name, s);
	else if (field == CATEGORY && text)
		(void)copy(ret->category, sizeof ret->category, s);
	else if (field == PID && text)
		(void)copy(ret->pid, sizeof ret->pid, s);
	else if (field == TID && text)
		(void)copy(ret->tid, sizeof ret->tid, s);
	else if (field == TS && text)
		ret->has_time = json_scan_integer(s->text, 3, &ret->ts_ns);
	else if (field == DUR && text)
		ret->has_duration = json_scan_integer(s->text, 3, &ret->dur_ns);
	return json_scan_skip(s, t);
}

bool trace_event_read(struct json_scan *s, struct trace_event *ret)
{
	enum json_token t;

	ret->phase = ret->name[0] = ret->category[0] = ret->pid[0] = ret->tid[0] = '\0';
	ret->has_time = ret->has_duration = false;
	ret->ts_ns = ret->dur_ns = 0;
	for (int i = 0; i < TRACE_N_NUMBERS; i++)
		ret->numbers[i] = TRACE_NO_NUMBER;
	for (int i = 0; i < TRACE_N_TEXTS; i++) {
		ret->texts[i][0] = '\0';
		ret->cut[i] = false;
	}
	while ((t = json_scan_next(s)) == JSON_SCAN_KEY)
		if (!read_field(s, ret))
			return false;
	return t == JSON_SCAN_OBJECT_END;
}
