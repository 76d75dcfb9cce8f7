/*
 * larder.h: the C interface of Larder, a content-addressed cache in a directory, with a budget that holds at every
 * moment. Link with -llarder (pkg-config larder). C11 or later, C++; 64-bit systems.
 *
 *     larder_store *store;
 *     if (larder_open("/var/cache/app", NULL, &store) != LARDER_OK) {
 *         fprintf(stderr, "%s\n", larder_error_message());
 *         return 1;
 *     }
 *     larder_put(store, "greeting", 8, "hello", 5, NULL, NULL);
 *     larder_body *body;
 *     if (larder_get(store, "greeting", 8, 0, &body) == LARDER_OK) {
 *         const void *bytes;
 *         size_t length;
 *         if (larder_body_bytes(body, &bytes, &length) == LARDER_OK) fwrite(bytes, 1, length, stdout);
 *         larder_body_release(body);
 *     }
 *     larder_close(store);
 *
 * These rules hold for every function; the comment of a function says only what differs.
 *
 * Results. 0 (LARDER_OK) is success. A positive status is an answer: there is no such entry, say. A negative one is an
 *     error; larder_error_message() says what happened. After an answer or an error nothing was stored or changed, and
 *     output parameters are not written, unless the comment says so.
 * Threads. Any number of threads may use a store and its bodies at the same time. A writer and a batch are for one
 *     thread at a time. Of several threads that release a handle one gets LARDER_OK, the others LARDER_CLOSED.
 * Handles. larder_store, larder_body, larder_writer and larder_batch belong to the caller, who releases each once. A
 *     handle is a number, not an address: one that was released, or that the library never returned, is an error
 *     (LARDER_CLOSED, LARDER_INVALID_ARGUMENT), never a crash. Bodies and writers stay valid when their store is
 *     closed; a writer then returns LARDER_CLOSED. At most 1,048,576 handles are open at a time.
 * Pointers. What the caller passes in must be readable, or writable, for the length that is passed with it; the library
 *     keeps no pointer after the call. NULL is LARDER_INVALID_ARGUMENT, unless the comment says what it means; NULL
 *     with a length of 0 is an empty string of bytes.
 * Keys. 1 to 65,536 bytes of any value. An empty key is LARDER_INVALID_ARGUMENT, a longer one LARDER_TOO_LARGE.
 * Digests. SHA-256: LARDER_DIGEST_LENGTH (32) bytes. Another length is LARDER_INVALID_ARGUMENT.
 * Units. Lengths are bytes. Durations and moments are microseconds, moments since 1970-01-01 00:00 UTC. Tags, paths and
 *     versions are UTF-8 that ends with a NUL.
 * Structures. Those with a member `size` can grow in later versions: set it to sizeof before the call. LARDER_INIT does
 *     that and sets everything else to 0, which is the default of every member. Members that this version does not
 *     know must be 0, otherwise the call returns LARDER_UNSUPPORTED.
 * Flags. Bits that are not documented must be 0, otherwise the call returns LARDER_INVALID_ARGUMENT.
 * Callbacks. Called on the thread of the call. They may call the library, and return 0 to continue. They must not
 *     longjmp(3) or throw through it.
 * Fork. In a child of fork(2), the handles of its parent return LARDER_MUST_REOPEN, as the threads of the engine stay
 *     behind in the parent. The child may open stores, the same ones too. Memory of a body that was there before the fork
 *     stays readable. larder_flush() before the fork lets the child see what was put. Do not fork while another thread is
 *     in the first larder_open() of the process.
 * Messages. Warnings and errors of work in the background are also written to standard error.
 * Errors of every function that takes a store: LARDER_INVALID_ARGUMENT, LARDER_CLOSED, LARDER_MUST_REOPEN, LARDER_IO
 *     and LARDER_READERS_FULL. Functions that write add LARDER_READ_ONLY, LARDER_NO_SPACE, LARDER_MAP_FULL and
 *     LARDER_CORRUPTION.
 */
#ifndef LARDER_H
#define LARDER_H

#include <larder/status.h>
#include <larder/store.h>
#include <larder/read.h>
#include <larder/write.h>
#include <larder/change.h>
#include <larder/list.h>

#endif
