#define _GNU_SOURCE
#include "counts.h"

#include <stddef.h>

uint64_t effort_calls(int number) { return number >= 0 && number < EFFORT_NUMBERS ? effort_counts->calls[number] : 0; }

#if defined(__linux__) && !defined(EFFORT_SANITIZED)

#include <errno.h>
#include <linux/ptrace.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

extern long ptrace(int request, ...);

enum kind { does, waits, locks };
struct call { const char *name; enum kind kind; };

static const struct call known[EFFORT_NUMBERS] = {
    [SYS_read] = {"read", does}, [SYS_write] = {"write", does}, [SYS_readv] = {"readv", does},
    [SYS_writev] = {"writev", does}, [SYS_pread64] = {"pread", does}, [SYS_pwrite64] = {"pwrite", does},
    [SYS_preadv] = {"preadv", does}, [SYS_pwritev] = {"pwritev", does}, [SYS_sendto] = {"sendto", does},
    [SYS_recvfrom] = {"recvfrom", does}, [SYS_sendmsg] = {"sendmsg", does}, [SYS_recvmsg] = {"recvmsg", does},
    [SYS_sendfile] = {"sendfile", does}, [SYS_copy_file_range] = {"copy_file_range", does},
    [SYS_openat] = {"openat", does}, [SYS_close] = {"close", does}, [SYS_fstat] = {"fstat", does},
    [SYS_newfstatat] = {"fstatat", does}, [SYS_statx] = {"statx", does}, [SYS_lseek] = {"lseek", does},
    [SYS_fcntl] = {"fcntl", does}, [SYS_ftruncate] = {"ftruncate", does}, [SYS_fallocate] = {"fallocate", does},
    [SYS_unlinkat] = {"unlinkat", does}, [SYS_renameat2] = {"renameat2", does}, [SYS_linkat] = {"linkat", does},
    [SYS_fsync] = {"fsync", does}, [SYS_fdatasync] = {"fdatasync", does}, [SYS_msync] = {"msync", does},
    [SYS_epoll_ctl] = {"epoll_ctl", does}, [SYS_timerfd_settime] = {"timerfd_settime", waits},
    [SYS_getsockopt] = {"getsockopt", does}, [SYS_setsockopt] = {"setsockopt", does}, [SYS_accept4] = {"accept4", does},
    [SYS_getrandom] = {"getrandom", does}, [SYS_clock_gettime] = {"clock_gettime", does}, [SYS_gettid] = {"gettid", does},
    [SYS_ioctl] = {"ioctl", does}, [SYS_getpeername] = {"getpeername", does}, [SYS_getsockname] = {"getsockname", does},
    [SYS_getpid] = {"getpid", does}, [SYS_fstatfs] = {"fstatfs", does}, [SYS_statfs] = {"statfs", does},
    [SYS_clone3] = {"clone3", locks}, [SYS_set_robust_list] = {"set_robust_list", locks}, [SYS_rseq] = {"rseq", locks},
    [SYS_rt_sigprocmask] = {"rt_sigprocmask", locks}, [SYS_exit] = {"exit", locks},
    [SYS_epoll_pwait] = {"epoll_pwait", waits}, [SYS_ppoll] = {"ppoll", waits}, [SYS_nanosleep] = {"nanosleep", waits},
    [SYS_clock_nanosleep] = {"clock_nanosleep", waits}, [SYS_restart_syscall] = {"restart_syscall", waits},
    [SYS_futex] = {"futex", locks}, [SYS_sched_yield] = {"sched_yield", locks}, [SYS_mmap] = {"mmap", locks},
    [SYS_munmap] = {"munmap", locks}, [SYS_mprotect] = {"mprotect", locks}, [SYS_mremap] = {"mremap", locks},
    [SYS_madvise] = {"madvise", locks}, [SYS_brk] = {"brk", locks}, [SYS_sched_getaffinity] = {"sched_getaffinity", locks},
    [SYS_prctl] = {"prctl", locks},
#ifdef SYS_epoll_wait
    [SYS_epoll_wait] = {"epoll_wait", waits}, [SYS_poll] = {"poll", waits},
#endif
};

const char *effort_call_name(int number) {
    return number >= 0 && number < EFFORT_NUMBERS ? known[number].name : NULL;
}

