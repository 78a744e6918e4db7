#include "services.h"
#include "cli.h"
#include "launch.h"
#include "../proto/said.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <jansson.h>

#define READY_MS 15000	    /* for the collector to serve */
#define AGENT_STOP_MS 15000 /* after SIGTERM, to ship what it holds */
#define COLLECTOR_STOP_MS 20000
#define QUICK_DEATH_MS 1000 /* one that dies at once would die again */
#define LOG_TAIL_BYTES 1500

static int64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static int join(char *out, size_t n_out, const char *dir, const char *rest)
{
	int n = snprintf(out, n_out, "%s/%s", dir, rest);

	return n > 0 && (size_t)n < n_out ? 0 : -ENAMETOOLONG;
}

/* ---- directories ---- */

static int make_dir(char out[PATH_MAX], const char *parent, mode_t mode)
{
	if (join(out, PATH_MAX, parent, "syncline-run-XXXXXX") != 0)
		return -ENAMETOOLONG;
	if (!mkdtemp(out))
		return -errno;
	if (chmod(out, mode) != 0) {
		int r = -errno;

		rmdir(out);
		return r;
	}
	return 0;
}

static void remove_tree(const char *dir)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	char path[PATH_MAX];
	struct stat st;

	while (d && (e = readdir(d))) {
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 ||
		    join(path, sizeof path, dir, e->d_name) != 0)
			continue;
		if (lstat(path, &st) == 0 && S_ISDIR(st.st_mode))
			remove_tree(path);
		else
			unlink(path);
	}
	if (d)
		closedir(d);
	rmdir(dir);
}

/* ---- starting ---- */

static void log_path(const struct services *s, const char *name, char out[PATH_MAX])
{
	snprintf(out, PATH_MAX, "%.*s/%s.log", PATH_MAX - 32, s->work_dir, name);
}

/* The last words of a service, indented, so that its reason is on the screen. */
static void show_log(const struct services *s, const char *name)
{
	char path[PATH_MAX], text[LOG_TAIL_BYTES + 1], *at, *line;
	ssize_t n;
	int fd;

	log_path(s, name, path);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	if (lseek(fd, -LOG_TAIL_BYTES, SEEK_END) < 0)
		lseek(fd, 0, SEEK_SET);
	n = read(fd, text, LOG_TAIL_BYTES);
	close(fd);
	if (n <= 0)
		return;
	text[n] = '\0';
	at = text;
	while ((line = strsep(&at, "\n")))
		if (*line)
			cli_say("  %s: %s", name, line);
}

/* Must the user see this line while the job runs? NULL, or what to say. */
static const char *for_user(const char *line)
{
	static const char name[] = "syncline-collector: ";

	if (strncmp(line, name, sizeof name - 1) != 0)
		return NULL;
	line += sizeof name - 1;
	return strncmp(line, SAID_NOT_STORING, strlen(SAID_NOT_STORING)) == 0 ||
			       strncmp(line, SAID_STORING_AGAIN, strlen(SAID_STORING_AGAIN)) == 0
		       ? line : NULL;
}

/* Passes on what the collector wrote since the last look. It limits its own rate. */
static void relay_log(struct services *s)
{
	char path[PATH_MAX], text[8192], *at = text, *end;
	const char *said;
	ssize_t n;
	int fd;

	if (s->options.collector_url || !s->work_dir[0])
		return;
	log_path(s, "collector", path);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	n = pread(fd, text, sizeof text - 1, s->log_read);
	close(fd);
	if (n <= 0)
		return;
	text[n] = '\0';
	while ((end = memchr(at, '\n', (size_t)(text + n - at)))) {
		*end = '\0';
		said = for_user(at);
		if (said)
			cli_say("the collector is %s", said);
		at = end + 1;
	}
	if (at == text && (size_t)n == sizeof text - 1)
		at = text + n; /* no line of ours is so long */
	s->log_read += at - text; /* the rest of a line comes later */
}

