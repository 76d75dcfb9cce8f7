#include "check.h"

static int unused(void *context, const larder_item *item) {
    (void)context, (void)item;
    CHECK(0);
    return 0;
}

/* NULL, lengths out of range and unknown flags: typed errors, and nothing is stored. */
void test_arguments(void) {
    larder_store *store = new_store(), *none;
    larder_body *body;
    larder_writer *writer;
    const void *bytes;
    size_t length;
    uint64_t number;
    int descriptor;
    char memory[64];
    larder_buffer buffer = {memory, sizeof memory, 0}, broken = {NULL, 5, 0};
    static char long_key[LARDER_KEY_LENGTH_MAX + 1];
    memset(long_key, 'k', sizeof long_key);

    IS(LARDER_INVALID_ARGUMENT, larder_open(NULL, NULL, &none));
    IS(LARDER_INVALID_ARGUMENT, larder_open("", NULL, &none));
    IS(LARDER_INVALID_ARGUMENT, larder_open("\xff", NULL, &none));
    IS(LARDER_INVALID_ARGUMENT, larder_open("/tmp", NULL, NULL));
    IS(LARDER_INVALID_ARGUMENT, larder_open("/dev/null", NULL, &none));
    CHECK(none == NULL);

    IS(LARDER_INVALID_ARGUMENT, larder_put(store, NULL, 1, TEXT("x"), NULL, NULL));
    IS(LARDER_INVALID_ARGUMENT, larder_put(store, NULL, 0, TEXT("x"), NULL, NULL));
    IS(LARDER_INVALID_ARGUMENT, larder_put(store, "k", SIZE_MAX, TEXT("x"), NULL, NULL));
    IS(LARDER_INVALID_ARGUMENT, larder_put(store, TEXT("k"), NULL, 1, NULL, NULL));
    IS(LARDER_INVALID_ARGUMENT, larder_put(store, TEXT("k"), "x", SIZE_MAX, NULL, NULL));
    IS(LARDER_TOO_LARGE, larder_put(store, long_key, sizeof long_key, TEXT("x"), NULL, NULL));
    IS(LARDER_OK, larder_put(store, long_key, sizeof long_key - 1, TEXT("x"), NULL, NULL));
    IS(LARDER_OK, larder_remove(store, long_key, sizeof long_key - 1));
    IS(LARDER_TOO_LARGE, larder_get(store, long_key, sizeof long_key, 0, &body));
    IS(LARDER_INVALID_ARGUMENT, larder_get(store, TEXT("k"), 0, NULL));
    IS(LARDER_INVALID_ARGUMENT, larder_get(store, TEXT("k"), 2, &body));
    IS(LARDER_INVALID_ARGUMENT, larder_read(store, TEXT("k"), 0, NULL, NULL));
    IS(LARDER_INVALID_ARGUMENT, larder_read(store, TEXT("k"), 0, &broken, NULL));
    IS(LARDER_INVALID_ARGUMENT, larder_read(store, TEXT("k"), 0, &buffer, &broken));
    IS(LARDER_INVALID_ARGUMENT, larder_contains(store, NULL, 3));
    IS(LARDER_INVALID_ARGUMENT, larder_remove(store, NULL, 3));
    IS(LARDER_INVALID_ARGUMENT, larder_touch(store, NULL, 3, 0));

    IS(LARDER_INVALID_ARGUMENT, larder_get_content(store, memory, 31, &body));
    IS(LARDER_INVALID_ARGUMENT, larder_get_content(store, memory, 33, &body));
    IS(LARDER_INVALID_ARGUMENT, larder_get_content(store, NULL, 32, &body));
    IS(LARDER_INVALID_ARGUMENT, larder_contains_content(store, memory, 0));
    CHECK(strstr(larder_error_message(), "32 bytes") != NULL);

    larder_put_options options = LARDER_INIT(larder_put_options);
    options.digest = memory;
    options.digest_length = 20;
    IS(LARDER_INVALID_ARGUMENT, larder_put(store, TEXT("k"), TEXT("x"), &options, NULL));
    IS(LARDER_INVALID_ARGUMENT, larder_writer_open(store, TEXT("k"), 1, &options, &writer));
    CHECK(writer == NULL);
    options = (larder_put_options)LARDER_INIT(larder_put_options);
    options.tag_count = 1;
    IS(LARDER_INVALID_ARGUMENT, larder_put(store, TEXT("k"), TEXT("x"), &options, NULL));
    static const char *const tags[] = {"", NULL, "\xff"};
    for (int index = 0; index < 3; index++) {
        options.tags = tags + index;
        IS(LARDER_INVALID_ARGUMENT, larder_put(store, TEXT("k"), TEXT("x"), &options, NULL));
    }
    options.tag_count = SIZE_MAX;
    IS(LARDER_TOO_LARGE, larder_put(store, TEXT("k"), TEXT("x"), &options, NULL));
    options = (larder_put_options)LARDER_INIT(larder_put_options);
    options.metadata_length = 1;
    IS(LARDER_INVALID_ARGUMENT, larder_put(store, TEXT("k"), TEXT("x"), &options, NULL));
    char *large = calloc(1, (1 << 20) + 1);
    options.metadata = large;
    options.metadata_length = (1 << 20) + 1;
    IS(LARDER_TOO_LARGE, larder_put(store, TEXT("k"), TEXT("x"), &options, NULL));
    free(large);

    IS(LARDER_INVALID_ARGUMENT, larder_change(store, TEXT("k"), NULL));
    larder_entry_change change = LARDER_INIT(larder_entry_change);
    change.fields = LARDER_CHANGE_PIN | LARDER_CHANGE_UNPIN;
    IS(LARDER_INVALID_ARGUMENT, larder_change(store, TEXT("k"), &change));
    IS(LARDER_INVALID_ARGUMENT, larder_pin_tag(store, NULL, NULL));
    IS(LARDER_INVALID_ARGUMENT, larder_pin_tag(store, "", NULL));
    IS(LARDER_INVALID_ARGUMENT, larder_list(store, NULL, NULL, NULL));
    IS(LARDER_INVALID_ARGUMENT, larder_describe(store, TEXT("k"), NULL, NULL));
    IS(LARDER_INVALID_ARGUMENT, larder_describe(store, NULL, 1, unused, NULL));
    IS(LARDER_INVALID_ARGUMENT, larder_remove_selected(store, NULL, NULL));
    larder_selection selection = LARDER_INIT(larder_selection);
    selection.digest = memory;
    selection.digest_length = 4;
    IS(LARDER_INVALID_ARGUMENT, larder_remove_selected(store, &selection, NULL));
    IS(LARDER_INVALID_ARGUMENT, larder_get_statistics(store, NULL));
    IS(LARDER_INVALID_ARGUMENT, larder_get_budget(store, NULL));
    IS(LARDER_INVALID_ARGUMENT, larder_set_budget(store, NULL));
    IS(LARDER_INVALID_ARGUMENT, larder_collect(store, 8, NULL, NULL, NULL));
    IS(LARDER_INVALID_ARGUMENT, larder_check(store, 8, NULL, NULL, NULL, NULL));
    IS(LARDER_INVALID_ARGUMENT, larder_batch_create(NULL));

    larder_statistics statistics = LARDER_INIT(larder_statistics);
    IS(LARDER_OK, larder_get_statistics(store, &statistics));
    CHECK(statistics.entries == 0);

    IS(LARDER_OK, larder_put(store, TEXT("k"), TEXT("x"), NULL, NULL));
    IS(LARDER_OK, larder_get(store, TEXT("k"), 0, &body));
    IS(LARDER_INVALID_ARGUMENT, larder_body_bytes(body, NULL, &length));
    IS(LARDER_INVALID_ARGUMENT, larder_body_bytes(body, &bytes, NULL));
    IS(LARDER_INVALID_ARGUMENT, larder_body_metadata(body, NULL, NULL));
    IS(LARDER_INVALID_ARGUMENT, larder_body_length(body, NULL));
    IS(LARDER_INVALID_ARGUMENT, larder_body_read(body, 0, NULL, 4, &length));
    IS(LARDER_INVALID_ARGUMENT, larder_body_read(body, 0, memory, SIZE_MAX, &length));
    IS(LARDER_INVALID_ARGUMENT, larder_body_read(body, 0, memory, 4, NULL));
    IS(LARDER_INVALID_ARGUMENT, larder_body_descriptor(body, NULL, &number, &number));
    IS(LARDER_INVALID_ARGUMENT, larder_body_descriptor(body, &descriptor, NULL, &number));
    IS(LARDER_INVALID_ARGUMENT, larder_body_digest(body, NULL, 32));
    IS(LARDER_OK, larder_body_release(body));
    IS(LARDER_OK, larder_close(store));
}

