/* The mailbox: items from the reader for the engine thread, in order, and how that thread waits for them. */
#include "base/clock.h"
#include "engine/kit/kit_internal.h"

#include <json-c/json.h>
#include <stdlib.h>

void fm_mailbox_free_item(struct fm_item *item) {
    json_object_put(item->params);
    free(item);
}

void fm_mailbox_post(struct fm_kit *kit, struct fm_item *item) {
    pthread_mutex_lock(&kit->lock);
    *kit->last = item;
    kit->last = &item->next;
    if (item->job) {
        item->job->next = kit->jobs;
        kit->jobs = item->job;
        /* fm_kit_end raised the flags of the jobs that existed then; this job came later */
        atomic_store(&item->job->aborted, atomic_load(&kit->ending));
    }
    pthread_cond_broadcast(&kit->changed);
    fm_kit_tell(kit);
    pthread_mutex_unlock(&kit->lock);
}

/* Under the lock. */
static bool has_jobs(const struct fm_kit *kit) {
    const struct fm_kit_job *job = kit->jobs;
    while (job && !job->taken) {
        job = job->next;
    }
    return job != NULL;
}

/* The first item, unless it is a job that must run alone and can't yet. Under the lock. */
static struct fm_item *first_ready(const struct fm_kit *kit, enum fm_mailbox_wait wait) {
    struct fm_item *item = kit->first;
    bool repeatable = item && item->job && item->job->repeatable;
    bool beside = wait == FM_WAIT_NOT || (wait == FM_WAIT_WITHIN && has_jobs(kit));
    return repeatable && beside ? NULL : item;
}

/* Call it under the lock, which is released during the wait. False: there is no reason to wait any more. */
static bool wait_on(struct fm_kit *kit, enum fm_mailbox_wait wait, int64_t until_ms) {
    if (wait == FM_WAIT_NOT || fm_kit_ending(kit)) {
        return false;
    }
    if (wait == FM_WAIT_ITEM) {
        pthread_cond_wait(&kit->changed, &kit->lock);
        return true;
    }
    if (kit->woken || fm_now_ms() >= until_ms) {
        kit->woken = false;
        return false;
    }
    fm_cond_wait_until(&kit->changed, &kit->lock, until_ms);
    return true;
}

struct fm_item *fm_mailbox_next(struct fm_kit *kit, enum fm_mailbox_wait wait, int64_t until_ms) {
    pthread_mutex_lock(&kit->lock);
    struct fm_item *item;
    do {
        item = fm_kit_ending(kit) ? NULL : first_ready(kit, wait);
    } while (!item && wait_on(kit, wait, until_ms));
    if (item) {
        kit->first = item->next;
        kit->last = kit->first ? kit->last : &kit->first;
    }
    pthread_mutex_unlock(&kit->lock);
    return item;
}

void fm_kit_wait(struct fm_kit *kit, int64_t ms) {
    int64_t until_ms = fm_now_ms() + ms;
    pthread_mutex_lock(&kit->lock);
    while (wait_on(kit, FM_WAIT_WITHIN, until_ms)) {
    }
    pthread_mutex_unlock(&kit->lock);
}

struct fm_item *fm_mailbox_next_aborted(struct fm_kit *kit) {
    pthread_mutex_lock(&kit->lock);
    struct fm_item **link = &kit->first;
    while (*link && !((*link)->job && fm_kit_job_aborted((*link)->job))) {
        link = &(*link)->next;
    }
    struct fm_item *item = *link;
    if (item) {
        *link = item->next;
        kit->last = item->next ? kit->last : link;
    }
    pthread_mutex_unlock(&kit->lock);
    return item;
}

bool fm_kit_job_waits(struct fm_kit *kit) {
    pthread_mutex_lock(&kit->lock);
    const struct fm_item *item = kit->first;
    while (item && !item->job) {
        item = item->next;
    }
    bool waits = item && !item->job->repeatable; /* a repeatable job has to be alone */
    pthread_mutex_unlock(&kit->lock);
    return waits;
}

void fm_kit_wake(struct fm_kit *kit) {
    pthread_mutex_lock(&kit->lock);
    kit->woken = true;
    pthread_cond_broadcast(&kit->changed);
    pthread_mutex_unlock(&kit->lock);
}
