#include "check.h"

#include <stdarg.h>

int failures;
static const char *root;
static char path[4096];
static int stores;

void check_failed(const char *file, int line, const char *what) {
    failures++;
    fprintf(stderr, "%s:%d: does not hold: %s\n", file, line, what);
}

void check_status(const char *file, int line, const char *call, larder_status found, larder_status wanted) {
    if (found == wanted) return;
    failures++;
    fprintf(
        stderr, "%s:%d: %s is %s, not %s: %s\n", file, line, call, larder_status_name(found),
        larder_status_name(wanted), LARDER_IS_ERROR(found) ? larder_error_message() : "");
}

larder_store *new_store_with(const larder_options *options) {
    larder_store *store = NULL;
    snprintf(path, sizeof path, "%s/%d", root, ++stores);
    if (larder_open(path, options, &store) != LARDER_OK) {
        fprintf(stderr, "%s: %s\n", path, larder_error_message());
        exit(1);
    }
    return store;
}

larder_store *new_store(void) { return new_store_with(NULL); }

const char *latest_path(void) { return path; }

int has_body(larder_store *store, const char *key, const char *body) {
    char memory[4096];
    larder_buffer buffer = {memory, sizeof memory, 0};
    return larder_read(store, key, strlen(key), 0, &buffer, NULL) == LARDER_OK && buffer.length == strlen(body)
        && memcmp(memory, body, buffer.length) == 0;
}

int main(int count, char **arguments) {
    static const struct {
        const char *name;
        void (*run)(void);
    } tests[] = {
        {"entries", test_entries},       {"bodies", test_bodies},         {"options", test_options},
        {"writers", test_writers},       {"conditions", test_conditions}, {"batches", test_batches},
        {"compression", test_compression}, {"encryption", test_encryption},
        {"listing", test_listing},       {"upkeep", test_upkeep},         {"arguments", test_arguments},
        {"handles", test_handles},       {"structures", test_structures}, {"threads", test_threads},
        {"fork", test_fork},
    };
    if (count < 2) {
        fprintf(stderr, "usage: %s DIRECTORY [TEST...]\n", arguments[0]);
        return 64;
    }
    root = arguments[1];
    int passed = 0, failed = 0;
    for (size_t index = 0; index < sizeof tests / sizeof *tests; index++) {
        int isWanted = count == 2;
        for (int other = 2; other < count; other++)
            if (strcmp(arguments[other], tests[index].name) == 0) isWanted = 1;
        if (!isWanted) continue;
        int before = failures;
        tests[index].run();
        if (failures == before) passed++;
        else {
            failed++;
            fprintf(stderr, "FAILED: %s\n", tests[index].name);
        }
    }
    printf("%d passed, %d failed\n", passed, failed);
    return failed == 0 && passed > 0 ? 0 : 1;
}
