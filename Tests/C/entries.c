#include "check.h"

#include <fcntl.h>
#include <unistd.h>

static const char *const TAGS[] = {"news", "t\xc3\xa4g"};

/* Puts, lookups and removals. */
void test_entries(void) {
    larder_store *store = new_store();
    unsigned char digest[LARDER_DIGEST_LENGTH], other[LARDER_DIGEST_LENGTH];

    IS(LARDER_ABSENT, larder_contains(store, TEXT("k")));
    IS(LARDER_OK, larder_put(store, TEXT("k"), TEXT("hello"), NULL, digest));
    IS(LARDER_OK, larder_contains(store, TEXT("k")));
    CHECK(has_body(store, "k", "hello"));
    /* SHA-256 of "hello". */
    CHECK(digest[0] == 0x2c && digest[1] == 0xf2 && digest[31] == 0x24);

    /* Keys are bytes: NUL is one of them. */
    IS(LARDER_OK, larder_put(store, "k\0x", 3, TEXT("other"), NULL, other));
    CHECK(has_body(store, "k", "hello"));
    CHECK(memcmp(digest, other, sizeof digest) != 0);

    /* An empty body is a hit. */
    IS(LARDER_OK, larder_put(store, TEXT("empty"), NULL, 0, NULL, NULL));
    CHECK(has_body(store, "empty", ""));

    IS(LARDER_OK, larder_contains_content(store, digest, sizeof digest));
    larder_body *body;
    IS(LARDER_OK, larder_get_content(store, digest, sizeof digest, &body));
    const void *bytes;
    size_t length;
    IS(LARDER_OK, larder_body_bytes(body, &bytes, &length));
    CHECK(length == 5 && memcmp(bytes, "hello", 5) == 0);
    IS(LARDER_OK, larder_body_metadata(body, &bytes, &length));
    CHECK(length == 0);
    IS(LARDER_OK, larder_body_release(body));

    IS(LARDER_OK, larder_remove(store, TEXT("k")));
    IS(LARDER_ABSENT, larder_remove(store, TEXT("k")));
    IS(LARDER_ABSENT, larder_get(store, TEXT("k"), 0, &body));
    CHECK(body == NULL);
    IS(LARDER_OK, larder_flush(store, 1));
    IS(LARDER_ABSENT, larder_contains_content(store, digest, sizeof digest));
    IS(LARDER_ABSENT, larder_get_content(store, digest, sizeof digest, &body));

    uint64_t count = 0;
    IS(LARDER_OK, larder_clear(store, &count));
    CHECK(count == 2);
    IS(LARDER_OK, larder_close(store));
}

/* Checks a body of `length` bytes in every way it can be read. */
static void check_body(larder_store *store, const char *key, const unsigned char *wanted, size_t length) {
    larder_body *body = NULL;
    IS(LARDER_OK, larder_get(store, key, strlen(key), 0, &body));
    uint64_t found = 0;
    IS(LARDER_OK, larder_body_length(body, &found));
    CHECK(found == length);

    const void *bytes = NULL, *again = NULL;
    size_t count = 0;
    IS(LARDER_OK, larder_body_bytes(body, &bytes, &count));
    CHECK(count == length && memcmp(bytes, wanted, length) == 0);
    IS(LARDER_OK, larder_body_bytes(body, &again, &count));
    CHECK(bytes == again);

    unsigned char piece[1000];
    uint64_t offset = 0;
    do {
        IS(LARDER_OK, larder_body_read(body, offset, piece, sizeof piece, &count));
        CHECK(offset + count <= length && memcmp(piece, wanted + offset, count) == 0);
        offset += count;
    } while (count == sizeof piece);
    CHECK(offset == length);
    IS(LARDER_OK, larder_body_read(body, length, piece, sizeof piece, &count));
    CHECK(count == 0);
    IS(LARDER_OK, larder_body_read(body, UINT64_MAX, piece, sizeof piece, &count));
    CHECK(count == 0);

    int descriptor = -1;
    uint64_t start = 1, size = 0;
    IS(LARDER_OK, larder_body_descriptor(body, &descriptor, &start, &size));
    CHECK(descriptor >= 0 && size == length);
    unsigned char first;
    CHECK(pread(descriptor, &first, 1, (off_t)start) == 1 && first == wanted[0]);
    CHECK(pread(descriptor, &first, 1, (off_t)(start + size - 1)) == 1 && first == wanted[length - 1]);

    /* What happens to the entry does not change the body. */
    IS(LARDER_OK, larder_remove(store, key, strlen(key)));
    IS(LARDER_OK, larder_flush(store, 0));
    CHECK(memcmp(bytes, wanted, length) == 0);
    IS(LARDER_OK, larder_body_release(body));
    CHECK(fcntl(descriptor, F_GETFD) < 0);
}

