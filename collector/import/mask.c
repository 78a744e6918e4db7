#include "mask.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <jansson.h>
#include <nettle/hmac.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>

#define MAX_LEARNED 65536
#define MAX_NAME 254 /* of a host, by the rules of names */
#define MAX_PARTS 24 /* of a word, between dots, dashes and underscores */
#define MAX_DEPTH 16

struct mask {
	unsigned char key[32];
	json_t *marks;	 /* name in small letters -> mark */
	json_t *domains; /* the same, of "corp.example" */
};

static const char *const sorts[] = { [MASK_HOST] = "host", [MASK_USER] = "user" };

struct mask *mask_new(void)
{
	struct mask *m = calloc(1, sizeof *m);

	if (m && getrandom(m->key, sizeof m->key, 0) == (ssize_t)sizeof m->key) {
		m->marks = json_object();
		m->domains = json_object();
	}
	if (m && m->marks && m->domains)
		return m;
	mask_free(m);
	return NULL;
}

void mask_free(struct mask *m)
{
	if (!m)
		return;
	json_decref(m->marks);
	json_decref(m->domains);
	free(m);
}

/* ---- marks ---- */

#define MARK 24

static void make_mark(const struct mask *m, const char *sort, const char *name, size_t n, char out[MARK])
{
	struct hmac_sha256_ctx h;
	uint8_t digest[SHA256_DIGEST_SIZE];

	hmac_sha256_set_key(&h, sizeof m->key, m->key);
	for (size_t i = 0; i < n; i++) {
		uint8_t c = (uint8_t)tolower((unsigned char)name[i]);

		hmac_sha256_update(&h, 1, &c);
	}
	hmac_sha256_digest(&h, sizeof digest, digest);
	snprintf(out, MARK, "%s-%02x%02x%02x%02x", sort, digest[0], digest[1], digest[2], digest[3]);
}

/* In small letters; false when it is none, or one that says nothing. */
static bool plain_name(const char *name, char out[MAX_NAME + 1])
{
	static const char *const nobody[] = { "localhost", "root", "user", "nobody", "admin", "ubuntu", "none",
					      "unknown", "null", "host", "data", "home", "work", "train", "shared" };
	size_t n = strlen(name);

	if (n == 0 || n > MAX_NAME)
		return false;
	for (size_t i = 0; i <= n; i++) {
		if (name[i] && !isalnum((unsigned char)name[i]) && !strchr("-._", name[i]) &&
		    (unsigned char)name[i] < 0x80)
			return false;
		out[i] = (char)tolower((unsigned char)name[i]);
	}
	for (size_t i = 0; i < sizeof nobody / sizeof *nobody; i++)
		if (strcmp(out, nobody[i]) == 0)
			return false;
	return true;
}

static bool is_number(const char *s)
{
	return s[strspn(s, "0123456789.")] == '\0';
}

/* The word of a machine that no sentence has otherwise: "trainer" is not, "trainer-a" is. */
static bool is_distinct(const char *s)
{
	bool has_letter = false, has_other = false;

	for (const char *c = s; *c; c++) {
		has_letter |= isalpha((unsigned char)*c) != 0;
		has_other |= !isalpha((unsigned char)*c);
	}
	return strlen(s) >= 3 && has_letter && has_other;
}

static void remember(json_t *where, const char *name, const char *mark)
{
	if (json_object_size(where) < MAX_LEARNED && !json_object_get(where, name))
		json_object_set_new(where, name, json_string(mark)); /* what is no UTF-8 stands in no text */
}

void mask_learn(struct mask *m, enum mask_sort sort, const char *name)
{
	char plain[MAX_NAME + 1], mark[MARK], *dot;

	if (!plain_name(name, plain) || is_number(plain))
		return;
	make_mark(m, sorts[sort], plain, strlen(plain), mark);
	if (sort == MASK_USER) {
		if (strlen(plain) >= 3)
			remember(m->marks, plain, mark);
		return;
	}
	if (is_distinct(plain))
		remember(m->marks, plain, mark);
	dot = strchr(plain, '.');
	if (!dot)
		return;
	if (strchr(dot + 1, '.') || strlen(dot + 1) >= 6)
		remember(m->domains, dot + 1, "");
	*dot = '\0';
	if (is_distinct(plain))
		remember(m->marks, plain, mark);
}

