/* megatron.c - training logs of Megatron and DeepSpeed: iteration lines and timers.
 *
 * Lines are known by what they say, whatever stands before it: a host, a time, a rank. An
 * iteration's fields lie between bars. Timers follow it: in one line ("time (ms) | name:
 * value | …", of the last rank), or one a line, over all ranks ("name ....: (min, max)")
 * or of each. A log begins with anything: a file is read to its end before it is said to
 * be none.
 */
#include "megatron.h"
#include "lines.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define LISTED_WIDTH 47
#define SHORTEST 16 /* line that tells anything where no list is */

enum { LISTING_NONE, LISTING_OVER_RANKS, LISTING_RANKS };

static bool grow(struct megatron *m, void *v, uint32_t n, uint32_t *n_alloc, size_t size, uint32_t max)
{
	uint32_t want = *n_alloc ? 2 * *n_alloc : 16;
	void *grown;

	if (n < *n_alloc)
		return true;
	if (n >= max) {
		m->n_left_out++;
		return false;
	}
	grown = realloc(*(void **)v, want * size);
	m->trace->no_memory |= !grown;
	if (!grown)
		return false;
	*(void **)v = grown;
	*n_alloc = want;
	return true;
}

/* A number and nothing else but spaces; NaN when it is none, or none that can be. */
static double number_of(const char *text, size_t n)
{
	char copy[48], *end;
	double v;

	while (n > 0 && isspace((unsigned char)*text)) {
		text++;
		n--;
	}
	while (n > 0 && isspace((unsigned char)text[n - 1]))
		n--;
	if (n == 0 || n >= sizeof copy || !strchr("+-.0123456789", *text))
		return NAN;
	memcpy(copy, text, n);
	copy[n] = '\0';
	v = strtod(copy, &end);
	return *end == '\0' && isfinite(v) ? v : NAN;
}

/* ---- iterations ---- */

/* "iteration  10/ 1000", "iteration=10/1000": the 10. -1 = not there. */
static int64_t iteration_of(const char *line)
{
	for (const char *at = line; (at = strcasestr(at, "iteration")) != NULL; at++) {
		const char *digits = at + strlen("iteration");
		char *end;
		long long v;

		digits += strspn(digits, " =:");
		if (!isdigit((unsigned char)*digits))
			continue;
		v = strtoll(digits, &end, 10);
		end += strspn(end, " ");
		if (*end == '/' && v >= 0 && v < UINT32_MAX - 1)
			return v;
	}
	return -1;
}

/* A field's name in small letters, with spaces for underscores, and its value's place. */
static const char *split_field(const char *text, size_t n, char *name, size_t n_name, size_t *ret_n)
{
	size_t cut = n, at = 0;

	while (n > 0 && isspace((unsigned char)text[n - 1]))
		n--;
	for (cut = n; cut > 0 && text[cut - 1] != ':' && text[cut - 1] != '=';)
		cut--;
	for (size_t i = n; i > 0 && cut == 0; i--) /* neither: its last word */
		if (text[i - 1] == ' ')
			cut = i;
	if (cut == 0)
		return NULL;
	for (size_t i = 0; i + 1 < cut && at + 1 < n_name; i++) {
		char c = text[i] == '_' ? ' ' : (char)tolower((unsigned char)text[i]);

		if (at > 0 || c != ' ')
			name[at++] = c;
	}
	while (at > 0 && name[at - 1] == ' ')
		at--;
	name[at] = '\0';
	*ret_n = n - cut;
	return text + cut;
}

static void take_field(struct megatron_step *s, const char *text, size_t n)
{
	char name[64];
	size_t n_value;
	const char *value = split_field(text, n, name, sizeof name, &n_value);
	double v = value ? number_of(value, n_value) : NAN;
	const struct {
		const char *name;
		double *to;
	} known[] = {
		{ "number of skipped iterations", &s->skipped }, { "number of nan iterations", &s->nan },
		{ "lm loss", &s->loss }, { "loss", &s->loss }, { "loss scale", &s->loss_scale },
		{ "grad norm", &s->grad_norm }, { "learning rate", &s->learning_rate },
		{ "global batch size", &s->batch_size },
	};

	if (!value || isnan(v))
		return;
	if (strncmp(name, "elapsed time per iteration", 26) == 0 && v >= 0)
		s->elapsed_ms = v;
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (strcmp(name, known[i].name) == 0)
			*known[i].to = v;
}

