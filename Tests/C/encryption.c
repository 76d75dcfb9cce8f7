#include "check.h"

static larder_key key_of(const void *bytes) {
    larder_key key = LARDER_INIT(larder_key);
    key.bytes = bytes;
    key.length = 32;
    return key;
}

static larder_status open_with(const larder_key *key) {
    larder_options options = LARDER_INIT(larder_options);
    larder_store *store;
    options.key = key;
    larder_status status = larder_open(latest_path(), &options, &store);
    CHECK((store != NULL) == (status == LARDER_OK));
    if (status == LARDER_OK) {
        CHECK(has_body(store, "k", "hello"));
        IS(LARDER_OK, larder_close(store));
    }
    return status;
}

/* A store opens with its key, which can be changed; what is not a key is refused. */
void test_encryption(void) {
    static char bytes[32] = "the first key of this test, yes", other[32] = "another key of this test, indee";
    larder_key key = key_of(bytes), wrong = key_of(other), passphrase = LARDER_INIT(larder_key);
    larder_options options = LARDER_INIT(larder_options);
    larder_store *store;
    options.key = &key;
    store = new_store_with(&options);
    IS(LARDER_OK, larder_put(store, TEXT("k"), TEXT("hello"), NULL, NULL));
    IS(LARDER_OK, larder_close(store));

    IS(LARDER_OK, open_with(&key));
    IS(LARDER_WRONG_KEY, open_with(&wrong));
    IS(LARDER_WRONG_KEY, open_with(NULL));
    CHECK(strstr(larder_error_message(), "opens with its key only") != NULL);
    passphrase.passphrase = "correct horse";
    IS(LARDER_WRONG_KEY, open_with(&passphrase));
    IS(LARDER_WRONG_KEY, larder_change_key(latest_path(), &wrong, &passphrase));
    IS(LARDER_OK, larder_change_key(latest_path(), &key, &passphrase));
    IS(LARDER_WRONG_KEY, open_with(&key));
    IS(LARDER_OK, open_with(&passphrase));

    larder_key broken = key_of(bytes);
    broken.length = 31;
    IS(LARDER_INVALID_ARGUMENT, open_with(&broken));
    broken = key_of(NULL);
    IS(LARDER_INVALID_ARGUMENT, open_with(&broken));
    broken = key_of(bytes);
    broken.passphrase = "both";
    IS(LARDER_INVALID_ARGUMENT, open_with(&broken));
    broken = (larder_key)LARDER_INIT(larder_key);
    IS(LARDER_INVALID_ARGUMENT, open_with(&broken));
    broken.passphrase = "";
    IS(LARDER_INVALID_ARGUMENT, open_with(&broken));
    broken = key_of(bytes);
    broken.size = 3;
    IS(LARDER_INVALID_ARGUMENT, open_with(&broken));
    IS(LARDER_INVALID_ARGUMENT, larder_change_key(latest_path(), NULL, &key));
    IS(LARDER_INVALID_ARGUMENT, larder_change_key(NULL, &passphrase, &key));
}
