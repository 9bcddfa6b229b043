/* Counters. See metrics.h. */
#include "front/metrics.h"

static enum fm_outcome outcome_of(enum fm_finish finish, const struct fm_error *error) {
    switch (finish) {
    case FM_FINISH_STOP: return FM_OUTCOME_COMPLETED;
    case FM_FINISH_LENGTH:
    case FM_FINISH_CONTENT_FILTER: return FM_OUTCOME_INCOMPLETE;
    case FM_FINISH_CANCELLED: return FM_OUTCOME_CANCELLED;
    case FM_FINISH_FAILED: break;
    }
    return error && error->code == FM_TIMEOUT ? FM_OUTCOME_TIMED_OUT : FM_OUTCOME_FAILED;
}

void fm_metrics_count_end(struct fm_metrics *metrics, enum fm_finish finish, const struct fm_error *error) {
    metrics->outcomes[outcome_of(finish, error)]++;
}

/* Token numbers that are unknown are left out of the sums. */
static int64_t known(int64_t tokens) {
    return tokens > 0 ? tokens : 0;
}

void fm_metrics_count_choice(struct fm_metrics *metrics, const struct fm_answer *answer) {
    metrics->tokens.input += known(answer->usage.input);
    metrics->tokens.cached += known(answer->usage.cached);
    metrics->tokens.output += known(answer->usage.output);
    metrics->tokens.reasoning += known(answer->usage.reasoning);
    metrics->timings.queue_us += answer->timings.queue_us;
    metrics->timings.prefill_us += answer->timings.prefill_us;
    metrics->timings.decode_us += answer->timings.decode_us;
    metrics->timings.drafted += answer->timings.drafted;
    metrics->timings.accepted += answer->timings.accepted;
}
