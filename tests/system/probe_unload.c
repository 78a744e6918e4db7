/* probe_unload.c LIBRARY - a host that unloads the probe while it is in use.
 *
 * A plug-in host closes what it has opened. The probe's code must stay: threads
 * still have its destructor, forks its handler, the exit its last word.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(what)                                                                       \
	do {                                                                              \
		if (!(what)) {                                                            \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #what); \
			_exit(1);                                                         \
		}                                                                         \
	} while (0)

static void (*mark)(uint32_t name, uint64_t a, uint64_t b);
static pthread_barrier_t step;

static void *emit(void *arg)
{
	(void)arg;
	mark(0, 1, 1);
	pthread_barrier_wait(&step); /* it has a ring */
	pthread_barrier_wait(&step); /* the library is closed */
	mark(0, 2, 2);
	return NULL; /* the key's destructor runs now */
}

static void *open_it(const char *library)
{
	void *h = dlopen(library, RTLD_NOW | RTLD_LOCAL);

	if (!h)
		fprintf(stderr, "%s\n", dlerror());
	CHECK(h);
	return h;
}

static void find(void *library, const char *symbol, void *ret)
{
	void *at = dlsym(library, symbol);

	CHECK(at);
	memcpy(ret, &at, sizeof at);
}

int main(int argc, char **argv)
{
	int (*start)(void);
	const void *(*header)(void);
	const void *before;
	pthread_t t;
	pid_t pid;
	void *h;
	int status;

	CHECK(argc == 2);
	h = open_it(argv[1]);
	find(h, "syncline_start", &start);
	find(h, "syncline_mark", &mark);
	find(h, "syncline_guest_header", &header);
	CHECK(start() == 1);
	before = header();
	CHECK(before);

	pthread_barrier_init(&step, NULL, 2);
	CHECK(pthread_create(&t, NULL, emit, NULL) == 0);
	pthread_barrier_wait(&step);
	CHECK(dlclose(h) == 0);
	pthread_barrier_wait(&step);
	CHECK(pthread_join(t, NULL) == 0);

	pid = fork();
	if (pid == 0) {
		mark(0, 3, 3);
		_exit(header() == NULL ? 0 : 1);
	}
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);

	h = open_it(argv[1]);
	find(h, "syncline_guest_header", &header);
	CHECK(header() == before); /* the same probe, not a second one */
	CHECK(dlclose(h) == 0);
	mark(0, 4, 4);
	puts("unloaded and still there");
	return 0;
}
