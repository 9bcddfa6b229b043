/*
 * The store's thread, started by the first task, or with the front where there is a file. The disk keeps it waiting and
 * nobody else: a job that waits for the store is in nobody's way, and its limits go on counting.
 */
#include "base/platform.h"
#include "front/front.h"
#include "front/store.h"

static void *store_main(void *argument) {
    struct fm_front *front = argument;
    struct fm_storage *storage = &front->storage;
    struct fm_store *store = NULL;
    if (front->options.store_file) {
        fm_store_open_early(front, &store);
    }
    pthread_mutex_lock(&front->lock);
    while (!storage->ending || storage->first) {
        if (!fm_store_run_next_locked(front, &store)) {
            pthread_cond_wait(&storage->changed, &front->lock);
        }
    }
    pthread_mutex_unlock(&front->lock);
    fm_store_close(store);
    pthread_mutex_lock(&front->lock);
    front->threads--;
    pthread_cond_broadcast(&front->quiet);
    pthread_mutex_unlock(&front->lock);
    return NULL;
}

bool fm_store_thread_start_locked(struct fm_front *front) {
    if (!front->storage.started && fm_thread_start(store_main, front) == 0) {
        front->storage.started = true;
        front->threads++;
    }
    return front->storage.started;
}