/* ---- what says that it is a name ---- */

bool mask_knows_key(const char *key, enum mask_sort *ret_sort)
{
	static const struct {
		const char *key;
		enum mask_sort sort;
	} keys[] = {
		{ "host", MASK_HOST }, { "hostname", MASK_HOST }, { "host_name", MASK_HOST }, { "node", MASK_HOST },
		{ "nodename", MASK_HOST }, { "node_name", MASK_HOST }, { "machine", MASK_HOST },
		{ "peer_host", MASK_HOST }, { "user", MASK_USER }, { "username", MASK_USER },
		{ "user_name", MASK_USER }, { "owner", MASK_USER }, { "login", MASK_USER },
	};

	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
		if (strcasecmp(keys[i].key, key) == 0) {
			*ret_sort = keys[i].sort;
			return true;
		}
	return false;
}

/* "/home/NAME/", "/Users/NAME/", "C:\Users\NAME\": where the name begins behind p; NULL. */
static const char *home_at(const char *p)
{
	static const char *const homes[] = { "/home/", "/users/", "\\users\\" };

	for (size_t i = 0; i < sizeof homes / sizeof *homes; i++)
		if (strncasecmp(p, homes[i], strlen(homes[i])) == 0)
			return p + strlen(homes[i]);
	return NULL;
}

static size_t name_length(const char *p)
{
	size_t n = 0;

	while (isalnum((unsigned char)p[n]) || (p[n] && strchr("-._", p[n])) || (unsigned char)p[n] >= 0x80)
		n++;
	return n;
}

static void learn_piece(struct mask *m, enum mask_sort sort, const char *p, size_t n)
{
	char name[MAX_NAME + 1];

	if (n > MAX_NAME)
		return;
	snprintf(name, sizeof name, "%.*s", (int)n, p);
	mask_learn(m, sort, name);
}

void mask_learn_path(struct mask *m, const char *path)
{
	const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path, *mark = strstr(base, ".pt.trace.json");
	const char *end, *name;

	for (const char *p = path; *p; p++)
		if ((name = home_at(p)))
			learn_piece(m, MASK_USER, name, name_length(name));
	/* torch.profiler's own names: HOST_PROCESS.TIME.pt.trace.json */
	if (!mark)
		return;
	for (end = mark; end > base && (isdigit((unsigned char)end[-1]) || end[-1] == '.'); end--)
		;
	if (end > base && end[-1] == '_' && end < mark && !memchr(base, '_', (size_t)(end - 1 - base)) &&
	    strncasecmp(base, "rank", 4) != 0)
		learn_piece(m, MASK_HOST, base, (size_t)(end - 1 - base));
}

static void learn_value(struct mask *m, const json_t *v, unsigned depth)
{
	const char *key;
	json_t *x;
	size_t i;

	if (depth > MAX_DEPTH)
		return;
	json_array_foreach(v, i, x)
		learn_value(m, x, depth + 1);
	json_object_foreach((json_t *)v, key, x)
	{
		enum mask_sort sort;

		if (json_is_string(x) && mask_knows_key(key, &sort))
			mask_learn(m, sort, json_string_value(x));
		else if (json_is_string(x) && strchr(json_string_value(x), '/'))
			mask_learn_path(m, json_string_value(x));
		else
			learn_value(m, x, depth + 1);
	}
}

void mask_learn_fields(struct mask *m, const char *json)
{
	json_t *v = json_loads(json, 0, NULL);

	learn_value(m, v, 0);
	json_decref(v);
}

/* ---- a text ---- */

struct text {
	const struct mask *m;
	char *out;
	size_t n, n_alloc;
	bool no_memory;
};

