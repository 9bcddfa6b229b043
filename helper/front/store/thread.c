/* The store's thread. */
#include "front/store/thread.h"
#include "base/platform.h"
#include "front/store/queue.h"

static void *store_main(void *argument) {
    struct fm_front *front = argument;
    struct fm_store_queue *queue = &front->store_queue;
    struct fm_store *store = NULL;
    if (front->options.store_file) {
        fm_store_open_early(front, &store);
    }
    fm_front_lock(front);
    while (!queue->ending || queue->first) {
        if (!fm_store_run_next_locked(front, &store)) {
            pthread_cond_wait(&queue->changed, &front->lock);
        }
    }
    fm_front_unlock(front);
    fm_store_close(store);
    fm_front_lock(front);
    front->threads--;
    pthread_cond_broadcast(&front->quiet);
    fm_front_unlock(front);
    return NULL;
}

bool fm_store_thread_start_locked(struct fm_front *front) {
    if (!front->store_queue.started && fm_thread_start(store_main, front) == 0) {
        front->store_queue.started = true;
        front->threads++;
    }
    return front->store_queue.started;
}