static void add_step(struct megatron *m, const struct megatron_step *s)
{
	struct megatron_step *last = m->n_steps ? &m->steps[m->n_steps - 1] : NULL;

	if (!grow(m, &m->steps, m->n_steps, &m->n_steps_alloc, sizeof *m->steps, MEGATRON_MAX_STEPS))
		return;
	last = m->n_steps ? &m->steps[m->n_steps - 1] : NULL;
	m->steps[m->n_steps] = *s;
	/* A job that went back to a checkpoint counts from there. */
	m->steps[m->n_steps].n = last && s->step > last->step ? s->step - last->step : 0;
	m->n_steps++;
}

static struct megatron_step new_step(int64_t number)
{
	return (struct megatron_step){ number, 0, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN };
}

static bool take_iteration(struct megatron *m, const char *line)
{
	struct megatron_step s;
	int64_t number;

	if (!strchr(line, '/')) /* most lines end here, soon */
		return false;
	if (!strcasestr(line, "elapsed time per iteration") && !strstr(line, "elapsed_time_per_iteration"))
		return false;
	number = iteration_of(line);
	if (number < 0)
		return false;
	s = new_step(number);
	for (const char *at = line, *bar; *at; at = *bar ? bar + 1 : bar) {
		bar = strchrnul(at, '|');
		take_field(&s, at, (size_t)(bar - at));
	}
	if (isnan(s.elapsed_ms))
		return false;
	add_step(m, &s);
	return true;
}

static double behind(const char *line, const char *what)
{
	const char *at = strstr(line, what);

	if (!at)
		return NAN;
	at += strlen(what);
	at += strspn(at, " ");
	return number_of(at, strcspn(at, " ,"));
}

/* DeepSpeed's own: "steps: 10 loss: 1.2 iter time (s): 0.5 samples/sec: 3.1" */
static bool take_deepspeed(struct megatron *m, const char *line)
{
	double number = behind(line, "steps:"), seconds = behind(line, "iter time (s):");
	struct megatron_step s;

	if (!(number >= 0) || number > 4e9 || number != floor(number) || !(seconds >= 0))
		return false;
	s = new_step((int64_t)number);
	s.elapsed_ms = 1000 * seconds;
	s.loss = behind(line, " loss:");
	add_step(m, &s);
	return true;
}

/* ---- timers ---- */

static void add_sample(struct megatron *m, const char *name, size_t n_name, int32_t rank, double ms, double least_ms)
{
	char text[sizeof *m->names];
	uint32_t i = 0;

	if (isnan(ms) || ms < 0 || n_name == 0)
		return;
	snprintf(text, sizeof text, "%.*s", (int)(n_name < sizeof text ? n_name : sizeof text - 1), name);
	while (i < m->n_names && strcmp(m->names[i], text) != 0)
		i++;
	if (i == m->n_names) {
		if (!grow(m, &m->names, m->n_names, &m->n_names_alloc, sizeof *m->names, MEGATRON_MAX_NAMES))
			return;
		memcpy(m->names[m->n_names++], text, sizeof text);
	}
	if (!grow(m, &m->samples, m->n_samples, &m->n_samples_alloc, sizeof *m->samples, MEGATRON_MAX_SAMPLES))
		return;
	m->samples[m->n_samples++] =
		(struct megatron_sample){ m->n_steps ? m->n_steps - 1 : UINT32_MAX, i, rank, ms, least_ms };
}

static bool take_timers(struct megatron *m, const char *line)
{
	const char *at = strstr(line, "time (ms) |");

	if (!at)
		return false;
	at += strlen("time (ms) |");
	for (const char *bar; *at; at = *bar ? bar + 1 : bar) {
		const char *colon;
		size_t n;

		bar = strchrnul(at, '|');
		at += strspn(at, " ");
		colon = memchr(at, ':', bar > at ? (size_t)(bar - at) : 0);
		if (!colon)
			continue;
		for (n = (size_t)(colon - at); n > 0 && at[n - 1] == ' ';)
			n--;
		add_sample(m, at, n, -1, number_of(colon + 1, (size_t)(bar - colon - 1)), NAN);
	}
	return true;
}

/* The word before a colon, without the dots that lead to it. */
static size_t word_before(const char *line, const char *colon, const char **ret)
{
	const char *end = colon;

	while (end > line && (end[-1] == '.' || end[-1] == ' '))
		end--;
	*ret = end;
	while (*ret > line && !isspace((unsigned char)(*ret)[-1]))
		--*ret;
	return (size_t)(end - *ret);
}

