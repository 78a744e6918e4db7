#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#ifndef XFS_SUPER_MAGIC
#define XFS_SUPER_MAGIC 0x58465342
#endif

/* Descriptors below are for the host: programs close "all up to 64", hand out
 * 3, 4, 5 by assumption, or run with standard output closed, and then the next
 * open() would make our file their standard output. */
#define LOW_FD 100

static enum probe_off fail(struct file *f, enum probe_off off, int error)
{
	f->system_error = error;
	return off;
}

/* A mapped page whose block cannot be found is SIGBUS. These keep the promise
 * of fallocate(); copy-on-write and network file systems do not. */
static bool keeps_space(int dir_fd)
{
	struct statfs s;

	if (fstatfs(dir_fd, &s) != 0)
		return false;
	switch ((unsigned long)s.f_type) {
	case TMPFS_MAGIC:
	case RAMFS_MAGIC:
	case EXT4_SUPER_MAGIC: /* also ext2 and ext3 */
	case XFS_SUPER_MAGIC:
	case OVERLAYFS_SUPER_MAGIC:
		return true;
	}
	return false;
}

/* The directory as an O_PATH descriptor. Only one level is made: a missing
 * parent means that the setting is wrong. */
static enum probe_off open_dir(struct file *f, const char **ret_dir, bool *ret_shared)
{
	static char by_uid[64];
	const char *dir = secure_getenv("SYNCLINE_DIR");
	bool shared = dir && *dir;
	int flags = O_PATH | O_DIRECTORY | O_CLOEXEC;
	struct stat st;

	if (!shared) {
		snprintf(by_uid, sizeof by_uid, "/dev/shm/syncline-%u", (unsigned)getuid());
		dir = by_uid;
		flags |= O_NOFOLLOW;
	}
	f->dir_fd = open(dir, flags);
	if (f->dir_fd < 0 && errno == ENOENT) {
		/* The default is this user's own; a named one is for a group. */
		mode_t mode = shared ? 02770 : 0700;

		if (mkdir(dir, mode & 0777) == 0)
			(void)chmod(dir, mode); /* past the umask */
		else if (errno != EEXIST)
			return fail(f, PROBE_NO_DIR, errno);
		f->dir_fd = open(dir, flags);
	}
	if (f->dir_fd < 0) {
		if (errno == EMFILE || errno == ENFILE)
			return fail(f, PROBE_NO_FD, errno);
		return fail(f, errno == EACCES ? PROBE_DIR_DENIED : PROBE_NO_DIR, errno);
	}
	/* Anybody may make a directory of that name under /dev/shm, and who owns
	 * it can cut our file short: SIGBUS. */
	if (!shared && (fstat(f->dir_fd, &st) != 0 || st.st_uid != geteuid()))
		return fail(f, PROBE_DIR_FOREIGN, EPERM);
	*ret_dir = dir;
	*ret_shared = shared;
	return PROBE_ON;
}

/* At most a tenth of what is free: NCCL and data loaders need the rest. */
static enum probe_off size_for(struct file *f)
{
	struct statvfs fs;
	struct rlimit limit;
	uint64_t n = SHM_MAX_BYTES;

	if (!keeps_space(f->dir_fd))
		return fail(f, PROBE_DIR_FILESYSTEM, 0);
	if (fstatvfs(f->dir_fd, &fs) != 0)
		return fail(f, PROBE_DIR_FILESYSTEM, errno);
	/* A tmpfs without a limit says that it has no blocks at all. */
	if (fs.f_blocks != 0 && (uint64_t)fs.f_bavail * fs.f_frsize / 10 < n)
		n = (uint64_t)fs.f_bavail * fs.f_frsize / 10;
	if (n < SHM_MIN_BYTES)
		return fail(f, PROBE_NO_SPACE, ENOSPC);
	/* Past the limit the kernel does not only refuse: it sends SIGXFSZ. */
	if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
	    limit.rlim_cur < n)
		n = limit.rlim_cur;
	if (n < SHM_MIN_BYTES)
		return fail(f, PROBE_FILE_LIMIT, EFBIG);
	f->n_bytes = (size_t)(n & ~UINT64_C(4095));
	return PROBE_ON;
}

static enum probe_off open_new(struct file *f)
{
	char name[sizeof f->name + 8];
	int low, high;

