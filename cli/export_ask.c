/* export_ask.c - a collector on a file, read-only, on a free port of loopback. */
#include "export_ask.h"
#include "paths.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <curl/curl.h>
#include <jansson.h>

#define READY_MS 60000
#define MAX_ANSWER_BYTES (256u << 20)
#define MAX_WAITS 600 /* of a tenth of a second: a file is read before it is answered from */

static size_t take(char *data, size_t size, size_t n, void *arg)
{
	struct asked *a = arg;
	char *grown = a->n_bytes + size * n < MAX_ANSWER_BYTES ? realloc(a->bytes, a->n_bytes + size * n + 1) : NULL;

	if (!grown)
		return 0;
	memcpy(grown + a->n_bytes, data, size * n);
	a->bytes = grown;
	a->n_bytes += size * n;
	a->bytes[a->n_bytes] = '\0';
	return size * n;
}

/* One line of JSON, or nothing until it ended. */
static bool read_ready(struct asker *a, int fd)
{
	char line[1024];
	size_t n = 0;
	json_t *v;

	while (n < sizeof line - 1 && !memchr(line, '\n', n)) {
		struct pollfd p = { fd, POLLIN, 0 };
		ssize_t got = poll(&p, 1, READY_MS) == 1 ? read(fd, line + n, sizeof line - 1 - n) : -1;

		if (got <= 0)
			return false;
		n += (size_t)got;
	}
	v = json_loadb(line, n, JSON_DISABLE_EOF_CHECK, NULL);
	if (json_is_string(json_object_get(v, "http")))
		snprintf(a->url, sizeof a->url, "%s", json_string_value(json_object_get(v, "http")));
	json_decref(v);
	return a->url[0] != '\0';
}

static void become(const char *collector, const char *db_path, int fd)
{
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	char fd_text[16];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	snprintf(fd_text, sizeof fd_text, "%d", fd);
	fcntl(fd, F_SETFD, 0);
	if (null >= 0) /* what it says is for one who serves */
		dup2(null, STDERR_FILENO);
	execl(collector, "syncline-collector", "--read-only", "--db", db_path, "--http", "127.0.0.1:0", "--ready-fd", fd_text, (char *)NULL);
	_exit(127);
}

struct asker *asker_start(const char *db_path)
{
	struct asker *a = calloc(1, sizeof *a);
	struct paths paths;
	int fds[2], r;

	if (!a)
		return NULL;
	a->curl = curl_easy_init();
	r = paths_find(&paths);
	if (!a->curl || r != 0 || pipe2(fds, O_CLOEXEC) != 0) {
		snprintf(a->why, sizeof a->why, "cannot start a collector to read %s: %s", db_path, strerror(r ? -r : errno));
		return a;
	}
	fflush(NULL);
	a->pid = fork();
	if (a->pid == 0)
		become(paths.collector, db_path, fds[1]);
	close(fds[1]);
	if (a->pid < 0 || !read_ready(a, fds[0]))
		snprintf(a->why, sizeof a->why, "the collector did not come up on %s. Try: syncline serve %s", db_path, db_path);
	close(fds[0]);
	return a;
}

void asker_stop(struct asker *a)
{
	int status;

	if (!a)
		return;
	if (a->pid > 0) {
		kill(a->pid, SIGTERM);
		waitpid(a->pid, &status, 0);
	}
	curl_easy_cleanup(a->curl);
	free(a);
}

bool asker_get(struct asker *a, const char *base, const char *path, struct asked *ret)
{
	char url[600], error[CURL_ERROR_SIZE] = "";
	CURLcode r = CURLE_OK;

	snprintf(url, sizeof url, "%s%s%s", a->url, base, path);
	curl_easy_setopt(a->curl, CURLOPT_URL, url);
	curl_easy_setopt(a->curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(a->curl, CURLOPT_PROXY, "");
	curl_easy_setopt(a->curl, CURLOPT_WRITEFUNCTION, take);
	curl_easy_setopt(a->curl, CURLOPT_WRITEDATA, ret);
	curl_easy_setopt(a->curl, CURLOPT_ERRORBUFFER, error);
	for (int i = 0; i < MAX_WAITS; i++) {
		*ret = (struct asked){ 0, calloc(1, 1), 0 };
		r = ret->bytes ? curl_easy_perform(a->curl) : CURLE_OUT_OF_MEMORY;
		curl_easy_getinfo(a->curl, CURLINFO_RESPONSE_CODE, &ret->code);
		if (r != CURLE_OK || ret->code != 503)
			break;
		free(ret->bytes);
		ret->bytes = NULL;
		nanosleep(&(struct timespec){ .tv_nsec = 100000000 }, NULL);
	}
	if (r != CURLE_OK || !ret->bytes)
		snprintf(a->why, sizeof a->why, "the collector that reads the file does not answer: %s",
			 error[0] ? error : r != CURLE_OK ? curl_easy_strerror(r) : "it is still reading");
	return r == CURLE_OK && ret->bytes;
}
