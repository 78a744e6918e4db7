#include "probe.h"
#include "file.h"
#include "gate.h"
#include "layout.h"
#include "ring.h"
#include "start.h"
#include "tick.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/random.h>
#include <unistd.h>

/* Written by the thread that starts, before probe_start_state is settled. */
static struct file file;
static enum probe_off why_off = PROBE_NOT_STARTED;
static _Atomic uint32_t tick_source = UINT32_MAX; /* not looked yet */

const char *probe_off_text(enum probe_off off)
{
	switch (off) {
	case PROBE_ON:
		return "";
	case PROBE_NOT_STARTED:
		return "Nothing has started the probe yet.";
	case PROBE_STARTING:
		return "The probe is being started on another thread.";
	case PROBE_FORKED:
		return "This is a forked child; only the process that started the probe is traced.";
	case PROBE_ASKED_OFF:
		return "SYNCLINE_OFF is set; unset it to trace this process.";
	case PROBE_NOT_ASKED:
		return "Nothing asks for a trace; start the program with `syncline run`, or set "
		       "SYNCLINE_DIR.";
	case PROBE_NOT_RANK:
		return "This process was started by a rank and is not one itself.";
	case PROBE_SETUID:
		return "The program runs with other rights than its caller; the environment is not "
		       "trusted.";
	case PROBE_NO_DIR:
		return "The directory for shared files is missing and could not be made; check "
		       "SYNCLINE_DIR.";
	case PROBE_DIR_DENIED:
		return "This user may not create files in SYNCLINE_DIR; give its group write access.";
	case PROBE_DIR_FOREIGN:
		return "The default directory under /dev/shm belongs to another user; set "
		       "SYNCLINE_DIR.";
	case PROBE_DIR_FILESYSTEM:
		return "The file system of SYNCLINE_DIR cannot promise space to mapped files; use a "
		       "tmpfs, ext4 or xfs.";
	case PROBE_NO_SPACE:
		return "Less than 2.5 MiB are free where the shared file would go; enlarge /dev/shm "
		       "or set SYNCLINE_DIR.";
	case PROBE_FILE_LIMIT:
		return "The limit on file size (ulimit -f) is below 256 KiB.";
	case PROBE_NO_FD:
		return "No file descriptor is left (ulimit -n).";
	case PROBE_NO_LOCK:
		return "The file system of SYNCLINE_DIR does not do record locks.";
	case PROBE_NO_MAP:
		return "The shared file could not be mapped (ulimit -v?).";
	case PROBE_NO_GATE:
		return "The kernel cannot wipe a page on fork (Linux 4.14 and later can).";
	case PROBE_NO_KEY:
		return "The process has no thread-specific key left.";
	case PROBE_OPEN_FAILED:
		return "The shared file could not be created.";
	case PROBE_OFF_N:
		break;
	}
	return "unknown";
}

/* In the child of a fork. The gate page is empty already; this lets go of the
 * mapping and the descriptor as well. */
static void on_fork_child(void)
{
	int saved_errno = errno;

	file_forget(&file);
	errno = saved_errno;
}

/* The last destructor to run that we can have: events of atexit handlers come
 * before it. In a child the gate is shut, and its exit is not the rank's. */
__attribute__((destructor)) static void on_exit_in_order(void)
{
	struct shm_header *h = gate_header(gate_get());

	if (h)
		atomic_store_explicit(&h->closed, 1, memory_order_release);
}

static bool is_set(const char *variable)
{
	const char *v = secure_getenv(variable);

	return v && *v && strcmp(v, "0") != 0;
}

static uint32_t start_level(void)
{
	const char *v = secure_getenv("SYNCLINE_LEVEL");

	if (v && v[0] >= '0' && v[0] <= '0' + LEVEL_MAX && v[1] == 0)
		return (uint32_t)(v[0] - '0');
	return LEVEL_DEFAULT;
}

