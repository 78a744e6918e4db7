#include "launch.h"
#include "cli.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LINE_BYTES 8192 /* a longer line is passed on in pieces */

/* One pipe from a rank. */
struct stream {
	int fd; /* -1 = closed */
	int to; /* STDOUT_FILENO or STDERR_FILENO */
	unsigned rank;
	size_t n;
	char line[LINE_BYTES];
};

struct rank {
	pid_t pid; /* 0 = reaped */
};

struct job {
	const struct launch_spec *spec;
	struct rank *ranks; /* one for a plain command */
	unsigned n, n_alive;
	struct stream *streams; /* 2 a rank, none for a plain command */
	struct pollfd *polls;	/* signalfd, then the streams */
	bool stopping;
	int64_t kill_at_ms;
	unsigned n_interrupts;
	struct launch_result *result;
};

static sigset_t mask_before, mask_taken;
static bool is_blocked;
static int signal_fd = -1;

static int64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

void launch_block_signals(void)
{
	static const int taken[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGCHLD};

	if (is_blocked)
		return;
	sigemptyset(&mask_taken);
	for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
		sigaddset(&mask_taken, taken[i]);
	sigprocmask(SIG_BLOCK, &mask_taken, &mask_before);
	signal_fd = signalfd(-1, &mask_taken, SFD_CLOEXEC | SFD_NONBLOCK);
	signal(SIGPIPE, SIG_IGN); /* a reader of ours that leaves must not end the job */
	is_blocked = true;
}

void launch_restore_signals(void)
{
	signal(SIGPIPE, SIG_DFL);
	if (is_blocked)
		sigprocmask(SIG_SETMASK, &mask_before, NULL);
}

static bool asks_to_stop(uint32_t signo)
{
	return signo == SIGINT || signo == SIGTERM || signo == SIGHUP || signo == SIGQUIT;
}

bool launch_pause(int ms)
{
	struct pollfd p = {signal_fd, POLLIN, 0};
	struct signalfd_siginfo s;
	bool stop = false;

	if (poll(&p, 1, ms) <= 0)
		return false;
	while (read(signal_fd, &s, sizeof s) == sizeof s)
		stop = stop || asks_to_stop(s.ssi_signo);
	return stop;
}

/* ---- starting ---- */

/* A port that nobody listens on now. The kernel does not hand the same one out
 * again soon, so the moment until rank 0 binds it is safe enough. */
static unsigned free_port(void)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	socklen_t n = sizeof a;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	unsigned port = 29500; /* torch's own default */

	if (fd >= 0 && bind(fd, (struct sockaddr *)&a, n) == 0 &&
	    getsockname(fd, (struct sockaddr *)&a, &n) == 0)
		port = ntohs(a.sin_port);
	if (fd >= 0)
		close(fd);
	return port;
}

static void set_number(const char *name, unsigned v)
{
	char text[16];

	snprintf(text, sizeof text, "%u", v);
	setenv(name, text, 1);
}

/* What torchrun sets for one node. */
static void set_rank_env(unsigned rank, unsigned n, unsigned port)
{
	set_number("RANK", rank);
	set_number("LOCAL_RANK", rank);
	set_number("WORLD_SIZE", n);
	set_number("LOCAL_WORLD_SIZE", n);
	set_number("GROUP_RANK", 0);
	setenv("MASTER_ADDR", "127.0.0.1", 1);
	set_number("MASTER_PORT", port);
	set_number("TORCHELASTIC_RESTART_COUNT", 0);
	setenv("OMP_NUM_THREADS", "1", 0); /* ranks share the cores */
	setenv("PYTHONUNBUFFERED", "1", 0);
}

static void __attribute__((noreturn)) exec_job(const struct launch_spec *spec, int error_fd)
{
	int e;

	if (spec->set_env)
		spec->set_env(spec->arg);
	launch_restore_signals();
	execvp(spec->argv[0], spec->argv);
	e = errno;
	(void)!write(error_fd, &e, sizeof e);
	_exit(e == ENOENT ? 127 : 126);
}

static void __attribute__((noreturn))
be_rank(const struct launch_spec *spec, unsigned rank, unsigned port, const int out[2],
	const int err[2], int error_fd, pid_t parent)
{
	int null = open("/dev/null", O_RDONLY);

	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGTERM); /* no rank outlives its launcher … */
	if (getppid() != parent)
		_exit(128 + SIGTERM); /* … also when that died just now */
	if (null >= 0)
		dup2(null, STDIN_FILENO);
	dup2(out[1], STDOUT_FILENO);
	dup2(err[1], STDERR_FILENO);
	set_rank_env(rank, spec->n_ranks, port);
	exec_job(spec, error_fd);
}

