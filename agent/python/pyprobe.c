/* pyprobe.c - _syncline_probe: the probe as Python calls it.
 *
 * One call an event, no tuple, no keyword, no allocation where nothing is
 * returned; one binary for every Python from 3.10 on (stable ABI). It links
 * with libsyncline_probe.so, so that a process has one file whoever speaks.
 *
 * The guest rule: no function here raises. A wrong argument is counted in
 * stats()["n_bad_calls"] and the call does nothing. The interpreter lock guards
 * the counters below.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "../probe/probe.h"

#define ARGS PyObject *self, PyObject *const *argv, Py_ssize_t n
#define MAX_GROUPS 1024

/* A process group, or one direction between two ranks. Sequence numbers are
 * counted at every level, off included: a rank that skips one would disagree
 * with the others for ever. */
struct group {
	uint32_t name;
	uint32_t n_issued;
};

static struct group groups[MAX_GROUPS];
static uint32_t n_groups;
static uint32_t step = EVENT_STEP_UNKNOWN;
static uint32_t micro;
static uint64_t phase_a[PHASE_N]; /* of the open phase: an end says what its begin said */
static uint64_t n_bad_calls;

static PyObject *nothing(void)
{
	return Py_NewRef(Py_None);
}

static PyObject *bad_call(void)
{
	PyErr_Clear();
	n_bad_calls++;
	return nothing();
}

/* Unsigned 64 bits of a Python int, false for anything else. */
static inline bool arg(PyObject *o, uint64_t *ret)
{
	*ret = PyLong_AsUnsignedLongLongMask(o);
	return *ret != UINT64_MAX || !PyErr_Occurred();
}

static inline bool args(PyObject *const *argv, Py_ssize_t n, Py_ssize_t n_want, uint64_t *ret)
{
	if (n != n_want)
		return false;
	for (Py_ssize_t i = 0; i < n; i++)
		if (!arg(argv[i], &ret[i]))
			return false;
	return true;
}

static inline struct group *group_at(uint64_t handle)
{
	return handle < n_groups ? &groups[handle] : NULL;
}

static void step_open(uint32_t number)
{
	step = number;
	micro = 0;
	probe_set_step(step);
}

/* The first thing that happens in the loop begins step 0. */
static inline void step_ensure(void)
{
	if (__builtin_expect(step == EVENT_STEP_UNKNOWN, 0)) {
		step_open(0);
		probe_emit(EVENT_STEP_BEGIN, 0, 0, event_a(0, 0), 0);
	}
}

static PyObject *py_start(ARGS)
{
	return PyBool_FromLong(probe_start() == PROBE_ON);
}

static PyObject *py_identity(ARGS)
{
	PyObject *run = NULL;
	const char *run_id = NULL;
	uint64_t v[5];

	if (n != 6 || !args(argv, 5, 5, v))
		return bad_call();
	if (argv[5] != Py_None) {
		run = PyUnicode_AsEncodedString(argv[5], "utf-8", "replace");
		run_id = run ? PyBytes_AsString(run) : NULL;
		if (!run_id) {
			Py_XDECREF(run);
			return bad_call();
		}
	}
	probe_identity((int)v[0], (int)v[1], (int)v[2], (int)v[3], (int)v[4], run_id);
	Py_XDECREF(run);
	return nothing();
}

static PyObject *py_emit(ARGS)
{
	uint64_t v[5];

	if (!args(argv, n, 5, v))
		return bad_call();
	probe_emit((unsigned)v[0], (unsigned)v[1], (uint32_t)v[2], v[3], v[4]);
	return nothing();
}

static PyObject *py_emit_at(ARGS)
{
	uint64_t v[6];

	if (!args(argv, n, 6, v))
		return bad_call();
	probe_emit_at(v[0], (unsigned)v[1], (unsigned)v[2], (uint32_t)v[3], v[4], v[5]);
	return nothing();
}

/* Ends the open step and begins the next at the same tick. */
static PyObject *py_step(ARGS)
{
	uint64_t tick = probe_tick();

	step_ensure();
	probe_emit_at(tick, EVENT_STEP_END, 0, 0, event_a(step, 0), 0);
	step_open(step + 1);
	probe_emit_at(tick, EVENT_STEP_BEGIN, 0, 0, event_a(step, 0), 0);
	return PyLong_FromUnsignedLong(step);
}

/* The loop is over: ends the open step without a next one. */
static PyObject *py_last_step(ARGS)
{
	if (step != EVENT_STEP_UNKNOWN)
		probe_emit(EVENT_STEP_END, 0, 0, event_a(step, 0), 0);
	return nothing();
}

