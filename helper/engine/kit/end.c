/* The end of an engine program: it begins once, for whatever reason, and every job's abort flag is raised with it. */
#include "engine/kit/kit_internal.h"

void fm_kit_end(struct fm_kit *kit, int status) {
    pthread_mutex_lock(&kit->lock);
    bool first = !atomic_load(&kit->ending);
    if (first) {
        kit->status = status;
        atomic_store(&kit->ending, true);
        for (struct fm_kit_job *job = kit->jobs; job; job = job->next) {
            atomic_store(&job->aborted, true);
        }
        pthread_cond_broadcast(&kit->changed);
    }
    pthread_mutex_unlock(&kit->lock);
    if (first) {
        bool woken = fm_write_all(kit->wake_write, "e", 1);
        (void)woken; /* an empty pipe takes one byte */
    }
}

bool fm_kit_ending(const struct fm_kit *kit) {
    return atomic_load_explicit(&kit->ending, memory_order_relaxed);
}

int fm_kit_end_status(struct fm_kit *kit) {
    pthread_mutex_lock(&kit->lock);
    int status = kit->status;
    pthread_mutex_unlock(&kit->lock);
    return status;
}