static void put(struct text *t, const char *s, size_t n)
{
	if (t->n + n + 1 > t->n_alloc && !t->no_memory) {
		size_t want = 2 * (t->n + n + 1);
		char *grown = realloc(t->out, want);

		t->no_memory = !grown;
		t->out = grown ? grown : t->out;
		t->n_alloc = grown ? want : t->n_alloc;
	}
	if (t->no_memory)
		return;
	memcpy(t->out + t->n, s, n);
	t->n += n;
	t->out[t->n] = '\0';
}

static void put_mark(struct text *t, const char *sort, const char *p, size_t n)
{
	char mark[MARK];

	make_mark(t->m, sort, p, n, mark);
	put(t, mark, strlen(mark));
}

static bool is_separator(char c)
{
	return c == '-' || c == '.' || c == '_';
}

/* "10.1.2.3"; its length, 0 when it is none. An address of this machine alone says nothing. */
static size_t address4_length(const char *p)
{
	size_t n = strspn(p, "0123456789.");
	unsigned char bytes[4];
	char buf[16];

	while (n > 0 && p[n - 1] == '.')
		n--;
	if (n < 7 || n >= sizeof buf || isalnum((unsigned char)p[n]))
		return 0;
	snprintf(buf, sizeof buf, "%.*s", (int)n, p);
	return inet_pton(AF_INET, buf, bytes) == 1 && bytes[0] != 127 && bytes[0] != 0 ? n : 0;
}

/* Of two groups only, it is rather a name of C++: c10::add. */
static size_t address6_length(const char *p)
{
	size_t n = strspn(p, "0123456789abcdefABCDEF:"), n_colons = 0;
	unsigned char bytes[16];
	char buf[40];

	for (size_t i = 0; i < n; i++)
		n_colons += p[i] == ':';
	if (n_colons < 2 || n >= sizeof buf || isalnum((unsigned char)p[n]) ||
	    (n_colons < 3 && strncasecmp(p, "fe80:", 5) != 0))
		return 0;
	snprintf(buf, sizeof buf, "%.*s", (int)n, p);
	return inet_pton(AF_INET6, buf, bytes) == 1 ? n : 0;
}

static bool in_domain(const struct mask *m, const char *name)
{
	if (json_object_get(m->domains, name))
		return true;
	for (const char *dot = strchr(name, '.'); dot; dot = strchr(dot + 1, '.'))
		if (json_object_get(m->domains, dot + 1))
			return true;
	return false;
}

/* The learned name that p, of n bytes, begins with, at a border of its parts; its length. */
static size_t learned_length(const struct mask *m, const char *p, size_t n, const char **ret_mark)
{
	size_t ends[MAX_PARTS], n_ends = 0;
	char name[MAX_NAME + 1];

	for (size_t i = 1; i <= n && i <= MAX_NAME && n_ends < MAX_PARTS; i++)
		if (i == n || is_separator(p[i]))
			ends[n_ends++] = i;
	for (size_t i = 0; n_ends > 0 && i < ends[n_ends - 1]; i++)
		name[i] = (char)tolower((unsigned char)p[i]);
	while (n_ends-- > 0) {
		const json_t *mark;

		name[ends[n_ends]] = '\0';
		mark = json_object_get(m->marks, name);
		*ret_mark = json_string_value(mark);
		if (mark || in_domain(m, name))
			return ends[n_ends];
	}
	return 0;
}

/* A word, its parts one after the other: a name may stand before or behind others. */
static void put_word(struct text *t, const char *p, size_t n)
{
	const char *start = p, *end = p + n;

	while (p < end) {
		bool in_number = p > start + 1 && p[-1] == '.' && isdigit((unsigned char)p[-2]);
		const char *mark = NULL;
		size_t used = learned_length(t->m, p, (size_t)(end - p), &mark);

		if (used > 0 && mark) {
			put(t, mark, strlen(mark));
		} else if (used > 0) {
			put_mark(t, sorts[MASK_HOST], p, used);
		} else if (!in_number && (used = address4_length(p)) > 0) {
			put_mark(t, "addr", p, used);
		} else {
			while (p + used < end && !is_separator(p[used]))
				used++;
			put(t, p, used);
		}
		p += used;
		if (p < end)
			put(t, p++, 1);
	}
}

