#define _GNU_SOURCE
#include "counts.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#ifdef __linux__
#include <sys/prctl.h>
#endif

static struct counts unshared;
struct counts *effort_counts = &unshared;
bool effort_is_counted = false;

#if defined(__GLIBC__) && !defined(EFFORT_SANITIZED)

#include <dlfcn.h>

// The executable's own definitions come before those of libc, for every library of the process; glibc names the originals.
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *old, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);

void *malloc(size_t size) {
    effort_add(&effort_counts->allocations);
    return __libc_malloc(size);
}

void *calloc(size_t count, size_t size) {
    effort_add(&effort_counts->allocations);
    return __libc_calloc(count, size);
}

void *realloc(void *old, size_t size) {
    effort_add(&effort_counts->allocations);
    return __libc_realloc(old, size);
}

void *aligned_alloc(size_t alignment, size_t size) {
    effort_add(&effort_counts->allocations);
    return __libc_memalign(alignment, size);
}

int posix_memalign(void **out, size_t alignment, size_t size) {
    effort_add(&effort_counts->allocations);
    *out = __libc_memalign(alignment, size);
    return *out ? 0 : ENOMEM;
}

// The Swift runtime has this variable for anyone who wants to see or change where jobs go: libswift_Concurrency,
// "swift_task_enqueueGlobal_hook". Its second argument is what the runtime does without a hook.
#define SWIFT __attribute__((swiftcall))
typedef SWIFT void (*enqueue)(void *job);
typedef SWIFT void (*enqueue_hook)(void *job, enqueue original);

static SWIFT void count_job(void *job, enqueue original) {
    effort_add(&effort_counts->jobs);
    original(job);
}

// Calls of the executable and of the modules in it come here before they go to the runtime.
struct task_and_context { void *task, *context; };
typedef SWIFT struct task_and_context (*create)(size_t, void *, const void *, void *, void *);
static create original_create;

SWIFT struct task_and_context swift_task_create(
    size_t flags, void *options, const void *result, void *entry, void *context) {
    effort_add(&effort_counts->tasks);
    if (!original_create) original_create = (create)dlsym(RTLD_NEXT, "swift_task_create");
    return original_create(flags, options, result, entry, context);
}

void effort_count_jobs(void) {
    original_create = (create)dlsym(RTLD_NEXT, "swift_task_create");
    enqueue_hook *hook = dlsym(RTLD_DEFAULT, "swift_task_enqueueGlobal_hook");
    if (hook) *hook = count_job;
}

bool effort_can_count(void) { return true; }

#else

void effort_count_jobs(void) {}
bool effort_can_count(void) { return false; }

#endif

int effort_fork(void) {
    void *shared = mmap(NULL, sizeof(struct counts), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) return -1;
    effort_counts = shared;
    pid_t parent = getpid();
    pid_t process = fork();
    if (process != 0) return process;
#ifdef __linux__
    prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
    if (getppid() != parent) _exit(1);
    effort_is_counted = true;
    effort_count_jobs();
    return 0;
}

void effort_exit(int status) { _exit(status); }
