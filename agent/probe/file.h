/* file.h - the shared file, made whole or not at all.
 *
 * Prepared under another name, then renamed: an agent that lists the directory
 * sees only files that are allocated, locked and have a header. Opened once and
 * never closed while the process lives, because the kernel drops a process's
 * record locks when it closes any descriptor of the file.
 */
#pragma once

#include "probe.h"

#include <limits.h>
#include <stddef.h>
#include <sys/types.h>

struct file {
	int fd;
	dev_t device; /* with inode: is fd still ours? */
	ino_t inode;
	void *map;
	size_t n_bytes;
	int system_error; /* errno behind an answer other than PROBE_ON */
	int dir_fd;       /* between file_new() and file_publish() */
	char name[64];    /* without suffix */
	char path[PATH_MAX]; /* of the published file, "" = none */
};

/* Create, allocate, map and lock <pid>-<unique>.new in $SYNCLINE_DIR. The bytes
 * are zero. On any answer but PROBE_ON nothing is left behind. */
enum probe_off file_new(struct file *f, uint64_t unique);
/* Rename it to .ring, or take everything back. */
enum probe_off file_publish(struct file *f);
/* In a forked child: let go of what was inherited, touch nothing shared. */
void file_forget(struct file *f);
