#include "import_db.h"
#include "part.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_database(const char *path)
{
	char head[16] = "";
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;
	bool is = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
		  (st.st_size == 0 || (read(fd, head, sizeof head) == sizeof head &&
				       memcmp(head, "SQLite format 3", sizeof head) == 0));

	if (fd >= 0)
		close(fd);
	return is;
}

/* The folder that it goes into. */
static bool check_folder(const char *path, char *why, size_t n_why)
{
	char *copy = strdup(path);
	const char *folder = copy ? dirname(copy) : ".";
	struct stat st;
	bool fine = false;

	if (stat(folder, &st) != 0)
		snprintf(why, n_why, "cannot make %s: the folder %s: %s", path, folder, strerror(errno));
	else if (!S_ISDIR(st.st_mode))
		snprintf(why, n_why, "cannot make %s: %s is no folder", path, folder);
	else if (access(folder, W_OK | X_OK) != 0)
		snprintf(why, n_why, "cannot make %s: the folder %s: %s", path, folder, strerror(errno));
	else
		fine = true;
	free(copy);
	return fine;
}

bool import_db_check(struct import_db *d, char *why, size_t n_why)
{
	struct stat st;

	if (!check_folder(d->path, why, n_why))
		return false;
	if (lstat(d->path, &st) == 0 && !d->force) {
		snprintf(why, n_why,
			 "%s is there already. Remove it, name another file with --db, or replace it with --force",
			 d->path);
		return false;
	}
	if (lstat(d->path, &st) == 0 && !is_database(d->path)) {
		snprintf(why, n_why, "%s is no database: --force replaces nothing else", d->path);
		return false;
	}
	if ((size_t)snprintf(d->part, sizeof d->part, "%s.part-%d", d->path, (int)getpid()) >= sizeof d->part) {
		snprintf(why, n_why, "cannot make %.200s…: %s", d->path, strerror(ENAMETOOLONG));
		return false;
	}
	part_watch(d->part);
	return true;
}

/* Over nobody: a file that came while we read is somebody's. */
static int move(const char *from, const char *to)
{
	if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0)
		return 0;
	if (errno != EINVAL && errno != ENOSYS) /* this file system cannot say so at once */
		return -1;
	return link(from, to) == 0 ? unlink(from) : -1;
}

static void forget_journals(const char *path)
{
	static const char *const suffixes[] = { "-wal", "-shm" };
	char name[4096 + 8];

	for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
		snprintf(name, sizeof name, "%s%s", path, suffixes[i]);
		unlink(name);
	}
}

bool import_db_finish(struct import_db *d, char *why, size_t n_why)
{
	if (d->force)
		forget_journals(d->path); /* of the one that goes: they are no part of this */
	if ((d->force ? rename(d->part, d->path) : move(d->part, d->path)) == 0)
		return true;
	snprintf(why, n_why, errno == EEXIST ? "%s was made by somebody else meanwhile (%s)" : "cannot make %s: %s",
		 d->path, strerror(errno));
	part_forget();
	return false;
}