static PyObject *py_micro(ARGS)
{
	micro++;
	return nothing();
}

static PyObject *py_phase_begin(ARGS)
{
	uint64_t phase;

	if (!args(argv, n, 1, &phase) || phase >= PHASE_N)
		return bad_call();
	step_ensure();
	phase_a[phase] = event_a(step, micro);
	probe_emit(EVENT_PHASE_BEGIN, (unsigned)phase, 0, phase_a[phase], 0);
	return nothing();
}

static PyObject *py_phase_end(ARGS)
{
	uint64_t phase;

	if (!args(argv, n, 1, &phase) || phase >= PHASE_N)
		return bad_call();
	probe_emit(EVENT_PHASE_END, (unsigned)phase, 0, phase_a[phase], 0);
	return nothing();
}

/* The id of a name; false when it is no text. */
static bool intern(PyObject *from, uint32_t *ret)
{
	PyObject *bytes = PyUnicode_AsEncodedString(from, "utf-8", "replace");
	const char *text = bytes ? PyBytes_AsString(bytes) : NULL;

	if (text)
		*ret = probe_name(text);
	Py_XDECREF(bytes);
	return text != NULL;
}

/* group(name) -> handle for the calls below, the same for the same name; -1
 * when there is no room: then they do nothing. */
static PyObject *py_group(ARGS)
{
	uint32_t name, i;

	if (n != 1 || !intern(argv[0], &name))
		return bad_call();
	for (i = 0; i < n_groups; i++)
		if (groups[i].name == name && name != 0)
			return PyLong_FromUnsignedLong(i);
	if (n_groups == MAX_GROUPS)
		return PyLong_FromLong(-1);
	groups[n_groups].name = name;
	return PyLong_FromUnsignedLong(n_groups++);
}

/* coll_begin(group, op << 8 | dtype, bytes, sync) -> token for coll_end(). */
static PyObject *py_coll_begin(ARGS)
{
	struct group *g;
	uint64_t v[4], a;

	if (!args(argv, n, 4, v))
		return bad_call();
	g = group_at(v[0]);
	if (!g)
		return nothing();
	a = event_a(step, g->n_issued++);
	probe_emit(EVENT_COLL_BEGIN, (unsigned)v[1], g->name, a,
		   v[2] | (v[3] ? EVENT_COLL_SYNC_BIT : 0));
	return PyLong_FromUnsignedLongLong(a);
}

static PyObject *py_coll_end(ARGS)
{
	const struct group *g;
	uint64_t v[4];

	if (n == 4 && argv[2] == Py_None)
		return nothing(); /* coll_begin() had no group */
	if (!args(argv, n, 4, v))
		return bad_call();
	g = group_at(v[0]);
	if (g)
		probe_emit(EVENT_COLL_END, (unsigned)v[1], g->name, v[2], v[3]);
	return nothing();
}

/* coll_undo(group, token): the call raised before anything was sent. */
static PyObject *py_coll_undo(ARGS)
{
	struct group *g;
	uint64_t v[2];

	if (n == 2 && argv[1] == Py_None)
		return nothing();
	if (!args(argv, n, 2, v))
		return bad_call();
	g = group_at(v[0]);
	if (g && event_low(v[1]) + 1 == g->n_issued)
		g->n_issued--;
	return nothing();
}

/* bucket_ready(ddp, group, bucket, bytes) -> flags for the two below. */
static PyObject *py_bucket_ready(ARGS)
{
	const struct group *g;
	unsigned flags;
	uint64_t v[4];

	if (!args(argv, n, 4, v))
		return bad_call();
	g = group_at(v[1]);
	flags = event_bucket_flags((unsigned)v[0], micro);
	if (g)
		probe_emit(EVENT_BUCKET_READY, flags, g->name, event_a(step, (uint32_t)v[2]), v[3]);
	return PyLong_FromUnsignedLong(flags);
}

static PyObject *bucket(enum event_kind kind, PyObject *const *argv, Py_ssize_t n)
{
	const struct group *g;
	uint64_t v[4];

	if (n == 4 && argv[3] == Py_None)
		return nothing();
	if (!args(argv, n, 4, v))
		return bad_call();
	g = group_at(v[1]);
	if (g)
		probe_emit(kind, (unsigned)v[0], g->name, event_a(event_step(v[3]), (uint32_t)v[2]),
			   event_low(v[3]));
	return nothing();
}

