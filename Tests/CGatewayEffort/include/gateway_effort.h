#ifndef LARDER_GATEWAY_EFFORT_H
#define LARDER_GATEWAY_EFFORT_H

#include <stdbool.h>
#include <stdint.h>

/// What a process has done since it started. Two processes share it, so that reading it costs the counted one nothing.
struct effort_work {
    /// malloc, calloc, realloc and aligned allocations of all threads.
    uint64_t allocations;
    /// Jobs given to the global executor of Swift's concurrency.
    uint64_t jobs;
    /// Tasks made, children of task groups included; `async let` is not.
    uint64_t tasks;
    /// System calls, without those that depend on what other threads do at that moment: waits for an event or a timer
    /// (epoll_wait, timerfd_settime), what a lock or the memory of the process needs (futex, mmap), and wakeups.
    uint64_t calls;
    /// Writes of 8 bytes, which wake an event loop: eventfd(2).
    uint64_t wakeups;
    /// Bytes given to sendto(2), which proc_pid_io(5) leaves out.
    uint64_t sent;
};

/// System calls with numbers below this are counted one by one.
#define EFFORT_NUMBERS 512

/// True if this build can count: Linux with glibc, no sanitizer.
bool effort_can_count(void);

/// Splits the process into two: 0 in the new one, its id in this one, -1 on failure. Call it before any thread starts.
/// What the new process allocates, and what it gives to Swift's executor, is counted from now on. fork(2)
int effort_fork(void);

/// Ends the calling process without its handlers at exit. _exit(2)
void effort_exit(int status);

/// Counts the system calls of the other process from now on, on a thread of this one, until it ends. False if the
/// system does not allow it. ptrace(2), PTRACE_SEIZE and PTRACE_SYSCALL: every call stops its thread twice, so the count
/// is exact and the time of no interest.
bool effort_trace(int process);

/// What the other process has done so far.
struct effort_work effort_work(void);

/// The system calls with a number that the other process has made so far.
uint64_t effort_calls(int number);

/// The name of a system call; NULL if it has none here.
const char *effort_call_name(int number);

#endif