/* In its own process group: Ctrl-C in the terminal is for the job. */
static pid_t spawn(const struct services *s, const char *name, const char *const *argv, int keep_fd,
		   bool die_with_us)
{
	char path[PATH_MAX];
	pid_t parent = getpid(), pid;

	log_path(s, name, path);
	fflush(NULL);
	pid = fork();
	if (pid != 0)
		return pid;
	setpgid(0, 0);
	if (die_with_us) {
		prctl(PR_SET_PDEATHSIG, SIGTERM);
		if (getppid() != parent)
			_exit(1);
	}
	int log = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (null >= 0)
		dup2(null, STDIN_FILENO);
	if (log >= 0) {
		dup2(log, STDOUT_FILENO);
		dup2(log, STDERR_FILENO);
	}
	if (keep_fd >= 0)
		fcntl(keep_fd, F_SETFD, 0);
	launch_restore_signals();
	execv(argv[0], (char *const *)argv);
	dprintf(STDERR_FILENO, "cannot run %s: %s\n", argv[0], strerror(errno));
	_exit(127);
}

/* {"listen":"…","http":"http://127.0.0.1:NNNN/"} */
static bool take_ready(struct services *s, const char *line)
{
	json_t *v = json_loads(line, 0, NULL);
	const char *http = json_string_value(json_object_get(v, "http"));
	bool ok = http && strncmp(http, "http://", 7) == 0;

	if (ok) {
		snprintf(s->http_url, sizeof s->http_url, "%s", http);
		snprintf(s->http_bound, sizeof s->http_bound, "%s", http + 7);
		s->http_bound[strcspn(s->http_bound, "/")] = '\0';
	}
	json_decref(v);
	return ok;
}

static bool await_ready(struct services *s, int fd)
{
	int64_t until = now_ms() + READY_MS;
	char line[1024];
	size_t n = 0;

	while (n < sizeof line - 1) {
		struct pollfd p = {fd, POLLIN, 0};
		int64_t left = until - now_ms();
		ssize_t r;

		if (left <= 0 || poll(&p, 1, (int)left) <= 0)
			return false;
		r = read(fd, line + n, sizeof line - 1 - n);
		if (r <= 0)
			return false; /* it ended without a word */
		n += (size_t)r;
		line[n] = '\0';
		if (memchr(line, '\n', n))
			return take_ready(s, line);
	}
	return false;
}

static bool start_collector(struct services *s)
{
	const char *http = s->http_bound[0] ? s->http_bound : s->options.http;
	const char *argv[16];
	char fd_text[16];
	int fds[2], n = 0, status;
	bool ok;

	if (pipe2(fds, O_CLOEXEC) != 0)
		return false;
	snprintf(fd_text, sizeof fd_text, "%d", fds[1]);
	argv[n++] = s->paths->collector;
	argv[n++] = "--db";
	argv[n++] = s->options.db;
	argv[n++] = "--listen";
	argv[n++] = s->url;
	argv[n++] = "--http";
	argv[n++] = http ? http : "127.0.0.1:0";
	argv[n++] = "--run";
	argv[n++] = s->options.run_id;
	argv[n++] = "--ready-fd";
	argv[n++] = fd_text;
	if (s->options.http_token_file) {
		argv[n++] = "--http-token-file";
		argv[n++] = s->options.http_token_file;
	}
	argv[n] = NULL;
	s->collector.started_ms = now_ms();
	s->collector.pid = spawn(s, "collector", argv, fds[1], true);
	close(fds[1]);
	ok = s->collector.pid > 0 && await_ready(s, fds[0]);
	close(fds[0]);
	if (!ok && s->collector.pid > 0) {
		kill(-s->collector.pid, SIGKILL);
		waitpid(s->collector.pid, &status, 0);
	}
	if (!ok)
		s->collector.pid = 0;
	s->collector.ready = s->collector.ready || ok;
	return ok;
}

static bool start_agent(struct services *s)
{
	char spool[PATH_MAX], level[16];
	const char *argv[16];
	int n = 0;

	if (join(spool, sizeof spool, s->work_dir, "spool") != 0)
		return false;
	mkdir(spool, 0700);
	snprintf(level, sizeof level, "%d", s->options.level);
	argv[n++] = s->paths->agent;
	argv[n++] = "--collector";
	argv[n++] = s->url;
	argv[n++] = "--dir";
	argv[n++] = s->shared_dir;
	argv[n++] = "--run";
	argv[n++] = s->options.run_id;
	argv[n++] = "--level";
	argv[n++] = level;
	argv[n++] = "--spool";
	argv[n++] = spool;
	argv[n++] = "--keep"; /* a command may start one job after the other */
	if (s->options.token_file) {
		argv[n++] = "--token-file";
		argv[n++] = s->options.token_file;
	}
	argv[n] = NULL;
	s->agent.started_ms = now_ms();
	s->agent.pid = spawn(s, "agent", argv, -1, false);
	if (s->agent.pid < 0)
		s->agent.pid = 0;
	s->agent.ready = s->agent.pid > 0;
	return s->agent.pid > 0;
}

