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

static bool read_args(struct json_scan *s, struct trace_event *ret)
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
	enum json_token t;

	while ((t = json_scan_next(s)) == JSON_SCAN_KEY) {
		int number = -1, text = -1;

		for (int i = 0; i < TRACE_N_NUMBERS && number < 0; i++)
			number = is(s, numbers[i]) ? i : -1;
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
