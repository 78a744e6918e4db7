#include "guest.h"

#include "clock.h"
#include "guard.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_RANK (1 << 20)

static struct shm_header *header(const struct guest *g)
{
	return (struct shm_header *)(void *)g->map;
}
static struct shm_ring *ring_headers(const struct guest *g)
{
	return (struct shm_ring *)(void *)(g->map + g->lay.ring_headers_at);
}

/* ---- opening */

struct first_look {
	struct guest *g;
	enum shm_outcome outcome;
	uint64_t heads[SHM_MAX_RINGS], tails[SHM_MAX_RINGS], text_head, text_tail;
};

static void look(void *arg)
{
	struct first_look *l = arg;
	struct guest *g = l->g;

	l->outcome = shm_check(g->map, g->n_bytes, &g->lay);
	if (l->outcome != SHM_OK)
		return;
	for (uint32_t i = 0; i < g->lay.n_rings; i++) {
		struct shm_ring *r = &ring_headers(g)[i];

		l->tails[i] = atomic_load_explicit(&r->tail, memory_order_relaxed);
		l->heads[i] = atomic_load_explicit(&r->head, memory_order_acquire);
	}
	l->text_tail = atomic_load_explicit(&header(g)->text.tail, memory_order_relaxed);
	l->text_head = atomic_load_explicit(&header(g)->text.head, memory_order_acquire);
}

/* Where to begin: the file's tail, or further on if an earlier agent's spool
 * has more; never outside of what the ring can hold. */
static void begin_at(struct guest_ring *r, const struct spool *spool, uint64_t unique,
		     uint32_t ring, uint64_t head, uint64_t tail, uint64_t n_slots)
{
	uint64_t next = tail, spooled;

	if (head - next > n_slots)
		next = head;
	if (spool && spool_cursor(spool, unique, ring, &spooled) && spooled - next <= head - next)
		next = spooled;
	*r = (struct guest_ring){ .next = next, .published = tail, .sealed = next };
}

