#include "check.h"

/* Streaming. */
void test_writers(void) {
    larder_store *store = new_store();
    larder_writer *writer;
    unsigned char digest[LARDER_DIGEST_LENGTH];
    char piece[10000];
    memset(piece, 'x', sizeof piece);

    /* From memory into a file: 1 MB in 100 pieces. */
    IS(LARDER_OK, larder_writer_open(store, TEXT("big"), LARDER_LENGTH_UNKNOWN, NULL, &writer));
    for (int index = 0; index < 100; index++) IS(LARDER_OK, larder_writer_write(writer, piece, sizeof piece));
    IS(LARDER_ABSENT, larder_contains(store, TEXT("big")));
    IS(LARDER_OK, larder_writer_commit(writer, digest));
    IS(LARDER_CLOSED, larder_writer_commit(writer, NULL));
    IS(LARDER_CLOSED, larder_writer_cancel(writer));
    IS(LARDER_CLOSED, larder_writer_write(writer, piece, 1));
    larder_body *body;
    IS(LARDER_OK, larder_get_content(store, digest, sizeof digest, &body));
    uint64_t length = 0;
    IS(LARDER_OK, larder_body_length(body, &length));
    CHECK(length == 1000000);
    IS(LARDER_OK, larder_body_release(body));

    /* What is cancelled, or not of its declared length, is not stored. */
    IS(LARDER_OK, larder_writer_open(store, TEXT("no"), LARDER_LENGTH_UNKNOWN, NULL, &writer));
    IS(LARDER_OK, larder_writer_write(writer, piece, sizeof piece));
    IS(LARDER_OK, larder_writer_cancel(writer));
    IS(LARDER_OK, larder_writer_open(store, TEXT("no"), 5, NULL, &writer));
    IS(LARDER_OK, larder_writer_write(writer, piece, 4));
    IS(LARDER_LENGTH_MISMATCH, larder_writer_commit(writer, NULL));
    IS(LARDER_OK, larder_writer_open(store, TEXT("no"), 5, NULL, &writer));
    IS(LARDER_LENGTH_MISMATCH, larder_writer_write(writer, piece, 6));
    IS(LARDER_CLOSED, larder_writer_write(writer, piece, 1));
    IS(LARDER_CLOSED, larder_writer_commit(writer, NULL));
    larder_put_options options = LARDER_INIT(larder_put_options);
    options.digest = digest;
    options.digest_length = sizeof digest;
    IS(LARDER_OK, larder_writer_open(store, TEXT("no"), LARDER_LENGTH_UNKNOWN, &options, &writer));
    IS(LARDER_OK, larder_writer_write(writer, piece, 4));
    IS(LARDER_DIGEST_MISMATCH, larder_writer_commit(writer, NULL));
    IS(LARDER_ABSENT, larder_contains(store, TEXT("no")));

    /* A writer outlives its store, but cannot store. */
    IS(LARDER_OK, larder_writer_open(store, TEXT("late"), LARDER_LENGTH_UNKNOWN, NULL, &writer));
    IS(LARDER_OK, larder_close(store));
    IS(LARDER_CLOSED, larder_writer_write(writer, piece, sizeof piece));
    IS(LARDER_CLOSED, larder_writer_commit(writer, NULL));
}

/* Compare and set. */
void test_conditions(void) {
    larder_store *store = new_store();
    IS(LARDER_OK, larder_put_if_absent(store, TEXT("k"), TEXT("1"), NULL));
    IS(LARDER_PRESENT, larder_put_if_absent(store, TEXT("k"), TEXT("2"), NULL));
    CHECK(has_body(store, "k", "1"));

    larder_body *first, *second;
    IS(LARDER_OK, larder_get(store, TEXT("k"), 0, &first));
    IS(LARDER_OK, larder_put_if_unchanged(store, first, TEXT("2"), NULL));
    CHECK(has_body(store, "k", "2"));
    IS(LARDER_CHANGED, larder_put_if_unchanged(store, first, TEXT("3"), NULL));
    IS(LARDER_CHANGED, larder_remove_if_unchanged(store, first));
    CHECK(has_body(store, "k", "2"));
    IS(LARDER_OK, larder_get(store, TEXT("k"), 0, &second));
    IS(LARDER_OK, larder_remove_if_unchanged(store, second));
    IS(LARDER_ABSENT, larder_put_if_unchanged(store, second, TEXT("3"), NULL));
    IS(LARDER_ABSENT, larder_remove_if_unchanged(store, second));
    IS(LARDER_ABSENT, larder_contains(store, TEXT("k")));

    /* A body in a file that is not stored leaves nothing. */
    char *big = calloc(1, 400000);
    IS(LARDER_ABSENT, larder_put_if_unchanged(store, second, big, 400000, NULL));
    free(big);
    larder_statistics statistics = LARDER_INIT(larder_statistics);
    IS(LARDER_OK, larder_get_statistics(store, &statistics));
    CHECK(statistics.entries == 0 && statistics.blobs == 0);

    /* Content without an entry is nothing to compare with. */
    unsigned char digest[LARDER_DIGEST_LENGTH];
    IS(LARDER_OK, larder_put(store, TEXT("k"), TEXT("4"), NULL, digest));
    larder_body *content;
    IS(LARDER_OK, larder_get_content(store, digest, sizeof digest, &content));
    IS(LARDER_INVALID_ARGUMENT, larder_put_if_unchanged(store, content, TEXT("5"), NULL));
    IS(LARDER_INVALID_ARGUMENT, larder_remove_if_unchanged(store, content));
    CHECK(has_body(store, "k", "4"));
    IS(LARDER_OK, larder_body_release(first));
    IS(LARDER_OK, larder_body_release(second));
    IS(LARDER_OK, larder_body_release(content));
    IS(LARDER_OK, larder_close(store));
}

