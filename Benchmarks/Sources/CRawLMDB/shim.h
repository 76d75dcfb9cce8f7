#ifndef CRAWLMDB_SHIM_H
#define CRAWLMDB_SHIM_H

#include <lmdb.h>

#endif