static uint64_t make_unique(void)
{
	uint64_t v;

	if (getrandom(&v, sizeof v, GRND_NONBLOCK) == sizeof v)
		return v;
	/* Early in a machine's life: the address space's random part has to do. */
	return (tick_raw_ns() << 20) ^ (uint64_t)getpid() ^ (uint64_t)(uintptr_t)&v << 16;
}

static void fill_header(struct shm_header *h, uint64_t unique, enum shm_tick source)
{
	h->magic = SHM_MAGIC;
	h->version = SHM_VERSION;
	h->pid = (uint32_t)getpid();
	h->tick_source = source;
	h->unique = unique;
	tick_triple(source, &h->clock);
	h->started_raw_ns = h->clock.raw_ns;
	h->started_real_ns = h->clock.real_ns;
	h->identity.rank = h->identity.local_rank = -1;
	h->identity.world_size = h->identity.local_world_size = -1;
	(void)gethostname(h->identity.host, sizeof h->identity.host - 1);
	atomic_store_explicit(&h->step, EVENT_STEP_UNKNOWN, memory_order_relaxed);
	atomic_store_explicit(&h->level, start_level(), memory_order_relaxed);
}

static void fill_gate(struct gate *g, const struct shm_header *h, void *map)
{
	unsigned char *base = map;

	g->rings = (struct shm_ring *)(base + h->ring_headers_at);
	g->slots = (struct event *)(base + h->ring_slots_at);
	g->slot_mask = h->ring_slots - 1;
	g->n_rings = h->n_rings;
	g->tick_source = h->tick_source;
	g->string_index = (uint64_t *)(base + h->string_index_at);
	g->string_bytes = (char *)base + h->string_bytes_at;
	g->max_strings = h->max_strings;
	g->max_string_bytes = h->max_string_bytes;
	g->text = base + h->text_at;
	g->text_bytes = h->text_bytes;
}

static enum probe_off open_file(struct gate *g)
{
	uint64_t unique = make_unique();
	struct shm_header *h;
	enum probe_off off;

	off = file_new(&file, unique);
	if (off != PROBE_ON)
		return off;
	h = file.map;
	layout_plan(file.n_bytes, h); /* file_new() never returns less than the least */
	fill_header(h, unique, (enum shm_tick)tick_detect());
	fill_gate(g, h, file.map);
	off = file_publish(&file);
	if (off != PROBE_ON)
		return off;
	gate_open(g, h);
	atomic_fetch_add_explicit(&h->n_dropped_without_ring, ring_take_n_early(),
				  memory_order_relaxed);
	return PROBE_ON;
}

static enum probe_off start(void)
{
	struct gate *g;
	int r;

	if (getauxval(AT_SECURE))
		return PROBE_SETUID;
	if (is_set("SYNCLINE_OFF"))
		return PROBE_ASKED_OFF;
	r = gate_new(&g);
	if (r != 0) {
		file.system_error = r;
		return PROBE_NO_GATE;
	}
	r = ring_start();
	if (r != 0) {
		file.system_error = r;
		return PROBE_NO_KEY;
	}
	file.fd = -1;
	if (pthread_atfork(NULL, NULL, on_fork_child) != 0) {
		file.system_error = ENOMEM;
		return PROBE_NO_GATE;
	}
	return open_file(g);
}

enum probe_off probe_start_unless(enum probe_off already)
{
	uint32_t is = START_UNDECIDED;
	int saved_errno = errno;
	sigset_t all, before;