/// The bytes of a message, whose address is in the memory of the traced thread.
static uint64_t message_bytes(pid_t thread, uint64_t address) {
    struct msghdr message;
    struct iovec pieces[8], here = {&message, sizeof message}, there = {(void *)(uintptr_t)address, sizeof message};
    if (process_vm_readv(thread, &here, 1, &there, 1, 0) != sizeof message || message.msg_iovlen > 8) return 0;
    size_t length = message.msg_iovlen * sizeof *pieces;
    here = (struct iovec){pieces, length};
    there = (struct iovec){message.msg_iov, length};
    if (process_vm_readv(thread, &here, 1, &there, 1, 0) != (ssize_t)length) return 0;
    uint64_t sum = 0;
    for (size_t index = 0; index < message.msg_iovlen; index++) sum += pieces[index].iov_len;
    return sum;
}

static void entered(pid_t thread, const struct ptrace_syscall_info *info) {
    uint64_t number = info->entry.nr;
    if (number >= EFFORT_NUMBERS) number = EFFORT_NUMBERS - 1;
    // Eight bytes are an eventfd's or a timerfd's: neither a message of HTTP nor a frame is that short.
    if ((number == SYS_write || number == SYS_read) && info->entry.args[2] == 8) {
        _Atomic uint64_t *count = number == SYS_write ? &effort_counts->wakeups : &effort_counts->wakeup_reads;
        atomic_fetch_add_explicit(count, 1, memory_order_relaxed);
    }
    if (number == SYS_sendto || number == SYS_sendmsg) {
        const __u64 *arguments = info->entry.args;
        uint64_t sent = number == SYS_sendto ? arguments[2] : message_bytes(thread, arguments[1]);
        atomic_fetch_add_explicit(&effort_counts->sent, sent, memory_order_relaxed);
    }
    atomic_fetch_add_explicit(&effort_counts->calls[number], 1, memory_order_relaxed);
}

/// Lets a stopped thread continue, as its stop asks for.
static void resume(pid_t thread, int status) {
    int signal = WSTOPSIG(status), event = status >> 16;
    if (signal == (SIGTRAP | 0x80)) {
        struct ptrace_syscall_info info;
        memset(&info, 0, sizeof info);
        if (ptrace(PTRACE_GET_SYSCALL_INFO, thread, sizeof info, &info) > 0 && info.op == PTRACE_SYSCALL_INFO_ENTRY) {
            entered(thread, &info);
        }
        signal = 0;
    } else if (event == PTRACE_EVENT_STOP) {
        // Stopped by a signal, or new: only the first stays stopped.
        if (signal == SIGSTOP || signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU) {
            ptrace(PTRACE_LISTEN, thread, 0, 0);
            return;
        }
        signal = 0;
    } else if (event != 0) {
        signal = 0;
    }
    ptrace(PTRACE_SYSCALL, thread, 0, (void *)(long)signal);
}

struct order { pid_t process; sem_t answered; bool is_tracing; };

// Only the thread that traces may wait for the traced ones and let them continue.
static void *trace(void *argument) {
    struct order *order = argument;
    pid_t process = order->process;
    long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE;
    order->is_tracing = ptrace(PTRACE_SEIZE, process, 0, (void *)options) == 0
        && ptrace(PTRACE_INTERRUPT, process, 0, 0) == 0;
    bool is_tracing = order->is_tracing;
    sem_post(&order->answered);
    while (is_tracing) {
        int status;
        pid_t thread = waitpid(-1, &status, __WALL);
        if (thread < 0 && errno == EINTR) continue;
        if (thread < 0) break;
        if (WIFSTOPPED(status)) resume(thread, status);
        else if (thread == process) break;
    }
    return NULL;
}

bool effort_trace(int process) {
    struct order order = {.process = process};
    pthread_t thread;
    if (sem_init(&order.answered, 0, 0) != 0 || pthread_create(&thread, NULL, trace, &order) != 0) return false;
    while (sem_wait(&order.answered) != 0) {}
    pthread_detach(thread);
    return order.is_tracing;
}

static uint64_t sum(enum kind kind) {
    uint64_t sum = 0;
    for (int number = 0; number < EFFORT_NUMBERS; number++) {
        if (known[number].kind == kind) sum += effort_counts->calls[number];
    }
    return sum;
}

struct effort_work effort_work(void) {
    uint64_t wakeups = effort_counts->wakeups;
    return (struct effort_work){
        .allocations = effort_counts->allocations, .jobs = effort_counts->jobs, .tasks = effort_counts->tasks,
        .calls = sum(does) - wakeups - effort_counts->wakeup_reads, .wakeups = wakeups,
        .sent = effort_counts->sent,
    };
}

#else

bool effort_trace(int process) { return (void)process, false; }
const char *effort_call_name(int number) { return (void)number, NULL; }
struct effort_work effort_work(void) {
    return (struct effort_work){
        .allocations = effort_counts->allocations, .jobs = effort_counts->jobs, .tasks = effort_counts->tasks,
    };
}

#endif