/* Bodies in the index, in files, pending and committed; metadata and digests of bodies. */
void test_bodies(void) {
    larder_store *store = new_store();
    static const size_t lengths[] = {1, 999, 1000, 5000, 300000, 3000000};
    for (size_t index = 0; index < sizeof lengths / sizeof *lengths; index++) {
        size_t length = lengths[index];
        unsigned char *wanted = malloc(length);
        CHECK(wanted != NULL);
        for (size_t byte = 0; byte < length; byte++) wanted[byte] = (unsigned char)(byte * 31 + byte / 251 + index);
        for (int isCommitted = 0; isCommitted < 2; isCommitted++) {
            IS(LARDER_OK, larder_put(store, TEXT("body"), wanted, length, NULL, NULL));
            if (isCommitted) IS(LARDER_OK, larder_flush(store, 0));
            check_body(store, "body", wanted, length);
        }

        /* Buffers that are too small are not overrun, and say how long they have to be. */
        IS(LARDER_OK, larder_put(store, TEXT("body"), wanted, length, NULL, NULL));
        IS(LARDER_OK, larder_flush(store, 0));
        unsigned char *memory = malloc(length);
        CHECK(memory != NULL);
        memory[length - 1] = (unsigned char)~wanted[length - 1];
        larder_buffer buffer = {memory, length - 1, 0};
        IS(LARDER_SHORT, larder_read(store, TEXT("body"), 0, &buffer, NULL));
        CHECK(buffer.length == length && memory[length - 1] != wanted[length - 1]);
        buffer.capacity = length;
        IS(LARDER_OK, larder_read(store, TEXT("body"), 0, &buffer, NULL));
        CHECK(memcmp(memory, wanted, length) == 0);
        free(memory);
        free(wanted);
    }

    larder_put_options options = LARDER_INIT(larder_put_options);
    options.metadata = "meta";
    options.metadata_length = 4;
    options.tags = TAGS;
    options.tag_count = 2;
    unsigned char digest[LARDER_DIGEST_LENGTH], found[LARDER_DIGEST_LENGTH];
    for (int isCommitted = 0; isCommitted < 2; isCommitted++) {
        IS(LARDER_OK, larder_put(store, TEXT("k"), TEXT("body"), &options, digest));
        if (isCommitted) IS(LARDER_OK, larder_flush(store, 0));
        char memory[8], words[8];
        larder_buffer buffer = {memory, sizeof memory, 0}, metadata = {words, sizeof words, 0};
        IS(LARDER_OK, larder_read(store, TEXT("k"), 0, &buffer, &metadata));
        CHECK(metadata.length == 4 && memcmp(words, "meta", 4) == 0);
        metadata.capacity = 3;
        IS(LARDER_SHORT, larder_read(store, TEXT("k"), 0, &buffer, &metadata));
        CHECK(metadata.length == 4);
        larder_body *body;
        IS(LARDER_OK, larder_get(store, TEXT("k"), 0, &body));
        const void *bytes;
        size_t length;
        IS(LARDER_OK, larder_body_metadata(body, &bytes, &length));
        CHECK(length == 4 && memcmp(bytes, "meta", 4) == 0);
        IS(LARDER_OK, larder_body_digest(body, found, sizeof found));
        CHECK(memcmp(digest, found, sizeof digest) == 0);
        IS(LARDER_SHORT, larder_body_digest(body, found, sizeof found - 1));

        /* A body outlives its store. */
        if (isCommitted) IS(LARDER_OK, larder_close(store));
        IS(LARDER_OK, larder_body_bytes(body, &bytes, &length));
        CHECK(length == 4 && memcmp(bytes, "body", 4) == 0);
        IS(LARDER_OK, larder_body_release(body));
    }
}

