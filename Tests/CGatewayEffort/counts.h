#ifndef LARDER_EFFORT_COUNTS_H
#define LARDER_EFFORT_COUNTS_H

#include "gateway_effort.h"

#include <stdatomic.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define EFFORT_SANITIZED 1
#endif
#endif

/// In memory that both processes share.
struct counts {
    _Atomic uint64_t allocations, jobs, tasks, wakeups, wakeup_reads, sent;
    _Atomic uint64_t calls[EFFORT_NUMBERS];
};

/// Where to count; a page of this process alone until effort_fork.
extern struct counts *effort_counts;

/// True in the process whose work is counted.
extern bool effort_is_counted;

static inline void effort_add(_Atomic uint64_t *count) {
    if (effort_is_counted) atomic_fetch_add_explicit(count, 1, memory_order_relaxed);
}

/// Counts what is given to Swift's executor from now on.
void effort_count_jobs(void);

#endif