static int start_one(struct job *j, unsigned rank, unsigned port, int error_fd)
{
	int out[2] = {-1, -1}, err[2] = {-1, -1};
	pid_t pid, parent = getpid();

	if (j->spec->n_ranks > 0 && (pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0)) {
		int r = -errno;

		if (out[0] >= 0) {
			close(out[0]);
			close(out[1]);
		}
		return r;
	}
	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		if (j->spec->n_ranks > 0)
			be_rank(j->spec, rank, port, out, err, error_fd, parent);
		exec_job(j->spec, error_fd);
	}
	if (j->spec->n_ranks > 0) {
		struct stream *s = &j->streams[2 * rank];

		close(out[1]);
		close(err[1]);
		s[0].fd = out[0];
		s[1].fd = err[0];
		s[0].to = STDOUT_FILENO;
		s[1].to = STDERR_FILENO;
		s[0].rank = s[1].rank = rank;
		for (int i = 0; i < 2; i++)
			fcntl(s[i].fd, F_SETFL, O_NONBLOCK);
	}
	if (pid < 0)
		return -errno;
	if (j->spec->n_ranks > 0)
		setpgid(pid, pid); /* both sides do it: whoever is first */
	j->ranks[rank].pid = pid;
	j->n_alive++;
	return 0;
}

/* ---- signals ---- */

static void signal_job(struct job *j, int signo)
{
	for (unsigned i = 0; i < j->n; i++) {
		if (j->ranks[i].pid == 0)
			continue;
		if (j->spec->n_ranks > 0)
			kill(-j->ranks[i].pid, signo);
		else
			kill(j->ranks[i].pid, signo);
	}
}

static void stop_job(struct job *j, int signo)
{
	signal_job(j, signo);
	if (j->stopping)
		return;
	j->stopping = true;
	j->kill_at_ms = now_ms() + LAUNCH_STOP_MS;
}

static void on_signal(struct job *j, const struct signalfd_siginfo *s)
{
	int signo = (int)s->ssi_signo;
	/* Ctrl-C reaches the whole foreground group: a plain command has it already
	 * and must not get it twice. What came by kill() is for us alone. */
	bool has_it = j->spec->n_ranks == 0 && s->ssi_code == SI_KERNEL;

	if (!asks_to_stop(s->ssi_signo)) {
		signal_job(j, signo);
		return;
	}
	j->result->interrupted = true;
	j->n_interrupts++;
	if (j->spec->n_ranks > 0) {
		if (j->n_interrupts > 1)
			signal_job(j, SIGKILL);
		else
			stop_job(j, signo);
	} else if (!has_it) {
		signal_job(j, signo);
	}
}

/* ---- output ---- */

static void put_all(int fd, const char *data, size_t n)
{
	while (n > 0) {
		ssize_t w = write(fd, data, n);

		if (w < 0 && errno == EINTR)
			continue;
		if (w < 0 && errno == EAGAIN) {
			struct pollfd p = {fd, POLLOUT, 0};

			poll(&p, 1, 1000);
			continue;
		}
		if (w <= 0)
			return; /* the reader is gone; the job goes on */
		data += w;
		n -= (size_t)w;
	}
}

static void put_line(const struct stream *s, const char *line, size_t n)
{
	char out[LINE_BYTES + 32];
	int head = snprintf(out, 32, "[%u] ", s->rank);

	memcpy(out + head, line, n);
	if (n == 0 || line[n - 1] != '\n')
		out[(size_t)head + n++] = '\n';
	put_all(s->to, out, (size_t)head + n);
}

static void put_lines(struct stream *s, bool all)
{
	char *at = s->line, *end = s->line + s->n, *nl;

	while ((nl = memchr(at, '\n', (size_t)(end - at)))) {
		put_line(s, at, (size_t)(nl + 1 - at));
		at = nl + 1;
	}
	if (at < end && (all || (at == s->line && s->n == LINE_BYTES))) {
		put_line(s, at, (size_t)(end - at));
		at = end;
	}
	s->n = (size_t)(end - at);
	memmove(s->line, at, s->n);
}

static void drain(struct stream *s)
{
	while (s->fd >= 0) {
		ssize_t r = read(s->fd, s->line + s->n, LINE_BYTES - s->n);

		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0 && errno == EAGAIN)
			return;
		if (r <= 0) {
			close(s->fd);
			s->fd = -1;
			put_lines(s, true);
			return;
		}
		s->n += (size_t)r;
		put_lines(s, false);
	}
}

/* ---- ends ---- */

