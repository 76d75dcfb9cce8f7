#ifndef CLMDB_SHIM_H
#define CLMDB_SHIM_H

#include <lmdb.h>

#if MDB_VERSION_FULL < MDB_VERINT(0, 9, 17) || MDB_VERSION_MAJOR > 1
#error "Larder needs LMDB 0.9 (0.9.17 or later) or 1.x: install another version of LMDB and its headers"
#endif

#endif
