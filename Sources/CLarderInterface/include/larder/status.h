/* Part of larder.h: results, errors and the types that all functions share. */
#ifndef LARDER_STATUS_H
#define LARDER_STATUS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this header: larder_version() is that of the library. */
#define LARDER_VERSION "0.1.0"

/* Sets a structure to its defaults: larder_options options = LARDER_INIT(larder_options); */
#ifdef __cplusplus
#define LARDER_INIT(type) ([] { type value = type(); value.size = sizeof(type); return value; }())
#else
#define LARDER_INIT(type) {.size = sizeof(type)}
#endif

/* The bytes of a digest: SHA-256. */
#define LARDER_DIGEST_LENGTH 32

/* The longest key, in bytes. */
#define LARDER_KEY_LENGTH_MAX 65536

/* No limit. */
#define LARDER_UNLIMITED UINT64_MAX

/* A moment that never comes, and a lifetime without end. */
#define LARDER_NEVER INT64_MAX

/* What a call came to. Errors have the numbers of Larder's own codes, which do not change. */
typedef enum larder_status {
    /* Done. */
    LARDER_OK = 0,

    /* Answers: greater than 0. They set no message. */

    /* There is no such entry or content: a miss. */
    LARDER_ABSENT = 1,
    /* A fresh entry is there already; nothing was stored. */
    LARDER_PRESENT = 2,
    /* The entry is another by now; nothing was changed. */
    LARDER_CHANGED = 3,
    /* The caller's buffer is too small; the call says how long it has to be. */
    LARDER_SHORT = 4,
    /* A callback asked to stop. What was done before stays done. */
    LARDER_STOPPED = 5,

    /* Errors: less than 0. larder_error_message() says more. */

    /* An argument is out of its documented range. */
    LARDER_INVALID_ARGUMENT = -1,
    /* The handle was closed or released before. */
    LARDER_CLOSED = -2,
    /* Another program holds what is needed, or this one has the store open with other settings. */
    LARDER_LOCKED = -3,
    /* A system call failed: larder_error_number() has its errno. */
    LARDER_IO = -4,
    /* The file system, the free-disk floor or the budget leaves no room. */
    LARDER_NO_SPACE = -5,
    /* The index reached the address space reserved for it. */
    LARDER_MAP_FULL = -6,
    /* Every slot of the table of readers is taken. */
    LARDER_READERS_FULL = -7,
    /* A file of the store is damaged: call larder_check with LARDER_CHECK_REPAIR. */
    LARDER_CORRUPTION = -8,
    /* The directory is not a store, or a store of a format that this version does not know. */
    LARDER_FORMAT_MISMATCH = -9,
    /* The body does not have the digest that it was declared with. */
    LARDER_DIGEST_MISMATCH = -10,
    /* The body does not have the length that it was declared with. */
    LARDER_LENGTH_MISMATCH = -11,
    /* The body, key, tags or metadata are larger than the limit. */
    LARDER_TOO_LARGE = -12,
    /* The store was opened read-only. */
    LARDER_READ_ONLY = -13,
    /* Not possible on this system, file system or version of the library. */
    LARDER_UNSUPPORTED = -14,
    /* The open store cannot be used any further: close all stores of the directory, and open them again. */
    LARDER_MUST_REOPEN = -15,
    /* Bytes of a body in progress are missing. Reserved: no function of this version returns it. */
    LARDER_INCOMPLETE = -16,
    /* A body in progress was removed. Reserved: no function of this version returns it. */
    LARDER_GONE = -17,
    /* The store is encrypted, and the key is another one or missing; or it is not, and a key was given. */
    LARDER_WRONG_KEY = -18,
    /* An error without a code of its own. */
    LARDER_FAILED = -100
} larder_status;

/* True for an error; false for success and for answers. */
#define LARDER_IS_ERROR(status) ((status) < 0)

/* A store: an open directory. larder_close() ends it. */
typedef struct larder_store larder_store;
/* The bytes of an entry as they were when it was looked up. larder_body_release() ends it. */
typedef struct larder_body larder_body;
/* A body that is written piece by piece. larder_writer_commit() or larder_writer_cancel() ends it. */
typedef struct larder_writer larder_writer;
/* Changes that are committed together. larder_batch_release() ends it. */
typedef struct larder_batch larder_batch;

/*
 * What went wrong in the latest call of this thread that returned an error: text for a developer, with the path or the
 * key and, where there is one, the remedy. "" before the first error. At most 2,047 bytes.
 *
 * Calls that succeed, and answers, leave it as it is. The library owns the text: it is valid until the next call of
 * this thread that returns an error.
 */
const char *larder_error_message(void);

/*
 * The errno of the system call that failed in the latest call of this thread that returned an error; 0 if no system
 * call failed. The library does not set errno itself.
 */
int larder_error_number(void);

/* The name of a status: "OK", "ABSENT", "NO_SPACE"; "UNKNOWN" for other numbers. Static text. */
const char *larder_status_name(larder_status status);

/* The version of the library, such as "0.1.0". Static text. */
const char *larder_version(void);

#ifdef __cplusplus
}
#endif

#endif
