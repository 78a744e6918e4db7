/* snapshots.c - all clocks of a host, once a second, and what was done to them.
 *
 * Events are on CLOCK_MONOTONIC_RAW, which nobody sets. CLOCK_REALTIME and
 * CLOCK_MONOTONIC run at one and the same adjusted rate, so what their difference
 * changes by between two snapshots is a step, exact but for the moments that the
 * readings took. BOOTTIME counts sleep and MONOTONIC does not. RAW and MONOTONIC
 * differ by the adjusted rate alone, which the kernel limits.
 */
#include "ingest_internal.h"

#include <errno.h>

#define MAX_APART_NS (600 * SECOND_NS) /* beyond, what happened in between is not one step */
#define LEAST_STEP_NS 1000
#define MAX_SLEW 600 /* ppm: the kernel's own limit is 500 */

static int64_t size_of(int64_t v)
{
	return v < 0 ? -v : v;
}

static void put_step(struct ingest *g, const struct row_snapshot *a, const struct row_snapshot *b,
		     const char *kind, int64_t step_ns, int64_t err_ns)
{
	struct row_clock_step *row;

	if (size_of(step_ns) <= err_ns + LEAST_STEP_NS)
		return;
	row = JOB_PUSH(g->job, clock_steps);
	if (!row) {
		ingest_fail(g, -ENOMEM);
		return;
	}
	*row = (struct row_clock_step){ .host = b->host, .from_ns = a->host_ns, .to_ns = b->host_ns,
					.kind = kind, .step_ns = step_ns, .err_ns = err_ns };
}

static void find_steps(struct ingest *g, const struct row_snapshot *a, const struct row_snapshot *b)
{
	int64_t mono_ns = b->mono_ns - a->mono_ns, raw_ns = b->host_ns - a->host_ns;
	int64_t slept_ns = (b->boot_ns - a->boot_ns) - mono_ns;
	int64_t err_ns = 2 * (a->half_ns + b->half_ns);
	int64_t wall_ns;

	if (slept_ns <= err_ns + LEAST_STEP_NS)
		slept_ns = 0;
	wall_ns = (b->real_ns - a->real_ns) - mono_ns - slept_ns;
	put_step(g, a, b, "suspend", slept_ns, err_ns);
	put_step(g, a, b, "wall", wall_ns, err_ns);
	put_step(g, a, b, "raw", raw_ns - mono_ns, err_ns + raw_ns / 1000000 * MAX_SLEW + MAX_SLEW);
}

static bool is_sane(const struct frame_snapshot *v)
{
	return ingest_sane_raw(v->raw_ns) && ingest_sane_raw(v->mono_ns) &&
	       ingest_sane_raw(v->boot_ns) && ingest_sane_raw(v->real_ns);
}

void ingest_snapshot(struct ingest *g, const struct agent *a, const struct frame_snapshot *v)
{
	struct host *h = &g->peers.hosts[a->host];
	bool in_order = !h->has_snapshot || h->snapshot_agent == a->id;
	struct row_snapshot *row;

	if (!is_sane(v))
		return;
	row = JOB_PUSH(g->job, snapshots);
	if (!row) {
		ingest_fail(g, -ENOMEM);
		return;
	}
	*row = (struct row_snapshot){
		.host = a->host, .host_ns = v->raw_ns, .half_ns = v->half_ns, .mono_ns = v->mono_ns,
		.real_ns = v->real_ns, .boot_ns = v->boot_ns, .tick_source = v->tick_source,
		.tick = v->tick,
	};
	if (h->has_snapshot && row->host_ns > h->snapshot.host_ns &&
	    row->host_ns - h->snapshot.host_ns < MAX_APART_NS)
		find_steps(g, &h->snapshot, row);
	if (core_wall(g->core, a->host, (host_time){ v->raw_ns }, v->real_ns, v->half_ns) != 0)
		ingest_fail(g, -ENOMEM);
	/* What an earlier agent kept in its spool comes late and is no news; what one and
	 * the same agent tells is in order, even where all its clocks ran back. */
	if (in_order || row->host_ns > h->snapshot.host_ns) {
		h->snapshot = *row;
		h->snapshot_agent = a->id;
		h->has_snapshot = true;
	}
}
