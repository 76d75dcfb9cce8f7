/*
 * A cache of build results, as a compiler cache has one: the output of a step by the digest of its input. Builds with
 *
 *     cc build_cache.c $(pkg-config --cflags --libs larder)
 *
 * and takes the directory of the store. Ends with status 1 if something is not as the comments say.
 */
#include <larder.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int steps;

static void fail(const char *what) {
    fprintf(stderr, "%s: %s\n", what, larder_error_message());
    exit(1);
}

/* The step that is worth caching: upper case, for lack of a compiler. */
static void compile(const char *source, char *object) {
    steps++;
    for (; *source; source++) *object++ = (char)(*source >= 'a' && *source <= 'z' ? *source - 32 : *source);
    *object = 0;
}

/* The object of a source: from the cache, or compiled and stored. The caller frees it. */
static char *object_of(larder_store *store, const char *source) {
    /* The source is content, too, so its digest comes without a library for SHA-256. */
    unsigned char key[3 + LARDER_DIGEST_LENGTH] = "cc:";
    if (larder_put(store, "source", 6, source, strlen(source), NULL, key + 3) != LARDER_OK) fail("digest");

    char *object = calloc(1, strlen(source) + 1);
    if (object == NULL) exit(1);
    larder_buffer buffer = {object, strlen(source), 0};
    larder_status found = larder_read(store, key, sizeof key, 0, &buffer, NULL);
    if (found == LARDER_OK) return object;
    if (found != LARDER_ABSENT) fail("read");

    compile(source, object);
    const char *tags[] = {"objects"};
    larder_put_options options = LARDER_INIT(larder_put_options);
    options.tags = tags;
    options.tag_count = 1;
    options.lifetime = 7LL * 24 * 3600 * 1000000;
    /* Another build may have been faster. */
    if (LARDER_IS_ERROR(larder_put_if_absent(store, key, sizeof key, object, strlen(object), &options))) fail("put");
    return object;
}

int main(int count, char **arguments) {
    if (count != 2) {
        fprintf(stderr, "usage: %s DIRECTORY\n", arguments[0]);
        return 64;
    }
    larder_options options = LARDER_INIT(larder_options);
    options.budget_bytes = 64 << 20;
    larder_store *store;
    if (larder_open(arguments[1], &options, &store) != LARDER_OK) fail("open");

    const char *sources[] = {"int a;", "int b;", "int a;"};
    for (int index = 0; index < 3; index++) {
        char *object = object_of(store, sources[index]);
        printf("%s -> %s\n", sources[index], object);
        free(object);
    }

    larder_statistics statistics = LARDER_INIT(larder_statistics);
    if (larder_get_statistics(store, &statistics) != LARDER_OK) fail("statistics");
    printf("%d steps, %d hits, %d bytes on disk\n", steps, (int)statistics.hits, (int)statistics.allocated_bytes);

    /* A new compiler makes the old objects useless. */
    larder_selection objects = LARDER_INIT(larder_selection);
    objects.tag = "objects";
    uint64_t removed = 0;
    if (larder_remove_selected(store, &objects, &removed) != LARDER_OK) fail("remove");
    if (larder_close(store) != LARDER_OK) fail("close");
    return steps == 2 && statistics.hits == 1 && removed == 2 ? 0 : 1;
}