/* bucket_submit(flags, group, bucket, token of its collective). */
static PyObject *py_bucket_submit(ARGS)
{
	return bucket(EVENT_BUCKET_SUBMIT, argv, n);
}

static PyObject *py_bucket_reduced(ARGS)
{
	return bucket(EVENT_BUCKET_REDUCED, argv, n);
}

/* text(kind, level, str) -> stored? */
static PyObject *py_text(ARGS)
{
	PyObject *bytes;
	Py_ssize_t n_bytes;
	char *text;
	uint64_t v[2];
	bool stored;

	if (n != 3 || !args(argv, 2, 2, v))
		return bad_call();
	bytes = PyUnicode_AsEncodedString(argv[2], "utf-8", "replace");
	if (!bytes || PyBytes_AsStringAndSize(bytes, &text, &n_bytes) != 0) {
		Py_XDECREF(bytes);
		return bad_call();
	}
	stored = probe_text((unsigned)v[0], (unsigned)v[1], text, (size_t)n_bytes);
	Py_DECREF(bytes);
	return PyBool_FromLong(stored);
}

static PyObject *py_name(ARGS)
{
	uint32_t id;

	if (n != 1 || !intern(argv[0], &id))
		return bad_call();
	return PyLong_FromUnsignedLong(id);
}

static PyObject *py_level(ARGS)
{
	return PyLong_FromLong((long)probe_level());
}

static PyObject *py_tick(ARGS)
{
	return PyLong_FromUnsignedLongLong(probe_tick());
}

static PyObject *py_nop(ARGS)
{
	return nothing();
}

static PyObject *py_stats(ARGS)
{
	struct probe_stats s;

	probe_stats(&s);
	return Py_BuildValue("{s:O,s:s,s:i,s:s,s:I,s:I,s:I,s:I,s:K,s:K,s:K,s:K,s:K}", "on",
			     s.off == PROBE_ON ? Py_True : Py_False, "reason",
			     probe_off_text(s.off), "system_error", s.system_error, "file", s.file,
			     "level", s.level, "n_rings", s.n_rings, "n_rings_taken",
			     s.n_rings_taken, "n_threads_without_ring", s.n_threads_without_ring,
			     "n_events", (unsigned long long)s.n_events, "n_dropped",
			     (unsigned long long)s.n_dropped, "n_text_dropped",
			     (unsigned long long)s.n_text_dropped, "n_names_dropped",
			     (unsigned long long)s.n_names_dropped, "n_bad_calls",
			     (unsigned long long)n_bad_calls);
}

#define FAST(name, doc)                                                                            \
	{                                                                                          \
#name, (PyCFunction)(void (*)(void))py_##name, METH_FASTCALL, doc                  \
	}

static PyMethodDef methods[] = {
	FAST(start, "Open the shared file once; True when the probe is on."),
	FAST(identity, "(rank, local_rank, world, local_world, restart, run_id or None)"),
	FAST(emit, "(kind, flags, name, a, b)"),
	FAST(emit_at, "(tick, kind, flags, name, a, b)"),
	FAST(step, "End the open step, begin the next; its number."),
	FAST(last_step, "End the open step without a next one."),
	FAST(micro, "The next micro-batch of the open step."),
	FAST(phase_begin, "(phase)"),
	FAST(phase_end, "(phase)"),
	FAST(group, "(name) -> handle"),
	FAST(coll_begin, "(group, op << 8 | dtype, bytes, sync) -> token"),
	FAST(coll_end, "(group, op << 8 | dtype, token, bytes)"),
	FAST(coll_undo, "(group, token)"),
	FAST(bucket_ready, "(ddp, group, bucket, bytes) -> flags"),
	FAST(bucket_submit, "(flags, group, bucket, token)"),
	FAST(bucket_reduced, "(flags, group, bucket, token)"),
	FAST(text, "(kind, level, text) -> stored?"),
	FAST(name, "(text) -> id"),
	FAST(level, "What is recorded at present."),
	FAST(tick, "The process's tick source."),
	FAST(nop, "Does nothing: what a call costs."),
	FAST(stats, "What the probe has done so far."),
	{NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot slots[] = {{0, NULL}};

static struct PyModuleDef module = {
	PyModuleDef_HEAD_INIT,
	.m_name = "_syncline_probe",
	.m_doc = "The probe in this process.",
	.m_methods = methods,
	.m_slots = slots,
};

PyMODINIT_FUNC PyInit__syncline_probe(void);
PyMODINIT_FUNC PyInit__syncline_probe(void)
{
	return PyModuleDef_Init(&module);
}
