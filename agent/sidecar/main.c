/* main.c - the agent's loop: find, drain, seal, ship; a beat beside it.
 *
 * One thread. NNG's threads only mark requests as answered (link.c). The loop
 * sleeps in poll() until the next thing is due: 50 ms while processes are
 * recording, shorter when a ring fills fast, longer when there is nothing.
 */
#include "agent.h"
#include "clock.h"
#include "guard.h"
#include "options.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <linux/magic.h>
#include <fcntl.h>
#include <unistd.h>

#define MS INT64_C(1000000)
#define SCAN_NS (250 * MS)
#define DRAIN_NS (50 * MS)
#define IDLE_NS (100 * MS)
#define SEAL_NS (100 * MS)
#define SEAL_AWAY_NS (500 * MS) /* nobody is waiting for it: fewer, larger batches */
#define GAUGE_NS (1000 * MS)
#define IDENTITY_NS (1000 * MS) /* events wait this long for the process to say who it is */
#define RUN_NS (5000 * MS)	/* the same for the run id when none was given */
#define LEAVE_NS (5000 * MS)	/* what a SIGTERM allows */
#define AWAY_NS (60000 * MS)	/* the job is over and the collector does not answer */
#define TRIM_BYTES (UINT64_C(20) << 20) /* resident: mapped rings count as ours */
#define FULL_AT 0.25		/* of a ring: seal now rather than when it is due */

#define EXIT_DONE 0
#define EXIT_USAGE 2
#define EXIT_CANNOT 3

struct loop {
	struct agent *a;
	int64_t scan_due_ns, drain_due_ns, seal_due_ns, gauge_due_ns, drained_ns;
	int64_t over_ns; /* since when the job is over, 0 = it is not */
	int64_t leave_by_ns; /* SIGTERM; 0 = none */
	int sigfd;
};

/* ---- sealing */

static bool is_ready(const struct agent *a, const struct guest *g, int64_t now_ns)
{
	return tick_ready(&a->ticks[g->lay.tick_source]) &&
	       (g->generation != 0 || g->facts.state != PROC_ALIVE ||
		now_ns - g->found_ns > IDENTITY_NS);
}

/* A batch states every process that it mentions, so that it can be understood
 * by itself: it may be read by a collector that was started after we were, or
 * shipped by an agent that was started after us. */
static void seal(struct agent *a, int64_t now_ns)
{
	static struct spool_cursor cursors[FRAME_MAX_PROCS * (SHM_MAX_RINGS + 1)];
	const uint32_t max = sizeof cursors / sizeof *cursors;
	uint32_t n_cursors = 0;
	bool barrier = false;
	int64_t seq;

	for (uint32_t i = 0; i < FRAME_MAX_PROCS; i++) {
		struct guest *g = a->guests[i];

		if (!g || !(g->mentioned || (g->facts_due && is_ready(a, g, now_ns))))
			continue;
		if (!batch_add_proc(&a->batch, &g->facts))
			break;
		n_cursors += drain_cursors(g, cursors + n_cursors, max - n_cursors);
		barrier |= g->barrier;
		g->mentioned = true;
	}
	if (batch_empty(&a->batch))
		return;
	seq = ship_seal(&a->ship, &a->batch, barrier, cursors, n_cursors);
	if (seq < 0) {
		a->batch.n_procs = 0; /* no memory: the rest is kept for the next try */
		return;
	}
	for (uint32_t i = 0; i < FRAME_MAX_PROCS; i++) {
		struct guest *g = a->guests[i];

		if (!g || !g->mentioned)
			continue;
		drain_sealed(g);
		guest_publish(g, now_ns);
		g->mentioned = g->barrier = g->facts_due = false;
		if (g->dry) {
			g->ended = true;
			g->final_seq = (uint64_t)seq;
		}
	}
	batch_clear(&a->batch);
	ship_pump(&a->ship, now_ns);
}

/* ---- gauges */

struct gauge_to {
	struct batch *b;
	uint32_t proc;
	int64_t at_ns;
};

static void on_gauge(void *arg, const char *name, double value)
{
	struct gauge_to *to = arg;

	batch_add_gauge(to->b, to->proc, to->at_ns, name, value);
}

static void sample_process(struct agent *a, struct guest *g, int64_t now_ns)
{
	struct gauge_to to = { &a->batch, g->facts.proc, now_ns };

	if (g->pid <= 0 || g->facts.state != PROC_ALIVE || !is_ready(a, g, now_ns))
		return;
	g->sampled = g->mentioned = true;
	procfs_sample_process(a->procfs, g->pid, &g->seen, now_ns, on_gauge, &to);
}

