/* calls.h - what people write for operations and types of elements. */
#pragma once

#include "../proto/event.h"

/* "allreduce", "all_reduce" …; OP_UNKNOWN. */
enum event_op call_op(const char *name);
/* "f32", "float32", "bf16" …; DTYPE_UNKNOWN. */
enum event_dtype call_dtype(const char *name);
/* Of one element; 1 when the type is not known, so that sizes count elements. */
unsigned call_dtype_bytes(enum event_dtype dtype);
