#include "gate.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

static struct gate closed_gate;

struct gate *_Atomic probe_gate = &closed_gate;
_Atomic uint32_t probe_start_state;

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
	atomic_store_explicit(&probe_gate, g, memory_order_release);
}