static bool can_run(const char *path, const char *what)
{
	if (access(path, X_OK) == 0)
		return true;
	cli_say("%s is missing (%s: %s). The job runs without the probe. Build or install all of "
		"syncline",
		what, path, strerror(errno));
	return false;
}

static bool prepare(struct services *s)
{
	const char *tmp = getenv("TMPDIR");
	int r;

	if (!paths_has(s->paths->bootstrap)) {
		cli_say("the PyTorch bootstrap is missing (%s). The job runs without the probe. "
			"Build "
			"or install all of syncline",
			s->paths->bootstrap);
		return false;
	}
	if (!s->options.dir && !can_run(s->paths->agent, "the agent"))
		return false;
	if (!s->options.collector_url && !can_run(s->paths->collector, "the collector"))
		return false;

	/* A socket's path has 107 bytes: a long TMPDIR is no place for it. */
	r = make_dir(s->work_dir, tmp && *tmp && strlen(tmp) < 60 ? tmp : "/tmp", 0700);
	if (r == 0 && s->options.dir) {
		r = snprintf(s->shared_dir, PATH_MAX, "%s", s->options.dir) < PATH_MAX ? 0 : -1;
	} else if (r == 0) {
		r = make_dir(s->shared_dir, "/dev/shm", 0770);
		if (r != 0)
			r = make_dir(s->shared_dir, s->work_dir, 0770);
		s->owns_shared_dir = r == 0;
	}
	if (r != 0) {
		cli_say("cannot make a run directory: %s. The job runs without the probe. Is "
			"TMPDIR "
			"or /tmp writable?",
			strerror(r < 0 ? -r : EINVAL));
		return false;
	}
	if (s->options.collector_url)
		snprintf(s->url, sizeof s->url, "%s", s->options.collector_url);
	else
		snprintf(s->url, sizeof s->url, "ipc://%.*s/collector", 200, s->work_dir);
	return true;
}

void services_start(struct services *s, const struct paths *p, const struct services_options *o)
{
	memset(s, 0, sizeof *s);
	s->paths = p;
	s->options = *o;
	launch_block_signals();
	if (!prepare(s))
		return;
	if (!o->collector_url && !start_collector(s)) {
		cli_say("the collector did not start. The job runs without the probe");
		show_log(s, "collector");
		return;
	}
	if (!o->dir && !start_agent(s)) {
		cli_say("the agent did not start (%s). The job runs without the probe",
			strerror(errno));
		return;
	}
	s->traced = true;
}

/* ---- while the job runs ---- */

static void describe(int wait_status, char *out, size_t n)
{
	if (WIFSIGNALED(wait_status))
		snprintf(out, n, "killed by signal %d", WTERMSIG(wait_status));
	else
		snprintf(out, n, "exit status %d", WEXITSTATUS(wait_status));
}

/* Wrong usage, or refused: the same would come again. */
static bool is_final(int wait_status)
{
	return WIFEXITED(wait_status) && (WEXITSTATUS(wait_status) == EXIT_USAGE ||
					  WEXITSTATUS(wait_status) == EXIT_UNREACHED);
}

static void died(struct services *s, struct service *v, const char *name, int wait_status)
{
	char how[64];

	v->pid = 0;
	describe(wait_status, how, sizeof how);
	if (now_ms() - v->started_ms < QUICK_DEATH_MS || v->n_restarts == SERVICES_MAX_RESTARTS ||
	    is_final(wait_status)) {
		v->given_up = true;
		cli_say("the %s ended (%s) and is not started again. The job goes on untraced",
			name, how);
	} else {
		cli_say("the %s ended (%s); starting it again. The job goes on", name, how);
	}
	show_log(s, name);
}

void services_child(struct services *s, pid_t pid, int wait_status)
{
	if (pid == s->collector.pid) {
		died(s, &s->collector, "collector", wait_status);
	} else if (pid == s->agent.pid) {
		if (WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 0)
			s->agent = (struct service){ .given_up = true, .clean = true }; /* its job ended */
		else
			died(s, &s->agent, "agent", wait_status);
	}
}