/* user@host.example, p before it, n_user long: the host's length. What is behind the "@" of
 * a symbol is no host: memcpy@GLIBC_2.14. */
static size_t login_length(const char *p, size_t n_user)
{
	const char *host = p + n_user + 1, *dot;
	size_t n;

	if (p[n_user] != '@')
		return 0;
	n = name_length(host);
	dot = memrchr(host, '.', n);
	if (!dot || host + n - dot < 3)
		return 0;
	for (const char *c = dot + 1; c < host + n; c++)
		if (!isalpha((unsigned char)*c))
			return 0;
	return n;
}

char *mask_text(struct mask *m, const char *text)
{
	struct text t = { .m = m };
	const char *p = text, *name;

	put(&t, "", 0);
	while (*p) {
		bool fresh = p == text || (!isalnum((unsigned char)p[-1]) && !strchr(".:", p[-1]));
		size_t n, n_host;

		if ((name = home_at(p)) && (n = name_length(name)) > 0) {
			put(&t, p, (size_t)(name - p));
			put_mark(&t, sorts[MASK_USER], name, n);
			p = name + n;
		} else if (fresh && isxdigit((unsigned char)*p) && (n = address6_length(p)) > 0) {
			put_mark(&t, "addr", p, n);
			p += n;
		} else if ((n = name_length(p)) > 0 && (n_host = login_length(p, n)) > 0) {
			put_mark(&t, sorts[MASK_USER], p, n);
			put(&t, "@", 1);
			put_mark(&t, sorts[MASK_HOST], p + n + 1, n_host);
			p += n + 1 + n_host;
		} else if (n > 0) {
			put_word(&t, p, n);
			p += n;
		} else {
			put(&t, p++, 1);
		}
	}
	if (!t.no_memory)
		return t.out;
	free(t.out);
	return NULL;
}

char *mask_name(struct mask *m, enum mask_sort sort, const char *name)
{
	char plain[MAX_NAME + 1], mark[MARK];
	const char *known;

	if (!plain_name(name, plain) || is_number(plain))
		return mask_text(m, name);
	known = json_string_value(json_object_get(m->marks, plain));
	if (known)
		return strdup(known);
	make_mark(m, sorts[sort], plain, strlen(plain), mark);
	return strdup(mark);
}

/* ---- fields ---- */

static json_t *mask_value(struct mask *m, const char *key, const json_t *v, unsigned depth)
{
	enum mask_sort sort;
	const char *name;
	json_t *out, *x;
	size_t i;
	char *text;

	if (depth > MAX_DEPTH)
		return json_null();
	if (json_is_string(v)) {
		const char *from = json_string_value(v);

		text = key && mask_knows_key(key, &sort) ? mask_name(m, sort, from)
		       : key && strcasestr(key, "version") ? strdup(from)
							   : mask_text(m, from);
		out = text ? json_string(text) : NULL;
		free(text);
		return out;
	}
	if (json_is_array(v)) {
		out = json_array();
		json_array_foreach(v, i, x)
			json_array_append_new(out, mask_value(m, key, x, depth + 1));
		return out;
	}
	if (!json_is_object(v))
		return json_incref((json_t *)v);
	out = json_object();
	json_object_foreach((json_t *)v, name, x)
		json_object_set_new(out, name, mask_value(m, name, x, depth + 1));
	return out;
}

char *mask_fields(struct mask *m, const char *json)
{
	json_t *v = json_loads(json, JSON_ALLOW_NUL, NULL), *masked;
	char *out;

	if (!v)
		return mask_text(m, json);
	masked = mask_value(m, NULL, v, 0);
	out = !masked ? NULL
	      : json_equal(v, masked)
		      ? strdup(json)
		      : json_dumps(masked, JSON_COMPACT | JSON_PRESERVE_ORDER);
	json_decref(v);
	json_decref(masked);
	return out;
}
