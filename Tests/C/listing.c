#include "check.h"

#include <inttypes.h>

/* What a listing came to. */
typedef struct seen {
    int count;
    int limit;
    char keys[256];
    larder_item last;
    char tags[64];
} seen;

static int see(void *context, const larder_item *item) {
    seen *seen = context;
    seen->count++;
    size_t used = strlen(seen->keys);
    snprintf(seen->keys + used, sizeof seen->keys - used, "%.*s ", (int)item->key_length, (const char *)item->key);
    seen->last = *item;
    seen->tags[0] = 0;
    for (size_t index = 0; index < item->tag_count; index++) {
        strncat(seen->tags, item->tags[index], sizeof seen->tags - strlen(seen->tags) - 2);
        strcat(seen->tags, " ");
    }
    return seen->limit != 0 && seen->count >= seen->limit;
}

static int lists(larder_store *store, const larder_selection *selection, const char *wanted) {
    seen seen = {0};
    IS(LARDER_OK, larder_list(store, selection, see, &seen));
    if (strcmp(seen.keys, wanted) != 0) fprintf(stderr, "listed '%s'\n", seen.keys);
    return strcmp(seen.keys, wanted) == 0;
}

static void put_tagged(larder_store *store, const char *key, const char *tag, int64_t lifetime, uint32_t flags) {
    larder_put_options options = LARDER_INIT(larder_put_options);
    options.tags = &tag;
    options.tag_count = tag == NULL ? 0 : 1;
    options.lifetime = lifetime;
    options.flags = flags;
    IS(LARDER_OK, larder_put(store, key, strlen(key), key, strlen(key), &options, NULL));
}

/* Listing, describing and removing by what entries are. */
void test_listing(void) {
    // Bodies of any length are shared.
    larder_options open = LARDER_INIT(larder_options);
    open.embedding_threshold = LARDER_UNLIMITED;
    larder_store *store = new_store_with(&open);
    put_tagged(store, "a/1", "t", 0, 0);
    put_tagged(store, "a/2", NULL, 0, LARDER_PUT_PINNED);
    put_tagged(store, "b/33", "t", 0, 0);
    put_tagged(store, "old", NULL, -1, 0);

    CHECK(lists(store, NULL, "a/1 a/2 b/33 old "));
    larder_selection selection = LARDER_INIT(larder_selection);
    CHECK(lists(store, &selection, "a/1 a/2 b/33 old "));
    selection.prefix = "a/";
    selection.prefix_length = 2;
    CHECK(lists(store, &selection, "a/1 a/2 "));
    selection.tag = "t";
    CHECK(lists(store, &selection, "a/1 "));
    selection.prefix = NULL;
    selection.prefix_length = 0;
    selection.at_least = 4;
    CHECK(lists(store, &selection, "b/33 "));
    selection.tag = NULL;
    selection.at_least = 0;
    selection.flags = LARDER_SELECT_PINNED;
    CHECK(lists(store, &selection, "a/2 "));
    selection.flags = LARDER_SELECT_UNPINNED;
    CHECK(lists(store, &selection, "a/1 b/33 old "));
    selection.flags = LARDER_SELECT_EXPIRED;
    CHECK(lists(store, &selection, "old "));
    uint64_t count = 0;
    IS(LARDER_OK, larder_remove_selected(store, &selection, &count));
    CHECK(count == 1);
    selection.flags = 0;

    seen some = {.limit = 2};
    IS(LARDER_STOPPED, larder_list(store, NULL, see, &some));
    CHECK(some.count == 2);

    larder_put_options options = LARDER_INIT(larder_put_options);
    const char *tags[] = {"x", "yy"};
    options.tags = tags;
    options.tag_count = 2;
    options.metadata = "m";
    options.metadata_length = 1;
    IS(LARDER_OK, larder_put(store, TEXT("z"), TEXT("body"), &options, NULL));
    IS(LARDER_OK, larder_put(store, TEXT("copy"), TEXT("body"), NULL, NULL));
    seen one = {0};
    IS(LARDER_OK, larder_describe(store, TEXT("z"), see, &one));
    CHECK(one.count == 1 && one.last.length == 4 && one.last.references == 2 && one.last.expires == LARDER_NEVER);
    CHECK(one.last.size == sizeof(larder_item) && one.last.flags == LARDER_ITEM_INLINE);
    CHECK(one.last.created > 0 && one.last.stored >= one.last.created && one.last.metadata_length == 1);
    CHECK(strcmp(one.tags, "x yy ") == 0);
    IS(LARDER_ABSENT, larder_describe(store, TEXT("none"), see, &one));
    larder_body *body;
    IS(LARDER_OK, larder_get(store, TEXT("z"), 0, &body));
    seen same = {0};
    IS(LARDER_OK, larder_body_describe(body, see, &same));
    CHECK(same.count == 1 && strcmp(same.tags, "x yy ") == 0 && same.last.references == 0);
    IS(LARDER_OK, larder_body_release(body));

    larder_entry_change change = LARDER_INIT(larder_entry_change);
    change.fields = LARDER_CHANGE_TAGS | LARDER_CHANGE_LIFETIME | LARDER_CHANGE_PIN;
    change.tags = tags + 1;
    change.tag_count = 1;
    change.lifetime = 3600 * 1000000LL;
    IS(LARDER_OK, larder_change(store, TEXT("z"), &change));
    IS(LARDER_ABSENT, larder_change(store, TEXT("none"), &change));
    seen after = {0};
    IS(LARDER_OK, larder_describe(store, TEXT("z"), see, &after));
    CHECK(strcmp(after.tags, "yy ") == 0 && after.last.expires != LARDER_NEVER);
    CHECK((after.last.flags & LARDER_ITEM_PINNED) != 0 && after.last.metadata_length == 1);

    IS(LARDER_OK, larder_pin_tag(store, "t", &count));
    CHECK(count == 2);
    selection.flags = LARDER_SELECT_PINNED;
    selection.tag = "t";
    CHECK(lists(store, &selection, "a/1 b/33 "));
    IS(LARDER_OK, larder_unpin_tag(store, "t", &count));
    CHECK(lists(store, &selection, ""));
    IS(LARDER_OK, larder_close(store));
}

