/*
 * An agent: the markdown files of a workspace become the prompt that a run begins with. Each run reads the files again,
 * so a change by the user takes effect from the next message on. One thread at a time.
 */
#ifndef GW_AGENTS_AGENT_H
#define GW_AGENTS_AGENT_H

#include "base/buf.h"
#include "base/error.h"

#include <stddef.h>

#define GW_AGENT_FILE_MAX   262144u /* bytes of each file; no model here could read a longer prompt */
#define GW_AGENT_NAME_MAX   64u     /* bytes */
#define GW_MODEL_MAX        128u    /* bytes of a model's name */
#define GW_AGENT_PROMPT_MAX (4u * GW_AGENT_FILE_MAX)

enum gw_provider { GW_PROVIDER_LOCAL, GW_PROVIDER_OPENAI, GW_PROVIDER_ANTHROPIC };

struct gw_model_ref {
    enum gw_provider provider;
    char name[GW_MODEL_MAX + 1]; /* "default" with GW_PROVIDER_LOCAL: the helper's default model */
};

struct gw_agent {
    char name[GW_AGENT_NAME_MAX + 1]; /* shown to users; the caller's id unless AGENTS.md has a name */
    struct gw_model_ref model;
    struct fm_buf prompt; /* UTF-8: AGENTS.md without its front matter, SOUL.md, TOOLS.md, an empty line between */
};

/* "local", "openai" or "anthropic". */
const char *gw_provider_name(enum gw_provider provider);

/*
 * Reads "provider/name" (`len` bytes); the name may have more slashes. FM_INVALID_REQUEST says what is wrong, and which
 * providers there are. Pure.
 */
FM_MUST_USE enum fm_code gw_model_ref_parse(const char *text, size_t len, struct gw_model_ref *ref,
                                            struct fm_error *error);

/*
 * Reads the agent `id` from the folder `workspace`. A missing file is left out. FM_UNAVAILABLE: all three are missing,
 * or one can't be read. FM_INVALID_REQUEST: a file is too long or is not UTF-8 text, or its front matter is wrong; the
 * error names file and line. The caller frees the agent by gw_agent_free; on failure there is nothing to free. May
 * block on the disk.
 */
FM_MUST_USE enum fm_code gw_agent_read(const char *workspace, const char *id, struct gw_agent *agent,
                                       struct fm_error *error);
void gw_agent_free(struct gw_agent *agent);

#endif
