/* doctor.c - what the probe can and cannot see on this machine, and why.
 *
 * Each check looks at the thing itself (creates a file, loads the extension,
 * opens the connection) and says what to do when it is not as it should be.
 */
#include "cli.h"
#include "launch.h"
#include "paths.h"
#include "run.h"
#include "term.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <jansson.h>
#include <nng/nng.h>
#include <nng/protocol/reqrep0/req.h>

#define MAX_OUTPUT 4096
#define MIB (1024.0 * 1024)
#define PROC_PID_NS_INIT 4026531836 /* the kernel's PROC_PID_INIT_INO */
#define REACH_S 3

enum level_of { CHECK_OK, CHECK_WARN, CHECK_FAIL };
static const char *const level_names[] = {"ok", "warn", "fail"};

struct doctor {
	json_t *checks;
	int n_fail;
};

static void add(struct doctor *d, const char *name, enum level_of level, const char *todo,
		const char *fmt, ...) __attribute__((format(printf, 5, 6)));

static void add(struct doctor *d, const char *name, enum level_of level, const char *todo,
		const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	d->n_fail += level == CHECK_FAIL;
	json_array_append_new(d->checks, json_pack("{s:s, s:s, s:s, s:s?}", "check", name, "level",
						   level_names[level], "seen", text, "todo", todo));
}

static bool read_line(const char *path, char *out, size_t n)
{
	FILE *f = fopen(path, "re");
	bool ok = f && fgets(out, (int)n, f);

	if (f)
		fclose(f);
	if (ok)
		out[strcspn(out, "\n")] = '\0';
	return ok;
}

/* ---- time ---- */

static int64_t raw_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC_RAW, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static inline uint64_t read_tick(void)
{
#if defined(__x86_64__)
	uint32_t lo, hi;

	__asm__ volatile("rdtsc" : "=a"(lo), "=d"(hi));
	return (uint64_t)hi << 32 | lo;
#elif defined(__aarch64__)
	uint64_t v;

	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(v));
	return v;
#else
	return (uint64_t)raw_ns();
#endif
}

static void check_clock(struct doctor *d)
{
	enum { N = 200000 };
	char source[64] = "unknown";
	bool fast;
	int64_t t0, t1, t2;
	uint64_t sum = 0;

	read_line("/sys/devices/system/clocksource/clocksource0/current_clocksource", source,
		  sizeof source);
	fast = strcmp(source, "tsc") == 0 || strcmp(source, "arch_sys_counter") == 0;
	t0 = raw_ns();
	for (int i = 0; i < N; i++)
		sum += read_tick();
	t1 = raw_ns();
	for (int i = 0; i < N; i++)
		sum += (uint64_t)raw_ns();
	t2 = raw_ns();
	__asm__ volatile("" : : "r"(sum));
	if (fast)
		add(d, "clock", CHECK_OK, NULL,
		    "the kernel uses %s: the probe reads it itself, %.0f ns a read (the system "
		    "call "
		    "takes %.0f ns)",
		    source, (double)(t1 - t0) / N, (double)(t2 - t1) / N);
	else
		add(d, "clock", CHECK_WARN,
		    "a machine whose clock source is tsc makes the probe cheaper",
		    "the kernel uses %s: the probe asks CLOCK_MONOTONIC_RAW, %.0f ns a read",
		    source, (double)(t2 - t1) / N);
}

/* ---- places ---- */

static void check_shared_dir(struct doctor *d)
{
	const char *dir = getenv("SYNCLINE_DIR");
	char path[PATH_MAX];
	struct statvfs v;
	struct stat st;
	double free_mib;
	int fd;

	if (!dir || !*dir)
		dir = "/dev/shm";
	if (stat(dir, &st) != 0) {
		add(d, "shared memory", CHECK_FAIL,
		    "make the folder or name another in SYNCLINE_DIR", "%s: %s", dir,
		    strerror(errno));
		return;
	}
	snprintf(path, sizeof path, "%s/syncline-doctor-XXXXXX", dir);
	fd = mkostemp(path, O_CLOEXEC);
	if (fd < 0) {
		add(d, "shared memory", CHECK_FAIL,
		    "give agent and ranks one group that may write there (mode 0770)",
		    "cannot write in %s: %s", dir, strerror(errno));
		return;
	}
	unlink(path);
	close(fd);
	if (statvfs(dir, &v) != 0)
		return;
	free_mib = (double)v.f_bavail * (double)v.f_frsize / MIB;
	/* A rank takes 8 MiB at most and never more than a tenth of what is free. */
	if (free_mib < 2.5)
		add(d, "shared memory", CHECK_FAIL,
		    "free some, or give the container more (--shm-size)",
		    "%s has %.1f MiB free: the probe stays off below 2.5", dir, free_mib);
	else if (free_mib < 640)
		add(d, "shared memory", CHECK_WARN, "give the container more (--shm-size)",
		    "%s has %.0f MiB free: rings are smaller and may overflow in a burst (counted)",
		    dir, free_mib);
	else
		add(d, "shared memory", CHECK_OK, NULL, "%s is writable, %.0f MiB free", dir,
		    free_mib);
}

