#include "clk.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static int64_t read_ns(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

int64_t clk_raw_ns(void)
{
	return read_ns(CLOCK_MONOTONIC_RAW);
}

int64_t clk_real_ns(void)
{
	return read_ns(CLOCK_REALTIME);
}

void clk_boot_id(char out[CLK_BOOT_ID_BYTES])
{
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, out, CLK_BOOT_ID_BYTES - 1);

	if (fd >= 0)
		close(fd);
	out[n > 0 ? n : 0] = '\0';
	out[strcspn(out, "\n")] = '\0';
}

uint64_t clk_time_ns_inode(void)
{
	struct stat st;

	return stat("/proc/self/ns/time", &st) == 0 ? (uint64_t)st.st_ino : 0;
}
