/* spec_progs.c - the programs of a case, in the order of the file.
 *
 * A program is a key of "prog", and a person writes one key twice when a rank does
 * one thing and then another. A JSON object keeps the last of them only, so the
 * keys are looked for in the text, which is known to be JSON by then.
 */
#include "spec_internal.h"

#include <string.h>

struct cursor {
	const char *at, *end;
};

static void skip_space(struct cursor *c)
{
	while (c->at < c->end && strchr(" \t\r\n,:", *c->at))
		c->at++;
}

static void skip_string(struct cursor *c)
{
	for (c->at++; c->at < c->end && *c->at != '"'; c->at++)
		c->at += *c->at == '\\';
	c->at++;
}

/* A value of any kind, with what is inside it. */
static void skip_value(struct cursor *c)
{
	unsigned depth = 0;

	do {
		skip_space(c);
		if (c->at >= c->end)
			return;
		if (*c->at == '"') {
			skip_string(c);
		} else if (strchr("[{]}", *c->at)) {
			depth += *c->at == '[' || *c->at == '{' ? 1u : -1u;
			c->at++;
		} else {
			while (c->at < c->end && !strchr(" \t\r\n,:[]{}\"", *c->at))
				c->at++;
		}
	} while (depth > 0);
}

/* Inside an object: its next key. False at its end. */
static bool next_key(struct cursor *c, const char **ret_key, size_t *ret_n)
{
	skip_space(c);
	if (c->at >= c->end || *c->at != '"')
		return false;
	*ret_key = c->at;
	skip_string(c);
	*ret_n = (size_t)(c->at - *ret_key);
	skip_space(c);
	return true;
}

/* Its text parsed again, kept for as long as the spec lives. */
static const json_t *keep(struct parser *p, const char *text, size_t n)
{
	json_t *v = json_loadb(text, n, JSON_DECODE_ANY, NULL);

	if (!v || json_array_append_new(p->spec->json_progs, v) != 0) {
		p->no_memory = true;
		return NULL;
	}
	return v;
}

static bool add_prog(struct parser *p, const char *who, const json_t *ops, const json_t *ranks)
{
	struct spec *s = p->spec;
	struct spec_prog *g = &s->progs[s->n_progs];
	const json_t *first = json_object_get(p->progs, who);
	json_int_t first_at = first ? json_integer_value(first) : s->n_progs;

	*g = (struct spec_prog){ .who = who, .last = s->n_progs, .is_first = !first };
	s->n_progs++;
	s->progs[first_at].last = g->last;
	if (!first && json_object_set_new(p->progs, who, json_integer(first_at)) != 0) {
		p->no_memory = true;
		return false;
	}
	if (!spec_get_ranks(p, ranks, "program", &g->ranks))
		return false;
	p->who = who;
	p->what = NULL;
	if (!spec_get_ops(p, ops, &g->ops))
		return false;
	p->who = NULL;
	return true;
}

/* The file's last "prog", as a reader of JSON takes it. */
static bool find_prog(const struct parser *p, struct cursor *ret)
{
	struct cursor c = { p->text, p->text + p->n_text };
	const char *key;
	bool found = false;
	size_t n;

	skip_space(&c);
	c.at++; /* the root is an object */
	while (next_key(&c, &key, &n)) {
		if (n == 6 && memcmp(key, "\"prog\"", 6) == 0) {
			*ret = c;
			found = true;
		}
		skip_value(&c);
	}
	return found;
}

bool spec_get_progs(struct parser *p)
{
	struct spec *s = p->spec;
	struct cursor c;
	const char *key;
	size_t n;

	if (!json_is_object(json_object_get(s->json, "prog")) || !find_prog(p, &c) || *c.at != '{')
		return spec_refuse(p, "prog is missing: an object, ranks to a list of operations");
	s->json_progs = json_array();
	p->progs = json_object();
	s->progs = spec_alloc(p, SPEC_MAX_PROGS, sizeof *s->progs);
	if (!s->json_progs || !p->progs || !s->progs) {
		p->no_memory = true;
		return false;
	}
	c.at++;
	while (next_key(&c, &key, &n)) {
		const char *value = c.at;
		const json_t *ranks, *ops;

		skip_value(&c);
		if (s->n_progs == SPEC_MAX_PROGS)
			return spec_refuse(p, "there are more than %d programs", SPEC_MAX_PROGS);
		ranks = keep(p, key, n);
		ops = keep(p, value, (size_t)(c.at - value));
		if (!ranks || !ops || !add_prog(p, json_string_value(ranks), ops, ranks))
			return false;
	}
	return true;
}
