/* kineto_list.c - what torch.autograd's profiler exports, and torch.profiler of a build without Kineto: a list of
 * the host's functions without categories, in microseconds since the process began to profile.
 *
 * Its "CUDA functions" lie between two marks around an operator: they stand for the host's launches as much as for
 * the device, so they are no device's work and are not read.
 */
#include "kernel_class.h"
#include "kineto_internal.h"

#include <ctype.h>
#include <string.h>

/* "AddmmBackward0", "ConvolutionBackward": a node of the graph of gradients. */
static bool is_backward(const char *name)
{
	static const char word[] = "Backward";
	size_t n = strlen(name);

	while (n > 0 && isdigit((unsigned char)name[n - 1]))
		n--;
	return n >= strlen(word) && memcmp(name + n - strlen(word), word, strlen(word)) == 0;
}

/* Operators and nodes are no ranges that somebody named; older releases call both alike. */
static bool is_range(const struct kineto *k, const char *name)
{
	return k->names_ops && !strstr(name, "::") && !is_backward(name);
}

enum profile_role kineto_list_role(const struct kineto *k, const struct trace_event *ev)
{
	enum profile_role role;

	/* Of another process, which only asked for it: "node_id:1, thread_id:2". */
	if (strcmp(ev->pid, "CPU functions") != 0 || strncmp(ev->tid, "node_id", 7) == 0)
		return ROLE_NONE;
	role = profile_role("cpu_op", ev->name);
	return role == ROLE_NONE && is_range(k, ev->name) ? ROLE_RANGE : role;
}

static bool is_list(const struct import_head *h)
{
	return head_first(h) == '[' && (head_has(h, "\"pid\": \"CPU functions\"") || head_has(h, "\"pid\":\"CPU functions\""));
}

static enum import_outcome read_file(struct trace *t, struct trace_input *in, bytes_fn read, void *arg, char *why,
				     size_t n_why)
{
	struct trace_events *s = trace_events_open(read, arg, NULL);
	enum import_outcome o = IMPORT_FAILED;

	t->no_memory |= !s;
	if (s)
		o = kineto_read_list(t, in, s, why, n_why);
	trace_events_close(s);
	return o;
}

/* What the ranks have in common is told by kineto_join(), as of Kineto's own files. */
const struct import_format format_kineto_list = { "PyTorch autograd profile", is_list, read_file, .apart = true };