static void check_disk(struct doctor *d)
{
	struct statvfs v;
	double free_mib;

	if (statvfs(".", &v) != 0) {
		add(d, "disk", CHECK_WARN, "name a database with --db",
		    "cannot ask about this folder: %s", strerror(errno));
		return;
	}
	free_mib = (double)v.f_bavail * (double)v.f_frsize / MIB;
	if (access(".", W_OK) != 0)
		add(d, "disk", CHECK_WARN, "name a database elsewhere with --db",
		    "this folder cannot be written: %s", strerror(errno));
	else
		add(d, "disk", free_mib < 1024 ? CHECK_WARN : CHECK_OK,
		    free_mib < 1024 ? "a long run needs more: name a database elsewhere with --db"
				    : NULL,
		    "%.0f MiB free for the database here", free_mib);
}

static void check_parts(struct doctor *d, const struct paths *p)
{
	const struct {
		const char *name, *path;
		int mode;
	} parts[] = {
		{"agent", p->agent, X_OK},
		{"collector", p->collector, X_OK},
		{"probe", p->probe, R_OK},
		{"bootstrap", p->bootstrap, R_OK},
	};

	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
		if (access(parts[i].path, parts[i].mode) == 0)
			add(d, parts[i].name, CHECK_OK, NULL, "%s", parts[i].path);
		else
			add(d, parts[i].name, CHECK_FAIL, "build or install all of syncline",
			    "%s: %s", parts[i].path, strerror(errno));
	}
}

/* ---- python ---- */

/* What a command says on stdout and stderr together, and its exit status. */
static int output_of(char *const *argv, const char *bootstrap, char out[MAX_OUTPUT])
{
	int fds[2], status = 0;
	size_t n = 0;
	pid_t pid;

	out[0] = '\0';
	if (pipe2(fds, O_CLOEXEC) != 0)
		return -1;
	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		dup2(fds[1], STDOUT_FILENO);
		dup2(fds[1], STDERR_FILENO);
		setenv("SYNCLINE_OFF", "1", 1);
		setenv("PYTHONPATH", bootstrap, 1);
		alarm(60);
		execvp(argv[0], argv);
		printf("%s", strerror(errno));
		fflush(NULL);
		_exit(127);
	}
	close(fds[1]);
	while (pid > 0 && n < MAX_OUTPUT - 1) {
		ssize_t r = read(fds[0], out + n, MAX_OUTPUT - 1 - n);

		if (r <= 0)
			break;
		n += (size_t)r;
	}
	out[n] = '\0';
	close(fds[0]);
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* The last line that is not empty: Python's error, or the answer. */
static char *last_line(char *text)
{
	char *at;

	for (size_t n = strlen(text); n > 0 && text[n - 1] == '\n'; n--)
		text[n - 1] = '\0';
	at = strrchr(text, '\n');
	return at ? at + 1 : text;
}

