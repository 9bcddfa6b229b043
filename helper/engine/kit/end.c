/*
 * The end of an engine program. It begins only once, whatever the reason, and then raises the abort flag of every job.
 */
#include "base/clock.h"
#include "engine/kit/kit_internal.h"

static void begin_ending(struct fm_kit *kit, int status, int64_t save_until_ms) {
    pthread_mutex_lock(&kit->lock);
    bool first = !atomic_load(&kit->ending);
    if (first) {
        kit->status = status;
        kit->save_until_ms = save_until_ms;
        atomic_store(&kit->ending, true);
        for (struct fm_kit_job *job = kit->jobs; job; job = job->next) {
            atomic_store(&job->aborted, true);
        }
        pthread_cond_broadcast(&kit->changed);
        fm_kit_tell(kit);
    }
    pthread_mutex_unlock(&kit->lock);
    if (first) {
        bool woken = fm_write_all(kit->wake_write, "e", 1);
        (void)woken; /* an empty pipe takes one byte */
    }
}

void fm_kit_end(struct fm_kit *kit, int status) {
    begin_ending(kit, status, 0);
}

void fm_kit_end_saved(struct fm_kit *kit, int64_t save_ms) {
    begin_ending(kit, 0, save_ms > 0 ? fm_now_ms() + save_ms : 0);
}

int64_t fm_kit_save_ms(struct fm_kit *kit) {
    pthread_mutex_lock(&kit->lock);
    int64_t until = kit->save_until_ms;
    pthread_mutex_unlock(&kit->lock);
    int64_t left = until ? until - fm_now_ms() : 0;
    return left > 0 ? left : 0;
}

bool fm_kit_ending(const struct fm_kit *kit) {
    return atomic_load_explicit(&kit->ending, memory_order_relaxed);
}

int fm_kit_end_status(struct fm_kit *kit) {
    pthread_mutex_lock(&kit->lock);
    int status = kit->status;
    kit->over = true;
    pthread_mutex_unlock(&kit->lock);
    return status;
}
