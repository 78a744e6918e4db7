#include "paths.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool paths_has(const char *path)
{
	return access(path, R_OK) == 0;
}

static int join(char out[PATH_MAX], const char *dir, const char *rest)
{
	int n = snprintf(out, PATH_MAX, "%s/%s", dir, rest);

	return n > 0 && n < PATH_MAX ? 0 : -ENAMETOOLONG;
}

int paths_find(struct paths *p)
{
	char lib[PATH_MAX], exe[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
	char *slash;
	int r;

	if (n < 0)
		return -errno;
	exe[n] = '\0';
	slash = strrchr(exe, '/');
	if (!slash)
		return -ENOENT;
	*slash = '\0';
	memcpy(p->dir, exe, sizeof exe);

	r = join(p->agent, p->dir, "syncline-agent");
	if (r == 0)
		r = join(p->collector, p->dir, "syncline-collector");
	if (r == 0)
		r = join(lib, p->dir, "../lib/syncline");
	if (r != 0)
		return r;

	/* A build tree has agent/python/ beside the program. */
	r = join(p->bootstrap, p->dir, "agent/python");
	if (r == 0 && paths_has(p->bootstrap)) {
		r = join(p->probe, p->dir, "agent/libsyncline_probe.so");
		if (r == 0)
			r = join(p->demo, p->dir, "cli/demo_train.py");
		return r;
	}
	r = join(p->bootstrap, lib, "python");
	if (r == 0)
		r = join(p->probe, lib, "libsyncline_probe.so");
	if (r == 0)
		r = join(p->demo, lib, "demo_train.py");
	return r;
}
