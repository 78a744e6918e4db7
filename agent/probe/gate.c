#define SYNCLINE_PROBE_BUILD
#include "gate.h"
#include "syncline_probe.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

/* The level of a probe that is not started yet: whoever wants to record must ask. */
static uint32_t closed_level = UINT32_MAX;
static struct gate closed_gate = { .level = &closed_level };

struct gate *_Atomic probe_gate = &closed_gate;
_Atomic uint32_t probe_start_state;
const uint32_t *const *syncline_level_place = &closed_gate.level;

int gate_new(struct gate **ret)
{
	size_t n = (size_t)sysconf(_SC_PAGESIZE);
	void *page;
	int r;

	page = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED)
		return errno;
	if (madvise(page, n, MADV_WIPEONFORK) != 0) {
		r = errno;
		munmap(page, n);
		return r;
	}
	*ret = page;
	return 0;
}

void gate_open(struct gate *g, struct shm_header *h)
{
	atomic_store_explicit(&g->header, h, memory_order_relaxed);
	static_assert(sizeof h->level == sizeof *g->level, "read as a plain word");
	__atomic_store_n(&g->level, (const uint32_t *)&h->level, __ATOMIC_RELAXED);
	atomic_store_explicit(&probe_gate, g, memory_order_release);
	__atomic_store_n(&syncline_level_place, &g->level, __ATOMIC_RELEASE);
}

void gate_close(void)
{
	__atomic_store_n(&closed_level, 0, __ATOMIC_RELAXED);
}