void test_compression(void) {
    larder_store *store = new_store();
    char *text = malloc(50000);
    for (int place = 0; place < 50000; place++) text[place] = "a line of text\n"[place % 15];
    larder_put_options options = LARDER_INIT(larder_put_options);
    options.flags = LARDER_PUT_COMPRESS | LARDER_PUT_PLAIN;
    IS(LARDER_INVALID_ARGUMENT, larder_put(store, TEXT("k"), text, 50000, &options, NULL));
    options.flags = LARDER_PUT_COMPRESS;
    IS(LARDER_OK, larder_put(store, TEXT("k"), text, 50000, &options, NULL));
    IS(LARDER_OK, larder_flush(store, 0));
    larder_statistics statistics = LARDER_INIT(larder_statistics);
    IS(LARDER_OK, larder_get_statistics(store, &statistics));
    CHECK(statistics.stored_bytes < 5000 && statistics.stored_bytes + statistics.compression_gain == 50000);
    larder_body *body;
    IS(LARDER_OK, larder_get(store, TEXT("k"), 0, &body));
    const void *bytes;
    size_t length;
    IS(LARDER_OK, larder_body_bytes(body, &bytes, &length));
    CHECK(length == 50000 && memcmp(bytes, text, length) == 0);
    IS(LARDER_OK, larder_body_release(body));
    free(text);
    IS(LARDER_OK, larder_close(store));
}

void test_batches(void) {
    larder_store *store = new_store();
    larder_batch *batch;
    larder_entry_change change = LARDER_INIT(larder_entry_change);
    change.fields = LARDER_CHANGE_METADATA;
    change.metadata = "new";
    change.metadata_length = 3;
    IS(LARDER_OK, larder_put(store, TEXT("there"), TEXT("0"), NULL, NULL));
    IS(LARDER_OK, larder_batch_create(&batch));
    IS(LARDER_OK, larder_batch_put(batch, TEXT("a"), TEXT("1"), NULL, 0));
    IS(LARDER_OK, larder_batch_put(batch, TEXT("there"), TEXT("1"), NULL, 1));
    IS(LARDER_OK, larder_batch_change(batch, TEXT("there"), &change));
    IS(LARDER_OK, larder_batch_remove(batch, TEXT("none")));
    IS(LARDER_ABSENT, larder_contains(store, TEXT("a")));
    larder_status results[4];
    IS(LARDER_SHORT, larder_batch_write(store, batch, 0, results, 3));
    IS(LARDER_ABSENT, larder_contains(store, TEXT("a")));
    IS(LARDER_OK, larder_batch_write(store, batch, 1, results, 4));
    CHECK(results[0] == LARDER_OK && results[1] == LARDER_PRESENT);
    CHECK(results[2] == LARDER_OK && results[3] == LARDER_ABSENT);
    CHECK(has_body(store, "a", "1") && has_body(store, "there", "0"));
    IS(LARDER_OK, larder_batch_write(store, batch, 0, NULL, 0));
    IS(LARDER_OK, larder_batch_release(batch));
    IS(LARDER_CLOSED, larder_batch_remove(batch, TEXT("a")));
    IS(LARDER_CLOSED, larder_batch_write(store, batch, 0, NULL, 0));
    IS(LARDER_OK, larder_close(store));
}
