/* What the tests of the C interface share. Each test runs in a directory of its own. */
#ifndef CHECK_H
#define CHECK_H

#include <larder.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How many checks failed so far. */
extern int failures;

void check_failed(const char *file, int line, const char *what);
void check_status(const char *file, int line, const char *call, larder_status found, larder_status wanted);

/* Notes a condition that does not hold. */
#define CHECK(condition) \
    do { \
        if (!(condition)) check_failed(__FILE__, __LINE__, #condition); \
    } while (0)

/* Notes a call that did not return the status that is wanted. */
#define IS(wanted, call) check_status(__FILE__, __LINE__, #call, (call), (wanted))

/* A key or body that is a literal: its address and its length. */
#define TEXT(literal) (literal), (sizeof(literal) - 1)

/* An open store in a new directory that no other test uses. */
larder_store *new_store(void);
larder_store *new_store_with(const larder_options *options);

/* The directory of the latest of them. */
const char *latest_path(void);

/* True if the store has this body under the key. */
int has_body(larder_store *store, const char *key, const char *body);

/* The tests, one function for each subject. */
void test_entries(void);
void test_bodies(void);
void test_options(void);
void test_writers(void);
void test_conditions(void);
void test_batches(void);
void test_compression(void);
void test_encryption(void);
void test_listing(void);
void test_upkeep(void);
void test_arguments(void);
void test_handles(void);
void test_structures(void);
void test_threads(void);
void test_fork(void);

#endif