/* The counter that processes of this host record by belongs to it, if it is known. */
static void snap(struct agent *a)
{
	uint32_t source = FRAME_NO_TICK;
	struct frame_peer_exchange x;
	struct frame_snapshot s;

	for (uint32_t i = 0; i < FRAME_MAX_PROCS && source == FRAME_NO_TICK; i++)
		if (a->guests[i] && a->guests[i]->lay.tick_source != SHM_TICK_RAW)
			source = (uint32_t)a->guests[i]->lay.tick_source;
	s = clock_snapshot(source);
	(void)batch_add_snapshot(&a->batch, &s); /* full: another comes in a second */
	while (mesh_next(&a->mesh, &x) && batch_add_peer_exchange(&a->batch, &x))
		;
}

static void sample(struct agent *a, int64_t now_ns)
{
	struct gauge_to to = { &a->batch, FRAME_HOST_PROC, now_ns };
	bool trim = procfs_own_rss_bytes() > TRIM_BYTES;

	if (batch_full(&a->batch))
		seal(a, now_ns);
	snap(a);
	procfs_sample_host(a->procfs, now_ns, on_gauge, &to);
	for (uint32_t i = 0; i < FRAME_MAX_PROCS; i++) {
		struct guest *g = a->guests[i];

		if (!g)
			continue;
		sample_process(a, g, now_ns);
		if (trim)
			guest_trim(g);
	}
}

/* ---- draining */

static void take_answers(struct agent *a)
{
	struct link_answer answer;

	while (link_next(a->link, &answer)) {
		if (answer.channel == LINK_DATA)
			ship_answer(&a->ship, &answer);
		else
			beat_answer(a, &answer);
		link_answer_free(&answer);
	}
}

static bool drain_turn(struct agent *a, bool all, double *fill, int64_t now_ns)
{
	bool more = false;

	for (uint32_t i = 0; i < FRAME_MAX_PROCS; i++) {
		struct guest *g = a->guests[i];
		enum drain_outcome r;

		if (!g || g->dry || !is_ready(a, g, now_ns))
			continue;
		r = drain(g, all || g->facts.state != PROC_ALIVE,
			  &a->ticks[g->lay.tick_source], &a->batch, fill);
		if (r == DRAIN_FULL)
			seal(a, now_ns);
		more |= r == DRAIN_FULL || r == DRAIN_MORE;
		/* No writer any more: what was not found now will never be there. */
		if ((r == DRAIN_DONE || r == DRAIN_CUT) && g->facts.state != PROC_ALIVE) {
			g->dry = true;
			g->facts_due = true;
		}
	}
	return more;
}

static bool anything_due(const struct agent *a)
{
	if (!batch_empty(&a->batch))
		return true;
	for (uint32_t i = 0; i < FRAME_MAX_PROCS; i++)
		if (a->guests[i] && a->guests[i]->facts_due)
			return true;
	return false;
}

static void update_ticks(struct agent *a, int64_t now_ns)
{
	for (unsigned source = SHM_TICK_TSC; source < 3; source++) {
		struct tick *t = &a->ticks[source];
		struct tick_pair p;
		bool used = false;

		for (uint32_t i = 0; i < FRAME_MAX_PROCS && !used; i++)
			used = a->guests[i] && a->guests[i]->lay.tick_source == source;
		if (!used || now_ns < a->tick_due_ns[source])
			continue;
		p = tick_read_pair(source, 16, tick_ready(t) ? t->lines[0].ns_per_tick : 0);
		tick_add_pair(t, &p);
		a->tick_due_ns[source] = now_ns + tick_next_pair_ns(t);
	}
}

