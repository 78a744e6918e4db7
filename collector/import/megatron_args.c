/* megatron_args.c - how a job is laid out, by what its log says at the start.
 *
 * Best is the list of arguments as the job took them ("name ..... value"), then what it
 * says of itself in a sentence, then the command line that somebody printed. Of equals the
 * first counts. A file's name is never asked.
 */
#include "megatron.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define MOST 1000000000

enum { COMMAND = 1, SENTENCE, ARGUMENT };

static const struct {
	const char *argument, *option, *sentence;
	enum megatron_number number;
} known[] = {
	{ "world_size", NULL, "using world size:", MEGATRON_WORLD },
	{ "data_parallel_size", NULL, "data-parallel-size:", MEGATRON_DP },
	{ "data_parallel_size", NULL, "data-parallel size:", MEGATRON_DP },
	{ "pipeline_model_parallel_size", "--pipeline-model-parallel-size", "pipeline-model-parallel size:", MEGATRON_PP },
	{ "pipe_parallel_size", "--pipe-parallel-size", NULL, MEGATRON_PP },
	{ "tensor_model_parallel_size", "--tensor-model-parallel-size", "tensor-model-parallel size:", MEGATRON_TP },
	{ "virtual_pipeline_model_parallel_size", NULL, NULL, MEGATRON_VIRTUAL },
	{ "micro_batch_size", "--micro-batch-size", NULL, MEGATRON_MICRO_SIZE },
	{ "global_batch_size", "--global-batch-size", NULL, MEGATRON_GLOBAL_SIZE },
	{ NULL, NULL, "setting number of micro-batches to constant", MEGATRON_N_MICRO },
	{ NULL, NULL, "setting number of microbatches to constant", MEGATRON_N_MICRO },
	{ "log_interval", "--log-interval", NULL, MEGATRON_INTERVAL },
};

static void say(struct megatron *m, enum megatron_number number, int strength, const char *digits)
{
	char *end;
	long long v = strtoll(digits, &end, 10);

	if (end == digits || v < 1 || v > MOST || m->strength[number] >= strength)
		return;
	m->numbers[number] = v;
	m->strength[number] = strength;
}

/* The place behind a whole word; NULL when it is not in the line. */
static const char *find_word(const char *line, const char *word)
{
	size_t n = strlen(word);

	for (const char *at = line; (at = strstr(at, word)) != NULL; at++) {
		bool begins = at == line || !(isalnum((unsigned char)at[-1]) || strchr("_-", at[-1]));

		if (begins && !isalnum((unsigned char)at[n]) && !strchr("_-", at[n] ? at[n] : ' '))
			return at + n;
	}
	return NULL;
}

void megatron_take_argument(struct megatron *m, const char *line)
{
	if (!strstr(line, "size") && !strstr(line, "micro") && !strstr(line, "log")) /* each of those that are known has one */
		return;
	for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
		const char *at;

		at = known[i].argument ? find_word(line, known[i].argument) : NULL;
		if (at) {
			at += strspn(at, " ");
			if (strspn(at, ".") >= 3) {
				at += strspn(at, ".");
				say(m, known[i].number, ARGUMENT, at + strspn(at, " "));
			}
		}
		at = known[i].sentence ? strstr(line, known[i].sentence) : NULL;
		if (at) {
			at += strlen(known[i].sentence);
			say(m, known[i].number, SENTENCE, at + strspn(at, " "));
		}
		at = known[i].option ? find_word(line, known[i].option) : NULL;
		if (at)
			say(m, known[i].number, COMMAND, at + strspn(at, " =,'\""));
	}
}
