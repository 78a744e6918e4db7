/* A name of a host in the first line, a text behind it: the name is in no word of what comes out,
 * the same text gives the same, and lines stay lines. */
#include "../../collector/import/mask.h"

#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(claim)             \
	do {                     \
		if (!(claim))    \
			abort(); \
	} while (0)

static int is_word(int c)
{
	return c >= 0x80 || isalnum(c) || c == '-' || c == '.' || c == '_';
}

static int may_be_found(const char *name)
{
	size_t n = strlen(name), n_parts = 1;
	int letters = 0, others = 0;

	for (size_t i = 0; i < n; i++) {
		letters |= isalpha((unsigned char)name[i]) && (unsigned char)name[i] < 0x80;
		others |= !isalpha((unsigned char)name[i]);
		n_parts += strchr("-._", name[i]) != NULL;
		if (!is_word((unsigned char)name[i]) || (unsigned char)name[i] >= 0x80)
			return 0;
	}
	return n >= 3 && n <= 200 && letters && others && n_parts < 20;
}

static void check_gone(const char *out, const char *name)
{
	size_t n = strlen(name);

	for (const char *p = out; (p = strcasestr(p, name)); p++)
		CHECK((p > out && is_word((unsigned char)p[-1])) || is_word((unsigned char)p[n]));
}

static size_t n_lines(const char *text)
{
	size_t n = 0;

	for (; *text; text++)
		n += *text == '\n';
	return n;
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n);
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n)
{
	char *name = strndup((const char *)data, n), *text = strchr(name, '\n'), *out, *again, *fields;
	struct mask *m = mask_new();

	CHECK(name && m);
	if (!text) {
		mask_free(m);
		free(name);
		return 0;
	}
	*text++ = '\0';
	mask_learn(m, MASK_HOST, name);
	mask_learn_path(m, text);
	mask_learn_fields(m, text);
	out = mask_text(m, text);
	again = mask_text(m, text);
	fields = mask_fields(m, text);
	CHECK(out && again && fields && strcmp(out, again) == 0 && n_lines(out) == n_lines(text));
	if (may_be_found(name))
		check_gone(out, name);
	free(out);
	free(again);
	free(fields);
	mask_free(m);
	free(name);
	return 0;
}