/* Drain what there is; how soon again depends on how fast the rings fill. */
static void drain_round(struct loop *l, int64_t now_ns)
{
	struct agent *a = l->a;
	bool all = now_ns >= l->seal_due_ns;
	bool away = a->ship.stream == 0 || !link_connected(a->link, LINK_DATA);
	int64_t next_ns = a->n_guests > 0 ? DRAIN_NS : IDLE_NS;
	double fill = 0;

	update_ticks(a, now_ns);
	scan_guests(a, now_ns);
	for (uint32_t i = 0; i < FRAME_MAX_PROCS; i++) /* a first look does not wait for its second */
		if (a->guests[i] && !a->guests[i]->sampled && is_ready(a, a->guests[i], now_ns))
			sample_process(a, a->guests[i], now_ns);
	for (int turn = 0; turn < 256 && drain_turn(a, all, &fill, now_ns); turn++)
		take_answers(a);
	if (all || fill > FULL_AT) {
		if (anything_due(a))
			seal(a, now_ns);
		l->seal_due_ns = now_ns + (away ? SEAL_AWAY_NS : SEAL_NS);
	}
	for (uint32_t i = 0; i < FRAME_MAX_PROCS && all; i++)
		if (a->guests[i])
			guest_publish(a->guests[i], now_ns);
	if (fill > 0 && l->drained_ns != 0) {
		int64_t to_quarter_ns = (int64_t)((double)(now_ns - l->drained_ns) * FULL_AT / fill);

		if (to_quarter_ns < next_ns)
			next_ns = to_quarter_ns < MS / 2 ? MS / 2 : to_quarter_ns;
	}
	l->drained_ns = now_ns;
	l->drain_due_ns = now_ns + next_ns;
}

static void say_spool_trouble(struct agent *a, int64_t now_ns)
{
	static uint64_t n_errors, n_given_up;
	struct spool_stats st;

	spool_stats(a->ship.spool, &st);
	if (st.n_disk_errors > n_errors)
		say_limited(&a->spool_limit, now_ns,
			    "the spool in %s cannot be written: %s; %u MiB of memory are used "
			    "instead",
			    a->opt.spool, strerror(st.last_errno),
			    (unsigned)(SPOOL_MEMORY_BYTES >> 20));
	else if (st.n_given_up > n_given_up)
		say_limited(&a->spool_limit, now_ns,
			    "the spool is full: %llu events of the oldest batches were given up so "
			    "far; raise --spool-bytes or bring the collector back",
			    (unsigned long long)st.n_given_up);
	n_errors = st.n_disk_errors;
	n_given_up = st.n_given_up;
}

/* ---- beginning */

static bool make_spool_dir(const struct agent *a)
{
	char path[4096];
	struct stat st;
	struct statfs fs;

	if (snprintf(path, sizeof path, "%s", a->opt.spool) >= (int)sizeof path)
		return false;
	for (char *p = path + 1; *p; p++) {
		if (*p != '/')
			continue;
		*p = 0;
		mkdir(path, 0700);
		*p = '/';
	}
	mkdir(path, 0700);
	if (stat(path, &st) < 0 || !S_ISDIR(st.st_mode) || access(path, W_OK | X_OK) < 0) {
		say("the spool directory %s cannot be used: %s; %u MiB of memory are used "
		    "instead, give --spool a directory that this user may write",
		    path, strerror(errno), (unsigned)(SPOOL_MEMORY_BYTES >> 20));
		return false;
	}
	if (statfs(path, &fs) == 0 && fs.f_type == TMPFS_MAGIC)
		say("the spool directory %s lies in memory (tmpfs): what it keeps takes from the "
		    "job's; give --spool a directory on a disk",
		    path);
	return true;
}

static int begin_run(struct agent *a, const char *run)
{
	struct spool_head who = { .time_ns_inode = a->time_ns_inode };
	struct spool_config cfg = { .max_bytes = a->opt.spool_bytes, .who = &who };
	struct spool_stats st;
	int r;

	snprintf(a->run_id, sizeof a->run_id, "%s", run);
	snprintf(who.run_id, sizeof who.run_id, "%s", a->run_id);
	snprintf(who.boot_id, sizeof who.boot_id, "%.40s", a->boot_id);
	snprintf(who.host, sizeof who.host, "%s", a->host);
	memcpy(who.agent_id, a->agent_id, sizeof who.agent_id);
	cfg.dir = make_spool_dir(a) ? a->opt.spool : NULL;
	r = spool_open(&a->ship.spool, &cfg);
	if (r != 0)
		return r;
	spool_stats(a->ship.spool, &st);
	if (st.n_adopted > 0) {
		say("%llu batches that an earlier agent kept in %s are shipped first",
		    (unsigned long long)st.n_adopted, a->opt.spool);
		a->seen_any = true;
		a->linger_ns = a->opt.linger_ns >= 0 ? a->opt.linger_ns : 2000 * MS;
	}
	if (st.n_torn > 0)
		say("%llu files of the spool in %s end in a record that was not finished; what "
		    "stands before it is shipped",
		    (unsigned long long)st.n_torn, a->opt.spool);
	if (st.n_foreign > 0)
		say("%llu files of the spool in %s are of another boot or host of this run: their "
		    "times cannot be placed, remove them",
		    (unsigned long long)st.n_foreign, a->opt.spool);
	a->ship.hello_due = true;
	return 0;
}

