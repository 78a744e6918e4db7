/* clock_offset.h - clock.offset: the wall clock of a host is not where the others' are.
 *
 * syncline's own times do not suffer, but log lines, file times and other tools'
 * stamps do, and whoever lines them up by hand blames the wrong host. So this is
 * a notice, told once a host (again when the offset has changed by half).
 *
 * The offset of a host's wall clock is CLOCK_REALTIME less the fleet's time at
 * one and the same instant. Hosts are compared with the median of all of them,
 * by intervals: the bounds of the host and of the median must lie apart by more
 * than an offset that lines of a log would hide anyway. With two hosts it cannot
 * be known whose clock is wrong; then the pair is named.
 *
 * Neighbours it must not be taken for: clock.step (a clock that was moved while
 * the job ran: its offset changes, here the current one is told), and the boot-time
 * epochs of raw clocks, which differ always and mean nothing.
 */
#pragma once

#include "../facts.h"

struct clock_offset;

int clock_offset_new(struct clock_offset **ret);
void clock_offset_free(struct clock_offset *c);

/* At this fleet instant the host's wall clock was ahead by wall_ns, ± err_ns
 * (FACT_UNBOUNDED: not known). 0 or -ENOMEM. */
int clock_offset_wall(struct clock_offset *c, uint32_t host, int64_t at_ns, int64_t wall_ns,
		      int64_t err_ns);

/* Compare, once a second at most. step: where the run is. name_of: of a host, or
 * NULL. 0 or -ENOMEM. */
int clock_offset_look(struct clock_offset *c, int64_t now_ns, uint32_t step,
		      const char *(*name_of)(void *arg, uint32_t host), void *arg,
		      struct facts *facts);