/* NULL, closed handles, those of another type, and numbers that were never a handle. */
void test_handles(void) {
    larder_store *store = new_store(), *again;
    larder_body *body;
    larder_batch *batch;
    char memory[8];
    larder_buffer buffer = {memory, sizeof memory, 0};

    IS(LARDER_OK, larder_close(NULL));
    IS(LARDER_OK, larder_body_release(NULL));
    IS(LARDER_OK, larder_writer_cancel(NULL));
    IS(LARDER_OK, larder_batch_release(NULL));
    IS(LARDER_INVALID_ARGUMENT, larder_put(NULL, TEXT("k"), TEXT("x"), NULL, NULL));
    IS(LARDER_INVALID_ARGUMENT, larder_writer_commit(NULL, NULL));
    IS(LARDER_INVALID_ARGUMENT, larder_put_if_unchanged(store, NULL, TEXT("x"), NULL));

    IS(LARDER_OK, larder_put(store, TEXT("k"), TEXT("x"), NULL, NULL));
    IS(LARDER_OK, larder_get(store, TEXT("k"), 0, &body));
    IS(LARDER_OK, larder_batch_create(&batch));
    IS(LARDER_INVALID_ARGUMENT, larder_close((larder_store *)body));
    IS(LARDER_INVALID_ARGUMENT, larder_body_release((larder_body *)store));
    IS(LARDER_INVALID_ARGUMENT, larder_flush((larder_store *)batch, 0));
    IS(LARDER_INVALID_ARGUMENT, larder_flush((larder_store *)memory, 0));
    IS(LARDER_INVALID_ARGUMENT, larder_flush((larder_store *)UINTPTR_MAX, 0));
    CHECK(has_body(store, "k", "x"));

    IS(LARDER_OK, larder_body_release(body));
    IS(LARDER_CLOSED, larder_body_release(body));
    IS(LARDER_CLOSED, larder_put_if_unchanged(store, body, TEXT("x"), NULL));
    /* The place is used again, the handle is not. */
    larder_body *other;
    IS(LARDER_OK, larder_get(store, TEXT("k"), 0, &other));
    IS(LARDER_CLOSED, larder_body_release(body));
    IS(LARDER_OK, larder_body_release(other));

    IS(LARDER_OK, larder_close(store));
    IS(LARDER_CLOSED, larder_close(store));
    IS(LARDER_CLOSED, larder_put(store, TEXT("k"), TEXT("y"), NULL, NULL));
    IS(LARDER_CLOSED, larder_read(store, TEXT("k"), 0, &buffer, NULL));
    IS(LARDER_CLOSED, larder_batch_write(store, batch, 0, NULL, 0));
    IS(LARDER_OK, larder_batch_release(batch));
    IS(LARDER_OK, larder_open(latest_path(), NULL, &again));
    CHECK(has_body(again, "k", "x"));
    IS(LARDER_OK, larder_close(again));
}

