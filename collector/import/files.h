/* files.h - what there is to import: files that were named, and those of named folders.
 *
 * They come in the order of the command line, those of a folder sorted by name. Links in
 * a folder are not followed, hidden files not looked at, and a file whose content was
 * there before counts once. An archive is a folder.
 */
#pragma once

#include "trace.h"

#define FILES_MAX 65536
#define FILES_MAX_DEPTH 16

struct files {
	struct trace_input *v; /* paths are owned */
	uint32_t n, n_alloc;
	uint32_t n_hidden;   /* in folders, and not in v */
	char hidden[4096];   /* the first of them; "" */
	uint64_t n_bytes;    /* of what is to be read */
	const char *tmp;     /* the caller's: where members of archives may be kept meanwhile; NULL: /tmp */
	int spool_fd;	     /* of all members; 0 = none yet */
	uint64_t n_spooled;
};

/* A file, or a folder with what is in it. False only without memory. */
bool files_add(struct files *f, const char *path);
/* Once all are added: what is there twice, packed or not, is skipped. False only without memory. */
bool files_skip_copies(struct files *f);
/* One more, at the end; the path is copied. NULL without memory. */
struct trace_input *files_new(struct files *f, const char *path, bool found);
void files_fini(struct files *f); /* zeroed is fine */
/* The format that a file looks like by its begin, NULL when none; why then has a sentence. */
const char *files_look(const struct trace_input *in, char *why, size_t n_why);
