/* kernel_class.h - what an event of a profile is, by its category and name.
 *
 * Profilers of many releases, devices and libraries write the same things under other
 * words. They are known here and nowhere else.
 */
#pragma once

#include <stdbool.h>

enum profile_role {
	ROLE_NONE,
	ROLE_STEP,	   /* the host's annotation of a step */
	ROLE_LAUNCH,	   /* a call of the runtime or driver */
	ROLE_WAIT,	   /* of those: the host stands until the device is done */
	ROLE_WORK,	   /* on the device */
	ROLE_NOTE,	   /* the host's name of a collective, around its launch */
	ROLE_PARAMS,	   /* the host's word about a collective */
	ROLE_HOST_CALL,	   /* a collective that the host itself does (gloo) */
	ROLE_RANGE,	   /* any other annotation of the program, on the host */
	ROLE_DEVICE_RANGE, /* the same where its work ran */
};

enum { CLASS_COMPUTE = 1, CLASS_COMMUNICATION = 2, CLASS_MEMORY = 4 }; /* bits */

enum profile_role profile_role(const char *category, const char *name);
/* Of what runs on a device. 0: it is no work but a mark (events, waits between streams).
 * What is of a category of copies is one whatever its name. */
unsigned kernel_class(const char *name);
bool kernel_is_copy(const char *category);
/* Does the kernel do a whole call of a communication library? Calls are counted by their
 * kernels: what is a part of one (the phases of DeepEP) must not be. */
bool kernel_is_call(const char *name);
