/* bench_import.c - how fast files of other tools are read, on one core, and with how much memory: the reading
 * alone, before anything is analysed or stored.
 *
 *   bench_import FILE…
 */
#include "../../collector/import/import.h"

#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>

static double cpu_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static double peak_mb(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (double)u.ru_maxrss / 1024;
}

int main(int argc, char **argv)
{
	struct import_progress none = { NULL, NULL };

	for (int i = 1; i < argc; i++) {
		struct trace_input in = { .path = argv[i] };
		double before_s = cpu_s(), took_s;
		struct stat st;
		struct trace t;

		trace_init(&t);
		if (stat(argv[i], &st) != 0 || !import_file(&t, &in, &none))
			return 1;
		took_s = cpu_s() - before_s;
		printf("%s: %.1f MB in %.3f s of CPU time: %.0f MB/s; peak %.0f MB; %s\n", argv[i],
		       (double)st.st_size / 1e6, took_s, (double)st.st_size / 1e6 / took_s, peak_mb(), in.outcome);
		trace_fini(&t);
	}
	return 0;
}
