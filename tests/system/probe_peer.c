/* probe_peer.c - look at a directory of shared files as an agent does.
 *
 *   probe_peer DIR [--unlink-dead]
 *
 * One line for each: "alive|dead|denied|<outcome> rank R events N dropped N closed C".
 * Works by the file alone: no process is looked for.
 */
#include "../../proto/shm.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_alive(int fd)
{
	struct flock l = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1 };

	return fcntl(fd, F_GETLK, &l) == 0 && l.l_type != F_UNLCK;
}

/* 1 = dead. */
static int look(int dir_fd, const char *name)
{
	unsigned long long n_events = 0, n_dropped = 0;
	enum shm_outcome outcome;
	struct shm_header h;
	unsigned char *map;
	struct stat st;
	bool alive;
	int fd;

	fd = openat(dir_fd, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0) {
		printf("denied (%s)\n", strerror(errno));
		return 0;
	}
	alive = is_alive(fd);
	if (fstat(fd, &st) != 0)
		return 0;
	map = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED) {
		printf("not mapped (%s)\n", strerror(errno));
		return 0;
	}
	outcome = shm_check(map, (size_t)st.st_size, &h);
	if (outcome != SHM_OK) {
		printf("%s\n", shm_outcome_text(outcome));
		return 0;
	}
	for (uint32_t i = 0; i < h.n_rings; i++) {
		struct shm_ring *r = (struct shm_ring *)(map + h.ring_headers_at) + i;

		n_events += atomic_load_explicit(&r->head, memory_order_acquire);
		n_dropped += atomic_load(&r->n_dropped);
	}
	printf("%s rank %d events %llu dropped %llu closed %u\n", alive ? "alive" : "dead",
	       h.identity.rank, n_events, n_dropped, (unsigned)h.closed);
	munmap(map, (size_t)st.st_size);
	close(fd);
	return !alive;
}

int main(int argc, char **argv)
{
	bool unlink_dead = argc > 2 && strcmp(argv[2], "--unlink-dead") == 0;
	struct dirent *e;
	DIR *d;

	if (argc < 2) {
		fprintf(stderr, "usage: probe_peer DIR [--unlink-dead]\n");
		return 2;
	}
	d = opendir(argv[1]);
	if (!d) {
		printf("denied (%s)\n", strerror(errno));
		return 0;
	}
	while ((e = readdir(d))) {
		const char *dot = strrchr(e->d_name, '.');

		if (!dot || strcmp(dot, SHM_SUFFIX) != 0)
			continue;
		if (look(dirfd(d), e->d_name) && unlink_dead && unlinkat(dirfd(d), e->d_name, 0) != 0)
			printf("cannot unlink (%s)\n", strerror(errno));
	}
	closedir(d);
	return 0;
}
