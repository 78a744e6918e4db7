/* members.h - what is in a tar or zip archive, as files to import.
 *
 * Members go, one behind the other, into a file that has no name, and are read from there as
 * files are: each on its own, in any order, by several threads. Their names are only shown.
 */
#pragma once

#include "files.h"

/* Is that file such an archive, packed or not? */
bool members_are_in(const struct trace_input *in);
/* Adds what is in f->v[at], which then is settled itself. Its own place goes to the first of
 * them: an archive that is read to its end is no input. False only without memory. */
bool members_add(struct files *f, uint32_t at);