static int steps_seen;

static int note_step(void *context, const char *step, const larder_collection *so_far) {
    steps_seen++;
    CHECK(strlen(step) > 0 && so_far->size == sizeof *so_far);
    return *(int *)context;
}

static int note_violation(void *context, const char *violation, int is_repaired) {
    (void)is_repaired;
    fprintf(stderr, "violation: %s\n", violation);
    return *(int *)context;
}

/* Statistics, budgets, collection and checks. */
void test_upkeep(void) {
    larder_options options = LARDER_INIT(larder_options);
    options.budget_bytes = 8 << 20;
    larder_store *store = new_store_with(&options);
    char body[20000];
    for (int index = 0; index < 1000; index++) {
        char key[16];
        memset(body, index, sizeof body);
        memcpy(body, &index, sizeof index);
        snprintf(key, sizeof key, "%d", index);
        IS(LARDER_OK, larder_put(store, key, strlen(key), body, sizeof body, NULL, NULL));
    }
    CHECK(!has_body(store, "none", ""));
    larder_statistics statistics = LARDER_INIT(larder_statistics);
    IS(LARDER_OK, larder_get_statistics(store, &statistics));
    CHECK(statistics.size == sizeof statistics && statistics.budget_bytes == 8 << 20);
    CHECK(statistics.entries > 50 && statistics.entries < 1000 && statistics.displaced > 0);
    CHECK(statistics.allocated_bytes <= 8 << 20 && statistics.puts == 1000 && statistics.misses == 1);

    larder_budget budget = LARDER_INIT(larder_budget);
    IS(LARDER_OK, larder_get_budget(store, &budget));
    CHECK(budget.bytes == 8 << 20 && budget.entries == LARDER_UNLIMITED && budget.free_disk_floor == 0);
    budget.largest_entry = 100;
    IS(LARDER_OK, larder_set_budget(store, &budget));
    IS(LARDER_TOO_LARGE, larder_put(store, TEXT("large"), body, sizeof body, NULL, NULL));
    CHECK(strstr(larder_error_message(), "larder_set_budget") != NULL);
    IS(LARDER_ABSENT, larder_contains(store, TEXT("large")));
    budget.bytes = 5;
    IS(LARDER_INVALID_ARGUMENT, larder_set_budget(store, &budget));

    int answer = 0;
    larder_collection result = LARDER_INIT(larder_collection);
    IS(LARDER_OK, larder_collect(store, LARDER_COLLECT_COMPACT, note_step, &answer, &result));
    CHECK(steps_seen >= 7 && result.allocated_before >= result.allocated_after && result.allocated_after > 0);
    IS(LARDER_OK, larder_collect(store, LARDER_COLLECT_DRY_RUN, NULL, NULL, NULL));
    answer = 1;
    steps_seen = 0;
    IS(LARDER_STOPPED, larder_collect(store, 0, note_step, &answer, NULL));
    CHECK(steps_seen == 1);

    uint64_t violations = 99, repaired = 99;
    IS(LARDER_OK, larder_check(store, LARDER_CHECK_REPAIR, note_violation, &answer, &violations, &repaired));
    CHECK(violations == 0 && repaired == 0);
    IS(LARDER_OK, larder_check(store, LARDER_CHECK_INDEX_ONLY, NULL, NULL, NULL, NULL));
    IS(LARDER_OK, larder_close(store));
}
