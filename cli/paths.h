/* paths.h - where the other programs and files of this build are.
 *
 * Beside /proc/self/exe: in a build tree that is b/ itself, installed it is
 * PREFIX/bin with the guest's files in PREFIX/lib/syncline. Nothing is looked up
 * through PATH, so that a build tree never mixes with an installed version.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>

struct paths {
	char dir[PATH_MAX];	  /* where this program lies */
	char agent[PATH_MAX];	  /* syncline-agent */
	char collector[PATH_MAX]; /* syncline-collector */
	char probe[PATH_MAX];	  /* libsyncline_probe.so */
	char bootstrap[PATH_MAX]; /* the folder for PYTHONPATH */
	char demo[PATH_MAX];	  /* demo_train.py */
};

/* Fills every name; whether the files exist is another question (paths_has()).
 * 0 or a negative errno. */
int paths_find(struct paths *p);
bool paths_has(const char *path);