/* No run was named: the first process says which. Files are opened again
 * afterwards, because where to begin in them is the spool's to say. */
static int find_run(struct agent *a, int64_t now_ns)
{
	char run[FRAME_MAX_ID + 1] = "";
	bool known = false;

	if (a->opt.run)
		return begin_run(a, a->opt.run);
	for (uint32_t i = 0; i < FRAME_MAX_PROCS; i++) {
		struct guest *g = a->guests[i];

		if (!g)
			continue;
		guest_refresh(g);
		if (!guest_alive(g) && now_ns - g->found_ns < RUN_NS)
			continue; /* a leftover of an earlier job is not to decide */
		if (g->generation == 0 && now_ns - g->found_ns < RUN_NS)
			continue;
		snprintf(run, sizeof run, "%s", g->run_id);
		known = true;
		break;
	}
	if (!known)
		return 0;
	for (uint32_t i = 0; i < FRAME_MAX_PROCS; i++)
		if (a->guests[i])
			scan_forget(a, i);
	return begin_run(a, run);
}

static int who_am_i(struct agent *a)
{
	struct utsname u;
	struct stat st;
	int fd;

	if (getrandom(a->agent_id, sizeof a->agent_id, 0) != sizeof a->agent_id)
		return -EIO;
	memcpy(a->ship.agent_id, a->agent_id, sizeof a->agent_id);
	if (uname(&u) == 0)
		snprintf(a->host, sizeof a->host, "%.64s", u.nodename);
	fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		ssize_t n = read(fd, a->boot_id, sizeof a->boot_id - 1);

		a->boot_id[n > 0 ? n : 0] = 0;
		a->boot_id[strcspn(a->boot_id, "\n")] = 0;
		close(fd);
	}
	if (stat("/proc/self/ns/time", &st) == 0)
		a->time_ns_inode = st.st_ino;
	if (clock_is_bent()) /* a clock of its own, whatever machine it runs on */
		snprintf(a->boot_id, sizeof a->boot_id, "test clock %lld",
			 (long long)clock_bend(0));
	return 0;
}

/* ---- ending */

static bool all_ended(const struct agent *a)
{
	for (uint32_t i = 0; i < FRAME_MAX_PROCS; i++)
		if (a->guests[i] && !a->guests[i]->ended)
			return false;
	return true;
}

static void say_left(struct agent *a)
{
	struct spool_stats st;

	if (!a->ship.spool)
		return;
	spool_stats(a->ship.spool, &st);
	if (st.n_kept == 0)
		return;
	if (spool_path(a->ship.spool)[0])
		say_fatal("%llu batches that are not acknowledged are kept in %s; start an agent "
			  "with the same --run and --spool on this host to ship them",
			  (unsigned long long)st.n_kept, spool_path(a->ship.spool));
	else
		say_fatal("%llu batches that are not acknowledged are lost: there was no disk to "
			  "keep them on",
			  (unsigned long long)st.n_kept);
}

static int refused_by_collector(const struct agent *a)
{
	const char *next = "see the collector's log";

	switch ((enum frame_refusal)a->ship.fatal) {
	case REFUSE_VERSION:
		next = "install the same release of syncline on both ends";
		break;
	case REFUSE_TOKEN:
		next = "give the collector's token by --token-file or SYNCLINE_TOKEN_FILE";
		break;
	case REFUSE_OTHER_RUN:
		next = "give --run the id of the run that it serves, or name another collector";
		break;
	case REFUSE_RANK_TAKEN:
		next = "two jobs cannot share one run id: give each its own SYNCLINE_RUN";
		break;
	case REFUSE_MALFORMED:
	case REFUSE_BUSY:
		break;
	}
	say_fatal("the collector at %s refuses this agent: %s; %s", a->opt.collector, a->ship.why,
		  next);
	return EXIT_CANNOT;
}