static void check_python(struct doctor *d, const struct paths *p)
{
	static const char *const ask_torch =
		"import sys, torch, torch.distributed as d\n"
		"print('%d.%d.%d, torch %s, gloo %s, nccl %s' % (*sys.version_info[:3], "
		"torch.__version__, 'yes' if d.is_available() else 'no', "
		"'yes' if d.is_available() and d.is_nccl_available() else 'no'))";
	bool has;
	const char *python = run_python(&has);
	char *torch[] = {(char *)python, (char *)"-c", (char *)ask_torch, NULL};
	char *extension[] = {(char *)python, (char *)"-c",
			     (char *)"import _syncline_probe as p; print(p.__file__)", NULL};
	char out[MAX_OUTPUT];

	if (!has)
		add(d, "python", CHECK_FAIL,
		    "install PyTorch (python3-torch) or set SYNCLINE_PYTHON",
		    "neither python3 of PATH nor /usr/bin/python3 has torch");
	else if (output_of(torch, p->bootstrap, out) == 0)
		add(d, "python", CHECK_OK, NULL, "%s %s", python, last_line(out));
	else
		add(d, "python", CHECK_FAIL, "make `import torch` work in that interpreter",
		    "%s cannot import torch: %s", python, last_line(out));
	if (output_of(extension, p->bootstrap, out) == 0)
		add(d, "extension", CHECK_OK, NULL, "%s loads %s", python, last_line(out));
	else
		add(d, "extension", CHECK_FAIL,
		    "build or install all of syncline; it needs Python 3.8 or later",
		    "%s cannot load it: %s", python, last_line(out));
}

/* ---- what the agent may see of its ranks ---- */

static void check_lock(struct doctor *d)
{
	char path[PATH_MAX];
	const char *dir = getenv("SYNCLINE_DIR");
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
	int fd;
	bool ok;

	snprintf(path, sizeof path, "%s/syncline-doctor-XXXXXX", dir && *dir ? dir : "/dev/shm");
	fd = mkostemp(path, O_CLOEXEC);
	if (fd < 0)
		return; /* said by check_shared_dir() */
	unlink(path);
	ok = fcntl(fd, F_SETLK, &lock) == 0;
	close(fd);
	add(d, "liveness", ok ? CHECK_OK : CHECK_FAIL,
	    ok ? NULL : "use a file system with record locks (tmpfs, ext4, xfs) for SYNCLINE_DIR",
	    ok ? "file locks work: a rank's death is seen at once, in any namespace"
	       : "file locks do not work there: a rank's death cannot be seen");
}

static void check_pidfd(struct doctor *d)
{
	int fd = (int)syscall(SYS_pidfd_open, getpid(), 0);

	if (fd >= 0)
		close(fd);
	add(d, "pidfd", fd >= 0 ? CHECK_OK : CHECK_WARN,
	    fd >= 0 ? NULL : "a kernel from 5.3 on, or a container profile that allows it",
	    fd >= 0 ? "available: exit codes of ranks that share our PID namespace"
		    : "not available: a rank's death is seen, its exit code is not");
}

static void check_namespaces(struct doctor *d)
{
	struct stat st;

	if (stat("/proc/self/ns/pid", &st) != 0)
		add(d, "namespaces", CHECK_WARN, "mount /proc", "cannot be seen: %s",
		    strerror(errno));
	else if (st.st_ino == PROC_PID_NS_INIT)
		add(d, "namespaces", CHECK_OK, NULL, "this is the machine's own PID namespace");
	else
		add(d, "namespaces", CHECK_OK, NULL,
		    "a PID namespace of its own: ranks in others are seen by their files alone, "
		    "which is "
		    "enough");
}

static void check_ptrace(struct doctor *d)
{
	char scope[16];

	if (!read_line("/proc/sys/kernel/yama/ptrace_scope", scope, sizeof scope))
		add(d, "ptrace", CHECK_OK, NULL, "not restricted (no yama)");
	else if (strcmp(scope, "0") == 0 || geteuid() == 0)
		add(d, "ptrace", CHECK_OK, NULL, "scope %s%s", scope,
		    geteuid() == 0 ? ", and this is root" : "");
	else
		add(d, "ptrace", CHECK_OK, NULL,
		    "scope %s: outside debuggers are kept out; syncline does not need them", scope);
}

/* ---- the collector ---- */

struct reach {
	pthread_mutex_t lock;
	pthread_cond_t cond;
	bool connected;
};

/* NNG thread: the two sides have agreed on the protocol. */
static void on_pipe(nng_pipe pipe, nng_pipe_ev event, void *arg)
{
	struct reach *r = arg;

	pthread_mutex_lock(&r->lock);
	r->connected = true;
	pthread_cond_signal(&r->cond);
	pthread_mutex_unlock(&r->lock);
}

