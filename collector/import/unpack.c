#include "unpack.h"

#include <archive.h>
#include <archive_entry.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define PIECE_BYTES (128u << 10)

struct unpack {
	bytes_fn raw;
	void *arg;
	z_stream z;
	struct archive *archive; /* NULL: gzip */
	bool within;		 /* a member of gzip, which has no end yet */
	bool ended;
	unsigned char piece[PIECE_BYTES];
};

static bool is_gzip(const unsigned char *head, size_t n)
{
	return n >= 2 && head[0] == 0x1f && head[1] == 0x8b;
}

bool unpack_is_packed(const unsigned char *head, size_t n)
{
	static const struct {
		const char *begin;
		size_t n;
	} sorts[] = { { "\xfd" "7zXZ\0", 6 }, { "\x28\xb5\x2f\xfd", 4 }, { "BZh", 3 } };

	for (size_t i = 0; i < sizeof sorts / sizeof *sorts; i++)
		if (n >= sorts[i].n && memcmp(head, sorts[i].begin, sorts[i].n) == 0)
			return true;
	return is_gzip(head, n);
}

/* ---- libarchive ---- */

static la_ssize_t give(struct archive *a, void *arg, const void **ret)
{
	struct unpack *u = arg;

	*ret = u->piece;
	return u->raw(u->arg, u->piece, sizeof u->piece);
}

static bool open_archive(struct unpack *u)
{
	struct archive_entry *entry;

	u->archive = archive_read_new();
	if (!u->archive)
		return false;
	archive_read_support_filter_xz(u->archive);
	archive_read_support_filter_zstd(u->archive);
	archive_read_support_filter_bzip2(u->archive);
	archive_read_support_format_raw(u->archive);
	archive_read_support_format_empty(u->archive);
	/* What is damaged at once has no header: reading it says so. */
	u->ended = archive_read_open(u->archive, u, NULL, give, NULL) == ARCHIVE_OK &&
		   archive_read_next_header(u->archive, &entry) == ARCHIVE_EOF;
	return true;
}

/* ---- gzip ---- */

/* The next member, if there is one: what else is behind the last is nothing of ours. */
static bool next_member(struct unpack *u)
{
	ptrdiff_t got;

	if (u->z.avail_in < 2) {
		memmove(u->piece, u->z.next_in, u->z.avail_in);
		got = u->raw(u->arg, u->piece + u->z.avail_in, sizeof u->piece - u->z.avail_in);
		u->z.next_in = u->piece;
		u->z.avail_in += got > 0 ? (uInt)got : 0;
	}
	return is_gzip(u->z.next_in, u->z.avail_in) && inflateReset(&u->z) == Z_OK;
}

static ptrdiff_t read_gzip(struct unpack *u, unsigned char *out, size_t n)
{
	n = n < 1u << 30 ? n : 1u << 30;
	u->z.next_out = out;
	u->z.avail_out = (uInt)n;
	while (u->z.avail_out == n && !u->ended) {
		int r;

		if (!u->within) {
			u->within = next_member(u);
			u->ended = !u->within;
			continue;
		}
		if (u->z.avail_in == 0) {
			ptrdiff_t got = u->raw(u->arg, u->piece, sizeof u->piece);

			if (got <= 0)
				return -1;
			u->z.next_in = u->piece;
			u->z.avail_in = (uInt)got;
		}
		r = inflate(&u->z, Z_NO_FLUSH);
		u->within = r != Z_STREAM_END;
		if (r != Z_OK && r != Z_STREAM_END && (r != Z_BUF_ERROR || u->z.avail_in > 0))
			return -1;
	}
	return (ptrdiff_t)(n - u->z.avail_out);
}

/* ---- both ---- */

struct unpack *unpack_new(const unsigned char *head, size_t n, bytes_fn raw, void *arg)
{
	struct unpack *u = calloc(1, sizeof *u);

	if (!u)
		return NULL;
	u->raw = raw;
	u->arg = arg;
	u->z.next_in = u->piece;
	if (is_gzip(head, n) ? inflateInit2(&u->z, 15 + 16) == Z_OK : open_archive(u))
		return u;
	free(u);
	return NULL;
}

void unpack_free(struct unpack *u)
{
	if (!u)
		return;
	if (u->archive)
		archive_read_free(u->archive);
	else
		inflateEnd(&u->z);
	free(u);
}

ptrdiff_t unpack_read(struct unpack *u, unsigned char *out, size_t n)
{
	la_ssize_t got;

	if (n == 0 || u->ended)
		return 0;
	if (!u->archive)
		return read_gzip(u, out, n);
	got = archive_read_data(u->archive, out, n);
	return got < 0 ? -1 : (ptrdiff_t)got;
}
