/* export_ask.h - a collector on a file, for one who asks it and goes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct asker {
	pid_t pid;
	char url[256];
	void *curl;
	char why[512]; /* "" = all is well */
};

struct asked {
	long code;
	char *bytes; /* the caller's; ends with a zero that is not counted */
	size_t n_bytes;
};

/* NULL only without memory; else why says what did not work. */
struct asker *asker_start(const char *db_path);
void asker_stop(struct asker *a); /* NULL is fine */
/* False with why: nobody answers. Any HTTP status is an answer, but that the file is still read. */
bool asker_get(struct asker *a, const char *base, const char *path, struct asked *ret);
