#include "check.h"

#include <pthread.h>
#include <signal.h>
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

/*
 * A child of fork(2) is refused, and the parent continues. The child ends by a signal: at an exit valgrind would look for
 * leaks in it, and take for lost what only the threads that stayed behind refer to.
 */
void test_fork(void) {
    larder_store *store = new_store();
    IS(LARDER_OK, larder_put(store, TEXT("k"), TEXT("x"), NULL, NULL));
    int ends[2];
    CHECK(pipe(ends) == 0);
    pid_t child = fork();
    if (child == 0) {
        larder_store *other = store;
        char answer = larder_contains(store, TEXT("k")) == LARDER_MUST_REOPEN
            && larder_open(latest_path(), NULL, &other) == LARDER_MUST_REOPEN && other == NULL
            && larder_close(store) == LARDER_MUST_REOPEN && strstr(larder_error_message(), "fork") != NULL;
        if (write(ends[1], &answer, 1) != 1) abort();
        kill(getpid(), SIGKILL);
    }
    char answer = 0;
    close(ends[1]);
    CHECK(child > 0 && read(ends[0], &answer, 1) == 1 && answer == 1);
    close(ends[0]);
    CHECK(waitpid(child, NULL, 0) == child);
    CHECK(has_body(store, "k", "x"));
    IS(LARDER_OK, larder_close(store));
}
