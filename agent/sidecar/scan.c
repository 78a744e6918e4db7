#include "agent.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define EXIT_WAIT_NS INT64_C(1000000000) /* for a parent to collect its child's status */
#define LINGER_LEFT_NS INT64_C(1000000000)
#define LINGER_DIED_NS INT64_C(10000000000) /* an elastic launcher may start it again */

static int64_t changed_ns(const struct stat *st)
{
	return (int64_t)st->st_ctim.tv_sec * 1000000000 + st->st_ctim.tv_nsec;
}

/* Refused files stay refused until they change: the reason is said once. */
static bool is_refused(const struct agent *a, const struct stat *st)
{
	for (unsigned i = 0; i < a->n_refused; i++)
		if (a->refused[i].dev == st->st_dev && a->refused[i].ino == st->st_ino &&
		    a->refused[i].changed_ns == changed_ns(st))
			return true;
	return false;
}

static void refuse(struct agent *a, const struct stat *st)
{
	unsigned i = a->n_refused < AGENT_MAX_REFUSED ? a->n_refused++ :
							(unsigned)rand() % AGENT_MAX_REFUSED;

	a->refused[i].dev = st->st_dev;
	a->refused[i].ino = st->st_ino;
	a->refused[i].changed_ns = changed_ns(st);
}

static bool is_served(const struct agent *a, const struct stat *st)
{
	for (uint32_t i = 0; i < FRAME_MAX_PROCS; i++)
		if (a->guests[i] && a->guests[i]->dev == st->st_dev &&
		    a->guests[i]->ino == st->st_ino)
			return true;
	return false;
}

/* Indices go round, so that one that was just freed is not taken at once: a
 * batch that still names it may be under way. */
static uint32_t free_proc(struct agent *a)
{
	for (uint32_t k = 0; k < FRAME_MAX_PROCS; k++) {
		uint32_t i = (a->next_proc + k) % FRAME_MAX_PROCS;

		if (!a->guests[i]) {
			a->next_proc = i + 1;
			return i;
		}
	}
	return FRAME_MAX_PROCS;
}

static void add_guest(struct agent *a, const char *path, const struct stat *st, int64_t now_ns)
{
	const char *why = "";
	struct guest *g;
	uint32_t proc;
	int r;

	if (a->n_guests == FRAME_MAX_PROCS) {
		say_limited(&a->scan_limit, now_ns,
			    "%s is left alone: this agent serves %d processes at most", path,
			    FRAME_MAX_PROCS);
		return;
	}
	r = guest_open(&g, path, a->ship.spool, &why);
	switch (r) {
	case GUEST_OK:
		break;
	case GUEST_SERVED: /* another agent's; asked again at the next scan */
		return;
	case GUEST_REFUSED:
		say("%s is left alone: %s", path, why);
		refuse(a, st);
		return;
	default:
		if (r != -ENOENT)
			say_limited(&a->scan_limit, now_ns,
				    "cannot open %s: %s; let agent and training run as one user, "
				    "or in one group with a shared directory",
				    path, strerror(-r));
		return;
	}
	proc = free_proc(a);
	g->facts.proc = proc;
	if (a->level != UINT32_MAX)
		guest_set_level(g, a->level);
	a->guests[proc] = g;
	a->n_guests++;
	a->seen_any = true;
}

void scan_directory(struct agent *a, int64_t now_ns)
{
	DIR *d = opendir(a->opt.dir);
	struct dirent *e;

	if (!d) {
		if (errno != ENOENT) /* not there yet: the first process makes it */
			say_limited(&a->dir_limit, now_ns,
				    "cannot read %s: %s; give --dir the directory that the "
				    "training has in SYNCLINE_DIR",
				    a->opt.dir, strerror(errno));
		return;
	}
	while ((e = readdir(d))) {
		size_t n = strlen(e->d_name), k = strlen(SHM_SUFFIX);
		char path[4096];
		struct stat st;

		if (n <= k || strcmp(e->d_name + n - k, SHM_SUFFIX) != 0)
			continue;
		if (fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		    is_served(a, &st) || is_refused(a, &st))
			continue;
		if (snprintf(path, sizeof path, "%s/%s", a->opt.dir, e->d_name) >=
		    (int)sizeof path)
			continue;
		add_guest(a, path, &st, now_ns);
	}
	closedir(d);
}

void scan_forget(struct agent *a, uint32_t proc)
{
	guest_close(a->guests[proc]);
	a->guests[proc] = NULL;
	a->n_guests--;
	a->ship.hello_due = true;
}

/* A process of another run in our directory is another agent's business. */
static bool of_this_run(struct agent *a, const struct guest *g)
{
	struct stat st;

	if (!a->ship.spool || g->generation == 0 || g->run_id[0] == 0 ||
	    strcmp(g->run_id, a->run_id) == 0)
		return true;
	say("%s belongs to run %s, this agent serves run %s: start another agent with --run %s",
	    g->path, g->run_id, a->run_id[0] ? a->run_id : "(none)", g->run_id);
	if (fstat(g->fd, &st) == 0)
		refuse(a, &st);
	return false;
}

static void died(struct agent *a, struct guest *g, int64_t now_ns)
{
	bool closed = guest_closed(g);

	guest_refresh(g);
	g->facts.state = closed ? PROC_LEFT : PROC_DIED;
	g->facts.state_at_ns = now_ns;
	g->facts_due = true;
	g->exit_known = g->pidfd < 0;
	if (a->opt.linger_ns >= 0)
		a->linger_ns = a->opt.linger_ns;
	else if (!closed)
		a->linger_ns = LINGER_DIED_NS;
	else if (a->linger_ns < LINGER_LEFT_NS)
		a->linger_ns = LINGER_LEFT_NS;
	if (!closed)
		say("process %u (rank %d) died; its last events are read from %s", g->facts.pid,
		    g->facts.rank, g->path);
}

/* Its last word is acknowledged: the file has served. Only if the name still
 * means that file. */
static void bury(struct agent *a, uint32_t proc, int64_t now_ns)
{
	struct guest *g = a->guests[proc];
	struct stat st;

	if (lstat(g->path, &st) == 0 && st.st_dev == g->dev && st.st_ino == g->ino)
		unlink(g->path);
	a->last_gone_ns = now_ns;
	scan_forget(a, proc);
}

void scan_guests(struct agent *a, int64_t now_ns)
{
	for (uint32_t i = 0; i < FRAME_MAX_PROCS; i++) {
		struct guest *g = a->guests[i];

		if (!g)
			continue;
		if (guest_refresh(g))
			a->ship.hello_due = true;
		if (!of_this_run(a, g)) {
			scan_forget(a, i);
			continue;
		}
		if (g->facts.state == PROC_ALIVE && !guest_alive(g)) {
			died(a, g, now_ns);
			a->ship.hello_due = true;
		}
		if (g->cut && g->facts.state == PROC_ALIVE)
			say_limited(&a->cut_limit, now_ns,
				    "%s was cut short by someone: what it held is lost, its "
				    "process is only watched",
				    g->path);
		if (g->facts.state == PROC_ALIVE)
			continue;
		if (!g->exit_known) {
			guest_exit_status(g);
			g->exit_known |= now_ns - g->facts.state_at_ns > EXIT_WAIT_NS;
		}
		if (g->ended && g->exit_known && !g->facts_due &&
		    spool_oldest(a->ship.spool, g->final_seq) > g->final_seq)
			bury(a, i, now_ns);
	}
}
