/* status.c - one screen about a running collector, from its HTTP interface. */
#include "cli.h"
#include "term.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <curl/curl.h>
#include <jansson.h>

#define MAX_ANSWER_BYTES (16 << 20)
#define CONNECT_S 5
#define ANSWER_S 15
#define MAX_TOKEN 256
#define RETRY_MS 250
#define BUSY_S 10 /* for a collector that says it will be ready soon */

struct status_options {
	const char *url, *token_file;
	bool json;
};

struct answer {
	char *text;
	size_t n;
	long code;
};

/* ---- HTTP ---- */

static size_t on_data(char *data, size_t size, size_t n, void *arg)
{
	struct answer *a = arg;
	char *more;

	n *= size;
	if (n > MAX_ANSWER_BYTES - a->n)
		return 0; /* curl gives up: larger than any answer of ours */
	more = realloc(a->text, a->n + n + 1);
	if (!more)
		return 0;
	memcpy(more + a->n, data, n);
	a->text = more;
	a->n += n;
	a->text[a->n] = '\0';
	return n;
}

/* The token of a file or of the environment; false with a word on stderr. */
static bool read_token(const char *file, char out[MAX_TOKEN])
{
	const char *env = getenv("SYNCLINE_TOKEN");
	FILE *f;

	out[0] = '\0';
	if (!file)
		file = getenv("SYNCLINE_TOKEN_FILE");
	if (!file || !*file) {
		snprintf(out, MAX_TOKEN, "%s", env ? env : "");
		return true;
	}
	f = fopen(file, "re");
	if (!f || !fgets(out, MAX_TOKEN, f)) {
		cli_say("cannot read the token file %s: %s", file,
			f ? "it is empty" : strerror(errno));
		if (f)
			fclose(f);
		return false;
	}
	fclose(f);
	out[strcspn(out, "\r\n")] = '\0';
	return true;
}

struct client {
	CURL *curl;
	const char *base;
	struct curl_slist *headers;
};

/* One question; again while the answer is "not yet", as just after a start. */
static CURLcode perform(struct client *c, struct answer *a)
{
	CURLcode r;

	for (int n_waits = 0;; n_waits++) {
		curl_off_t after_s = 0;

		r = curl_easy_perform(c->curl);
		curl_easy_getinfo(c->curl, CURLINFO_RESPONSE_CODE, &a->code);
		curl_easy_getinfo(c->curl, CURLINFO_RETRY_AFTER, &after_s);
		if (r != CURLE_OK || a->code != 503 || after_s <= 0 ||
		    n_waits * RETRY_MS >= BUSY_S * 1000)
			return r;
		free(a->text);
		*a = (struct answer){0};
		nanosleep(&(struct timespec){.tv_nsec = RETRY_MS * 1000000L}, NULL);
	}
}

/* What a refusal says for itself: problem JSON, or nothing. */
static void say_refused(const char *url, const struct answer *a)
{
	json_t *v = json_loadb(a->text ? a->text : "", a->n, 0, NULL);
	const char *detail = json_string_value(json_object_get(v, "detail"));
	const char *hint = json_string_value(json_object_get(v, "hint"));

	if (a->code == 503 && detail)
		cli_say("%s is not ready: %s %s", url, detail, hint ? hint : "");
	else
		cli_say("%s answered %ld. Is that a syncline collector?", url, a->code);
	json_decref(v);
}

static json_t *get(struct client *c, const char *path)
{
	char url[1024], error[CURL_ERROR_SIZE] = "";
	struct answer a = {0};
	json_t *v = NULL;
	CURLcode r;

	snprintf(url, sizeof url, "%s%s%s", c->base, c->base[strlen(c->base) - 1] == '/' ? "" : "/",
		 path);
	curl_easy_setopt(c->curl, CURLOPT_URL, url);
	curl_easy_setopt(c->curl, CURLOPT_WRITEDATA, &a);
	curl_easy_setopt(c->curl, CURLOPT_ERRORBUFFER, error);
	r = perform(c, &a);
	if (r != CURLE_OK)
		cli_say("cannot reach a collector at %s (%s). Is it running? Try: syncline doctor",
			c->base, error[0] ? error : curl_easy_strerror(r));
	else if (a.code == 401)
		cli_say("%s wants a token. Give --token-file or set SYNCLINE_TOKEN", c->base);
	else if (a.code != 200)
		say_refused(url, &a);
	else if (!(v = json_loadb(a.text ? a.text : "", a.n, 0, NULL)))
		cli_say("%s did not answer JSON. Is that a syncline collector?", url);
	free(a.text);
	return v;
}