static int check_file(struct guest *g, const char **ret_why)
{
	struct stat st;

	if (fstat(g->fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode)) {
		*ret_why = "not a regular file";
		return GUEST_REFUSED;
	}
	if (st.st_size < (off_t)sizeof(struct shm_header) || st.st_size > (off_t)SHM_MAX_BYTES) {
		*ret_why = "its size is not one that a probe makes";
		return GUEST_REFUSED;
	}
	if (flock(g->fd, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK ? GUEST_SERVED : -errno;
	g->dev = st.st_dev;
	g->ino = st.st_ino;
	g->n_bytes = (size_t)st.st_size;
	return 0;
}

static int map_file(struct guest *g, const struct spool *spool, const char **ret_why)
{
	struct first_look l = { .g = g };
	void *map = mmap(NULL, g->n_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, g->fd, 0);

	if (map == MAP_FAILED)
		return -errno;
	g->map = map;
	if (!guarded(look, &l)) {
		*ret_why = "cut short while it was opened";
		return GUEST_REFUSED;
	}
	if (l.outcome != SHM_OK) {
		*ret_why = shm_outcome_text(l.outcome);
		return GUEST_REFUSED;
	}
	if (!tick_readable(g->lay.tick_source)) {
		*ret_why = "its tick source cannot be read on this machine";
		return GUEST_REFUSED;
	}
	for (uint32_t i = 0; i < g->lay.n_rings; i++)
		begin_at(&g->rings[i], spool, g->lay.unique, i, l.heads[i], l.tails[i],
			 g->lay.ring_slots);
	begin_at(&g->text, spool, g->lay.unique, SPOOL_TEXT, l.text_head, l.text_tail,
		 g->lay.text_bytes);
	return 0;
}

int guest_open(struct guest **ret, const char *path, const struct spool *spool,
	       const char **ret_why)
{
	struct guest *g = calloc(1, sizeof *g);
	int r = -ENOMEM;

	if (!g)
		return -ENOMEM;
	g->pidfd = -1;
	g->fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (g->fd < 0) {
		r = -errno;
		goto fail;
	}
	g->path = strdup(path);
	if (!g->path)
		goto fail;
	r = check_file(g, ret_why);
	if (r == 0)
		r = map_file(g, spool, ret_why);
	if (r != 0)
		goto fail;

	flight_init(&g->flight);
	g->found_ns = raw_now();
	g->facts = (struct frame_proc){
		.unique = g->lay.unique,
		.started_ns = g->lay.started_raw_ns,
		.pid = g->lay.pid,
		.rank = -1,
		.local_rank = -1,
		.tick_source = g->lay.tick_source,
		.state = PROC_ALIVE,
		.state_at_ns = g->found_ns,
		.exit_code = -1,
		.signal = -1,
	};
	g->facts_due = g->barrier = true;
	*ret = g;
	return 0;

fail:
	guest_close(g);
	return r;
}

void guest_close(struct guest *g)
{
	if (!g)
		return;
	if (g->map)
		munmap(g->map, g->n_bytes);
	if (g->fd >= 0)
		close(g->fd);
	if (g->pidfd >= 0)
		close(g->pidfd);
	free(g->path);
	free(g);
}

/* ---- reading what it says of itself */

struct self {
	struct guest *g;
	struct shm_identity id;
	uint32_t before, after, level;
	uint64_t n_dropped, n_text_dropped, n_names_dropped;
};

static void read_self(void *arg)
{
	struct self *s = arg;
	struct shm_header *h = header(s->g);
	struct shm_ring *r = ring_headers(s->g);

	s->before = atomic_load_explicit(&h->identity.generation, memory_order_acquire);
	if (s->before != s->g->generation)
		memcpy(&s->id, &h->identity, sizeof s->id);
	atomic_thread_fence(memory_order_acquire);
	s->after = atomic_load_explicit(&h->identity.generation, memory_order_relaxed);
	s->level = atomic_load_explicit(&h->level, memory_order_relaxed);
	s->n_dropped = atomic_load_explicit(&h->n_dropped_without_ring, memory_order_relaxed);
	for (uint32_t i = 0; i < s->g->lay.n_rings; i++)
		s->n_dropped += atomic_load_explicit(&r[i].n_dropped, memory_order_relaxed);
	s->n_text_dropped = atomic_load_explicit(&h->text.n_dropped, memory_order_relaxed);
	s->n_names_dropped = atomic_load_explicit(&h->strings.n_dropped, memory_order_relaxed);
}

/* What the wire can carry; a counter that says more is a lie anyway. */
static uint64_t bounded(uint64_t n)
{
	return n > INT64_MAX ? INT64_MAX : n;
}

static void take_identity(struct guest *g, const struct shm_identity *id)
{
	bool sane = id->world_size >= 0 && id->world_size <= MAX_RANK && id->rank >= -1 &&
		    id->rank < id->world_size;

	g->facts.rank = sane ? id->rank : -1;
	g->facts.world_size = sane ? id->world_size : 0;
	g->facts.local_rank = id->local_rank;
	g->facts.restart_count = id->restart_count;
	memcpy(g->run_id, id->run_id, sizeof id->run_id);
	g->run_id[sizeof id->run_id - 1] = 0;
	memcpy(g->host, id->host, sizeof id->host);
	g->host[sizeof id->host - 1] = 0;
}

bool guest_refresh(struct guest *g)
{
	struct self s = { .g = g };
	bool news;

	if (g->cut)
		return false;
	if (!guarded(read_self, &s)) {
		g->cut = true;
		return false;
	}
	g->facts.level = s.level;
	g->facts.n_dropped = bounded(s.n_dropped);
	g->facts.n_text_dropped = bounded(s.n_text_dropped);
	g->facts.n_names_dropped = bounded(s.n_names_dropped);
	news = s.before == s.after && s.before % 2 == 0 && s.before != g->generation;
	if (news) {
		take_identity(g, &s.id);
		g->generation = s.before;
		g->facts_due = g->barrier = true;
	}
	return news;
}

static void read_closed(void *arg)
{
	struct self *s = arg;

	s->before = atomic_load_explicit(&header(s->g)->closed, memory_order_acquire);
}

bool guest_closed(struct guest *g)
{
	struct self s = { .g = g };

	if (g->cut || !guarded(read_closed, &s)) {
		g->cut = true;
		return false;
	}
	return s.before == 1;
}

static bool who_holds(const struct guest *g, pid_t *ret_pid)
{
	struct flock fl = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1 };

	if (fcntl(g->fd, F_GETLK, &fl) < 0) {
		*ret_pid = 0;
		return true; /* cannot tell: do not bury it */
	}
	*ret_pid = fl.l_type == F_UNLCK ? 0 : fl.l_pid;
	return fl.l_type != F_UNLCK;
}

bool guest_alive(struct guest *g)
{
	pid_t pid, again;
	int fd;

	if (!who_holds(g, &pid))
		return false;
	if (pid <= 0 || pid == g->pid)
		return true;
	g->pid = pid;
	if (g->pidfd >= 0)
		close(g->pidfd);
	g->pidfd = -1;
	fd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (fd >= 0 && who_holds(g, &again) && again == pid) /* still the same process */
		g->pidfd = fd;
	else if (fd >= 0)
		close(fd);
	return true;
}

/* PIDFD_GET_INFO of linux/pidfd.h (6.13, exit status 6.15): newer than the
 * headers that we build with. */
struct pidfd_info {
	uint64_t mask, cgroupid;
	uint32_t pid, tgid, ppid, ruid, rgid, euid, egid, suid, sgid, fsuid, fsgid;
	int32_t exit_code;
};
#define PIDFD_GET_INFO_ _IOWR(0xff, 11, struct pidfd_info)
#define PIDFD_INFO_EXIT_ 8u

void guest_exit_status(struct guest *g)
{
	struct pidfd_info info = { .mask = PIDFD_INFO_EXIT_ };

	if (g->pidfd < 0 || ioctl(g->pidfd, PIDFD_GET_INFO_, &info) < 0 ||
	    !(info.mask & PIDFD_INFO_EXIT_))
		return; /* older kernel, or its parent has not waited yet */
	if (WIFEXITED(info.exit_code))
		g->facts.exit_code = WEXITSTATUS(info.exit_code);
	else if (WIFSIGNALED(info.exit_code))
		g->facts.signal = WTERMSIG(info.exit_code);
	g->exit_known = true;
	g->facts_due = true;
}

/* ---- writing what it may know of us */

struct note {
	struct guest *g;
	int64_t now_ns;
	uint32_t level;
};

static void publish(void *arg)
{
	struct note *n = arg;
	struct guest *g = n->g;
	struct shm_header *h = header(g);

	for (uint32_t i = 0; i < g->lay.n_rings; i++) {
		struct guest_ring *r = &g->rings[i];

		if (r->sealed == r->published)
			continue;
		atomic_store_explicit(&ring_headers(g)[i].tail, r->sealed, memory_order_release);
		r->published = r->sealed;
	}
	if (g->text.sealed != g->text.published) {
		atomic_store_explicit(&h->text.tail, g->text.sealed, memory_order_release);
		g->text.published = g->text.sealed;
	}
	atomic_store_explicit(&h->agent_seen_raw_ns, n->now_ns, memory_order_relaxed);
}

void guest_publish(struct guest *g, int64_t now_ns)
{
	if (!g->cut && !guarded(publish, &(struct note){ .g = g, .now_ns = now_ns }))
		g->cut = true;
}

static void set_level(void *arg)
{
	struct note *n = arg;

	atomic_store_explicit(&header(n->g)->level, n->level, memory_order_relaxed);
}

void guest_set_level(struct guest *g, uint32_t level)
{
	if (!g->cut && !guarded(set_level, &(struct note){ .g = g, .level = level }))
		g->cut = true;
}

void guest_trim(struct guest *g)
{
	madvise(g->map, g->n_bytes, MADV_DONTNEED); /* of our view; the file keeps it all */
}

/* ---- names */

struct lookup {
	struct guest *g;
	uint32_t id;
	char *buf;
	size_t n;
};

static void read_string(void *arg)
{
	struct lookup *l = arg;
	const struct shm_header *lay = &l->g->lay;
	uint64_t entry, at, n;

	memcpy(&entry, l->g->map + lay->string_index_at + (uint64_t)(l->id - 1) * 8, sizeof entry);
	at = entry >> 8;
	n = entry & 0xff;
	if (at > lay->max_string_bytes || n > lay->max_string_bytes - at)
		return;
	memcpy(l->buf, l->g->map + lay->string_bytes_at + at, n);
	l->n = n;
}

size_t guest_string(struct guest *g, uint32_t id, char *buf)
{
	struct lookup l = { .g = g, .id = id, .buf = buf };

	if (g->cut || id == 0 || id > g->lay.max_strings)
		return 0;
	if (!guarded(read_string, &l)) {
		g->cut = true;
		return 0;
	}
	return l.n;
}
