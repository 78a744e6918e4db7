/* place.h - where the raw events of a process lie on the time line.
 *
 * A host with the collector's clock lies there exactly. For any other the table of
 * collectives is the measure: it says where the analysis put this rank's arrivals, the raw
 * events say when they were on the host's clock, and what lies between two arrivals is
 * placed between them. So a kernel lies before the call that it lay before. Where there are
 * no calls, or a job was started more than once, the estimates of the host's clock place it.
 */
#pragma once

#include "export.h"

#include "../proto/event.h"

struct place;

/* NULL without memory. */
struct place *place_new(struct export *e);
void place_free(struct place *p); /* NULL is fine */

/* This rank's arrival at that call, as the analysis has it. */
void place_note(struct place *p, int32_t rank, const char *comm, uint64_t seq, int64_t arrival_ns);

/* For the process whose events follow. True when it wants to see their COLL_BEGINs first. */
bool place_process(struct place *p, uint32_t process);
void place_see(struct place *p, const struct event *ev, const char *comm);
void place_seen(struct place *p);

/* Fleet time of an instant of that process. */
int64_t place_at(const struct place *p, int64_t host_ns);
