#ifndef LARDER_EFFORT_H
#define LARDER_EFFORT_H

#include <stdbool.h>
#include <stdint.h>

/// Allocations of the calling thread since it started: malloc, calloc, realloc and aligned ones. 0 where they cannot be
/// counted: `effort_counts_allocations` tells.
uint64_t effort_allocations(void);

/// True if this build counts allocations: glibc, and no sanitizer, which has an allocator of its own.
bool effort_counts_allocations(void);

/// From now on any system call of the calling thread but read and write ends the process with SIGSYS.
/// False if the system has no such thing. seccomp(2), SECCOMP_SET_MODE_FILTER.
bool effort_forbid_system_calls(void);

/// From now on every pwrite of this process to `descriptor` at an offset below `end` fails with EIO. False if the system has no
/// such thing. seccomp(2), SECCOMP_FILTER_FLAG_TSYNC.
bool effort_refuse_writes(int descriptor, uint32_t end);

#endif
