#include "check.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 4, ROUNDS = 300 };

static larder_store *shared;
static larder_body *contended;

static void *use_store(void *argument) {
    char name = (char)('a' + *(int *)argument);
    char key[16], found[16];
    intptr_t wrong = 0;
    for (int round = 0; round < ROUNDS; round++) {
        int length = snprintf(key, sizeof key, "%c%d", name, round % 17);
        larder_buffer buffer = {found, sizeof found, 0};
        wrong += larder_put(shared, key, (size_t)length, key, (size_t)length, NULL, NULL) != LARDER_OK;
        wrong += larder_read(shared, key, (size_t)length, 0, &buffer, NULL) != LARDER_OK;
        wrong += buffer.length != (size_t)length || memcmp(found, key, buffer.length) != 0;
        larder_body *body;
        wrong += larder_get(shared, key, (size_t)length, 0, &body) != LARDER_OK;
        wrong += larder_body_release(body) != LARDER_OK;
    }
    /* The text of an error belongs to the thread. */
    wrong += larder_get(shared, &name, 0, 0, &(larder_body *){NULL}) != LARDER_INVALID_ARGUMENT;
    wrong += strstr(larder_error_message(), "the key is empty") == NULL;
    return (void *)wrong;
}

/* Counts with compare and set; a lost update shows in the sum. */
static void *count_up(void *argument) {
    (void)argument;
    intptr_t wrong = 0;
    for (int round = 0; round < 20;) {
        larder_body *body;
        const void *bytes;
        size_t length;
        int number = 0;
        wrong += larder_get(shared, TEXT("counter"), 0, &body) != LARDER_OK;
        wrong += larder_body_bytes(body, &bytes, &length) != LARDER_OK || length != sizeof number;
        if (wrong) break;
        memcpy(&number, bytes, sizeof number);
        number++;
        larder_status status = larder_put_if_unchanged(shared, body, &number, sizeof number, NULL);
        if (status == LARDER_OK) round++;
        else wrong += status != LARDER_CHANGED;
        larder_body_release(body);
    }
    return (void *)wrong;
}

static void *release_once(void *argument) {
    (void)argument;
    return (void *)(intptr_t)(larder_body_release(contended) == LARDER_OK);
}

/* Runs a function on several threads; returns the sum of what they returned. */
static intptr_t run(void *(*function)(void *)) {
    pthread_t threads[THREADS];
    int numbers[THREADS];
    intptr_t sum = 0;
    for (int index = 0; index < THREADS; index++) {
        numbers[index] = index;
        CHECK(pthread_create(&threads[index], NULL, function, &numbers[index]) == 0);
    }
    for (int index = 0; index < THREADS; index++) {
        void *result = NULL;
        CHECK(pthread_join(threads[index], &result) == 0);
        sum += (intptr_t)result;
    }
    return sum;
}

void test_threads(void) {
    shared = new_store();
    CHECK(run(use_store) == 0);
    int zero = 0;
    IS(LARDER_OK, larder_put(shared, TEXT("counter"), &zero, sizeof zero, NULL, NULL));
    CHECK(run(count_up) == 0);
    int sum = 0;
    larder_buffer buffer = {&sum, sizeof sum, 0};
    IS(LARDER_OK, larder_read(shared, TEXT("counter"), 0, &buffer, NULL));
    CHECK(sum == THREADS * 20);
    for (int round = 0; round < 50; round++) {
        IS(LARDER_OK, larder_get(shared, TEXT("counter"), 0, &contended));
        CHECK(run(release_once) == 1);
    }
    IS(LARDER_OK, larder_close(shared));
}

/* Threads that are busy at a fork. The allocator of AddressSanitizer does not survive one that meets it at work. */
#ifdef __SANITIZE_ADDRESS__
enum { BUSY = 0, FORKS = 3 };
#else
enum { BUSY = 4, FORKS = 20 };
#endif