/* Lifetimes, declared digests, pins and policies. */
void test_options(void) {
    larder_store *store = new_store();
    larder_put_options options = LARDER_INIT(larder_put_options);
    options.lifetime = -1;
    IS(LARDER_OK, larder_put(store, TEXT("old"), TEXT("x"), &options, NULL));
    IS(LARDER_ABSENT, larder_contains(store, TEXT("old")));
    larder_body *body;
    IS(LARDER_ABSENT, larder_get(store, TEXT("old"), 0, &body));
    IS(LARDER_OK, larder_get(store, TEXT("old"), LARDER_GET_EXPIRED, &body));
    IS(LARDER_OK, larder_body_release(body));
    IS(LARDER_OK, larder_touch(store, TEXT("old"), 60 * 1000000LL));
    CHECK(has_body(store, "old", "x"));

    options.lifetime = 0;
    options.expires = 1;
    IS(LARDER_OK, larder_put(store, TEXT("until"), TEXT("x"), &options, NULL));
    IS(LARDER_ABSENT, larder_contains(store, TEXT("until")));
    options.lifetime = 5;
    IS(LARDER_INVALID_ARGUMENT, larder_put(store, TEXT("both"), TEXT("x"), &options, NULL));
    options.lifetime = options.expires = 0;

    unsigned char digest[LARDER_DIGEST_LENGTH];
    IS(LARDER_OK, larder_put(store, TEXT("a"), TEXT("declared"), NULL, digest));
    options.digest = digest;
    options.digest_length = sizeof digest;
    IS(LARDER_OK, larder_put(store, TEXT("b"), TEXT("declared"), &options, NULL));
    IS(LARDER_DIGEST_MISMATCH, larder_put(store, TEXT("c"), TEXT("another"), &options, NULL));
    IS(LARDER_ABSENT, larder_contains(store, TEXT("c")));
    options.digest = NULL;
    options.digest_length = 0;

    options.flags = LARDER_PUT_MEMORY_ONLY;
    IS(LARDER_OK, larder_put(store, TEXT("memory"), TEXT("m"), &options, NULL));
    CHECK(has_body(store, "memory", "m"));
    options.flags = LARDER_PUT_SESSION;
    IS(LARDER_OK, larder_put(store, TEXT("session"), TEXT("s"), &options, NULL));
    options.flags = LARDER_PUT_DURABLE | LARDER_PUT_PINNED;
    IS(LARDER_OK, larder_put(store, TEXT("pinned"), TEXT("p"), &options, NULL));
    static const uint32_t refused[] = {
        LARDER_PUT_DURABLE | LARDER_PUT_RELAXED, LARDER_PUT_SESSION | LARDER_PUT_MEMORY_ONLY,
        LARDER_PUT_MEMORY_ONLY | LARDER_PUT_DURABLE, 1u << 30};
    for (size_t index = 0; index < sizeof refused / sizeof *refused; index++) {
        options.flags = refused[index];
        IS(LARDER_INVALID_ARGUMENT, larder_put(store, TEXT("refused"), TEXT("x"), &options, NULL));
    }
    IS(LARDER_ABSENT, larder_contains(store, TEXT("refused")));
    IS(LARDER_OK, larder_close(store));

    larder_options readOnly = LARDER_INIT(larder_options);
    readOnly.flags = LARDER_OPEN_READ_ONLY;
    IS(LARDER_OK, larder_open(latest_path(), &readOnly, &store));
    CHECK(has_body(store, "pinned", "p"));
    IS(LARDER_ABSENT, larder_contains(store, TEXT("session")));
    IS(LARDER_ABSENT, larder_contains(store, TEXT("memory")));
    IS(LARDER_READ_ONLY, larder_put(store, TEXT("k"), TEXT("x"), NULL, NULL));
    IS(LARDER_READ_ONLY, larder_remove(store, TEXT("pinned")));
    IS(LARDER_OK, larder_close(store));
}
