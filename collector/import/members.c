#include "members.h"

#include "source.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PIECE_BYTES (128u << 10)
#define TAR_MAGIC_AT 257

struct walk {
	struct files *f;
	char *path; /* of the archive */
	uint64_t n_bytes, max_bytes;
	struct source source;
	unsigned char piece[PIECE_BYTES], out[PIECE_BYTES];
	char why[200];
};

bool members_are_in(const struct trace_input *in)
{
	struct source *s = calloc(1, sizeof *s);
	unsigned char head[512];
	size_t n = 0;
	ptrdiff_t got;
	bool are = false;

	if (!s)
		return false;
	if (source_open_input(s, in)) {
		while (n < sizeof head && (got = source_read(s, head + n, sizeof head - n)) > 0)
			n += (size_t)got;
		are = (n == sizeof head && memcmp(head + TAR_MAGIC_AT, "ustar", 5) == 0) ||
		      (n > 30 && memcmp(head, "PK\3\4", 4) == 0);
	}
	source_close(s);
	free(s);
	return are;
}

/* A file without a name, in which all members are. */
static bool open_spool(struct files *f)
{
	const char *folder = f->tmp ? f->tmp : "/tmp";
	char name[4096];

	if (f->spool_fd > 0)
		return true;
	f->spool_fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC | O_EXCL, 0600);
	if (f->spool_fd > 0)
		return true;
	snprintf(name, sizeof name, "%s/syncline-XXXXXX", folder);
	f->spool_fd = mkostemp(name, O_CLOEXEC);
	if (f->spool_fd > 0)
		unlink(name);
	return f->spool_fd > 0;
}

static la_ssize_t give(struct archive *a, void *arg, const void **ret)
{
	struct walk *w = arg;
	ptrdiff_t got = source_read(&w->source, w->piece, sizeof w->piece);

	*ret = w->piece;
	if (got < 0)
		archive_set_error(a, EIO, "%s", w->source.why);
	return got;
}

static bool write_all(int fd, const unsigned char *p, size_t n, uint64_t at)
{
	while (n > 0) {
		ssize_t done = pwrite(fd, p, n, (off_t)at);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return false;
		p += done;
		n -= (size_t)done;
		at += (uint64_t)done;
	}
	return true;
}

/* The member's bytes behind those that are there. */
static bool spool(struct walk *w, struct archive *a, uint64_t *ret_bytes)
{
	la_ssize_t got;

	*ret_bytes = 0;
	while ((got = archive_read_data(a, w->out, sizeof w->out)) > 0) {
		if (w->n_bytes + (uint64_t)got > w->max_bytes) {
			snprintf(w->why, sizeof w->why, "is refused: it unpacks to more than %d times its size",
				 SOURCE_GROWTH);
			return false;
		}
		if (!write_all(w->f->spool_fd, w->out, (size_t)got, w->f->n_spooled)) {
			snprintf(w->why, sizeof w->why, "cannot be unpacked: %s", strerror(errno));
			return false;
		}
		*ret_bytes += (uint64_t)got;
		w->n_bytes += (uint64_t)got;
		w->f->n_spooled += (uint64_t)got;
	}
	if (got < 0 && !w->why[0])
		snprintf(w->why, sizeof w->why, "%s",
			 w->source.why[0] ? w->source.why : "cannot be read to its end: it is damaged or cut off");
	return got == 0;
}

static bool is_hidden(const char *name)
{
	for (const char *part = name; part; part = strchr(part, '/')) {
		part += *part == '/';
		if (part[0] == '.' && part[strspn(part, ".")] != '/')
			return true;
	}
	return strncmp(name, "__MACOSX/", 9) == 0;
}

/* False at an end of it: why, or no memory. */
static bool take_member(struct walk *w, struct archive *a, struct archive_entry *entry)
{
	const char *name = archive_entry_pathname(entry);
	uint64_t at = w->f->n_spooled, n_bytes;
	struct trace_input *in;
	char *label;

	if (archive_entry_filetype(entry) != AE_IFREG || archive_entry_hardlink(entry))
		return true;
	if (name && is_hidden(name)) {
		w->f->n_hidden++;
		return true;
	}
	if (w->f->n >= FILES_MAX) {
		snprintf(w->why, sizeof w->why, "has more files than the %d that are read at once", FILES_MAX);
		return false;
	}
	if (!spool(w, a, &n_bytes) || asprintf(&label, "%s: %s", w->path, name ? name : "?") < 0)
		return false;
	in = files_new(w->f, label, true);
	free(label);
	if (!in)
		return false;
	in->member = true;
	in->fd = w->f->spool_fd;
	in->at = at;
	in->n_file_bytes = n_bytes;
	return true;
}

static void take_all(struct walk *w, const struct trace_input *of)
{
	struct archive *a = archive_read_new();
	struct archive_entry *entry;
	int r = ARCHIVE_FATAL;

	if (a && source_open_input(&w->source, of)) {
		archive_read_support_format_tar(a);
		archive_read_support_format_zip_streamable(a);
		r = archive_read_open(a, w, NULL, give, NULL);
		while (r == ARCHIVE_OK && !w->why[0] &&
		       ((r = archive_read_next_header(a, &entry)) == ARCHIVE_OK || r == ARCHIVE_WARN))
			r = take_member(w, a, entry) ? ARCHIVE_OK : ARCHIVE_FATAL;
	}
	if (r != ARCHIVE_EOF && !w->why[0])
		snprintf(w->why, sizeof w->why, "%s",
			 w->source.why[0] ? w->source.why : "cannot be read to its end: it is damaged or cut off");
	if (a)
		archive_read_free(a);
	source_close(&w->source);
}

static int by_name(const void *a, const void *b)
{
	const struct trace_input *x = a, *y = b;
	int r = strverscmp(x->path, y->path);

	return r ? r : strcmp(x->path, y->path);
}

bool members_add(struct files *f, uint32_t at)
{
	struct walk *w = calloc(1, sizeof *w);
	struct trace_input of = f->v[at];
	uint32_t first = f->n;

	if (!w)
		return false;
	w->f = f;
	w->path = (char *)of.path;
	w->max_bytes = SOURCE_FREE_BYTES + SOURCE_GROWTH * of.n_file_bytes;
	if (open_spool(f))
		take_all(w, &of);
	else
		snprintf(w->why, sizeof w->why, "cannot be unpacked: %s", strerror(errno));
	if (f->n == first && !w->why[0])
		snprintf(w->why, sizeof w->why, "is an archive without a file");
	qsort(f->v + first, f->n - first, sizeof *f->v, by_name);
	if (w->why[0]) {
		f->v[at].settled = true;
		snprintf(f->v[at].outcome, sizeof f->v[at].outcome, "%s", w->why);
	} else { /* it is all in its members */
		memmove(f->v + at, f->v + at + 1, (f->n - at - 1) * sizeof *f->v);
		f->n--;
		free((char *)of.path);
	}
	free(w);
	return true;
}
