#include "json_walk.h"

#include <cstring>
#include <new>
#include <simdjson.h>
#include <string_view>

using namespace simdjson;

#define MAX_DEPTH 80 /* more than what is cut has */

static_assert(SIMDJSON_PADDING <= 64, "JSON_CUT_PADDING");

struct json_walk {
	ondemand::parser parser;
	void (*take)(void *arg, const struct json_item *v);
	void *arg;
	bool plain; /* there is no escape in the text */
};

namespace {

const char *skip_digits(const char *p, const char *end)
{
	while (p < end && *p >= '0' && *p <= '9')
		p++;
	return p;
}

/* The library would make it a double first, and refuse what does not fit in one. */
bool is_number(std::string_view s)
{
	const char *p = s.data(), *end = p + s.size(), *from;

	p += p < end && *p == '-';
	from = p;
	p = skip_digits(p, end);
	if (p == from || (*from == '0' && p > from + 1))
		return false;
	if (p < end && *p == '.') {
		from = ++p;
		p = skip_digits(p, end);
		if (p == from)
			return false;
	}
	if (p < end && (*p | 32) == 'e') {
		p++;
		p += p < end && (*p == '-' || *p == '+');
		from = p;
		p = skip_digits(p, end);
		if (p == from)
			return false;
	}
	return p == end;
}

std::string_view trimmed(std::string_view s)
{
	while (!s.empty() && (s.back() == ' ' || s.back() == '\n' || s.back() == '\r' || s.back() == '\t'))
		s.remove_suffix(1);
	return s;
}

/* A number or a word as it is written. */
bool take_token(struct json_walk *w, struct json_item *v, std::string_view token)
{
	token = trimmed(token);
	v->text = token.data();
	v->n_text = token.size();
	v->type = token.empty() ? 0 : token[0];
	if (v->type == '-' || (v->type >= '0' && v->type <= '9')) {
		v->type = '0';
		if (!is_number(token))
			return false;
	} else if (token != "true" && token != "false" && token != "null") {
		return false;
	}
	w->take(w->arg, v);
	return true;
}

void take_bracket(struct json_walk *w, struct json_item *v, char type)
{
	v->type = type;
	v->text = nullptr;
	v->n_text = 0;
	w->take(w->arg, v);
}

bool take_key(struct json_walk *w, struct json_item *v, ondemand::field &field)
{
	std::string_view key;

	if (w->plain) {
		v->key = field.key().raw();
		v->n_key = (size_t)((const char *)rawmemchr(v->key, '"') - v->key);
		return true;
	}
	if (field.unescaped_key().get(key))
		return false;
	v->key = key.data();
	v->n_key = key.size();
	return true;
}

bool take_string(struct json_walk *w, struct json_item *v, std::string_view token, ondemand::value value)
{
	if (w->plain) {
		token = trimmed(token);
		if (token.size() < 2)
			return false;
		token = token.substr(1, token.size() - 2);
	} else if (value.get_string().get(token)) {
		return false;
	}
	v->type = '"';
	v->text = token.data();
	v->n_text = token.size();
	w->take(w->arg, v);
	return true;
}

bool walk_value(struct json_walk *w, struct json_item v, ondemand::value value);

bool walk_object(struct json_walk *w, struct json_item v, ondemand::object object)
{
	struct json_item inner = v;

	take_bracket(w, &v, '{');
	inner.depth++;
	for (auto result : object) {
		ondemand::field field;

		if (std::move(result).get(field) || !take_key(w, &inner, field))
			return false;
		if (!walk_value(w, inner, field.value()))
			return false;
	}
	take_bracket(w, &v, '}');
	return true;
}

bool walk_list(struct json_walk *w, struct json_item v, ondemand::array list)
{
	struct json_item inner = v;

	take_bracket(w, &v, '[');
	inner.depth++;
	inner.key = nullptr;
	inner.n_key = 0;
	for (auto result : list) {
		ondemand::value value;

		if (std::move(result).get(value) || !walk_value(w, inner, value))
			return false;
	}
	take_bracket(w, &v, ']');
	return true;
}

bool walk_value(struct json_walk *w, struct json_item v, ondemand::value value)
{
	std::string_view token = value.raw_json_token();

	if (token.empty() || v.depth > MAX_DEPTH)
		return false;
	if (token[0] == '{') {
		ondemand::object object;

		return !value.get_object().get(object) && walk_object(w, v, object);
	}
	if (token[0] == '[') {
		ondemand::array list;

		return !value.get_array().get(list) && walk_list(w, v, list);
	}
	if (token[0] == '"')
		return take_string(w, &v, token, value);
	return take_token(w, &v, token);
}

}

extern "C" struct json_walk *json_walk_new(void)
{
	return new (std::nothrow) struct json_walk;
}

extern "C" void json_walk_free(struct json_walk *w)
{
	delete w;
}

extern "C" bool json_walk(struct json_walk *w, const char *text, size_t n,
			  void (*take)(void *arg, const struct json_item *v), void *arg)
{
	ondemand::document doc;
	ondemand::object object;
	ondemand::array list;
	bool fine;

	w->take = take;
	w->arg = arg;
	w->plain = !memchr(text, '\\', n);
	if (n == 0 || w->parser.iterate(padded_string_view(text, n, n + SIMDJSON_PADDING)).get(doc))
		return false;
	if (text[0] == '{')
		fine = !doc.get_object().get(object) && walk_object(w, {}, object);
	else
		fine = !doc.get_array().get(list) && walk_list(w, {}, list);
	return fine && doc.current_location().error() == OUT_OF_BOUNDS;
}
