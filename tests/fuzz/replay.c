/* replay.c - run a fuzz target over files, for compilers without libFuzzer:
 * each file as it is, then 2,000 seeded mutations of it. Any abort is a finding. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n);

#define MAX_INPUT_BYTES (1u << 20)
#define N_MUTATIONS 2000

static uint64_t rng;
static uint64_t next(void)
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	return rng ^= rng << 17;
}

/* An exact heap copy, so that a sanitizer sees the first byte past the end. */
static void once(const unsigned char *data, size_t n)
{
	unsigned char *copy = malloc(n ? n : 1);

	if (!copy)
		exit(3);
	memcpy(copy, data, n);
	LLVMFuzzerTestOneInput(copy, n);
	free(copy);
}

static void mutate(unsigned char *data, size_t *n)
{
	static const unsigned char loud[] = { 0, 1, 0x7f, 0x80, 0xff, 0xdd, 0xdf, 0xc6, 0xdb };

	for (unsigned k = 1 + (unsigned)(next() % 4); k > 0 && *n > 0; k--) {
		size_t at = next() % *n;

		switch (next() % 4) {
		case 0:
			data[at] = (unsigned char)next();
			break;
		case 1:
			data[at] = loud[next() % sizeof loud];
			break;
		case 2:
			data[at] ^= (unsigned char)(1u << next() % 8);
			break;
		default:
			*n = at;
			break;
		}
	}
}

int main(int argc, char **argv)
{
	static unsigned char buf[MAX_INPUT_BYTES], bent[MAX_INPUT_BYTES];
	unsigned n_files = 0;

	for (int i = 1; i < argc; i++) {
		struct dirent *e;
		DIR *d = opendir(argv[i]);

		if (!d) {
			perror(argv[i]);
			return 2;
		}
		while ((e = readdir(d))) {
			char path[4096];
			size_t n;
			FILE *f;

			if (e->d_name[0] == '.')
				continue;
			snprintf(path, sizeof path, "%s/%s", argv[i], e->d_name);
			f = fopen(path, "rb");
			if (!f)
				continue;
			n = fread(buf, 1, sizeof buf, f);
			fclose(f);
			n_files++;
			once(buf, n);
			rng = UINT64_C(0x5eed) + n;
			for (unsigned k = 0; k < N_MUTATIONS; k++) {
				size_t n_bent = n;

				memcpy(bent, buf, n);
				mutate(bent, &n_bent);
				once(bent, n_bent);
			}
		}
		closedir(d);
	}
	printf("%u files, %u mutations each\n", n_files, N_MUTATIONS);
	return n_files > 0 ? 0 : 2;
}