static bool wants_restart(const struct service *v)
{
	return v->ready && v->pid == 0 && !v->given_up;
}

void services_tick(struct services *s)
{
	relay_log(s);
	if (wants_restart(&s->collector)) {
		s->collector.n_restarts++;
		if (!start_collector(s)) {
			s->collector.given_up = true;
			cli_say("the collector did not start again. The job goes on untraced");
			show_log(s, "collector");
		}
	}
	if (wants_restart(&s->agent)) {
		s->agent.n_restarts++;
		start_agent(s);
	}
}

void services_job_env(const struct services *s)
{
	const char *old = getenv("PYTHONPATH");
	char level[16], *path;

	if (!s->traced)
		return;
	path = old && *old ? malloc(strlen(s->paths->bootstrap) + strlen(old) + 2) : NULL;
	if (path) {
		sprintf(path, "%s:%s", s->paths->bootstrap, old);
		setenv("PYTHONPATH", path, 1);
	} else {
		setenv("PYTHONPATH", s->paths->bootstrap, 1);
	}
	snprintf(level, sizeof level, "%d", s->options.level);
	setenv("SYNCLINE_DIR", s->shared_dir, 1);
	setenv("SYNCLINE_COLLECTOR", s->url, 1);
	setenv("SYNCLINE_RUN", s->options.run_id, 1);
	setenv("SYNCLINE_LEVEL", level, 1);
}

/* ---- the end ---- */

/* Wait up to ms for v; true once it is gone. A signal for us ends the wait. */
static bool await_end(struct services *s, struct service *v, int ms, bool *hurried, int *ret_status)
{
	int64_t until = now_ms() + ms;
	int status;

	for (;;) {
		pid_t pid = waitpid(-1, &status, WNOHANG);

		if (pid == v->pid) {
			v->pid = 0;
			*ret_status = status;
			return true;
		}
		if (pid > 0 && pid != v->pid) {
			services_child(s, pid, status);
			continue;
		}
		if (now_ms() >= until)
			return false;
		if (launch_pause(50)) {
			*hurried = true;
			return false;
		}
	}
}

static void stop(struct services *s, struct service *v, const char *name, int ms)
{
	bool hurried = false;
	int status;
	char how[64];

	if (v->pid == 0)
		return;
	kill(v->pid, SIGTERM);
	if (await_end(s, v, ms, &hurried, &status)) {
		v->clean = WIFEXITED(status) && WEXITSTATUS(status) == 0;
		if (v->clean)
			return;
		describe(status, how, sizeof how);
		cli_say("the %s did not end in order (%s)", name, how);
		show_log(s, name);
		return;
	}
	cli_say("the %s did not end %s; killed. Its last data may be missing", name,
		hurried ? "before you asked again" : "in time");
	kill(-v->pid, SIGKILL);
	waitpid(v->pid, NULL, 0);
	v->pid = 0;
}

void services_stop_agent(struct services *s)
{
	s->agent.ready = false;
	stop(s, &s->agent, "agent", AGENT_STOP_MS);
}

void services_stop_collector(struct services *s)
{
	s->collector.ready = false;
	stop(s, &s->collector, "collector", COLLECTOR_STOP_MS);
	relay_log(s);
}

bool services_all_shipped(const struct services *s)
{
	return s->traced && (s->options.dir || s->agent.clean);
}

/* An empty spool is removed here: nothing is left to ship. */
static bool has_spool(const struct services *s, char spool[PATH_MAX])
{
	return s->work_dir[0] && join(spool, PATH_MAX, s->work_dir, "spool") == 0 &&
	       rmdir(spool) != 0 && errno != ENOENT;
}

void services_fini(struct services *s)
{
	const char *token = s->options.token_file;
	char spool[PATH_MAX];

	if (s->owns_shared_dir)
		remove_tree(s->shared_dir);
	if (has_spool(s, spool)) {
		cli_say("what no collector took is kept in %s. To ship it, with %s: "
			"syncline-agent --collector %s --run %s%s%s --spool %s",
			spool,
			s->options.collector_url ? "that collector ready for it" :
						   "syncline-collector started on that database",
			s->options.collector_url ? s->url : "URL", s->options.run_id,
			token ? " --token-file " : "", token ? token : "", spool);
	} else if (s->work_dir[0]) {
		remove_tree(s->work_dir);
	}
}