static int status_of(int wait_status)
{
	return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

static void on_rank_end(struct job *j, unsigned rank, int wait_status)
{
	int status = status_of(wait_status);

	j->ranks[rank].pid = 0;
	j->n_alive--;
	if (j->spec->n_ranks == 0) {
		j->result->status = status;
		return;
	}
	for (int i = 0; i < 2; i++)
		drain(&j->streams[2 * rank + (unsigned)i]);
	if (status == 0 || j->result->failed_rank >= 0)
		return;
	if (j->stopping && j->result->interrupted) {
		if (j->result->status == 0)
			j->result->status = status;
		return;
	}
	j->result->failed_rank = (int)rank;
	j->result->status = status;
	if (WIFSIGNALED(wait_status))
		cli_say("rank %u was killed by signal %d (%s)", rank, WTERMSIG(wait_status),
			strsignal(WTERMSIG(wait_status)));
	else
		cli_say("rank %u ended with exit status %d", rank, status);
	if (j->n_alive > 0) {
		cli_say("stopping the other %u ranks", j->n_alive);
		stop_job(j, SIGTERM);
	}
}

static void reap(struct job *j)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		unsigned i;

		for (i = 0; i < j->n && j->ranks[i].pid != pid; i++)
			;
		if (i < j->n)
			on_rank_end(j, i, status);
		else if (j->spec->on_child)
			j->spec->on_child(j->spec->arg, pid, status);
	}
}

static void read_signals(struct job *j)
{
	struct signalfd_siginfo s;

	while (read(signal_fd, &s, sizeof s) == sizeof s)
		if (s.ssi_signo != SIGCHLD)
			on_signal(j, &s);
	reap(j);
}

static void loop(struct job *j)
{
	unsigned n_streams = j->spec->n_ranks * 2;
	int64_t tick_at = now_ms() + j->spec->tick_ms;

	while (j->n_alive > 0) {
		int64_t now;

		j->polls[0] = (struct pollfd){signal_fd, POLLIN, 0};
		for (unsigned i = 0; i < n_streams; i++)
			j->polls[1 + i] = (struct pollfd){j->streams[i].fd, POLLIN, 0};
		poll(j->polls, 1 + n_streams, j->spec->tick_ms);
		for (unsigned i = 0; i < n_streams; i++)
			if (j->polls[1 + i].revents)
				drain(&j->streams[i]);
		read_signals(j);

		now = now_ms();
		if (j->stopping && j->kill_at_ms > 0 && now >= j->kill_at_ms) {
			if (j->n_alive > 0)
				cli_say("killing the %u ranks that did not stop within %d s",
					j->n_alive, LAUNCH_STOP_MS / 1000);
			signal_job(j, SIGKILL);
			j->kill_at_ms = 0;
		}
		if (now >= tick_at) {
			if (j->spec->on_tick)
				j->spec->on_tick(j->spec->arg);
			tick_at = now + j->spec->tick_ms;
		}
	}
}

/* The write end is close-on-exec: what comes is the errno of a failed exec. */
static int read_exec_error(int fd)
{
	int e = 0;

	if (read(fd, &e, sizeof e) != sizeof e)
		return 0;
	return e;
}

int launch_run(const struct launch_spec *spec, struct launch_result *ret)
{
	struct job j = {.spec = spec, .n = spec->n_ranks ? spec->n_ranks : 1, .result = ret};
	unsigned n_streams = spec->n_ranks * 2, port = free_port();
	int error_pipe[2], e, r = 0;

	*ret = (struct launch_result){.failed_rank = -1};
	launch_block_signals();
	j.ranks = calloc(j.n, sizeof *j.ranks);
	j.streams = calloc(n_streams ? n_streams : 1, sizeof *j.streams);
	j.polls = calloc(1 + n_streams, sizeof *j.polls);
	if (!j.ranks || !j.streams || !j.polls) {
		r = -ENOMEM;
		goto out;
	}
	for (unsigned i = 0; i < n_streams; i++)
		j.streams[i].fd = -1;
	if (pipe2(error_pipe, O_CLOEXEC) != 0) {
		r = -errno;
		goto out;
	}
	for (unsigned i = 0; i < j.n && r == 0; i++)
		r = start_one(&j, i, port, error_pipe[1]);
	close(error_pipe[1]);
	if (r != 0)
		stop_job(&j, SIGKILL);
	e = read_exec_error(error_pipe[0]); /* returns once every exec is decided */
	close(error_pipe[0]);
	if (e != 0) {
		cli_say("cannot run %s: %s", spec->argv[0], strerror(e));
		ret->not_started = true;
		ret->interrupted = true; /* no further word about each rank */
		stop_job(&j, SIGKILL);
	}
	loop(&j);
	if (e != 0) {
		ret->status = e == ENOENT ? 127 : 126;
		ret->interrupted = false;
	}
out:
	for (unsigned i = 0; j.streams && i < n_streams; i++) {
		drain(&j.streams[i]);
		if (j.streams[i].fd >= 0) {
			put_lines(&j.streams[i], true);
			close(j.streams[i].fd);
		}
	}
	free(j.polls);
	free(j.streams);
	free(j.ranks);
	return r;
}
