/* export_file.c - where an export goes: a file that is there whole or not at all.
 *
 * It is written under a name of its own in the same folder and renamed at the end, so
 * that a viewer never opens half of it and a failure leaves what was there before.
 */
#include "cli.h"
#include "export.h"
#include "part.h"
#include "term.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BUFFER_BYTES (1 << 20)

/* run.db becomes run.pftrace, beside whoever asked. */
static char *default_path(const char *db_path, const char *ending)
{
	const char *slash = strrchr(db_path, '/'), *name = slash ? slash + 1 : db_path;
	const char *dot = strrchr(name, '.');
	int n = dot && dot != name ? (int)(dot - name) : (int)strlen(name);
	char *path = NULL;

	return asprintf(&path, "%.*s%s", n, name, ending) < 0 ? NULL : path;
}

static bool is_same_file(const struct stat *a, const char *path)
{
	struct stat b;

	return stat(path, &b) == 0 && a->st_dev == b.st_dev && a->st_ino == b.st_ino;
}

static bool may_replace(const struct export *e)
{
	struct stat st;

	if (stat(e->final_path, &st) != 0)
		return true;
	if (is_same_file(&st, e->db_path)) {
		cli_say("%s is the database itself", e->final_path);
		return false;
	}
	if (!S_ISREG(st.st_mode)) {
		cli_say("%s is there and is no file", e->final_path);
		return false;
	}
	if (e->force)
		return true;
	cli_say("%s is there already. Name another with -o, or write over it with --force", e->final_path);
	return false;
}

static bool open_stdout(struct export *e, const struct export_format *f)
{
	if (isatty(STDOUT_FILENO)) {
		cli_say("%s is not for a terminal. Name a file with -o, or send it into one", f->name);
		return false;
	}
	e->out = stdout;
	setvbuf(e->out, NULL, _IOFBF, BUFFER_BYTES);
	return true;
}

int export_open(struct export *e, const struct export_format *f)
{
	int fd = -1;

	if (e->out_path && strcmp(e->out_path, "-") == 0)
		return open_stdout(e, f) ? EXIT_FINE : EXIT_USAGE;
	e->final_path = e->out_path ? strdup(e->out_path) : default_path(e->db_path, f->ending);
	if (!e->final_path) {
		cli_say("there is not enough memory");
		return EXIT_UNREACHED;
	}
	if (!may_replace(e))
		return EXIT_USAGE;
	if (asprintf(&e->part_path, "%s.part-XXXXXX", e->final_path) < 0)
		e->part_path = NULL;
	fd = e->part_path ? part_make(e->part_path) : -1;
	if (fd >= 0)
		e->out = fdopen(fd, "w");
	if (!e->out) {
		cli_say("cannot write %s: %s", e->final_path, strerror(errno));
		if (fd >= 0) {
			close(fd);
			unlink(e->part_path);
		}
		return EXIT_UNREACHED;
	}
	setvbuf(e->out, NULL, _IOFBF, BUFFER_BYTES);
	return EXIT_FINE;
}

/* What open(2) would have given a new file. */
static void set_mode(int fd)
{
	mode_t mask = umask(0);

	umask(mask);
	fchmod(fd, 0666 & ~mask);
}

bool export_close(struct export *e, bool fine)
{
	bool written;

	if (!e->out)
		return false;
	written = fflush(e->out) == 0 && !ferror(e->out);
	if (!written)
		cli_say("cannot write %s: %s", e->final_path ? e->final_path : "the output", strerror(errno));
	if (e->out == stdout)
		return fine && written;
	set_mode(fileno(e->out));
	if (fclose(e->out) != 0 && written) {
		cli_say("cannot write %s: %s", e->final_path, strerror(errno));
		written = false;
	}
	e->out = NULL;
	fine = fine && written;
	if (fine && rename(e->part_path, e->final_path) != 0) {
		cli_say("cannot write %s: %s", e->final_path, strerror(errno));
		fine = false;
	}
	if (!fine)
		unlink(e->part_path);
	return fine;
}

void export_progress(const struct export *e, double share)
{
	if (!e->terminal)
		return;
	if (share >= 1)
		fputs("\r\033[K", stderr);
	else
		fprintf(stderr, "\r\033[KExporting %3.0f %%", 100 * share);
	fflush(stderr);
}