	snprintf(name, sizeof name, "%s.new", f->name);
	low = openat(f->dir_fd, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0660);
	if (low < 0) {
		switch (errno) {
		case EACCES:
		case EPERM:
		case EROFS:
			return fail(f, PROBE_DIR_DENIED, errno);
		case ENOSPC:
		case EDQUOT:
			return fail(f, PROBE_NO_SPACE, errno);
		case EMFILE:
		case ENFILE:
			return fail(f, PROBE_NO_FD, errno);
		}
		return fail(f, PROBE_OPEN_FAILED, errno);
	}
	high = fcntl(low, F_DUPFD_CLOEXEC, LOW_FD);
	if (high < 0)
		high = fcntl(low, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	if (high < 0) {
		int error = errno;

		close(low);
		(void)unlinkat(f->dir_fd, name, 0);
		return fail(f, PROBE_NO_FD, error);
	}
	close(low); /* no lock is held yet that this could drop */
	f->fd = high;
	return PROBE_ON;
}

/* Agents of another user in the directory's group may read and write. */
static void share_with_group(int fd, int dir_fd)
{
	struct stat dir, file;

	if (fstat(dir_fd, &dir) == 0 && fstat(fd, &file) == 0 && dir.st_gid != file.st_gid)
		(void)fchown(fd, (uid_t)-1, dir.st_gid);
	(void)fchmod(fd, 0660); /* past the umask, which is the host's */
}

static enum probe_off lock(struct file *f)
{
	struct flock l = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1 };

	return fcntl(f->fd, F_SETLK, &l) == 0 ? PROBE_ON : fail(f, PROBE_NO_LOCK, errno);
}

static void undo(struct file *f)
{
	char name[sizeof f->name + 8];

	if (f->map)
		munmap(f->map, f->n_bytes);
	if (f->fd >= 0) {
		snprintf(name, sizeof name, "%s.new", f->name);
		(void)unlinkat(f->dir_fd, name, 0);
		close(f->fd);
	}
	if (f->dir_fd >= 0)
		close(f->dir_fd);
	f->map = NULL;
	f->fd = f->dir_fd = -1;
	f->path[0] = 0;
}

enum probe_off file_new(struct file *f, uint64_t unique)
{
	enum probe_off off;
	struct stat st;
	const char *dir;
	bool shared;
	int r;

	memset(f, 0, sizeof *f);
	f->fd = f->dir_fd = -1;
	snprintf(f->name, sizeof f->name, "%u-%016llx", (unsigned)getpid(),
		 (unsigned long long)unique);

	off = open_dir(f, &dir, &shared);
	if (off == PROBE_ON)
		off = size_for(f);
	if (off == PROBE_ON)
		off = open_new(f);
	if (off != PROBE_ON)
		goto fail;
	if (shared)
		share_with_group(f->fd, f->dir_fd);
	if (fstat(f->fd, &st) != 0) {
		off = fail(f, PROBE_OPEN_FAILED, errno);
		goto fail;
	}
	f->device = st.st_dev;
	f->inode = st.st_ino;

	/* Signals are blocked, so EINTR is somebody freezing us: once more. */
	r = posix_fallocate(f->fd, 0, (off_t)f->n_bytes);
	if (r == EINTR)
		r = posix_fallocate(f->fd, 0, (off_t)f->n_bytes);
	if (r != 0) {
		off = fail(f, PROBE_NO_SPACE, r);
		goto fail;
	}
	f->map = mmap(NULL, f->n_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, f->fd, 0);
	if (f->map == MAP_FAILED) {
		f->map = NULL;
		off = fail(f, PROBE_NO_MAP, errno);
		goto fail;
	}
	(void)madvise(f->map, f->n_bytes, MADV_DONTDUMP);
	off = lock(f);
	if (off != PROBE_ON)
		goto fail;
	if ((size_t)snprintf(f->path, sizeof f->path, "%s/%s" SHM_SUFFIX, dir, f->name) >=
	    sizeof f->path) {
		off = fail(f, PROBE_NO_DIR, ENAMETOOLONG);
		goto fail;
	}
	return PROBE_ON;

fail:
	undo(f);
	return off;
}

enum probe_off file_publish(struct file *f)
{
	char from[sizeof f->name + 8], to[sizeof f->name + 8];

	snprintf(from, sizeof from, "%s.new", f->name);
	snprintf(to, sizeof to, "%s" SHM_SUFFIX, f->name);
	if (renameat(f->dir_fd, from, f->dir_fd, to) != 0) {
		enum probe_off off = fail(f, PROBE_OPEN_FAILED, errno);

		undo(f);
		return off;
	}
	close(f->dir_fd);
	f->dir_fd = -1;
	return PROBE_ON;
}

void file_forget(struct file *f)
{
	struct stat st;

	/* Whatever code still has the old addresses (a signal handler that forked
	 * in the middle of an event) now writes to memory of the child's own. */
	if (f->map)
		(void)mmap(f->map, f->n_bytes, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
	/* The lock is the parent's: closing here does not drop it. The host may
	 * have closed our number and given it to a file of its own. */
	if (f->fd >= 0 && fstat(f->fd, &st) == 0 && st.st_dev == f->device &&
	    st.st_ino == f->inode)
		close(f->fd);
	f->fd = -1;
}