/* -1 = go on, or the exit status. */
static int ends(struct loop *l, int64_t now_ns)
{
	struct agent *a = l->a;
	struct spool_stats st = { 0 };
	int64_t quiet_since_ns;

	if (a->ship.fatal)
		return refused_by_collector(a);
	if (a->ship.spool)
		spool_stats(a->ship.spool, &st);
	if (l->leave_by_ns != 0) {
		if (st.n_kept == 0)
			return EXIT_DONE;
		return now_ns >= l->leave_by_ns ? EXIT_CANNOT : -1;
	}
	if (a->opt.wait_ns > 0 && !a->beat.ever_answered &&
	    now_ns - a->started_ns > a->opt.wait_ns) {
		say_fatal("no collector answered at %s within %.1f s; start "
			  "syncline-collector --listen %s, or correct --collector",
			  a->opt.collector, (double)a->opt.wait_ns / 1e9, a->opt.collector);
		return EXIT_CANNOT;
	}
	if (a->opt.keep || !a->seen_any || !all_ended(a)) {
		l->over_ns = 0;
		return -1;
	}
	if (l->over_ns == 0)
		l->over_ns = now_ns;
	if (st.n_kept == 0)
		return a->n_guests == 0 && now_ns - a->last_gone_ns > a->linger_ns &&
				       now_ns - l->over_ns > a->linger_ns ?
			       EXIT_DONE :
			       -1;
	quiet_since_ns = a->ship.last_ack_ns > l->over_ns ? a->ship.last_ack_ns : l->over_ns;
	if (now_ns - quiet_since_ns < AWAY_NS)
		return -1;
	say_fatal("the job is over and the collector at %s has not answered for 60 s",
		  a->opt.collector);
	return EXIT_CANNOT;
}

/* ---- the loop */

static void on_signal(struct loop *l, int64_t now_ns)
{
	struct signalfd_siginfo si;

	if (read(l->sigfd, &si, sizeof si) != sizeof si)
		return;
	if (l->leave_by_ns != 0) { /* a second one: what is kept is on disk already */
		l->leave_by_ns = 1;
		return;
	}
	l->leave_by_ns = now_ns + LEAVE_NS;
	l->drain_due_ns = l->seal_due_ns = now_ns;
	if (l->a->ship.spool)
		drain_round(l, now_ns);
}

/* Until the next thing is due, an answer, a signal, or the end of a process. */
static void sleep_until(struct loop *l, int64_t due_ns, int64_t now_ns)
{
	static struct pollfd fds[3 + MESH_N_FDS + FRAME_MAX_PROCS];
	struct agent *a = l->a;
	struct timespec ts = { 0 };
	int mesh[MESH_N_FDS];
	nfds_t n = 3;

	fds[0] = (struct pollfd){ .fd = link_fd(a->link), .events = POLLIN };
	fds[1] = (struct pollfd){ .fd = l->sigfd, .events = POLLIN };
	fds[2] = (struct pollfd){ .fd = a->pinger.fd, .events = POLLIN };
	mesh_fds(&a->mesh, mesh);
	for (unsigned i = 0; i < MESH_N_FDS; i++)
		fds[n++] = (struct pollfd){ .fd = mesh[i], .events = POLLIN };
	for (uint32_t i = 0; i < FRAME_MAX_PROCS; i++)
		if (a->guests[i] && a->guests[i]->pidfd >= 0 &&
		    a->guests[i]->facts.state == PROC_ALIVE)
			fds[n++] = (struct pollfd){ .fd = a->guests[i]->pidfd, .events = POLLIN };
	if (due_ns > now_ns) {
		ts.tv_sec = (due_ns - now_ns) / 1000000000;
		ts.tv_nsec = (due_ns - now_ns) % 1000000000;
	}
	if (ppoll(fds, n, &ts, NULL) <= 0)
		return;
	if (fds[0].revents)
		take_answers(a);
	if (fds[1].revents)
		on_signal(l, raw_now());
	if (fds[2].revents)
		pinger_receive(&a->pinger);
	for (unsigned i = 0; i < MESH_N_FDS; i++)
		if (fds[3 + i].revents)
			mesh_receive(&a->mesh, i);
	for (nfds_t i = 3 + MESH_N_FDS; i < n; i++)
		if (fds[i].revents)
			l->drain_due_ns = l->seal_due_ns = 0;
}

static int64_t earliest(int64_t x, int64_t y)
{
	return x < y ? x : y;
}

/* RAW ran back, as after a restored snapshot of the machine: what was due at a time
 * that is far away now is due at once. */
