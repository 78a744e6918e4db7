/* breakdown_device.c - one rank in one step, where its device tells what ran.
 *
 * Kernels count as they ran, communication where no kernel did. What is left is
 * idle: part of it the loop spent blocked in calls of its own (communication too),
 * in the data phase or in work that the program names.
 */
#include "steps_internal.h"

/* What of an idle piece the host spent how. */
static void look_at_host(struct steps *s, const struct step *st, const struct rank_step *rs,
			 int64_t begin, int64_t end, struct fact_rank_step *f)
{
	for (uint32_t i = rs->items; i; i = st->items[i - 1].next) {
		const struct step_item *it = &st->items[i - 1];
		int64_t from = it->begin_ns > begin ? it->begin_ns : begin;
		int64_t to = it->end_ns < end ? it->end_ns : end;

		if (to <= from)
			continue;
		if (it->kind == ITEM_SYNC) {
			f->exposed_comm_ns += to - from;
			steps_add_wait(s, rs->proc, &(struct blocked){ from, to, it->group, it->seq },
				       from, to, f);
		} else if (it->kind == ITEM_WORK) {
			f->host_ns += to - from;
		} else if (it->kind == ITEM_PHASE && it->phase == PHASE_DATA) {
			f->input_wait_ns += to - from;
		}
	}
}

int steps_break_down_device(struct steps *s, const struct step *st, const struct rank_step *rs,
			    struct fact_rank_step *f)
{
	int64_t tail_ns = rs->device_ns > rs->from_ns ? rs->device_ns : rs->from_ns;

	f->host_ns = 0;
	for (uint32_t i = rs->items; i; i = st->items[i - 1].next) {
		const struct step_item *it = &st->items[i - 1];
		int64_t begin = it->begin_ns, end = it->end_ns;

		if (it->kind != ITEM_CALL && it->kind != ITEM_IDLE)
			continue;
		steps_clip(&begin, &end, rs);
		if (end <= begin)
			continue;
		if (it->kind == ITEM_IDLE) {
			look_at_host(s, st, rs, begin, end, f);
			continue;
		}
		f->exposed_comm_ns += end - begin;
		steps_add_wait(s, rs->proc, &(struct blocked){ begin, end, it->group, it->seq },
			       begin, end, f);
	}
	if (rs->to_ns > tail_ns)
		look_at_host(s, st, rs, tail_ns, rs->to_ns, f);
	f->exposed_comm_ns += rs->more_calls_ns;
	f->wait_err_ns += rs->more_calls_ns;
	if (f->exposed_comm_ns > f->dur_ns) /* host threads blocked side by side */
		f->exposed_comm_ns = f->dur_ns;
	f->self_ns = f->dur_ns - f->exposed_comm_ns;
	f->compute_ns = rs->compute_ns < f->self_ns ? rs->compute_ns : f->self_ns;
	f->idle_ns = f->self_ns - f->compute_ns;
	if (f->host_ns > f->idle_ns)
		f->host_ns = f->idle_ns;
	if (f->input_wait_ns > f->idle_ns)
		f->input_wait_ns = f->idle_ns;
	return 0;
}
