/* api.c - the public calls: the guest's own, plus a start at the first of them. */
#define SYNCLINE_PROBE_BUILD
#include "syncline_probe.h"
#include "emit.h"
#include "start.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool has(const char *variable)
{
	const char *v = secure_getenv(variable);

	return v && *v;
}

/* -1 when it is missing or no number. */
static int number(const char *variable)
{
	const char *v = secure_getenv(variable);
	char *end;
	long n;

	if (!v || !*v)
		return -1;
	n = strtol(v, &end, 10);
	return *end == 0 && n >= 0 && n <= INT_MAX ? (int)n : -1;
}

static enum probe_off wanted_here(void)
{
	int rank_pid = number("SYNCLINE_RANK_PID");

	if (!has("SYNCLINE_RUN") && !has("SYNCLINE_DIR") && !has("SYNCLINE_COLLECTOR"))
		return PROBE_NOT_ASKED;
	if (rank_pid > 0 && rank_pid != getpid())
		return PROBE_NOT_RANK;
	return PROBE_ON;
}

int syncline_start(void)
{
	int saved_errno = errno;

	if (atomic_load_explicit(&probe_start_state, memory_order_acquire) == START_UNDECIDED &&
	    probe_start_unless(wanted_here()) == PROBE_ON &&
	    probe_header()->identity.rank < 0) {
		int restart = number("TORCHELASTIC_RESTART_COUNT");

		probe_identity(number("RANK"), number("LOCAL_RANK"), number("WORLD_SIZE"),
			       number("LOCAL_WORLD_SIZE"), restart < 0 ? 0 : restart,
			       secure_getenv("SYNCLINE_RUN"));
	}
	errno = saved_errno;
	return gate_header(gate_get()) != NULL;
}

/* Nobody has started the probe: do it, then put the event that asked. */
static __attribute__((noinline, cold)) void first_event(uint64_t head, uint64_t a, uint64_t b)
{
	struct what w = { head, a, b };

	if (atomic_load_explicit(&probe_start_state, memory_order_relaxed) == START_UNDECIDED)
		(void)syncline_start();
	emit(LEVEL_DEFAULT, w, emit_early);
}

static inline __attribute__((always_inline)) void event(struct what w)
{
	emit(LEVEL_DEFAULT, w, first_event);
}

uint32_t syncline_name(const char *name)
{
	if (unlikely(atomic_load_explicit(&probe_start_state, memory_order_relaxed) ==
		     START_UNDECIDED))
		(void)syncline_start();
	return probe_name(name);
}

void syncline_mark(uint32_t name, uint64_t a, uint64_t b)
{
	event(what_of(EVENT_MARK, 0, name, a, b));
}

void syncline_scope_begin(uint32_t name, uint64_t value)
{
	event(what_of(EVENT_SCOPE_BEGIN, 0, name, value, 0));
}

void syncline_scope_end(uint32_t name, uint64_t value)
{
	event(what_of(EVENT_SCOPE_END, 0, name, value, 0));
}

void syncline_counter(uint32_t name, double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof bits);
	event(what_of(EVENT_COUNTER, 0, name, bits, 0));
}

unsigned syncline_level(void)
{
	return probe_level();
}

void syncline_get_status(struct syncline_status *s)
{
	struct syncline_status now = { 0 };
	struct probe_stats p;
	size_t n;

	if (!s)
		return;
	n = s->size < sizeof now ? s->size : sizeof now;
	probe_stats(&p);
	now.size = n;
	now.on = p.off == PROBE_ON;
	now.level = p.level;
	now.system_error = p.system_error;
	now.reason = probe_off_text(p.off);
	now.file = p.file;
	now.n_events_dropped = p.n_dropped;
	now.n_texts_dropped = p.n_text_dropped;
	now.n_names_dropped = p.n_names_dropped;
	memcpy(s, &now, n);
}