static void begin_anew(struct loop *l)
{
	struct agent *a = l->a;

	l->scan_due_ns = l->drain_due_ns = l->seal_due_ns = l->gauge_due_ns = 0;
	memset(a->tick_due_ns, 0, sizeof a->tick_due_ns);
	a->beat.due_ns = a->ship.hold_until_ns = 0;
}

static int run(struct loop *l)
{
	struct agent *a = l->a;
	int64_t before_ns = 0;

	for (;;) {
		int64_t now_ns = raw_now(), due_ns, probe_in_ns;
		int r;

		if (now_ns < before_ns)
			begin_anew(l);
		before_ns = now_ns;

		if (now_ns >= l->scan_due_ns && l->leave_by_ns == 0) {
			scan_directory(a, now_ns);
			l->scan_due_ns = now_ns + SCAN_NS;
		}
		if (!a->ship.spool) {
			r = find_run(a, now_ns);
			if (r != 0) {
				say_fatal("cannot begin: %s", strerror(-r));
				return EXIT_CANNOT;
			}
			if (a->ship.spool)
				l->scan_due_ns = 0;
		}
		if (a->ship.spool && now_ns >= l->gauge_due_ns) {
			sample(a, now_ns);
			say_spool_trouble(a, now_ns);
			l->gauge_due_ns = now_ns + GAUGE_NS;
		}
		if (a->ship.spool && now_ns >= l->drain_due_ns)
			drain_round(l, now_ns);
		beat_tick(a, now_ns);
		pinger_tick(&a->pinger);
		mesh_tick(&a->mesh);
		if (a->ship.spool)
			ship_pump(&a->ship, now_ns);
		r = ends(l, now_ns);
		if (r >= 0)
			return r;

		due_ns = earliest(l->scan_due_ns, a->ship.spool ? l->drain_due_ns : INT64_MAX);
		if (a->ship.hold_until_ns > now_ns)
			due_ns = earliest(due_ns, a->ship.hold_until_ns);
		if (l->leave_by_ns != 0)
			due_ns = earliest(l->drain_due_ns, now_ns + 10 * MS);
		now_ns = raw_now();
		probe_in_ns = earliest(pinger_due_in_ns(&a->pinger), mesh_due_in_ns(&a->mesh));
		if (probe_in_ns < due_ns - now_ns)
			due_ns = now_ns + probe_in_ns;
		sleep_until(l, due_ns, now_ns);
	}
}

int main(int argc, char **argv)
{
	static struct agent a;
	struct loop l = { .a = &a };
	char data_url[512];
	sigset_t set;
	int r;

	pinger_init(&a.pinger);
	mesh_init(&a.mesh);
	options_parse(&a.opt, argc, argv);
	say_quiet(a.opt.quiet);
	if (frame_data_url(a.opt.collector, data_url, sizeof data_url) != 0) {
		say_fatal("--collector \"%s\" is neither tcp://HOST:PORT nor ipc:///PATH",
			  a.opt.collector);
		return EXIT_USAGE;
	}
	a.started_ns = raw_now();
	a.level = a.opt.level < 0 ? UINT32_MAX : (uint32_t)a.opt.level;
	a.ship.window = LINK_MAX_WINDOW;
	a.ship.credit = LINK_MAX_WINDOW;
	for (unsigned i = 0; i < 3; i++)
		tick_init(&a.ticks[i], i);

	/* Before any thread is started, so that all of them leave signals to us. */
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	guard_init();
	l.sigfd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	r = l.sigfd < 0 ? -errno : who_am_i(&a);
	if (r == 0)
		r = batch_init(&a.batch);
	if (r == 0)
		r = procfs_open(&a.procfs);
	if (r == 0)
		r = link_open(&a.link, a.opt.collector, data_url, LINK_MAX_WINDOW);
	a.ship.link = a.link;
	if (r == -EINVAL) {
		say_fatal("--collector \"%s\" is not an address that can be connected to",
			  a.opt.collector);
		return EXIT_USAGE;
	}
	if (r != 0) {
		say_fatal("cannot start: %s", strerror(-r));
		return EXIT_CANNOT;
	}

	r = run(&l);
	if (a.ship.spool && r != EXIT_DONE) { /* what the rings hold is safer in the spool */
		l.seal_due_ns = 0;
		drain_round(&l, raw_now());
	}
	say_left(&a);
	spool_close(a.ship.spool);
	/* Requests may be out: NNG 1.5.2 is left standing, the kernel closes it. */
	_exit(r);
}
