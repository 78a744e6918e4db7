#include "files.h"

#include "format.h"
#include "members.h"
#include "source.h"

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <nettle/sha2.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- one input ---- */

struct trace_input *files_new(struct files *f, const char *path, bool found)
{
	struct trace_input *in;

	if (f->n == f->n_alloc) {
		uint32_t want = f->n_alloc ? 2 * f->n_alloc : 16;
		struct trace_input *grown = realloc(f->v, want * sizeof *grown);

		if (!grown)
			return NULL;
		f->v = grown;
		f->n_alloc = want;
	}
	in = &f->v[f->n];
	*in = (struct trace_input){ .path = strdup(path), .rank = -1, .found = found };
	if (!in->path)
		return NULL;
	f->n++;
	return in;
}

static void settle(struct trace_input *in, bool skipped, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
static void settle(struct trace_input *in, bool skipped, const char *fmt, ...)
{
	va_list ap;

	in->settled = true;
	in->skipped = skipped;
	va_start(ap, fmt);
	vsnprintf(in->outcome, sizeof in->outcome, fmt, ap);
	va_end(ap);
}

/* ---- folders ---- */

/* rank2 goes before rank10. */
static int by_name(const FTSENT **a, const FTSENT **b)
{
	int r = strverscmp((*a)->fts_name, (*b)->fts_name);

	return r ? r : strcmp((*a)->fts_name, (*b)->fts_name);
}

static void hide(struct files *f, const FTSENT *e)
{
	if (f->n_hidden++ == 0)
		snprintf(f->hidden, sizeof f->hidden, "%s", e->fts_path);
}

static bool take_entry(struct files *f, FTS *fts, FTSENT *e)
{
	struct trace_input *in;

	if (e->fts_info == FTS_DP)
		return true;
	if (e->fts_level > 0 && e->fts_name[0] == '.') {
		hide(f, e);
		fts_set(fts, e, FTS_SKIP);
		return true;
	}
	if (e->fts_info == FTS_D && e->fts_level <= FILES_MAX_DEPTH)
		return true;
	in = files_new(f, e->fts_path, true);
	if (!in)
		return false;
	switch (e->fts_info) {
	case FTS_F:
		in->n_file_bytes = (uint64_t)e->fts_statp->st_size;
		return !members_are_in(in) || members_add(f, f->n - 1);
	case FTS_D:
		fts_set(fts, e, FTS_SKIP);
		settle(in, false, "is more than %d folders deep and was not looked into", FILES_MAX_DEPTH);
		break;
	case FTS_SL:
	case FTS_SLNONE:
		settle(in, true, "skipped: a link, which is not followed in a folder; name it itself");
		break;
	case FTS_DNR:
	case FTS_ERR:
	case FTS_NS:
		settle(in, false, "cannot be read: %s", strerror(e->fts_errno));
		break;
	default:
		settle(in, true, "skipped: it is no file");
	}
	return true;
}

static bool walk(struct files *f, const char *path)
{
	char *roots[] = { (char *)path, NULL };
	FTS *fts = fts_open(roots, FTS_PHYSICAL | FTS_COMFOLLOW | FTS_NOCHDIR, by_name);
	uint32_t before = f->n;
	FTSENT *e = NULL;
	bool fine = fts != NULL;

	while (fine && f->n < FILES_MAX && (e = fts_read(fts)))
		fine = take_entry(f, fts, e);
	if (fts)
		fts_close(fts);
	if (!fine || (f->n > before && !e))
		return fine;
	fine = files_new(f, path, false) != NULL;
	if (fine)
		settle(&f->v[f->n - 1], false,
		       e ? "has more files than the %d that are read at once: the rest was not looked at"
			 : "is a folder without a file",
		       FILES_MAX);
	return fine;
}

bool files_add(struct files *f, const char *path)
{
	struct trace_input *in;
	struct stat st;

	if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
		return walk(f, path);
	in = files_new(f, path, false);
	if (in && stat(path, &st) != 0)
		settle(in, false, "cannot be read: %s", strerror(errno));
	else if (in)
		in->n_file_bytes = (uint64_t)st.st_size;
	return in && (in->settled || !members_are_in(in) || members_add(f, f->n - 1));
}

/* ---- what is there twice ---- */

struct copy {
	uint32_t at; /* in v */
	uint64_t n_bytes; /* unpacked; modulo 2^32, as gzip has it */
	uint8_t digest[SHA256_DIGEST_SIZE];
};

/* What unpacks to much more than it is, is not unpacked only to be compared. */
#define MAX_GROWTH 30

static bool read_size(const struct trace_input *in, uint64_t *ret_bytes)
{
	int fd = in->member ? in->fd : open(in->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	uint8_t head[2] = { 0 }, tail[4];
	off_t at = (off_t)in->at, end = at + (off_t)in->n_file_bytes;
	bool fine = fd >= 0 && end > at;

	*ret_bytes = in->n_file_bytes & UINT32_MAX;
	if (fine && pread(fd, head, 2, at) == 2 && head[0] == 0x1f && head[1] == 0x8b) {
		fine = end - at > 18 && pread(fd, tail, 4, end - 4) == 4;
		*ret_bytes = fine ? tail[0] | tail[1] << 8 | tail[2] << 16 | (uint64_t)tail[3] << 24 : 0;
		fine = fine && *ret_bytes / MAX_GROWTH < in->n_file_bytes + 65536;
	}
	if (fd >= 0 && !in->member)
		close(fd);
	return fine;
}

/* Of the first bytes, or of all. */
static bool digest(const struct trace_input *in, uint64_t n_max, uint8_t *out)
{
	struct source *s = malloc(sizeof *s);
	static unsigned char buf[1 << 16];
	struct sha256_ctx hash;
	ptrdiff_t got = -1;
	uint64_t n = 0;

	sha256_init(&hash);
	if (s && source_open_input(s, in))
		while (n < n_max && (got = source_read(s, buf, sizeof buf)) > 0) {
			sha256_update(&hash, (size_t)got, buf);
			n += (uint64_t)got;
		}
	if (s)
		source_close(s);
	free(s);
	sha256_digest(&hash, SHA256_DIGEST_SIZE, out);
	return got >= 0;
}

static int by_size(const void *a, const void *b)
{
	const struct copy *x = a, *y = b;

	if (x->n_bytes != y->n_bytes)
		return x->n_bytes < y->n_bytes ? -1 : 1;
	return (x->at > y->at) - (x->at < y->at);
}

static int by_digest(const void *a, const void *b)
{
	const struct copy *x = a, *y = b;
	int r = memcmp(x->digest, y->digest, sizeof x->digest);

	return r ? r : (x->at > y->at) - (x->at < y->at);
}

/* Of files of one size: those of one begin, and of those the ones that are the same to their
 * end. The size is nothing yet; the begin mostly is. */
static void compare(struct files *f, struct copy *v, size_t n, bool whole)
{
	size_t n_known = 0;

	for (size_t i = 0; i < n; i++)
		if (digest(&f->v[v[i].at], whole ? UINT64_MAX : 4096, v[i].digest))
			v[n_known++] = v[i];
	qsort(v, n_known, sizeof *v, by_digest);
	for (size_t from = 0, to; from < n_known; from = to) {
		for (to = from + 1; to < n_known && memcmp(v[from].digest, v[to].digest, sizeof v->digest) == 0; to++)
			if (whole)
				settle(&f->v[v[to].at], true, "skipped: its content is that of %s, which counts once",
				       f->v[v[from].at].path);
		if (!whole && to - from > 1)
			compare(f, v + from, to - from, true);
	}
}

bool files_skip_copies(struct files *f)
{
	struct copy *v = calloc((size_t)f->n + 1, sizeof *v);
	size_t n = 0;

	if (!v)
		return false;
	for (uint32_t i = 0; i < f->n; i++)
		if (!f->v[i].settled && read_size(&f->v[i], &v[n].n_bytes))
			v[n++].at = i;
	qsort(v, n, sizeof *v, by_size);
	for (size_t from = 0, to; from < n; from = to) {
		for (to = from + 1; to < n && v[to].n_bytes == v[from].n_bytes; to++)
			;
		if (to - from > 1)
			compare(f, v + from, to - from, false);
	}
	free(v);
	f->n_bytes = 0;
	for (uint32_t i = 0; i < f->n; i++)
		f->n_bytes += f->v[i].settled ? 0 : f->v[i].n_file_bytes;
	return true;
}

void files_fini(struct files *f)
{
	for (uint32_t i = 0; i < f->n; i++)
		free((char *)f->v[i].path);
	free(f->v);
	if (f->spool_fd > 0)
		close(f->spool_fd);
	*f = (struct files){ 0 };
}

/* ---- what it is ---- */

const char *files_look(const struct trace_input *in, char *why, size_t n_why)
{
	struct source *s = calloc(1, sizeof *s);
	const char *slash = strrchr(in->path, '/'), *name = NULL;

	snprintf(why, n_why, "is of no format that this release reads");
	if (s && source_open_input(s, in) && source_head(s)) {
		const struct import_head head = { s->head, s->n_head, slash ? slash + 1 : in->path };

		for (size_t i = 0; import_formats[i] && !name; i++)
			name = import_formats[i]->is(&head) ? import_formats[i]->name : NULL;
		if (s->n_head == 0)
			snprintf(why, n_why, "is empty");
	}
	if (s && !name && s->why[0])
		snprintf(why, n_why, "%s", s->why);
	if (s)
		source_close(s);
	free(s);
	return name;
}