static bool open_client(struct client *c, const char *base, const char *token)
{
	char header[MAX_TOKEN + 32];

	curl_global_init(CURL_GLOBAL_DEFAULT);
	*c = (struct client){.curl = curl_easy_init(), .base = base};
	if (!c->curl)
		return false;
	if (token[0]) {
		snprintf(header, sizeof header, "Authorization: Bearer %s", token);
		c->headers = curl_slist_append(NULL, header);
	}
	curl_easy_setopt(c->curl, CURLOPT_HTTPHEADER, c->headers);
	curl_easy_setopt(c->curl, CURLOPT_WRITEFUNCTION, on_data);
	curl_easy_setopt(c->curl, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(c->curl, CURLOPT_CONNECTTIMEOUT, (long)CONNECT_S);
	curl_easy_setopt(c->curl, CURLOPT_TIMEOUT, (long)ANSWER_S);
	curl_easy_setopt(c->curl, CURLOPT_NOSIGNAL, 1L);
	return true;
}

static void close_client(struct client *c)
{
	curl_slist_free_all(c->headers);
	curl_easy_cleanup(c->curl);
	curl_global_cleanup();
}

/* ---- the screen ---- */

static const char *text(const json_t *v, const char *key)
{
	const char *s = json_string_value(json_object_get(v, key));

	return s ? s : "?";
}

static int64_t number(const json_t *v, const char *key)
{
	const json_t *n = json_object_get(v, key);

	if (json_is_integer(n))
		return json_integer_value(n);
	if (json_is_real(n))
		return (int64_t)json_real_value(n);
	return json_is_string(n) ? strtoll(json_string_value(n), NULL, 10) : INT64_MIN;
}

static void put_count(const json_t *v, const char *key)
{
	int64_t n = number(v, key);

	if (n == INT64_MIN)
		putchar('?');
	else
		printf("%" PRId64, n);
}

/* "1 agent", "2 agents" */
static void put_counted(const json_t *v, const char *key, const char *one)
{
	put_count(v, key);
	printf(" %s%s", one, number(v, key) == 1 ? "" : "s");
}

/* Hosts whose clock probes do not get through, and why: their bounds are wider. */
static void put_paths(const json_t *clocks)
{
	const json_t *hosts = json_object_get(clocks, "hosts");
	size_t i, n_udp = 0, n_kernel = 0, n_stream = 0;
	json_t *h;

	json_array_foreach((json_t *)hosts, i, h)
	{
		bool udp = strcmp(text(h, "way"), "udp") == 0;

		n_udp += udp;
		n_kernel += udp && strcmp(text(h, "stamps"), "kernel") == 0;
		n_stream += strcmp(text(h, "way"), "stream") == 0;
	}
	if (n_udp + n_stream == 0)
		return;
	printf("probes    %zu of %zu hosts, %zu stamped by the kernel\n", n_udp, n_udp + n_stream,
	       n_kernel);
	json_array_foreach((json_t *)hosts, i, h)
	{
		if (strcmp(text(h, "way"), "stream") != 0)
			continue;
		printf("  ");
		term_put(stdout, text(h, "host"));
		printf(" goes by the stream of events, with a wider bound: ");
		term_put(stdout, text(h, "why"));
		putchar('\n');
	}
}

static void put_screen(const json_t *boot, const json_t *clocks)
{
	const json_t *run = json_object_get(boot, "run"), *live = json_object_get(boot, "live");
	const json_t *coverage = json_object_get(boot, "coverage");
	const json_t *clock = json_object_get(boot, "clock");
	const json_t *overhead = json_object_get(boot, "overhead");
	const json_t *findings = json_object_get(boot, "findings"), *cpu;
	char buf[64];
	size_t i;
	json_t *f;

	printf("run       %s", term_on(stdout, STYLE_BOLD));
	term_put(stdout, text(run, "run_id"));
	printf("%s, ", term_off(stdout));
	term_put(stdout, text(live, "state"));
	printf(", since %s\n", term_time(number(run, "started_ns"), buf, sizeof buf));
	printf("ranks     ");
	put_count(coverage, "ranks_seen");
	printf(" of ");
	put_count(coverage, "ranks_expected");
	printf(", ");
	put_counted(live, "n_agents", "agent");
	printf("\nstep      ");
	put_count(live, "step");
	printf(", %s\n", term_ns(number(live, "step_ns"), buf, sizeof buf));
	printf("events    ");
	put_count(coverage, "events");
	printf(", ");
	put_count(coverage, "events_lost");
	printf(" lost\nclock     error %s over ",
	       term_ns(number(clock, "error_ns"), buf, sizeof buf));
	put_counted(clock, "hosts", "host");
	printf(", ");
	put_count(clock, "unaligned");
	printf(" not aligned\n");
	put_paths(clocks);
	cpu = json_object_get(overhead, "agent_cpu_ratio");
	if (json_is_number(cpu))
		printf("agent     %.2f %% of a core\n", 100 * json_number_value(cpu));
	printf("findings  %zu\n", json_array_size(findings));
	json_array_foreach((json_t *)findings, i, f)
	{
		printf("  %s[", term_on(stdout, STYLE_BAD));
		term_put(stdout, text(f, "severity"));
		printf(", ");
		term_put(stdout, text(f, "confidence"));
		printf("]%s ", term_off(stdout));
		term_put(stdout, text(f, "sentence"));
		putchar('\n');
	}
}

/* ---- the command ---- */

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct status_options *o = state->input;

	switch (key) {
	case 'u':
		o->url = arg;
		return 0;
	case 't':
		o->token_file = arg;
		return 0;
	case 'j':
		o->json = true;
		return 0;
	case ARGP_KEY_ARG:
		argp_error(state, "takes no argument, got '%s'. Did you mean --url %s", arg, arg);
		return 0;
	case ARGP_KEY_END:
		if (!o->url)
			o->url = getenv("SYNCLINE_URL");
		if (!o->url || !*o->url)
			argp_error(state,
				   "which collector? Give --url http://HOST:PORT/ (`syncline run` "
				   "prints it) or set SYNCLINE_URL");
		if (strlen(o->url) > 900)
			argp_error(state, "the address is too long");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int cmd_status(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{"url", 'u', "URL", 0, "the collector's dashboard address (SYNCLINE_URL)", 0},
		{"token-file", 't', "FILE", 0,
		 "its token, when it wants one (SYNCLINE_TOKEN_FILE, SYNCLINE_TOKEN)", 0},
		{"json", 'j', 0, 0, "the collector's own answer (docs/api.md, boot)", 0},
		{0},
	};
	static const struct argp_child children[] = {{&cli_color_argp, 0, 0, 0}, {0}};
	static const struct argp argp = {
		options,
		parse,
		"",
		"One screen about a running collector: who is connected, what was lost, the "
		"clocks, "
		"the step, findings.\v"
		"Examples:\n"
		"  syncline status --url http://127.0.0.1:7780/\n"
		"  SYNCLINE_URL=http://head:7780/ syncline status --json\n",
		children,
		0,
		0};
	struct status_options o = {0};
	char token[MAX_TOKEN];
	struct client c;
	json_t *boot, *clocks = NULL;

	if (!cli_parse(&argp, argc, argv, 0, NULL, &o))
		return EXIT_USAGE;
	if (!read_token(o.token_file, token))
		return EXIT_UNREACHED;
	if (!open_client(&c, o.url, token)) {
		cli_say("cannot start libcurl");
		return EXIT_UNREACHED;
	}
	boot = get(&c, "api/v1/boot");
	if (boot && !o.json)
		clocks = get(&c, "api/v1/clocks");
	close_client(&c);
	if (!boot)
		return EXIT_UNREACHED;
	if (o.json) {
		json_dumpf(boot, stdout, JSON_INDENT(1) | JSON_PRESERVE_ORDER);
		putchar('\n');
	} else {
		put_screen(boot, clocks);
	}
	json_decref(clocks);
	json_decref(boot);
	return EXIT_FINE;
}