static void check_collector(struct doctor *d, const char *url)
{
	static struct reach r = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false};
	struct timespec until;
	nng_socket s;
	int rc = nng_req0_open(&s);

	if (rc == 0)
		rc = nng_pipe_notify(s, NNG_PIPE_EV_ADD_POST, on_pipe, &r);
	if (rc == 0)
		rc = nng_dial(s, url, NULL, NNG_FLAG_NONBLOCK);
	if (rc != 0) {
		add(d, "reach", CHECK_FAIL, "give a URL like tcp://HOST:7788 or ipc:///PATH",
		    "%s: %s", url, nng_strerror(rc));
		return;
	}
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += REACH_S;
	pthread_mutex_lock(&r.lock);
	while (!r.connected && rc == 0)
		rc = pthread_cond_timedwait(&r.cond, &r.lock, &until);
	pthread_mutex_unlock(&r.lock);
	if (r.connected)
		add(d, "reach", CHECK_OK, NULL, "%s answers", url);
	else
		add(d, "reach", CHECK_FAIL,
		    "start it (syncline-collector --listen URL), open the port, check the address",
		    "%s does not answer within %d s", url, REACH_S);
	/* The socket stays open: closing it under a dialling thread is what old NNG
	 * releases get wrong, and the process ends now. */
}

/* ---- the command ---- */

struct doctor_options {
	const char *collector;
	bool json;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct doctor_options *o = state->input;

	switch (key) {
	case 'c':
		o->collector = arg;
		return 0;
	case 'j':
		o->json = true;
		return 0;
	case ARGP_KEY_ARG:
		argp_error(state, "takes no argument, got '%s'", arg);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static void put_checks(const json_t *checks)
{
	static const enum term_style styles[] = {STYLE_GOOD, STYLE_WARN, STYLE_BAD};
	size_t i;
	json_t *c;

	json_array_foreach((json_t *)checks, i, c)
	{
		const char *level = json_string_value(json_object_get(c, "level"));
		const char *todo = json_string_value(json_object_get(c, "todo"));
		size_t l = 0;

		while (l < CHECK_FAIL && strcmp(level, level_names[l]) != 0)
			l++;
		printf("%s%-4s%s %-13s ", term_on(stdout, styles[l]), level, term_off(stdout),
		       json_string_value(json_object_get(c, "check")));
		term_put(stdout, json_string_value(json_object_get(c, "seen")));
		putchar('\n');
		if (todo)
			printf("%-19sto do: %s\n", "", todo);
	}
}

int cmd_doctor(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{"collector", 'c', "URL", 0, "also try to reach this collector", 0},
		{"json", 'j', 0, 0, "one JSON object", 0},
		{0},
	};
	static const struct argp_child children[] = {{&cli_color_argp, 0, 0, 0}, {0}};
	static const struct argp argp = {
		options,
		parse,
		"",
		"What the probe can and cannot see on this machine, and why.\v"
		"Exit status: 0 when nothing fails, 1 otherwise.\n\n"
		"Examples:\n"
		"  syncline doctor\n"
		"  syncline doctor --collector tcp://head:7788\n",
		children,
		0,
		0};
	struct doctor_options o = {0};
	struct doctor d = {0};
	struct paths paths;
	int r;

	if (!cli_parse(&argp, argc, argv, 0, NULL, &o))
		return EXIT_USAGE;
	r = paths_find(&paths);
	if (r != 0) {
		cli_say("cannot find the other programs of this build: %s", strerror(-r));
		return EXIT_UNREACHED;
	}
	d.checks = json_array();
	check_parts(&d, &paths);
	check_clock(&d);
	check_shared_dir(&d);
	check_lock(&d);
	check_python(&d, &paths);
	check_pidfd(&d);
	check_namespaces(&d);
	check_ptrace(&d);
	check_disk(&d);
	if (o.collector)
		check_collector(&d, o.collector);
	if (o.json) {
		json_t *v = json_pack("{s:i, s:b, s:O}", "schema", 1, "ok", d.n_fail == 0, "checks",
				      d.checks);

		json_dumpf(v, stdout, JSON_INDENT(1) | JSON_PRESERVE_ORDER);
		putchar('\n');
		json_decref(v);
	} else {
		put_checks(d.checks);
	}
	json_decref(d.checks);
	return d.n_fail > 0 ? EXIT_FINDING : EXIT_FINE;
}