/* "name ....: (1.0, 2.0)", "name ....: 2.0"; false: it is not of the list. */
static bool take_listed(struct megatron *m, const char *line)
{
	const char *colon = strrchr(line, ':'), *name, *value, *comma;
	size_t n;

	if (!colon)
		return false;
	n = word_before(line, colon, &name);
	if (n == 0 || (colon[-1] != '.' && n < LISTED_WIDTH)) /* dots lead to the value where there is room for them */
		return false;
	value = colon + 1 + strspn(colon + 1, " ");
	if (*value == '(') {
		comma = strchr(value, ',');
		if (!comma || !strchr(comma, ')'))
			return false;
		add_sample(m, name, n, -1, number_of(comma + 1, (size_t)(strchr(comma, ')') - comma - 1)),
			   number_of(value + 1, (size_t)(comma - value - 1)));
		return true;
	}
	if (isnan(number_of(value, strlen(value))))
		return false;
	add_sample(m, name, n, -1, number_of(value, strlen(value)), NAN);
	return true;
}

/* "name:", and below it "rank  3: 2.0". */
static bool take_of_ranks(struct megatron *m, const char *line, uint32_t *name)
{
	const char *at = strstr(line, "rank "), *colon = strrchr(line, ':'), *word;
	size_t n;

	if (!colon)
		return false;
	if (at && colon > at && *name != UINT32_MAX) {
		double rank = number_of(at + 5, (size_t)(colon - at - 5));

		if (!(rank >= 0 && rank < FACT_MAX_RANKS))
			return false;
		add_sample(m, m->names[*name], strlen(m->names[*name]), (int32_t)rank,
			   number_of(colon + 1, strlen(colon + 1)), NAN);
		return true;
	}
	n = word_before(line, colon, &word);
	if (colon[1 + strspn(colon + 1, " ")] != '\0' || n == 0 || n >= sizeof *m->names)
		return false;
	for (*name = 0; *name < m->n_names; ++*name)
		if (strncmp(m->names[*name], word, n) == 0 && m->names[*name][n] == '\0')
			return true;
	if (!grow(m, &m->names, m->n_names, &m->n_names_alloc, sizeof *m->names, MEGATRON_MAX_NAMES)) {
		*name = UINT32_MAX;
		return true;
	}
	memset(m->names[m->n_names], 0, sizeof *m->names);
	memcpy(m->names[m->n_names++], word, n);
	return true;
}

static void take_listing(struct megatron *m, const char *line, int *listing, uint32_t *listed)
{
	if (*listing == LISTING_OVER_RANKS && !take_listed(m, line))
		*listing = LISTING_NONE;
	else if (*listing == LISTING_RANKS && !take_of_ranks(m, line, listed))
		*listing = LISTING_NONE;
}

bool megatron_take_line(struct megatron *m, const char *line, size_t n, int *listing, uint32_t *listed)
{
	if (n < SHORTEST && *listing == LISTING_NONE)
		return true;
	megatron_take_argument(m, line);
	if (take_iteration(m, line) || take_deepspeed(m, line) || take_timers(m, line)) {
		*listing = LISTING_NONE;
	} else if (strstr(line, "time across ranks (ms):")) {
		*listing = LISTING_OVER_RANKS;
	} else if (strstr(line, "times across ranks (ms):")) {
		*listing = LISTING_RANKS;
		*listed = UINT32_MAX;
	} else {
		take_listing(m, line, listing, listed);
	}
	return !m->trace->no_memory;
}

void megatron_free(struct megatron *m)
{
	free(m->steps);
	free(m->names);
	free(m->samples);
}

/* ---- the format ---- */

static bool is_log(const struct import_head *h)
{
	int first = head_first(h);

	return first >= 0 && first != '{' && first != '<' && !memchr(h->bytes, '\0', h->n_bytes);
}

enum import_outcome megatron_read(struct trace *t, struct trace_input *in, bytes_fn read, void *arg, char *why,
				  size_t n_why)
{
	struct lines lines = { 0 };
	struct megatron m = { .trace = t };
	enum import_outcome o = IMPORT_UNKNOWN;
	int listing = LISTING_NONE;
	uint32_t listed = UINT32_MAX;
	const char *line;
	size_t n;

	t->no_memory |= !lines_open(&lines, read, arg);
	while (!t->no_memory && (line = lines_next(&lines, &n)) && megatron_take_line(&m, line, n, &listing, &listed))
		;
	in->n_events = m.n_steps;
	if (!t->no_memory && m.n_steps > 0) {
		o = IMPORT_FAILED;
		if (lines.failed)
			snprintf(why, n_why, "cannot be read to its end: it is damaged or cut off");
		else if (megatron_tell(&m, in->path, why, n_why))
			o = IMPORT_OK;
	}
	megatron_free(&m);
	lines_close(&lines);
	return o;
}

const struct import_format format_megatron_log = { "Megatron log", is_log, megatron_read, megatron_join, .any = true,
						   .last = '\n', .lines = true };
