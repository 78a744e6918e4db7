/* fault_vfs.h - SQLite's file system, which fails on command.
 *
 * The n-th write, sync or truncate from now on fails, once or from then on.
 */
#pragma once

#include <sqlite3.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Read by the store's writer thread while the test plans or lifts a fault. */
struct fault {
	_Atomic long countdown; /* operations that still succeed; -1 = no fault planned */
	bool lasting;
	int error;
	_Atomic long n_failed;
};
static struct fault fault = { .countdown = -1 };

static bool fault_now(void)
{
	if (fault.countdown < 0)
		return false;
	if (fault.countdown > 0) {
		fault.countdown--;
		return false;
	}
	if (!fault.lasting)
		fault.countdown = -1;
	fault.n_failed++;
	return true;
}

struct fault_file {
	sqlite3_file base;
	sqlite3_file *real; /* follows in the same block */
};
#define REAL(f) (((struct fault_file *)(f))->real)

static int ff_close(sqlite3_file *f)
{
	return REAL(f)->pMethods ? REAL(f)->pMethods->xClose(REAL(f)) : SQLITE_OK;
}
static int ff_read(sqlite3_file *f, void *p, int n, sqlite3_int64 at)
{
	return REAL(f)->pMethods->xRead(REAL(f), p, n, at);
}
static int ff_write(sqlite3_file *f, const void *p, int n, sqlite3_int64 at)
{
	return fault_now() ? fault.error : REAL(f)->pMethods->xWrite(REAL(f), p, n, at);
}
static int ff_truncate(sqlite3_file *f, sqlite3_int64 n)
{
	return fault_now() ? SQLITE_IOERR_TRUNCATE : REAL(f)->pMethods->xTruncate(REAL(f), n);
}
static int ff_sync(sqlite3_file *f, int flags)
{
	return fault_now() ? SQLITE_IOERR_FSYNC : REAL(f)->pMethods->xSync(REAL(f), flags);
}
static int ff_size(sqlite3_file *f, sqlite3_int64 *n)
{
	return REAL(f)->pMethods->xFileSize(REAL(f), n);
}
static int ff_lock(sqlite3_file *f, int l)
{
	return REAL(f)->pMethods->xLock(REAL(f), l);
}
static int ff_unlock(sqlite3_file *f, int l)
{
	return REAL(f)->pMethods->xUnlock(REAL(f), l);
}
static int ff_reserved(sqlite3_file *f, int *r)
{
	return REAL(f)->pMethods->xCheckReservedLock(REAL(f), r);
}
static int ff_control(sqlite3_file *f, int op, void *arg)
{
	return REAL(f)->pMethods->xFileControl(REAL(f), op, arg);
}
static int ff_sector(sqlite3_file *f)
{
	return REAL(f)->pMethods->xSectorSize(REAL(f));
}
static int ff_device(sqlite3_file *f)
{
	return REAL(f)->pMethods->xDeviceCharacteristics(REAL(f));
}
static int ff_shm_map(sqlite3_file *f, int i, int n, int extend, void volatile **p)
{
	return REAL(f)->pMethods->xShmMap(REAL(f), i, n, extend, p);
}
static int ff_shm_lock(sqlite3_file *f, int at, int n, int flags)
{
	return REAL(f)->pMethods->xShmLock(REAL(f), at, n, flags);
}
static void ff_shm_barrier(sqlite3_file *f)
{
	REAL(f)->pMethods->xShmBarrier(REAL(f));
}
static int ff_shm_unmap(sqlite3_file *f, int del)
{
	return REAL(f)->pMethods->xShmUnmap(REAL(f), del);
}

static sqlite3_vfs *fault_below, fault_vfs;

static int fault_open(sqlite3_vfs *v, const char *name, sqlite3_file *f, int flags, int *out)
{
	static const sqlite3_io_methods methods = {
		.iVersion = 2, .xClose = ff_close, .xRead = ff_read, .xWrite = ff_write,
		.xTruncate = ff_truncate, .xSync = ff_sync, .xFileSize = ff_size, .xLock = ff_lock,
		.xUnlock = ff_unlock, .xCheckReservedLock = ff_reserved, .xFileControl = ff_control,
		.xSectorSize = ff_sector, .xDeviceCharacteristics = ff_device, .xShmMap = ff_shm_map,
		.xShmLock = ff_shm_lock, .xShmBarrier = ff_shm_barrier, .xShmUnmap = ff_shm_unmap,
	};
	struct fault_file *ff = (struct fault_file *)f;
	int rc;

	(void)v;
	ff->real = (sqlite3_file *)(ff + 1);
	memset(ff->real, 0, (size_t)fault_below->szOsFile);
	rc = fault_below->xOpen(fault_below, name, ff->real, flags, out);
	ff->base.pMethods = rc == SQLITE_OK ? &methods : NULL;
	return rc;
}

static void fault_install(void)
{
	fault_below = sqlite3_vfs_find(NULL);
	fault_vfs = *fault_below;
	fault_vfs.zName = "fault";
	fault_vfs.szOsFile += (int)sizeof(struct fault_file);
	fault_vfs.xOpen = fault_open;
	sqlite3_vfs_register(&fault_vfs, 1);
}