	if (!atomic_compare_exchange_strong(&probe_start_state, &is, START_RUNNING)) {
		struct probe_stats s;

		probe_stats(&s);
		return s.off;
	}
	/* No handler of the host in between: it could fork, or emit. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	why_off = already != PROBE_ON ? already : start();
	if (why_off != PROBE_ON)
		gate_close();
	atomic_store_explicit(&probe_start_state, START_SETTLED, memory_order_release);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	errno = saved_errno;
	return why_off;
}

enum probe_off probe_start(void)
{
	return probe_start_unless(PROBE_ON);
}

void probe_identity(int rank, int local_rank, int world_size, int local_world_size,
		    int restart_count, const char *run_id)
{
	struct shm_header *h = gate_header(gate_get());
	struct shm_identity *id;
	uint32_t generation;

	if (!h)
		return;
	id = &h->identity;
	generation = atomic_load_explicit(&id->generation, memory_order_relaxed);
	/* Two callers at once: the first one's word stands. */
	if (generation % 2 != 0 ||
	    !atomic_compare_exchange_strong_explicit(&id->generation, &generation, generation + 1,
						     memory_order_acquire, memory_order_relaxed))
		return;
	atomic_thread_fence(memory_order_release);
	id->rank = rank;
	id->local_rank = local_rank;
	id->world_size = world_size;
	id->local_world_size = local_world_size;
	id->restart_count = restart_count;
	if (run_id) {
		size_t n = strnlen(run_id, sizeof id->run_id - 1);

		memcpy(id->run_id, run_id, n);
		memset(id->run_id + n, 0, sizeof id->run_id - n);
	}
	atomic_store_explicit(&id->generation, generation + 2, memory_order_release);
}

unsigned probe_level(void)
{
	struct shm_header *h = gate_header(gate_get());

	return h ? atomic_load_explicit(&h->level, memory_order_relaxed) : LEVEL_OFF;
}

uint64_t probe_tick(void)
{
	struct gate *g = gate_get();
	uint32_t source;

	if (gate_header(g))
		return tick_read(g->tick_source);
	source = atomic_load_explicit(&tick_source, memory_order_relaxed);
	if (source == UINT32_MAX) {
		int saved_errno = errno;

		source = (uint32_t)tick_detect();
		atomic_store_explicit(&tick_source, source, memory_order_relaxed);
		errno = saved_errno;
	}
	return tick_read(source);
}

void probe_set_step(uint32_t step)
{
	struct shm_header *h = gate_header(gate_get());

	if (h)
		atomic_store_explicit(&h->step, step, memory_order_relaxed);
}

uint32_t probe_step(void)
{
	struct shm_header *h = gate_header(gate_get());

	return h ? atomic_load_explicit(&h->step, memory_order_relaxed) : EVENT_STEP_UNKNOWN;
}

const struct shm_header *probe_header(void)
{
	return gate_header(gate_get());
}

void probe_stats(struct probe_stats *ret)
{
	struct gate *g = gate_get();
	struct shm_header *h = gate_header(g);

	*ret = (struct probe_stats){ .file = "" };
	switch (atomic_load_explicit(&probe_start_state, memory_order_acquire)) {
	case START_UNDECIDED:
		ret->off = PROBE_NOT_STARTED;
		return;
	case START_RUNNING:
		ret->off = PROBE_STARTING;
		return;
	}
	ret->off = why_off;
	ret->system_error = file.system_error;
	if (why_off != PROBE_ON)
		return;
	if (!h) {
		ret->off = PROBE_FORKED;
		return;
	}
	ret->file = file.path;
	ret->level = atomic_load_explicit(&h->level, memory_order_relaxed);
	ret->n_rings = g->n_rings;
	ret->n_threads_without_ring =
		atomic_load_explicit(&h->n_threads_without_ring, memory_order_relaxed);
	ret->n_dropped = atomic_load_explicit(&h->n_dropped_without_ring, memory_order_relaxed);
	ret->n_text_dropped = atomic_load_explicit(&h->text.n_dropped, memory_order_relaxed);
	ret->n_names_dropped = atomic_load_explicit(&h->strings.n_dropped, memory_order_relaxed);
	for (uint32_t i = 0; i < g->n_rings; i++) {
		struct shm_ring *r = &g->rings[i];

		ret->n_events += atomic_load_explicit(&r->head, memory_order_relaxed);
		ret->n_dropped += atomic_load_explicit(&r->n_dropped, memory_order_relaxed);
		ret->n_rings_taken += atomic_load_explicit(&r->state, memory_order_relaxed) ==
				      SHM_RING_OWNED;
	}
}