/* Structures of callers that are older, newer, or did not set `size`. */
void test_structures(void) {
    larder_store *store = new_store();
    struct {
        larder_put_options known;
        uint64_t later;
    } newer = {.known = {.size = sizeof newer}};
    IS(LARDER_OK, larder_put(store, TEXT("k"), TEXT("x"), &newer.known, NULL));
    newer.later = 1;
    IS(LARDER_UNSUPPORTED, larder_put(store, TEXT("k"), TEXT("y"), &newer.known, NULL));
    larder_put_options options = {0};
    IS(LARDER_INVALID_ARGUMENT, larder_put(store, TEXT("k"), TEXT("y"), &options, NULL));
    options.size = SIZE_MAX;
    IS(LARDER_INVALID_ARGUMENT, larder_put(store, TEXT("k"), TEXT("y"), &options, NULL));
    /* One that ends behind `flags`: what follows is not read. */
    options = (larder_put_options)LARDER_INIT(larder_put_options);
    options.size = offsetof(larder_put_options, reserved);
    options.digest_length = 7;
    IS(LARDER_OK, larder_put(store, TEXT("k"), TEXT("z"), &options, NULL));
    CHECK(has_body(store, "k", "z"));

    larder_statistics statistics;
    memset(&statistics, 0xAA, sizeof statistics);
    statistics.size = offsetof(larder_statistics, blobs);
    IS(LARDER_OK, larder_get_statistics(store, &statistics));
    CHECK(statistics.entries == 1 && statistics.blobs == 0xAAAAAAAAAAAAAAAA);
    statistics.size = 3;
    IS(LARDER_INVALID_ARGUMENT, larder_get_statistics(store, &statistics));

    struct {
        larder_budget known;
        uint64_t later;
    } budget = {.known = {.size = sizeof budget}, .later = 7};
    IS(LARDER_OK, larder_get_budget(store, &budget.known));
    CHECK(budget.known.bytes == LARDER_UNLIMITED && budget.later == 0);

    CHECK(strcmp(larder_version(), LARDER_VERSION) == 0);
    CHECK(strcmp(larder_status_name(LARDER_NO_SPACE), "NO_SPACE") == 0);
    CHECK(strcmp(larder_status_name((larder_status)77), "UNKNOWN") == 0);
    IS(LARDER_OK, larder_close(store));

    larder_options open = LARDER_INIT(larder_options);
    larder_store *refused;
    open.flags = LARDER_OPEN_VERIFY_ALWAYS | LARDER_OPEN_VERIFY_NEVER;
    IS(LARDER_INVALID_ARGUMENT, larder_open(latest_path(), &open, &refused));
    open.flags = 0;
    open.budget_bytes = 7;
    IS(LARDER_INVALID_ARGUMENT, larder_open(latest_path(), &open, &refused));
    open.budget_bytes = 0;
    open.inline_threshold = LARDER_UNLIMITED;
    open.version = "1";
    open.default_lifetime = LARDER_NEVER;
    IS(LARDER_OK, larder_open(latest_path(), &open, &store));
    IS(LARDER_ABSENT, larder_contains(store, TEXT("k")));
    IS(LARDER_OK, larder_close(store));
}