/* LARDER_FORKS: fewer under valgrind, which runs one thread at a time. */
static int forks(void) {
    const char *text = getenv("LARDER_FORKS");
    return text ? atoi(text) : FORKS;
}

static atomic_int is_over;

/* Reads and writes until it is told to stop, so that a fork meets whatever locks there are. */
static void *stay_busy(void *argument) {
    char key[2] = {'t', (char)('a' + *(int *)argument)};
    intptr_t wrong = 0;
    while (!is_over) {
        larder_body *body;
        wrong += larder_put(shared, key, sizeof key, key, sizeof key, NULL, NULL) != LARDER_OK;
        wrong += larder_get(shared, key, sizeof key, 0, &body) != LARDER_OK;
        wrong += larder_body_release(body) != LARDER_OK;
    }
    return (void *)wrong;
}

/* What a child finds: the handles of its parent are refused, and a store that it opens itself works. */
static int child_works(larder_body *inherited) {
    larder_store *own;
    if (larder_contains(shared, TEXT("k")) != LARDER_MUST_REOPEN) return 1;
    if (strstr(larder_error_message(), "fork") == NULL) return 2;
    if (larder_close(shared) != LARDER_MUST_REOPEN) return 3;
    if (larder_body_release(inherited) != LARDER_MUST_REOPEN) return 4;
    if (larder_open(latest_path(), NULL, &own) != LARDER_OK) return 5;
    if (!has_body(own, "k", "x")) return 6;
    /* Long enough for the thread that hashes. */
    static char large[100000];
    if (larder_put(own, TEXT("large"), large, sizeof large, NULL, NULL) != LARDER_OK) return 7;
    if (larder_put(own, TEXT("child"), TEXT("y"), NULL, NULL) != LARDER_OK) return 8;
    if (!has_body(own, "child", "y")) return 9;
    if (larder_collect(own, 0, NULL, NULL, NULL) != LARDER_OK) return 10;
    return larder_close(own) == LARDER_OK ? 0 : 11;
}

/*
 * A child of fork(2) opens stores of its own, while threads of the parent are in the middle of whatever they do. The
 * child ends by a signal: at an exit valgrind would look for leaks in it, and take for lost what only the threads that
 * stayed behind refer to.
 */
void test_fork(void) {
    shared = new_store();
    IS(LARDER_OK, larder_put(shared, TEXT("k"), TEXT("x"), NULL, NULL));
    IS(LARDER_OK, larder_flush(shared, 0));
    larder_body *body;
    IS(LARDER_OK, larder_get(shared, TEXT("k"), 0, &body));
    pthread_t threads[BUSY + 1];
    int numbers[BUSY + 1];
    is_over = 0;
    for (int index = 0; index < BUSY; index++) {
        numbers[index] = index;
        CHECK(pthread_create(&threads[index], NULL, stay_busy, &numbers[index]) == 0);
    }
    for (int round = 0, count = forks(); round < count; round++) {
        int ends[2];
        CHECK(pipe(ends) == 0);
        pid_t child = fork();
        if (child == 0) {
            alarm(300);
            char answer = (char)child_works(body);
            if (write(ends[1], &answer, 1) != 1) abort();
            kill(getpid(), SIGKILL);
        }
        char answer = 100;
        close(ends[1]);
        CHECK(child > 0 && read(ends[0], &answer, 1) == 1);
        if (answer != 0) fprintf(stderr, "round %d: the child stopped at %d\n", round, answer);
        CHECK(answer == 0);
        close(ends[0]);
        CHECK(waitpid(child, NULL, 0) == child);
    }
    is_over = 1;
    for (int index = 0; index < BUSY; index++) {
        void *wrong;
        CHECK(pthread_join(threads[index], &wrong) == 0);
        CHECK(wrong == NULL);
    }
    CHECK(has_body(shared, "child", "y"));
    IS(LARDER_OK, larder_body_release(body));
    IS(LARDER_OK, larder_close(shared));
}
