/* mask.h - names of people and machines out of what an import stores.
 *
 * A name gets a mark, host-3f9a01c2, the same for the same name within one catalogue. It is keyed
 * by random bytes that are forgotten with the mask: names of hosts are easy to guess, so a
 * mark that anybody can make again would say them.
 *
 * Known by their look are home folders, addresses and user@host. Other names have to be
 * learned: from what says that it is one (a field `hostname`, the host of a rank). Then they
 * are found anywhere, whole words only.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum mask_sort { MASK_HOST, MASK_USER };

struct mask;

struct mask *mask_new(void); /* NULL without memory or random bytes */
void mask_free(struct mask *m);
/* A name that is one for sure. "rank 3" and what else has a space is no name of a machine. */
void mask_learn(struct mask *m, enum mask_sort sort, const char *name);
/* Names within a file's path: of the user whose home it is in, of the host that the profiler
 * puts before its process. */
void mask_learn_path(struct mask *m, const char *path);
/* Names in the values of a JSON object of records, by their keys, and in what it nests. */
void mask_learn_fields(struct mask *m, const char *json);
/* Is a field or column of that name one of hosts or of people? */
bool mask_knows_key(const char *key, enum mask_sort *ret_sort);
/* The whole of name is one. Owned by the caller; NULL without memory, as with all of these. */
char *mask_name(struct mask *m, enum mask_sort sort, const char *name);
/* A text with names in it: a sentence, a path, a name of a kernel. */
char *mask_text(struct mask *m, const char *text);
/* A JSON object: keys are kept, texts are masked. */
char *mask_fields(struct mask *m, const char *json);
